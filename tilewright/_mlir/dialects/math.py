"""``cutlass._mlir.dialects.math``: the functions of ``cute.math`` by MLIR's names, on single numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright._names import attach
from tilewright.errors import ConstraintError
from tilewright.lang.numbers.numeric_base import as_numeric
from tilewright.lang.tensors import math

_ONE = ("atan", "cos", "erf", "exp", "exp2", "log", "log10", "log2", "rsqrt", "sin", "sqrt", "tan", "tanh")

__all__ = [*_ONE, "absf", "fma"]
attach(__name__)


def _float(name: str, operand: Any) -> Any:
    number = as_numeric(operand)
    if not type(number).is_float:
        raise ConstraintError(f"math.{name}: a float is needed, not {type(number).__name__}")
    return number


def _of_one(name: str) -> Callable[..., Any]:
    def function(operand: Any, *, fastmath: Any = None, loc: Any = None, ip: Any = None) -> Any:
        return getattr(math, name)(_float(name, operand), fastmath=fastmath is not None)

    function.__name__ = function.__qualname__ = name
    return function


globals().update({name: _of_one(name) for name in _ONE})


def absf(operand: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """The absolute value of a float."""
    return math.absf(_float("absf", operand))


def fma(a: Any, b: Any, c: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """a * b + c, rounded once."""
    return math.fma(_float("fma", a), _float("fma", b), _float("fma", c))
