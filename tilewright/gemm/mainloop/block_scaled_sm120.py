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
    """With ``factors`` in registers, (MMA, MMA_MN, MMA_K), each once: elements that share one have the stride 0.
    ``factor_source`` is where they come from, (MMA, MMA_MN, MMA_K, stages), those of ``steps`` steps at once.

    Those of one step come ahead, with the operands. Those of several come when the first of them is multiplied, for the
    step before has still to be: registers for both would spill."""

    factors: Any
    factor_source: Any
    steps: int

    def fill(self, k_block: int, stage: Any) -> None:
        super().fill(k_block, stage)
        if self.steps == 1:
            self.load_factors(k_block, stage)

    def step(self, k_block: int, stage: Any) -> Any:
        if self.steps > 1 and k_block % self.steps == 0:
            self.load_factors(k_block, stage)
        return [super().step(k_block, stage), self.factors[None, None, k_block]]

    def load_factors(self, k_block: int, stage: Any) -> None:
        """Bring the factors of the steps from ``k_block`` on to registers."""
        for_steps = (
            cute.local_tile(x, (*x.shape[:2], self.steps), (0, 0, k_block // self.steps))
            for x in (self.factor_source[None, None, None, stage], self.factors)
        )
        cute.autovec_copy(*map(cute.filter_zeros, for_steps))


@dataclass(frozen=True)
class BlockScaledMmaSyncMainloop(FactorsMainloop, MmaSyncMainloop):
    """acc = (A * factors) @ (B * factors) of k tiles."""

    config: BlockScaledSm120Config
    math: BlockScaledMmaSyncMath
