"""Fences between proxies: what threads write to shared memory, and TMA or wgmma then read or overwrite.

Threads act through the generic proxy, TMA and wgmma through the async proxy, which need not see what the former wrote
until a ``fence.proxy.async`` (PTX ISA, "Proxies"). The writer fences after its write, and something orders the fence
before the copy is issued; of a wgmma, before each of the four warps that issue it. A fence after the barrier, by
writers or by the issuing thread, is too late: CUTLASS and the CUDA programming guide ask for the writer's, before it.
A write that nothing orders before the issue is a data race: it may come later as well, and a fence would not help. It
is reported as one, with the lines of the check for data races, whose budget may be used up.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tilewright.atoms.cp_async import AGENT as CP_ASYNC
from tilewright.atoms.tensor_memory import COPY, MMA
from tilewright.errors import SimulationError
from tilewright.ir.core import Op
from tilewright.ir.lanes import Array
from tilewright.ir.target import WARP, WARPGROUP_WARPS
from tilewright.sim.checks.actors import actor_in_wave, lanes_of
from tilewright.sim.checks.checker import SharedChecker
from tilewright.sim.checks.explain import explain
from tilewright.sim.checks.findings import Finding, Party, key_of
from tilewright.sim.checks.order import acting_warps
from tilewright.sim.checks.places import flat_offsets, shared_memory
from tilewright.sim.checks.race_findings import DID, DOES
from tilewright.sim.checks.sites import kernel_facts
from tilewright.sim.shared import PieceReads, SharedBuffer

if TYPE_CHECKING:
    from tilewright.sim.agents import Effect
    from tilewright.sim.engine import Launch
    from tilewright.sim.group import Group
    from tilewright.sim.wave import Wave

RULE = "proxy-fence"
AGENTS = {"tma": "TMA"}  # as data races name them
NOTHING_ORDERS = "data race in shared memory: nothing orders these two accesses"
OP, FENCES, CLOCK = 10, 16, 20  # bits of a write: the op, how often its warp had fenced, its clock; above, the lane + 1

COPIED = (
    "cp.async writes by the threads' proxy (PTX ISA), and no fence.proxy.async is between the wait for the copies and "
    "this: the async proxy may see what was there before (CUTLASS's main loops by cp.async leave this fence out; the "
    "word -proxies in TILEWRIGHT_SIM_CHECK leaves this check out)",
    "cute.arch.fence_view_async_shared() after the wait for the copies: by the threads that copied, before the barrier "
    "that the issuing warp waits at, or by the issuing warps themselves where an mbarrier tells them of the copies",
)
"""Why and the repair, where cp.async wrote."""


class GroupFence(NamedTuple):
    """Fences that warps of a group executed at once: ``lanes [warps, 32]`` which (None: all), and what each warp knew
    ``[warps, columns]``."""

    lanes: Array | None
    known: Array


class Fence(NamedTuple):
    """One fence of a warp: its clock, whether all lanes executed it, and its row among those of other warps."""

    clock: int
    whole: bool
    group_fence: GroupFence
    row: int

    def by(self, lane: int) -> bool:
        """Whether this lane of the warp executed it."""
        return self.group_fence.lanes is None or bool(self.group_fence.lanes[self.row, lane])

    def known_clock(self, column: int) -> int:
        """The clock of this column that the warp knew then."""
        return int(self.group_fence.known[self.row, column])


class Fences:
    """The fences of the warps of a wave, and how many of each."""

    def __init__(self, warps: int) -> None:
        self.all: list[list[Fence]] = [[] for _ in range(warps)]
        self.count = np.zeros(warps, np.int64)

    def of(self, warp: int) -> list[Fence]:
        return self.all[warp]

    def add(self, warps: Array, lanes: Array | None, clock: Array, known: Array) -> None:
        """``lanes [warps, 32]`` (None: all) of these warps fence, which know ``known [warps, columns]``."""
        group_fence = GroupFence(lanes, known)
        whole = np.ones(warps.size, bool) if lanes is None else np.logical_and.reduce(lanes, axis=1)
        for row, (warp, when, every) in enumerate(zip(warps.tolist(), clock.tolist(), whole.tolist(), strict=True)):
            self.all[warp].append(Fence(when, every, group_fence, row))
        self.count[warps] += 1


def _packed(lane: Array, clock: Array, fences: Any, op: int) -> Array:
    """One write as 64 bits. ``lane``: its number in the wave."""
    high = (lane.astype(np.uint64) + np.uint64(1)) << np.uint64(CLOCK + FENCES + OP)
    low = ((clock.astype(np.int64) & ((1 << CLOCK) - 1)) << FENCES | np.minimum(fences, (1 << FENCES) - 1)) << OP | op
    packed: Array = high | low.astype(np.uint64)
    return packed


def _by_warp(writes: Array) -> Array:
    """A number for each of several writes; those of one warp, at one clock and after as many fences have the same."""
    rest = (writes - np.uint64(1 << (CLOCK + FENCES + OP))) >> np.uint64(OP)
    warp = rest >> np.uint64(CLOCK + FENCES + 5)
    found: Array = (warp << np.uint64(CLOCK + FENCES)) | (rest & np.uint64((1 << (CLOCK + FENCES)) - 1))
    return found


def _unpacked(write: int) -> tuple[int, int, int, int]:
    """(lane, clock, fences, op)."""
    rest, op = write >> OP, write & ((1 << OP) - 1)
    rest, fences = rest >> FENCES, rest & ((1 << FENCES) - 1)
    return (rest >> CLOCK) - 1, rest & ((1 << CLOCK) - 1), fences, op


class Proxies(SharedChecker):
    uses_order, follows_errors = True, True

    def begin(self, launch: Launch) -> None:
        self.launch = launch
        facts = kernel_facts(launch.program)
        self.names, self.shift = facts.shared_names, facts.granules[True].bit_length() - 1
        # For each cell of a wave's shared memory the last write by a thread that no asynchronous write has replaced.
        self.written: dict[Wave, Array] = {}
        self.wrote: set[Wave] = set()  # those in which threads have written to shared memory
        self.fences: dict[Wave, Fences] = {}
        self.ops: list[Op | None] = [None]
        self.numbers: dict[int, int] = {}
        self.raced: dict[Hashable, Finding] = {}  # the data races that were seen here

    def wave(self, wave: Wave) -> None:
        self.written[wave] = np.zeros((wave.shared.bytes.size >> self.shift) + 1, np.uint64)
        self.fences[wave] = Fences(self.order.waves[wave].now.size)

    # -- writes and fences ---------------------------------------------------------------------------------------------

    def access(
        self, verb: str, buffer: Any, group: Group, off: Array, access: Any, mask: Array | None, values: Any
    ) -> None:
        """Remember which thread wrote these bytes through the generic proxy, and how many proxy fences its warp had
        executed then."""
        if verb == "load" or not isinstance(buffer, SharedBuffer):
            return
        wave, op = group.wave, group.lanes.op
        if self.order.landing and CP_ASYNC not in op.attrs["atom"].agents:
            return  # what the async proxy writes; cp.async writes by the generic one
        written, fences = self.written[wave], self.fences[wave]
        number = self._number(op)
        lanes = lanes_of(group, mask)
        rows = lanes // WARP
        warps = group.warps[rows]
        count = fences.count[warps]
        clock = self.order.waves[wave].now[warps]
        if self.order.landing:
            agent = self.order.layout.agents.index("cp.async")
            clock = self.order.landing[-1].notes.open[rows, agent]  # the group of the copies
        write = _packed(warps * WARP + lanes % WARP, clock, count, number)
        cells = flat_offsets(buffer, group, off, mask) >> self.shift
        for step in range(max(1, access.nbytes >> self.shift)):
            written[cells + step] = write
        self.wrote.add(wave)

    def _number(self, op: Op) -> int:
        number = self.numbers.get(id(op))
        if number is None:
            number = self.numbers[id(op)] = min(len(self.ops), (1 << OP) - 1)
            self.ops.append(op)
        return number

    def ordered(self, group: Group, op: Op) -> None:
        if not op.attrs["atom"].fences_async_proxy("shared"):
            return
        clocks = self.order.waves[group.wave]
        warps, lanes = acting_warps(group)
        self.fences[group.wave].add(warps, lanes, clocks.now[warps], clocks.clocks[warps])

    # -- the async proxy -----------------------------------------------------------------------------------------------

    def stretch(
        self, group: Group, memory: str, start: int, shape: tuple[int, ...], strides: tuple[int, ...], writes: bool
    ) -> None:
        """A bulk copy reads or overwrites a box: threads must have fenced what they wrote there. Bytes that it
        overwrites are no longer those of threads."""
        if memory != "shared" or not self.order.landing or group.wave not in self.wrote:
            return
        op, effect = group.lanes.op, self.order.landing[-1]
        first, last = start >> self.shift, (start + math.prod(shape)) >> self.shift
        written = self.written[group.wave][first:last]
        newest = int(np.maximum.reduce(written))
        if not newest:
            return
        lane = effect.issuer
        if not self._plainly_fenced(group.wave, effect, lane // WARP, written, newest):
            cells = np.arange(first, last)
            self._check(group, op, effect, [lane // WARP], cells, "overwrites" if writes else "reads")
        if writes:
            written[:] = 0

    def _plainly_fenced(self, wave: Wave, effect: Effect, row: int, written: Array, newest: int) -> bool:
        """Whether all warps between the first and the last that wrote these cells fenced as wholes next, and the warp
        that issued the effect (of this row of its group) knew of it. Invariant: True only where ``_verdict`` would find
        each of the writes fenced, since all of them are of these warps and before those fences."""
        oldest = int(np.minimum.reduce(written[written > 0]))
        low, high = _unpacked(oldest)[0] // WARP, _unpacked(newest)[0] // WARP
        snapshot, clocks, fences = effect.notes, self.order.waves[wave], self.fences[wave]
        issuer = int(snapshot.warps[row])
        if not clocks.cluster[low] == clocks.cluster[high] == clocks.cluster[issuer]:
            return False
        known, columns = snapshot.rows[row], clocks.own[low : high + 1].tolist()
        # The fences of a warp are kept in order, so fence ``count`` is the first after the last of these writes.
        count = int(np.maximum.reduce(written >> np.uint64(OP) & np.uint64((1 << FENCES) - 1)))
        for warp, column in enumerate(columns, low):
            after = fences.all[warp]
            if len(after) <= count or not after[count].whole:
                return False
            if after[count].clock > (snapshot.now[row] if warp == issuer else known[column]):
                return False
        return True

    def pieces(self, group: Group, reads: PieceReads, rows: Array) -> None:
        if not self.order.landing or group.wave not in self.wrote:
            return
        written = self.written[group.wave]
        cells = reads.start >> self.shift
        if self.shift < 4:
            cells = (cells[..., None] + np.arange(16 >> self.shift)).reshape(len(rows), -1)
        if not written.take(cells).any():
            return
        warps = group.wave.geometry.warps
        quads = group.warps // warps * warps + group.warps % warps // WARPGROUP_WARPS  # a number for each warpgroup
        for unit, row in enumerate(map(int, rows)):
            issuers = [int(r) for r in np.flatnonzero(quads[row : row + WARPGROUP_WARPS] == quads[row]) + row]
            self._check(group, group.lanes.op, self.order.landing[-1], issuers, cells[unit], "reads")

    def _check(self, group: Group, op: Op, effect: Effect, rows: list[int], cells: Array, does: str) -> None:
        """An effect that the warps ``rows`` of a group issued touches cells: each write there must be fenced."""
        wave = group.wave
        writes = self.written[wave][cells]
        there = writes > 0
        if not there.any():
            return
        at = np.flatnonzero(there)
        # Where a whole warp fenced, one look does for all that it wrote at one clock; the rest is asked write by write.
        by_warp = _by_warp(writes[at])
        known = {
            int(key)
            for key, k in zip(*np.unique(by_warp, return_index=True), strict=True)
            if self._fenced_by_all(wave, effect, rows, *_unpacked(int(writes[at[k]]))[:3])
        }
        if known:
            at = at[[key not in known for key in by_warp.tolist()]]
        distinct, first = np.unique(writes[at], return_index=True)
        for write, k in zip(distinct, at[first], strict=True):
            lane, clock, fences, number = _unpacked(int(write))
            verdict = self._verdict(wave, effect, rows, lane, clock, fences, self._copies(number))
            if verdict == "fenced":
                continue
            if not self._copies(number) and not any(self._known(wave, effect, row, lane, clock) for row in rows):
                count = int(np.count_nonzero(writes[at] == write))
                self._note_race(group, op, effect, rows[0], lane, number, int(cells[k]), does, count)
                if verdict != "missing" or self.fences[wave].of(lane // WARP):
                    continue
            self._report(group, op, effect, rows[0], lane, number, int(cells[k]), does, verdict)

    def _fenced_by_all(self, wave: Wave, effect: Effect, rows: list[int], lane: int, clock: int, fences: int) -> bool:
        """Whether all lanes of the warp have fenced, so that one look does for what they wrote at one clock. Invariant:
        the verdict depends on the lane only by fences of single lanes, which do not count here."""
        after = self.fences[wave].of(lane // WARP)[fences:]
        if not any(fence.whole for fence in after):
            return False
        return self._verdict(wave, effect, rows, lane, clock, fences, False, whole=True) == "fenced"

    def _copies(self, number: int) -> bool:
        op = self.ops[number]
        return op is not None and op.opcode == "call" and CP_ASYNC in op.attrs["atom"].agents

    def _verdict(
        self,
        wave: Wave,
        effect: Effect,
        rows: list[int],
        lane: int,
        clock: int,
        fences: int,
        copied: bool,
        whole: bool = False,
    ) -> str:
        """``fenced``, ``by the issuer``, ``unordered`` or ``missing``. ``whole``: only fences count that all lanes of
        the warp executed, and what all lanes know of them."""
        snapshot, clocks = effect.notes, self.order.waves[wave]
        warp, column = lane // WARP, clocks.own[lane // WARP]
        after = [f for f in self.fences[wave].of(warp)[fences:] if (f.whole if whole else f.by(lane % WARP))]
        if any(all(self._known(wave, effect, row, lane, fence.clock, whole) for row in rows) for fence in after):
            return "fenced"
        if whole:
            return "unordered"
        # The unit of cp.async did this write: its group, not the thread's clock, says when it was over.
        if copied:
            column = self.order.layout.agent_unit(column, warp, self.order.layout.agents.index("cp.async"))
        # No fence of the writer counts. A fence by the issuer instead is the usual mistake, reported in its own words.
        for row in rows:
            for fence in self.fences[wave].of(int(snapshot.warps[row])):
                if fence.clock > snapshot.now[row] or fence.known_clock(column) < clock:
                    continue
                if copied:  # a thread that copies need not be there when its copies have landed
                    return "fenced"
                if int(snapshot.warps[row]) != warp:
                    return "unordered" if after else "by the issuer"
        return "unordered" if after else "missing"

    def _known(self, wave: Wave, effect: Effect, row: int, lane: int, clock: int, whole: bool = False) -> bool:
        """Whether what a lane did at a clock of its warp happened before the warp of this row issued the effect.
        ``whole``: whether all lanes of the issuing warp knew of all lanes of that warp."""
        snapshot, clocks, warp = effect.notes, self.order.waves[wave], lane // WARP
        identity = int(clocks.unit[warp]) * WARP + lane % WARP
        columns = [int(clocks.own[warp])] if whole else self.order.layout.columns(identity)
        own = int(snapshot.warps[row]) == warp
        if clock <= (snapshot.now[row] if own else snapshot.rows[row, columns].max()):
            return True
        known = None if whole else snapshot.lane_clocks.get(int(snapshot.warps[row]))
        return known is not None and known.knows(int(clocks.cluster[warp]), columns, identity, clock)

    def _note_race(
        self, group: Group, op: Op, effect: Effect, row: int, lane: int, number: int, cell: int, does: str, count: int
    ) -> None:
        """``count`` writes that nothing orders before the issue: a finding, unless the check for data races has it."""
        wave, sites, layout = group.wave, self.order.sites, self.order.layout
        now = sites[sites.number(op, "store" if does == "overwrites" else "load", True)]
        then = sites[sites.number(self.ops[number], "store", True)]
        key = key_of("data-race", now.place, then.place)
        issuer, writer = int(effect.notes.warps[row]), lane // WARP
        clocks = self.order.waves[wave]
        units = int(clocks.unit[issuer]), int(clocks.unit[writer])
        apart = (units[0] != units[1]) + (units[0] // layout.block != units[1] // layout.block)
        if key in self.raced and self.raced[key].apart >= apart:
            self.raced[key].count += count
            return
        count += self.raced[key].count if key in self.raced else 0
        agent = AGENTS.get(now.agent, now.agent)
        issued_by = actor_in_wave(wave, issuer, None if effect.lane is None else effect.lane % WARP, agent)
        parties = [
            Party(DOES[now.verb], op, replace(issued_by, role=clocks.role(issuer))),
            Party(DID["store"], then.op, replace(actor_in_wave(wave, writer, lane % WARP), role=clocks.role(writer))),
        ]
        memory = shared_memory((cell << self.shift) % wave.shared.stride, 1 << self.shift, self.names)
        facts = kernel_facts(self.launch.program)
        why, fix = explain(layout, now, then, [unit * WARP for unit in units], True, facts)
        self.raced[key] = Finding("data-race", NOTHING_ORDERS, parties, memory, why, fix, count, apart=apart)

    def end(self, launch: Launch) -> None:
        for key, finding in self.raced.items():
            if key not in self.findings.found:
                self.findings.add(finding, key)

    def error(self, launch: Launch, error: SimulationError) -> None:
        self.end(launch)

    def _report(
        self, group: Group, op: Op, effect: Effect, row: int, lane: int, number: int, cell: int, does: str, verdict: str
    ) -> None:
        """The finding: what the agent touches, who wrote it, and why no fence counts (``verdict``)."""
        writer = self.ops[number]
        key = key_of(RULE, op.loc or id(op), (writer and writer.loc) or id(writer))
        if self.findings.counted(key):  # where a fence is missing, each thread that wrote has one
            return
        wave = group.wave
        atom = op.attrs["atom"]
        agent = "wgmma" if atom.accesses[-1].agent == "wgmma" else "TMA"
        if atom.name in (MMA, COPY):
            agent = atom.name
        issuer = int(effect.notes.warps[row])
        why = {
            "missing": "no fence.proxy.async by the thread that wrote is between its write and this: the async "
            "proxy may see what was there before",
            "by the issuer": "the thread that wrote has not fenced when this is issued; a fence by another thread, "
            "after the barrier, is too late",
            "unordered": "the thread that wrote fences, but nothing orders its fence before this is issued: a fence "
            "after the barrier is too late",
        }[verdict]
        fix = (
            'cute.arch.fence_view_async_shared() (fence_proxy("async.shared", space="cta")) by every thread that '
            "writes, after its writes and before the barrier that the issuing warp waits at"
        )
        if self._copies(number):
            why, fix = COPIED
        self.findings.add(
            Finding(
                RULE,
                f"{agent} {does} shared memory that threads wrote and have not fenced for the async proxy",
                [
                    Party(
                        "issued", op, actor_in_wave(wave, issuer, None if effect.lane is None else effect.lane % WARP)
                    ),
                    Party("after a write", writer, actor_in_wave(wave, lane // WARP, lane % WARP)),
                ],
                shared_memory((cell << self.shift) % wave.shared.stride, 1 << self.shift, self.names),
                why,
                fix,
            ),
            key,
        )
