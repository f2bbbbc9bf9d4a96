"""mbarriers: who initialises them, who sees that, how many arrive, which phase is waited for, and what lies in them."""

from __future__ import annotations

import numpy as np

import tilewright as cutlass
from tests.check.pairs import launch, numbers, pair, shared
from tests.check.proxies import LOAD, load
from tilewright import cute, utils
from tilewright.cute.nvgpu import cpasync

I32 = np.int32


def meet(
    sync: bool = True,
    init: bool = True,
    count: int = 64,
    parity: int = 0,
    twice: bool = False,
    by_all: bool = False,
    data: bool = False,
    again: bool = False,
    late: int = 0,
    wait: bool = True,
) -> None:
    """All threads of two warps arrive at an mbarrier and wait for it; then they read what the others wrote."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        full = cute.arch.alloc_smem(cutlass.Int64, 2)
        s = shared(64)
        if cutlass.const_expr(by_all):
            cute.arch.mbarrier_init(full, count)
        elif cutlass.const_expr(init):
            if t == 0:
                cute.arch.mbarrier_init(full, count)
                cute.arch.mbarrier_init_fence()
        if cutlass.const_expr(sync):
            cute.arch.sync_threads()
        s[t] = x[t]
        cute.arch.mbarrier_arrive(full)
        if cutlass.const_expr(twice):
            cute.arch.mbarrier_arrive(full)
        if cutlass.const_expr(data):
            words = cute.make_tensor(cute.recast_ptr(full, dtype=cutlass.Float32), cute.make_layout(2))
            if t == 63:
                words[1] = 0.0
        if cutlass.const_expr(again):
            if t == 0:
                cute.arch.mbarrier_init(full, count)
        if cutlass.const_expr(wait):
            cute.arch.mbarrier_wait(full, parity)
            y[t] = s[63 - t]
        if cutlass.const_expr(late):
            if t < late:
                cute.arch.mbarrier_arrive(full)

    launch(kernel, numbers(64), numbers(64))


ARRIVE = "cute.arch.mbarrier_arrive(full)"
WAIT = "cute.arch.mbarrier_wait(full, parity)"
INIT = "cute.arch.mbarrier_init(full, count)"


@pair("mbarrier-init | mbarrier.arrive on full[0], where no mbarrier", ARRIVE)
def an_init_that_the_other_threads_need_not_see(bug: bool) -> None:
    meet(sync=not bug)


@pair("mbarrier.arrive on full[0], where no mbarrier has been initialised", ARRIVE)
def an_mbarrier_that_is_never_initialised(bug: bool) -> None:
    meet(init=not bug)


@pair("mbarrier.init on ", INIT)
def an_mbarrier_that_all_threads_initialise(bug: bool) -> None:
    meet(by_all=bug)


@pair("mbarrier.arrive", ARRIVE)
def more_arrivals_than_were_announced(bug: bool) -> None:
    meet(count=48 if bug else 64)


@pair("deadlock in kernel 'kernel'", WAIT)
def fewer_arrivals_than_were_announced(bug: bool) -> None:
    meet(count=65 if bug else 64)


@pair("mbarrier.arrive | deadlock in kernel 'kernel'", "")
def every_thread_arrives_twice(bug: bool) -> None:
    meet(twice=True, count=64 if bug else 128)


@pair("mbarrier-arrivals", ARRIVE, INIT)
def a_warp_that_arrives_once_more_than_the_other(bug: bool) -> None:
    meet(late=32 if bug else 0)


@pair("mbarrier-arrivals", ARRIVE, INIT)
def a_count_that_is_too_large_without_a_wait(bug: bool) -> None:
    meet(count=65 if bug else 64, wait=False)


@pair("mbarrier-memory", "words[1] = 0.0", INIT)
def data_in_the_bytes_of_an_mbarrier(bug: bool) -> None:
    meet(data=bug)


@pair("mbarrier.init on the mbarrier full[0]", INIT)
def an_mbarrier_initialised_while_it_is_in_use(bug: bool) -> None:
    meet(again=bug)


@pair("mbarrier-init", LOAD, "cute.arch.mbarrier_init(full, 1)")
def an_init_without_the_fence_that_tma_needs(bug: bool) -> None:
    load(init="no fence" if bug else "fence", fence=False if bug else True)


@pair("deadlock in kernel 'kernel'", "cute.arch.mbarrier_wait(full, k & 1)")
def a_consumer_whose_parity_is_wrong_from_the_start(bug: bool) -> None:
    ring(start=1 if bug else 0)


@pair("mbarrier.arrive", "cute.arch.mbarrier_arrive(full)")
def a_producer_that_runs_a_phase_ahead(bug: bool) -> None:
    ring(empty=not bug)


@pair("deadlock in kernel 'kernel'", "cute.arch.mbarrier_wait(empty, (k & 1) ^ 1)")
def a_consumer_that_never_releases(bug: bool) -> None:
    ring(release=not bug)


@pair("deadlock in kernel 'kernel'", "cute.arch.mbarrier_wait(empty, (k & 1) ^ 1)")
def a_consumer_of_which_one_lane_releases(bug: bool) -> None:
    ring(one_lane=bug)


def ring(start: int = 0, empty: bool = True, release: bool = True, one_lane: bool = False) -> None:
    """Warp 0 hands four values to warp 1 through one place; two mbarriers."""
    check_empty = empty

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        full = cute.arch.alloc_smem(cutlass.Int64, 2)
        empty = full + 1
        s = shared(32)
        if t == 0:
            cute.arch.mbarrier_init(full, 32)
            cute.arch.mbarrier_init(empty, 32)
            cute.arch.mbarrier_init_fence()
        cute.arch.sync_threads()
        lane = t % 32
        if t < 32:
            for k in cutlass.range(4):
                if cutlass.const_expr(check_empty):
                    cute.arch.mbarrier_wait(empty, (k & 1) ^ 1)
                s[lane] = x[k, lane]
                cute.arch.mbarrier_arrive(full)
        else:
            for k in cutlass.range(start, 4 + start):
                cute.arch.mbarrier_wait(full, k & 1)
                y[k - start, lane] = s[31 - lane]
                if cutlass.const_expr(release):
                    if cutlass.const_expr(one_lane):
                        with cute.arch.elect_one():
                            cute.arch.mbarrier_arrive(empty)
                    else:
                        cute.arch.mbarrier_arrive(empty)

    launch(kernel, numbers(128).reshape(4, 32), numbers(128).reshape(4, 32))


def cluster(fence: bool = True, meeting: str = "relaxed", tail: bool = True) -> None:
    """Each of two blocks arrives at the other's mbarrier, and waits for its own."""

    @cute.kernel
    def kernel(y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        full = cute.arch.alloc_smem(cutlass.Int64, 1)
        rank = cute.arch.block_idx_in_cluster()
        if t == 0:
            cute.arch.mbarrier_init(full, 32)
            if cutlass.const_expr(fence):
                cute.arch.mbarrier_init_fence()
        if cutlass.const_expr(meeting in ("relaxed", "twice")):
            cute.arch.cluster_arrive_relaxed()
            cute.arch.cluster_wait()
            if cutlass.const_expr(meeting == "twice"):  # the end of the second meeting is waited for after all else
                cute.arch.cluster_arrive_relaxed()
        elif cutlass.const_expr(meeting == "full"):
            cute.arch.cluster_arrive()
            cute.arch.cluster_wait()
        else:
            cute.arch.sync_threads()
        cute.arch.mbarrier_arrive(full, rank ^ 1)
        cute.arch.mbarrier_wait(full, 0)
        y[b, t] = 1.0
        if cutlass.const_expr(meeting == "twice"):
            cute.arch.cluster_wait()
        if cutlass.const_expr(tail):
            cute.arch.cluster_arrive()
            cute.arch.cluster_wait()

    launch(kernel, np.zeros((2, 32), np.float32), grid=2, block=32, cluster=2)


REMOTE = "cute.arch.mbarrier_arrive(full, rank ^ 1)"


@pair("mbarrier-init | mbarrier.arrive.cluster on full, where no mbarrier", REMOTE)
def an_init_that_the_cluster_need_not_see(bug: bool) -> None:
    cluster(meeting="block" if bug else "relaxed")


@pair("mbarrier-init", REMOTE, "cute.arch.mbarrier_init(full, 32)")
def an_init_without_a_fence_and_a_relaxed_cluster_barrier(bug: bool) -> None:
    cluster(fence=not bug)


@pair("mbarrier-init", REMOTE, "cute.arch.mbarrier_init(full, 32)")
def an_init_without_a_fence_and_the_second_cluster_barrier_begun(bug: bool) -> None:
    cluster(fence=not bug, meeting="twice")


@pair("exited-block | the shared memory of block 1 of the cluster is touched", "total += theirs[k]")
def a_block_that_ends_while_its_neighbour_reads(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        s = shared(32)
        s[t] = x[b, t]
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
        theirs = cute.make_tensor(cute.arch.mapa(s.iterator, cute.arch.block_idx_in_cluster() ^ 1), s.layout)
        total = cutlass.Float32(0)
        if b == 0:
            for k in cutlass.range(32):
                total += theirs[k]
        y[b, t] = total
        if cutlass.const_expr(not bug):
            cute.arch.cluster_arrive()
            cute.arch.cluster_wait()

    launch(kernel, numbers(64).reshape(2, 32), np.zeros((2, 32), np.float32), grid=2, block=32, cluster=2)


@pair("exited-block | the shared memory of block 0 of the cluster is touched", "cute.arch.mbarrier_arrive(full, 0)")
def a_release_to_a_block_that_may_have_ended(bug: bool) -> None:
    @cute.kernel
    def kernel(y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        full = cute.arch.alloc_smem(cutlass.Int64, 1)
        if t == 0:
            cute.arch.mbarrier_init(full, 32)
            cute.arch.mbarrier_init_fence()
        cute.arch.cluster_arrive_relaxed()
        cute.arch.cluster_wait()
        if b == 1:
            cute.arch.mbarrier_arrive(full, 0)
        elif cutlass.const_expr(not bug):
            cute.arch.mbarrier_wait(full, 0)
        y[b, t] = 1.0

    launch(kernel, np.zeros((2, 32), np.float32), grid=2, block=32, cluster=2)


@pair("data-race", "s[t] = x[t]  # by the producer", "y[t - 32] = s[63 - t]")
def a_try_wait_whose_answer_is_not_used(bug: bool) -> None:
    """It may come back before the phase is complete: only the true branch of a test of its answer is ordered."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s, full = shared(32), cute.arch.alloc_smem(cutlass.Int64, 1)
        if t == 0:
            cute.arch.mbarrier_init(full, 32)
            cute.arch.mbarrier_init_fence()
        cute.arch.sync_threads()
        if t < 32:
            s[t] = x[t]  # by the producer
            cute.arch.mbarrier_arrive(full)
        else:
            if cutlass.const_expr(bug):
                cute.arch.mbarrier_try_wait(full, 0)
            else:
                while not cute.arch.mbarrier_try_wait(full, 0):
                    pass
            y[t - 32] = s[63 - t]

    launch(kernel, numbers(32), numbers(32))


@pair("mbarrier-init", "cute.copy(get, x, ring, mbar_ptr=full)", "cute.arch.mbarrier_init(full, 1)")
def a_copy_by_another_lane_than_the_one_that_initialises(bug: bool) -> None:
    """Lanes of one warp are threads of their own: without a barrier of the warp the lane that copies need not see the
    init of lane 0."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        smem = utils.SmemAllocator()
        full = smem.allocate_array(cutlass.Int64, 1)
        ring = smem.allocate_tensor(cutlass.Float32, cute.make_layout(128), 128)
        get = cute.make_copy_atom(cpasync.CopyBulkG2SOp(), cutlass.Float32)
        if t == 0:
            cute.arch.mbarrier_init(full, 1)
            cute.arch.mbarrier_init_fence()
            cute.arch.mbarrier_arrive_and_expect_tx(full, 512)
        if cutlass.const_expr(not bug):
            cute.arch.sync_warp()
        if t == 7:
            cute.copy(get, x, ring, mbar_ptr=full)
        cute.arch.sync_warp()
        cute.arch.mbarrier_wait(full, 0)
        y[t] = ring[t]

    launch(kernel, cute.runtime.from_dlpack(numbers(128), assumed_align=16), np.zeros(32, np.float32), block=32)
