"""The common part of all run-time constructs: deciding predicates, opening blocks, closing a branch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.errors import StagingError
from tilewright.ir.arithmetic import DIVISIONS
from tilewright.ir.builder import Builder
from tilewright.ir.core import Block, Constant, Location, Op, Value
from tilewright.ir.ops import PURE
from tilewright.ir.types import ScalarType
from tilewright.lang.numbers.numeric import Boolean, NumberInMemory, Numeric
from tilewright.lang.staging import printing
from tilewright.lang.staging.location import fail
from tilewright.lang.staging.values import ShapeMismatch

ADVICE = "keep one type (convert with Int32(...), Float32(...) or .to(...)) or use another variable"
_SELECT_LIMIT = 8


def decide(test: Any) -> bool | Value:
    """A predicate: a Python bool when it is known now, else the i1 value."""
    if isinstance(test, NumberInMemory):
        test = test.load()
    if isinstance(test, Numeric):
        value = test.value if isinstance(test, Boolean) else Boolean(test).value
        return value if isinstance(value, Value) else bool(value)
    return bool(test)


class Region:
    """One open block of a run-time construct; ``what`` and ``where`` describe the construct in messages.

    What a program does while a ``block`` is traced is in three places: its ops are in the block, what it changed in
    Python's objects is known to a :class:`~tilewright.lang.staging.region_state.RegionState`, and the rest (allocated
    shared memory, noted variables, what it printed) is in the builder, which goes back to ``before`` where the trace
    is thrown away.
    """

    def __init__(self, what: str, where: Location | None) -> None:
        self.what, self.where = what, where
        self._outer: Block | None = None

    def open(self, block: Block) -> None:
        builder = Builder.current()
        self.block, self.before = block, builder.checkpoint()
        builder.regions.append(self)
        self._outer, builder.block = builder.block, block

    def close(self, keep: bool = True) -> None:
        """The block ends. Without ``keep`` the caller throws it away: the builder is as it was when it was opened."""
        builder = Builder.current()
        if not builder.regions or builder.regions[-1] is not self:
            raise fail(f"the {self} was left before its end")
        builder.regions.pop()
        assert self._outer is not None
        builder.block = self._outer
        if not keep:
            builder.go_back(self.before)
        printing.show()

    def __str__(self) -> str:
        return f"run-time {self.what} at line {self.where.line}" if self.where else f"run-time {self.what}"


def can_speculate(block: Block) -> bool:
    """Whether running the block when it is not asked for has no effect but its cost."""
    return len(block.ops) <= _SELECT_LIMIT and all(_harmless(op) for op in block.ops)


def _harmless(op: Op) -> bool:
    # A division by zero is a fault in the simulator; by a constant that is not zero it cannot fail.
    if op.opcode in DIVISIONS:
        return isinstance(op.operands[1], Constant) and op.operands[1].value != 0
    return op.opcode in PURE or (op.opcode == "sreg" and op.attrs.get("name") != "clock")


Pair = tuple[Value, Value]


def same_value(a: Value, b: Value) -> bool:
    if isinstance(a, Constant) and isinstance(b, Constant):
        return a.type == b.type and repr(a.value) == repr(b.value)
    return a is b


def emit_branch(
    condition: Value, arms: tuple[Block, Block], pairs: Sequence[Pair], names: Sequence[str], speculate: bool = True
) -> list[Value]:
    """Close a branch: one result for each pair, by ``select`` where that is as good as an ``if``."""
    builder = Builder.current()
    # What both arms leave the same needs no result.
    differing = [i for i, (a, b) in enumerate(pairs) if not same_value(a, b)]
    results = [a for a, _ in pairs]
    scalar = all(isinstance(pairs[i][0].type, ScalarType) for i in differing)
    if speculate and scalar and can_speculate(arms[0]) and can_speculate(arms[1]):
        # Both arms run in all lanes: they cannot fail and have no effects, so a select costs less than a branch.
        for arm in arms:
            builder.block.ops += arm.ops
        for i in differing:
            results[i] = builder.select(condition, *pairs[i])
            _name(results[i], names[i])
        return results
    for arm, side in zip(arms, (0, 1), strict=True):
        with builder.inside(arm):
            builder.emit("yield", [pairs[i][side] for i in differing])
    op = builder.emit("if", (condition,), [pairs[i][0].type for i in differing], regions=arms)
    for i, value in zip(differing, op.results, strict=True):
        results[i] = value
        _name(value, names[i])
    return results


def _name(value: Value, name: str | None) -> None:
    if name and value.hint is None and not isinstance(value, Constant):
        value.hint = name


def hints(name: str, count: int) -> list[str]:
    """Names for the values of one place; '' for what has no name."""
    return [name] if count == 1 else [f"{name}_{i}" if name else "" for i in range(count)]


def changed_type(change: ShapeMismatch, region: Region) -> StagingError:
    return fail(
        f"the variable '{change.path}' changes its type in the {region}: {change.expected} against {change.got}; "
        f"{ADVICE}"
    )
