"""The operations on arrays that NumPy lacks, or has with another meaning than the machine's.

All take NumPy scalars (values that are the same for all lanes) and arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.ir.types import ScalarType

Function = Callable[..., Any]
Array = np.ndarray[Any, Any]
F32, F64 = np.dtype(np.float32), np.dtype(np.float64)


def through_f32(function: Function, elem: ScalarType) -> Function:
    """``function`` computed in f32 and rounded once to ``elem``; what 8 bits do not hold saturates."""
    dtype, limit = elem.dtype, elem.largest
    if limit is not None:
        return lambda *operands: np.clip(function(*(o.astype(F32) for o in operands)), -limit, limit).astype(dtype)
    return lambda *operands: function(*(o.astype(F32) for o in operands)).astype(dtype)


# -- integers ----------------------------------------------------------------------------------------------------------


def _non_negative(a: Any) -> bool:
    return bool(a >= 0) if np.ndim(a) == 0 else bool(np.minimum.reduce(a, axis=None) >= 0)


def truncating_quotient(a: Any, b: Any) -> Any:
    quotient = a // b
    if a.dtype.kind == "u" or (_non_negative(a) and _non_negative(b)):
        return quotient
    inexact = (quotient * b != a) & ((a < 0) != (b < 0))
    return quotient + inexact.astype(quotient.dtype)


def truncating_remainder(a: Any, b: Any) -> Any:
    return a - truncating_quotient(a, b) * b


def floor_remainder(a: Any, b: Any) -> Any:
    return a - (a // b) * b  # several times faster than NumPy's own integer remainder


def integer_power(a: Any, b: Any) -> Any:
    """``a ** b`` with wrap-around; a negative exponent gives the truncated quotient 1 / a**-b."""
    if np.all(b >= 0):
        return np.power(a, b)
    sign = np.where((np.abs(b) & 1) == 1, a, a * a)
    small = np.where(np.abs(a) == 1, sign, a - a)
    return np.where(b >= 0, np.power(a, np.maximum(b, b - b)), small).astype(np.result_type(a))[()]


def multiply_add(a: Any, b: Any, c: Any) -> Any:
    return a * b + c


# -- floats ------------------------------------------------------------------------------------------------------------


def minimum(a: Any, b: Any) -> Any:
    """``fmin`` with -0.0 below 0.0, as PTX has it and NumPy leaves open."""
    least = np.fmin(a, b)
    zero = least == 0
    return np.where(zero & (a == b), -(-a - b), least)[()] if np.any(zero) else least


def maximum(a: Any, b: Any) -> Any:
    """``fmax`` with -0.0 below 0.0."""
    greatest = np.fmax(a, b)
    zero = greatest == 0
    return np.where(zero & (a == b), a + b, greatest)[()] if np.any(zero) else greatest


def power(a: Any, b: Any) -> Any:
    """C's ``pow``: NumPy takes a square root where the exponent is one half for all, which is NaN at -inf."""
    result, half = np.power(a, b), b == 0.5
    if not np.any(half):
        return result
    root = np.where(a == -np.inf, -a, np.where(result == 0, np.abs(result), result))
    return np.where(half, root, result)[()]


def reciprocal(a: Any) -> Any:
    return np.ones_like(a) / a


def reciprocal_root(a: Any) -> Any:
    return (1.0 / np.sqrt(a.astype(F64))).astype(a.dtype)


def erf(a: Any) -> Any:
    return np.asarray(np.frompyfunc(math.erf, 1, 1)(a), F64).astype(np.result_type(a))[()]


# -- a * b + c with one rounding ---------------------------------------------------------------------------------------

_TAIL = np.int64((1 << 29) - 1)
_TIE = np.int64(1 << 28)


def fused_multiply_add(a: Any, b: Any, c: Any) -> Any:
    """``a * b + c`` rounded once."""
    if a.dtype == F64:
        return _fma64(a, b, c)
    if a.dtype == F32:
        return _fma32(a, b, c)
    # The product of two 16-bit floats is exact in f64, and f64 has more than twice the bits of the result.
    wide = a.astype(F64) * b.astype(F64) + c.astype(F64)
    return (wide if a.dtype == np.float16 else wide.astype(F32)).astype(a.dtype)


def _fma32(a: Any, b: Any, c: Any) -> Any:
    """The product is exact in f64; rounding the f64 sum again is only wrong when it is on a tie of f32."""
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
    missing = product_error + sum_error
    rounded = np.where(np.isfinite(missing) & (missing != 0), total + missing, total)
    return np.where(np.isinf(c) & np.isfinite(a) & np.isfinite(b), c, rounded)[()]  # the product alone may overflow


def _split(a: Any) -> Any:
    scaled = a * np.float64(134217729.0)
    return scaled - (scaled - a)
