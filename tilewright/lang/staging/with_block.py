"""``with`` statements whose context manager is a run-time region, such as ``with cute.arch.elect_one():``."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from tilewright.ir.builder import Builder
from tilewright.ir.core import Block, Value
from tilewright.lang.staging import objects, values
from tilewright.lang.staging.builder import depth
from tilewright.lang.staging.liveness import HoldsUnnamed
from tilewright.lang.staging.location import here
from tilewright.lang.staging.region_state import RegionState
from tilewright.lang.staging.regions import Region, emit_branch
from tilewright.lang.staging.undefined import Undefined


@contextlib.contextmanager
def only_if(condition: Value, what: str) -> Iterator[None]:
    """Run the body of a ``with`` statement where ``condition`` (i1) holds; ``what`` names it in messages."""
    region, arms = Region(what, here(3)), (Block(), Block())
    region.open(arms[0])
    yield
    region.close()
    emit_branch(condition, arms, (), (), speculate=False)


def inside(what: str) -> bool:
    """Whether the program is inside a region of this name (``only_if``), called functions included."""
    return any(region.what == what for region in Builder.current().regions)


class With(HoldsUnnamed):
    """One execution of a ``with`` statement by the rewritten code: what the body of a run-time region assigned holds
    nothing usable after it, unless it is known while staging and had no other value before.

    ``objects`` is called once the body is entered: the statement itself may make what the body changes.
    """

    __slots__ = ("config", "level", "managers", "region", "state")

    def __init__(
        self, names: tuple[str, ...], touched: tuple[str, ...], objects: Callable[[], tuple[Any, ...]]
    ) -> None:
        self.config = (names, touched, objects)
        self.level = depth()
        self.region: Any = None
        self.managers: list[Any] = []

    def manager(self, manager: Any) -> Any:
        """Note a context manager, which Python leaves at the end."""
        self.managers.append(manager)
        return manager

    def unnamed(self) -> list[Any]:
        return self.managers

    def enter(self, variables: tuple[Any, ...]) -> None:
        if depth() > self.level:
            names, touched, objects = self.config
            self.region = Builder.current().regions[-1]
            self.state = RegionState(names, variables, touched, objects())

    def leave(self, variables: tuple[Any, ...]) -> tuple[Any, ...]:
        if self.region is None:
            return variables
        reason = f"it is assigned inside the {self.region}, whose values stay there"
        now = self.state.now(variables, self.region)
        changes = zip(self.state.labels, self.state.before, now, strict=True)
        return self.state.restore([v if _same(old, v) else Undefined(label, reason) for label, old, v in changes])


def _same(before: Any, after: Any) -> bool:
    """Whether the value after the region holds for those who did not run it."""
    if before is after or isinstance(after, Undefined):
        return True
    # Run-time values computed inside do not exist for threads that did not run the body.
    if values.spec_of(after, promote=False).types():
        return False
    return isinstance(before, Undefined) or objects.same_static(before, after)
