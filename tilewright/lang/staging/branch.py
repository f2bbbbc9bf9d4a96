"""``if`` statements, and every other choice between two blocks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tilewright.ir.builder import Builder
from tilewright.ir.core import Block, Value
from tilewright.lang.staging import values
from tilewright.lang.staging.aliases import ONE_OF_TWO, AliasPairs
from tilewright.lang.staging.contents import same
from tilewright.lang.staging.location import here
from tilewright.lang.staging.region_state import RegionState, detached
from tilewright.lang.staging.regions import Pair, Region, changed_type, decide, emit_branch, hints
from tilewright.lang.staging.undefined import UNASSIGNED, Undefined
from tilewright.lang.staging.values import ShapeMismatch, Spec


class If:
    """One execution of an ``if`` statement by the rewritten code, ``x`` and ``y`` being the variables that it assigns::

        branch = If(test, ("x", "y"), (x, y), touched, objects)
        if branch.begin_then():
            ...
            x, y = branch.end_then((x, y))
        if branch.begin_else():
            ...
            x, y = branch.end_else((x, y))

    A predicate known now runs one arm as Python does. A run-time predicate runs both, each into its own block.
    ``touched`` are the variables whose ``objects`` an arm may change.
    """

    __slots__ = ("arms", "first", "region", "state", "test")

    def __init__(
        self,
        test: Any,
        names: tuple[str, ...],
        variables: tuple[Any, ...],
        touched: tuple[str, ...],
        objects: tuple[Any, ...],
    ) -> None:
        self.test = decide(test)
        if isinstance(self.test, Value):
            self.state = RegionState(names, variables, touched, objects)
            self.region = Region("if", here(2))
            self.arms = (Block(), Block())

    def begin_then(self) -> bool:
        """Whether to run the first arm now."""
        if not isinstance(self.test, Value):
            return self.test
        self.region.open(self.arms[0])
        return True

    def end_then(self, variables: tuple[Any, ...]) -> tuple[Any, ...]:
        """The first arm has ended: keep what it left, and begin the second one from the same state."""
        if not isinstance(self.test, Value):
            return variables
        self.first = self._end(variables)
        return self.state.restore()

    def begin_else(self) -> bool:
        """Whether to run the second arm now."""
        if not isinstance(self.test, Value):
            return not self.test
        self.region.open(self.arms[1])
        return True

    def end_else(self, variables: tuple[Any, ...]) -> tuple[Any, ...]:
        """Both arms have ended: emit the branch, and go on with what it gives."""
        if not isinstance(self.test, Value):
            return variables
        state, last = self.state, self._end(variables)
        before, first = state.before, [*self.first, *state.before[len(self.first) :]]
        pairs = AliasPairs(state, zip(first, last, strict=True))
        # A variable that both arms left as the same object, or as it was before, needs no result of the branch.
        differ = [
            i
            for i, sides in enumerate(zip(first, last, strict=True))
            if sides[0] is not sides[1] and not (same(*sides) and same(last[i], before[i]))
        ]
        arms = []
        for side, arm in zip((first, last), self.arms, strict=True):
            state.restore(side)  # what an arm left is read as long as the places hold what it left
            with Builder.current().inside(arm):  # classes may compute with their values where they make an object
                arms.append([detached(side[i], pairs.kept) for i in differ])
        for k, i in enumerate(differ):
            if i in pairs.of_two:
                arms[0][k] = arms[1][k] = Undefined(state.labels[i], ONE_OF_TWO)
        labels, sides = [state.labels[i] for i in differ], zip([before[i] for i in differ], *arms, strict=True)
        final = list(last)
        for i, value in zip(differ, emit_joined(self.test, self.arms, self.region, labels, sides), strict=True):
            final[i] = value
        return state.restore(final)

    def _end(self, variables: tuple[Any, ...]) -> list[Any]:
        self.region.close()
        return self.state.now(variables, self.region)


def emit_joined(
    test: Value, arms: tuple[Block, Block], region: Region, labels: Sequence[str], sides: Iterable[Sequence[Any]]
) -> list[Any]:
    """Emit the branch; what each label holds afterwards, where ``sides`` are what it held before and at the end of
    either arm. What the arms leave with different types becomes an Undefined that says so."""
    triples = zip(labels, sides, strict=True)
    joins = [_common(label, before, (first, last), arms, region) for label, (before, first, last) in triples]
    joined = [item for item in joins if not isinstance(item, Undefined)]
    names = [
        name
        for label, item in zip(labels, joins, strict=True)
        if not isinstance(item, Undefined)
        for name in hints(label, len(item[1]))
    ]
    results = iter(emit_branch(test, arms, [pair for _, pairs in joined for pair in pairs], names))
    return [item if isinstance(item, Undefined) else item[0].rebuild(results) for item in joins]


def _common(
    label: str, before: Any, sides: tuple[Any, Any], arms: tuple[Block, Block], region: Region
) -> tuple[Spec, list[Pair]] | Undefined:
    """The type that both arms leave, with the pairs of their values; an Undefined where they leave different types."""
    lost = [side for side in sides if isinstance(side, Undefined)]
    if lost:
        if len(lost) == 2 or lost[0].reason != UNASSIGNED:  # why it was without a value before is the reason still
            return lost[0]
        return Undefined(label, f"it is assigned in only one branch of the {region}; assign it before")
    try:
        spec = values.unify(*sides, label)
        listed = [_inside(arm, spec, side, label) for arm, side in zip(arms, sides, strict=True)]
        return spec, list(zip(*listed, strict=True))
    except ShapeMismatch as found:
        # A number that had a value before and changes its type is refused at once. Anything else merely has no value
        # after the branch, which is an error only where it is read.
        if found.hard and not isinstance(before, Undefined) and before is not None:
            raise changed_type(found, region) from None
        reason = f"the branches of the {region} leave it with different kinds, {found.expected} and {found.got}"
        return Undefined(label, reason)


def _inside(arm: Block, spec: Spec, value: Any, label: str) -> list[Value]:
    with Builder.current().inside(arm):
        return spec.conform(value, label)
