"""How JAX arrays appear to kernels: order of modes, static or run-time extents, alignment, divisibility."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.errors import ArgumentError
from tilewright.lang.arguments.arrays import Array
from tilewright.lang.arguments.dlpack import HostTensor, tensor_over
from tilewright.lang.numbers.dtypes import dtype as numeric


@dataclass(frozen=True)
class TensorSpec:
    """One array as a kernel sees it.

    Attributes:
        layout: the array's dimensions from the slowest to the fastest in memory; None means row-major.
        mode: the tensor's mode ``i`` is the array's dimension ``mode[i]``; None keeps them.
        static: whether extents and strides are part of the compiled kernel; None: as ``use_static_tensors`` says.
        ptr_assumed_align: what the address is known to be a multiple of, in bytes.
        divisibility: of run-time extents, for each dimension of the array (an int: of the fastest one).
    """

    layout: tuple[int, ...] | None = None
    mode: tuple[int, ...] | None = None
    static: bool | None = None
    ptr_assumed_align: int = 16
    divisibility: tuple[int | None, ...] | int | None = None

    def order(self, rank: int) -> tuple[int, ...]:
        """The dimensions from the slowest to the fastest."""
        return _permutation("layout", self.layout, rank)

    def tensor(self, array: Array, static: bool) -> HostTensor:
        """``array`` as the kernel's tensor."""
        rank = len(array.shape)
        modes = _permutation("mode", self.mode, rank)
        by_dimension = self.divisors(rank)
        shape, stride = (tuple(part[m] for m in modes) for part in (array.shape, array.stride))
        seen = tensor_over(array._replace(shape=shape, stride=stride), self.ptr_assumed_align)
        if static if self.static is None else self.static:
            return seen
        if not rank:
            return seen
        fastest = self.order(rank)[-1]
        slow_to_fast = tuple(modes.index(d) for d in self.order(rank))
        seen = seen.mark_layout_dynamic(leading_dim=modes.index(fastest))
        for dimension, divisor in enumerate(by_dimension):
            if divisor > 1:
                if array.shape[dimension] % divisor:
                    raise ArgumentError(
                        f"TensorSpec: divisibility {divisor} of dimension {dimension}, whose extent is "
                        f"{array.shape[dimension]}"
                    )
                mode = modes.index(dimension)
                seen = seen.mark_compact_shape_dynamic(mode, stride_order=slow_to_fast, divisibility=divisor)
        return seen

    def divisors(self, rank: int) -> tuple[int, ...]:
        divisibility = self.divisibility
        if divisibility is None or isinstance(divisibility, int):
            fastest = self.order(rank)[-1] if rank else 0
            return tuple(int(divisibility or 1) if d == fastest else 1 for d in range(rank))
        if len(divisibility) != rank:
            raise ArgumentError(f"TensorSpec: divisibility {divisibility} of an array with {rank} dimensions")
        return tuple(1 if d is None else d for d in divisibility)


def _permutation(what: str, given: tuple[int, ...] | None, rank: int) -> tuple[int, ...]:
    permutation = tuple(range(rank)) if given is None else tuple(given)
    if sorted(permutation) != list(range(rank)):
        raise ArgumentError(f"TensorSpec: {what} {given} does not name each of {rank} dimensions once")
    return permutation


def compact(shape: tuple[int, ...], order: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of a compact array whose dimensions are in ``order``, slowest first.

    >>> compact((4, 8), (0, 1)), compact((4, 8), (1, 0))
    ((8, 1), (1, 4))
    """
    stride, step = [0] * len(shape), 1
    for dimension in reversed(order):
        stride[dimension] = step
        step *= max(shape[dimension], 1)
    return tuple(stride)


def jax_to_cutlass_dtype(dtype: Any) -> Any:
    """The numeric class of a JAX dtype."""
    import numpy as np

    return numeric(np.dtype(dtype))


def cutlass_to_jax_dtype(dtype: Any) -> Any:
    """The JAX dtype of a numeric class."""
    import jax.numpy as jnp

    return jnp.dtype(numeric(dtype).dtype)
