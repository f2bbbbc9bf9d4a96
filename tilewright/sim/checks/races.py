"""Data races: accesses to one place, one of them a write, that nothing orders (PTX ISA, "Memory Consistency Model").

Shared memory (of the own block or another of the cluster) and global memory; threads, and the asynchronous agents that
act for them. Accesses that are both strong (atomics, ``ld.relaxed``...), with scopes that cover both threads, do not
race. Nor do stores of the same value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.ir.core import Op
from tilewright.sim.checks.acting import Acting
from tilewright.sim.checks.actors import Actor, actor, lanes_of
from tilewright.sim.checks.buffers import buffers_of
from tilewright.sim.checks.checker import Checker
from tilewright.sim.checks.explain import explain
from tilewright.sim.checks.findings import Finding, Findings, Party
from tilewright.sim.checks.flags import GPU
from tilewright.sim.checks.order import HappensBefore
from tilewright.sim.checks.places import flat_offsets, global_memory, shared_memory
from tilewright.sim.checks.shadow import (
    CLOCK_SHIFT,
    GROUPS,
    KIND_SHIFT,
    MOST_TICKS,
    MOST_UNITS,
    SITE,
    SITE_SHIFT,
    Cells,
    Read,
    Shadow,
    clock_of,
    site_of,
    who_of,
)  # fmt: skip
from tilewright.sim.checks.sites import THREAD, facts
from tilewright.sim.geometry import WARP
from tilewright.sim.shared import SharedBuffer

if TYPE_CHECKING:
    from tilewright.sim.agents import Effect
    from tilewright.sim.engine import Launch
    from tilewright.sim.group import Group
    from tilewright.sim.wave import Wave

Array = np.ndarray[Any, Any]
BUDGET = 1 << 18  # cells of memory that the default checks look at in one launch: some 30 ms
OFTEN = 16  # reads in a list before those are dropped that a barrier has made old
PAIR = np.dtype([("thread", np.int64), ("entry", np.int64)])
LARGEST = 1 << 34  # bytes of an array that is checked; a bare address stands for all memory


class Races(Checker):
    """``budget``: how many cells of memory to look at before the check gives up for this launch (None: all)."""

    name, cost, uses_order = "races", "default", True

    def __init__(self, findings: Findings, order: HappensBefore, thorough: bool) -> None:
        super().__init__(findings, order, thorough)
        self.budget = None if thorough else BUDGET
        self.shadows: dict[Any, Shadow] = {}
        self.owners: dict[Any, Any] = {}  # what a shadow is of: a wave or a buffer
        self.arriving: list[tuple[Any, Array, int, Group]] = []

    def begin(self, launch: Launch) -> None:
        self.launch = launch
        known = facts(launch.program)
        self.granules, self.allocations = known.granules, known.allocations
        self.writable = buffers_of(launch, known.written)  # no other can be raced for
        self.off = launch.geometry.blocks * self.order.layout.block >= MOST_UNITS

    def wave(self, wave: Wave) -> None:
        if self.launch.smem:
            self.shadows[wave] = Shadow(wave.shared.bytes.size, self.granules[True])

    # -- events --------------------------------------------------------------------------------------------------------

    def access(
        self, verb: str, buffer: Any, group: Group, off: Array, access: Any, mask: Array | None, values: Any
    ) -> None:
        shared = isinstance(buffer, SharedBuffer)
        if self.off or (not shared and verb == "load" and buffer not in self.writable):
            return
        op = group.lanes.op
        number = self.order.sites.number(op, verb, shared)
        site = self.order.sites[number]
        if site.agent and not self.order.landing and site.agent not in self.order.layout.agents:
            return  # a tensor map, which another proxy reads
        lanes = lanes_of(group, mask)
        if not lanes.size:
            return
        at = flat_offsets(buffer, group, off, mask) if shared else off
        if site.scope != THREAD:
            clocks = self.order.waves[group.wave]
            memory = 0 if shared else id(buffer)
            where = at + (clocks.first // self.order.layout.warps << 40) if shared else at
            self.order.flags.access(clocks, group, verb, site, memory, where, lanes // WARP, lanes % WARP)
        shadow = self._shadow(buffer, group, shared)
        if shadow is None or access.nbytes & ((1 << shadow.shift) - 1):
            return
        count = access.nbytes >> shadow.shift
        cells = at >> shadow.shift
        if count > 1:
            cells = (cells[:, None] + np.arange(count)).reshape(-1)
        if site.agent and self.order.landing and _counted(op):
            self.arriving.append((buffer if not shared else group.wave, cells, number, group))
            return
        written = None if values is None else (buffer, access, values, at)
        self._check(verb, shadow, cells, Acting(self.order, group, site.agent, lanes, count), number, group, written)

    def pieces(self, group: Group, start: Array, rows: Array) -> None:
        if self.off or group.wave not in self.shadows:
            return
        number = self.order.sites.number(group.lanes.op, "load", True)
        shadow, count = self.shadows[group.wave], 16 >> self.shadows[group.wave].shift
        cells = start.reshape(start.shape[0], -1) >> shadow.shift
        each = cells.shape[1] * count
        if count > 1:
            cells = cells[..., None] + np.arange(count)
        acting = Acting(self.order, group, self.order.sites[number].agent, rows * WARP, each)
        self._check("load", shadow, cells.reshape(-1), acting, number, group, None)

    def stretch(self, group: Group, memory: str, start: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
        op, shared = group.lanes.op, memory == "shared"
        if self.off:
            return
        accesses = [a for a in op.attrs["atom"].accesses if a.role in ("source", "destination")]
        mine = [a for a in accesses if any(s.value in ("smem", "dsmem") for s in a.memories) == shared]
        verb = "load" if not mine or mine[0].does == "read" else "atomic" if mine[0].does == "update" else "store"
        key: Any = group.wave
        if not shared:
            spaces = group.wave.launch.space.exposed()
            key = next(b for b in spaces if b.base + b.low <= start < b.base + b.high)
            start -= key.base
            if verb == "load" and key not in self.writable:
                return
        shadow = self._shadow(key if not shared else group.wave.shared, group, shared)
        if shadow is None:
            return
        number = self.order.sites.number(op, verb, shared)
        cells = np.zeros(1, np.int64)
        for extent, stride in zip(shape[:-1], strides[:-1], strict=True):
            cells = (cells[:, None] + np.arange(extent) * stride).reshape(-1)
        step = 1 << shadow.shift
        cells = (cells[:, None] + start + np.arange(0, shape[-1], step)).reshape(-1) >> shadow.shift
        if verb == "store" and shared and _counted(op):
            self.arriving.append((key, cells, number, group))
            return
        lane = _issuer(self.order.landing[-1]) if self.order.landing else 0
        acting = Acting(self.order, group, self.order.sites[number].agent, np.array([lane]), cells.size)
        self._check(verb, shadow, cells, acting, number, group, None)

    def mbarrier(self, group: Group, what: str, places: Array, lanes: Array, done: Array | None) -> None:
        """Bytes have come, and count at an mbarrier: from now on they are what its phases release."""
        if what != "complete" or not self.order.landing:
            return
        clocks = self.order.waves[group.wave]
        effect = self.order.landing[-1]
        brought = np.array([self.order.brought[int(place)] for place in places])
        issuers = lanes if lanes.size else np.array([_issuer(effect)])
        for key, cells, number, _ in self.arriving:
            each = cells.size // places.size
            rows, (units, clock) = np.repeat(issuers // WARP, each), np.repeat(brought, each, axis=0).T
            thread = clocks.unit[group.warps[rows]] * WARP + np.repeat(issuers % WARP, each)
            acting = Acting.given(self.order, group, rows, thread, units * WARP, clock)
            self._check("store", self.shadows[key], cells, acting, number, group, None)
        self.arriving.clear()

    def land(self, effect: Effect, begins: bool) -> None:
        if not begins:
            self.arriving.clear()

    def _shadow(self, buffer: Any, group: Group, shared: bool) -> Shadow | None:
        key = group.wave if shared else buffer
        found = self.shadows.get(key)
        if found is None and buffer.bytes.size <= LARGEST:
            found = self.shadows[key] = Shadow(buffer.bytes.size, self.granules[shared])
        return found

    # -- the check -----------------------------------------------------------------------------------------------------

    def _check(
        self, verb: str, shadow: Shadow, cells: Array, acting: Acting, number: int, group: Group, values: Any
    ) -> None:
        if self.budget is not None or self.order.layout.tick >= MOST_TICKS:
            self.budget = (self.budget or 0) - cells.size
            if self.budget < 0:
                self.off = True
                self.shadows.clear()
                assert group.events is not None
                others = [o for o in group.events.observers if o is not self and getattr(o, "uses_order", False)]
                group.events.dismiss([self] if others else [self, self.order])
                return
        where, shared = Cells(cells), key_is_shared(self.shadows, shadow, group)
        floors = acting.floors if shared else (0, 0)
        before = where.get(shadow.written)
        if not _older(before, *floors):
            self._compare(verb, before, cells, acting, number, group, values, shadow)
        strong = self.order.sites[number].scope != THREAD
        # A strong access may take the place of a weak one that it is ordered with and others are not, and the other way
        # round: those are kept, too.
        for memory in shadow.weak if strong else shadow.strong.values():
            kept = where.get(memory)
            if not _older(kept, *floors):
                self._compare(verb, kept, cells, acting, number, group, None, shadow)
        if strong and verb != "load" and before.any():
            weak = (before != 0) & (self.order.sites.scopes[site_of(before)] == THREAD)
            if weak.any():
                shadow.overtaken(cells[weak], before[weak])
        entries = acting.entries(number)
        if verb == "load":
            if len(shadow.reads) >= OFTEN and shared:
                shadow.forget(int(acting.clocks.floor.min()))
            shadow.read(Read(where, entries, acting.newest, floors[0]))
            return
        if shadow.matters(floors[0]):
            for reads in shadow.sort():
                before = where.get(reads)
                if not _older(before, *floors):
                    self._compare(verb, before, cells, acting, number, group, None, shadow)
                if not strong:
                    where.set(reads, 0)
        where.set(shadow.written, entries)
        if not where.once():
            lost = np.flatnonzero(where.get(shadow.written) != entries)
            if lost.size and verb == "atomic" and self.order.sites[number].scope >= GPU:
                self._excuse(lost, entries, shadow, cells)
            elif lost.size:
                self._together(lost, entries, shadow, cells, acting, number, group, values)

    def _compare(
        self, verb: str, before: Array, cells: Array, acting: Acting, number: int, group: Group, values: Any,
        shadow: Shadow,
    ) -> None:  # fmt: skip
        """Report the entries ``before`` that did not happen before."""
        clocks, snapshot, rows = acting.clocks, acting.snapshot, acting.rows
        warps = group.warps[rows]
        identity = who_of(before)
        column = (identity >> 5) - clocks.base[warps]
        inside: Any = None
        if int(column.view(np.uint64).max()) >= clocks.clocks.shape[1]:  # another cluster's, or nobody's
            inside = column.view(np.uint64) < clocks.clocks.shape[1]
            column = np.where(inside, column, 0)
        clock = clock_of(before)
        known = clocks.clocks[warps, column] if snapshot is None else snapshot.rows[rows, column]
        fine = known >= clock
        if inside is not None:
            fine &= inside
            fine |= before == 0
        if fine.all():
            return
        if snapshot is None:
            fine |= identity == acting.thread
        else:
            fine |= (identity == acting.thread) & (clock <= snapshot.now[rows])
            fine |= (identity == acting.identity) & (clock == acting.clock) & (site_of(before) == number)
        if fine.all():
            return
        bad = self._slowly(np.flatnonzero(~fine), before, acting, group)
        bad = self._both_strong(bad, before, cells, acting, number, shadow)
        if bad.size and verb == "store" and values is not None:
            bad = _other_values(bad, before, cells, shadow, values, self.order)
        if bad.size:
            self._found(verb, bad, before, cells, acting, number, group, shadow)

    def _slowly(self, bad: Array, before: Array, acting: Acting, group: Group) -> Array:
        """Those of ``bad`` that what single lanes, or warps of other clusters, are known for does not explain."""
        clocks, snapshot, layout = acting.clocks, acting.snapshot, self.order.layout
        loose = clocks.loose if snapshot is None else snapshot.loose
        if loose and layout.geometry.blocks > layout.geometry.cluster_size:
            bad = self._far(bad, before, acting, group)
        if not bad.size or (not loose and not layout.agents):
            return bad
        entries = before[bad] & ~(((1 << SITE) - 1) << SITE_SHIFT)
        pairs = np.stack([acting.thread[bad], entries], 1).view(PAIR).reshape(-1)
        _, first, which = np.unique(pairs, return_index=True, return_inverse=True)
        answers = np.array([self._ordered(int(k), before, acting, group) for k in bad[first]], bool)
        return bad[~answers[which.reshape(-1)]]

    def _far(self, bad: Array, before: Array, acting: Acting, group: Group) -> Array:
        """Those of ``bad`` that their warps do not know from other clusters."""
        warps = group.warps[acting.rows[bad]]
        clusters, columns = np.divmod(who_of(before[bad]) // WARP, self.order.layout.cluster)
        left = np.ones(bad.size, bool)
        pairs = np.unique((warps.astype(np.int64) << 32) + clusters)
        for warp, cluster in zip(*np.divmod(pairs, 1 << 32), strict=True):
            loose = acting.clocks.loose.get(int(warp))
            know = loose.know if loose is not None else None
            if acting.snapshot is not None:
                know = acting.snapshot.loose.get(int(warp))
            row = know.rows.get(int(cluster)) if know is not None else None
            if row is not None:
                mine = (warps == warp) & (clusters == cluster)
                left[mine] = row[columns[mine]] < clock_of(before[bad[mine]])
        return bad[left]

    def _ordered(self, k: int, before: Array, acting: Acting, group: Group) -> bool:
        clocks, layout = acting.clocks, self.order.layout
        warp, lane = int(group.warps[acting.rows[k]]), int(acting.thread[k]) % WARP
        identity, clock = int(who_of(before[k])), int(clock_of(before[k]))
        unit = identity // WARP
        cluster, column = divmod(unit, layout.cluster)
        if acting.snapshot is not None:
            know = acting.snapshot.loose.get(warp)
            if know is not None and know.knows(cluster, column, identity, clock):
                return True
        else:
            loose = clocks.loose.get(warp)
            if loose is not None:
                extra = loose.extras.get(lane)
                if loose.know.knows(cluster, column, identity, clock) or (
                    extra is not None and extra.knows(cluster, column, identity, clock)
                ):
                    return True
        for a in range(len(layout.agents)):
            mine = layout.agent_unit(int(clocks.unit[warp]), warp, a)
            if unit == mine and (identity % WARP == lane or layout.together[a]):
                if acting.snapshot is not None:
                    return int(acting.snapshot.waited[acting.rows[k], a, lane]) >= clock
                return int(clocks.waited[warp, a, lane]) >= clock
        return False

    def _both_strong(
        self, bad: Array, before: Array, cells: Array, acting: Acting, number: int, shadow: Shadow
    ) -> Array:
        """Those of ``bad`` that are not both strong. The others do not race, but what comes after may with both."""
        mine = self.order.sites[number].scope
        if mine == THREAD:
            return bad
        layout, keep = self.order.layout, []
        for k in map(int, bad):
            other = self.order.sites[int(site_of(before[k]))].scope
            blocks = [int(x) // WARP // layout.block for x in (who_of(before[k]), acting.thread[k])]
            if other == THREAD or min(mine, other) < self.order.flags.covers(*blocks):
                keep.append(k)
            else:
                shadow.excuse(cells[k : k + 1], before[k : k + 1], layout.block)
        return np.array(keep, np.int64)

    def _excuse(self, lost: Array, entries: Array, shadow: Shadow, cells: Array) -> None:
        """Strong accesses ``lost`` of one instruction share cells with later ones: those of other warps are remembered,
        since what comes after may race with each."""
        others = lost[who_of(entries[lost]) // WARP != who_of(shadow.written[cells[lost]]) // WARP][::-1]
        if others.size:
            shadow.excuse(cells[others], entries[others], self.order.layout.block)

    def _together(
        self, lost: Array, entries: Array, shadow: Shadow, cells: Array, acting: Acting, number: int, group: Group,
        values: Any,
    ) -> None:  # fmt: skip
        """Lanes that store to one cell with one instruction: fine if they store the same."""
        winner = {int(c): k for k, c in enumerate(cells)}
        if self.order.sites[number].scope != THREAD:
            before, every = shadow.written[cells], lost
            lost = self._both_strong(lost, before, cells, acting, number, shadow)
            self._excuse(np.setdiff1d(every, lost), entries, shadow, cells)
        if values is not None:
            _, access, stored, at = values
            if np.ndim(stored) != (1 if access.scalar else 2):
                return
            per = cells.size // at.size
            data = np.ascontiguousarray(access.encode(stored)).view(np.uint8).reshape(at.size, -1)
            lost = np.array([k for k in map(int, lost)
                             if (data[k // per] != data[winner[int(cells[k])] // per]).any()], np.int64)  # fmt: skip
        if lost.size:
            before = np.array([shadow.written[cells[k]] for k in lost])
            sub = Acting.given(self.order, group, *[x[lost] for x in (acting.rows, acting.thread, acting.identity,
                               acting.clock)])  # fmt: skip
            self._found("store", np.arange(lost.size), before, cells[lost], sub, number, group, shadow)

    # -- the finding ---------------------------------------------------------------------------------------------------

    def _found(
        self, verb: str, bad: Array, before: Array, cells: Array, acting: Acting, number: int, group: Group,
        shadow: Shadow,
    ) -> None:  # fmt: skip
        then = site_of(before[bad])
        for other in np.unique(then):
            mine = bad[then == other]
            key = (
                "data-race",
                *sorted(str(self.order.sites[n].place) for n in (number, int(other))),
            )
            if self.findings.known(key, mine.size):
                continue
            k, sites = int(mine[0]), self.order.sites
            now_site, then_site = sites[number], sites[int(other)]
            parties = [
                Party(_does(verb), now_site.op, self._who(int(acting.identity[k]))),
                Party(_did(then_site.verb), then_site.op, self._who(int(who_of(before[k])))),
            ]
            shared = key_is_shared(self.shadows, shadow, group)
            offset = int(cells[k]) << shadow.shift
            if shared:
                offset %= group.wave.shared.stride
                memory = shared_memory(offset, 1 << shadow.shift, self.allocations)
            else:
                buffer = next(b for b, s in self.shadows.items() if s is shadow)
                memory = global_memory(now_site.op, buffer, offset, 1 << shadow.shift)
            threads = [int(acting.thread[k]), int(who_of(before[k]))]
            why, fix = explain(self.order.layout, now_site, then_site, threads, shared)
            what = f"data race in {'shared' if shared else 'global'} memory: nothing orders these two accesses"
            self.findings.add(Finding("data-race", what, parties, memory, why, fix, int(mine.size)), key)

    def _who(self, identity: int) -> Actor:
        unit, lane = divmod(identity, WARP)
        block, warp, agent = self.order.layout.describe(unit)
        for clocks_wave, clocks in self.order.waves.items():
            if clocks.first <= block < clocks.first + len(clocks_wave.coords):
                coords = clocks_wave.coords[block - clocks.first]
                if agent == "tma":
                    return Actor(tuple(int(v) for v in coords), agent="TMA")
                role = clocks.role((block - clocks.first) * self.order.layout.warps + warp)
                return actor(self.launch, coords, warp, lane, agent, role)
        return Actor((block,))


def _older(entries: Array, tick: int, copies: int) -> bool:
    """Whether all entries are plainly known to who makes the access: nobody's, or older than the last barrier of all
    threads, or of copies by cp.async that are over."""
    newest = int(entries.max()) if entries.size else 0
    if newest < max(1, tick << CLOCK_SHIFT):
        return True
    if not copies or newest >= (GROUPS << KIND_SHIFT) + (copies + 1 << CLOCK_SHIFT):
        return False
    return int(entries.min()) >= GROUPS << KIND_SHIFT


def key_is_shared(shadows: dict[Any, Shadow], shadow: Shadow, group: Group) -> bool:
    return shadows.get(group.wave) is shadow


def _issuer(effect: Effect) -> int:
    """The lane that issued an effect: the one that says so, or the first of those that were active."""
    if effect.lane is not None:
        return effect.lane
    return 0 if effect.mask is None else int(np.argmax(effect.mask))


def _counted(op: Op) -> bool:
    """Whether what the op brings counts at an mbarrier."""
    return any(a.role == "mbarrier" and a.agent for a in op.attrs["atom"].accesses)


def _other_values(bad: Array, before: Array, cells: Array, shadow: Shadow, values: Any, order: HappensBefore) -> Array:
    """Those of ``bad`` where the cell holds something else than what is stored now."""
    buffer, access, stored, at = values
    per_lane = np.ndim(stored) == (1 if access.scalar else 2)
    count = cells.size // at.size
    data = np.ascontiguousarray(access.encode(np.asarray(stored) if per_lane else np.asarray(stored)[None]))
    data = data.view(np.uint8).reshape(data.shape[0], -1)
    step, keep = 1 << shadow.shift, []
    for k in map(int, bad):
        if order.sites[int(site_of(before[k]))].verb != "store":
            keep.append(k)
            continue
        lane, part = divmod(k, count)
        new = data[lane if per_lane else 0, part * step : (part + 1) * step]
        start = int(cells[k]) * step
        if (buffer.bytes[start : start + step] != new).any():
            keep.append(k)
    return np.array(keep, np.int64)


def _does(verb: str) -> str:
    return {"load": "read", "store": "write", "atomic": "atomic"}[verb]


def _did(verb: str) -> str:
    return {"load": "after a read", "store": "after a write", "atomic": "after an atomic"}[verb]
