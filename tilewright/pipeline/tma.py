"""Pipelines whose stages TMA fills (sm_90).

The full barrier of a stage waits for one arrival of each producer warp and for the bytes of the copies. The empty
barrier waits for the consumers of all blocks that read what this block's copies bring (``counts``).

    producer warp:  acquire (wait for empty; one lane arrives at full and expects the bytes) -> TMA copies
    consumer warps: wait (for full) -> read -> release (one lane arrives at the empty barrier of each block that shares)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tilewright.errors import ConstraintError
from tilewright.lang.device.barriers import sync_warp
from tilewright.lang.device.smem import SmemAllocator
from tilewright.lang.device.threads import WARP_SIZE, block_idx_in_cluster, thread_idx
from tilewright.lang.device.warps import make_warp_uniform
from tilewright.lang.numbers.numeric import Int32, Int64, as_numeric
from tilewright.lang.staging.with_block import inside, only_if
from tilewright.lang.tensors.algebra import make_layout_image_mask
from tilewright.layout import Layout
from tilewright.pipeline.agents import Agent, CooperativeGroup, PipelineOp
from tilewright.pipeline.counts import check_cluster, peers, releases, transaction_bytes
from tilewright.pipeline.initialise import blocks, pipeline_init_arrive, pipeline_init_wait
from tilewright.pipeline.mbarrier_array import MbarrierArray
from tilewright.pipeline.state import PipelineState
from tilewright.pipeline.threads import PipelineAsync, name_stages, wait_unless

ONE = CooperativeGroup(Agent.Thread, 1)


@dataclass(frozen=True, eq=False)
class PipelineTmaAsync(PipelineAsync):
    """TMA fills the stages, threads read them. Make one with :meth:`create`.

    The producer's methods are called by whole warps (usually one), the consumers' by all threads of theirs.
    """

    is_signalling_thread: Any
    lanes_read: bool = field(default=True, kw_only=True)
    is_signaling_thread = property(lambda self: self.is_signalling_thread)

    @classmethod
    def create(  # type: ignore[override]  # other parameters, as documented
        cls,
        *,
        num_stages: int,
        producer_group: CooperativeGroup = ONE,
        consumer_group: Any,
        tx_count: int | None = None,
        barrier_storage: Any = None,
        cta_layout_vmnk: Layout | None = None,
        tidx: Any = None,
        mcast_mode_mn: tuple[int, int] = (1, 1),
        enable_multicast_signaling: bool = False,
        defer_sync: bool = False,
        name: str = "",
        stage_tensors: Sequence[Any] | None = None,
        initializing_warps: tuple[int, int] = (0, 0),
        loc: Any = None,
        ip: Any = None,
    ) -> PipelineTmaAsync:
        """A pipeline whose stages are all empty; called by all threads of the block.

        Args:
            num_stages: how many stages the ring has.
            producer_group: the producer warps, each of which arrives with one lane; one by default.
            consumer_group: who releases a stage: a TiledMma or TiledCopy whose threads consume,
                ``CooperativeGroup(Agent.Warp, n)`` with the consumer warps of a block, or the arrivals themselves,
                ``CooperativeGroup(Agent.Thread, blocks that share * consumer warps)``. A wgmma TiledMma makes each
                warpgroup arrive once, everything else each warp.
            tx_count: the bytes that fill a stage; with ``stage_tensors`` it follows from them.
            stage_tensors: the shared-memory tensors that TMA fills, the stage as their last mode.
            barrier_storage: ``2 * num_stages`` Int64 in shared memory; allocated here when it is None.
            cta_layout_vmnk: the layout (V, M, N, K) of the cluster's blocks; None: no cluster.
            tidx: the thread's index; ``thread_idx()[0]`` by default.
            mcast_mode_mn: whether A is multicast along the rows of the cluster, and B along its columns.
            enable_multicast_signaling: ``consumer_group`` is the threads of a block that release a stage, from which
                the arrivals follow.
            name: as of :meth:`PipelineAsync.create`.
            defer_sync: leave out the barrier at the end, because the caller has ``pipeline_init_arrive`` and
                ``pipeline_init_wait`` before the first use.
            initializing_warps: the warps that initialise the full and the empty mbarriers, some 7 cycles each.
        """
        check_cluster(cta_layout_vmnk, mcast_mode_mn)
        if enable_multicast_signaling:
            consumer_group = CooperativeGroup(Agent.Warp, -(-consumer_group.arrivals // WARP_SIZE))
        empties = releases(consumer_group, peers(cta_layout_vmnk, mcast_mode_mn))
        bytes_ = transaction_bytes(tx_count, stage_tensors, num_stages)
        full, empty = tma_stages(
            barrier_storage, num_stages, producer_group, empties.arrivals, bytes_, initializing_warps, name
        )
        signals, target = _signals(cta_layout_vmnk, tidx, empties.threads, mcast_mode_mn)
        if not defer_sync:
            pipeline_init_arrive(cta_layout_vmnk, is_relaxed=True)
            pipeline_init_wait(cta_layout_vmnk)
        return cls(full, empty, num_stages, None, target, signals, lanes_read=empties.threads == WARP_SIZE)

    def producer_acquire(
        self, state: PipelineState, try_acquire_token: Any = None, *, loc: Any = None, ip: Any = None
    ) -> None:
        """Wait until all blocks that share the stage have released it, and expect its bytes. Called by a whole warp."""
        wait_unless(try_acquire_token, self.sync_object_empty, state)
        self.sync_object_full.arrive(state.index)

    def producer_commit(self, state: PipelineState, *, loc: Any = None, ip: Any = None) -> None:
        """Does nothing: the bytes of TMA loads complete the stage."""

    def producer_tail(self, state: PipelineState, *, loc: Any = None, ip: Any = None) -> None:
        """Wait until all stages have been released, by the other blocks, too: a block must not end while they may still
        arrive at its barriers. ``state`` stays where it is."""
        ahead = state.clone()
        for _stage in range(self.num_stages):
            self.sync_object_empty.wait(ahead.index, ahead.phase)
            ahead.advance()

    def consumer_release(self, state: PipelineState, *, loc: Any = None, ip: Any = None) -> None:
        """This warp has read its part of the stage: one lane tells each block that shares it."""
        # The lanes of a warp may diverge, so all of them must have finished reading before one lane arrives. Warpgroups
        # that multiply by wgmma read together, and their wait says when the reads are done. A program that elects a
        # lane for the release has synchronised the lanes itself.
        if self.lanes_read and not inside("elect_one block"):
            sync_warp()
        with only_if(as_numeric(self.is_signalling_thread).ir_value(), "release of a stage"):
            self.sync_object_empty.arrive(state.index, self.consumer_mask)


def tma_stages(
    barrier_storage: Any,
    num_stages: int,
    producer_group: Any,
    emptiers: Any,
    tx_count: int,
    initializing_warps: tuple[int, int] = (0, 0),
    name: str = "",
) -> tuple[MbarrierArray, MbarrierArray]:
    """The mbarriers of the stages: ``tx_count`` bytes of TMA fill a stage, ``emptiers`` arrivals empty it. Two warps
    initialise them."""
    if not isinstance(producer_group, CooperativeGroup) or producer_group.agent not in (Agent.Thread, Agent.Warp):
        raise ConstraintError(
            f"producer_group is {producer_group!r}; the producer warps, each with one thread that arrives: "
            "CooperativeGroup(Agent.Thread, 1)"
        )
    if barrier_storage is None:
        barrier_storage = SmemAllocator().allocate_array(Int64, 2 * num_stages)
    fill, release = (CooperativeGroup(Agent.Thread, size) for size in (producer_group.size, emptiers))
    first, second = initializing_warps
    filled, emptied = (PipelineOp.TmaLoad, fill), (PipelineOp.AsyncThread, release)
    full = MbarrierArray(barrier_storage, num_stages, filled, tx_count, initializing_warp=first)
    empty = MbarrierArray(barrier_storage + num_stages, num_stages, emptied, initializing_warp=second)
    name_stages(name, barrier_storage, num_stages)
    return full, empty


def _signals(
    cta_layout_vmnk: Layout | None, tidx: Any, threads: int, mcast_mode_mn: tuple[int, int]
) -> tuple[Any, Any]:
    """Whether this thread releases, and at which block (None: its own).

    The threads of a warp, or of a warpgroup, share the duty: each block that shares the stage is signalled by another
    lane, in a warpgroup as far as possible by another warp.
    """
    thread = Int32(thread_idx()[0] if tidx is None else tidx) % threads
    if cta_layout_vmnk is None or blocks(cta_layout_vmnk) == 1:
        return thread == 0, None
    rank = make_warp_uniform(block_idx_in_cluster())
    coord = cta_layout_vmnk.get_flat_coord(rank)
    mask = Int32(1) << rank
    for mode, along in ((2, mcast_mode_mn[0]), (1, mcast_mode_mn[1])):
        if along:
            mask = mask | make_layout_image_mask(cta_layout_vmnk, coord, mode).to(Int32)
    mask = mask & 0xFFFF
    if threads == WARP_SIZE:
        return (mask >> thread) & 1 == 1, thread
    warp, lane = thread // WARP_SIZE, thread % WARP_SIZE  # warp w tells blocks w, w + 4, ... by its lanes 0, 8, ...
    target = warp + lane // 8 * 4
    return (lane % 8 == 0) & ((mask >> target) & 1 == 1), target
