"""Numbers of the host language, NumPy's included, as the plain ones that constants hold."""

from __future__ import annotations

import math
import numbers
from typing import Any

from tilewright.errors import StagingError
from tilewright.ir.arithmetic import Number, convert
from tilewright.ir.types import F64, ScalarType
from tilewright.lang.numbers.classes import CLASS_OF


def plain_number(value: Any, kind: ScalarType | None = None) -> bool | int | float:
    """``value`` as a Python number, a whole one where ``kind`` is an integer type.

    Fractions are cut off and what is too large becomes the largest, as the machine converts. Raises StagingError for
    what is not a number, and for an infinity or NaN that should become an integer.

    >>> from tilewright.ir.types import I32
    >>> plain_number(2.5), plain_number(2.5, I32), plain_number(-3e9, I32)
    (2.5, 2, -2147483648)
    """
    if isinstance(value, (bool, int, float)):
        fits = kind is None or kind.is_float or not isinstance(value, float)
        return value if fits else convert(F64, kind, convertible(value, kind))  # type: ignore[arg-type]  # a number
    if isinstance(value, numbers.Integral) or is_truth(value):
        return bool(value) if kind is None and is_truth(value) else int(value)
    if isinstance(value, numbers.Real) or hasattr(value, "__float__"):
        return plain_number(float(value), kind)
    raise StagingError(f"{value!r} ({type(value).__name__}) is not a number")


def as_literal(value: Any) -> Any:
    """An operand of an operator: numbers of the host language as Python's own, so that they are literals (a NumPy
    integer is no float); numerics as they are.

    >>> from tilewright import Int32
    >>> as_literal(np.int64(3)), as_literal(np.bool_(True)), Int32(16777217) + np.int64(0)
    (3, True, Int32(16777217))
    """
    if isinstance(value, (bool, int, float)) or hasattr(value, "ir_type"):
        return value
    return bool(value) if is_truth(value) else plain_number(value)


def is_truth(value: Any) -> bool:
    """Whether ``value`` is a Boolean of NumPy, which is no number of Python's tower."""
    return type(value).__module__ == "numpy" and type(value).__name__ in ("bool", "bool_")


def convertible(value: Number, kind: ScalarType) -> Number:
    """``value``; raises StagingError for an infinity or NaN that should become an integer."""
    if kind.is_integer and not math.isfinite(value):
        raise StagingError(f"{value} does not convert to {CLASS_OF[kind].__name__}")
    return value
