"""Folding: what a literal makes of an operation is what the machine would have computed, and the identities hold."""

from __future__ import annotations

import math
import operator
from fractions import Fraction

import numpy as np
import pytest

from tilewright.errors import StagingError
from tilewright.ir import fold
from tilewright.ir.arithmetic import TABLE, normalise
from tilewright.ir.builder import Builder
from tilewright.ir.core import Block, Constant, Value
from tilewright.ir.types import BF16, BOOL, F32, I8, I32, SCALARS, U8, U32, ScalarType

OPERATIONS = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "min": min,
    "max": max,
    "shl": lambda x, y: x << y if 0 <= y < 8 else 0,
    "shr": lambda x, y: x >> (y if 0 <= y < 8 else 8),
    "floordiv": operator.floordiv,
    "floormod": operator.mod,
    "div": lambda x, y: math.trunc(Fraction(x, y)),
    "rem": lambda x, y: x - y * math.trunc(Fraction(x, y)),
}
NUMBERS = {I8: (-128, -7, -1, 0, 1, 2, 3, 8, 127), U8: (0, 1, 2, 3, 8, 200, 255)}


def defined(opcode: str, y: int) -> bool:
    return y != 0 or opcode not in ("div", "rem", "floordiv", "floormod")


@pytest.mark.parametrize("kind", NUMBERS, ids=str)
@pytest.mark.parametrize("opcode", OPERATIONS)
def test_two_literals(opcode: str, kind: ScalarType) -> None:
    for x in NUMBERS[kind]:
        for y in NUMBERS[kind]:
            found = fold.binary(opcode, Constant(kind, x), Constant(kind, y))
            if defined(opcode, y):
                exact = OPERATIONS[opcode](x, y)
                assert isinstance(found, Constant) and found.type is kind
                assert found.value == int(np.array(exact & 255, np.uint8).view(kind.dtype)), (x, y)
            else:
                assert found is None  # left to the machine, which says what is wrong


@pytest.mark.parametrize("opcode", OPERATIONS)
@pytest.mark.parametrize("literal", (0, 1, 2))
def test_a_literal_beside_a_run_time_value_is_folded_only_where_that_is_an_identity(opcode: str, literal: int) -> None:
    x = Value(I32, "x")
    sample = [-9, -1, 0, 1, 7]
    for left in (False, True):
        operands = (Constant(I32, literal), x) if left else (x, Constant(I32, literal))
        found = fold.binary(opcode, *operands)
        if found is None:
            continue
        for number in sample:
            a, b = (literal, number) if left else (number, literal)
            if defined(opcode, b):
                assert OPERATIONS[opcode](a, b) == (number if found is x else found.value), (a, b)


def test_the_identities_of_index_arithmetic_leave_no_operation() -> None:
    x, zero, one = Value(I32, "x"), Constant(I32, 0), Constant(I32, 1)
    for opcode in ("add", "sub", "or", "xor", "shl", "shr"):
        assert fold.binary(opcode, x, zero) is x
    for opcode in ("mul", "div", "floordiv"):
        assert fold.binary(opcode, x, one) is x
    for opcode, operands in (("mul", (x, zero)), ("and", (zero, x)), ("rem", (x, one)), ("floormod", (x, one))):
        found = fold.binary(opcode, *operands)
        assert isinstance(found, Constant) and found.value == 0 and found.type is I32
    assert fold.binary("add", Value(F32, "f"), Constant(F32, 0.0)) is None  # -0.0 + 0.0 is 0.0


def test_casts_of_literals() -> None:
    def cast(value: float, source: ScalarType, to: ScalarType) -> object:
        found = fold.cast(Constant(source, value), to)
        return found.value if isinstance(found, Constant) else found

    assert cast(300, I32, U8) == 44 and cast(-1, I32, U32) == (1 << 32) - 1
    assert cast(-2.75, F32, I8) == -2 and cast(0.3, F32, BOOL) is True
    assert cast(1 / 3, F32, BF16) == 0.333984375
    for value, to, want in ((300.0, U8, 255), (-1.0, U8, 0), (-129.0, I8, -128), (float("nan"), I32, 0)):
        assert cast(value, F32, to) == want, "as the machine converts"


@pytest.mark.parametrize("opcode", ["lt", "le", "gt", "ge", "eq", "ne"])
def test_a_comparison_of_literals_is_no_op(opcode: str) -> None:
    builder, compare = Builder(Block([])), getattr(operator, opcode)
    for a, b in ((1, 2), (2, 2), (3, 2)):
        found = builder.compare(opcode, Constant(I32, a), Constant(I32, b))
        assert isinstance(found, Constant) and found.value is compare(a, b)
    assert not builder.block.ops
    builder.compare(opcode, Value(I32), Constant(I32, 1))
    assert [op.opcode for op in builder.block.ops] == [opcode]


def test_a_builder_is_only_there_while_staging() -> None:
    with pytest.raises(StagingError, match="only inside functions marked @cute.jit or @cute.kernel"):
        Builder.current()


@pytest.mark.parametrize("elem", [elem for elem in SCALARS.values() if elem.is_float], ids=str)
def test_a_literal_is_infinite_where_its_type_is(elem: ScalarType) -> None:
    found = normalise(elem, -math.inf)
    assert (found == -math.inf) if "inf" in elem.specials else (found != found or -math.inf < found < 0)


@pytest.mark.parametrize("opcode", [name for name, row in TABLE.items() if row.on(F32) is not None])
def test_floats_are_left_to_the_machine(opcode: str) -> None:
    """x + 0.0 is not x for -0.0, x * 0.0 not 0.0 for infinity, and 0.5 is no 0."""
    x = Value(F32, "x")
    for number in (0.0, -0.0, 0.5, 1.0, -1.0):
        literal = Constant(F32, number)
        assert fold.binary(opcode, x, literal) is fold.binary(opcode, literal, x) is None
        assert fold.binary(opcode, literal, literal) is None
