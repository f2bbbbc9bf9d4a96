"""What a schedule is once it has been captured: steps, and blocks of steps.

A schedule's root has a *head*, at most one domain loop and a *tail*; all may be inside of one work-tile loop, and
steps inside of guards.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tilewright.errors import ConstraintError
from tilewright.ir.builder import Builder
from tilewright.lang.staging.builder import depth
from tilewright.lang.staging.location import fail


@dataclass(frozen=True, eq=False)
class Token:
    """The value that a step returns: the variable ``slot`` of ``resource`` in this task."""

    resource: Any
    slot: str


@dataclass(frozen=True, eq=False)
class Step:
    """``op``: ``"work"``, or what is done to the pipeline of ``resource``: ``"acquire"``, ``"commit"``, ``"wait"``,
    ``"release"``, ``"try_acquire"``, ``"try_wait"``."""

    resource: Any
    op: str
    work: Any = None
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """``smem_a.acquire``."""
        return f"{self.resource.label}.{self.work.name if self.op == 'work' else self.op}"

    def tokens(self) -> list[Token]:
        """The values that it takes."""
        return [x for x in (*self.args, *self.kwargs.values()) if isinstance(x, Token)]

    def results(self) -> list[Token]:
        """The values that it returns."""
        if self.op != "work":
            return []
        return [Token(self.resource, name) for name in self.work.slots() or (f"{self.work.name}()",)]


@dataclass(eq=False)
class Block:
    """Steps that run together. ``kind``: ``"root"``, ``"tiles"``, ``"domain"``, ``"skippable"``, or a guard:
    ``"first"``, ``"last"``, ``"every"``, ``"true"``, ``"false"``; ``head`` has what the kind needs."""

    kind: str
    head: Any = None
    items: list[Any] = field(default_factory=list)

    def walk(self, around: tuple[Block, ...] = ()) -> Iterator[tuple[Step, tuple[Block, ...]]]:
        """All steps in order, each with the blocks around it."""
        for item in self.items:
            if isinstance(item, Step):
                yield item, (*around, self)
            else:
                yield from item.walk((*around, self))

    def blocks(self) -> Iterator[Block]:
        """This block and all inside of it."""
        yield self
        for item in self.items:
            if isinstance(item, Block):
                yield from item.blocks()


class _Capture(NamedTuple):
    """A schedule that is being captured: its name, the blocks that are open, how many regions of the kernel were open
    before it, and whether another one was being captured."""

    name: str
    blocks: list[Block]
    regions: int
    inside: bool


_OPEN: list[_Capture] = []  # the innermost last


def begin(name: str) -> Block:
    """Capture a schedule from now on. Loops over known ranges in it are Python's, in a kernel too."""
    root = Block("root")
    inside = Builder.active() and Builder.current().recording
    _OPEN.append(_Capture(name, [root], depth(), inside))
    if Builder.active():
        Builder.current().recording = True
    return root


def end() -> None:
    """The schedule is captured."""
    capture = _OPEN.pop()
    if Builder.active():
        Builder.current().recording = capture.inside


def opened() -> list[Block]:
    """The blocks that are open, outermost first; an error outside of schedules, and in what the kernel repeats or
    decides: a step there would be recorded once."""
    if not _OPEN:
        raise ConstraintError("this belongs into a function marked @schedule, which captures it")
    if depth() > _OPEN[-1].regions:
        region = Builder.current().regions[-1]
        raise fail(
            f"a step of the schedule {_OPEN[-1].name!r} inside of a {region}: Python's `for` and `if` run while it is "
            "captured, and must know their bounds and conditions then; what the kernel repeats or decides is written "
            "`with domain_loop(...):`, `with work_tile_loop(...):`, `with when_true(...):`"
        )
    return _OPEN[-1].blocks


def record(
    resource: Any, op: str, work: Any = None, args: Any = (), kwargs: Any = None, *, optional: bool = False
) -> bool:
    """Add a step to the schedule that is captured. False outside of one, where that is allowed."""
    if optional and not _OPEN:
        return False
    opened()[-1].items.append(Step(resource, op, work, tuple(args), dict(kwargs or {})))
    return True


class Opening:
    """``with``: steps inside belong to a new block."""

    def __init__(self, kind: str, head: Any = None) -> None:
        self.block = Block(kind, head)

    def __enter__(self) -> Any:
        around = opened()
        around[-1].items.append(self.block)
        around.append(self.block)
        return self

    def __exit__(self, *error: Any) -> None:
        _OPEN[-1].blocks.pop()
