"""``cutlass._mlir.dialects.math``: the functions of ``cute.math`` by MLIR's names, on single numbers and on vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright._names import attach
from tilewright.errors import ConstraintError
from tilewright.ir.core import Value
from tilewright.ir.types import VecType
from tilewright.lang.numbers.numeric import class_of
from tilewright.lang.numbers.numeric_base import as_numeric
from tilewright.lang.tensors import math
from tilewright.lang.tensors.tensor_ssa import TensorSSA

_ONE = ("atan", "cos", "erf", "exp", "exp2", "log", "log10", "log2", "rsqrt", "sin", "sqrt", "tan", "tanh")

__all__ = [*_ONE, "absf", "fma"]
attach(__name__)


def _float(name: str, operand: Any) -> Any:
    """A number of the language, or the elements of a vector."""
    if isinstance(operand, Value) and isinstance(operand.type, VecType):
        operand = TensorSSA(operand, (operand.type.n,), class_of(operand.type.elem))
    number = operand if isinstance(operand, TensorSSA) else as_numeric(operand)
    kind = number.dtype if isinstance(number, TensorSSA) else type(number)
    if not kind.is_float:
        raise ConstraintError(f"math.{name}: a float is needed, not {kind.__name__}")
    return number


def _as_given(result: Any) -> Any:
    """A vector as a value of the IR, as ``arith`` gives them; a number as it is."""
    return result.ir_value() if isinstance(result, TensorSSA) else result


def _of_one(name: str) -> Callable[..., Any]:
    def function(operand: Any, *, fastmath: Any = None, loc: Any = None, ip: Any = None) -> Any:
        return _as_given(getattr(math, name)(_float(name, operand), fastmath=fastmath is not None))

    function.__name__ = function.__qualname__ = name
    return function


globals().update({name: _of_one(name) for name in _ONE})


def absf(operand: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """The absolute value of a float."""
    return _as_given(math.absf(_float("absf", operand)))


def fma(a: Any, b: Any, c: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """a * b + c, rounded once."""
    return _as_given(math.fma(_float("fma", a), _float("fma", b), _float("fma", c)))
