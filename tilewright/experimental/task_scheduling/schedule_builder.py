"""``@schedule``: functions whose calls are recorded, and the loops and guards of schedules.

Python's own ``for`` and ``if`` in a schedule run while it is captured; what the kernel repeats or decides is written
with ``with``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from tilewright._names import attach
from tilewright.errors import ConstraintError
from tilewright.experimental.task_scheduling.capture import Block, Opening, Token, begin, end, opened

__all__ = ["ScheduleResult", "domain_loop", "schedule", "when_false", "when_true", "work_tile_loop"]


class Domain(NamedTuple):
    """``range(start, stop, step)``. A bound may be a function of the task and the tile's coordinate."""

    start: Any
    stop: Any
    step: Any
    unroll: Any


@dataclass(frozen=True, eq=False)
class ScheduleResult:
    """A captured schedule, for ``Task(schedule=...)``."""

    name: str
    root: Block


def schedule(function: Callable[..., Any]) -> Callable[..., ScheduleResult]:
    """Mark a function of resources: a call records what it does with them and runs nothing.

    >>> from tilewright.experimental.task_scheduling.resources import MemoryResource
    >>> @schedule
    ... def fill(ring):
    ...     with domain_loop(0, 8):
    ...         ring.acquire()
    ...         ring.commit()
    >>> [step.label for step, _ in fill(MemoryResource(name="ring")).root.walk()]
    ['ring.acquire', 'ring.commit']
    """

    @functools.wraps(function)
    def captured(*args: Any, **kwargs: Any) -> ScheduleResult:
        root = begin(function.__name__)
        try:
            function(*args, **kwargs)
        finally:
            end()
        return ScheduleResult(function.__name__, root)

    return captured


class domain_loop(Opening):  # the documented name of a context manager
    """``with domain_loop(start, end, step) as d``: the loop of a schedule, at most one. Methods find the index in
    ``stage_info.loop_offset``. With one bound it is the end, as in Python's ``range``. A bound may be a method of the
    task or a function, called for each tile with its coordinate. ``unroll``: the loop's factor; None: the compiler
    chooses.

    >>> domain_loop(8).block.head[:3]
    (0, 8, 1)
    """

    def __init__(self, start: Any, end: Any = None, step: Any = 1, *, unroll: Any = 1) -> None:
        if end is None:
            start, end = 0, start
        if isinstance(step, int) and step == 0:
            raise ConstraintError("domain_loop: the step is 0, so the loop never ends")
        super().__init__("domain", Domain(start, end, step, unroll))

    def __enter__(self) -> domain_loop:
        _once("domain_loop", "domain")
        super().__enter__()
        return self

    def first_iter(self) -> Opening:
        """``with``: in the first iteration only."""
        return _Guard("first", self.block)

    def last_iter(self) -> Opening:
        """``with``: in the last iteration only."""
        return _Guard("last", self.block)

    def every(self, period: int, start: int = 0) -> Opening:
        """``with``: in iterations ``start``, ``start + period``, ... counted from 0."""
        if not isinstance(period, int) or period < 1 or not isinstance(start, int) or start < 0:
            raise ConstraintError(
                f"every({period!r}, start={start!r}): a period of at least 1, and a start of at least 0"
            )
        return _Guard("every", self.block, (period, start))


class work_tile_loop(Opening):  # the documented name of a context manager
    """``with work_tile_loop(wq) as tiles``: the tiles of the work queue ``wq``, one after the other. ``skip_if``: a
    function of (work queue, tile) or of the tile that says which tiles leave out what is in ``tiles.skippable()``."""

    def __init__(self, wq: Any, *, skip_if: Any = None) -> None:
        super().__init__("tiles", (wq, skip_if))

    def __enter__(self) -> work_tile_loop:
        _once("work_tile_loop", "tiles")
        super().__enter__()
        return self

    def skippable(self) -> Opening:
        """``with``: only for tiles that ``skip_if`` does not name."""
        return _Guard("skippable", self.block, self.block.head)


class _Guard(Opening):
    """A block that has to be inside of another one."""

    def __init__(self, kind: str, within: Block, head: Any = None) -> None:
        super().__init__(kind, head)
        self.within = within

    def __enter__(self) -> Any:
        if self.within not in opened():
            raise ConstraintError(
                f"a guard of a {'work-tile' if self.block.kind == 'skippable' else 'domain'} loop is outside of the "
                "loop, which is over: move it into the loop's `with`"
            )
        return super().__enter__()


def when_true(condition: Any, *, key: Any = None) -> Opening:
    """``with``: where the value of a token is true, or not 0. ``key`` names a value that several tasks share, for
    checks."""
    return _when("true", condition)


def when_false(condition: Any, *, key: Any = None) -> Opening:
    """``with``: where the value of a token is false, or 0; see :func:`when_true`."""
    return _when("false", condition)


def _when(kind: str, condition: Any) -> Opening:
    if not isinstance(condition, Token):
        raise ConstraintError(
            f"when_{kind}: the condition is what a method marked @consumer_work(returns=...) gives in this schedule, "
            f"not {condition!r}; a Python `if` decides what is known now"
        )
    return Opening(kind, condition)


def _once(name: str, kind: str) -> None:
    if any(block.kind == kind for block in opened()[0].blocks()):
        raise ConstraintError(
            f"a schedule has one {name}, and this is its second one: make a schedule of its own of it"
        )


attach(__name__)
