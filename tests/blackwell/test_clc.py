"""Cluster launch control: running clusters take over those that have not begun."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute, pipeline, sim, utils
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ConstraintError

THREADS = 64


@cute.kernel
def count(y: cute.Tensor, blocks: cute.Tensor, params: cutlass.Constexpr[Any], stages: cutlass.Constexpr[int]):
    """Adds 1 to each tile; warp 0 of the first block of a cluster asks for the next tiles."""
    smem = utils.SmemAllocator()
    answers = smem.allocate_array(cutlass.Int32, 4 * stages, 16)
    thread, _, _ = cute.arch.thread_idx()
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    rank = cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster())
    size = cute.size(params.cluster_shape_mnk)
    layout = cute.make_layout((1, *params.cluster_shape_mnk))
    asks, answered = pipeline.PipelineClcFetchAsync.create(
        num_stages=stages,
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, THREADS * size),
        cta_layout_vmnk=layout,
    ).make_participants()
    x, y_, z = cute.arch.block_idx()
    tile, valid, taken = (x, y_, z), cutlass.Boolean(True), cutlass.Int32(0)
    a, b, _ = params.cluster_shape_mnk
    while valid:
        if warp == 0:
            if rank == 0:
                empty = asks.acquire_and_advance()
                with cute.arch.elect_one():
                    cute.arch.issue_clc_query(empty.barrier, answers + 4 * empty.index)
        if thread == 0:
            y[tile] += 1
        taken += 1
        full = answered.wait_and_advance()
        m, n, batch, more = cute.arch.clc_response(answers + 4 * full.index)
        full.release()
        tile, valid = (m + x % a, n + y_ % b, batch), more != 0
    if warp == 0:
        if rank == 0:
            asks.tail()
    if thread == 0:
        blocks[(x, y_, z)] = taken
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()


@cute.jit
def host(y: cute.Tensor, blocks: cute.Tensor, tiles: cutlass.Constexpr, cluster: cutlass.Constexpr):
    params = utils.ClcDynamicPersistentTileSchedulerParams(tiles, cluster)
    count(y, blocks, params, 2).launch(grid=params.get_grid_shape(), block=(THREADS, 1, 1), cluster=cluster)


@pytest.mark.parametrize("cluster", [(1, 1, 1), (2, 1, 1), (2, 2, 1)])
def test_every_tile_once(cluster: Any) -> None:
    y, blocks = np.zeros((8, 4, 2), np.int32), np.zeros((8, 4, 2), np.int32)
    with sim.options(check="all"):
        host(from_dlpack(y), from_dlpack(blocks), y.shape, cluster)
    assert (y == 1).all()
    assert blocks.sum() == y.size and blocks.max() > 1 and blocks.min() == 0  # some have never begun


def test_the_text_is_assembled() -> None:
    pytest.importorskip("cuda.bindings.nvrtc")
    from tilewright.cuda import compile as build

    y = from_dlpack(np.zeros((8, 4, 2), np.int32))
    for arch in ("sm_100a", "sm_103a", "sm_120a"):
        made = build(cute.compile(host, y, y, (8, 4, 2), (2, 1, 1)).kernels[0], arch)
        assert made.spills == 0 and not made.warnings


def test_clc_pipeline_and_scheduler_refuse_wrong_sizes() -> None:
    with pytest.raises(ConstraintError, match="an answer has 16 bytes"):
        pipeline.PipelineClcFetchAsync.create(
            num_stages=1, consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread), tx_count=8
        )
    with pytest.raises(ConstraintError, match="are not tiles"):
        utils.ClcDynamicPersistentTileSchedulerParams((4, 4, 1), (1, 1, 2))

    @cute.kernel
    def unaligned(y: cute.Tensor):
        answer = cute.arch.alloc_smem(cutlass.Int32, 5, 4) + 1
        cute.arch.issue_clc_query(cute.arch.alloc_smem(cutlass.Int64, 1), answer)

    @cute.jit
    def launch(y: cute.Tensor):
        unaligned(y).launch(grid=(1, 1, 1), block=(32, 1, 1))

    with pytest.raises(ConstraintError, match="aligned to 16"):
        launch(from_dlpack(np.zeros(1, np.int32)))


def test_an_answer_is_read_before_the_next_one_is_written() -> None:
    """The scheduler has a proxy fence behind the read, unless the program says that it has one."""

    def fences(insert_fence: bool) -> int:
        @cute.kernel
        def kernel(y: cute.Tensor, params: cutlass.Constexpr[Any]):
            answer = utils.SmemAllocator().allocate_array(cutlass.Int32, 4, 16)
            tiles = utils.ClcDynamicPersistentTileScheduler.create(
                params, cute.arch.block_idx(), cute.arch.grid_dim(), answer, insert_fence
            )
            y[0] = tiles.get_current_work().tile_idx[0]

        @cute.jit
        def host(y: cute.Tensor):
            params = utils.ClcDynamicPersistentTileSchedulerParams((3, 2, 1), (1, 1, 1))
            kernel(y, params).launch(grid=params.get_grid_shape(), block=(32, 1, 1))

        return str(cute.compile(host, from_dlpack(np.zeros(1, np.int32))).kernels[0]).count("fence.proxy")

    assert (fences(True), fences(False)) == (1, 0)
