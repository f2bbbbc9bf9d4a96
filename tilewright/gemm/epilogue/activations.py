"""Activations as epilogue functions, by the names that PyTorch and others give them.

An epilogue has to be done with an element in the time that the main loop takes for its K multiply-adds, so results of
16 bits take forms of a few instructions (``quick``): exponentials by ``ex2.approx``, quotients by ``rcp.approx``. Their
relative error is below 5e-5, a sixth of the spacing of Float16. Results of 32 and 64 bits take the exact functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from tilewright import Constexpr, Float32, cute
from tilewright.errors import ArgumentError
from tilewright.gemm.epilogue.tile import EpilogueTile


class ActivationRow(NamedTuple):
    """One activation: of a fragment of sums, and of a tensor by PyTorch, which computes it where a gradient is wanted
    (its first argument is ``torch.nn.functional``). ``integers``: it has a meaning for integer sums, too. ``quick``: of
    a fragment of Float32 sums that become numbers of 16 bits, where that takes another form. ``long``: more than a
    dozen instructions even so."""

    of_sums: Callable[[Any], Any]
    of_torch: Callable[[Any, Any], Any]
    integers: bool = False
    quick: Callable[[Any], Any] | None = None
    long: bool = False


def relu(x: Any) -> Any:
    return cute.where(x < 0, cute.zeros_like(x), x)  # NaN stays


def squared_relu(x: Any) -> Any:
    return relu(x) * relu(x)


def gelu(x: Any) -> Any:
    """x times the normal distribution function, by erf."""
    return x * 0.5 * (cute.math.erf(x * math.sqrt(0.5)) + 1.0)


def gelu_tanh(x: Any) -> Any:
    """The approximation of GELU by tanh."""
    return x * 0.5 * (cute.math.tanh((x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)) + 1.0)


def sigmoid(x: Any) -> Any:
    return 1.0 / (cute.math.exp(-x) + 1.0)  # where exp(-x) is infinite, 0


def silu(x: Any) -> Any:
    return x * sigmoid(x)


LOG2_E = math.log2(math.e)


def quick_sigmoid(x: Any, scale: Any = 1.0) -> Any:
    """1 / (1 + exp(-scale * x))"""
    return cute.math.rcp(cute.math.exp2(x * (scale * -LOG2_E), fastmath=True) + 1.0, fastmath=True)


def quick_gelu_tanh(x: Any) -> Any:
    """As :func:`gelu_tanh`: 0.5 * (1 + tanh(u)) is the sigmoid of 2 * u."""
    half = math.sqrt(2 / math.pi)
    return x * quick_sigmoid(x, x * x * (2 * half * 0.044715) + 2 * half)


ERFC = (0.151226089, 0.157823264, 0.0919948445, 0.188859929, -0.0899214898)
"""Of t = 1 / (1 + 0.38 a), from t on: a polynomial for exp(a * a / 2) * P(X > a), X normal, a >= 0. Its relative error
is below 3.7e-5 (least squares, weighted until the extremes were even)."""


def quick_gelu(x: Any) -> Any:
    """As :func:`gelu`: max(x, 0) - |x| * P(X > |x|), which keeps its relative accuracy where x is negative."""
    a = cute.min(abs(x), 20.0)  # infinity times the probability, which is 0 beyond 14, is no number
    t = cute.math.rcp(a * 0.38 + 1.0, fastmath=True)
    polynomial = cute.full_like(x, ERFC[-1])
    for coefficient in ERFC[-2::-1]:
        polynomial = polynomial * t + coefficient
    probability = polynomial * t * cute.math.exp2(x * x * (-0.5 * LOG2_E), fastmath=True)
    return relu(x) - a * probability


ACTIVATIONS = {
    "relu": ActivationRow(relu, lambda functional, x: functional.relu(x), integers=True),
    "squared_relu": ActivationRow(squared_relu, lambda functional, x: functional.relu(x).square(), integers=True),
    "gelu": ActivationRow(gelu, lambda functional, x: functional.gelu(x), quick=quick_gelu, long=True),
    "gelu_tanh": ActivationRow(
        gelu_tanh, lambda functional, x: functional.gelu(x, approximate="tanh"), quick=quick_gelu_tanh
    ),
    "sigmoid": ActivationRow(sigmoid, lambda functional, x: functional.sigmoid(x), quick=quick_sigmoid),
    "silu": ActivationRow(silu, lambda functional, x: functional.silu(x), quick=lambda x: x * quick_sigmoid(x)),
    "tanh": ActivationRow(cute.math.tanh, lambda functional, x: functional.tanh(x), long=True),
}
"""A new activation is a row here; ``matmul`` and the operator of PyTorch find it by its name."""


@dataclass(frozen=True)
class Activation:
    """acc = the function of that name of acc; ``ACTIVATIONS`` has the names. ``quick``: in the form for results of 16
    bits, if it has one."""

    name: str
    quick: Constexpr = False

    @cute.jit
    def __call__(self, acc: cute.Tensor, tile: EpilogueTile) -> None:
        row = ACTIVATIONS[self.name]
        function = row.quick if self.quick and row.quick is not None else row.of_sums
        acc.store(function(acc.load()).to(acc.element_type))


def activation_of(name: str, acc_dtype: Any, result: Any = None) -> Activation:
    """The activation of that name for accumulators of ``acc_dtype`` that are rounded to ``result``; ArgumentError for
    an unknown name."""
    if not isinstance(name, str) or name not in ACTIVATIONS:
        raise ArgumentError(f"there is no activation {name!r}; there are {', '.join(ACTIVATIONS)}")
    if acc_dtype.is_integer and not ACTIVATIONS[name].integers:
        known = ", ".join(name for name, row in ACTIVATIONS.items() if row.integers)
        raise ArgumentError(f"{name} of integer sums is not an integer: only {known} of them is")
    return Activation(name, result is not None and result.width == 16 and acc_dtype is Float32)
