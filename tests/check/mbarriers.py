"""Races around mbarriers and clusters."""

from __future__ import annotations

import numpy as np

import tilewright as cutlass
from tests.check.pairs import launch, numbers, pair, shared
from tilewright import cute

I32 = np.int32


def handover(
    early: bool = False, wait: bool = True, one_lane: bool = False, sync: bool = True, release_early: bool = False
) -> None:
    """Warp 0 fills a buffer four times, warp 1 reads it; two mbarriers hand it over."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        full = cute.arch.alloc_smem(cutlass.Int64, 2)
        empty = full + 1
        s = shared(32)
        if t == 0:
            cute.arch.mbarrier_init(full, 1 if cutlass.const_expr(one_lane) else 32)
            cute.arch.mbarrier_init(empty, 32)
            cute.arch.mbarrier_init_fence()
        cute.arch.sync_threads()
        lane = t % 32
        for k in cutlass.range(4):
            if t < 32:
                cute.arch.mbarrier_wait(empty, (k & 1) ^ 1)
                if cutlass.const_expr(early):
                    cute.arch.mbarrier_arrive(full)
                    s[lane] = x[k, lane]
                else:
                    s[lane] = x[k, lane]
                    if cutlass.const_expr(one_lane):
                        if cutlass.const_expr(sync):
                            cute.arch.sync_warp()
                        with cute.arch.elect_one():
                            cute.arch.mbarrier_arrive(full)
                    else:
                        cute.arch.mbarrier_arrive(full)
            else:
                if cutlass.const_expr(wait):
                    cute.arch.mbarrier_wait(full, k & 1)
                if cutlass.const_expr(release_early):
                    cute.arch.mbarrier_arrive(empty)
                    y[k, lane] = s[31 - lane]
                else:
                    y[k, lane] = s[31 - lane]
                    cute.arch.mbarrier_arrive(empty)

    launch(kernel, numbers(128).reshape(4, 32), numbers(128).reshape(4, 32))


WRITE, READ = "s[lane] = x[k, lane]", "y[k, lane] = s[31 - lane]"


@pair("data-race", WRITE, READ)
def an_mbarrier_that_is_told_before_the_write(bug: bool) -> None:
    handover(early=bug)


@pair("data-race", WRITE, READ)
def a_buffer_that_is_released_before_the_read(bug: bool) -> None:
    handover(release_early=bug)


@pair("data-race", WRITE, READ)
def one_lane_arrives_for_a_warp_without_sync_warp(bug: bool) -> None:
    handover(one_lane=True, sync=not bug)


def once(wait_by_all: bool, wait: bool = True) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        full = cute.arch.alloc_smem(cutlass.Int64, 1)
        s = shared(64)
        if t == 0:
            cute.arch.mbarrier_init(full, 64)
            cute.arch.mbarrier_init_fence()
        cute.arch.sync_threads()
        s[t] = x[t]
        cute.arch.mbarrier_arrive(full)
        if cutlass.const_expr(wait_by_all):
            cute.arch.mbarrier_wait(full, 0)
        elif t % 32 == 0:
            cute.arch.mbarrier_wait(full, 0)
        y[t] = s[63 - t]

    launch(kernel, numbers(64), numbers(64))


@pair("data-race", "s[t] = x[t]", "y[t] = s[63 - t]")
def one_lane_waits_for_a_warp_without_sync_warp(bug: bool) -> None:
    once(wait_by_all=not bug)


@pair("data-race", "s[t] = x[t]", "y[t] = s[63 - t]")
def a_wait_for_the_phase_before(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        full = cute.arch.alloc_smem(cutlass.Int64, 1)
        s = shared(64)
        if t == 0:
            cute.arch.mbarrier_init(full, 64)
            cute.arch.mbarrier_init_fence()
        cute.arch.sync_threads()
        s[t] = x[t]
        cute.arch.mbarrier_arrive(full)
        cute.arch.mbarrier_wait(full, 1 if cutlass.const_expr(bug) else 0)
        y[t] = s[63 - t]

    launch(kernel, numbers(64), numbers(64))


def neighbours(first: bool = True, relaxed: bool = False, own: bool = False) -> None:
    """Each of two blocks reads what the other has written to its shared memory."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        s = shared(64)
        rank = cute.arch.block_idx_in_cluster()
        s[t] = x[b, t]
        if cutlass.const_expr(relaxed):
            cute.arch.cluster_arrive_relaxed()
            cute.arch.cluster_wait()
        elif cutlass.const_expr(own):
            cute.arch.cluster_arrive_relaxed()
            cute.arch.cluster_wait()
            cute.arch.sync_threads()
        else:
            cute.arch.cluster_arrive()
            cute.arch.cluster_wait()
        theirs = cute.make_tensor(cute.arch.mapa(s.iterator, rank ^ 1), s.layout)
        y[b, t] = theirs[t]
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()

    x = numbers(128).reshape(2, 64)
    launch(kernel, x, np.zeros_like(x), grid=2, cluster=2)


@pair("data-race", "s[t] = x[b, t]", "y[b, t] = theirs[t]")
def a_cluster_barrier_that_is_relaxed(bug: bool) -> None:
    neighbours(relaxed=bug)


@pair("data-race", "s[t] = x[b, t]", "y[b, t] = theirs[t]")
def a_blocks_barrier_for_a_cluster(bug: bool) -> None:
    neighbours(own=bug)


@pair("data-race", "theirs[t] = x[b, t]", "y[b, t] = s[t]")
def a_write_to_a_neighbour_that_reads_at_once(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        s = shared(64)
        rank = cute.arch.block_idx_in_cluster()
        s[t] = 0.0
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
        theirs = cute.make_tensor(cute.arch.mapa(s.iterator, rank ^ 1), s.layout)
        theirs[t] = x[b, t]
        if cutlass.const_expr(bug):
            cute.arch.sync_threads()
        else:
            cute.arch.cluster_arrive()
            cute.arch.cluster_wait()
        y[b, t] = s[t]
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()

    x = numbers(128).reshape(2, 64)
    launch(kernel, x, np.zeros_like(x), grid=2, cluster=2)
