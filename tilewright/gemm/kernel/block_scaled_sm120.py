"""The GEMM of sm_120 for operands with a factor for each 16 or 32 elements of K in a row: mxf8, mxf4, nvf4.

What changes is what is loaded, the factors beside A and B (``kernel.factors``), and what a step multiplies
(``mainloop.block_scaled_sm120``); all else is that of ``kernel.sm120``.
"""

from __future__ import annotations

from typing import Any

from tilewright import cute
from tilewright.gemm.block_scaled_config import FACTORS, BlockScaledSm120Config
from tilewright.gemm.kernel.factors import FactorsGemm
from tilewright.gemm.kernel.sm120 import Sm120Gemm
from tilewright.gemm.mainloop.block_scaled_sm120 import (
    BlockScaledMmaSyncMainloop,
    BlockScaledMmaSyncMath,
    ScaledFragment,
)
from tilewright.utils import blackwell_helpers, blockscaled_layout


class BlockScaledSm120Gemm(FactorsGemm, Sm120Gemm):
    """As :class:`FactorsGemm`, on sm_120 and its like."""

    config: BlockScaledSm120Config
    math: BlockScaledMmaSyncMath

    def make_math(self) -> BlockScaledMmaSyncMath:
        return BlockScaledMmaSyncMath(self.config)

    def make_mainloop(self) -> BlockScaledMmaSyncMainloop:
        return BlockScaledMmaSyncMainloop(self.config, self.make_math())

    def fragments(self, tiled_mma: cute.TiledMma, stages: tuple, part: tuple) -> tuple[Any, Any]:
        a, b = super().fragments(tiled_mma, stages[:2], part)
        helpers, layouts = blackwell_helpers, blockscaled_layout
        of_a = layouts.sm120_make_smem_layout_sfa, helpers.partition_fragment_SFA, helpers.get_layoutSFA_TV
        of_b = layouts.sm120_make_smem_layout_sfb, helpers.partition_fragment_SFB, helpers.get_layoutSFB_TV
        factors = [
            self.factors(tiled_mma, stages[2 + mode], mode, part[mode], *made) for mode, made in enumerate((of_a, of_b))
        ]
        return ScaledFragment(a.registers, a.copy, *factors[0]), ScaledFragment(b.registers, b.copy, *factors[1])

    def factors(
        self,
        tiled_mma: cute.TiledMma,
        stages: cute.Tensor,
        mode: int,
        index: Any,
        layout: Any,
        partition: Any,
        values: Any,
    ) -> tuple[Any, Any, int]:
        """The factors of a warpgroup's rows (``mode`` 0) or columns (1) as a :class:`ScaledFragment` has them."""
        config, tidx = self.config, cute.arch.thread_idx()[0] % 128
        held = layout(tiled_mma, config.tile, config.vector, config.stages)  # (rows, bK, stages)
        of_tile = cute.make_tensor(cute.recast_ptr(stages.iterator, dtype=config.factor), held)
        shape = config.part[mode], config.tile[2], config.stages
        mine = cute.local_tile(of_tile, shape, (index, 0, 0))
        registers = partition(mine[None, None, 0], tiled_mma.get_slice(tidx), tidx)  # (MMA, MMA_MN, MMA_K)
        permutation = tiled_mma.permutation_mnk
        copy = cute.make_tiled_copy(
            cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), config.factor),
            values(tiled_mma),
            (cute.size(permutation[mode]), cute.size(permutation[2])),
        )
        thread = copy.get_slice(tidx)
        # An instruction of one factor takes any byte of a word; halves of words would be moved, a PRMT for each use.
        steps = FACTORS if tiled_mma.shape_mnk[2] == config.vector else 1
        return registers, thread.partition_S(mine), steps
