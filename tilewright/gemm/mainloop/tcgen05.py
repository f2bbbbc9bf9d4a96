"""How one warp multiplies for a block, or for a pair of blocks: tcgen05.mma into tensor memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tilewright as cutlass
from tilewright import Float16, Float32, cute
from tilewright.cute.nvgpu import tcgen05, warp
from tilewright.gemm.blackwell_config import BlackwellConfig
from tilewright.gemm.config import Major
from tilewright.gemm.mainloop.staged_mma import StagedMma
from tilewright.gemm.mainloop.tma import TmaMainloop, TmaOperand
from tilewright.gemm.mainloop.wgmma import WgmmaMath
from tilewright.utils import blackwell_helpers


@dataclass(frozen=True)
class TensorMemoryMath(WgmmaMath):
    """Stages are those of wgmma; of a pair of blocks each has half of B's rows."""

    config: BlackwellConfig

    @property
    def group(self) -> Any:
        return tcgen05.CtaGroup.TWO if self.config.ctas == 2 else tcgen05.CtaGroup.ONE

    def tiled_mma(self, columns: int | None = None, warpgroups: int = 1) -> Any:
        """The instruction on the tile of all blocks that work on it."""
        config = self.config
        return self._mma(self.group, (config.tile[0] * config.ctas, columns or config.tile[1]))

    def tiled_mma_of_block(self) -> Any:
        """An instruction of one block, which reads what this block has in its stages."""
        return self._mma(tcgen05.CtaGroup.ONE, (self.rows(0), self.rows(1)))

    def _mma(self, group: Any, shape: tuple[int, int]) -> Any:
        config = self.config
        a_major, b_major = (
            tcgen05.OperandMajorMode.K if operand.major is Major.K else tcgen05.OperandMajorMode.MN
            for operand in (config.a, config.b)
        )
        types = config.a.dtype, config.b.dtype, a_major, b_major, config.acc_dtype
        return blackwell_helpers.make_trivial_tiled_mma(*types, group, shape)

    def epilogue_mma(self) -> Any:
        """A tiled MMA whose accumulators are those that ``tcgen05.ld.16x256b`` brings to four warps: warp w has the
        rows 32 w to 32 w + 31."""
        op = warp.MmaF16BF16Op(Float16, Float32, (16, 8, 16))
        rows = cute.make_layout((16, 4, 2), stride=(1, 32, 16))
        return cute.make_tiled_mma(op, (4, 1, 1), (rows, self.config.epilogue_columns, 16))

    def rows(self, mode: int) -> int:
        return self.config.tile[mode] // (self.config.ctas if mode else 1)


@dataclass(frozen=True)
class TensorMemoryMainloop(TmaMainloop):
    """The warp that loads fills the stages as for wgmma; one warp multiplies, and its commits say that a stage is
    empty, and that a tile's accumulators are there."""

    config: BlackwellConfig
    math: TensorMemoryMath

    @cute.jit
    def load_pair(
        self,
        operands: tuple[TmaOperand, ...],
        ring: Any,
        state: Any,
        v: Any,
        tile_m: Any,
        tile_n: Any,
        batch: Any,
        k_begin: Any,
        k_end: Any,
    ) -> Any:
        """As ``load``; block ``v`` of a pair loads its half of B's rows."""
        return self.load(operands, ring, state, tile_m, tile_n * self.config.ctas + v, batch, k_begin, k_end)

    @cute.jit
    def multiply_tile(self, staged: StagedMma, sums: cute.Tensor, state: Any, k_tiles: Any) -> Any:
        """sums = the sum over ``k_tiles`` > 0 stages; gives the pipeline's state after them. One warp."""
        mma, ring = staged.tiled_mma, staged.ring
        mma.set(tcgen05.Field.ACCUMULATE, False)
        for _ in cutlass.range(k_tiles, unroll=1):
            ring.consumer_wait(state)
            here = (None, None, None, state.index)
            cute.gemm(mma, sums, staged.a[here], staged.b[here], sums)  # all k blocks of the stage
            mma.set(tcgen05.Field.ACCUMULATE, True)
            ring.consumer_release(state)
            state.advance()
        return state
