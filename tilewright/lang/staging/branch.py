"""``if`` statements."""

from __future__ import annotations

from typing import Any

from tilewright.ir.core import Block, Value
from tilewright.lang.staging import cells
from tilewright.lang.staging.location import here
from tilewright.lang.staging.regions import Join, Region, close_branch, decide, poison_fresh, state_object


class If:
    """One execution of an ``if`` statement by the rewritten code::

        branch = If(test, names, touched, objects)
        if branch.then(x, y):
            ...
            x, y = branch.swap(x, y)
        if branch.other():
            ...
            x, y = branch.join(x, y)

    A predicate known now runs one arm as Python does. A run-time predicate runs both, each into its own block.
    ``names`` are the variables that an arm assigns, ``touched`` those whose objects an arm may change.
    """

    __slots__ = ("after", "arms", "before", "cells", "names", "reach", "region", "states", "test", "touched")

    def __init__(self, test: Any, names: tuple[str, ...], touched: tuple[str, ...], objects: tuple[Any, ...]) -> None:
        self.test = decide(test)
        if isinstance(self.test, Value):
            self.names, self.touched = names, (touched, objects)
            self.region = Region("if", here(2))

    def then(self, *values: Any) -> bool:
        if not isinstance(self.test, Value):
            return self.test
        self.before = values
        self.reach = cells.Reach(zip(*self.touched, strict=True), zip(self.names, values, strict=True))
        self.cells = self.reach.cells
        self.arms = (Block(), Block())
        self.region.open(self.arms[0])
        return True

    def swap(self, *values: Any) -> tuple[Any, ...]:
        if not isinstance(self.test, Value):
            return values
        self.region.close()
        self.reach.check(self.region)
        self.after = values
        poison_fresh(self.cells, self.region)
        self.states = [cell.get() for cell in self.cells]
        self.reach.restore()
        return self.before

    def other(self) -> bool:
        if not isinstance(self.test, Value):
            return not self.test
        self.region.open(self.arms[1])
        return True

    def join(self, *values: Any) -> tuple[Any, ...]:
        if not isinstance(self.test, Value):
            return values
        self.region.close()
        self.reach.check(self.region)
        poison_fresh(self.cells, self.region)
        joins = [
            Join(name, before, (first, last), self.arms, self.region)
            for name, before, first, last in zip(self.names, self.before, self.after, values, strict=True)
        ]
        moved = [
            (cell, first, last)
            for cell, first in zip(self.cells, self.states, strict=True)
            if not (cell.same(first, last := cell.get()) and cell.same(last, cell.before))
        ]
        for cell, *states in moved:
            before, *sides = (state_object(cell, state) for state in (cell.before, *states))
            joins.append(Join(cell.path, before, tuple(sides), self.arms, self.region))
        results = close_branch(self.test, self.arms, joins)
        count = len(self.names)
        for (cell, *_), result in zip(moved, results[count:], strict=True):
            cell.fill(result)
        return tuple(results[:count])
