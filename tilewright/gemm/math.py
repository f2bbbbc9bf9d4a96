"""How a thread block multiplies: on tensor cores through ldmatrix and mma.sync, or with FMAs, one for each element."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright import cute
from tilewright.gemm.config import GemmConfig, Major, Operand
from tilewright.gemm.operand import smem_padded, smem_swizzled


@dataclass(frozen=True)
class TensorOpMath:
    """mma.sync 16x8x16 on f16 or bf16; fragments come by ldmatrix from swizzled shared memory."""

    config: GemmConfig

    def tiled_mma(self) -> Any:
        config = self.config
        op = cute.nvgpu.warp.MmaF16BF16Op(config.a.dtype, config.acc_dtype, (16, 8, 16))
        m, n = config.warps
        # 16 columns a warp, so that one ldmatrix.x4 fills two n-atoms of B.
        return cute.make_tiled_mma(op, cute.make_layout((m, n, 1)), permutation_mnk=(m * 16, n * 16, 16))

    def smem_layout(self, operand: Operand, tile: tuple[int, int]) -> Any:
        return smem_swizzled(operand.dtype, tile, operand.major, self.config.stages)

    def to_registers_A(self, tiled_mma: Any) -> Any:
        return cute.make_tiled_copy_A(self._ldmatrix(self.config.a), tiled_mma)

    def to_registers_B(self, tiled_mma: Any) -> Any:
        return cute.make_tiled_copy_B(self._ldmatrix(self.config.b), tiled_mma)

    def _ldmatrix(self, operand: Operand) -> Any:
        op = cute.nvgpu.warp.LdMatrix8x8x16bOp(transpose=operand.major is Major.MN, num_matrices=4)
        return cute.make_copy_atom(op, operand.dtype)


@dataclass(frozen=True)
class SimtMath:
    """One FMA a thread; each thread owns 4x4 blocks so that its operands are 16-byte shared-memory loads."""

    config: GemmConfig

    def tiled_mma(self) -> Any:
        rows = 16
        columns = self.config.threads // rows
        op = cute.nvgpu.MmaUniversalOp(self.config.acc_dtype)
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
    return TensorOpMath(config) if config.math == "tensorop" else SimtMath(config)
