# Made by `python tools/stubs.py` from tilewright/lang/tensors/math.py; do not edit.
"""``cute.math``: elementary functions of numerics, TensorSSAs and Python numbers.

``fastmath=True`` or ``approx=True`` allows the approximate hardware instructions. Integers compute in Float32; the
8-bit floats and TFloat32 in Float32, Float16 and BFloat16 in their own type.
"""

from tilewright.lang.numbers.numeric import BFloat16
from tilewright.lang.numbers.numeric import Boolean
from tilewright.lang.numbers.numeric import Float16
from tilewright.lang.numbers.numeric import Float32
from tilewright.lang.numbers.numeric import Float64
from tilewright.lang.numbers.numeric import Integer
from tilewright.lang.numbers.numeric import Numeric
from tilewright.lang.numbers.operator_types import Storage
from tilewright.lang.tensors.tensor_ssa import TensorSSA
from typing import Any
from typing import TypeVar
from typing import overload

F = TypeVar("F", Float16, BFloat16, Float32, Float64)
@overload
def exp(a: TensorSSA, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> TensorSSA:
    """e to the power of every element; """
    ...
@overload
def exp(a: F, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> F:
    ...
@overload
def exp(a: Integer | Storage, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> Float32:
    ...
@overload
def exp(a: Numeric, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> Numeric:
    ...
@overload
def exp(a: float, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> float:
    ...
@overload
def exp2(a: TensorSSA, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> TensorSSA:
    """2 to the power of every element; """
    ...
@overload
def exp2(a: F, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> F:
    ...
@overload
def exp2(a: Integer | Storage, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> Float32:
    ...
@overload
def exp2(a: Numeric, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> Numeric:
    ...
@overload
def exp2(a: float, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> float:
    ...
@overload
def log(a: TensorSSA, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> TensorSSA:
    """Natural logarithm of every element; """
    ...
@overload
def log(a: F, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> F:
    ...
@overload
def log(a: Integer | Storage, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> Float32:
    ...
@overload
def log(a: Numeric, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> Numeric:
    ...
@overload
def log(a: float, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> float:
    ...
@overload
def log2(a: TensorSSA, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> TensorSSA:
    """Logarithm to base 2 of every element; """
    ...
@overload
def log2(a: F, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> F:
    ...
@overload
def log2(a: Integer | Storage, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> Float32:
    ...
@overload
def log2(a: Numeric, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> Numeric:
    ...
@overload
def log2(a: float, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> float:
    ...
@overload
def log10(a: TensorSSA, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> TensorSSA:
    """Logarithm to base 10 of every element; """
    ...
@overload
def log10(a: F, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> F:
    ...
@overload
def log10(a: Integer | Storage, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> Float32:
    ...
@overload
def log10(a: Numeric, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> Numeric:
    ...
@overload
def log10(a: float, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> float:
    ...
@overload
def log1p(a: TensorSSA, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> TensorSSA:
    """log(1 + a), exact to the last digits near 0 of every element; """
    ...
@overload
def log1p(a: F, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> F:
    ...
@overload
def log1p(a: Integer | Storage, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> Float32:
    ...
@overload
def log1p(a: Numeric, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> Numeric:
    ...
@overload
def log1p(a: float, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> float:
    ...
@overload
def expm1(a: TensorSSA, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> TensorSSA:
    """exp(a) - 1, exact to the last digits near 0 of every element; """
    ...
@overload
def expm1(a: F, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> F:
    ...
@overload
def expm1(a: Integer | Storage, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> Float32:
    ...
@overload
def expm1(a: Numeric, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> Numeric:
    ...
@overload
def expm1(a: float, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> float:
    ...
@overload
def sin(a: TensorSSA, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> TensorSSA:
    """Sine (of radians) of every element; """
    ...
@overload
def sin(a: F, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> F:
    ...
@overload
def sin(a: Integer | Storage, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> Float32:
    ...
@overload
def sin(a: Numeric, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> Numeric:
    ...
@overload
def sin(a: float, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> float:
    ...
@overload
def cos(a: TensorSSA, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> TensorSSA:
    """Cosine (of radians) of every element; """
    ...
@overload
def cos(a: F, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> F:
    ...
@overload
def cos(a: Integer | Storage, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> Float32:
    ...
@overload
def cos(a: Numeric, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> Numeric:
    ...
@overload
def cos(a: float, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> float:
    ...
@overload
def tan(a: TensorSSA, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> TensorSSA:
    """Tangent (of radians) of every element; """
    ...
@overload
def tan(a: F, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> F:
    ...
@overload
def tan(a: Integer | Storage, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> Float32:
    ...
@overload
def tan(a: Numeric, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> Numeric:
    ...
@overload
def tan(a: float, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> float:
    ...
@overload
def asin(a: TensorSSA, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> TensorSSA:
    """Arc sine (in radians) of every element; """
    ...
@overload
def asin(a: F, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> F:
    ...
@overload
def asin(a: Integer | Storage, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> Float32:
    ...
@overload
def asin(a: Numeric, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> Numeric:
    ...
@overload
def asin(a: float, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> float:
    ...
@overload
def acos(a: TensorSSA, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> TensorSSA:
    """Arc cosine (in radians) of every element; """
    ...
@overload
def acos(a: F, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> F:
    ...
@overload
def acos(a: Integer | Storage, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> Float32:
    ...
@overload
def acos(a: Numeric, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> Numeric:
    ...
@overload
def acos(a: float, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> float:
    ...
@overload
def atan(a: TensorSSA, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> TensorSSA:
    """Arc tangent (in radians) of every element; """
    ...
@overload
def atan(a: F, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> F:
    ...
@overload
def atan(a: Integer | Storage, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> Float32:
    ...
@overload
def atan(a: Numeric, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> Numeric:
    ...
@overload
def atan(a: float, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> float:
    ...
@overload
def tanh(a: TensorSSA, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> TensorSSA:
    """Hyperbolic tangent of every element; """
    ...
@overload
def tanh(a: F, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> F:
    ...
@overload
def tanh(a: Integer | Storage, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> Float32:
    ...
@overload
def tanh(a: Numeric, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> Numeric:
    ...
@overload
def tanh(a: float, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> float:
    ...
@overload
def sqrt(a: TensorSSA, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> TensorSSA:
    """Square root of every element; """
    ...
@overload
def sqrt(a: F, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> F:
    ...
@overload
def sqrt(a: Integer | Storage, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> Float32:
    ...
@overload
def sqrt(a: Numeric, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> Numeric:
    ...
@overload
def sqrt(a: float, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> float:
    ...
@overload
def rcp(a: TensorSSA, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> TensorSSA:
    """Reciprocal of every element; """
    ...
@overload
def rcp(a: F, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> F:
    ...
@overload
def rcp(a: Integer | Storage, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> Float32:
    ...
@overload
def rcp(a: Numeric, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> Numeric:
    ...
@overload
def rcp(a: float, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> float:
    ...
@overload
def rsqrt(a: TensorSSA, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> TensorSSA:
    """Reciprocal square root of every element; """
    ...
@overload
def rsqrt(a: F, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> F:
    ...
@overload
def rsqrt(a: Integer | Storage, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> Float32:
    ...
@overload
def rsqrt(a: Numeric, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> Numeric:
    ...
@overload
def rsqrt(a: float, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> float:
    ...
@overload
def erf(a: TensorSSA, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> TensorSSA:
    """Error function of every element; """
    ...
@overload
def erf(a: F, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> F:
    ...
@overload
def erf(a: Integer | Storage, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> Float32:
    ...
@overload
def erf(a: Numeric, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> Numeric:
    ...
@overload
def erf(a: float, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> float:
    ...
@overload
def floor(a: TensorSSA, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> TensorSSA:
    """Greatest integer not above of every element; """
    ...
@overload
def floor(a: F, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> F:
    ...
@overload
def floor(a: Integer | Storage, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> Float32:
    ...
@overload
def floor(a: Numeric, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> Numeric:
    ...
@overload
def floor(a: float, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> float:
    ...
@overload
def ceil(a: TensorSSA, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> TensorSSA:
    """Least integer not below of every element; """
    ...
@overload
def ceil(a: F, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> F:
    ...
@overload
def ceil(a: Integer | Storage, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> Float32:
    ...
@overload
def ceil(a: Numeric, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> Numeric:
    ...
@overload
def ceil(a: float, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> float:
    ...
@overload
def round(a: TensorSSA, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> TensorSSA:
    """Nearest integer, ties to even, of every element; """
    ...
@overload
def round(a: F, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> F:
    ...
@overload
def round(a: Integer | Storage, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> Float32:
    ...
@overload
def round(a: Numeric, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> Numeric:
    ...
@overload
def round(a: float, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> float:
    ...
@overload
def trunc(a: TensorSSA, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> TensorSSA:
    """Integer part of every element; """
    ...
@overload
def trunc(a: F, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> F:
    ...
@overload
def trunc(a: Integer | Storage, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> Float32:
    ...
@overload
def trunc(a: Numeric, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> Numeric:
    ...
@overload
def trunc(a: float, fastmath: bool=False, *, approx: bool=False, loc: Any=None, ip: Any=None) -> float:
    ...
@overload
def atan2(a: TensorSSA, b: TensorSSA | Numeric | float, fastmath: bool=False, *, loc: Any=None, ip: Any=None) -> TensorSSA:
    """The angle, in radians, of the point (b, a), element by element."""
    ...
@overload
def atan2(a: Numeric | float, b: TensorSSA, fastmath: bool=False, *, loc: Any=None, ip: Any=None) -> TensorSSA:
    ...
@overload
def atan2(a: F, b: F | float, fastmath: bool=False, *, loc: Any=None, ip: Any=None) -> F:
    ...
@overload
def atan2(a: float, b: float, fastmath: bool=False, *, loc: Any=None, ip: Any=None) -> float:
    ...
@overload
def atan2(a: Numeric | float, b: Numeric | float, fastmath: bool=False, *, loc: Any=None, ip: Any=None) -> Any:
    ...
@overload
def copysign(a: TensorSSA, b: TensorSSA | Numeric | float, fastmath: bool=False, *, loc: Any=None, ip: Any=None) -> TensorSSA:
    """The magnitude of a with the sign of b, element by element."""
    ...
@overload
def copysign(a: Numeric | float, b: TensorSSA, fastmath: bool=False, *, loc: Any=None, ip: Any=None) -> TensorSSA:
    ...
@overload
def copysign(a: F, b: F | float, fastmath: bool=False, *, loc: Any=None, ip: Any=None) -> F:
    ...
@overload
def copysign(a: float, b: float, fastmath: bool=False, *, loc: Any=None, ip: Any=None) -> float:
    ...
@overload
def copysign(a: Numeric | float, b: Numeric | float, fastmath: bool=False, *, loc: Any=None, ip: Any=None) -> Any:
    ...
@overload
def pow(a: TensorSSA, b: TensorSSA | Numeric | float, fastmath: bool=False, *, loc: Any=None, ip: Any=None) -> TensorSSA:
    """a to the power b, element by element."""
    ...
@overload
def pow(a: Numeric | float, b: TensorSSA, fastmath: bool=False, *, loc: Any=None, ip: Any=None) -> TensorSSA:
    ...
@overload
def pow(a: F, b: F | float, fastmath: bool=False, *, loc: Any=None, ip: Any=None) -> F:
    ...
@overload
def pow(a: float, b: float, fastmath: bool=False, *, loc: Any=None, ip: Any=None) -> float:
    ...
@overload
def pow(a: Numeric | float, b: Numeric | float, fastmath: bool=False, *, loc: Any=None, ip: Any=None) -> Any:
    ...
def absf(a: Any, *, loc: Any=None, ip: Any=None) -> Any:
    """Absolute value.

    >>> from tilewright import Float16, cute
    >>> cute.math.absf(-2.5), cute.math.absf(Float16(-1))
    (2.5, Float16(1.0))
    """
    ...
def fma(a: Any, b: Any, c: Any, *, loc: Any=None, ip: Any=None) -> Any:
    """``a * b + c`` with one rounding.

    >>> fma(2.0, 3.0, 1.0).value
    7.0
    """
    ...
@overload
def isnan(a: TensorSSA, *, loc: Any=None, ip: Any=None) -> TensorSSA:
    """Whether a number is not a number."""
    ...
@overload
def isnan(a: Numeric, *, loc: Any=None, ip: Any=None) -> Boolean:
    ...
@overload
def isnan(a: float, *, loc: Any=None, ip: Any=None) -> bool:
    ...
@overload
def isinf(a: TensorSSA, *, loc: Any=None, ip: Any=None) -> TensorSSA:
    """Whether a number is infinite."""
    ...
@overload
def isinf(a: Numeric, *, loc: Any=None, ip: Any=None) -> Boolean:
    ...
@overload
def isinf(a: float, *, loc: Any=None, ip: Any=None) -> bool:
    ...
