"""An epilogue function that adds up the columns of a product: the gradient of a bias."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright import cute, range_constexpr
from tilewright.errors import ArgumentError
from tilewright.gemm.epilogue.functions import OfWholeSums
from tilewright.gemm.epilogue.quads import QUAD
from tilewright.gemm.epilogue.tile import EpilogueTile
from tilewright.lang.arguments.arrays import array_behind
from tilewright.lang.numbers.numeric import Float32


@dataclass(frozen=True)
class BiasGradient(OfWholeSums):
    """vector[n] += the sum over m of acc[m, n], by atomic additions in any order; acc stays. Behind
    :class:`~tilewright.gemm.epilogue.activations.ActivationGradient` it is what cuBLASLt calls DRELU_BGRAD and
    DGELU_BGRAD: the product is the gradient of what a bias was added to, the vector that of the bias. Its last bits may
    differ from launch to launch. All lanes of a warp call it.

    >>> from tilewright.gemm import matmul
    >>> a, sums = np.ones((40, 32), np.float16), np.zeros(24, np.float32)
    >>> _ = matmul(a, np.ones((32, 24), np.float16), epilogue=BiasGradient(sums))
    >>> sums[:2].tolist()  # 40 rows of 32
    [1280.0, 1280.0]
    """

    vector: Any  # (N,) of Float32, 0 or what the sums are added to: a cute.Tensor or an array

    @property
    def targets(self) -> list[Any]:
        return [self.vector]

    def check(self, m: int, n: int) -> None:
        """ArgumentError for an array of another type or size."""
        array = array_behind(self.vector)
        if array is not None and (array.dtype is not Float32 or tuple(array.shape) != (n,)):
            raise ArgumentError(
                f"BiasGradient: a vector of {n} numbers of Float32, one for each column of D, is wanted, not one of "
                f"{array.dtype.__name__} and shape {tuple(array.shape)}"
            )

    @cute.jit
    def __call__(self, acc: cute.Tensor, tile: EpilogueTile) -> None:
        columns = tile.distinct(1)  # the number of each accumulator's column among the thread's
        sums = cute.make_rmem_tensor(max(columns) + 1, Float32)
        sums.fill(0)
        for i in range_constexpr(cute.size(acc)):
            if cute.elem_less(tile.coordinates[i], tile.extent):
                sums[columns[i]] = sums[columns[i]] + acc[i].to(Float32)
        lane = cute.arch.lane_idx()
        adds: Any = True
        # Lanes of a quad hold the same rows of the kernel's, lanes a quad apart the same columns: these add up first.
        steps = () if not tile.quads else (1, 2) if tile.transposed else (4, 8, 16)
        if tile.quads:
            adds = lane % QUAD == 0 if tile.transposed else lane < QUAD
        for i in range_constexpr(cute.size(sums)):
            for step in steps:
                sums[i] = sums[i] + cute.arch.shuffle_sync_bfly(sums[i], step)
            at = tile.coordinates[columns.index(i)]
            n = tile.of_user(at)[1]
            if adds & (n < tile.of_user(tile.extent)[1]):
                place = self.vector.iterator + n * self.vector.stride[0]
                cute.arch.atomic_add(place, sums[i], sem="relaxed", scope="gpu")
