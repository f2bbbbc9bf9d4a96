"""Barriers at which not all meet as they must; collectives of a warp in divided warps; waits that never end."""

from __future__ import annotations

import numpy as np

import tilewright as cutlass
from tests.check.pairs import launch, numbers, pair, shared
from tilewright import cute
from tilewright.cute.nvgpu import warp

I32 = np.int32


@pair("a block barrier inside a branch that only 16 of the warp's threads take", "cute.arch.sync_threads()")
def a_barrier_that_half_a_warp_reaches(bug: bool) -> None:
    @cute.kernel
    def kernel(y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = shared(64)
        s[t] = 1.0
        if t < (16 if cutlass.const_expr(bug) else 64):
            cute.arch.sync_threads()
        y[t] = s[t]

    launch(kernel, numbers(64))


@pair("deadlock in kernel 'kernel'", "cute.arch.sync_threads()")
def a_barrier_that_one_warp_never_reaches(bug: bool) -> None:
    @cute.kernel
    def kernel(y: cute.Tensor, go: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        if t < (32 if cutlass.const_expr(bug) else 64):
            cute.arch.sync_threads()
        cute.arch.barrier(barrier_id=1, number_of_threads=64)
        y[t] = 1.0

    launch(kernel, numbers(64), np.zeros(1, I32))


@pair("barrier-divergent", "cute.arch.sync_threads()")
def a_barrier_in_both_arms_of_a_branch(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = shared(64)
        s[t] = x[t]
        if cutlass.const_expr(bug):
            if t < 32:
                cute.arch.sync_threads()
                y[t] = s[t + 32]
            else:
                cute.arch.sync_threads()
                y[t] = 2.0 * s[t - 32]
        else:
            cute.arch.sync_threads()
            if t < 32:
                y[t] = s[t + 32]
            else:
                y[t] = 2.0 * s[t - 32]

    launch(kernel, numbers(64), numbers(64))


@pair("deadlock in kernel 'kernel'", "cute.arch.sync_threads()")
def warps_that_turn_a_loop_with_a_barrier_unequally_often(bug: bool) -> None:
    @cute.kernel
    def kernel(y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        warp = cute.arch.warp_idx()
        for _ in cutlass.range(warp + 1 if cutlass.const_expr(bug) else 2):
            cute.arch.sync_threads()
        cute.arch.barrier(barrier_id=1, number_of_threads=64)
        y[t] = 1.0

    launch(kernel, numbers(64))


@pair("barrier 1 of one block is used with", "")
def a_named_barrier_with_two_counts(bug: bool) -> None:
    named(32 if bug else 64)


@pair("deadlock in kernel 'kernel'", "cute.arch.barrier(barrier_id=1, number_of_threads=count)")
def a_named_barrier_of_more_threads_than_come(bug: bool) -> None:
    named(96 if bug else 64, 96 if bug else 64)


def named(count: int, other: int = 64) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = shared(96)
        s[t] = x[t]
        if t < 32:
            cute.arch.barrier(barrier_id=1, number_of_threads=count)
        elif t < 64:
            cute.arch.barrier(barrier_id=1, number_of_threads=other)
        y[t] = s[t]

    launch(kernel, numbers(96), numbers(96), block=96)


@pair("barrier-shared", "cute.arch.barrier(barrier_id=1, number_of_threads=64)")
def two_pairs_of_warps_with_one_barrier(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = shared(128)
        s[t] = x[t]
        if t < 64:
            cute.arch.barrier(barrier_id=1, number_of_threads=64)
            y[t] = s[t]
        else:
            if cutlass.const_expr(bug):
                cute.arch.barrier(barrier_id=1, number_of_threads=64)
            else:
                cute.arch.barrier(barrier_id=2, number_of_threads=64)
            y[t] = s[t]

    launch(kernel, numbers(128), numbers(128), block=128)


@pair("barrier-twice", "cute.arch.barrier_arrive(barrier_id=1, number_of_threads=96)")
def a_producer_that_arrives_again_before_it_is_answered(bug: bool) -> None:
    @cute.kernel
    def kernel(y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        for _ in cutlass.range(2):
            if t < 32:
                cute.arch.barrier_arrive(barrier_id=1, number_of_threads=96)
                if cutlass.const_expr(not bug):
                    cute.arch.barrier(barrier_id=2, number_of_threads=96)
            else:
                if cutlass.const_expr(bug):
                    if t >= 64:
                        cute.arch.barrier(barrier_id=1, number_of_threads=96)
                else:
                    cute.arch.barrier(barrier_id=1, number_of_threads=96)
                    cute.arch.barrier(barrier_id=2, number_of_threads=96)
        y[t] = 1.0

    launch(kernel, numbers(96), block=96)


@pair("shfl.sync.bfly", "total += cute.arch.shuffle_sync_bfly(total, 1)")
def a_shuffle_in_a_branch_that_divides_the_warp(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        total = x[t]
        if t < (20 if cutlass.const_expr(bug) else 32):
            total += cute.arch.shuffle_sync_bfly(total, 1)
        y[t] = total

    launch(kernel, numbers(32), numbers(32), block=32)


@pair("vote.sync.any", "some = cute.arch.vote_any_sync(x[t] > 5.0)")
def a_vote_in_a_loop_that_lanes_leave_early(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        count = cutlass.Int32(0)
        for _ in cutlass.range(t % 4 if cutlass.const_expr(bug) else 4):
            some = cute.arch.vote_any_sync(x[t] > 5.0)
            if some:
                count += 1
        y[t] = count.to(cutlass.Float32)

    launch(kernel, numbers(32), numbers(32), block=32)


@pair("warp-divergent", "cute.arch.sync_warp()")
def a_sync_warp_that_half_the_lanes_reach(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = shared(32)
        s[t] = x[t]
        if t < (16 if cutlass.const_expr(bug) else 32):
            cute.arch.sync_warp()
            y[t] = s[t ^ 1]
        cute.arch.sync_threads()

    launch(kernel, numbers(32), numbers(32), block=32)


@pair("warp-divergent", "cute.arch.sync_warp(0x00FF)")
def a_sync_warp_by_lanes_that_its_mask_does_not_name(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        if t < (16 if cutlass.const_expr(bug) else 8):
            cute.arch.sync_warp(0x00FF)
        y[t] = x[t]

    launch(kernel, numbers(32), numbers(32), block=32)


@pair("elect.sync", "with cute.arch.elect_one():")
def an_election_in_a_divided_warp(bug: bool) -> None:
    @cute.kernel
    def kernel(y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        if t < (7 if cutlass.const_expr(bug) else 32):
            with cute.arch.elect_one():
                y[0] = 1.0

    launch(kernel, numbers(1), block=32)


@pair("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "cute.gemm(mma, acc, a, b, acc)")
def a_matrix_product_of_half_a_warp(bug: bool) -> None:
    @cute.kernel
    def kernel(y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        mma = cute.make_tiled_mma(warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16)))
        a = cute.make_rmem_tensor(cute.make_layout(((2, 2, 2), 1, 1)), cutlass.Float16)
        b = cute.make_rmem_tensor(cute.make_layout(((2, 2), 1, 1)), cutlass.Float16)
        acc = cute.make_rmem_tensor(cute.make_layout(((2, 2), 1, 1)), cutlass.Float32)
        for part in (acc, a, b):
            part.fill(1.0)
        if t < (16 if cutlass.const_expr(bug) else 32):
            cute.gemm(mma, acc, a, b, acc)
        y[t] = acc[0]

    launch(kernel, numbers(32), block=32)


@pair("deadlock in kernel 'kernel'", "cute.arch.mbarrier_wait(first, 0)", "cute.arch.mbarrier_wait(second, 0)")
def two_warps_that_wait_for_each_other(bug: bool) -> None:
    @cute.kernel
    def kernel(y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        first = cute.arch.alloc_smem(cutlass.Int64, 2)
        second = first + 1
        if t == 0:
            cute.arch.mbarrier_init(first, 32)
            cute.arch.mbarrier_init(second, 32)
            cute.arch.mbarrier_init_fence()
        cute.arch.sync_threads()
        if t < 32:
            if cutlass.const_expr(not bug):
                cute.arch.mbarrier_arrive(second)
            cute.arch.mbarrier_wait(first, 0)
            if cutlass.const_expr(bug):
                cute.arch.mbarrier_arrive(second)
        else:
            cute.arch.mbarrier_wait(second, 0)
            cute.arch.mbarrier_arrive(first)
        y[t] = 1.0

    launch(kernel, numbers(64))


@pair("kernel 'kernel' hangs", "while cute.arch.load(flag.iterator) == 0:")
def a_flag_that_is_never_raised(bug: bool) -> None:
    @cute.kernel
    def kernel(flag: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        if t == 32:
            cute.arch.store(flag.iterator, cutlass.Int32(0 if cutlass.const_expr(bug) else 1))
        if t == 0:
            while cute.arch.load(flag.iterator) == 0:
                pass
        y[t] = 1.0

    launch(kernel, np.zeros(1, I32), numbers(64))


@pair("kernel 'kernel' hangs", "while cute.arch.atomic_cas(lock.iterator, cmp=zero, val=zero + 1) != 0:")
def a_lock_that_is_not_given_back(bug: bool) -> None:
    @cute.kernel
    def kernel(lock: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        zero = cutlass.Int32(0)
        if t == 0:
            while cute.arch.atomic_cas(lock.iterator, cmp=zero, val=zero + 1) != 0:
                pass
            if cutlass.const_expr(not bug):
                cute.arch.atomic_exch(lock.iterator, cutlass.Int32(0))

    launch(kernel, np.zeros(1, I32), grid=2, block=32)


@pair("setmaxnreg.dec.40", "cute.arch.setmaxregister_decrease(40)")
def registers_given_back_by_one_warp_of_four(bug: bool) -> None:
    @cute.kernel
    def kernel(y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        if t < (32 if bug else 128):
            cute.arch.setmaxregister_decrease(40)
        y[t] = 1.0

    launch(kernel, np.zeros(256, np.float32), block=256)


@pair("barrier-shared | barrier 0 of one block is used with")
def a_named_barrier_with_the_number_of_sync_threads(bug: bool) -> None:
    """Two warps meet at barrier 0, which is that of sync_threads: the third may be counted among them."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = shared(64)
        if t < 64:
            s[t] = x[t]
            if cutlass.const_expr(bug):
                cute.arch.barrier(barrier_id=0, number_of_threads=64)
            else:
                cute.arch.barrier(barrier_id=1, number_of_threads=64)
            y[t] = s[63 - t]
        cute.arch.sync_threads()

    launch(kernel, numbers(64), numbers(64), block=96)


def epilogue(ordered: bool, turns: int = 3) -> None:
    """All four warps arrive, and the last of them waits as well (160 threads): it alone stores the tile."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        warp = cute.arch.make_warp_uniform(t // 32)
        s = shared(128)
        for k in cutlass.range(turns):
            s[t] = x[t] + k
            cute.arch.barrier_arrive(barrier_id=1, number_of_threads=160)
            if warp == 3:
                cute.arch.barrier(barrier_id=1, number_of_threads=160)
                for i in cutlass.range_constexpr(4):
                    y[t - 96 + 32 * i] = s[t - 96 + 32 * i]
            if cutlass.const_expr(ordered):
                cute.arch.barrier(barrier_id=2, number_of_threads=128)

    launch(kernel, numbers(128), numbers(128), block=128)


@pair("barrier-twice", "cute.arch.barrier_arrive(barrier_id=1, number_of_threads=160)")
def an_epilogue_whose_next_arrivals_may_be_counted_in_the_last_phase(bug: bool) -> None:
    epilogue(ordered=not bug)


@pair("a barrier of 96 threads in a block of 64 can never complete", "cute.arch.barrier(barrier_id=1, number_of_thr")
def a_barrier_of_more_threads_than_the_block_where_no_warp_arrives_twice(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = shared(64)
        s[t] = x[t]
        if cutlass.const_expr(not bug):
            if t < 32:
                cute.arch.barrier_arrive(barrier_id=1, number_of_threads=96)
        cute.arch.barrier(barrier_id=1, number_of_threads=96)
        y[t] = s[63 - t]

    launch(kernel, numbers(64), numbers(64))
