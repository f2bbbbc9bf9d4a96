"""What scalar arithmetic is, written anew: Python's integers, exact fractions, the C library in double precision."""

from __future__ import annotations

import ctypes
import ctypes.util
import math
from fractions import Fraction
from typing import Any

from tilewright.ir.types import BOOL, ScalarType

PRECISION = {"f16": (11, 15), "bf16": (8, 127), "f32": (24, 127), "f64": (53, 1023), "e4m3": (4, 8), "e5m2": (3, 15)}
"""Digits and the largest exponent of each float."""
LARGEST = {"e4m3": 448.0, "e5m2": 57344.0}
LIBRARY = ctypes.CDLL(ctypes.util.find_library("m") or "libm.so.6")
EXACT = frozenset(
    "add sub mul div rem floordiv floormod min max fma neg abs copysign rcp sqrt floor ceil round trunc".split()
)


def wrap(elem: ScalarType, value: int) -> int:
    value &= (1 << elem.width) - 1
    return value - (1 << elem.width) if elem.kind == "int" and value >> (elem.width - 1) else value


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _power(a: int, b: int) -> int:
    """Modulo 2**64; a negative exponent is the quotient 1 / a**-b, truncated."""
    if b >= 0:
        return pow(a, b, 1 << 64)
    return 0 if abs(a) != 1 else a if b % 2 else 1


def integer(opcode: str, elem: ScalarType, a: int, b: int, c: int) -> Any:
    """Integers: exact, then wrapped; comparisons as they are."""
    out = not 0 <= b < elem.width
    table: dict[str, Any] = {
        "add": lambda: a + b,
        "sub": lambda: a - b,
        "mul": lambda: a * b,
        "div": lambda: truncated(a, b),
        "rem": lambda: a - b * truncated(a, b),
        "floordiv": lambda: a // b,
        "floormod": lambda: a % b,
        "min": lambda: min(a, b),
        "max": lambda: max(a, b),
        "and": lambda: a & b,
        "or": lambda: a | b,
        "xor": lambda: a ^ b,
        "shl": lambda: 0 if out else a << b,
        "shr": lambda: -(a < 0) if out else a >> b,
        "neg": lambda: -a,
        "abs": lambda: abs(a),
        "not": lambda: ~a,
        "fma": lambda: a * b + c,
        "pow": lambda: _power(a, b),
    }
    return compare(opcode, a, b) if opcode in COMPARE else wrap(elem, table[opcode]())


COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def compare(opcode: str, a: Any, b: Any) -> bool:
    return {"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}[opcode]


def boolean(opcode: str, a: bool, b: bool) -> bool:
    if opcode in COMPARE:
        return compare(opcode, a, b)
    if opcode == "not":
        return not a
    return {"and": a and b, "mul": a and b, "min": a and b, "xor": a != b}.get(opcode, a or b)


def nearest(name: str, exact: Fraction, zero: float = 0.0) -> float:
    """``exact`` rounded to nearest even; ``zero`` is the zero that an exact 0 is."""
    if exact == 0:
        return zero
    digits, largest = PRECISION[name]
    size = abs(exact)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < Fraction(2) ** exponent
    lowest = -6 if name == "e4m3" else 1 - largest
    unit = Fraction(2) ** (max(exponent, lowest) - digits + 1)
    found = round(size / unit) * unit
    top = Fraction(LARGEST[name]) if name in LARGEST else (2 - Fraction(2) ** (1 - digits)) * Fraction(2) ** largest
    value = (LARGEST.get(name, math.inf)) if found > top else float(found)
    return -value if exact < 0 else value


def real(elem: ScalarType, exact: Fraction, zero: float = 0.0) -> float:
    """Rounded to a type; those of 8 bits by way of f32."""
    if elem.width > 8:
        return nearest(elem.name, exact, zero)
    single = nearest("f32", exact, zero)
    return stored(elem, single)


def power_of_two(value: float) -> float:
    """The least power of two from 2^-127 on that is not below the number, at most 2^127; NaN for numbers
    below zero."""
    if not value >= 0:
        return math.nan
    fraction, exponent = math.frexp(min(value, 2.0**127))
    return 2.0 ** max(exponent - (fraction == 0.5), -127) if value else 2.0**-127


def stored(elem: ScalarType, value: float) -> float:
    """A number of f32 or f64 as one of ``elem``."""
    if elem.name == "e8m0":
        return power_of_two(value)
    if math.isnan(value):
        return value
    if math.isinf(value):
        return math.copysign(LARGEST.get(elem.name, math.inf), value)
    return nearest(elem.name, Fraction(value), math.copysign(0.0, value))


def floating(opcode: str, elem: ScalarType, a: float, b: float, c: float) -> Any:
    if opcode in COMPARE:
        return compare(opcode, a, b)
    if opcode in ("isnan", "isinf"):
        return getattr(math, opcode)(a)
    if opcode in ("neg", "abs", "copysign", "floor", "ceil", "round", "trunc"):
        return _simple(opcode, a, b)
    if opcode in ("min", "max"):
        if math.isnan(a) or math.isnan(b):
            return b if math.isnan(a) else a
        return (min if opcode == "min" else max)(a, b, key=lambda x: (x, math.copysign(1, x)))
    finite = all(map(math.isfinite, (a, b, c)))
    if opcode in ("add", "sub", "mul", "fma"):
        plain = {"add": a + b, "sub": a - b, "mul": a * b, "fma": a * b + c}[opcode]
        if not (math.isfinite(a) and math.isfinite(b)) or (opcode == "fma" and not finite):
            return (
                stored(elem, plain)
                if not (opcode == "fma" and math.isinf(c) and math.isfinite(a * 0 + b * 0))
                else stored(elem, c)
            )
        x, y = Fraction(a), Fraction(b)
        exact = {"add": x + y, "sub": x - y, "mul": x * y, "fma": x * y + Fraction(c) if opcode == "fma" else x}[opcode]
        return real(elem, exact, plain if plain == 0 else 0.0)  # an exact zero has the sign that Python gives it
    if opcode == "floordiv":
        if b == 0:
            return _quotient(elem, a, b)
        if not (math.isfinite(a) and math.isfinite(b)):
            return stored(elem, a // b)
        zero = math.copysign(1, a) * math.copysign(0.0, b)
        return real(elem, Fraction(math.floor(Fraction(a) / Fraction(b))), zero)
    if opcode == "rcp":
        return _quotient(elem, 1.0, a)
    if opcode == "div":
        return _quotient(elem, a, b)
    if opcode in ("rem", "floormod"):
        return _remainder(opcode, elem, a, b)
    return stored(elem, _library(opcode, a, b))


def _simple(opcode: str, a: float, b: float) -> float:
    if opcode == "neg":
        return -a
    if opcode == "abs":
        return math.fabs(a)
    if opcode == "copysign":
        return math.copysign(a, b)
    if not math.isfinite(a):
        return a
    return math.copysign({"floor": math.floor, "ceil": math.ceil, "round": round, "trunc": int}[opcode](a), a)


def _quotient(elem: ScalarType, a: float, b: float) -> float:
    if b == 0:
        value = math.nan if a == 0 or math.isnan(a) else math.inf * math.copysign(1, a) * math.copysign(1, b)
        return stored(elem, value)
    if not (math.isfinite(a) and math.isfinite(b)):
        return stored(elem, a / b)
    return real(elem, Fraction(a) / Fraction(b), math.copysign(1, a) * math.copysign(0.0, b))


def _remainder(opcode: str, elem: ScalarType, a: float, b: float) -> float:
    if math.isnan(a) or math.isnan(b):
        return math.nan
    if b == 0:
        return math.nan
    if math.isinf(a):
        return math.nan
    apart = a != 0 and (a < 0) != (b < 0)
    if math.isinf(b):
        if opcode == "rem":
            return a
        return stored(elem, b) if apart else math.copysign(a, b) if a == 0 else a
    x, y = Fraction(a), Fraction(b)
    if opcode == "rem":
        return real(elem, x - y * int(x / y), math.copysign(0.0, a))
    return real(elem, x - y * (x // y), math.copysign(0.0, b))


def _library(opcode: str, a: float, b: float) -> float:
    if opcode == "rsqrt":
        return math.copysign(math.inf, a) if a == 0 else math.nan if a < 0 else 1 / math.sqrt(a)
    function = getattr(LIBRARY, opcode)
    function.restype = ctypes.c_double
    function.argtypes = [ctypes.c_double] * (2 if opcode in ("pow", "atan2") else 1)
    return float(function(*(a, b)[: len(function.argtypes)]))


def expected(opcode: str, elem: ScalarType, a: Any, b: Any, c: Any) -> Any:
    if elem == BOOL:
        return boolean(opcode, a, b)
    found = (integer if elem.is_integer else floating)(opcode, elem, a, b, c)
    return stored(elem, found) if elem.width == 8 and isinstance(found, float) else found


def converted(source: ScalarType, to: ScalarType, value: Any) -> Any:
    """``value`` of type ``source`` as one of type ``to``."""
    if to == BOOL:
        return value != 0
    if to.is_integer and not source.is_float:
        return wrap(to, int(value))
    if to.is_integer:
        low, high = (-(1 << to.width - 1), (1 << to.width - 1) - 1) if to.kind == "int" else (0, (1 << to.width) - 1)
        if math.isnan(value):
            if to.width < 32:
                return max(low, -(1 << 31)) if source.width == 64 else 0
            return 0 if source.width < 64 and to.width < 64 else low or 1 << to.width - 1
        return (high if value > 0 else low) if math.isinf(value) else min(max(int(value), low), high)
    if source.is_float and not math.isfinite(value):
        return stored(to, value) if to.name != "tf32" else value
    exact = Fraction(value)
    zero = math.copysign(0.0, value)
    if to.name == "tf32":
        single = nearest("f32", exact, zero)
        return tied_away(single)
    if to.name in ("bf16", "e4m3", "e5m2", "e8m0"):
        return stored(to, nearest("f32", exact, zero))
    return nearest(to.name, exact, zero)


def tied_away(value: float) -> float:
    """A number of f32 with 11 digits, ties away from zero."""
    if value == 0 or math.isinf(value):
        return value
    unit = Fraction(2) ** (max(math.frexp(value)[1] - 1, -126) - 10)
    found = int(abs(Fraction(value)) / unit + Fraction(1, 2)) * unit
    return math.copysign(math.inf if found >= Fraction(2) ** 128 else float(found), value)
