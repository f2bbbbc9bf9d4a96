"""What a stopped launch shows: one lane of one warp before a Python line."""

from __future__ import annotations

import linecache
from typing import Any, NamedTuple

import numpy as np

from tilewright.atoms.mbarrier_state import Mbarriers
from tilewright.errors import ArgumentError, SimulationError
from tilewright.ir.core import Location, Op
from tilewright.ir.target import WARP
from tilewright.sim import hangs
from tilewright.sim.barriers import NAMED
from tilewright.sim.debug.variables import ValueUnavailable, Variables
from tilewright.sim.engine import Launch
from tilewright.sim.group import Group


class BarrierState(NamedTuple):
    """A barrier of the block. ``kind``: ``"mbarrier"`` (``name`` its offset in shared memory), ``"barrier"`` (its id)
    or ``"cluster"``. ``phase`` counts those that are complete; ``arrived`` of ``expected`` have come (threads; for an
    mbarrier arrivals), and ``bytes`` are outstanding."""

    kind: str
    name: int
    phase: int
    arrived: int
    expected: int
    bytes: int = 0


class Frame:
    """A stopped launch. It can be read until the launch goes on.

    Attributes:
        kernel: the kernel's name.
        block, warp, lane: the thread that is inspected; ``warps`` are at the same place (of all blocks).
        location: the Python line that comes next.
    """

    def __init__(self, launch: Launch, group: Group, op: Op, row: int, lane: int) -> None:
        self._launch, self._group, self._op, self._row = launch, group, op, row
        self.over = False
        per_block = launch.geometry.warps
        number = int(group.warps[row])
        self.kernel = launch.program.name
        self.slot = number // per_block
        self.block = tuple(int(v) for v in group.wave.coords[self.slot])
        self.warp = number % per_block
        self.lane = lane
        self.warps = [
            (tuple(int(v) for v in group.wave.coords[w // per_block]), int(w % per_block)) for w in group.warps
        ]

    # -- where ---------------------------------------------------------------------------------------------------------

    @property
    def location(self) -> Location:
        assert self._op.loc is not None
        return self._op.loc

    @property
    def source(self) -> str:
        """The text of the line."""
        return linecache.getline(self.location.file, self.location.line).strip()

    @property
    def thread(self) -> tuple[int, int, int]:
        """The thread's index in its block."""
        return self._launch.geometry.thread_of(self.warp, self.lane)

    @property
    def active(self) -> list[int]:
        """The lanes of the warp that execute the line."""
        mask = self._group.mask
        first = self._row * WARP
        return list(range(WARP)) if mask is None else np.flatnonzero(mask[first : first + WARP]).tolist()

    # -- variables -----------------------------------------------------------------------------------------------------

    def names(self) -> list[str]:
        """The variables that have been assigned on the way here."""
        return self._variables(self.lane).names()

    def value(self, name: str, all_lanes: bool = False) -> Any:
        """The number in a variable, of this lane; ``all_lanes``: an array of the warp's 32."""
        self._check_stopped()
        seen = self._variables(None if all_lanes else self.lane)
        held = seen.find(name)
        if hasattr(held, "linear"):
            raise ArgumentError(f"{name!r} is a tensor: frame.tensor({name!r})")
        try:
            number = seen.number(held)
        except ValueUnavailable as why:
            raise ArgumentError(f"{name!r} cannot be shown: {why}") from None
        if all_lanes:
            return np.broadcast_to(number, (WARP, *np.shape(number)[1:])) if np.ndim(number) == 0 else number
        return number.item() if isinstance(number, np.generic) else number

    def tensor(self, name: str) -> np.ndarray:
        """The elements of a tensor (shared or global memory, registers) as this lane sees them: a copy, with an axis
        for each mode of its layout. Elements out of the memory's bounds are masked."""
        self._check_stopped()
        seen = self._variables(self.lane)
        held = seen.find(name)
        if not hasattr(held, "linear"):
            raise ArgumentError(f"{name!r} is a number: frame.value({name!r})")
        try:
            return seen.tensor(held)
        except ValueUnavailable as why:
            raise ArgumentError(f"{name!r} cannot be shown: {why}") from None

    def __getitem__(self, name: str) -> Any:
        """A number or a tensor by the variable's name."""
        return self.tensor(name) if hasattr(self._variables(self.lane).find(name), "linear") else self.value(name)

    # -- synchronisation -----------------------------------------------------------------------------------------------

    def barriers(self) -> list[BarrierState]:
        """The block's mbarriers, its barriers that threads have arrived at, and its cluster's barrier."""
        self._check_stopped()
        wave = self._group.wave
        states: list[BarrierState] = []
        table: Mbarriers | None = wave.kept.get(Mbarriers)
        # Rows of ``expected`` 0 are free, or of mbarriers that have been invalidated.
        for row in np.flatnonzero(table.expected > 0).tolist() if table is not None else ():
            assert table is not None
            block, offset = int(table.where[row]) >> 32, int(table.where[row]) & 0xFFFFFFFF
            if block == self.slot:
                expected, pending = int(table.expected[row]), int(table.pending[row])
                phase, bytes_left = int(table.completed[row]), int(table.bytes[row])
                states.append(BarrierState("mbarrier", offset, phase, expected - pending, expected, bytes_left))
        state = wave.barriers
        for name in range(NAMED):
            key = self.slot * NAMED + name
            if state.arrived[key] or state.completed[key]:
                states.append(
                    BarrierState(
                        "barrier", name, int(state.completed[key]), int(state.arrived[key]), int(state.expected[key])
                    )
                )
        if wave.geometry.cluster_size > 1:
            clusters = wave.clusters
            number = self.slot // wave.geometry.cluster_size
            span = slice(number * clusters.per_cluster, (number + 1) * clusters.per_cluster)
            states.append(
                BarrierState(
                    "cluster",
                    number,
                    int(clusters.completed[number]),
                    int(clusters.arrived[span].sum()),
                    int((~clusters.exited[span]).sum()),
                )
            )
        return states

    def waits(self) -> str:
        """Where each warp of the block is: what it waits for, in which loop it spins, or that it can continue."""
        self._check_stopped()
        return hangs.block_text(self._launch, self._group.wave, self.slot)

    def __str__(self) -> str:
        head = f"kernel {self.kernel!r}, block {self.block}, warp {self.warp}, lane {self.lane} (thread {self.thread})"
        return f"{head}\n-> {self.location.file}:{self.location.line}:  {self.source}"

    __repr__ = __str__

    def _variables(self, lane: int | None) -> Variables:
        return Variables(self._launch.program, self._group, self._op, self._row, lane)

    def _check_stopped(self) -> None:
        if self.over:
            raise SimulationError(f"the launch of {self.kernel!r} has gone on: this frame can no longer be read")
