# Made by `python tools/stubs.py` from tilewright/lang/tensors/math.py; do not edit.
# ruff: noqa: E501, F401, F403, I001, UP
"""``cute.math``: elementary functions of numerics, TensorSSAs and Python numbers.

``fastmath=True`` allows the approximate hardware instructions. Integers compute in Float32; the 8-bit floats and
TFloat32 in Float32, Float16 and BFloat16 in their own type.
"""

from tilewright.lang.numbers.numeric import Boolean
from tilewright.lang.numbers.numeric import Numeric
from tilewright.lang.tensors.tensor_ssa import TensorSSA
from typing import Any
from typing import overload

def absf(a: Any, *, loc: Any=None, ip: Any=None) -> Any:
    """Absolute value."""
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
