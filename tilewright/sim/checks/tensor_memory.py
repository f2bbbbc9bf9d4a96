"""Tensor memory between warps: what one has stored, multiplied or loaded there and another one touches needs a
synchronisation of the threads, with ``tcgen05.fence`` on both of its sides.

PTX ISA, "tcgen05 memory consistency model": ``before_thread_sync`` orders the asynchronous ``tcgen05`` before it with
the synchronisation that follows; ``tcgen05.commit`` implies it. ``after_thread_sync`` orders those behind it with the
synchronisation before. What one warp issues is in order, or is waited for by ``wait::ld``, ``wait::st`` and the commit:
a load or store that its warp has not waited for (nor fenced) is not over, whatever the warp has arrived at since
("tcgen05.ld", "tcgen05.wait": asynchronous until the wait).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tilewright.atoms.tensor_memory import COLUMNS, COMMIT, DEALLOC, FENCE, LANES, LOAD, STORE
from tilewright.atoms.tensor_memory_state import TensorMemory
from tilewright.ir.core import Op
from tilewright.ir.lanes import Array
from tilewright.ir.target import WARP
from tilewright.sim.checks.actors import actor_in_wave, thread_of
from tilewright.sim.checks.checker import Checker
from tilewright.sim.checks.findings import Finding, Party
from tilewright.sim.checks.sites import kernel_facts
from tilewright.sim.events import Mask

if TYPE_CHECKING:
    from tilewright.sim.agents import Effect
    from tilewright.sim.engine import Launch
    from tilewright.sim.group import Group
    from tilewright.sim.wave import Wave


IN_FLIGHT = 1 << 40  # a clock that no one knows of


class _Use(NamedTuple):
    """An access that has been issued: by which op and warp, at which of its clocks it is over (``IN_FLIGHT``: not yet),
    and how many of the warp's ``_Side.points`` were before it."""

    op: Op
    warp: int
    clock: int
    points: int
    wave: Wave


class _Side:
    """What the order of a warp's accesses to tensor memory depends on. ``points``: the clocks of its fences
    ``before_thread_sync`` and commits; ``known``: for each other warp, how many of its points this warp knew of at its
    last fence ``after_thread_sync``; ``flying``: the numbers of its loads and stores that it has not waited for, by
    their agent."""

    __slots__ = ("points", "known", "flying")

    def __init__(self) -> None:
        self.points: list[int] = []
        self.known: dict[int, int] = {}
        self.flying: dict[str, list[int]] = {LOAD: [], STORE: []}


class _Cells:
    """The uses of one block's tensor memory: for each cell the numbers of its last write and last read; 0 where there
    was none. ``again``: the number and the cells of the newest use, if that was a write with which nothing was
    wrong."""

    __slots__ = ("written", "read", "allocations", "again")

    def __init__(self) -> None:
        self.written, self.read = np.zeros((2, LANES, COLUMNS), np.int32)
        self.allocations = 0
        self.again: tuple[int, list[Any]] = 0, []

    def forget_freed(self, memory: TensorMemory) -> None:
        """What was done to columns before they were allocated again is no access to what is there now."""
        if memory.count != self.allocations:
            if self.allocations:
                again = memory.owner > self.allocations
                self.written[:, again] = self.read[:, again] = 0
            self.allocations = memory.count
            self.again = 0, []


