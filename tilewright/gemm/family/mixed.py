"""Kernels of wgmma whose A is a prepared weight of 4 or 8 bits: the Hopper family with another operand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from tilewright import Float4E2M1FN, Float8E4M3FN, Int4, Int8, Int32, Uint8
from tilewright.gemm.arrays import Matrix, PreparedMatrix
from tilewright.gemm.config import AnyConfig, HopperConfig, Major, Operand
from tilewright.gemm.epilogue.tma_store import TmaStoreEpilogue
from tilewright.gemm.family.accesses import OperandAccess, ProductOperands
from tilewright.gemm.family.estimate import CostModel
from tilewright.gemm.family.hopper import Hopper
from tilewright.gemm.family.hopper_cost import HopperModel
from tilewright.gemm.family.plan_options import Limits, PlanOption, Problem, Vector
from tilewright.gemm.kernel.mixed_hopper import MixedHopperGemm, MixedOperand
from tilewright.gemm.mainloop.tma import TmaMainloop
from tilewright.gemm.mixed_config import COLUMNS

WORDS, ZEROS = Operand(Int32, Major.K, 128), Operand(Uint8, Major.MN, 128)
CONVERTED = {Int4: 3.6e4, Int8: 3.1e4, Float4E2M1FN: 3.1e4, Float8E4M3FN: 2.5e4}
"""Numbers a microsecond that a multiprocessor converts to 16 bits, scales and hands to wgmma from registers: what a k
tile takes at least, however few columns it has (measured at 64 columns; Float4E2M1FN is taken from Int8)."""
ALONE = 1.15
"""How much slower one warpgroup does that."""
NARROWED = 1.1e5
"""Numbers a microsecond that become 8-bit floats."""

REFILL = 4.0
"""Microseconds for each further wave of clusters that share k tiles: the stages hold sums, so that the loads of the
next tile wait for the exchange (11008x4096 and 64 rows in three waves: 23.4 us, the rest of the model says 13.4)."""


class MixedModel(HopperModel):
    """As for 16-bit operands, but that a k tile of the weight is converted beside the tensor cores, and that its loads
    come from memory."""

    def __init__(self, options: list[PlanOption], limits: Limits) -> None:
        super().__init__(options, limits)
        self.loop = self.loop.clip(min=self.of_each(converted_us))

    def times(self, problem: Problem, sharing: bool = True) -> Vector:
        times, (m, n, _, _) = super().times(problem, sharing), problem
        slices = slice(self.one_block, self.unshared)
        waves = np.ceil(m / self.rows[slices]) * np.ceil(n / self.columns[slices]) / self.workers[slices]
        times[slices] += REFILL * (np.ceil(waves) - 1)
        return times


def converted_us(config: Any) -> float:
    """Microseconds in which the weight of a k tile is converted."""
    numbers: int = config.tile[0] * config.tile[2]
    if config.narrow:
        return numbers / NARROWED
    return numbers / CONVERTED[config.a.dtype] * (ALONE if config.warpgroups == 1 else 1)


class MixedHopper(Hopper):
    """It takes a :class:`~tilewright.gemm.arrays.PreparedMatrix` as the B of a product, and rows that TMA reads."""

    model: ClassVar[type[CostModel]] = MixedModel
    grouped: ClassVar[Any] = None
    packs = False

    def kernel(self, config: Any) -> MixedHopperGemm:
        return MixedHopperGemm(config)

    def tensors(self, config: Any, A: Any, B: Any, *results: Any) -> tuple[Any, ...]:
        scales = A.scales.tensor(Operand(config.scale_dtype, Major.MN, 128), self.whole_rows)
        zeros = None if A.zeros is None else A.zeros.tensor(ZEROS, self.whole_rows)
        weight = MixedOperand(A.words.tensor(WORDS), scales, zeros)
        return weight, B.tensor(config.b, self.whole_rows), *[matrix.tensor(config.c) for matrix in results]

    def with_block_scales(self, config: AnyConfig, rows: int | None, columns: int | None, smem: int) -> None:
        return None

    def joined_sizes(self, config: AnyConfig) -> Iterator[HopperConfig]:
        yield from ()

    def accesses(self, config: AnyConfig, product: ProductOperands) -> list[OperandAccess]:
        """The rows, the scales and zero points of the weight, and D."""
        B: Any = product.B
        vectors = [("B", TmaMainloop.ACCESS, x, Major.MN) for x in (B.scales, B.zeros) if x is not None]
        listed = [("A", TmaMainloop.ACCESS, product.A, Major.K), *vectors]
        return [OperandAccess(*x) for x in (*listed, ("D", TmaStoreEpilogue.ACCESS, product.D, Major.K))]

    def product_refusal(self, config: AnyConfig, product: ProductOperands, decomposition: Any) -> str | None:
        if not isinstance(product.B, PreparedMatrix):
            return "its weight is prepared: arrange it with prepare_weight, and multiply with mixed_matmul"
        return super().product_refusal(config, product, decomposition)

    def types_refusal(self, config: AnyConfig, product: ProductOperands) -> str | None:
        return None

    def stand_in(self, config: Any, matrix: Matrix) -> PreparedMatrix:
        (n, k, _), numbers = matrix.shape, 32 // config.a.dtype.width
        words = Matrix.of(matrix.name, np.zeros((n // COLUMNS, COLUMNS * k // numbers), np.int32))
        vectors = np.zeros((k // config.scale_k, n), config.scale_dtype.ir_type.dtype)
        zeros = Matrix.of("zeros", np.zeros(vectors.shape, np.uint8).T) if config.zeros else None
        scales = Matrix.of("scales", vectors.T)
        return PreparedMatrix(words.name, words.source, words.array, scales, zeros, config.a.dtype)
