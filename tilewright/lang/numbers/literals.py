"""Numbers of the host language, NumPy's included, as the plain ones that constants hold."""

from __future__ import annotations

import math
import numbers
from typing import Any

from tilewright.errors import StagingError
from tilewright.ir.arithmetic import Number, convert
from tilewright.ir.types import F64, ScalarType
from tilewright.lang.numbers import operators


def plain_number(value: Any, kind: ScalarType | None = None) -> bool | int | float:
    """``value`` as a Python number, a whole one where ``kind`` is an integer type.

    Fractions are cut off and what is too large becomes the largest, as the machine converts. Raises StagingError for
    what is not a number, and for an infinity or NaN that should become an integer.

    >>> from tilewright.ir.types import I32
    >>> plain_number(2.5), plain_number(2.5, I32), plain_number(-3e9, I32)
    (2.5, 2, -2147483648)
    """
    if isinstance(value, (bool, int, float)):
        known = kind is None or kind.is_float or not isinstance(value, float)
        return value if known else convert(F64, kind, convertible(value, kind))  # type: ignore[arg-type]  # a number
    if isinstance(value, numbers.Integral) or type(value).__name__ == "bool_":
        return int(value)
    if isinstance(value, numbers.Real) or hasattr(value, "__float__"):
        return plain_number(float(value), kind)
    raise StagingError(f"{value!r} ({type(value).__name__}) is not a number")


def convertible(value: Number, kind: ScalarType) -> Number:
    """``value``; raises StagingError for an infinity or NaN that should become an integer."""
    if kind.is_integer and not math.isfinite(value):
        raise StagingError(f"{value} does not convert to {operators.CLASS_OF[kind].__name__}")
    return value
