"""What kernels of block-scaled products have in common: factors beside A and B."""

from __future__ import annotations

from typing import Any

from tilewright import Int64, cute
from tilewright.gemm.epilogue.functions import EpilogueFunction
from tilewright.gemm.kernel.warp_specialized import WarpSpecializedGemm
from tilewright.gemm.mainloop.factors import FactorsOperand, factor_stages
from tilewright.gemm.schedule.launch_arguments import Decomposition


class FactorsGemm(WarpSpecializedGemm):
    """D = f((A * factors) @ (B * factors), C) for A (M, K, L) and B (N, K, L), contiguous along K, C and D (M, N, L).

    Numbers of 4 bits are given as bytes of two. ``mSFA`` and ``mSFB`` are the factors as (blocks of 128 rows, words of
    64 bits, L), in the order of ``utils.blockscaled_layout``.
    """

    LOADED: tuple[int, ...] = (0, 1, 0, 1)

    config: Any

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
        return *super().stage_layouts(), *(factor_stages(self.config, mode) for mode in range(2))

    def loaded_types(self) -> tuple:
        return *super().loaded_types(), Int64, Int64

    def operands(self, loads: tuple, stages: tuple, cluster_layout: Any, place: tuple) -> tuple:
        *matrices, sfa, sfb = super().operands(loads, stages, cluster_layout, place)
        factors = (FactorsOperand(x.atom, x.g, x.s, x.mask, x.mode) for x in (sfa, sfb))
        return *matrices, *factors
