"""The values that a run-time loop carries from one iteration to the next: variables, and places in mutable objects that
change.

A body is traced once with block arguments in place of the carried values. Variables that the body assigns are carried
from the start. What else changes shows after the trace: a place, or an assumption that did not hold (a number said to
be non-negative, a pointer's alignment). Then the trace is thrown away and done again, knowing better; the knowledge is
kept for the loop's line in the source, so that staging it again needs one trace.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tilewright.ir.builder import Builder
from tilewright.ir.core import Block, Constant, Value
from tilewright.lang.staging import objects, values
from tilewright.lang.staging.aliases import ONE_OF_TWO, AliasPairs
from tilewright.lang.staging.contents import can_change
from tilewright.lang.staging.location import fail
from tilewright.lang.staging.region_state import RegionState
from tilewright.lang.staging.regions import Region, changed_type, hints, same_value
from tilewright.lang.staging.undefined import Undefined
from tilewright.lang.staging.values import CompoundSpec, KeptObjectSpec, ProtocolSpec, ShapeMismatch, Spec, StaticSpec

_CHANGING: dict[Any, set[str]] = {}
"""For each loop's place in the source, the paths of the places that it was seen to change."""


class LoopCarriedValue:
    """One value that a loop carries: the ``index``-th of its state. ``spec`` is None for what has no value before the
    loop; ``lost`` says why it has no value after it. ``temporary``: every iteration assigns it before it reads it."""

    __slots__ = ("index", "init", "label", "lost", "spec", "temporary")

    def __init__(self, index: int, label: str, init: Any, temporary: bool, spec: Spec | None) -> None:
        self.index, self.label, self.init, self.temporary = index, label, init, temporary
        self.lost = ""
        self.spec = spec

    def conform(self, value: Any, region: Region) -> list[Value]:
        """The values at the end of an iteration."""
        if self.spec is None:
            return []
        if isinstance(value, Undefined):
            return self.spec.conform(self.init, self.label)
        try:
            return self.spec.conform(value, self.label)
        except ShapeMismatch as found:
            # What is known only while staging, and a tensor or another object of the protocol with other static parts
            # (a view of other registers), merely has no value at the start of an iteration and after the loop: an
            # error where it is read. Numbers and containers that change are refused at once.
            if not self.temporary and (found.hard or not isinstance(self.spec, (StaticSpec, ProtocolSpec))):
                raise changed_type(found, region) from None
            self.lost = f"the {region} leaves it as {found.got}, before it was {found.expected}"
            return self.spec.conform(self.init, self.label)


