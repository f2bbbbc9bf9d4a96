"""The arithmetic of the IR on NumPy values, exactly as the machine does it.

Every function here takes NumPy scalars (uniform values) and arrays alike. Integers wrap; f16 and bf16 are computed in
f32 and rounded after each operation; minimum and maximum pass over a NaN (CUDA ``fmin`` and ``fmax``).
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.ir.types import ScalarType
from tilewright.sim.faults import Fault

Function = Callable[..., Any]
F32, F64 = np.dtype(np.float32), np.dtype(np.float64)

_PLAIN: dict[str, Function] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "and": operator.and_, "or": operator.or_,
    "xor": operator.xor, "shl": np.left_shift, "shr": np.right_shift,
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip
COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))


@functools.cache
def binary(opcode: str, elem: ScalarType) -> Function:
    """The function of an elementwise opcode with two operands (division is in :func:`integer_division`)."""
    if elem.kind == "bool":
        return {**_PLAIN, **_BOOLEAN}[opcode]
    if elem.is_float:
        return _float_binary(opcode, elem)
    if opcode in _PLAIN:
        return _PLAIN[opcode]
    others: dict[str, Function] = {
        "min": np.minimum, "max": np.maximum, "pow": _integer_power, "copysign": _integer_copysign,
    }  # fmt: skip
    return others[opcode]


_BOOLEAN: dict[str, Function] = {
    "add": np.logical_or, "sub": np.logical_xor, "mul": np.logical_and, "min": np.logical_and, "max": np.logical_or,
}  # fmt: skip


def _float_binary(opcode: str, elem: ScalarType) -> Function:
    native = elem.width >= 32
    if opcode in COMPARISONS or (opcode in _PLAIN and elem.width >= 16):
        return _PLAIN[opcode]
    if opcode == "div" and elem.width >= 16:
        return operator.truediv
    wide: Function = {
        "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "rem": np.fmod,
        "floordiv": np.floor_divide, "floormod": np.mod, "min": np.fmin, "max": np.fmax, "pow": np.power,
        "atan2": np.arctan2, "copysign": np.copysign,
    }[opcode]  # fmt: skip
    return wide if native else _through_f32(wide, elem)


def _through_f32(function: Function, elem: ScalarType) -> Function:
    dtype = elem.dtype
    return lambda *operands: function(*(o.astype(F32) for o in operands)).astype(dtype)


def _integer_power(a: Any, b: Any) -> Any:
    """``a ** b`` with wrap-around; a negative exponent gives the truncated quotient 1 / a**-b."""
    if np.all(b >= 0):
        return np.power(a, b)
    sign = np.where((np.abs(b) & 1) == 1, a, a * a)
    small = np.where(np.abs(a) == 1, sign, a - a)
    return np.where(b >= 0, np.power(a, np.maximum(b, b - b)), small).astype(np.result_type(a))


def _integer_copysign(a: Any, b: Any) -> Any:
    return np.where((a < 0) == (b < 0), a, -a)


def integer_division(opcode: str, elem: ScalarType, divisor: int | None) -> Function:
    """``div rem floordiv floormod`` of integers as ``f(group, a, b)``; ``divisor`` is the constant second operand, if
    it is one. Raises a Fault when an active lane divides by zero."""
    signed = elem.kind == "int"
    core = {
        "div": _truncating_quotient if signed else operator.floordiv,
        "rem": _truncating_remainder if signed else operator.mod,
        "floordiv": operator.floordiv,
        "floormod": _floor_remainder,
    }[opcode]
    if divisor:
        return lambda group, a, b: core(a, b)

    def checked(group: Any, a: Any, b: Any) -> Any:
        zero = b == 0
        if np.any(zero):
            bad = zero if group.mask is None else (zero.T & group.mask).T
            if np.any(bad):
                lanes = bad.any(axis=1) if np.ndim(bad) == 2 else bad
                raise Fault(f"integer {'division' if 'div' in opcode else 'remainder'} by zero", lanes)
            b = np.where(zero, np.ones_like(b), b)
        return core(a, b)

    return checked


def _non_negative(a: Any) -> bool:
    return bool(a >= 0) if np.ndim(a) == 0 else bool(np.minimum.reduce(a, axis=None) >= 0)


def _truncating_quotient(a: Any, b: Any) -> Any:
    quotient = a // b
    if _non_negative(a) and _non_negative(b):
        return quotient
    inexact = (quotient * b != a) & ((a < 0) != (b < 0))
    return quotient + inexact.astype(quotient.dtype)


def _truncating_remainder(a: Any, b: Any) -> Any:
    return a - _truncating_quotient(a, b) * b


def _floor_remainder(a: Any, b: Any) -> Any:
    return a - (a // b) * b  # several times faster than NumPy's own integer remainder


@functools.cache
def unary(opcode: str, elem: ScalarType) -> Function:
    """The function of an elementwise opcode with one operand."""
    if opcode == "not":
        return np.logical_not if elem.kind == "bool" else operator.invert
    if opcode == "neg":
        return operator.neg if elem.kind != "bool" else (lambda a: a)
    if opcode == "abs":
        return (lambda a: a) if elem.kind in ("uint", "bool") else np.abs
    if not elem.is_float:
        if opcode in ("floor", "ceil", "round", "trunc"):
            return lambda a: a
        return lambda a: _FLOAT[opcode](a.astype(F64)).astype(elem.dtype)
    return _FLOAT[opcode] if elem.width >= 32 else _through_f32(_FLOAT[opcode], elem)


def _erf(a: Any) -> Any:
    return np.asarray(np.frompyfunc(math.erf, 1, 1)(a), F64).astype(np.result_type(a))[()]


def _in_double(function: Function) -> Function:
    return lambda a: function(a.astype(F64)).astype(a.dtype)


_FLOAT: dict[str, Function] = {
    "exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2, "log10": np.log10, "sin": np.sin, "cos": np.cos,
    "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "tanh": np.tanh, "sqrt": np.sqrt,
    "rsqrt": _in_double(lambda a: 1.0 / np.sqrt(a)), "rcp": lambda a: np.ones_like(a) / a, "erf": _erf,
    "floor": np.floor, "ceil": np.ceil, "round": np.rint, "trunc": np.trunc,
}  # fmt: skip


def predicate(opcode: str, elem: ScalarType) -> Function:
    if not elem.is_float:
        return lambda a: np.zeros(np.shape(a), bool)[()]
    return {"isnan": np.isnan, "isinf": np.isinf}[opcode]


@functools.cache
def fused_multiply_add(elem: ScalarType) -> Function:
    """``a * b + c`` with one rounding."""
    dtype = elem.dtype
    if not elem.is_float:
        return lambda a, b, c: a * b + c
    if elem.width == 64:
        return _fma64
    if elem.width == 32:
        return _fma32
    # The product of two 16-bit floats is exact in f64, and f64 has more than twice the bits of the result.
    return lambda a, b, c: (
        (a.astype(F64) * b.astype(F64) + c.astype(F64)).astype(F32 if elem.name != "f16" else dtype).astype(dtype)
    )


_TAIL = np.int64((1 << 29) - 1)
_TIE = np.int64(1 << 28)


def _fma32(a: Any, b: Any, c: Any) -> Any:
    """The product is exact in f64; rounding the f64 sum again is only wrong when it stands on a tie of f32."""
    product, addend = a.astype(F64) * b.astype(F64), c.astype(F64)
    total = product + addend
    doubtful = ((total.view(np.int64) & _TAIL) == _TIE) | (np.abs(total) < 1.2e-38)
    if np.any(doubtful):
        total = _round_to_odd(total, product, addend)
    return total.astype(F32)


def _round_to_odd(total: Any, x: Any, y: Any) -> Any:
    """``x + y`` rounded to odd: a second rounding to fewer bits is then the only one."""
    back = total - x
    error = (x - (total - back)) + (y - back)
    bits = np.asarray(total).view(np.int64)
    step = np.where((error > 0) == (np.asarray(total) > 0), np.int64(1), np.int64(-1))
    odd = np.where((error != 0) & np.isfinite(error) & ((bits & 1) == 0), bits + step, bits)
    return odd.view(F64)[()]


def _fma64(a: Any, b: Any, c: Any) -> Any:
    """Dekker's exact product and Knuth's exact sum; the errors are added once at the end."""
    product = a * b
    high_a, high_b = _split(a), _split(b)
    low_a, low_b = a - high_a, b - high_b
    product_error = ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b
    total = product + c
    back = total - product
    sum_error = (product - (total - back)) + (c - back)
    exact = total + (product_error + sum_error)
    return np.where(np.isfinite(exact), exact, total)[()]


def _split(a: Any) -> Any:
    scaled = a * np.float64(134217729.0)
    return scaled - (scaled - a)


@functools.cache
def reduction(kind: str, elem: ScalarType) -> Function:
    return binary(kind, elem)
