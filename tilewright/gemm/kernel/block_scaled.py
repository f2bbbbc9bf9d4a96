"""The GEMM of sm_100 for operands with a factor for each 16 or 32 elements of K in a row: mxf8, mxf4, nvf4.

What changes is what is loaded, the factors beside A and B, and how a stage is multiplied (``mainloop.block_scaled``);
schedule, ring, roles and epilogues are those of ``kernel.tensor_memory``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from tilewright import Int64, cute
from tilewright.gemm.blackwell_config import BlockScaledConfig
from tilewright.gemm.epilogue.functions import EpilogueFunction
from tilewright.gemm.kernel.tensor_memory import SUMS, TensorMemoryGemm
from tilewright.gemm.mainloop.block_scaled import (
    BlockScaledMainloop,
    BlockScaledMath,
    FactorsOperand,
    ScaledFragments,
    factor_stages,
)
from tilewright.gemm.mainloop.staged_mma import StagedMma
from tilewright.gemm.schedule.launch_arguments import Decomposition


class BlockScaledGemm(TensorMemoryGemm):
    """D = f((A * factors) @ (B * factors), C) for A (M, K, 1) and B (N, K, 1), contiguous along K, C and D (M, N, 1).

    Numbers of 4 bits are given as bytes of two. ``mSFA`` and ``mSFB`` are the factors as (blocks of 128 rows, words of
    64 bits, 1), in the order of ``utils.blockscaled_layout``.
    """

    LOADED: ClassVar[tuple[int, ...]] = (0, 1, 0, 1)

    config: BlockScaledConfig

    def make_math(self) -> BlockScaledMath:
        return BlockScaledMath(self.config)

    def make_mainloop(self) -> BlockScaledMainloop:
        return BlockScaledMainloop(self.config, self.make_math())

    @cute.jit
    def __call__(  # type: ignore[override]  # factors beside the matrices
        self,
        mA: cute.Tensor,
        mB: cute.Tensor,
        mSFA: cute.Tensor,
        mSFB: cute.Tensor,
        mC: cute.Tensor,
        mD: cute.Tensor,
        function: EpilogueFunction,
        decomposition: Decomposition,
        stream: Any = None,
    ) -> None:
        """Launch the product."""
        a, b = cute.recast_tensor(mA, self.config.a.dtype), cute.recast_tensor(mB, self.config.b.dtype)
        self.launch((a, b, mSFA, mSFB), mC, mD, function, decomposition, stream)

    def stage_layouts(self) -> tuple:
        return *super().stage_layouts(), factor_stages(self.config), factor_stages(self.config)

    def loaded_types(self) -> tuple:
        return *super().loaded_types(), Int64, Int64

    def operands(self, loads: tuple, stages: tuple, cluster_layout: Any, place: tuple) -> tuple:
        *matrices, sfa, sfb = super().operands(loads, stages, cluster_layout, place)
        factors = (FactorsOperand(x.atom, x.g, x.s, x.mask, x.mode) for x in (sfa, sfb))
        return *matrices, *factors

    def fragments(self, tiled_mma: cute.TiledMma, stages: tuple, part: tuple) -> tuple[Any, Any]:
        tCrA, tCrB = super().fragments(tiled_mma, stages[:2], part)
        return ScaledFragments(tCrA, stages[2:]), tCrB

    def multiply_into(  # type: ignore[override]  # what it hands on needs no names
        self, mma: StagedMma, sums: Any, tiles: cute.Tensor, *of_tile: Any
    ) -> tuple:
        """The factors have their place behind the sums."""
        behind = replace(mma.a, place=tiles.iterator + SUMS * self.config.tile[1])
        found: tuple = super().multiply_into(replace(mma, a=behind), sums, tiles, *of_tile)
        return found
