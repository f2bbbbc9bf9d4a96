"""Activations as epilogue functions, by the names that PyTorch and others give them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilewright import cute
from tilewright.errors import ArgumentError
from tilewright.gemm.epilogue.tile import EpilogueTile


def relu(x: Any) -> Any:
    return cute.where(x > 0, x, cute.zeros_like(x))


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


def tanh(x: Any) -> Any:
    return cute.math.tanh(x)


ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "relu": relu, "gelu": gelu, "gelu_tanh": gelu_tanh, "sigmoid": sigmoid, "silu": silu, "tanh": tanh,
}  # fmt: skip


@dataclass(frozen=True)
class Activation:
    """acc = the function of that name of acc; ``ACTIVATIONS`` has the names. All but "relu" want floating-point
    accumulators."""

    name: str

    @cute.jit
    def __call__(self, acc: cute.Tensor, tile: EpilogueTile) -> None:
        acc.store(ACTIVATIONS[self.name](acc.load()).to(acc.element_type))


def activation_of(name: str, acc_dtype: Any) -> Activation:
    """The activation of that name for accumulators of ``acc_dtype``; ArgumentError where there is none."""
    if not isinstance(name, str) or name not in ACTIVATIONS:
        raise ArgumentError(f"there is no activation {name!r}; there are {', '.join(ACTIVATIONS)}")
    if acc_dtype.is_integer and name != "relu":
        raise ArgumentError(f"{name} of integer sums: only relu is one")
    return Activation(name)
