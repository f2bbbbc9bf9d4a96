"""Tiles by TMA multicast into a pipeline, through registers, and out by TMA out of another: for both machines."""

from __future__ import annotations

from typing import Any

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import pipeline, utils
from tilewright.cute.nvgpu import cpasync

TILE = (32, 64)


class Doubled:
    """b[j] = 2 * a[j] + j for the ``copies`` matrices of b: block (x, j) of a cluster (1, copies) makes b[j]'s rows x.

    All blocks of a cluster need the same tiles of a: each fetches its part of a tile and multicasts it. Warp 0 fetches,
    four warps compute, of which the first one stores.
    """

    def __init__(
        self, copies: int = 2, stages: int = 2, buffers: int = 2, bug: str = "", elected: bool = False
    ) -> None:
        self.copies, self.stages, self.buffers, self.bug, self.elected = copies, stages, buffers, bug, elected

    @cute.jit
    def __call__(self, a: cute.Tensor, b: cute.Tensor):
        """``a``: (M, K); ``b``: (M, K, copies), K-major."""
        layout = cute.make_layout(TILE, stride=(TILE[1], 1))
        op = cpasync.CopyBulkTensorTileG2SMulticastOp() if self.copies > 1 else cpasync.CopyBulkTensorTileG2SOp()
        load = cpasync.make_tiled_tma_atom(op, a, layout, TILE, num_multicast=self.copies)
        store = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), b, layout, TILE)
        grid = (cute.ceil_div(a.shape[0], TILE[0]), self.copies, 1)
        self.kernel(*load, *store).launch(grid=grid, block=(160, 1, 1), cluster=(1, self.copies, 1))

    @cute.kernel
    def kernel(self, load: cute.CopyAtom, a: cute.Tensor, store: cute.CopyAtom, b: cute.Tensor):
        tidx, _, _ = cute.arch.thread_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        bidx, j, _ = cute.arch.block_idx()
        smem = utils.SmemAllocator()
        rows = cute.make_layout((*TILE, self.stages), stride=(TILE[1], 1, TILE[0] * TILE[1]))
        sA = smem.allocate_tensor(cutlass.Float32, rows, 1024)
        out = cute.make_layout((*TILE, self.buffers), stride=(TILE[1], 1, TILE[0] * TILE[1]))
        sB = smem.allocate_tensor(cutlass.Float32, out, 1024)
        cluster = cute.make_layout((1, 1, self.copies, 1))
        ring = pipeline.PipelineTmaAsync.create(
            num_stages=self.stages,
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Warp, 4),
            stage_tensors=[sA],
            cta_layout_vmnk=cluster,
        )
        gA = cute.local_tile(a, TILE, (bidx, None))  # (32, 64, tiles)
        gB = cute.local_tile(b[None, None, j], TILE, (bidx, None))  # (32, 64, tiles)
        tAsA, tAgA = cpasync.tma_partition(
            load, j, cute.make_layout(self.copies), cute.group_modes(sA, 0, 2), cute.group_modes(gA, 0, 2)
        )  # (TMA, stages), (TMA, tiles)
        tBsB, tBgB = cpasync.tma_partition(
            store, 0, cute.make_layout(1), cute.group_modes(sB, 0, 2), cute.group_modes(gB, 0, 2)
        )  # (TMA, buffers), (TMA, tiles)
        tiles = cute.size(gA, mode=[2])
        if warp == 0:
            mask = cute.make_layout_image_mask(cluster, (0, 0, j, 0), mode=2)
            state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, self.stages)
            for i in cutlass.range(tiles):
                ring.producer_acquire(state)
                full = ring.producer_get_barrier(state)
                if cutlass.const_expr(self.copies > 1):
                    cute.copy(load, tAgA[None, i], tAsA[None, state.index], tma_bar_ptr=full, mcast_mask=mask)
                else:
                    cute.copy(load, tAgA[None, i], tAsA[None, state.index], tma_bar_ptr=full)
                ring.producer_commit(state)
                state.advance()
            ring.producer_tail(state)
        else:
            self.consume(ring, store, sA, sB, tBsB, tBgB, tiles, warp, tidx - 32, j)

    @cute.jit
    def consume(
        self,
        ring: Any,
        store: cute.CopyAtom,
        sA: cute.Tensor,
        sB: cute.Tensor,
        tBsB: cute.Tensor,
        tBgB: cute.Tensor,
        tiles: Any,
        warp: Any,
        tidx: Any,
        j: Any,
    ):
        outgoing = pipeline.PipelineTmaStore.create(
            num_stages=self.buffers, producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 128)
        )
        barrier = pipeline.NamedBarrier(barrier_id=1, num_threads=128)
        state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, self.stages)
        for i in cutlass.range(tiles):
            if cutlass.const_expr(self.bug != "no acquire"):
                if warp == 1:
                    outgoing.producer_acquire()
            barrier.arrive_and_wait()  # the buffer is free
            ring.consumer_wait(state)
            buffer = i % self.buffers
            for k in cutlass.range_constexpr(TILE[0] * TILE[1] // 128):
                row, column = (tidx + 128 * k) // TILE[1], (tidx + 128 * k) % TILE[1]
                sB[row, column, buffer] = 2.0 * sA[row, column, state.index] + j.to(cutlass.Float32)
            if cutlass.const_expr(self.elected):  # the program synchronises the warp, and elects the lane
                cute.arch.sync_warp()
                with cute.arch.elect_one():
                    ring.consumer_release(state)
            else:
                ring.consumer_release(state)
            state.advance()
            if cutlass.const_expr(self.bug != "no fence"):
                cute.arch.fence_proxy("async.shared", space="cta")
            barrier.arrive_and_wait()  # the buffer is written
            if warp == 1:
                cute.copy(store, tBsB[None, buffer], tBgB[None, i])
                outgoing.producer_commit()
        if warp == 1:
            outgoing.producer_tail()