class LoopValues:
    """The part of its ``state`` that one loop carries. ``temporaries`` are variables that belong to one iteration."""

    def __init__(self, region: Region, state: RegionState, temporaries: Sequence[str]) -> None:
        self.region, self.state = region, state
        self.changing = _CHANGING.setdefault(region.where, set())
        self.temporaries = temporaries
        self.carried = [self.carry(i) for i in range(state.count)]
        self.carry_changing()

    def carry(self, index: int) -> LoopCarriedValue:
        """The variable or place as it is now known. An object that can change stays the object that it is, and its
        places are carried, unless an iteration was seen to put another object there."""
        label, init = self.state.labels[index], self.state.before[index]
        spec = None if isinstance(init, Undefined) else values.spec_of(init, path=label, keeps=self._keeps)
        return LoopCarriedValue(index, label, init, index < self.state.count and label in self.temporaries, spec)

    def _keeps(self, value: Any, path: str) -> bool:
        return path not in self.changing and can_change(value)

    def carry_changing(self) -> None:
        """Carry the places that are known to change; what was carried before keeps what was learnt of it."""
        carried_indices = {carried.index for carried in self.carried}
        self.state.expect(self.changing)
        for i in range(self.state.count, len(self.state.labels)):
            if i not in carried_indices and self.state.labels[i] in self.changing:
                self.carried.append(self.carry(i))

    def arguments(self) -> list[Value]:
        """Fresh block arguments for all carried values."""
        return [
            Value(type_, hint)
            for carried in self.carried
            if carried.spec
            for type_, hint in zip(carried.spec.types(), hints(carried.label, len(carried.spec.types())), strict=True)
        ]

    def spread(self, values: Sequence[Value]) -> tuple[Any, ...]:
        """Give the variables and places these values; the variables come back."""
        rest = iter(values)
        state = list(self.state.before)
        for carried in self.carried:
            made = carried.spec.rebuild(rest) if carried.spec else carried.init
            state[carried.index] = Undefined(carried.label, carried.lost) if carried.lost else made
        return self.state.restore(state)

    def gather(self, variables: Sequence[Any]) -> list[Value] | None:
        """The values at the end of a trace, or None when it must be done again."""
        state = self.state.now(variables, self.region)
        of_two = AliasPairs(self.state, zip(self.state.before, state, strict=True)).of_two
        # A trace is repeated with what it taught: further places, values that are lost, weaker types. None of these is
        # ever taken back, so the traces come to an end.
        again = self._find_changes(of_two)
        values: list[Value] = []
        for i, carried in enumerate(self.carried):
            value = state[carried.index]
            if carried.index in of_two:
                value = Undefined(carried.label, ONE_OF_TWO)
            if isinstance(value, Undefined) and carried.spec and not carried.lost:
                carried.lost = value.reason
                again |= not carried.temporary  # an iteration that reads it before it is assigned must not find it
            if replaced := set(_replaced(carried.spec, value, carried.label)):
                self.changing.update(replaced)
                carried, again = self.carry(carried.index), True
                self.carried[i] = carried
            again |= carried.spec is not None and carried.spec.weaken(value)
            had = carried.lost
            values += carried.conform(value, self.region)
            again |= carried.lost != had and not carried.temporary
        if not again:
            return values
        self.state.restore()
        self.carry_changing()
        return None

    def _find_changes(self, of_two: set[int]) -> bool:
        """Whether places changed that are not carried; they are known to change from now on."""
        carried_labels = {self.state.labels[carried.index] for carried in self.carried[self.state.count :]}
        new = {place.path: place for place in self.state.changed() if place.path not in carried_labels}
        for i, place in enumerate(self.state.places.values(), self.state.count):
            path, after = place.path, place.get()
            if i in of_two:
                raise fail(f"'{path}' has no value after one iteration of the {self.region}: {ONE_OF_TWO}")
            if path in new and not values.spec_of(place.before).types() and not can_change(after):
                raise fail(
                    f"'{path}' changes in the {self.region} from {objects.describe(place.before)} to "
                    f"{objects.describe(after)}, but it is known only while staging; "
                    "give it a run-time value before the loop (Int32(...), Boolean(...))"
                )
        self.changing.update(new)  # `|=` would make a set of its own
        return bool(new)

    def thrown_away(self, variables: Sequence[Any]) -> tuple[Any, ...]:
        """A trace that ends with these variables does not count: the variables before it, and objects are as they were.
        An error where it changed what cannot be put back."""
        self.state.now(variables, self.region)
        return self.state.restore()

    def as_traced(self, variables: Sequence[Any]) -> tuple[Any, ...]:
        """The variables of an unrolled loop, between two iterations: Python numbers in them and in the places that the
        loop changes are of the types that they have in a run-time loop. What had no value before it is not carried."""
        for place in self.state.places.values():
            if type(held := place.get()) in objects.LITERALS:
                place.put(values.promoted(held))
        return tuple(
            value if carried.spec is None else values.promoted(value, carried.spec)
            for carried, value in zip(self.carried, variables, strict=False)  # of the places it has more
        )

    def close(
        self,
        opcode: str,
        operands: Sequence[Value],
        blocks: Sequence[Block],
        arguments: Sequence[list[Value]],
        ends: Sequence[tuple[str, list[Value], list[Value]]],
        attrs: dict[str, Any] | None = None,
    ) -> tuple[Any, ...]:
        """Emit the loop and go on with what it gives. ``arguments[k]`` are the carried values at the start of the k-th
        block; ``ends[k]`` is the op that ends it, with its own operands and the carried values. What never changes in
        the loop is not carried."""
        self.state.restore()  # what the carried objects held before the loop
        inits = [v for c in self.carried if c.spec for v in c.spec.conform(c.init, c.label)]
        kept = [
            i
            for i, init in enumerate(inits)
            if not _stays(init, [own[i] for own in arguments], [last[i] for _, _, last in ends])
        ]
        stays = set(range(len(inits))).difference(kept)
        replaced = {own[i]: inits[i] for i in stays for own in arguments}
        builder = Builder.current()
        for block, (end, others, last) in zip(blocks, ends, strict=True):
            with builder.inside(block):
                builder.emit(end, [*others, *(last[i] for i in kept)])
            block.args = [a for a in block.args if a not in replaced]
            if replaced:
                for op in block.walk():
                    op.operands = [replaced.get(v, v) for v in op.operands]
        results = [arguments[-1][i] for i in kept]
        loop = builder.emit(opcode, [*operands, *(inits[i] for i in kept)], [r.type for r in results], attrs, blocks)
        for i, result in zip(kept, loop.results, strict=True):
            result.hint, inits[i] = arguments[0][i].hint, result
        return self.spread(inits)


def _stays(init: Value, arguments: Sequence[Value], ends: Sequence[Value]) -> bool:
    """Whether a carried value stays as it was before the loop: every block passes it on, or gives it the constant with
    which it began. Its uses then read that value, and the loop does not carry it."""
    return all(v in arguments or (isinstance(init, Constant) and same_value(v, init)) for v in ends)


def _replaced(spec: Spec | None, value: Any, path: str) -> Iterator[str]:
    """The paths inside ``value`` where another object is than the one that was to stay there."""
    if isinstance(spec, KeptObjectSpec) and value is not spec.value and not isinstance(value, Undefined):
        yield path
    if isinstance(spec, CompoundSpec) and type(value) is spec.type and objects.labels_of(value) == spec.labels:
        for part, label, item in zip(spec.parts, spec.labels, spec.split(value), strict=True):
            yield from _replaced(part, item, f"{path}{label}")
