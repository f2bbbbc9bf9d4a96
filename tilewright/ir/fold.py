"""Constant folding and the identities that simplify index arithmetic (x+0, x*1, x*0).

What a literal makes of an operation is in :data:`tilewright.ir.arithmetic.TABLE`. Only integers and Booleans are
folded: a fused or approximate operation on floats is the machine's to round, and x+0.0 is not x for every float.
"""

from __future__ import annotations

import math

from tilewright.ir.arithmetic import TABLE, convert, evaluate, normalise
from tilewright.ir.core import Constant, Value
from tilewright.ir.types import BOOL, PtrType, ScalarType, element_of, with_element


def common_alignment(align: int, step: int) -> int:
    """The alignment that an ``align``-aligned address has after moving by a multiple of ``step`` bytes."""
    return math.gcd(align, step) if step else align


def binary(opcode: str, a: Value, b: Value) -> Value | None:
    """The folded value, or None when an op is needed (also for what the machine shall report: a division by zero)."""
    elem = element_of(a.type)
    row = TABLE[opcode].on(elem)
    if elem.is_float or row is None:
        return None
    if isinstance(a, Constant) and isinstance(b, Constant):
        try:
            return Constant(a.type, evaluate(opcode, elem, a.value, b.value))
        except ZeroDivisionError:
            return None
    if isinstance(b, Constant) and int(b.value) in row.right:
        literal, other = row.right[int(b.value)], a
    elif isinstance(a, Constant) and int(a.value) in row.left:
        literal, other = row.left[int(a.value)], b
    else:
        return None
    return other if literal is None else Constant(a.type, normalise(elem, literal))


def compare(opcode: str, a: Value, b: Value) -> Value | None:
    if isinstance(a, Constant) and isinstance(b, Constant) and not isinstance(a.type, PtrType):
        return Constant(with_element(a.type, BOOL), evaluate(opcode, element_of(a.type), a.value, b.value))
    return None


def unary(opcode: str, a: Value) -> Value | None:
    """Negations of floats too: they round nothing."""
    if not isinstance(a, Constant) or opcode not in ("neg", "not", "abs"):
        return None
    return Constant(a.type, evaluate(opcode, element_of(a.type), a.value))


def cast(a: Value, elem: ScalarType) -> Value | None:
    """A literal converts at once, as the machine converts it."""
    if not isinstance(a, Constant):
        return None
    return Constant(with_element(a.type, elem), convert(element_of(a.type), elem, a.value))
