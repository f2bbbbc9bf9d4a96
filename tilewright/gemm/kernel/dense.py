"""The dense GEMM of one role: all warps multiply, and the first of them also loads, ``stages - 1`` k tiles ahead.

Between two k tiles the first warp waits until all have released the stage before last, and issues the TMA copies of a
later k tile into it. Nothing overlaps with the epilogue: the next tile's loads begin when this one's sums are written.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from tilewright import cute, pipeline
from tilewright.gemm.kernel.block_work import BlockWork
from tilewright.gemm.kernel.warp_specialized import WarpSpecializedGemm
from tilewright.gemm.mainloop.staged_mma import StagedMma
from tilewright.gemm.mainloop.tma import TmaOperand


class DenseGemm(WarpSpecializedGemm):
    """As :class:`WarpSpecializedGemm`, without a warpgroup that only loads."""

    @cute.jit
    def roles(self, warp: Any, warpgroup: Any, work: BlockWork) -> None:
        """All warps multiply; between k tiles the first of them also issues the copies."""
        stages, split = self.config.stages, self.config.split
        operands = work.operands()
        part = (warpgroup // split[1], warpgroup % split[1])
        mma = work.staged_mma(part)
        producer = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, stages)
        consumer = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, stages)
        how = mma, partial(work.finish, warpgroup, part), operands, work.where, warp == 0
        producer, consumer = work.walk(partial(self.multiply_and_load, *how), (producer, consumer))
        work.loaded()
        work.reduce(warpgroup)
        self.epilogue.finish(cute.arch.thread_idx()[0] % 128)
        # Other blocks of the cluster signal this one's mbarriers: it stays until their last signal has come.
        if warp == 0:
            work.ring.producer_tail(producer)

    @cute.jit
    def multiply_and_load(
        self,
        mma: StagedMma,
        finish: Any,
        operands: tuple[TmaOperand, ...],
        where: Any,
        loads: Any,
        tile: Any,
        k_begin: Any,
        k_end: Any,
        states: tuple,
    ) -> Any:
        """A warpgroup's part of one output tile."""
        acc, at = self.accumulators(mma.tiled_mma), where(tile)
        states = self.mainloop.multiply_and_load(mma, acc, operands, *states, loads, *at, k_begin, k_end)
        finish(acc, tile, at, k_begin, k_end)
        return states
