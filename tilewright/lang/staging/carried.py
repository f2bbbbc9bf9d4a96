"""What a run-time loop carries from one iteration to the next: variables, and cells of mutable objects that change.

A body is traced once with block arguments in place of the carried values. Variables that the body assigns are carried
from the start. What else changes shows after the trace: a cell of an object, or an assumption that did not hold (a
number said to be non-negative, a pointer's alignment). Then the trace is thrown away and done again, knowing better;
the knowledge is kept for the loop's place in the source, so that staging it again needs one trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tilewright.ir.core import Block, Constant, Value
from tilewright.ir.types import ScalarType
from tilewright.lang.numbers.facts import Facts
from tilewright.lang.staging import carry, cells, objects, specs
from tilewright.lang.staging.location import fail
from tilewright.lang.staging.poison import Undefined
from tilewright.lang.staging.regions import Region, changed_type, hints, poison_fresh, same_value, state_object
from tilewright.lang.staging.specs import Mismatch, Number, Spec

_CHANGING: dict[Any, set[str]] = {}
"""For each loop's place in the source, the paths of the cells that it was seen to change."""


class Place:
    """A variable or a cell that the loop may carry. ``spec`` is None for what has no value before the loop."""

    __slots__ = ("cell", "fresh", "init", "lost", "name", "spec")

    def __init__(self, name: str, init: Any, fresh: bool, cell: cells.Cell | None = None) -> None:
        self.name, self.init, self.fresh, self.cell = name, init, fresh, cell
        self.lost: str = ""
        self.spec: Spec | None = None
        if not isinstance(init, Undefined):
            self.spec = carry.spec_of(init)
            if isinstance(self.spec, Number) and _nonneg(init):
                self.spec.facts = Facts(nonneg=True)

    def values(self) -> list[Value]:
        return self.spec.conform(self.init, self.name) if self.spec else []


def _nonneg(value: Any) -> bool:
    return value >= 0 if type(value) is int else bool(getattr(value, "nonneg", False))


class Carried:
    """The places of one loop and the values that they enter with."""

    def __init__(
        self, region: Region, names: Sequence[str], fresh: Iterable[str], values: Sequence[Any],
        touched: Iterable[tuple[str, Any]],
    ) -> None:  # fmt: skip
        self.region = region
        self.variables = [Place(n, v, n in fresh) for n, v in zip(names, values, strict=True)]
        self.reach = cells.Reach(touched, zip(names, values, strict=True))
        self.cells = self.reach.cells
        self.changing = _CHANGING.setdefault(region.where, set())
        self.places = list(self.variables)
        self._choose_cells()

    def _choose_cells(self) -> None:
        """Carry the cells that are known to change; places that were carried before keep what was learnt of them."""
        carried = {id(place.cell) for place in self.places}
        picked = [cell for cell in self.cells if cell.path in self.changing and id(cell) not in carried]
        self.places += [Place(c.path, state_object(c, c.before), False, c) for c in picked]

    def inits(self) -> list[Value]:
        """The values that enter the loop (after a trace: of the pointer types that it settled on)."""
        while True:
            try:
                return [v for place in self.places for v in place.values()]
            except specs.Weaker:
                continue

    def arguments(self) -> list[Value]:
        """Fresh block arguments for all carried values."""
        return [
            Value(type_, hint)
            for place in self.places
            if place.spec
            for type_, hint in zip(place.spec.types(), hints(place.name, len(place.spec.types())), strict=True)
        ]

    def spread(self, values: Sequence[Value]) -> tuple[Any, ...]:
        """Give the variables and cells these values; the variables come back."""
        rest = iter(values)
        out: list[Any] = []
        for place in self.places:
            made = place.spec.rebuild(rest) if place.spec else place.init
            if place.lost:
                made = Undefined(place.name, place.lost)
            if place.cell:
                place.cell.fill(made)
            else:
                out.append(made)
        return tuple(out)

    def gather(self, values: Sequence[Any], again: bool = False) -> list[Value] | None:
        """The values at the end of a trace, or None when it must be done again."""
        self.reach.check(self.region)
        again |= self._find_changes()
        found: list[Value] = []
        for place, value in zip(self.places, [*values, *self._cell_states()], strict=True):
            if place.spec is None:
                continue
            try:
                found += self._conform(place, value)
            except specs.Weaker:
                again = True
            if isinstance(place.spec, Number) and place.spec.facts and not place.lost and not _nonneg(value):
                place.spec.facts, again = None, True
        if again:
            self._rewind()
            return None
        return found

    def adopt(self, values: Sequence[Any]) -> bool:
        """Carry variables that the condition of a `while` assigns first; True when the trace must be done again."""
        found = False
        for place, value in zip(self.variables, values, strict=True):
            if place.spec is None and not place.lost and not isinstance(value, Undefined):
                spec = carry.spec_of(value)
                if all(isinstance(t, ScalarType) for t in spec.types()):  # the zeros are never read
                    place.init = spec.rebuild(Constant(t, 0) for t in spec.types())
                    place.spec, found = spec, True
        return found

    def _conform(self, place: Place, value: Any) -> list[Value]:
        assert place.spec is not None
        if isinstance(value, Undefined) and not place.cell:
            place.lost = value.reason
            return place.values()
        try:
            return place.spec.conform(value, place.name)
        except Mismatch as found:
            if place.fresh:
                place.lost = f"the {self.region} leaves it as {found.got}, before it was {found.expected}"
                return place.values()
            raise changed_type(found, self.region) from None

    def _cell_states(self) -> list[Any]:
        return [state_object(place.cell, place.cell.get()) for place in self.places if place.cell]

    def _find_changes(self) -> bool:
        carried = {id(place.cell) for place in self.places}
        new = {c.path for c in self.cells if id(c) not in carried and not c.same(c.get(), c.before)}
        for cell in self.cells:
            if cell.path in new:
                self._check_carriable(cell)
        self.changing |= new
        return bool(new)

    def _check_carriable(self, cell: cells.Cell) -> None:
        before, after = state_object(cell, cell.before), state_object(cell, cell.get())
        if isinstance(after, Undefined):
            raise fail(f"'{cell.path}' has no value after one turn of the {self.region}: {after.reason}")
        if not carry.spec_of(before).types():
            raise fail(
                f"'{cell.path}' changes in the {self.region} from {objects.describe(before)} to "
                f"{objects.describe(after)}, but it is known only while staging; "
                "give it a run-time value before the loop (Int32(...), Boolean(...))"
            )

    def _rewind(self) -> None:
        for thing, name, _ in cells.fresh_attributes(self.cells):
            del vars(thing)[name]
        self.reach.restore()
        self._choose_cells()

    def settle(self) -> None:
        poison_fresh(self.cells, self.region)


def invariants(
    inits: list[Value], columns: Sequence[list[Value]], arguments: Sequence[list[Value]]
) -> dict[Value, Value]:
    """Carried values that never change: argument -> initial value. ``columns[k]`` lists what flows into the k-th
    block's successor, ``arguments[k]`` are that block's arguments."""
    found: dict[Value, Value] = {}
    for i, init in enumerate(inits):
        own = [args[i] for args in arguments]
        if all(column[i] in own or (isinstance(init, Constant) and same_value(column[i], init)) for column in columns):
            found.update((arg, init) for arg in own)
    return found


def substitute(block: Block, replaced: dict[Value, Value]) -> None:
    """Put other values in the place of some, in all operands of a block."""
    if replaced:
        for op in block.walk():
            op.operands = [replaced.get(v, v) for v in op.operands]
