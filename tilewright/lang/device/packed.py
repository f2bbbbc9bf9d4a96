"""Arithmetic on pairs of Float32. Blackwell has instructions for them; here each number of a pair is computed alone,
with the same result. Rounding is to the nearest even number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.errors import ConstraintError
from tilewright.lang.numbers.numeric import Float32
from tilewright.lang.tensors.math import fma


def _pair(x: Any, what: str) -> tuple[Any, Any]:
    if not isinstance(x, Sequence) or len(x) != 2:
        raise ConstraintError(f"{what}: a pair of Float32 is needed, not {x!r}")
    return Float32(x[0]), Float32(x[1])


def add_packed_f32x2(src_a: Any, src_b: Any, *, loc: Any = None, ip: Any = None) -> tuple[Any, Any]:
    """``src_a + src_b``, number by number.

    >>> add_packed_f32x2((1.0, 2.0), (0.5, 4.0))
    (Float32(1.5), Float32(6.0))
    """
    (a, b), (c, d) = _pair(src_a, "add_packed_f32x2"), _pair(src_b, "add_packed_f32x2")
    return a + c, b + d


def sub_packed_f32x2(src_a: Any, src_b: Any, *, loc: Any = None, ip: Any = None) -> tuple[Any, Any]:
    """``src_a - src_b``, number by number.

    >>> sub_packed_f32x2((1.0, 2.0), (0.5, 4.0))
    (Float32(0.5), Float32(-2.0))
    """
    (a, b), (c, d) = _pair(src_a, "sub_packed_f32x2"), _pair(src_b, "sub_packed_f32x2")
    return a - c, b - d


def mul_packed_f32x2(src_a: Any, src_b: Any, *, loc: Any = None, ip: Any = None) -> tuple[Any, Any]:
    """``src_a * src_b``, number by number.

    >>> mul_packed_f32x2((1.0, 2.0), (0.5, 4.0))
    (Float32(0.5), Float32(8.0))
    """
    (a, b), (c, d) = _pair(src_a, "mul_packed_f32x2"), _pair(src_b, "mul_packed_f32x2")
    return a * c, b * d


def fma_packed_f32x2(src_a: Any, src_b: Any, src_c: Any, *, loc: Any = None, ip: Any = None) -> tuple[Any, Any]:
    """``src_a * src_b + src_c`` with one rounding, number by number.

    >>> fma_packed_f32x2((2.0, 3.0), (4.0, 5.0), (1.0, -1.0))
    (Float32(9.0), Float32(14.0))
    """
    (a, b), (c, d), (e, f) = (_pair(x, "fma_packed_f32x2") for x in (src_a, src_b, src_c))
    return fma(a, c, e), fma(b, d, f)
