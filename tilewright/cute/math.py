"""``cute.math``: elementary functions of numerics and TensorSSAs."""

from tilewright._names import attach
from tilewright.lang.tensors.choose import max, min
from tilewright.lang.tensors.math import (
    absf,
    acos,
    asin,
    atan,
    atan2,
    ceil,
    copysign,
    cos,
    erf,
    exp,
    exp2,
    floor,
    fma,
    isinf,
    isnan,
    log,
    log2,
    log10,
    pow,
    rcp,
    round,
    rsqrt,
    sin,
    sqrt,
    tan,
    tanh,
    trunc,
)

__all__ = [
    "absf", "acos", "asin", "atan", "atan2", "ceil", "copysign", "cos", "erf", "exp", "exp2", "floor", "fma", "isinf",
    "isnan", "log", "log10", "log2", "max", "min", "pow", "rcp", "round", "rsqrt", "sin", "sqrt", "tan", "tanh",
    "trunc",
]  # fmt: skip

attach(__name__)
