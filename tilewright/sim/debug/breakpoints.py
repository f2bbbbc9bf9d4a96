"""Breakpoints: what is called when a warp reaches a line."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from tilewright.errors import ArgumentError
from tilewright.ir.core import Op
from tilewright.ir.target import WARP
from tilewright.sim.debug.frame import Frame
from tilewright.sim.debug.places import PlacePattern, program_by_lines
from tilewright.sim.debug.prompt import prompt
from tilewright.sim.engine import Launch
from tilewright.sim.group import Group
from tilewright.sim.replay import Replay, intercepting

Action = Callable[[Frame], Any]
_all: list[Breakpoint] = []
_installed = ExitStack()


class Breakpoint:
    """A place, the threads that are inspected there, and an action. It holds until :meth:`remove`, or the end of its
    ``with`` block; ``hits`` counts how often it was reached."""

    def __init__(
        self, where: str | int | None, block: Any, warp: int | None, lane: int | None, action: Action, times: int | None
    ) -> None:
        self.where = PlacePattern.of(where) if where is not None else None
        self.block = (*_numbers(block), 0, 0)[:3] if block is not None else None
        self.warp, self.lane = warp, lane
        self.action = action
        self.times = times
        self.hits = 0
        if lane is not None and not 0 <= lane < WARP:
            raise ArgumentError(f"lane={lane}; a warp has lanes 0 to {WARP - 1}")
        _all.append(self)
        # Launches are intercepted only while there are breakpoints: others run at full speed.
        if len(_all) == 1:
            _installed.enter_context(intercepting(_run))

    def remove(self) -> None:
        if self in _all:
            _all.remove(self)
            if not _all:
                _installed.close()

    def __enter__(self) -> Breakpoint:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()

    def row_and_lane(self, launch: Launch, group: Group, op: Op) -> tuple[int, int] | None:
        """The row of the warp in the group, and the lane, at which it stops; None where it does not stop."""
        if self.where is not None and not self.where.at(op, launch.program.function):
            return None
        per_block = launch.geometry.warps
        for row, number in enumerate(group.warps.tolist()):
            if self.warp is not None and number % per_block != self.warp:
                continue
            if self.block is not None and tuple(group.wave.coords[number // per_block].tolist()) != self.block:
                continue
            mask = group.mask
            active = range(WARP) if mask is None else mask[row * WARP : (row + 1) * WARP].nonzero()[0].tolist()
            if self.lane is None and len(active):
                return row, int(active[0])
            if self.lane in active:
                return row, int(self.lane)  # type: ignore[arg-type]  # no None is active
        return None


def break_at(
    where: str | int,
    *,
    block: Any = None,
    warp: int | None = None,
    lane: int | None = None,
    action: Action | None = None,
    times: int | None = None,
) -> Breakpoint:
    """Stop where a kernel reaches a Python line.

    Args:
        where: ``"file.py:12"`` (the end of a path), ``"kernel:12"`` (a line of the kernel's file), ``"kernel"`` (its
            first line) or ``12``.
        block: coordinates of the block, an int or up to three; None: any.
        warp, lane: its number in the block, and the lane; None: the first that comes.
        action: is called with the :class:`Frame`. Left out: the Python debugger (what ``breakpoint()`` opens), where
            the kernel's variables are variables; ``frame`` has the rest, and ``c`` lets the kernel go on.
        times: how often at most.

    >>> from tilewright import sim
    >>> @cute.kernel
    ... def double(x: cute.Tensor):
    ...     t, _, _ = cute.arch.thread_idx()
    ...     x[t] = x[t] + x[t]
    >>> @cute.jit
    ... def run(x: cute.Tensor):
    ...     double(x).launch(grid=(1, 1, 1), block=(32, 1, 1))
    >>> with sim.debug.break_at("double", lane=3, times=1, action=lambda frame: print(frame.block, frame.lane)):
    ...     run(np.ones(32, np.float32))
    (0, 0, 0) 3
    """
    return Breakpoint(where, block, warp, lane, action or prompt, times)


class DebuggedLaunch(Launch):
    """A launch that looks for breakpoints wherever a line begins."""

    def stops(self, group: Group, op: Op) -> bool:
        # An action may remove breakpoints, its own among them.
        for point in list(_all):
            if point.times is not None and point.hits >= point.times:
                continue
            hit = point.row_and_lane(self, group, op)
            if hit is not None:
                point.hits += 1
                frame = Frame(self, group, op, *hit)
                try:
                    point.action(frame)
                finally:
                    frame.over = True
        return False


def _run(replay: Replay) -> None:
    function = replay.kernel.program.function
    for point in _all:
        if point.where is not None and point.where.in_kernel(function):
            point.where.check(function)
    replay.run(program_by_lines(replay.kernel.program), make=DebuggedLaunch)


def _numbers(block: Any) -> tuple[int, ...]:
    return (block,) if isinstance(block, int) else tuple(int(v) for v in block)