class TensorMemoryOrder(Checker):
    """A missing fence is reported where the program has written others, or where all is checked: many programs that run
    on such GPUs go without fences, but for those in the methods of pipelines. A missing fence::before_thread_sync wants
    others of its own side: ``tcgen05.wait`` and an arrival that releases, behind which it stands, order the accesses
    in CUTLASS's attention without it (PTX shows it beside relaxed arrivals)."""

    uses_order = True

    def begin(self, launch: Launch) -> None:
        atoms = [op.attrs["atom"] for op in kernel_facts(launch.program).calls]
        written = {a.side for a in atoms if a.name == FENCE and a.written}
        self.wanted = {"before", "after"} if self.thorough else written | ({"after"} if written else set())
        self.uses: list[_Use | None] = [None]
        self.cells: dict[TensorMemory, _Cells] = {}
        self.sides: dict[tuple[Wave, int], _Side] = {}  # by wave and warp
        self.clusters: dict[tuple[Wave, int], dict[int, _Side]] = {}  # by wave and cluster: those of its warps

    def tensor_memory(self, group: Group, row: int, memory: TensorMemory, writes: bool, where: list[Any]) -> None:
        """A warp reads or writes the cells ``where``: compared with the last write of each and, if it writes, the last
        read, by other warps."""
        cells = self.cells.get(memory)
        if cells is None:
            cells = self.cells[memory] = _Cells()
        cells.forget_freed(memory)
        warp, wave = int(group.warps[row]), group.wave
        side, op = self._side(wave, warp), group.lanes.op
        flying = side.flying.get(op.attrs["atom"].name)
        clock = int(self.order.waves[wave].now[warp]) if flying is None else IN_FLIGHT
        use = _Use(op, warp, clock, len(side.points), wave)
        if writes and flying is None and self._writes_again(cells, warp, where):
            self.uses[cells.again[0]] = use
            return
        cells.again = 0, []
        before = set()
        for cell in where:
            before |= _numbers(cells.written[cell])
            if writes:
                before |= _numbers(cells.read[cell])
        earlier = [self.uses[number] for number in before]
        ordered = [self._compare(group, row, warp, other) for other in earlier if other and other.warp != warp]
        self.uses.append(use)
        number = len(self.uses) - 1
        for cell in where:
            (cells.written if writes else cells.read)[cell] = number
        if flying is not None:
            flying.append(number)
        elif writes and all(ordered):
            cells.again = number, where

    def _writes_again(self, cells: _Cells, warp: int, where: list[Any]) -> bool:
        """Whether a warp writes the cells that it has just written, as the MMAs of a tile do. Invariant: nothing has
        touched the block's tensor memory in between, so this write meets what the last one met and was ordered behind;
        and the cells are all that bear its number, which may stand for this write from now on."""
        number, written = cells.again
        last = self.uses[number]
        if last is None or last.warp != warp or len(written) != len(where):
            return False
        return all(one is other for one, other in zip(written, where, strict=True))

    def _side(self, wave: Wave, warp: int) -> _Side:
        found = self.sides.get((wave, warp))
        if found is None:
            found = self.sides[wave, warp] = _Side()
            self._of_cluster(wave, warp)[warp] = found
        return found

    def _of_cluster(self, wave: Wave, warp: int) -> dict[int, _Side]:
        """The sides of the warps of the warp's cluster. No others reach the tensor memory of its blocks."""
        return self.clusters.setdefault((wave, int(self.order.waves[wave].cluster[warp])), {})

    # -- fences and commits --------------------------------------------------------------------------------------------

    def ordered(self, group: Group, op: Op) -> None:
        atom = op.attrs["atom"]
        if atom.name == FENCE:
            for warp in _active_warps(group, group.mask):
                if atom.side == "before":
                    self._point(group.wave, warp)
                else:
                    self._acquire(group.wave, warp)
        for order in atom.orders:
            if order.agent in (LOAD, STORE):
                for warp in _active_warps(group, group.mask):
                    self._over(group.wave, warp, (order.agent,))

    def issue(self, group: Group, effect: Effect) -> None:
        if effect.op.attrs["atom"].name == COMMIT:
            for warp in _active_warps(group, effect.mask):
                self._point(group.wave, warp, committed=True)

    def _point(self, wave: Wave, warp: int, committed: bool = False) -> None:
        """What the warp has issued so far is covered by what it releases from now on. The issue of a commit has moved
        its clock on."""
        clocks = self.order.waves[wave]
        self._side(wave, warp).points.append(int(clocks.last[warp] if committed else clocks.now[warp]))
        if not committed:
            self._over(wave, warp, (LOAD, STORE))

    def _over(self, wave: Wave, warp: int, agents: tuple[str, ...]) -> None:
        """The loads or stores of a warp are over: they count as done at its clock now."""
        flying, now = self._side(wave, warp).flying, int(self.order.waves[wave].now[warp])
        for agent in agents:
            for number in flying[agent]:
                use = self.uses[number]
                assert use is not None
                self.uses[number] = use._replace(clock=now)
            flying[agent].clear()

    def _acquire(self, wave: Wave, warp: int) -> None:
        mine = self._side(wave, warp)
        for other, side in self._of_cluster(wave, warp).items():
            if other != warp and len(side.points) > mine.known.get(other, 0):
                mine.known[other] = self._points_known(wave, warp, other, mine.known.get(other, 0))

    def _points_known(self, wave: Wave, warp: int, other: int, least: int) -> int:
        """How many of another warp's points happened before what the warp does now; ``least`` did."""
        # Clocks grow from point to point, and who knows of one knows of those before it.
        points = self._side(wave, other).points
        while least < len(points) and self._knows(wave, warp, other, points[least]):
            least += 1
        return least

    def _knows(self, wave: Wave, warp: int, other: int, clock: int) -> bool:
        return self.order.knows_of_warp(wave, warp, other, clock)

    # -- what they come to ---------------------------------------------------------------------------------------------

    def _compare(self, group: Group, row: int, warp: int, use: _Use) -> bool:
        """Whether what a warp does is ordered behind an earlier use by another one; what is not is reported. (What is
        ordered stays so: warps only learn.)"""
        wave = group.wave
        mine = self._side(wave, warp)
        if mine.known.get(use.warp, 0) > use.points:
            return True
        frees = group.lanes.op.attrs["atom"].name == DEALLOC
        if use.clock == IN_FLIGHT:
            self._in_flight(group, row, use)
            return False
        if not self._knows(wave, warp, use.warp, use.clock):
            self._report(
                group,
                row,
                use,
                "tensor-memory-race",
                "nothing orders the freeing of these columns behind the other warp's access"
                if frees
                else "nothing orders these two accesses to tensor memory",
                "no barrier or mbarrier is between the two on every path",
                "let all warps that use the columns meet at a barrier, or arrive at an mbarrier, before one frees them"
                if frees
                else "let the threads meet: tcgen05_fence_before_thread_sync(), a barrier (or, behind MMAs, "
                "tcgen05.commit(mbarrier) and mbarrier_wait), tcgen05_fence_after_thread_sync()",
            )
            return False
        if frees:  # the wait for columns orders those that come
            return True
        fenced = self._points_known(wave, warp, use.warp, mine.known.get(use.warp, 0)) > use.points
        if ("after" if fenced else "before") not in self.wanted:
            return True
        if fenced:
            self._report(
                group,
                row,
                use,
                "tcgen05-fence",
                "no tcgen05.fence::after_thread_sync is between the synchronisation with the other warp and this "
                "access",
                "tcgen05 instructions are asynchronous: without the fence one may be executed before the wait that "
                "stands above it",
                "cute.arch.tcgen05_fence_after_thread_sync() behind the wait",
            )
        else:
            self._report(
                group,
                row,
                use,
                "tcgen05-fence",
                "no tcgen05.fence::before_thread_sync is between the other warp's access and the synchronisation",
                "tcgen05 instructions are asynchronous: without the fence the synchronisation does not cover them",
                "cute.arch.tcgen05_fence_before_thread_sync() before that warp's barrier or arrival",
            )
        return False

    def _in_flight(self, group: Group, row: int, use: _Use) -> None:
        loads = use.op.attrs["atom"].name == LOAD
        wait, function = ("ld", "load") if loads else ("st", "store")
        self._report(
            group,
            row,
            use,
            "tensor-memory-race",
            f"the other warp has not waited for its tcgen05.{wait} to these cells",
            f"tcgen05.{wait} is asynchronous until tcgen05.wait::{wait}; a barrier or an arrival before that wait does "
            "not cover it",
            f"cute.arch.fence_view_async_tmem_{function}() behind the {function}, before that warp arrives",
        )

    def _report(self, group: Group, row: int, use: _Use, rule: str, what: str, why: str, fix: str) -> None:
        op = group.lanes.op
        parties = [
            Party(op.attrs["atom"].mnemonic(), op, thread_of(group, row * WARP)),
            Party(f"after {use.op.attrs['atom'].mnemonic()}", use.op, actor_in_wave(use.wave, use.warp, 0)),
        ]
        self.findings.add(Finding(rule, what, parties, None, why, fix))


def _numbers(numbers: Array) -> set[int]:
    """The different numbers in an array; mostly it is one."""
    least = int(numbers.min())
    return {least} if least == int(numbers.max()) else set(np.flatnonzero(np.bincount(numbers.reshape(-1))).tolist())


def _active_warps(group: Group, mask: Mask) -> list[int]:
    warps = group.warps if mask is None else group.warps[mask.reshape(-1, WARP).any(1)]
    return [int(warp) for warp in warps]
