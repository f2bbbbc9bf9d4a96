"""Programs with the pipelines of clusters that the simulator's and the GPU's tests share. No TMA: the producer's bytes
come by ``st.async``, which counts at mbarriers in the same way."""

from __future__ import annotations

from typing import Any

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import pipeline, utils


class Broadcast:
    """In a cluster (m, n) every block sends each tile of 32 numbers to the blocks of its row and of its column, which
    add up what they get: out[block, warp, i, lane] = sum over the senders s of 1000 * s + 10 * i + lane.

    One warp produces, ``warps`` consume. ``how``: what ``consumer_group`` is. ``bug``: what is wrong with it.
    """

    def __init__(
        self,
        cluster: tuple[int, int] = (2, 2),
        stages: int = 2,
        warps: int = 1,
        how: str = "warps",
        bug: str = "",
        tiles: int = 7,
        mcast: tuple[int, int] = (1, 1),
    ) -> None:
        self.cluster, self.stages, self.warps, self.how, self.bug = cluster, stages, warps, how, bug
        self.tiles, self.mcast = tiles, mcast
        m, n = cluster
        self.size = m * n
        self.layout = cute.make_layout((1, m, n, 1))
        self.peers = (n if mcast[0] else 1) + (m if mcast[1] else 1) - 1
        # The last two warps of a block; in other programs warp 0 initialises both, as by default.
        self.initializing_warps = (warps - 1, warps + (bug == "no such warp"))

    @property
    def consumer_group(self) -> Any:
        agent = pipeline.Agent
        return {
            "warps": lambda: pipeline.CooperativeGroup(agent.Warp, self.warps),
            "arrivals": lambda: pipeline.CooperativeGroup(agent.Thread, self.peers * self.warps),
            "wgmma": lambda: cute.make_tiled_mma(
                cute.nvgpu.warpgroup.MmaF16BF16Op(
                    cutlass.Float16,
                    cutlass.Float32,
                    (64, 8, 16),
                    cute.nvgpu.warpgroup.OperandSource.SMEM,
                    cute.nvgpu.OperandMajorMode.K,
                    cute.nvgpu.OperandMajorMode.K,
                ),
                cute.make_layout((self.warps // 4, 1, 1)),
            ),
        }[self.how]()

    @cute.jit
    def __call__(self, out: cute.Tensor):
        m, n = self.cluster
        blocks = out.shape[0] // n
        self.kernel(out).launch(grid=(blocks, n, 1), block=(32 * (1 + self.warps), 1, 1), cluster=(m, n, 1))

    @cute.kernel
    def kernel(self, out: cute.Tensor):
        warp, lane = cute.arch.make_warp_uniform(cute.arch.warp_idx()), cute.arch.lane_idx()
        (x, y, _), (gx, _, _) = cute.arch.block_idx(), cute.arch.grid_dim()
        block, rank = x + gx * y, cute.arch.block_idx_in_cluster()
        smem = utils.SmemAllocator()
        inbox = smem.allocate_tensor(cutlass.Int32, cute.make_layout((32, self.size, self.stages)), 16)
        pipe = pipeline.PipelineTmaAsync.create(
            num_stages=self.stages,
            consumer_group=self.consumer_group,
            cta_layout_vmnk=self.layout,
            tx_count=128 * self.peers + {"too many bytes": 4, "too few bytes": -4}.get(self.bug, 0),
            mcast_mode_mn=self.mcast,
            defer_sync=self.bug == "no sync",
            initializing_warps=self.initializing_warps,
        )
        producer, consumer = pipe.make_participants()
        if cutlass.const_expr(self.bug == "wrong phase"):
            consumer = pipeline.PipelineConsumer(pipe, pipeline.PipelineState(self.stages, 0, 0, 1))
        if warp == 0:
            for i in cutlass.range(self.tiles):
                stage = producer.acquire_and_advance()
                self.send(inbox, stage, rank, 1000 * block + 10 * i + lane)
                stage.commit()
            if cutlass.const_expr(self.bug != "no tail"):
                producer.tail()
        else:
            for i in cutlass.range(self.tiles):
                stage = consumer.wait_and_advance(cutlass.Boolean(True) if self.bug == "no wait" else None)
                if cutlass.const_expr(self.bug == "early release"):
                    stage.release()
                    if i + 1 < self.tiles:
                        consumer.wait()
                total = cutlass.Int32(0)
                for sender in cutlass.range_constexpr(self.size):
                    total += self.received(inbox, rank, sender, stage.index)
                out[block, warp - 1, i, lane] = total
                if cutlass.const_expr(self.bug not in ("no release", "early release")):
                    if cutlass.const_expr(self.how == "wgmma"):  # one thread releases for four warps
                        cute.arch.barrier(barrier_id=1 + (warp - 1) // 4, number_of_threads=128)
                    stage.release()

    def shares(self, a: Any, b: int) -> Any:
        """Whether rank ``a`` sends to rank ``b``: they are in one row or one column."""
        m = self.cluster[0]
        row, column = a % m == b % m, a // m == b // m
        same = a == b
        if self.mcast[0]:
            same = same | row
        if self.mcast[1]:
            same = same | column
        return same

    @cute.jit
    def send(self, inbox: Any, stage: Any, rank: Any, value: Any):
        where = cute.crd2idx((cute.arch.lane_idx(), rank, stage.index), inbox.layout)
        for other in cutlass.range_constexpr(self.size):
            if self.shares(rank, other):
                cute.arch.store_shared_remote(value, inbox.iterator + where, stage.barrier, other)

    @cute.jit
    def received(self, inbox: Any, rank: Any, sender: cutlass.Constexpr, stage: Any):
        value = cutlass.Int32(0)
        if self.shares(rank, sender):
            value = inbox[cute.arch.lane_idx(), sender, stage]
        return value


class Turns:
    """``groups`` groups of 64 threads take turns at two sections: out[i] is who came i-th to each (100 * section)."""

    def __init__(self, groups: int = 3, rounds: int = 5, bug: str = "") -> None:
        self.groups, self.rounds, self.bug = groups, rounds, bug

    @cute.jit
    def __call__(self, out: cute.Tensor):
        self.kernel(out).launch(grid=(1, 1, 1), block=(64 * self.groups, 1, 1))

    @cute.kernel
    def kernel(self, out: cute.Tensor):
        tidx, _, _ = cute.arch.thread_idx()
        group = cute.arch.make_warp_uniform(tidx // 64)
        count = utils.SmemAllocator().allocate_tensor(cutlass.Int32, cute.make_layout(2))
        if tidx < 2:
            count[tidx] = 0
        cute.arch.sync_threads()
        order = pipeline.PipelineOrder.create(
            depth=2,
            length=self.groups,
            group_id=group,
            producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 64),
        )
        for _ in cutlass.range(self.rounds):
            for section in cutlass.range_constexpr(2):
                order.wait()
                if tidx % 64 == 0:
                    out[section, count[section]] = 100 * section + group
                    count[section] = count[section] + 1
                if cutlass.const_expr(self.bug != "no arrive" or section == 0):
                    order.arrive()


class OneRole:
    """Every warp produces and consumes: ``ahead`` tiles are fetched before the loop, then one for each that is read, as
    in a multistage main loop. out[block, i, lane] = 1000 * block + 10 * i + lane, for the two blocks of a cluster."""

    def __init__(self, stages: int = 3, ahead: int = 3, tiles: int = 8) -> None:
        self.stages, self.ahead, self.tiles = stages, ahead, tiles

    @cute.jit
    def __call__(self, out: cute.Tensor):
        self.kernel(out).launch(grid=(2, 1, 1), block=(32, 1, 1), cluster=(2, 1, 1))

    @cute.kernel
    def kernel(self, out: cute.Tensor):
        lane, block = cute.arch.lane_idx(), cute.arch.block_idx()[0]
        ring = utils.SmemAllocator().allocate_tensor(cutlass.Int32, cute.make_layout((32, self.stages)), 16)
        pipe = pipeline.PipelineTmaAsync.create(
            num_stages=self.stages,
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Warp, 1),
            stage_tensors=[ring],
        )
        write = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, self.stages)
        read = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, self.stages)
        for _ in cutlass.range_constexpr(self.ahead):
            self.fetch(pipe, ring, write)
        for i in cutlass.range(self.tiles):
            pipe.consumer_wait(read)
            out[block, i, lane] = ring[lane, read.index]
            pipe.consumer_release(read)
            read.advance()
            if write.count < self.tiles:
                self.fetch(pipe, ring, write)

    @cute.jit
    def fetch(self, pipe: Any, ring: Any, write: Any):
        lane = cute.arch.lane_idx()
        pipe.producer_acquire(write)
        place = ring.iterator + cute.crd2idx((lane, write.index), ring.layout)
        block = cute.arch.block_idx()[0]
        value = 1000 * block + 10 * write.count + lane
        cute.arch.store_shared_remote(value, place, pipe.producer_get_barrier(write), block)
        pipe.producer_commit(write)
        write.advance()
