"""Races between the warps of a block, in the shapes that kernels have them: tiles, trees, rings, roles."""

from __future__ import annotations

import numpy as np

import tilewright as cutlass
from tests.check.pairs import launch, numbers, pair, shared
from tilewright import cute

I32 = np.int32


@pair("data-race", "s[row, column] = x[row, column]", "y[row, column] = s[column, row]")
def a_transpose_without_a_barrier(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        row, column, _ = cute.arch.thread_idx()
        s = cute.make_tensor(cute.arch.alloc_smem(cutlass.Float32, 16 * 17), cute.make_layout((16, 16), stride=(17, 1)))
        s[row, column] = x[row, column]
        if cutlass.const_expr(not bug):
            cute.arch.sync_threads()
        y[row, column] = s[column, row]

    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor) -> None:
        kernel(x, y).launch(grid=(1, 1, 1), block=(16, 16, 1))

    host(numbers(256).reshape(16, 16), numbers(256).reshape(16, 16))


@pair("data-race", "s[t + 1] = x[t + 1]", "y[t] = s[t] + s[t + 1] + s[t + 2]")
def a_stencil_reads_its_halo_too_early(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = shared(66)
        s[t + 1] = x[t + 1]
        if t == 0:
            s[0] = x[0]
            s[65] = x[65]
        if cutlass.const_expr(not bug):
            cute.arch.sync_threads()
        y[t] = s[t] + s[t + 1] + s[t + 2]

    launch(kernel, numbers(66), numbers(64))


@pair("data-race", "s[0] = x[0]", "y[t] = x[t] * s[0]")
def thread_0_reads_for_all_without_a_barrier(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = shared(1)
        if t == 0:
            s[0] = x[0]
        if cutlass.const_expr(not bug):
            cute.arch.sync_threads()
        y[t] = x[t] * s[0]

    launch(kernel, numbers(128), numbers(128), block=128)


@pair("data-race", "parts[t // 32] = mine", "total += parts[w]")
def part_sums_of_warps_read_too_early(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        parts = shared(4)
        mine = cute.arch.warp_reduction_sum(x[t])
        if t % 32 == 0:
            parts[t // 32] = mine
        if cutlass.const_expr(not bug):
            cute.arch.sync_threads()
        total = cutlass.Float32(0)
        for w in cutlass.range_constexpr(4):
            total += parts[w]
        y[t] = total

    launch(kernel, numbers(128), numbers(128), block=128)


@pair("data-race", "largest = s[0]", "s[t] = s[t] - largest")
def a_result_overwritten_while_others_read_it(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = shared(64)
        s[t] = x[t]
        cute.arch.sync_threads()
        largest = s[0]
        if cutlass.const_expr(not bug):
            cute.arch.sync_threads()
        s[t] = s[t] - largest
        y[t] = s[t]

    launch(kernel, numbers(64) + 1, numbers(64))


@pair("data-race", "s[k % 2, t] = x[k, t]", "y[k, t] = s[k % 2, 63 - t]")
def two_buffers_and_no_barrier(bug: bool) -> None:
    """With a barrier after each fill, two buffers need no second one."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = cute.make_tensor(cute.arch.alloc_smem(cutlass.Float32, 128), cute.make_layout((2, 64)))
        for k in cutlass.range(5):
            s[k % 2, t] = x[k, t]
            if cutlass.const_expr(not bug):
                cute.arch.sync_threads()
            y[k, t] = s[k % 2, 63 - t]

    launch(kernel, numbers(320).reshape(5, 64), numbers(320).reshape(5, 64))


@pair("data-race", "s[k % stages, t] = x[k, t]", "y[k - 1, t] = s[(k - 1) % stages, 63 - t]")
def a_ring_with_a_stage_too_few(bug: bool) -> None:
    """Fill a stage and read the one before: with one barrier a turn that takes two stages."""
    depth = 1 if bug else 2

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        stages = depth
        s = cute.make_tensor(cute.arch.alloc_smem(cutlass.Float32, 128), cute.make_layout((2, 64)))
        for k in cutlass.range(5):
            if k > 0:
                y[k - 1, t] = s[(k - 1) % stages, 63 - t]
            s[k % stages, t] = x[k, t]
            cute.arch.sync_threads()

    launch(kernel, numbers(320).reshape(5, 64), numbers(320).reshape(5, 64))


@pair("data-race", "s[t] = x[t]", "y[t] = s[127 - t]")
def two_named_barriers_where_one_is_meant(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = shared(128)
        s[t] = x[t]
        if cutlass.const_expr(bug):
            cute.arch.barrier(barrier_id=1 + t // 64, number_of_threads=64)
        else:
            cute.arch.barrier(barrier_id=1, number_of_threads=128)
        y[t] = s[127 - t]

    launch(kernel, numbers(128), numbers(128), block=128)


@pair("data-race", "s[t] = x[t]", "y[t - 64] = s[t - 64]")
def the_reader_arrives_and_the_writer_waits(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = shared(64)
        if t < 64:
            s[t] = x[t]
            if cutlass.const_expr(bug):
                cute.arch.barrier(barrier_id=1, number_of_threads=128)
            else:
                cute.arch.barrier_arrive(barrier_id=1, number_of_threads=128)
        else:
            if cutlass.const_expr(bug):
                cute.arch.barrier_arrive(barrier_id=1, number_of_threads=128)
            else:
                cute.arch.barrier(barrier_id=1, number_of_threads=128)
            y[t - 64] = s[t - 64]

    launch(kernel, numbers(64), numbers(64), block=128)


@pair("data-race", "s[t] = x[k, t]", "y[k, t - 64] = s[127 - t]")
def a_producer_that_does_not_wait_for_empty(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = shared(64)
        if t < 64:
            for k in cutlass.range(4):
                if cutlass.const_expr(not bug):
                    cute.arch.barrier(barrier_id=2, number_of_threads=128)
                s[t] = x[k, t]
                cute.arch.barrier_arrive(barrier_id=1, number_of_threads=128)
        else:
            for k in cutlass.range(4):
                if cutlass.const_expr(not bug):
                    cute.arch.barrier_arrive(barrier_id=2, number_of_threads=128)
                cute.arch.barrier(barrier_id=1, number_of_threads=128)
                y[k, t - 64] = s[127 - t]

    launch(kernel, numbers(256).reshape(4, 64), numbers(256).reshape(4, 64), block=128)


@pair("data-race", "y[0] = s[64]", "s[t] = y[t]")
def memory_used_again_for_something_else(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = shared(128)
        s[t] = x[t]
        cute.arch.sync_threads()
        if t == 0:
            y[0] = s[64]
        if cutlass.const_expr(not bug):
            cute.arch.sync_threads()
        if t > 31:
            s[t] = y[t]

    launch(kernel, numbers(128), numbers(128), block=128)


@pair("data-race", "count[0] = 0", 'cute.arch.atomic_add(count.iterator, cutlass.Int32(1), scope="cta")')
def a_counter_that_is_reset_while_it_counts(bug: bool) -> None:
    @cute.kernel
    def kernel(y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        count = shared(1, cutlass.Int32)
        if t == 0:
            count[0] = 0
        if cutlass.const_expr(not bug):
            cute.arch.sync_threads()
        cute.arch.atomic_add(count.iterator, cutlass.Int32(1), scope="cta")
        cute.arch.sync_threads()
        if t == 0:
            y[0] = count[0]

    launch(kernel, numbers(1, I32))


@pair("data-race", "y[0] = count[0]", 'cute.arch.atomic_add(count.iterator, cutlass.Int32(1), scope="cta")')
def a_counter_read_while_others_still_count(bug: bool) -> None:
    @cute.kernel
    def kernel(y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        count = shared(1, cutlass.Int32)
        if t == 0:
            count[0] = 0
        cute.arch.sync_threads()
        cute.arch.atomic_add(count.iterator, cutlass.Int32(1), scope="cta")
        if cutlass.const_expr(not bug):
            cute.arch.sync_threads()
        if t == 0:
            y[0] = count[0]

    launch(kernel, numbers(1, I32))


@pair("data-race", "queue[slot] = t", "y[t] = queue[63 - t]")
def a_queue_read_before_all_have_pushed(bug: bool) -> None:
    @cute.kernel
    def kernel(y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        tail, queue = shared(1, cutlass.Int32), shared(64, cutlass.Int32)
        if t == 0:
            tail[0] = 0
        cute.arch.sync_threads()
        slot = cute.arch.atomic_add(tail.iterator, cutlass.Int32(1), scope="cta")
        queue[slot] = t
        if cutlass.const_expr(not bug):
            cute.arch.sync_threads()
        y[t] = queue[63 - t]

    launch(kernel, numbers(64, I32))


@pair("data-race", "s[t] = s[(t + 1) % 64]")
def a_rotation_in_place(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = shared(64)
        s[t] = x[t]
        cute.arch.sync_threads()
        if cutlass.const_expr(bug):
            s[t] = s[(t + 1) % 64]
        else:
            mine = s[(t + 1) % 64]
            cute.arch.sync_threads()
            s[t] = mine
        cute.arch.sync_threads()
        y[t] = s[t]

    launch(kernel, numbers(64), numbers(64))


@pair("data-race", "s[64 * (t // 64) + i] = x[t]", "y[t] = s[127 - t]")
def a_sort_that_waits_for_its_own_half_only(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = shared(128)
        i = 63 - t % 64
        s[64 * (t // 64) + i] = x[t]
        if cutlass.const_expr(bug):
            cute.arch.barrier(barrier_id=1 + t // 64, number_of_threads=64)
        else:
            cute.arch.sync_threads()
        y[t] = s[127 - t]

    launch(kernel, numbers(128), numbers(128), block=128)


@pair("data-race", "s[2 * t] = x[t]", "y[t] = s[t]")
def a_wide_write_and_a_narrow_read(bug: bool) -> None:
    """Accesses of different widths to the same bytes."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        p = cute.arch.alloc_smem(cutlass.Int32, 128, 16)
        s = cute.make_tensor(p, cute.make_layout(128))
        s[2 * t] = x[t]
        s[2 * t + 1] = x[t]
        if cutlass.const_expr(not bug):
            cute.arch.sync_threads()
        y[t] = s[t]

    launch(kernel, numbers(64, I32), numbers(64, I32))
