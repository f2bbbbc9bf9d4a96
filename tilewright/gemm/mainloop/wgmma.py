"""How a warpgroup multiplies: wgmma on operands in shared memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright import BFloat16, Float8E4M3FN, Float8E5M2, Float16, TFloat32, cute
from tilewright.cute.nvgpu import warpgroup
from tilewright.gemm.config import HopperConfig, Major, Operand
from tilewright.utils import LayoutEnum, hopper_helpers


def wgmma_op(config: HopperConfig, columns: int) -> Any:
    """The instruction for 64 rows and ``columns`` columns."""
    dtype = config.a.dtype
    # One instruction takes 64 rows and 32 bytes of K of A as it is stored, whatever the type.
    shape = (64, columns, config.instruction_k)
    source = warpgroup.OperandSource.SMEM
    a_major, b_major = (
        warpgroup.OperandMajorMode.K if operand.major is Major.K else warpgroup.OperandMajorMode.MN
        for operand in (config.a, config.b)
    )
    more = a_major, b_major, config.sparsity > 1
    if dtype in (Float16, BFloat16):
        return warpgroup.MmaF16BF16Op(dtype, config.acc_dtype, shape, source, *more)
    if dtype is TFloat32:
        return warpgroup.MmaTF32Op(config.acc_dtype, shape, source, *more)
    if dtype in (Float8E4M3FN, Float8E5M2):
        return warpgroup.MmaF8Op(dtype, config.b.dtype, config.acc_dtype, shape, source, *more)
    return warpgroup.MmaI8Op(dtype, config.b.dtype, config.acc_dtype, shape, source, *more)


@dataclass(frozen=True)
class WgmmaMath:
    """Each warpgroup multiplies its part of the tile; TMA fills swizzled stages, wgmma reads them."""

    config: HopperConfig

    @property
    def group(self) -> Any:
        """Blocks that work on one MMA, as TMA's operations have it: ``cta_group``."""
        return 1

    def tiled_mma(self, columns: int | None = None, warpgroups: int = 1) -> Any:
        """``warpgroups`` of them, each on 64 x ``columns``: those of its part of the tile by default."""
        op = wgmma_op(self.config, columns or self.config.part[1])
        return cute.make_tiled_mma(op, cute.make_layout((warpgroups, 1, 1)))

    def epilogue_mma(self) -> Any:
        """The tiled MMA whose accumulators are one part of the epilogue."""
        return self.tiled_mma(self.config.epilogue_columns)

    def rows(self, mode: int) -> int:
        """Rows of a stage of A (``mode`` 0) or B (1)."""
        return self.config.tile[mode]

    def smem_layout(self, operand: Operand, mode: int) -> Any:
        """(rows, bK, boxes, stages) of A (``mode`` 0) or B (1), in the widest swizzle that the contiguous extent
        allows."""
        bK, stages, boxes = self.config.depth(mode), self.config.stages, self.config.boxes(mode)
        rows = self.rows(mode) // boxes
        k_major = operand.major is Major.K
        layout = LayoutEnum.ROW_MAJOR if k_major else LayoutEnum.COL_MAJOR
        kind = hopper_helpers.get_smem_layout_atom(layout, operand.dtype, bK if k_major else rows)
        atom = warpgroup.make_smem_layout_atom(kind, operand.dtype)
        return cute.tile_to_shape(atom, (rows, bK, boxes, stages), order=(0, 1, 2, 3) if k_major else (1, 0, 2, 3))
