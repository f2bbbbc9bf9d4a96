"""Constant folding and the identities that index arithmetic lives by (x+0, x*1, x*0).

Folding computes exactly what both machines compute: integers wrap to their width, floats are rounded to their type.
Only integers take part in the identities: x+0.0 is not x for every float.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

from tilewright.ir.core import Constant, Value
from tilewright.ir.types import BOOL, PtrType, ScalarType, element_of, with_element

Number = int | float | bool

INTEGER: dict[str, Callable[[int, int], int]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "and": operator.and_, "or": operator.or_,
    "xor": operator.xor, "min": min, "max": max,
}  # fmt: skip
COMPARE: dict[str, Callable[[Number, Number], bool]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip


_LARGEST = {"e4m3": 448.0, "e5m2": 57344.0}


def normalise(elem: ScalarType, value: Number) -> Number:
    """``value`` as a number of type ``elem``: integers wrap, floats round, Booleans test for non-zero."""
    if elem.kind == "bool":
        return bool(value)
    if elem.is_float:
        if elem.width == 64:
            return float(value)
        return _rounded(elem, float(value))
    wrapped = int(value) & ((1 << elem.width) - 1)
    return wrapped - (1 << elem.width) if elem.kind == "int" and wrapped >> (elem.width - 1) else wrapped


def _rounded(elem: ScalarType, value: float) -> float:
    """To nearest; the 8-bit floats saturate (an infinity stays one where the type has it), tf32 keeps 10 fraction bits,
    ties away from zero."""
    import numpy as np

    if elem.width == 8 and not math.isnan(value) and (math.isfinite(value) or elem.name == "e4m3"):
        largest = _LARGEST[elem.name]
        value = min(max(value, -largest), largest)
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = np.asarray(value).astype(elem.dtype)
        if elem.name == "tf32" and np.isfinite(rounded):
            bits = (int(rounded.view(np.uint32)) + 0x1000) & 0xFFFFE000
            rounded = np.asarray(np.uint32(bits)).view(np.float32)
        return float(rounded)


def common_alignment(align: int, step: int) -> int:
    """The alignment that an ``align``-aligned address has after moving by a multiple of ``step`` bytes."""
    return math.gcd(align, step) if step else align


def binary(opcode: str, a: Value, b: Value) -> Value | None:
    """The folded value, or None when an op is needed."""
    elem = element_of(a.type)
    if elem.is_float:
        return None
    if isinstance(a, Constant) and isinstance(b, Constant):
        return _integers(opcode, a, b, elem)
    return _identity(opcode, a, b)


def _integers(opcode: str, a: Constant, b: Constant, elem: ScalarType) -> Constant | None:
    x, y = int(a.value), int(b.value)
    if opcode in INTEGER:
        return Constant(a.type, normalise(elem, INTEGER[opcode](x, y)))
    if opcode in ("shl", "shr") and 0 <= y < elem.width:
        return Constant(a.type, normalise(elem, x << y if opcode == "shl" else x >> y))
    if opcode in ("div", "rem", "floordiv", "floormod") and y != 0:
        quotient = (
            x // y
            if opcode.startswith("floor")
            else int(math.copysign(1, x) * math.copysign(1, y)) * (abs(x) // abs(y))
        )
        return Constant(a.type, normalise(elem, quotient if opcode in ("div", "floordiv") else x - quotient * y))
    return None


def _identity(opcode: str, a: Value, b: Value) -> Value | None:
    left = a.value if isinstance(a, Constant) else None
    right = b.value if isinstance(b, Constant) else None
    if right is not None:
        if right == 0 and opcode in ("add", "sub", "or", "xor", "shl", "shr"):
            return a
        if right == 1 and opcode in ("mul", "div", "floordiv"):
            return a
        if (right == 0 and opcode in ("mul", "and")) or (right == 1 and opcode in ("rem", "floormod")):
            return Constant(a.type, 0 if a.type != BOOL else bool(right == 1 and opcode == "and"))
    if left is not None:
        if left == 0 and opcode in ("add", "or", "xor"):
            return b
        if left == 1 and opcode == "mul":
            return b
        if left == 0 and opcode in ("mul", "and", "div", "floordiv", "rem", "floormod", "shl", "shr"):
            return Constant(b.type, normalise(element_of(b.type), 0))
    return None


def compare(opcode: str, a: Value, b: Value) -> Value | None:
    if isinstance(a, Constant) and isinstance(b, Constant) and not isinstance(a.type, PtrType):
        return Constant(with_element(a.type, BOOL), COMPARE[opcode](a.value, b.value))
    return None


def unary(opcode: str, a: Value) -> Value | None:
    if not isinstance(a, Constant):
        return None
    elem = element_of(a.type)
    if opcode == "neg":
        return Constant(a.type, normalise(elem, -a.value))
    if opcode == "not":
        return Constant(a.type, not a.value if elem == BOOL else normalise(elem, ~int(a.value)))
    return None


def cast(a: Value, elem: ScalarType) -> Value | None:
    """Literals convert at once, except floats that do not fit an integer type (left to the machines)."""
    if not isinstance(a, Constant):
        return None
    if isinstance(a.value, float) and not elem.is_float:
        if not math.isfinite(a.value) or (elem.kind != "bool" and not _fits(int(a.value), elem)):
            return None
    return Constant(with_element(a.type, elem), convert(elem, a.value))


def convert(elem: ScalarType, value: Number) -> Number:
    """A number of another type as one of type ``elem``: as :func:`normalise`, but e5m2 has no infinities then."""
    if elem.name == "e5m2" and math.isinf(value):
        return math.copysign(_LARGEST["e5m2"], value)
    return normalise(elem, value)


def _fits(value: int, elem: ScalarType) -> bool:
    low = -(1 << (elem.width - 1)) if elem.kind == "int" else 0
    return low <= value < low + (1 << elem.width)
