"""How the warps of a block, and the blocks of a cluster, learn which tile is theirs when tiles are dealt at run time.

One warp draws: the producer's, of the cluster's first block. It hands each number to all that need it through a ring of
slots in every block's shared memory. A slot goes round between two mbarriers, as the stages of a main loop do:

    leader:            wait empty (its own block's: consumers of the whole cluster arrive there) -> draw -> slots, full
    other producers:   wait full -> read their block's slot -> arrive at the leader's empty
    consumers:         likewise

In a cluster the number is sent by ``st.async``, whose four bytes count at the mbarrier of the block that they reach;
the producer of each block says that they are to come.

Where the hardware deals tiles out (:class:`LaunchFeed`) its answers come to the slots of all blocks by themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tilewright as cutlass
from tilewright import Int32, cute, pipeline, utils
from tilewright.gemm.addressing import aligned_pointer

DEPTH = 2
"""Slots: a tile is drawn while another is multiplied. More would deal tiles out before they are needed."""


@dataclass(frozen=True)
class TileFeed:
    """``slots`` is (DEPTH,) of Int32 in shared memory, ``ring`` their mbarriers; ``rank`` this block's in its cluster
    of ``cluster_size``."""

    slots: cute.Tensor
    ring: Any  # pipeline.PipelineAsync
    rank: Any
    cluster_size: int

    @classmethod
    def create(cls, rank: Any, cluster_size: int, consumer_warps: int) -> TileFeed:
        """Called by all threads of the block, before a barrier of the cluster: the mbarriers are used after it.
        ``consumer_warps`` are those of the cluster."""
        slots = utils.SmemAllocator().allocate_array(Int32, DEPTH)
        ring = _ring(cluster_size, consumer_warps)
        return cls(cute.make_tensor(slots, cute.make_layout(DEPTH)), ring, rank, cluster_size)

    @cute.jit
    def hand_out(self, draw: Callable[[], Any], place: Any) -> Any:
        """The next tile, for the producer's warp of each block; ``draw`` gives it to one lane of the leader's."""
        tile = Int32(0)
        if cutlass.const_expr(self.cluster_size == 1):
            tile = self.lead(draw, place)
        else:
            if self.rank == 0:
                tile = self.lead(draw, place)
            else:
                self.ring.sync_object_full.arrive_and_expect_tx(place.index, 4)
                tile = self.take(place)
        return tile

    @cute.jit
    def lead(self, draw: Callable[[], Any], place: Any) -> Any:
        """Draw a tile and put it into the slots of all blocks of the cluster."""
        self.ring.producer_acquire(empty(place))
        tile = Int32(0)
        lane = cute.arch.lane_idx()
        if lane == 0:
            tile = draw()
        tile = cute.arch.make_warp_uniform(tile)
        if cutlass.const_expr(self.cluster_size == 1):
            if lane == 0:
                self.slots[place.index] = tile
                self.ring.producer_commit(place)
        else:
            full = self.ring.producer_get_barrier(place)
            self.ring.sync_object_full.arrive_and_expect_tx(place.index, 4)
            if lane < self.cluster_size:
                cute.arch.store_shared_remote(tile, self.slots.iterator + place.index, full, lane)
        return tile

    @cute.jit
    def take(self, place: Any) -> Any:
        """The next tile, for a warp of consumers."""
        self.ring.consumer_wait(place)
        tile = cute.arch.make_warp_uniform(self.slots[place.index])
        cute.arch.sync_warp()  # all lanes have read: one of them says so
        if cute.arch.lane_idx() == 0:
            self.ring.consumer_release(place)
        return tile

    @cute.jit
    def tail(self, place: Any) -> None:
        """At the end of a producer: the leader's block stays until the whole cluster has read the last slots."""
        if self.rank == 0:
            self.ring.producer_tail(empty(place))


@dataclass(frozen=True)
class LaunchFeed:
    """Tiles of clusters of the grid that have not begun: the leader asks for one (``clusterlaunchcontrol``), and all
    blocks of its cluster get the answer. ``slots`` is (4, DEPTH) of Int32, an answer each."""

    slots: cute.Tensor
    ring: Any
    rank: Any
    cluster_size: int

    @classmethod
    def create(cls, rank: Any, cluster_size: int, consumer_warps: int) -> LaunchFeed:
        """As :meth:`TileFeed.create`."""
        slots = utils.SmemAllocator().allocate_array(Int32, 4 * DEPTH, 16)
        ring = _ring(cluster_size, consumer_warps)
        return cls(cute.make_tensor(slots, cute.make_layout((4, DEPTH))), ring, rank, cluster_size)

    @cute.jit
    def hand_out(self, place: Any) -> Any:
        """(the number of a cluster, whether there was one), for the producer's warp of each block."""
        full = self.ring.producer_get_barrier(place)
        if self.rank == 0:
            self.ring.producer_acquire(empty(place))
            self.ring.sync_object_full.arrive_and_expect_tx(place.index, 16)
            with cute.arch.elect_one():
                cute.arch.issue_clc_query(full, self.answer(place))
        else:
            self.ring.sync_object_full.arrive_and_expect_tx(place.index, 16)
        self.ring.consumer_wait(place)
        found = self.read(place)
        if self.rank != 0:
            self.release(place)
        return found

    @cute.jit
    def take(self, place: Any) -> Any:
        """The same, for a warp of consumers."""
        self.ring.consumer_wait(place)
        found = self.read(place)
        self.release(place)
        return found

    @cute.jit
    def read(self, place: Any) -> Any:
        block, _, _, valid = cute.arch.clc_response(self.answer(place))
        cute.arch.sync_warp()  # all lanes have read: one of them says so, or asks again
        return cute.arch.make_warp_uniform(block // self.cluster_size), cute.arch.make_warp_uniform(valid)

    @cute.jit
    def release(self, place: Any) -> None:
        if cute.arch.lane_idx() == 0:
            self.ring.consumer_release(place)

    def answer(self, place: Any) -> Any:
        return aligned_pointer(self.slots[None, place.index].iterator, 16)

    @cute.jit
    def tail(self, place: Any) -> None:
        """As :meth:`TileFeed.tail`."""
        if self.rank == 0:
            self.ring.producer_tail(empty(place))


def _ring(cluster_size: int, consumer_warps: int) -> Any:
    """The mbarriers of the slots; one lane of each consumer warp, and of the other blocks' producers, arrives at the
    leader's."""
    return pipeline.PipelineAsync.create(
        num_stages=DEPTH,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 1),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, consumer_warps + cluster_size - 1),
        consumer_mask=0 if cluster_size > 1 else None,
        defer_sync=True,
    )


def first_place() -> Any:
    """Where producers and consumers begin to go through the slots."""
    return pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, DEPTH)


def empty(place: Any) -> Any:
    """The same slot for a warp that waits until it is empty: in the phase before."""
    return pipeline.PipelineState(DEPTH, place.count, place.index, place.phase ^ 1)
