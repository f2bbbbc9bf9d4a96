"""The pipeline of answers to ``clusterlaunchcontrol`` (sm_100): a scheduler warp asks, all warps of the cluster read.

scheduler warp of block 0: acquire (wait for empty; every block's full barrier expects 16 bytes) -> ask
readers of all blocks:     wait (for full) -> read the answer -> release (arrive at block 0's empty barrier)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tilewright.errors import ConstraintError
from tilewright.lang.device.mbarriers import mbarrier_arrive_and_expect_tx
from tilewright.lang.device.smem import SmemAllocator
from tilewright.lang.device.threads import lane_idx
from tilewright.lang.numbers.numeric import Int64, as_numeric
from tilewright.lang.staging.with_block import only_if
from tilewright.layout import Layout
from tilewright.pipeline.agents import CooperativeGroup, PipelineOp
from tilewright.pipeline.initialise import blocks, pipeline_init_arrive, pipeline_init_wait
from tilewright.pipeline.mbarrier_array import MbarrierArray
from tilewright.pipeline.state import PipelineState
from tilewright.pipeline.threads import PipelineAsync, name_stages, wait_unless
from tilewright.pipeline.tma import ONE

ANSWER = 16
"""Bytes of an answer."""


@dataclass(frozen=True, eq=False)
class PipelineClcFetchAsync(PipelineAsync):
    """Cluster launch control fills the stages, threads of all blocks of the cluster read them. Make one with
    :meth:`create`. ``cluster_blocks``: how many blocks the cluster has.

    >>> import tilewright as cutlass
    >>> from tilewright import pipeline, utils
    >>> @cute.jit
    ... def rounds(t):
    ...     answer = utils.SmemAllocator().allocate_array(cutlass.Int32, 4, 16)
    ...     readers = pipeline.CooperativeGroup(pipeline.Agent.Thread, 64)
    ...     pipe = pipeline.PipelineClcFetchAsync.create(num_stages=1, consumer_group=readers)
    ...     producer, consumer = pipe.make_participants()
    ...     if t < 32:
    ...         empty = producer.acquire_and_advance()
    ...         with cute.arch.elect_one():
    ...             cute.arch.issue_clc_query(empty.barrier, answer)
    ...     full = consumer.wait_and_advance()
    ...     valid = cute.arch.clc_response(answer)[3]
    ...     full.release()
    ...     return valid
    >>> per_thread(rounds, 64)[:3]  # a grid of one block: no other is left
    [0, 0, 0]
    """

    cluster_blocks: int = field(default=1, kw_only=True)

    @classmethod
    def create(
        cls,
        *,
        num_stages: int,
        producer_group: CooperativeGroup = ONE,
        consumer_group: CooperativeGroup,
        tx_count: int = ANSWER,
        barrier_storage: Any = None,
        producer_mask: Any = None,
        consumer_mask: Any = None,
        cta_layout_vmnk: Layout | None = None,
        defer_sync: bool = False,
        name: str = "",
        loc: Any = None,
        ip: Any = None,
    ) -> PipelineClcFetchAsync:
        """A pipeline whose stages are all empty; called by all threads of the cluster.

        ``consumer_group``: the threads of all blocks of the cluster that release a stage. ``tx_count`` is 16, the bytes
        of an answer (ConstraintError). ``consumer_mask``: the rank of the block that asks, 0 by default.
        """
        if tx_count != ANSWER:
            raise ConstraintError(f"PipelineClcFetchAsync: tx_count is {tx_count}; an answer has {ANSWER} bytes")
        if producer_group.arrivals != 1 or producer_mask is not None:
            raise ConstraintError(
                "PipelineClcFetchAsync: one thread of the cluster asks: CooperativeGroup(Agent.Thread)"
            )
        if barrier_storage is None:
            barrier_storage = SmemAllocator().allocate_array(Int64, 2 * num_stages)
        full = MbarrierArray(barrier_storage, num_stages, (PipelineOp.TmaLoad, ONE), tx_count)
        empty = MbarrierArray(barrier_storage + num_stages, num_stages, (PipelineOp.AsyncThread, consumer_group))
        name_stages(name, barrier_storage, num_stages, "answered")
        count = blocks(cta_layout_vmnk)
        if not defer_sync:
            pipeline_init_arrive(cta_layout_vmnk, is_relaxed=True)
            pipeline_init_wait(cta_layout_vmnk)
        rank = consumer_mask if consumer_mask is not None else 0 if count > 1 else None
        return cls(full, empty, num_stages, None, rank, cluster_blocks=count)

    def producer_acquire(
        self, state: PipelineState, try_acquire_token: Any = None, *, loc: Any = None, ip: Any = None
    ) -> None:
        """Wait until all have read the stage, and let every block's barrier expect an answer. A whole warp."""
        wait_unless(try_acquire_token, self.sync_object_empty, state)
        rank = lane_idx()
        with only_if(as_numeric(rank < self.cluster_blocks).ir_value(), "expected answers"):
            barrier = self.sync_object_full.get_barrier(state.index)
            mbarrier_arrive_and_expect_tx(barrier, ANSWER, rank if self.cluster_blocks > 1 else None)

    def producer_commit(self, state: PipelineState, *, loc: Any = None, ip: Any = None) -> None:
        """Nothing: the bytes of the answer fill the stage."""

    def producer_tail(self, state: PipelineState, *, loc: Any = None, ip: Any = None) -> None:
        """Wait until all answers have been read. ``state`` stays where it is."""
        ahead = state.clone()
        for _stage in range(self.num_stages):
            self.sync_object_empty.wait(ahead.index, ahead.phase)
            ahead.advance()
