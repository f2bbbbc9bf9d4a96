"""Consumers that read a stage before the bytes of its copy have come: no wait, a wait for another phase or stage."""

from __future__ import annotations

import numpy as np

import tilewright as cutlass
from tests.check.pairs import launch, numbers, pair
from tilewright import cute, pipeline, utils
from tilewright.cute.nvgpu import cpasync

FILL, READ = (
    "cute.copy(get, x[None, k], ring[None, stage], mbar_ptr=full + stage)",
    "y[k, t - 32] = ring[127 - t, stage]",
)
TILES = 6


def bulk_ring(stages: int = 2, wait: str = "right") -> None:
    """Warp 0 fills stages of 64 elements by bulk copies, warps 1 and 2 read them; ``wait``: how these wait."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        smem = utils.SmemAllocator()
        full, empty = smem.allocate_array(cutlass.Int64, stages), smem.allocate_array(cutlass.Int64, stages)
        ring = smem.allocate_tensor(cutlass.Float32, cute.make_layout((128, stages)), 128)
        get = cute.make_copy_atom(cpasync.CopyBulkG2SOp(), cutlass.Float32)
        if t == 0:
            for i in cutlass.range_constexpr(stages):
                cute.arch.mbarrier_init(full + i, 1)
                cute.arch.mbarrier_init(empty + i, 64)
            cute.arch.mbarrier_init_fence()
        cute.arch.sync_threads()
        if warp == 0:
            for k in cutlass.range(TILES):
                stage = k % stages
                cute.arch.mbarrier_wait(empty + stage, (k // stages & 1) ^ 1)
                with cute.arch.elect_one():
                    cute.arch.mbarrier_arrive_and_expect_tx(full + stage, 512)
                    cute.copy(get, x[None, k], ring[None, stage], mbar_ptr=full + stage)
        else:
            for k in cutlass.range(TILES):
                stage, phase = k % stages, k // stages & 1
                if cutlass.const_expr(wait == "right" or wait == "inverted"):
                    cute.arch.mbarrier_wait(full + stage, phase ^ (wait == "inverted"))
                elif cutlass.const_expr(wait == "constant"):
                    cute.arch.mbarrier_wait(full + stage, 0)
                elif cutlass.const_expr(wait == "by tile"):
                    cute.arch.mbarrier_wait(full + stage, k & 1)
                elif cutlass.const_expr(wait == "other stage"):
                    cute.arch.mbarrier_wait(full + (stage + 1) % stages, phase ^ (stage + 1) // stages)
                elif cutlass.const_expr(wait == "empty"):
                    cute.arch.mbarrier_wait(empty + stage, phase ^ 1)
                elif cutlass.const_expr(wait == "unheeded"):
                    cute.arch.mbarrier_try_wait(full + stage, phase)
                elif cutlass.const_expr(wait != "none" and wait != "late"):
                    waits = True
                    if cutlass.const_expr(wait == "not first"):
                        waits = k > 0
                    if cutlass.const_expr(wait == "not last"):
                        waits = k < TILES - 1
                    if cutlass.const_expr(wait == "first round"):
                        waits = k < stages
                    if cutlass.const_expr(wait == "one warp"):
                        waits = warp == 1
                    if waits:
                        cute.arch.mbarrier_wait(full + stage, phase)
                y[k, t - 32] = ring[127 - t, stage]
                if cutlass.const_expr(wait == "late"):
                    cute.arch.mbarrier_wait(full + stage, phase)
                cute.arch.mbarrier_arrive(empty + stage)

    x = cute.runtime.from_dlpack(np.asfortranarray(numbers(128 * TILES).reshape(128, TILES)), assumed_align=16)
    launch(kernel, x, np.zeros((TILES, 64), np.float32), block=96)


@pair("data-race", READ, FILL)
def one_stage_that_is_read_without_a_wait(bug: bool) -> None:
    bulk_ring(1, "none" if bug else "right")


@pair("data-race", READ, FILL)
def stages_that_are_read_without_a_wait(bug: bool) -> None:
    bulk_ring(3, "none" if bug else "right")


@pair("data-race", READ, FILL, 'cute.arch.mbarrier_wait(full + stage, phase ^ (wait == "inverted"))')
def a_consumer_that_waits_for_the_other_parity(bug: bool) -> None:
    bulk_ring(2, "inverted" if bug else "right")


@pair("data-race", READ, FILL, 'cute.arch.mbarrier_wait(full + stage, phase ^ (wait == "inverted"))')
def one_stage_whose_consumer_waits_for_the_other_parity(bug: bool) -> None:
    bulk_ring(1, "inverted" if bug else "right")


@pair("data-race", READ, FILL, "cute.arch.mbarrier_wait(full + stage, 0)")
def a_consumer_whose_parity_never_changes(bug: bool) -> None:
    bulk_ring(2, "constant" if bug else "right")


@pair("data-race", READ, FILL, "cute.arch.mbarrier_wait(full + stage, k & 1)")
def a_consumer_whose_parity_changes_with_each_tile(bug: bool) -> None:
    bulk_ring(2, "by tile" if bug else "right")


@pair("data-race", READ, FILL)
def a_consumer_that_waits_for_another_stage(bug: bool) -> None:
    bulk_ring(3, "other stage" if bug else "right")


@pair("data-race", READ, FILL)
def a_consumer_that_waits_for_empty(bug: bool) -> None:
    bulk_ring(2, "empty" if bug else "right")


@pair("data-race", READ, FILL)
def a_consumer_that_asks_and_does_not_look(bug: bool) -> None:
    bulk_ring(2, "unheeded" if bug else "right")


@pair("data-race", READ, FILL)
def a_first_tile_without_a_wait(bug: bool) -> None:
    bulk_ring(2, "not first" if bug else "right")


@pair("data-race", READ, FILL)
def a_last_tile_without_a_wait(bug: bool) -> None:
    bulk_ring(2, "not last" if bug else "right")


@pair("data-race", READ, FILL)
def a_wait_in_the_first_round_only(bug: bool) -> None:
    bulk_ring(2, "first round" if bug else "right")


@pair("data-race", READ, FILL)
def one_of_two_consumers_that_does_not_wait(bug: bool) -> None:
    bulk_ring(3, "one warp" if bug else "right")


@pair("data-race", READ, FILL)
def a_wait_after_the_read(bug: bool) -> None:
    bulk_ring(2, "late" if bug else "right")


TILE = (8, 32)
ROWS = cute.make_layout(TILE, stride=(32, 1))
LOAD = "cute.copy(load, source[None, k], target[None, stage], tma_bar_ptr=full + stage, mcast_mask=mask)"
SUM = "y[block, k, t - 32] = ring[r, t % 32, stage] + ring[r + 4, t % 32, stage]"


class TmaRing:
    """Warp 0 of each block loads tiles of 8 x 32 by TMA, warps 1 to 4 read; with ``blocks`` 2 the first block's copies
    reach both (multicast)."""

    def __init__(self, stages: int, wait: str = "right", blocks: int = 1) -> None:
        self.stages, self.wait, self.blocks = stages, wait, blocks

    @cute.jit
    def __call__(self, x: cute.Tensor, y: cute.Tensor):
        operation = cpasync.CopyBulkTensorTileG2SOp()
        if cutlass.const_expr(self.blocks > 1):
            operation = cpasync.CopyBulkTensorTileG2SMulticastOp()
        atom, tensor = cpasync.make_tiled_tma_atom(operation, x, ROWS, TILE, num_multicast=self.blocks)
        self.kernel(atom, tensor, y).launch(
            grid=(self.blocks, 1, 1), block=(160, 1, 1), cluster=(self.blocks, 1, 1) if self.blocks > 1 else None
        )

    @cute.kernel
    def kernel(self, load: cute.CopyAtom, tensor: cute.Tensor, y: cute.Tensor):
        stages, blocks = self.stages, self.blocks
        t, _, _ = cute.arch.thread_idx()
        block, _, _ = cute.arch.block_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        smem = utils.SmemAllocator()
        full, empty = smem.allocate_array(cutlass.Int64, stages), smem.allocate_array(cutlass.Int64, stages)
        ring = smem.allocate_tensor(cutlass.Float32, cute.make_layout((*TILE, stages), stride=(32, 1, 256)), 128)
        if t == 0:
            for i in cutlass.range_constexpr(stages):
                cute.arch.mbarrier_init(full + i, 1)
                cute.arch.mbarrier_init(empty + i, 4 * blocks)
            cute.arch.mbarrier_init_fence()
        if cutlass.const_expr(blocks > 1):
            cute.arch.cluster_arrive_relaxed()
            cute.arch.cluster_wait()
        else:
            cute.arch.sync_threads()
        tiles = cute.local_tile(tensor, TILE, (None, 0))
        one, mask = cute.make_layout(blocks), cutlass.Int16(3) if cutlass.const_expr(blocks > 1) else None
        target, source = cpasync.tma_partition(
            load,
            block if cutlass.const_expr(blocks > 1) else 0,
            one,
            cute.group_modes(ring, 0, 2),
            cute.group_modes(tiles, 0, 2),
        )
        if warp == 0:
            for k in cutlass.range(TILES):
                stage = k % stages
                cute.arch.mbarrier_wait(empty + stage, (k // stages & 1) ^ 1)
                with cute.arch.elect_one():
                    cute.arch.mbarrier_arrive_and_expect_tx(full + stage, 1024)
                if cutlass.const_expr(blocks > 1):
                    cute.copy(load, source[None, k], target[None, stage], tma_bar_ptr=full + stage, mcast_mask=mask)
                else:
                    cute.copy(load, source[None, k], target[None, stage], tma_bar_ptr=full + stage)
        else:
            for k in cutlass.range(TILES):
                stage, phase = k % stages, k // stages & 1
                waits = cutlass.Boolean(self.wait != "none")
                if cutlass.const_expr(self.wait == "second block"):
                    waits = block == 0
                if cutlass.const_expr(self.wait == "two warps"):
                    waits = warp < 3
                if waits:
                    cute.arch.mbarrier_wait(full + stage, phase ^ (self.wait == "inverted"))
                r = t // 32 - 1
                y[block, k, t - 32] = ring[r, t % 32, stage] + ring[r + 4, t % 32, stage]
                cute.arch.sync_warp()
                with cute.arch.elect_one():
                    for rank in cutlass.range_constexpr(blocks):
                        if cutlass.const_expr(blocks > 1):
                            cute.arch.mbarrier_arrive(empty + stage, rank)
                        else:
                            cute.arch.mbarrier_arrive(empty + stage)
        if cutlass.const_expr(blocks > 1):
            cute.arch.cluster_arrive()
            cute.arch.cluster_wait()


def tma_ring(stages: int, wait: str = "right", blocks: int = 1) -> None:
    TmaRing(stages, wait, blocks)(
        numbers(TILES * 256).reshape(TILES * 8, 32), np.zeros((blocks, TILES, 128), np.float32)
    )


@pair("data-race", SUM, "cute.copy(load, source[None, k], target[None, stage], tma_bar_ptr=full + stage)")
def stages_of_tma_that_are_read_without_a_wait(bug: bool) -> None:
    tma_ring(2, "none" if bug else "right")


@pair("data-race", SUM, "cute.copy(load, source[None, k], target[None, stage], tma_bar_ptr=full + stage)")
def stages_of_tma_and_the_other_parity(bug: bool) -> None:
    tma_ring(3, "inverted" if bug else "right")


@pair("data-race", SUM, "cute.copy(load, source[None, k], target[None, stage], tma_bar_ptr=full + stage)")
def two_of_four_consumer_warps_that_do_not_wait(bug: bool) -> None:
    tma_ring(2, "two warps" if bug else "right")


@pair("data-race", SUM, LOAD)
def a_multicast_that_the_second_block_does_not_wait_for(bug: bool) -> None:
    tma_ring(2, "second block" if bug else "right", blocks=2)


@pair("data-race", SUM, LOAD)
def a_multicast_and_the_other_parity(bug: bool) -> None:
    tma_ring(2, "inverted" if bug else "right", blocks=2)


GET = "cute.copy(load, source[None, k], target[None, state.index], tma_bar_ptr=full)"
TAKE = "y[k, t - 32] = tile[127 - t, index]"


class Pipelined:
    """``PipelineTmaAsync`` with three stages; ``how``: what its consumers do."""

    def __init__(self, how: str) -> None:
        self.how = how

    @cute.jit
    def __call__(self, x: cute.Tensor, y: cute.Tensor):
        layout = cute.make_layout(128)
        atom, tensor = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), x, layout, (128,))
        self.kernel(atom, tensor, y).launch(grid=(1, 1, 1), block=(96, 1, 1))

    @cute.kernel
    def kernel(self, load: cute.CopyAtom, tensor: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        tile = utils.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout((128, 3)), 128)
        ring = pipeline.PipelineTmaAsync.create(
            num_stages=3, consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Warp, 2), stage_tensors=(tile,)
        )
        tiles = cute.local_tile(tensor, (128,), (None,))
        target, source = cpasync.tma_partition(load, 0, cute.make_layout(1), cute.group_modes(tile, 0, 1), tiles)
        if warp == 0:
            state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, 3)
            for k in cutlass.range(TILES):
                ring.producer_acquire(state)
                full = ring.producer_get_barrier(state)
                cute.copy(load, source[None, k], target[None, state.index], tma_bar_ptr=full)
                ring.producer_commit(state)
                state.advance()
            ring.producer_tail(state)
        else:
            state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, 3)
            if cutlass.const_expr(self.how == "producer's state"):
                state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, 3)
            for k in cutlass.range(TILES):
                if cutlass.const_expr(self.how != "no wait"):
                    ring.consumer_wait(state)
                index = state.index
                if cutlass.const_expr(self.how == "next stage"):
                    index = (state.index + 1) % 3
                y[k, t - 32] = tile[127 - t, index]
                ring.consumer_release(state)
                state.advance()


def pipelined(how: str) -> None:
    Pipelined(how)(numbers(128 * TILES), np.zeros((TILES, 64), np.float32))


@pair("data-race", TAKE, GET)
def a_pipeline_without_consumer_wait(bug: bool) -> None:
    pipelined("no wait" if bug else "right")


@pair("data-race", TAKE, GET)
def a_consumer_with_the_state_of_a_producer(bug: bool) -> None:
    pipelined("producer's state" if bug else "right")


@pair("data-race", TAKE, GET)
def a_stage_beside_the_one_that_was_waited_for(bug: bool) -> None:
    pipelined("next stage" if bug else "right")
