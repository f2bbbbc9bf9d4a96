"""Activations as epilogue functions, by the names that PyTorch and others give them.

An epilogue has to be done with an element in the time that the main loop takes for its K multiply-adds, so results of
16 bits take forms of a few instructions (``quick``): exponentials by ``ex2.approx``, quotients by ``rcp.approx``. Their
relative error is below 5e-5, a tenth of the spacing of Float16, where results are larger than 5e-15; that of ``gelu``
is below 7.5e-5 where results are larger than 6e-5, and its absolute error below 1e-8 elsewhere (of x * (1 + erf) in
Float32, some 1e-7). Results of 32 and 64 bits take the exact functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from tilewright import Constexpr, Float32, cute, range_constexpr
from tilewright.errors import ArgumentError
from tilewright.gemm.epilogue.functions import OfWholeSums
from tilewright.gemm.epilogue.tile import EpilogueTile


class ActivationRow(NamedTuple):
    """One activation: of a fragment of sums, and of a tensor by PyTorch, which computes it where a gradient is required
    (its first argument is ``torch.nn.functional``). ``integers``: it has a meaning for integer sums, too. ``quick``: of
    a fragment of Float32 sums that become numbers of 16 bits, where that takes another form. ``long``: other forms have
    many more than a dozen instructions. ``derivative``: of a fragment of numbers, that of the activation there."""

    of_sums: Callable[[Any], Any]
    of_torch: Callable[[Any, Any], Any]
    derivative: Callable[[Any], Any]
    integers: bool = False
    quick: Callable[[Any], Any] | None = None
    long: bool = False

    def is_long(self, result: Any) -> bool:
        """Whether the activation has many instructions for each element of type ``result``."""
        return self.long and (self.quick is None or result.width != 16)


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


def tanh_derivative(x: Any) -> Any:
    return 1.0 - cute.math.tanh(x) * cute.math.tanh(x)


def sigmoid_derivative(x: Any) -> Any:
    return sigmoid(x) * sigmoid(-x)


def step(x: Any) -> Any:
    """The derivative of ReLU: 1 where x > 0, else 0."""
    return cute.where(x > 0, cute.full_like(x, 1), cute.zeros_like(x))


def gelu_derivative(x: Any) -> Any:
    density = cute.math.exp(x * x * -0.5) * (1 / math.sqrt(2 * math.pi))
    return 0.5 * (cute.math.erf(x * math.sqrt(0.5)) + 1.0) + x * density


def gelu_tanh_derivative(x: Any) -> Any:
    half = math.sqrt(2 / math.pi)
    u = (x + x * x * x * 0.044715) * half
    return 0.5 * (cute.math.tanh(u) + 1.0) + x * 0.5 * tanh_derivative(u) * (x * x * (3 * 0.044715) + 1.0) * half


LOG2_E = math.log2(math.e)


def quick_sigmoid(x: Any, scale: Any = 1.0) -> Any:
    """1 / (1 + exp(-scale * x))"""
    return cute.math.rcp(cute.math.exp2(x * (scale * -LOG2_E), fastmath=True) + 1.0, fastmath=True)


def quick_gelu_tanh(x: Any) -> Any:
    """As :func:`gelu_tanh`: 0.5 * (1 + tanh(u)) is the sigmoid of 2 * u."""
    half = math.sqrt(2 / math.pi)
    return x * quick_sigmoid(x, x * x * (2 * half * 0.044715) + 2 * half)


LOG2_TAIL = (-1.00010288, -1.14942598, -0.463577747, -0.0486412719, 0.00594789069, -0.000332942524)
"""A polynomial in a for log2(P(X > a)), X normal (least squares, weighted until the extremes were even): it is off by
7.2e-5 of the probability at most up to a = 4.17, and by 9e-9 / a at most beyond: 0.15 of the spacing of Float16 in
results, also where they are subnormal. Each instruction of the epilogue costs energy, which large products lack."""


def quick_gelu(x: Any) -> Any:
    """As :func:`gelu`: max(x, 0) - |x| * P(X > |x|), which keeps its relative accuracy where x is negative."""
    a = cute.min(abs(x), 20.0)  # infinity times the probability, which is 0 beyond 14, would be NaN
    exponent = cute.full_like(x, LOG2_TAIL[-1])
    for coefficient in LOG2_TAIL[-2::-1]:
        exponent = exponent * a + coefficient
    return relu(x) - a * cute.math.exp2(exponent, fastmath=True)


ACTIVATIONS = {
    "relu": ActivationRow(relu, lambda functional, x: functional.relu(x), step, integers=True),
    "squared_relu": ActivationRow(
        squared_relu, lambda functional, x: functional.relu(x).square(), lambda x: relu(x) * 2, integers=True
    ),
    "gelu": ActivationRow(gelu, lambda functional, x: functional.gelu(x), gelu_derivative, quick=quick_gelu, long=True),
    "gelu_tanh": ActivationRow(
        gelu_tanh,
        lambda functional, x: functional.gelu(x, approximate="tanh"),
        gelu_tanh_derivative,
        quick=quick_gelu_tanh,
    ),
    "sigmoid": ActivationRow(
        sigmoid, lambda functional, x: functional.sigmoid(x), sigmoid_derivative, quick=quick_sigmoid
    ),
    "silu": ActivationRow(
        silu,
        lambda functional, x: functional.silu(x),
        lambda x: sigmoid(x) + x * sigmoid_derivative(x),
        quick=lambda x: x * quick_sigmoid(x),
    ),
    "tanh": ActivationRow(cute.math.tanh, lambda functional, x: functional.tanh(x), tanh_derivative, long=True),
}
"""A new activation is a row here; ``matmul`` and the operator of PyTorch find it by its name."""


@dataclass(frozen=True)
class Activation(OfWholeSums):
    """acc = the function of that name of acc; ``ACTIVATIONS`` has the names. ``quick``: in the form for results of 16
    bits, if it has one; ``matmul`` sets it.

    >>> from tilewright.gemm import matmul
    >>> a = np.eye(16, dtype=np.float16)
    >>> float(matmul(a, -a, epilogue=Activation("relu")).min())
    0.0
    """

    name: str
    quick: Constexpr = False

    @cute.jit
    def __call__(self, acc: cute.Tensor, tile: EpilogueTile) -> None:
        row = ACTIVATIONS[self.name]
        function = row.quick if self.quick and row.quick is not None else row.of_sums
        acc.store(function(acc.load()).to(acc.element_type))


@dataclass(frozen=True)
class ActivationGradient(OfWholeSums):
    """acc *= f'(matrix[m, n]), f the activation of that name: the gradient with respect to what f was applied to.

    >>> from tilewright.gemm import matmul
    >>> a, before = np.ones((32, 32), np.float16), np.float16([[-1, 2] * 16] * 32)
    >>> matmul(a, a, epilogue=ActivationGradient("relu", before))[0, :3].tolist()
    [0.0, 32.0, 0.0]
    """

    name: str
    matrix: Any  # (M, N), a cute.Tensor or an array

    @property
    def matrices(self) -> list[tuple[Any, bool]]:
        return [(self.matrix, False)]

    @cute.jit
    def __call__(self, acc: cute.Tensor, tile: EpilogueTile) -> None:
        slope = ACTIVATIONS[self.name].derivative(tile.read(self.matrix).to(acc.element_type))
        acc.store((acc.load() * slope).to(acc.element_type))


@dataclass(frozen=True)
class Gated(OfWholeSums):
    """matrix[m, j] = f(acc[m, 2 * j]) * acc[m, 2 * j + 1], f the activation of that name ("silu" for SwiGLU, "gelu" for
    GEGLU, "relu" for ReGLU), of interleaved gate and up columns; acc stays, for the gradient. N is even, and kernels
    that compute the transposed product are not taken. Without ``store_preact`` the sums are not written: ``matmul`` and
    ``grouped_matmul`` give ``matrix`` in their place, take no ``out``, and the function is the last one; ``gemm``
    leaves D as it is.

    >>> from tilewright.gemm import matmul
    >>> a, b, gated = np.eye(16, dtype=np.float16), np.float16([[-3, 2, 5, 4] * 4] * 16), np.empty((16, 8), np.float16)
    >>> both = matmul(a, b, epilogue=Gated("relu", gated))
    >>> both[0, :4].tolist(), gated[0, :2].tolist()
    ([-3.0, 2.0, 5.0, 4.0], [0.0, 20.0])
    >>> matmul(a, b, epilogue=Gated("relu", gated, store_preact=False)) is gated
    True
    """

    name: str
    matrix: Any  # (M, N / 2), a cute.Tensor or an array
    quick: Constexpr = False
    store_preact: Constexpr = True

    untransposed = True

    @property
    def stores_result(self) -> bool:
        return bool(self.store_preact)

    @property
    def matrices(self) -> list[tuple[Any, bool, int]]:
        return [(self.matrix, True, 2)]

    @cute.jit
    def __call__(self, acc: cute.Tensor, tile: EpilogueTile) -> None:
        first, step = tile.column_pairs()
        gate, up = (cute.make_rmem_tensor(len(first), acc.element_type) for _ in range(2))
        for i in range_constexpr(len(first)):
            gate[i] = acc[first[i]]
            up[i] = acc[first[i] + step]
        row = ACTIVATIONS[self.name]
        function = row.quick if self.quick and row.quick is not None else row.of_sums
        gate.store((function(gate.load()) * up.load()).to(acc.element_type))
        tile.write_pairs(self.matrix, gate, tuple(first))


def activation_of(name: str, acc_dtype: Any, result: Any = None) -> Activation:
    """The activation of that name for accumulators of ``acc_dtype`` that are rounded to ``result``; ArgumentError for
    an unknown name."""
    check_activation(name, acc_dtype)
    return Activation(name, result is not None and result.width == 16 and acc_dtype is Float32)


def check_activation(name: str, acc_dtype: Any) -> None:
    """ArgumentError for an unknown name, and for one that has no meaning for integers where sums are that."""
    if not isinstance(name, str) or name not in ACTIVATIONS:
        raise ArgumentError(f"there is no activation {name!r}; there are {', '.join(ACTIVATIONS)}")
    if acc_dtype.is_integer and not ACTIVATIONS[name].integers:
        known = ", ".join(name for name, row in ACTIVATIONS.items() if row.integers)
        raise ArgumentError(f"{name} of integer sums is not an integer: only {known} of them is")
