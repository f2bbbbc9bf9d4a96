"""Kernels of wgmma.sp and of mma.sp: the Hopper and the multistage family with a 2:4 sparse A."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tilewright import Int32
from tilewright.atoms.sparsity import METADATA_ROWS, word_k
from tilewright.gemm.arrays import Matrix, SparseMatrix
from tilewright.gemm.config import AnyConfig, Major, Operand
from tilewright.gemm.family.accesses import ProductOperands
from tilewright.gemm.family.base import KernelFamily
from tilewright.gemm.family.hopper import Hopper
from tilewright.gemm.family.multistage import Multistage
from tilewright.gemm.kernel.sparse import SparseGemm, SparseOperand
from tilewright.gemm.kernel.sparse_multistage import SparseMultistageGemm

METADATA = Operand(Int32, Major.MN, 128)


class TakesSparseA(KernelFamily):
    """The part of a family that makes its A a :class:`~tilewright.gemm.arrays.SparseMatrix`."""

    grouped: ClassVar[Any] = None

    def tensors(self, config: AnyConfig, A: Any, B: Any, *results: Any) -> tuple[Any, ...]:
        stored, *others = super().tensors(config, A, B, *results)
        return SparseOperand(stored, A.metadata.transposed().tensor(METADATA)), *others

    def stand_in(self, config: AnyConfig, matrix: Matrix) -> SparseMatrix:
        m, k, _ = matrix.shape
        metadata = np.zeros((k // word_k(matrix.dtype.width), 128 * -(-m // METADATA_ROWS)), np.int32)
        stored = Matrix.of(matrix.name, matrix.source[:, : k // 2])
        return SparseMatrix(stored.name, stored.source, stored.array, Matrix.of("the metadata", metadata))

    def with_block_scales(self, config: AnyConfig, rows: int | None, columns: int | None, smem: int) -> None:
        return None

    def product_refusal(self, config: AnyConfig, product: ProductOperands, decomposition: Any) -> str | None:
        if not isinstance(product.A, SparseMatrix):
            return "its A is 2:4 sparse, and this one is dense: compress it, and multiply with sparse_matmul"
        if product.A.major() is not Major.K:
            return "the stored elements of a sparse A are contiguous along K"
        return super().product_refusal(config, product, decomposition)


class SparseHopper(TakesSparseA, Hopper):
    """It takes a sparse A whose stored elements TMA can read along K."""

    grouped: ClassVar[Any] = None

    def kernel(self, config: Any) -> SparseGemm:
        return SparseGemm(config)


class SparseMultistage(TakesSparseA, Multistage):
    """It takes a sparse A, of whole words of metadata along K."""

    grouped: ClassVar[Any] = None

    def kernel(self, config: Any) -> SparseMultistageGemm:
        return SparseMultistageGemm(config)

    def product_refusal(self, config: AnyConfig, product: ProductOperands, decomposition: Any) -> str | None:
        step = word_k(config.a.dtype.width)
        if product.shape[2] % step:
            return f"K is {product.shape[2]}, not a multiple of {step}: fill A and B up with zeros"
        return super().product_refusal(config, product, decomposition)
