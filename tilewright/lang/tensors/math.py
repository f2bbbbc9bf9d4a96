"""``cute.math``: elementary functions of numerics, TensorSSAs and Python numbers.

``fastmath=True`` or ``approx=True`` allows the approximate hardware instructions. Integers compute in Float32; the
8-bit floats and TFloat32 in Float32, Float16 and BFloat16 in their own type.
"""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any

from tilewright.ir.arithmetic import evaluate
from tilewright.ir.builder import Builder
from tilewright.ir.core import Value
from tilewright.lang.numbers import operators
from tilewright.lang.numbers.numeric import Numeric, as_numeric, class_of
from tilewright.lang.numbers.operators import unary_float_type
from tilewright.lang.tensors.select import max, min
from tilewright.lang.tensors.tensor_ssa import TensorSSA, broadcast_operand

if TYPE_CHECKING:
    from tilewright.lang.tensors.math_types import Binary, Predicate, Unary

__all__ = [
    "abs",
    "absf",
    "acos",
    "asin",
    "atan",
    "atan2",
    "ceil",
    "copysign",
    "cos",
    "erf",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "fma",
    "isinf",
    "isnan",
    "log",
    "log10",
    "log1p",
    "log2",
    "max",
    "min",
    "pow",
    "rcp",
    "round",
    "roundeven",
    "rsqrt",
    "sin",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
]


def _shown(name: str, example: str) -> str:
    """``"4.0 = 2.0"`` as the example of a docstring: what the function gives for 4.0."""
    arguments, _, result = example.partition(" = ")
    return f"\n\n>>> {name}({arguments})\n{result}\n"


def _unary(opcode: str, text: str, example: str) -> Unary:
    def function(a: Any, fastmath: bool = False, *, approx: bool = False, loc: Any = None, ip: Any = None) -> Any:
        attrs = {"fastmath": True} if fastmath or approx else {}
        if isinstance(a, TensorSSA):
            cls = class_of(unary_float_type(a.dtype.ir_type))
            return a.to(cls).map(opcode, **attrs)
        number = as_numeric(a)
        cls = class_of(unary_float_type(number.ir_type))
        number = number.to(cls)
        if isinstance(number.value, Value):
            return cls(Builder.current().unary(opcode, number.value, **attrs))
        result = evaluate(opcode, cls.ir_type, number.value)
        return cls(result) if isinstance(a, Numeric) else result

    function.__name__ = function.__qualname__ = opcode
    hint = "``fastmath`` or ``approx`` allows an approximation."
    function.__doc__ = f"{text} of every element; {hint}{_shown(opcode, example)}"
    return function


exp = _unary("exp", "e to the power", "0.0 = 1.0")
exp2 = _unary("exp2", "2 to the power", "3.0 = 8.0")
log = _unary("log", "Natural logarithm", "1.0 = 0.0")
log2 = _unary("log2", "Logarithm to base 2", "8.0 = 3.0")
log10 = _unary("log10", "Logarithm to base 10", "1.0 = 0.0")
log1p = _unary("log1p", "log(1 + a), exact to the last digits near 0", "0.0 = 0.0")
expm1 = _unary("expm1", "exp(a) - 1, exact to the last digits near 0", "0.0 = 0.0")
sin = _unary("sin", "Sine (of radians)", "0.0 = 0.0")
cos = _unary("cos", "Cosine (of radians)", "0.0 = 1.0")
tan = _unary("tan", "Tangent (of radians)", "0.0 = 0.0")
asin = _unary("asin", "Arc sine (in radians)", "1.0 = 1.57079...")
acos = _unary("acos", "Arc cosine (in radians)", "-1.0 = 3.14159...")
atan = _unary("atan", "Arc tangent (in radians)", "1.0 = 0.785398...")
tanh = _unary("tanh", "Hyperbolic tangent", "0.0 = 0.0")
sqrt = _unary("sqrt", "Square root", "9.0 = 3.0")
rcp = _unary("rcp", "Reciprocal", "4.0 = 0.25")
rsqrt = _unary("rsqrt", "Reciprocal square root", "4.0 = 0.5")
erf = _unary("erf", "Error function", "0.0 = 0.0")
floor = _unary("floor", "Greatest integer not above", "-1.5 = -2.0")
ceil = _unary("ceil", "Least integer not below", "-1.5 = -1.0")
round = roundeven = _unary("round", "Nearest integer, ties to even,", "2.5 = 2.0")
trunc = _unary("trunc", "Integer part", "-1.5 = -1.0")


def _binary(opcode: str, text: str, example: str) -> Binary:
    def function(a: Any, b: Any, fastmath: bool = False, *, loc: Any = None, ip: Any = None) -> Any:
        tensor = next((x for x in (a, b) if isinstance(x, TensorSSA)), None)
        if tensor is not None:
            return tensor.combine(opcode, a, b)
        first, second = as_numeric(a), as_numeric(b)
        cls = class_of(unary_float_type(first.ir_type))
        result = operators.binary(opcode, first.to(cls), second)
        return result if isinstance(a, Numeric) or isinstance(b, Numeric) else result.value

    function.__name__ = function.__qualname__ = opcode
    function.__doc__ = f"{text}, element by element.{_shown(opcode, example)}"
    return function


atan2 = _binary("atan2", "The angle, in radians, of the point (b, a)", "1.0, -1.0 = 2.35619...")
copysign = _binary("copysign", "The magnitude of a with the sign of b", "3.0, -0.0 = -3.0")
pow = _binary("pow", "a to the power b", "2.0, 10.0 = 1024.0")


def absf(a: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """Absolute value.

    >>> from tilewright import Float16
    >>> cute.math.absf(-2.5), cute.math.absf(Float16(-1))
    (2.5, Float16(1.0))
    """
    return builtins.abs(a)


abs = absf


def fma(a: Any, b: Any, c: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """``a * b + c`` with one rounding.

    >>> fma(2.0, 3.0, 1.0).value
    7.0
    """
    tensors = [x for x in (a, b, c) if isinstance(x, TensorSSA)]
    if tensors:
        shape, cls = tensors[0].shape, tensors[0].dtype
        values = [broadcast_operand(x, cls, shape) for x in (a, b, c)]
        return TensorSSA(Builder.current().fma(*values), shape, cls)
    cls = type(operators.binary("add", operators.binary("add", as_numeric(a), b), c))
    numbers = [cls(x) for x in (a, b, c)]
    if all(x.is_static for x in numbers):
        return cls(evaluate("fma", cls.ir_type, *(x.value for x in numbers)))
    return cls(Builder.current().fma(*[x.ir_value() for x in numbers]))


def _predicate(opcode: str, text: str, example: str) -> Predicate:
    def function(a: Any, *, loc: Any = None, ip: Any = None) -> Any:
        from tilewright.lang.numbers.numeric import Boolean

        if isinstance(a, TensorSSA):
            value = a.to(class_of(unary_float_type(a.dtype.ir_type))).value
            return TensorSSA(Builder.current().predicate(opcode, value), a.shape, Boolean)
        number = as_numeric(a)
        number = number.to(class_of(unary_float_type(number.ir_type)))
        if number.is_static:
            result = evaluate(opcode, number.ir_type, number.value)
            return Boolean(result) if isinstance(a, Numeric) else result
        return Boolean(Builder.current().predicate(opcode, number.value))

    function.__name__ = function.__qualname__ = opcode
    function.__doc__ = f"Whether a number {text}.{_shown(opcode, example)}"
    return function


isnan = _predicate("isnan", "is not a number", "float('nan') = True")
isinf = _predicate("isinf", "is infinite", "float('-inf') = True")
