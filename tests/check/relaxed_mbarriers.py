"""Arrivals and tests of mbarriers in relaxed order: a fence of a wide enough scope makes the order."""

from __future__ import annotations

import tilewright as cutlass
from tests.check.pairs import launch, numbers, pair, shared
from tilewright import cute
from tilewright.experimental import primitives as prims

WRITE, READ = "s[t] = x[t]", "y[t] = s[63 - t]"


def hand_over(
    releases: bool = True, acquires: bool = True, before: bool = True, after: bool = True, one_lane: bool = False
) -> None:
    """64 threads write, arrive, wait and read; ``before``, ``after``: a fence before the arrival, after the wait."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        full, s = cute.arch.alloc_smem(cutlass.Int64, 1), shared(64)
        if t == 0:
            prims.mbarrier_init(full, 2 if cutlass.const_expr(one_lane) else 64)
            prims.fence_mbarrier_init()
        prims.barrier_cta_sync()
        s[t] = x[t]
        if cutlass.const_expr(before):
            cute.arch.fence_acq_rel_cta()
        if cutlass.const_expr(one_lane):
            cute.arch.sync_warp()
            if t % 32 == 0:
                prims.mbarrier_arrive(full, relaxed=not releases)
        else:
            prims.mbarrier_arrive(full, relaxed=not releases)
        order = prims.MemOrder.ACQUIRE if cutlass.const_expr(acquires) else prims.MemOrder.RELAXED
        while not prims.mbarrier_try_wait_parity(full, 0, order=order):
            pass
        if cutlass.const_expr(after):
            cute.arch.fence_acq_rel_cta()
        y[t] = s[63 - t]

    launch(kernel, numbers(64), numbers(64))


@pair("data-race", WRITE, READ)
def a_relaxed_arrival_without_a_fence_before_it(bug: bool) -> None:
    hand_over(releases=False, before=not bug)


@pair("data-race", WRITE, READ)
def a_relaxed_arrival_of_one_lane_without_fences_of_the_others(bug: bool) -> None:
    hand_over(releases=False, before=not bug, one_lane=True)


@pair("data-race", WRITE, READ)
def a_relaxed_wait_without_a_fence_after_it(bug: bool) -> None:
    hand_over(acquires=False, after=not bug)


@pair("data-race", WRITE, READ)
def a_fence_before_a_relaxed_arrival_and_none_after_a_relaxed_wait(bug: bool) -> None:
    hand_over(releases=False, acquires=False, after=not bug)


@pair("data-race", "s[t] = x[t]", "y[t] = s[t]")
def a_fence_of_the_block_before_a_relaxed_arrival_in_another_block(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        rank = cute.arch.block_idx_in_cluster()
        full, s = cute.arch.alloc_smem(cutlass.Int64, 1), y
        if t == 0:
            prims.mbarrier_init(full, 32)
            prims.fence_mbarrier_init()
        prims.barrier_cluster_arrive()
        prims.barrier_cluster_wait()
        if rank == 0:
            s[t] = x[t]
            if cutlass.const_expr(bug):
                cute.arch.fence_acq_rel_cta()
            else:
                cute.arch.fence_acq_rel_cluster()
            prims.mbarrier_arrive(prims.mapa(full, 1), relaxed=True)
        else:
            while not prims.mbarrier_try_wait_parity(full, 0, scope=prims.MBarrierScope.CLUSTER):
                pass
            y[t] = s[t] + 1.0
        prims.barrier_cluster_arrive()
        prims.barrier_cluster_wait()

    launch(kernel, numbers(32), numbers(32), grid=2, block=32, cluster=2)
