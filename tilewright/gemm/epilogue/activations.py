"""Activations as epilogue functions, by the names that PyTorch and others give them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from tilewright import cute
from tilewright.errors import ArgumentError
from tilewright.gemm.epilogue.tile import EpilogueTile


class ActivationRow(NamedTuple):
    """One activation: of a fragment of sums, and of a tensor by PyTorch, which computes it where a gradient is wanted
    (its first argument is ``torch.nn.functional``). ``integers``: it has a meaning for integer sums, too."""

    of_sums: Callable[[Any], Any]
    of_torch: Callable[[Any, Any], Any]
    integers: bool = False


def relu(x: Any) -> Any:
    return cute.where(x > 0, x, cute.zeros_like(x))


def squared_relu(x: Any) -> Any:
    return relu(x) * relu(x)


def gelu(x: Any) -> Any:
    """x times the normal distribution function, by erf."""
    return x * 0.5 * (cute.math.erf(x * math.sqrt(0.5)) + 1.0)


def gelu_tanh(x: Any) -> Any:
    """The approximation of GELU by tanh."""
    return x * 0.5 * (cute.math.tanh((x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)) + 1.0)


def sigmoid(x: Any) -> Any:
    # By tanh, which is finite everywhere; exp(-x) would overflow.
    return cute.math.tanh(x * 0.5) * 0.5 + 0.5


def silu(x: Any) -> Any:
    return x * sigmoid(x)


ACTIVATIONS = {
    "relu": ActivationRow(relu, lambda functional, x: functional.relu(x), integers=True),
    "squared_relu": ActivationRow(squared_relu, lambda functional, x: functional.relu(x).square(), integers=True),
    "gelu": ActivationRow(gelu, lambda functional, x: functional.gelu(x)),
    "gelu_tanh": ActivationRow(gelu_tanh, lambda functional, x: functional.gelu(x, approximate="tanh")),
    "sigmoid": ActivationRow(sigmoid, lambda functional, x: functional.sigmoid(x)),
    "silu": ActivationRow(silu, lambda functional, x: functional.silu(x)),
    "tanh": ActivationRow(cute.math.tanh, lambda functional, x: functional.tanh(x)),
}
"""A new activation is a row here; ``matmul`` and the operator of PyTorch find it by its name."""


@dataclass(frozen=True)
class Activation:
    """acc = the function of that name of acc; ``ACTIVATIONS`` has the names."""

    name: str

    @cute.jit
    def __call__(self, acc: cute.Tensor, tile: EpilogueTile) -> None:
        acc.store(ACTIVATIONS[self.name].of_sums(acc.load()).to(acc.element_type))


def activation_of(name: str, acc_dtype: Any) -> Activation:
    """The activation of that name for accumulators of ``acc_dtype``; ArgumentError for an unknown name."""
    if not isinstance(name, str) or name not in ACTIVATIONS:
        raise ArgumentError(f"there is no activation {name!r}; there are {', '.join(ACTIVATIONS)}")
    if acc_dtype.is_integer and not ACTIVATIONS[name].integers:
        known = ", ".join(name for name, row in ACTIVATIONS.items() if row.integers)
        raise ArgumentError(f"{name} of integer sums is not an integer: only {known} of them is")
    return Activation(name)
