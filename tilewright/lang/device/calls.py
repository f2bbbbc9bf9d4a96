"""Operands of instruction calls."""

from __future__ import annotations

from typing import Any

from tilewright.ir.builder import Builder
from tilewright.ir.core import Value
from tilewright.ir.instruction import Instruction
from tilewright.ir.types import Type
from tilewright.lang.numbers.numeric import Int32, NumberInMemory, as_numeric
from tilewright.lang.tensors.pointer import Pointer


def call(atom: Instruction, *operands: Any, results: tuple[Type, ...] = (), **attrs: Any) -> list[Value]:
    accessed = {access.operand for access in atom.accesses}
    values = [x.ptr if isinstance(x, NumberInMemory) and i in accessed else x for i, x in enumerate(operands)]
    return Builder.current().call(atom, [operand(x) for x in values], results, **attrs)


def operand(x: Any) -> Value:
    if isinstance(x, Value):
        return x
    if isinstance(x, Pointer):
        return x.value()
    return as_numeric(x).ir_value()


def i32(x: Any) -> Value:
    return Int32(x).ir_value()
