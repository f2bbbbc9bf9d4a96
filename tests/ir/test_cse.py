"""Common subexpressions: what is the same value is computed once, what is read anew each time is not."""

from __future__ import annotations

import pytest

from tilewright.ir.builder import Builder
from tilewright.ir.core import Block, Constant, Function, Value
from tilewright.ir.passes.cse import eliminate_common_subexpressions
from tilewright.ir.types import F32, I32, MemSpace, PtrType


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
