"""Common subexpressions: what is the same value is computed once, what is read anew each time is not."""

from __future__ import annotations

import pytest

from tilewright.ir.builder import Builder
from tilewright.ir.core import Block, Constant, Function, Value
from tilewright.ir.passes.cse import eliminate_common_subexpressions
from tilewright.ir.types import BOOL, F32, I32, I64, MemSpace, PtrType, VecType


def opcodes(builder: Builder) -> list[str]:
    function = Function("kernel", "kernel", builder.block)
    eliminate_common_subexpressions(function)
    return [op.opcode for op in function.body.ops]


@pytest.mark.parametrize(("register", "reads"), [("tid.x", 1), ("clock", 2)])
def test_special_registers_are_read_once_but_for_the_clock(register: str, reads: int) -> None:
    builder = Builder(Block())
    first, second = builder.sreg(register), builder.sreg(register)
    builder.binary("sub", second, first)
    assert opcodes(builder) == ["sreg"] * reads + ["sub"]


def test_loads_are_not_shared_and_literals_of_two_types_are_two() -> None:
    pointer, x = Value(PtrType(F32, MemSpace.GMEM, 4), "p"), Value(I32, "x")
    builder = Builder(Block([pointer, x]))
    for _ in range(2):
        builder.load(builder.ptr_add(pointer, x))
    builder.binary("add", x, Constant(I32, 5))
    builder.binary("add", x, Constant(I32, 6))
    assert opcodes(builder) == ["ptr.add", "load", "load", "add", "add"]


def test_a_region_shares_with_what_is_around_it_but_not_with_what_comes_after_or_beside() -> None:
    x, flag = Value(I32, "x"), Value(BOOL, "c")
    builder = Builder(Block([x, flag]))
    outside = builder.binary("mul", x, x)
    sides = [Block(), Block()]
    for side in sides:
        with builder.inside(side):
            shared = builder.binary("mul", x, x)
            own = builder.binary("sub", x, outside)
            builder.emit("yield", (shared, own))
    branch = builder.emit("if", (flag,), (I32, I32), {}, sides)
    builder.binary("sub", x, outside)
    assert opcodes(builder) == ["mul", "if", "sub"]
    assert [[op.opcode for op in side.ops] for side in sides] == [["sub", "yield"]] * 2
    assert all(side.ops[-1].operands == [outside, side.ops[0].result] for side in sides)
    assert branch.regions == sides


def test_readers_of_a_removed_duplicate_become_equal() -> None:
    x = Value(I32, "x")
    builder = Builder(Block([x]))
    for _ in range(2):
        builder.binary("sub", builder.binary("mul", x, x), x)
    assert opcodes(builder) == ["mul", "sub"]


def test_equal_operands_are_not_enough() -> None:
    """Result types, attributes and the types of literals tell ops apart."""
    x, v = Value(I32, "x"), Value(VecType(F32, 4), "v")
    builder = Builder(Block([x, v]))
    builder.cast(x, F32)
    builder.cast(x, I64)
    builder.extract(v, 0)
    builder.extract(v, 1)
    builder.emit("select", (Value(BOOL), Constant(I32, 1), Constant(I32, 0)), (I32,))
    builder.emit("ptr.fromint", (Constant(I64, 1),), (PtrType(F32, MemSpace.GMEM, 4),))
    builder.emit("ptr.fromint", (Constant(I32, 1),), (PtrType(F32, MemSpace.GMEM, 4),))
    assert len(opcodes(builder)) == 7


def test_ops_that_differ_in_one_respect_are_two() -> None:
    """In the opcode, an operand or their order, the type of the result, an attribute; but not in ``wraps``."""
    x, y, v = Value(I32, "x"), Value(I32, "y"), Value(VecType(I32, 4), "v")
    given = [
        ("sub", (x, y), I32, {}),
        ("add", (x, y), I32, {}),
        ("sub", (y, x), I32, {}),
        ("sub", (x, x), I32, {}),
        ("sub", (x, Constant(I32, 1)), I32, {}),
        ("sub", (x, Constant(I32, 2)), I32, {}),
        ("cast", (x,), F32, {}),
        ("cast", (x,), I64, {}),
        ("sreg", (), I32, {"name": "tid.x"}),
        ("sreg", (), I32, {"name": "tid.y"}),
        ("vec.extract", (v,), I32, {"index": 0}),
        ("vec.extract", (v,), I32, {"index": 1}),
        ("lt", (x, y), BOOL, {}),
        ("gt", (x, y), BOOL, {}),
    ]
    builder = Builder(Block([x, y, v]))
    for _ in range(2):
        for opcode, operands, result, attrs in given:
            builder.emit(opcode, operands, (result,), dict(attrs))
    builder.emit("sub", (x, y), (I32,), {"wraps": True})
    assert opcodes(builder) == [opcode for opcode, *_ in given]
