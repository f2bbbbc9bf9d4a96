"""Consumers that ask before they wait (``try_wait``), and use the answer again when the phase has changed."""

from __future__ import annotations

import numpy as np

import tilewright as cutlass
from tests.check.pairs import launch, numbers, pair
from tilewright import cute, pipeline, utils
from tilewright.cute.nvgpu import cpasync

TILES = 6
TOKEN = "mbarrier-token"
WAIT, ASK = "cute.arch.mbarrier_wait(full + stage, phase)", "token = cute.arch.mbarrier_try_wait(full, 0)"


def asking_ring(stages: int, ask: str) -> None:
    """Warp 0 fills stages of 128 elements by bulk copies, warps 1 and 2 ask for each stage, and wait for it where the
    answer is false. ``ask``: when they ask again."""

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
            if cutlass.const_expr(ask == "after a wait"):  # so that the answer is true
                cute.arch.mbarrier_wait(full, 0)
            token = cute.arch.mbarrier_try_wait(full, 0)
            for k in cutlass.range(TILES):
                stage, phase = k % stages, k // stages & 1
                if not token:
                    cute.arch.mbarrier_wait(full + stage, phase)
                y[k, t - 32] = ring[127 - t, stage]
                n = k + 1
                if cutlass.const_expr(ask == "early"):  # before the stage is given back
                    token = cutlass.Boolean(True)
                    if n < TILES:
                        token = cute.arch.mbarrier_try_wait(full + n % stages, n // stages & 1)
                cute.arch.mbarrier_arrive(empty + stage)
                if cutlass.const_expr(ask == "each turn"):
                    if n < TILES:
                        token = cute.arch.mbarrier_try_wait(full + n % stages, n // stages & 1)
                if cutlass.const_expr(ask == "set false"):
                    token = cutlass.Boolean(False)

    x = cute.runtime.from_dlpack(np.asfortranarray(numbers(128 * TILES).reshape(128, TILES)), assumed_align=16)
    launch(kernel, x, np.zeros((TILES, 64), np.float32), block=96)


@pair(TOKEN, WAIT, ASK)
def a_token_that_is_kept_for_the_next_stage(bug: bool) -> None:
    asking_ring(3, "once" if bug else "each turn")


@pair(TOKEN, WAIT, ASK)
def a_token_that_is_kept_for_the_next_phase_of_one_stage(bug: bool) -> None:
    asking_ring(1, "once" if bug else "set false")


@pair("data-race", "y[k, t - 32] = ring[127 - t, stage]", "cute.copy(get, x[None, k], ring[None, stage]", ASK)
def a_true_token_that_leaves_out_all_later_waits(bug: bool) -> None:
    asking_ring(2, "after a wait" if bug else "early")


@pair(f"{TOKEN} | data-race")  # the latter where the first answer was true
def a_pipelines_token_that_outlives_its_state(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        ring = utils.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout((32, 2)), 128)
        full_pipe = pipeline.PipelineAsync.create(
            num_stages=2,
            producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 32),
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 32),
        )
        if warp == 0:
            state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, 2)
            for k in cutlass.range(TILES):
                full_pipe.producer_acquire(state)
                ring[t, state.index] = x[k, t]
                full_pipe.producer_commit(state)
                state.advance()
        else:
            state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, 2)
            token = full_pipe.consumer_try_wait(state)
            for k in cutlass.range(TILES):
                full_pipe.consumer_wait(state, token)
                y[k, t - 32] = ring[63 - t, state.index]
                full_pipe.consumer_release(state)
                state.advance()
                if cutlass.const_expr(not bug):
                    token = cutlass.Boolean(True)
                    if k + 1 < TILES:
                        token = full_pipe.consumer_try_wait(state)

    launch(kernel, numbers(32 * TILES).reshape(TILES, 32), np.zeros((TILES, 32), np.float32))


def waits_by(condition: str, early: bool) -> None:
    """A wait that something else than an answer decides: an argument of the kernel, or a comparison. Its answers are
    those of the wait before, so that nothing is to be said of tokens; ``early`` reads before any wait."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor, asked: cutlass.Boolean, count: cutlass.Int32):
        t, _, _ = cute.arch.thread_idx()
        smem = utils.SmemAllocator()
        full = smem.allocate_array(cutlass.Int64, 1)
        ring = smem.allocate_tensor(cutlass.Float32, cute.make_layout(128), 128)
        if t == 0:
            cute.arch.mbarrier_init(full, 1)
            cute.arch.mbarrier_init_fence()
        cute.arch.sync_threads()
        if t == 0:
            cute.arch.mbarrier_arrive_and_expect_tx(full, 512)
            cute.copy(cute.make_copy_atom(cpasync.CopyBulkG2SOp(), cutlass.Float32), x, ring, mbar_ptr=full)
        token = cute.arch.mbarrier_try_wait(full, 0)
        if cutlass.const_expr(condition == "argument"):
            if asked:
                cute.arch.mbarrier_wait(full, 0)
        elif cutlass.const_expr(condition == "comparison"):
            if count > 2:
                cute.arch.mbarrier_wait(full, 0)
        else:
            if not token:
                cute.arch.mbarrier_wait(full, 0)
        y[t] = ring[t]

    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor, asked: cutlass.Boolean, count: cutlass.Int32):
        kernel(x, y, asked, count).launch(grid=(1, 1, 1), block=(32, 1, 1))

    x = cute.runtime.from_dlpack(numbers(128), assumed_align=16)
    host(x, np.zeros(32, np.float32), not early, 1 if early else 3)


@pair("data-race", "y[t] = ring[t]")
def a_wait_that_an_argument_leaves_out(bug: bool) -> None:
    waits_by("argument", bug)


@pair("data-race", "y[t] = ring[t]")
def a_wait_that_a_comparison_leaves_out(bug: bool) -> None:
    waits_by("comparison", bug)
