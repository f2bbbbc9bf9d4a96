"""Type promotion: the common type of two operands.

Equal types stay. A Python literal takes the other operand's type where that type can hold it. Integers: the wider
wins, at equal width the unsigned one, and Booleans count as Int32. A float beats an integer; of two floats the wider
wins, Float16 with BFloat16 meet in Float32. Storage formats compute in Float32 (floats of up to 8 bits, TFloat32) or
Int32 (integers of 4 bits).
"""

from __future__ import annotations

import functools
import math

from tilewright.errors import StagingError
from tilewright.ir.fold import normalise
from tilewright.ir.types import BF16, BOOL, F16, F32, F64, I32, NUMBERS, WIDE, ScalarType


@functools.cache
def common(a: ScalarType, b: ScalarType) -> ScalarType:
    """The type in which ``a`` op ``b`` is computed.

    >>> from tilewright.ir.types import I8, U32
    >>> common(I8, F16), common(F16, BF16), common(I32, U32), common(BOOL, BOOL)
    (f16, f32, u32, i32)
    """
    a, b = arithmetic(a), arithmetic(b)
    if a == b:
        return a
    if a.is_float and b.is_float:
        return (F64 if F64 in (a, b) else F32) if a.width != b.width or {a, b} == {F16, BF16} else a
    if a.is_float or b.is_float:
        return a if a.is_float else b
    if a.width != b.width:
        return a if a.width > b.width else b
    return a if a.kind == "uint" else b


@functools.cache
def arithmetic(a: ScalarType) -> ScalarType:
    """The type in which one operand of type ``a`` computes."""
    return (F32 if a.is_float else I32) if a.stored or a == BOOL else a


def literal(value: bool | int | float, other: ScalarType) -> ScalarType:
    """The type that a Python literal takes next to an operand of type ``other``."""
    other = arithmetic(other) if not isinstance(value, bool) else other
    if isinstance(value, bool):
        return other if not other.is_float else arithmetic(other)
    if isinstance(value, int):
        return other if other.is_float or normalise(other, value) == value else _integer_for(value, other)
    return other if other.is_float else F32


def holds(kind: ScalarType, value: bool | int | float) -> bool:
    """Whether a literal is a number of ``kind``, or between two of them; conversions would make the largest of it, cut
    its fraction off, or let it wrap.

    >>> from tilewright.ir.types import E4M3, I4
    >>> holds(E4M3, 0.1), holds(E4M3, 1000.0), holds(I4, 7), holds(I4, 8), holds(I4, 0.5)
    (True, False, True, False, False)
    """
    if kind.is_integer:
        return value == value and abs(value) < math.inf and normalise(kind, value) == value
    if not math.isfinite(value):
        return ("nan" if value != value else "inf") in kind.specials
    return kind.largest is None or abs(value) <= kind.largest


def default(value: bool | int | float) -> ScalarType:
    """The type of a Python literal that stands alone: Boolean, Int32 (Int64 where it does not fit) or Float32."""
    if isinstance(value, bool):
        return BOOL
    return _integer_for(value, I32) if isinstance(value, int) else F32


def _integer_for(value: int, other: ScalarType) -> ScalarType:
    from tilewright.ir.types import I64, U32, U64

    for candidate in (I32, U32, I64, U64):
        if candidate.width >= other.width and normalise(candidate, value) == value:
            return candidate
    raise StagingError(f"no integer of 64 bits holds {value}: a literal of more bits is Int128(...) or Uint128(...)")


@functools.cache
def unsigned(a: ScalarType) -> ScalarType:
    """The integer without a sign that is as wide as ``a``."""
    return next(kind for kind in (*NUMBERS, *WIDE) if kind.kind == "uint" and kind.width == a.width)


def quotient(a: ScalarType) -> ScalarType:
    """The type of a true division ``/`` whose operands have the common type ``a``."""
    return a if a.is_float else F64 if a.width > 32 else F32
