"""How a thread block multiplies: on tensor cores through ldmatrix and mma.sync, or with FMAs, one for each element."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tilewright import BFloat16, Float16, Float64, Int8, TFloat32, Uint8, cute
from tilewright.gemm.config import GemmConfig, Major, Operand
from tilewright.gemm.tiles import smem_padded, smem_swizzled


def tensor_core_op(dtype: Any, acc_dtype: Any, sparse: bool = False, b_dtype: Any = None) -> Any:
    """The mma.sync operation for operands of ``dtype``: 32 bytes of K where ldmatrix feeds it, 8x8x4 for Float64. B may
    be the other kind of 8-bit floats, ``b_dtype``. With a ``sparse`` A, of 8 to 32 bits, it is mma.sp, which has twice
    the elements of K of B, and of A those that are stored."""
    warp = cute.nvgpu.warp
    if sparse:
        if dtype in (Float16, BFloat16):
            return warp.MmaF16BF16Op(dtype, acc_dtype, (16, 8, 32), sparse=True)
        if dtype is TFloat32:
            return warp.MmaTF32Op((16, 8, 16), sparse=True)
        if dtype.is_float:
            return warp.MmaFP8Op(dtype, acc_dtype, (16, 8, 64), sparse=True)
        return warp.MmaI8Op(dtype, dtype, (16, 8, 64), sparse=True)
    if dtype in (Float16, BFloat16):
        return warp.MmaF16BF16Op(dtype, acc_dtype, (16, 8, 16))
    if dtype is TFloat32:
        return warp.MmaTF32Op((16, 8, 8))
    if dtype is Float64:
        return warp.MmaF64Op((8, 8, 4))
    if dtype in (Int8, Uint8):
        return warp.MmaI8Op(dtype, dtype, (16, 8, 32))
    return warp.MmaFP8Op(dtype, acc_dtype, (16, 8, 32), b_dtype=None if b_dtype is dtype else b_dtype)


@dataclass(frozen=True)
class TensorOpMath:
    """mma.sync; fragments come by ldmatrix from swizzled shared memory (Float64 ones by plain loads)."""

    config: GemmConfig
    sparse: ClassVar[bool] = False

    def tiled_mma(self) -> Any:
        config = self.config
        op = tensor_core_op(config.a.dtype, config.acc_dtype, self.sparse, config.b.dtype)
        m, n = config.warps
        # 16 columns a warp, so that one ldmatrix.x4 fills two n-atoms of B.
        return cute.make_tiled_mma(op, cute.make_layout((m, n, 1)), permutation_mnk=(m * 16, n * 16, op.shape_mnk[2]))

    def smem_layout(self, operand: Operand, tile: tuple[int, int]) -> Any:
        # ldmatrix reads 16 bytes a row; a plain Float64 fragment is read by 16 lanes at a time, 4 elements a row.
        unit = 256 if operand.dtype is Float64 else 128
        return smem_swizzled(operand.dtype, tile, self.config.shared_major(operand), unit, self.config.stages)

    def to_registers_A(self, tiled_mma: Any) -> Any:
        return cute.make_tiled_copy_A(self._from_shared(self.config.a), tiled_mma)

    def to_registers_B(self, tiled_mma: Any) -> Any:
        return cute.make_tiled_copy_B(self._from_shared(self.config.b), tiled_mma)

    def _from_shared(self, operand: Operand) -> Any:
        if operand.dtype is Float64:
            return cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), operand.dtype, num_bits_per_copy=64)
        transpose = self.config.shared_major(operand) is Major.MN
        op = cute.nvgpu.warp.LdMatrix8x8x16bOp(transpose=transpose, num_matrices=4)
        return cute.make_copy_atom(op, operand.dtype)


@dataclass(frozen=True)
class SparseTensorOpMath(TensorOpMath):
    """mma.sp."""

    config: GemmConfig
    sparse: ClassVar[bool] = True


@dataclass(frozen=True)
class SimtMath:
    """One FMA a thread; each thread owns 4x4 blocks so that its operands are 16-byte shared-memory loads."""

    config: GemmConfig

    def tiled_mma(self) -> Any:
        rows = 16
        columns = self.config.threads // rows
        op = cute.nvgpu.MmaUniversalOp(self.config.acc_dtype)
        # The permutation gives thread (r, c) the neighbouring rows 4r .. 4r + 3 and columns 4c .. 4c + 3.
        return cute.make_tiled_mma(
            op,
            cute.make_layout((rows, columns, 1), stride=(columns, 1, 0)),
            permutation_mnk=(
                cute.make_layout((rows, 4), stride=(4, 1)),
                cute.make_layout((columns, 4), stride=(4, 1)),
                None,
            ),
        )

    def smem_layout(self, operand: Operand, tile: tuple[int, int]) -> Any:
        return smem_padded(operand.dtype, tile, operand.major, self.config.stages)

    def to_registers_A(self, tiled_mma: Any) -> Any:
        return cute.make_tiled_copy_A(self._vector(self.config.a), tiled_mma)

    def to_registers_B(self, tiled_mma: Any) -> Any:
        return cute.make_tiled_copy_B(self._vector(self.config.b), tiled_mma)

    def _vector(self, operand: Operand) -> Any:
        return cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), operand.dtype, num_bits_per_copy=128)


def math_of(config: GemmConfig) -> TensorOpMath | SimtMath:
    if config.math == "tensorop_sparse":
        return SparseTensorOpMath(config)
    return TensorOpMath(config) if config.tensor_cores else SimtMath(config)
