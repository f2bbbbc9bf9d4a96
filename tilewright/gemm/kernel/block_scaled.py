"""The GEMM of sm_100 for operands with a factor for each 16 or 32 elements of K in a row: mxf8, mxf4, nvf4.

What changes is what is loaded, the factors beside A and B (``kernel.factors``), and how a stage is multiplied
(``mainloop.block_scaled``); schedule, ring, roles and epilogues are those of ``kernel.tensor_memory``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import tilewright as cutlass
from tilewright import cute
from tilewright.gemm.block_scaled_config import ROWS, BlockScaledConfig
from tilewright.gemm.kernel.factors import FactorsGemm
from tilewright.gemm.kernel.tensor_memory import TensorMemoryGemm
from tilewright.gemm.mainloop.block_scaled import HALF_BLOCK, BlockScaledMainloop, BlockScaledMath, ScaledFragments
from tilewright.gemm.mainloop.staged_mma import StagedMma


class BlockScaledGemm(FactorsGemm, TensorMemoryGemm):
    """As :class:`FactorsGemm`, on sm_100a and its like."""

    config: BlockScaledConfig
    math: BlockScaledMath

    def make_math(self) -> BlockScaledMath:
        return BlockScaledMath(self.config)

    def make_mainloop(self) -> BlockScaledMainloop:
        return BlockScaledMainloop(self.config, self.make_math())

    def fragments(self, tiled_mma: cute.TiledMma, stages: tuple, part: tuple) -> tuple[Any, Any]:
        tCrA, tCrB = super().fragments(tiled_mma, stages[:2], part)
        return ScaledFragments(tCrA, stages[2:]), tCrB

    @cute.jit
    def multiply_into(  # type: ignore[override]  # what it hands on needs no names
        self, mma: StagedMma, sums: Any, tiles: cute.Tensor, where: Any, tile: Any, *of_tile: Any
    ) -> tuple:
        """The factors have their place behind the sums. Those of every other tile of 64 or 192 columns begin in the
        middle of a block."""
        shift = cutlass.Int32(0)
        if cutlass.const_expr(self.config.tile[1] % ROWS != 0):
            shift = HALF_BLOCK * (where(tile)[1] % 2)
        behind = replace(mma.a, place=tiles.iterator + self.config.factors_at, shift=shift)
        found: tuple = super().multiply_into(replace(mma, a=behind), sums, tiles, where, tile, *of_tile)
        return found
