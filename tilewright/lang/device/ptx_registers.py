"""Values of a program in the registers of inline PTX, and out of them."""

from __future__ import annotations

from tilewright.errors import ConstraintError
from tilewright.ir.builder import Builder
from tilewright.ir.core import Value
from tilewright.ir.types import I64, PtrType, ScalarType, Type, VecType


def bits_of(kind: Type) -> int:
    """The width of a number, or of all numbers of a vector."""
    assert isinstance(kind, (ScalarType, VecType))
    return kind.width if isinstance(kind, ScalarType) else kind.elem.width * kind.n


def into(value: Value, register: ScalarType) -> Value:
    """A value in a register of the asm text."""
    builder = Builder.current()
    if isinstance(value.type, PtrType):  # of shared memory, 32 bits say all
        value = builder.emit("ptr.toint", (value,), (I64,)).result
        return builder.cast(value, register)
    kind = value.type
    if not isinstance(kind, (ScalarType, VecType)):
        raise ConstraintError(f"inline_asm: an operand of type {kind} fits no register")
    if isinstance(kind, ScalarType) and not kind.is_float and not register.is_float and kind.width < register.width:
        return builder.cast(value, register)  # as C does with small integers
    if bits_of(kind) != register.width:
        raise ConstraintError(
            f"inline_asm: an operand of type {kind} in a register of {register.width} bits; convert it"
        )
    return builder.bitcast(value, register)


def out_of(value: Value, kind: Type) -> Value:
    """A register of the asm text as a value of the type asked for."""
    builder, register = Builder.current(), value.type
    assert isinstance(register, ScalarType)
    if isinstance(kind, ScalarType) and not kind.is_float and not register.is_float and kind.width < register.width:
        return builder.cast(value, kind)
    if bits_of(kind) != register.width:
        raise ConstraintError(f"inline_asm: a result of type {kind} from a register of {register.width} bits")
    return builder.bitcast(value, kind)
