"""Data races: accesses to one place, one of them a write, that nothing orders (PTX ISA, "Memory Consistency Model").

Shared memory (of the own block or another of the cluster) and global memory; threads, and the asynchronous agents that
act for them. Accesses that are both strong (atomics, ``ld.relaxed``...), with scopes that cover both threads, do not
race. Stores of the same value do not race either.

An access that cannot meet an earlier one is only noted (:mod:`.pending`); the others are compared cell by cell
(:mod:`.race_cells`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.ir.core import Op
from tilewright.ir.lanes import Array
from tilewright.ir.target import WARP
from tilewright.sim.access import WIDEST
from tilewright.sim.checks.accessors import Accessors
from tilewright.sim.checks.actors import lanes_of
from tilewright.sim.checks.buffers import buffers_of
from tilewright.sim.checks.checker import Checker
from tilewright.sim.checks.findings import Finding, Findings, Party
from tilewright.sim.checks.order import HappensBefore
from tilewright.sim.checks.pending import PendingAccesses
from tilewright.sim.checks.race_cells import CellCheck
from tilewright.sim.checks.reach import Box, Boxes, Pieces, Reach, Several, Threads, arrived, run_of, span_at, span_of
from tilewright.sim.checks.records import SimilarLoads
from tilewright.sim.checks.shadow import MOST_TICKS, MOST_UNITS, Shadow
from tilewright.sim.checks.shadow_pages import has_pages, shadow_of
from tilewright.sim.checks.sites import THREAD, kernel_facts
from tilewright.sim.checks.whole_rows import WholeRows
from tilewright.sim.shared import RANK_SHIFT, PieceReads, SharedBuffer

if TYPE_CHECKING:
    from tilewright.sim.agents import Effect
    from tilewright.sim.engine import Launch
    from tilewright.sim.group import Group
    from tilewright.sim.wave import Wave

BUDGET = 1 << 18  # cells of memory that the default checks look at one by one in one launch: some 30 ms
WAVE_SHIFT = 40  # of the wave in places of flags in shared memory
STEP = 64  # beside two for each lane, the cells that an access counts as which is kept
LARGEST = 1 << 34  # bytes of an array that is checked; a bare address stands for all memory


class Races(Checker):
    """``budget``: how many cells of memory to look at before the check gives up for this launch (None: all)."""

    uses_order, follows_errors, each_effect = True, True, False

    def __init__(self, findings: Findings, order: HappensBefore, thorough: bool) -> None:
        super().__init__(findings, order, thorough)
        self.budget = None if thorough else BUDGET
        self.shadows: dict[Any, Shadow] = {}  # of global buffers
        self.rows: dict[Any, WholeRows] = {}  # of those that have no shadow yet
        self.pending: dict[Wave, PendingAccesses] = {}  # of the waves' shared memory
        self.stretches: dict[int, tuple[bool, bool]] = {}  # by op: whether it updates, whether its bytes count
        self.plain_loads: dict[int, int] = {}  # the numbers of ops that load shared memory as threads do, by their ids
        self.arriving: list[tuple[Reach, int]] = []  # what has landed, and counts at mbarriers
        self.together: list[Effect] = []  # with what it landed

    def begin(self, launch: Launch) -> None:
        self.launch = launch
        facts = kernel_facts(launch.program)
        self.granules = facts.granules
        self.cells = CellCheck(self.findings, self.order, launch, facts)
        self.writable = buffers_of(launch, facts.written)  # no other can be raced for
        self.stopped = launch.geometry.blocks * self.order.layout.block >= MOST_UNITS
        launch.holds_back = bool(facts.polling_reads)  # who waits for too few reads too early in this schedule

    def wave(self, wave: Wave) -> None:
        if self.launch.smem:
            shadow = Shadow(wave.shared.bytes.size, self.granules[True])
            self.pending[wave] = PendingAccesses(shadow, wave.shared.bytes.size, self.order, self.order.waves[wave])

    # -- events --------------------------------------------------------------------------------------------------------

    def pointed(
        self, verb: str, buffer: Any, group: Group, pointer: Any, access: Any, mask: Array | None, values: Any
    ) -> None:
        """As ``access``, through a pointer whose offsets are computed only if they are needed."""
        if self.stopped:
            return
        if not isinstance(buffer, SharedBuffer):
            if verb == "store" and mask is None and self._fills_rows(buffer, group, pointer, (0,), access):
                return
            if verb != "load" or buffer in self.writable:
                off = Threads(group, pointer, access.nbytes, mask).offsets()
                self._global(verb, buffer, group, off, access, mask, _active(values, mask))
            return
        if verb == "load" and self._like_those_before(group, pointer, (0,), access, mask):
            return
        self._shared(verb, buffer, group, _reach(group, pointer, access, mask), access, values)

    def pointed_together(
        self,
        verb: str,
        buffer: Any,
        group: Group,
        pointer: Any,
        distances: Sequence[int],
        access: Any,
        values: Callable[[int], Any],
    ) -> None:
        if self.stopped:
            return
        if not isinstance(buffer, SharedBuffer):
            if verb == "load" and buffer not in self.writable:
                return
            if verb == "store" and self._fills_rows(buffer, group, pointer, distances, access):
                return
        elif verb == "load" and self._like_those_before(group, pointer, distances, access, None):
            return
        elif verb == "store" and self._apart(group, [pointer.plus(at) for at in distances], access):
            return
        super().pointed_together(verb, buffer, group, pointer, distances, access, values)

    def pointed_each(
        self,
        verb: str,
        buffer: Any,
        group: Group,
        pointers: Sequence[Any],
        access: Any,
        values: Callable[[int], Any],
    ) -> None:
        if isinstance(buffer, SharedBuffer) and not self.stopped:
            if verb == "load":
                # Mostly all are like those before, or like the first of them.
                if self._all_like_those_before(group, pointers, access):
                    return
                self.pointed(verb, buffer, group, pointers[0], access, None, None)
                if self.stopped or len(pointers) == 1 or self._all_like_those_before(group, pointers[1:], access):
                    return
                pointers = pointers[1:]
            elif self._apart(group, pointers, access):
                return
        super().pointed_each(verb, buffer, group, pointers, access, values)

    def _like_those_before(
        self, group: Group, pointer: Any, distances: Sequence[int], access: Any, mask: Array | None
    ) -> bool:
        """Whether threads load shared memory as they have just done; then the loads are kept."""
        number = self.plain_loads.get(id(group.lanes.op))
        if number is None or self.order.landing:
            return False
        loads = [(number, SimilarLoads(pointer, distances, access.nbytes, mask))]
        return self._keep_loads(group, span_at(pointer, distances, access.nbytes), loads)

    def _all_like_those_before(self, group: Group, pointers: Sequence[Any], access: Any) -> bool:
        """Whether loads by all lanes through several pointers are like those before; then they are kept."""
        number = self.plain_loads.get(id(group.lanes.op))
        if number is None or self.order.landing:
            return False
        by_root: dict[Any, tuple[Any, list[int]]] = {}
        for pointer in pointers:
            first, distances = by_root.setdefault(pointer.root, (pointer, []))
            distances.append(pointer.add - first.add)
        loads = [(number, SimilarLoads(*where, access.nbytes, None)) for where in by_root.values()]
        return self._keep_loads(group, span_of(pointers, access.nbytes), loads)

    def loaded(self, group: Group, pointer: Any, access: Any, copies: Sequence[tuple[Op, tuple[int, ...]]]) -> None:
        """As :meth:`pointed_together` of each op. Mostly all are like those before, or like the first of them."""
        if not isinstance(pointer.buf, SharedBuffer):
            super().loaded(group, pointer, access, copies)
        elif not self.stopped and not self._ops_like_those_before(group, pointer, access, copies):
            super().loaded(group, pointer, access, copies[:1])
            rest = copies[1:]
            if rest and not self.stopped and not self._ops_like_those_before(group, pointer, access, rest):
                super().loaded(group, pointer, access, rest)

    def _keep_loads(self, group: Group, span: tuple[int, int], loads: Sequence[tuple[int, SimilarLoads]]) -> bool:
        """Keep loads that are plainly like those before. A record that begins with them counts as an access."""
        pending = self.pending[group.wave]
        begun = pending.begun
        taken = pending.add_similar_loads(group, span, loads)
        if pending.begun > begun:
            self._within_budget(STEP + 2 * group.lanes_count, group)
        return taken

    def _ops_like_those_before(self, group: Group, pointer: Any, access: Any, copies: Sequence[Any]) -> bool:
        """Whether loads by all lanes that several ops make are like those before; then they are kept."""
        numbers = [self.plain_loads.get(id(op)) for op, _ in copies]
        if None in numbers or self.order.landing:
            return False
        loads = [
            (number, SimilarLoads(pointer, distances, access.nbytes, None))
            for number, (_, distances) in zip(numbers, copies, strict=True)
            if number is not None
        ]
        span = span_at(pointer, [at for _, distances in copies for at in distances], access.nbytes)
        return self._keep_loads(group, span, loads)

    def access(
        self, verb: str, buffer: Any, group: Group, off: Array, access: Any, mask: Array | None, values: Any
    ) -> None:
        if self.stopped or not off.size:
            return
        if isinstance(buffer, SharedBuffer):
            self._shared(verb, buffer, group, _reach(group, None, access, mask, off), access, values)
        elif verb != "load" or buffer in self.writable:
            self._global(verb, buffer, group, off, access, mask, values)

    def _global(
        self, verb: str, buffer: Any, group: Group, off: Array, access: Any, mask: Array | None, values: Any
    ) -> None:
        """An access to global memory: flags are noted for acquire and release, and the cells are compared."""
        number = self._site(group.lanes.op, verb, False)
        if number is None:
            return
        site = self.order.sites[number]
        if site.scope != THREAD:
            lanes = lanes_of(group, mask)
            clocks = self.order.waves[group.wave]
            holds = None if self.order.flags.versions is None else _held(buffer, access)
            self.order.flags.access(clocks, group, verb, site, id(buffer), off, lanes // WARP, lanes % WARP, holds)
        shadow = self._shadow(buffer)
        if shadow is None or access.nbytes & ((1 << shadow.shift) - 1):
            return
        count = access.nbytes >> shadow.shift
        acting = Accessors(self.order, group, site.agent, mask, each=count)
        written = None if values is None else (buffer, access, values, off)
        self._check(verb, shadow, run_of(off >> shadow.shift, count), acting, number, group, written)

    def _fills_rows(self, buffer: Any, group: Group, pointer: Any, distances: Sequence[int], access: Any) -> bool:
        """Keep stores by all lanes, ``distances`` from a pointer to global memory: neighbours of which each warp's fill
        a row that nothing has touched before. True also where the check is over. Invariant: see :class:`.WholeRows`;
        any other access writes the rows to the cells (:meth:`_shadow`), before it is compared with them."""
        if buffer in self.shadows or pointer.root is None or self.order.landing:
            return False
        number = self.order.sites.number(group.lanes.op, "store", False)
        site, granule = self.order.sites[number], self.granules[False]
        if site.scope != THREAD or site.agent or access.nbytes % granule or has_pages(buffer.bytes.size, granule):
            return False
        nbytes = access.nbytes * len(distances)
        found = pointer.root.rows(nbytes)
        if found is None or list(distances) != list(range(distances[0], distances[0] + nbytes, access.nbytes)):
            return False
        first = found.first + pointer.add + distances[0]
        rows = self.rows.get(buffer)
        if rows is None:
            rows = self.rows[buffer] = WholeRows(found.size, first % found.size, buffer.bytes.size)
        acting = Accessors(self.order, group, "")
        if (rows.size, rows.phase) != (found.size, first % found.size):
            return False
        if not rows.add(found.numbers, first, acting.entries_by_warp(number)):
            return False
        self._within_budget(group.lanes_count * (nbytes // granule), group)
        return True

    def _shared(self, verb: str, buffer: SharedBuffer, group: Group, reach: Threads, access: Any, values: Any) -> None:
        """An access to shared memory. Bytes that a copy brings to an mbarrier are kept until they count there
        (:meth:`mbarrier`); all else is compared with what came before."""
        op, mask = group.lanes.op, reach.mask
        number = self._site(op, verb, True)
        if number is None:
            return
        site, pending = self.order.sites[number], self.pending[group.wave]
        if site.scope != THREAD:
            clocks, lanes = self.order.waves[group.wave], lanes_of(group, mask)
            where = reach.flat() + (clocks.first // self.order.layout.warps << WAVE_SHIFT)
            holds = None if self.order.flags.versions is None else _held(buffer, access)
            self.order.flags.access(clocks, group, verb, site, 0, where, lanes // WARP, lanes % WARP, holds)
        elif verb == "load" and not site.agent:
            self.plain_loads[id(op)] = number
        if access.nbytes & ((1 << pending.shadow.shift) - 1):
            return
        if site.agent and self.order.landing and self._asynchronous(op)[1]:
            self.arriving.append((reach, number))
            return
        acting = Accessors(self.order, group, site.agent, mask, each=access.nbytes >> pending.shadow.shift)
        written = None if values is None else (buffer, access, values)
        self._check_shared(verb, pending, reach, acting, number, group, written)

    def _apart(self, group: Group, pointers: Sequence[Any], access: Any) -> bool:
        """Keep stores to shared memory by all lanes, through each of several pointers, as one. True also where the
        check is over. Invariant: what they reach together is plainly apart from what came before, and no byte of it is
        reached twice; so each of the stores is apart, too. They count as many for the budget."""
        op, pending = group.lanes.op, self.pending[group.wave]
        number, shift = self._site(op, "store", True), pending.shadow.shift
        if len(pointers) == 1 or number is None or pending.shadow.strong or access.nbytes & ((1 << shift) - 1):
            return False
        site = self.order.sites[number]
        if site.scope != THREAD or (site.agent and self.order.landing and self._asynchronous(op)[1]):
            return False
        reach = Several(group, pointers, access)
        if reach.high >> RANK_SHIFT:  # into other blocks of the cluster
            return False
        acting = Accessors(self.order, group, site.agent, each=len(pointers) * (access.nbytes >> shift))
        if not pending.cannot_race(reach, acting, False) or not reach.distinct():
            return False
        if self._within_budget(len(pointers) * (STEP + 2 * group.lanes_count), group):
            pending.add(reach, acting, False, number)
        return True

    def pieces(self, group: Group, reads: PieceReads, rows: Array) -> None:
        pending = self.pending.get(group.wave)
        if self.stopped or pending is None:
            return
        number = self.order.sites.number(group.lanes.op, "load", True)
        reach = Pieces(reads)
        each, lanes = reads.offsets.shape[1] * (16 >> pending.shadow.shift), rows * WARP
        acting = Accessors(self.order, group, self.order.sites[number].agent, lanes=lanes, each=each)
        similar = acting.landed and acting.agent is not None and not pending.shadow.strong
        if not similar or not pending.add_similar_reads(reach, acting, number):
            self._check_shared("load", pending, reach, acting, number, group, None)
        else:
            self._within_budget(STEP + 2 * group.lanes_count, group)

    def stretch(
        self, group: Group, memory: str, start: int, shape: tuple[int, ...], strides: tuple[int, ...], writes: bool
    ) -> None:
        """A bulk or tensor copy reads or writes a box of memory, on behalf of the lane that issued it."""
        if self.stopped:
            return
        op, shared, buffer = group.lanes.op, memory == "shared", None
        if not shared:
            for buffer in group.wave.launch.space.exposed():
                if buffer.base + buffer.low <= start < buffer.base + buffer.high:
                    break
            if not writes and buffer not in self.writable:
                return
        updates, counted = self._asynchronous(op)
        verb = "load" if not writes else "atomic" if updates else "store"
        number = self.order.sites.number(op, verb, shared)
        reach = Box(start, shape[0], group.wave.shared.stride) if shared else None
        if reach is not None and verb == "store" and counted:
            self.arriving.append((reach, number))
            return
        agent = self.order.sites[number].agent
        lane = np.array([self.order.landing[-1].issuer if self.order.landing else 0])
        if reach is not None:
            pending = self.pending[group.wave]
            acting = Accessors(self.order, group, agent, lanes=lane, each=reach.count(pending.shadow.shift))
            self._check_shared(verb, pending, reach, acting, number, group, None)
            return
        shadow = self._shadow(buffer)
        if shadow is not None and buffer is not None:
            step = 1 << shadow.shift
            # The cells of a box, mode by mode; the last one is contiguous.
            at = np.full(1, start - buffer.base)
            for extent, stride in zip((*shape[:-1], shape[-1] // step), (*strides[:-1], step), strict=True):
                at = (at[:, None] + np.arange(extent) * stride).reshape(-1)
            acting = Accessors(self.order, group, agent, lanes=lane, each=at.size)
            self._check(verb, shadow, at >> shadow.shift, acting, number, group, None)

    def mbarrier(self, group: Group, what: str, places: Array, lanes: Array, done: Array | None) -> None:
        """Bytes have come, and count at an mbarrier: from now on they are what its phases release."""
        if what != "complete" or not self.order.landing or self.stopped:
            return
        brought = np.array([self.order.brought[int(place)] for place in places])
        landing = self.order.landing[-1]
        issuers = lanes if lanes.size else np.array([landing.issuer])
        stages = self.order.stages
        for reach, number, which in arrived(self.arriving, places.size, bool(landing.together and lanes.size)):
            if self.stopped:
                break
            pending = self.pending[group.wave]
            if stages is not None and isinstance(reach, (Box, Boxes)):
                for start, k in zip(reach.starts.tolist(), which.tolist(), strict=True):
                    stages.bytes_arrive(group.wave, start, reach.size, int(places[k]), landing, int(issuers[k]))
            units, clock = brought[which].T
            each = reach.count(pending.shadow.shift) // which.size
            acting = Accessors.given(self.order, group, issuers[which], units * WARP, clock, each)
            self._check_shared("store", pending, reach, acting, number, group, None)
        self.arriving.clear()

    def land(self, effect: Effect, begins: bool) -> None:
        # What effects that land together bring counts when all have landed.
        if begins and effect.together is not self.together:
            self.arriving.clear()
            self.together = effect.together
        elif not begins and not effect.together:
            self.arriving.clear()

    # -- what they come to ---------------------------------------------------------------------------------------------

    def _site(self, op: Op, verb: str, shared: bool) -> int | None:
        """The number of the site; None for a tensor map, which another proxy reads."""
        number = self.order.sites.number(op, verb, shared)
        agent = self.order.sites[number].agent
        return None if agent and not self.order.landing and agent not in self.order.layout.agents else number

    def _asynchronous(self, op: Op) -> tuple[bool, bool]:
        """Whether an asynchronous copy updates what it writes, and whether what it brings counts at an mbarrier."""
        known = self.stretches.get(id(op))
        if known is None:
            accesses = op.attrs["atom"].accesses
            updates = any(a.role == "destination" and a.does == "update" for a in accesses)
            counts = any(a.role == "mbarrier" and a.agent for a in accesses)
            known = self.stretches[id(op)] = updates, counts
        return known

    def _shadow(self, buffer: Any) -> Shadow | None:
        found = self.shadows.get(buffer)
        if found is None and buffer.bytes.size <= LARGEST:
            found = self.shadows[buffer] = shadow_of(buffer.bytes.size, self.granules[False])
            self.cells.owners[found] = buffer
            if (rows := self.rows.pop(buffer, None)) is not None:
                rows.move_to_cells(found)
        return found

    def _check_shared(
        self,
        verb: str,
        pending: PendingAccesses,
        reach: Reach,
        acting: Accessors,
        number: int,
        group: Group,
        values: Any,
    ) -> None:
        """An access to shared memory: keep it, if it is plainly apart, else look at its cells."""
        if not self._within_budget(STEP + 2 * group.lanes_count, group):
            return
        load, shadow = verb == "load", pending.shadow
        # Records know of no scopes: strong accesses, and all cells where there are any, are compared cell by cell.
        weak = not shadow.strong and self.order.sites[number].scope == THREAD
        # A store that may reach a byte twice can race with itself.
        if weak and pending.cannot_race(reach, acting, load) and (load or reach.distinct()):
            pending.add(reach, acting, load, number)
            return
        pending.move_to_cells(reach)
        written = None
        if values is not None:
            assert isinstance(reach, Threads)
            buffer, access, data = values
            data = _active(data, reach.mask) if reach.off is None else data
            written = buffer, access, data, reach.flat()
        self._check(verb, shadow, reach.cells(shadow.shift), acting, number, group, written)
        pending.note_checked(reach, acting, load)

    def _check(
        self, verb: str, shadow: Shadow, cells: Array, acting: Accessors, number: int, group: Group, values: Any
    ) -> None:
        if not self._within_budget(cells.size, group):
            return
        try:
            self.cells.check(verb, shadow, cells, acting, number, values)
        except MemoryError:
            self._give_up(group)
            what = "the check for data races needs more memory than there is: from here on it looks at nothing"
            fix = "check the kernel on smaller arrays"
            self.findings.add(Finding("races-memory", what, [Party("access", group.lanes.op)], fix=fix, level="note"))

    def _within_budget(self, cells: int, group: Group) -> bool:
        """Whether there is budget for this number of cells; else the check is over for this launch."""
        if self.budget is None and self.order.layout.tick < MOST_TICKS:
            return True
        self.budget = (self.budget or 0) - cells
        if self.budget >= 0:
            return True
        self._give_up(group)
        return False

    def _give_up(self, group: Group) -> None:
        """Look at nothing more in this launch."""
        self.stopped = True
        self.shadows.clear()
        self.rows.clear()
        self.pending.clear()
        self.cells.owners.clear()
        assert group.events is not None
        others = [o for o in group.events.observers if isinstance(o, Checker) and o is not self and o.asks_order()]
        group.events.dismiss([self] if others else [self, self.order])


def _held(buffer: Any, access: Any) -> Callable[[int], Any]:
    """The name of the place at an offset (in shared memory: below the number of its wave)."""

    def holds(at: int) -> Any:
        start = at & ((1 << WAVE_SHIFT) - 1)
        return buffer.bytes[start : start + access.elem.bytes].view(access.dtype)[0]

    return holds


def _active(values: Any, mask: Array | None) -> Any:
    """The values of the active lanes, of those of all lanes."""
    return values if values is None or mask is None else values[mask]


def _reach(group: Group, pointer: Any, access: Any, mask: Array | None, off: Array | None = None) -> Threads:
    aligned = access.width in (WIDEST, access.nbytes)
    return Threads(group, pointer, access.nbytes, mask, off, aligned)
