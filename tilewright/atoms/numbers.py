"""How operands of matrix instructions become numbers that NumPy multiplies, exactly.

Half, bfloat16 and 8-bit floats widen to float32 without loss; tf32 drops the 13 low bits of a float32, as the tensor
core does; integers widen to float32 while every partial sum stays below 2**24, else to float64.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from tilewright.ir.lanes import Array
from tilewright.ir.types import BF16, TF32, ScalarType


@lru_cache(maxsize=8)
def _byte_table(type_: ScalarType) -> Array:
    """The float32 value of each of the patterns of a float of up to 8 bits."""
    return np.arange(1 << type_.width, dtype=np.uint8).view(type_.dtype).astype(np.float32)


def raw(values: Array, type_: ScalarType) -> Array:
    """Registers as numbers of the type, or as unsigned patterns where NumPy does not know it (slow gathers)."""
    is_native = not type_.is_float or type_.numpy_name in _NATIVE
    dtype = type_.dtype if is_native else np.dtype(f"u{type_.bytes}")
    return values if values.dtype == dtype else values.view(dtype)


_NATIVE = frozenset(("float16", "float32", "float64"))


def widen(patterns: Array, type_: ScalarType) -> Array:
    """Patterns as :func:`raw` gives them, as float32 (float64 and complex128 stay)."""
    if type_ == BF16:
        return (patterns.astype(np.uint32) << 16).view(np.float32)
    if type_ == TF32:
        return (patterns.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    if type_.is_float and type_.width <= 8:
        return _byte_table(type_)[patterns]
    return widen_half(patterns) if type_.numpy_name == "float16" else patterns


_SIGN_AND_REST = np.int32(-0x70000001)  # all bits but the three between the sign and a half's exponent
_BIAS = np.float32(2.0**112)


def widen_half(values: Array) -> Array:
    """float16 as float32, several times faster than NumPy's own conversion."""
    # A half's bits, moved up by 13, are a float32 whose exponent is too small by 112; the multiplication is exact, for
    # subnormal numbers, too. Infinities and NaNs are the exception.
    bits = values.view(np.int16)
    if values.size and (_greatest(bits) >= 0x7C00 or _greatest(values.view(np.uint16)) >= 0xFC00):
        return values.astype(np.float32)
    wide: Array = np.left_shift(bits, 13, dtype=np.int32)
    np.bitwise_and(wide, _SIGN_AND_REST, out=wide)
    widened: Array = wide.view(np.float32)
    return np.multiply(widened, _BIAS, out=widened)


def _greatest(values: Array) -> int:
    return int(np.maximum.reduce(values, axis=None))


def exact_float(k: int, *types: ScalarType) -> Any:
    """The float type in which sums of ``k`` products of these integers are exact."""
    largest = 1
    for t in types:
        largest *= 1 << (t.width - (1 if t.is_signed else 0))
    return np.float32 if k * largest <= 1 << 24 else np.float64
