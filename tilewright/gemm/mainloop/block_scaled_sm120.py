"""Block-scaled products by mma.sync: factors come by TMA with the stage, and go to registers beside the operands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright import Float32, cute
from tilewright.cute.nvgpu import warp
from tilewright.gemm.block_scaled_config import BlockScaledSm120Config
from tilewright.gemm.mainloop.factors import FactorsMainloop
from tilewright.gemm.mainloop.mma_sync import Fragment, MmaSyncMainloop, MmaSyncMath


@dataclass(frozen=True)
class BlockScaledMmaSyncMath(MmaSyncMath):
    """mma.sync with factors."""

    config: BlockScaledSm120Config

    def op(self) -> Any:
        config = self.config
        a, b, factor = config.a.dtype, config.b.dtype, config.factor
        if a.width == 4:
            kind = warp.MmaMXF4Op if config.vector == 32 else warp.MmaMXF4NVF4Op
            return kind(a, Float32, factor)
        return warp.MmaMXF8F6F4Op(a, b, Float32, factor)


@dataclass(frozen=True)
class ScaledFragment(Fragment):
    """With ``factors`` in registers, (MMA, MMA_MN, MMA_K), each once: elements that share one have the stride 0."""

    factors: Any
    factor_copy: tuple

    def fill(self, k_block: int, stage: Any) -> None:
        super().fill(k_block, stage)
        copy, source, target = self.factor_copy
        of_step = source[None, None, k_block, stage], target[None, None, k_block]
        cute.copy(copy, *map(cute.filter_zeros, of_step))

    def step(self, k_block: int) -> Any:
        return [super().step(k_block), self.factors[None, None, k_block]]


@dataclass(frozen=True)
class BlockScaledMmaSyncMainloop(FactorsMainloop, MmaSyncMainloop):
    """acc = (A * factors) @ (B * factors) of k tiles."""

    config: BlockScaledSm120Config
    math: BlockScaledMmaSyncMath
