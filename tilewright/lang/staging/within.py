"""``with`` statements whose context manager is a run-time region, such as ``with cute.arch.elect_one():``."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from tilewright.ir.builder import Builder
from tilewright.ir.core import Block, Value
from tilewright.lang.staging import carry, cells, objects
from tilewright.lang.staging.location import depth, here
from tilewright.lang.staging.poison import Undefined
from tilewright.lang.staging.regions import Region, poison_fresh


@contextlib.contextmanager
def only_if(condition: Value, what: str) -> Iterator[None]:
    """Run the body of a ``with`` statement where ``condition`` (i1) holds; ``what`` names it in messages."""
    builder = Builder.current()
    body, rest = Block(), Block()
    if not hasattr(builder, "regions"):  # a plain builder: nothing of the staged language is in play
        with builder.inside(body):
            yield
    else:
        region = Region(what, here(3))
        region.open(body)
        yield
        region.close()
    for block in (body, rest):
        with builder.inside(block):
            builder.emit("yield")
    builder.emit("if", (condition,), (), {}, (body, rest))


def inside(what: str) -> bool:
    """Whether the program is inside a region of this name (``only_if``), called functions included."""
    return any(region.what == what for region in getattr(Builder.current(), "regions", ()))


class With:
    """One execution of a ``with`` statement by the rewritten code: what the body of a run-time region assigned holds
    nothing usable after it, unless it is known while staging and had no other value before."""

    __slots__ = ("before", "level", "load", "names", "reach", "region", "touched")

    def __init__(self, names: tuple[str, ...], touched: tuple[str, ...], load: Callable[[], tuple[Any, ...]]) -> None:
        self.names, self.touched, self.load = names, touched, load
        self.level = depth()
        self.region: Any = None

    def enter(self, *values: Any) -> None:
        if depth() > self.level:
            self.region = Builder.current().regions[-1]  # type: ignore[attr-defined]
            self.before = values
            named = zip(self.touched, self.load(), strict=True)
            self.reach = cells.Reach(named, zip(self.names, values, strict=True))

    def leave(self, *values: Any) -> tuple[Any, ...]:
        if self.region is None:
            return values
        self.reach.check(self.region)
        poison_fresh(self.reach.cells, self.region)
        reason = f"it is assigned inside the {self.region}, whose values stay there"
        for cell in self.reach.cells:
            if cell.kind != "protocol" and not _same(cell.before, cell.get()):
                cell.put(Undefined(cell.path, reason))
        return tuple(
            value if _same(before, value) else Undefined(name, reason)
            for name, before, value in zip(self.names, self.before, values, strict=True)
        )


def _same(before: Any, after: Any) -> bool:
    """Whether the value after the region holds for those who did not run it."""
    if before is after or isinstance(after, Undefined):
        return True
    if carry.spec_of(after, promote=False).types():
        return False
    return isinstance(before, Undefined) or objects.same_static(before, after)
