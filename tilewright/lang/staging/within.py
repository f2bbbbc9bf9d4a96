"""``with`` statements whose context manager is a run-time region, such as ``with cute.arch.elect_one():``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from tilewright.ir.builder import Builder
from tilewright.ir.core import Block, Value
from tilewright.lang.staging import carry
from tilewright.lang.staging.location import depth, here
from tilewright.lang.staging.poison import Undefined
from tilewright.lang.staging.regions import Region


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


class With:
    """One execution of a ``with`` statement by the rewritten code: what the body of a run-time region assigned holds
    nothing usable after it."""

    __slots__ = ("before", "level", "names", "region")

    def __init__(self, *names: str) -> None:
        self.names = names
        self.level = depth()
        self.region: Any = None

    def enter(self, *values: Any) -> None:
        if depth() > self.level:
            self.region = Builder.current().regions[-1]  # type: ignore[attr-defined]
            self.before = values

    def leave(self, *values: Any) -> tuple[Any, ...]:
        if self.region is None:
            return values
        reason = f"it is assigned inside the {self.region}, whose values stay there"
        return tuple(
            value if value is before or not _is_runtime(value) else Undefined(name, reason)
            for name, before, value in zip(self.names, self.before, values, strict=True)
        )


def _is_runtime(value: Any) -> bool:
    return not isinstance(value, Undefined) and bool(carry.spec_of(value, promote=False).types())
