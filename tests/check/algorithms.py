"""Textbook algorithms within a block: scans, sorts, reductions, histograms, tiles with ragged edges."""

from __future__ import annotations

import numpy as np

import tilewright as cutlass
from tests.check.pairs import launch, numbers, pair, shared
from tilewright import cute

I32 = np.int32


@pair("data-race", "s[t] = s[t] + left")
def a_scan_with_one_barrier_a_round(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = shared(64)
        s[t] = x[t]
        cute.arch.sync_threads()
        step = cutlass.Int32(1)
        while step < 64:
            left = cutlass.Float32(0)
            if t >= step:
                left = s[t - step]
            if cutlass.const_expr(not bug):
                cute.arch.sync_threads()
            s[t] = s[t] + left
            cute.arch.sync_threads()
            step = step * 2
        y[t] = s[t]

    launch(kernel, numbers(64), numbers(64))


@pair("data-race", "s[other] = mine")
def a_bitonic_sort_without_a_barrier_between_its_steps(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = shared(64, cutlass.Int32)
        s[t] = x[t]
        cute.arch.sync_threads()
        for size in cutlass.range_constexpr(1, 7):
            for j in cutlass.range_constexpr(size):
                step = 1 << (size - 1 - j)
                other = t ^ step
                if other > t:
                    mine, theirs = s[t], s[other]
                    up = (t & (1 << size)) == 0
                    if (mine > theirs) == up:
                        s[t] = theirs
                        s[other] = mine
                if cutlass.const_expr(not bug or step < 32):
                    cute.arch.sync_threads()
        y[t] = s[t]

    y = np.zeros(64, I32)
    launch(kernel, np.random.default_rng(0).permutation(64).astype(I32), y)
    assert bug or (y == np.arange(64)).all()


@pair("data-race", "bins[t % 16] = 0", "cute.arch.atomic_add(bins.iterator + x[t], cutlass.Int32(1))")
def bins_cleared_while_others_count(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        bins = shared(16, cutlass.Int32)
        if t < 16:
            bins[t % 16] = 0
        if cutlass.const_expr(not bug):
            cute.arch.sync_threads()
        cute.arch.atomic_add(bins.iterator + x[t], cutlass.Int32(1))
        cute.arch.sync_threads()
        if t < 16:
            y[t] = bins[t]

    launch(kernel, numbers(64, I32) % 16, np.zeros(16, I32))


@pair("data-race", "cute.arch.atomic_add(bins.iterator + x[t], cutlass.Int32(1))", "y[t] = bins[t]")
def bins_read_while_others_count(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        bins = shared(16, cutlass.Int32)
        if t < 16:
            bins[t] = 0
        cute.arch.sync_threads()
        cute.arch.atomic_add(bins.iterator + x[t], cutlass.Int32(1))
        if cutlass.const_expr(not bug):
            cute.arch.sync_threads()
        if t < 16:
            y[t] = bins[t]

    launch(kernel, numbers(64, I32) % 16, np.zeros(16, I32))


@pair("data-race", "part[warp] = total", "sums = sums + part[w]")
def a_second_reduction_in_the_buffer_of_the_first(bug: bool) -> None:
    """The part sums of the second row overwrite those that a slower warp still adds up."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        part = shared(4)
        warp = t // 32
        for row in cutlass.range_constexpr(2):
            total = cute.arch.warp_reduction_sum(x[row, t])
            if t % 32 == 0:
                part[warp] = total
            cute.arch.sync_threads()
            sums = cutlass.Float32(0)
            for w in cutlass.range_constexpr(4):
                sums = sums + part[w]
            y[row, t] = x[row, t] / sums
            if cutlass.const_expr(not bug):
                cute.arch.sync_threads()

    launch(kernel, np.ones((2, 128), np.float32), np.zeros((2, 128), np.float32), block=128)


@pair("data-race", "row[k] = x[k]", "y[t] = row[t]")
def a_named_barrier_that_leaves_the_readers_out(bug: bool) -> None:
    """Warps 0 and 1 write and meet; warps 2 and 3 read, too."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        row = shared(128)
        if t < 64:
            for k in cutlass.range(t, 128, 64):
                row[k] = x[k]
            if cutlass.const_expr(bug):
                cute.arch.barrier(barrier_id=1, number_of_threads=64)
        if cutlass.const_expr(not bug):
            cute.arch.barrier(barrier_id=1, number_of_threads=128)
        y[t] = row[t]

    launch(kernel, numbers(128), numbers(128), block=128)


@pair("a block barrier inside a branch that only 18 of the warp's threads take", "cute.arch.sync_threads()")
def threads_past_the_end_do_not_come_to_the_barrier(bug: bool) -> None:
    """The usual early exit: `if i < n` around all of the kernel."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor, n: cutlass.Int32):
        t, _, _ = cute.arch.thread_idx()
        s = shared(64)
        if cutlass.const_expr(bug):
            if t < n:
                s[t] = x[t]
                cute.arch.sync_threads()
                y[t] = s[n - 1 - t]
        else:
            if t < n:
                s[t] = x[t]
            cute.arch.sync_threads()
            if t < n:
                y[t] = s[n - 1 - t]

    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor, n: cutlass.Int32):
        kernel(x, y, n).launch(grid=(1, 1, 1), block=(64, 1, 1))

    host(numbers(50), numbers(50), 50)


@pair("deadlock | barrier-", "cute.arch.sync_threads()")
def warps_meet_as_often_as_they_have_rows(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = shared(64)
        rows = t // 32 + 1 if cutlass.const_expr(bug) else 2
        for k in cutlass.range(rows):
            s[t] = x[k, t]
            cute.arch.sync_threads()
            y[k, 63 - t] = s[t]
            cute.arch.sync_threads()

    launch(kernel, numbers(128).reshape(2, 64), np.zeros((2, 64), np.float32))


@pair("uninitialised", "total = total + s[k]", "y[0] = total")
def a_sum_of_more_than_was_written(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = shared(64)
        if t < 48:
            s[t] = x[t]
        elif cutlass.const_expr(not bug):
            s[t] = 0.0
        cute.arch.sync_threads()
        if t == 0:
            total = cutlass.Float32(0)
            for k in cutlass.range(64):
                total = total + s[k]
            y[0] = total

    launch(kernel, numbers(64), numbers(1))


@pair("uninitialised", "acc = cute.make_rmem_tensor(cute.make_layout(1), cutlass.Float32)", "y[t] = acc[0]")
def accumulators_that_are_not_cleared(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        acc = cute.make_rmem_tensor(cute.make_layout(1), cutlass.Float32)
        if cutlass.const_expr(not bug):
            acc.fill(0.0)
        for k in cutlass.range(4):
            acc[0] = acc[0] + x[t, k]
        y[t] = acc[0]

    launch(kernel, numbers(256).reshape(64, 4), numbers(64))


@pair("uninitialised", "if s[t] > s[64 + t]:")
def a_branch_by_an_unwritten_value(bug: bool) -> None:
    """A stage of a ring that was skipped decides a comparison."""

    @cute.kernel
    def kernel(x: cute.Tensor, best: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = shared(128)
        s[t] = x[t]
        if cutlass.const_expr(not bug):
            s[64 + t] = 0.0
        cute.arch.sync_threads()
        if t == 63:
            if s[t] > s[64 + t]:
                best[0] = s[t]

    launch(kernel, numbers(64), np.zeros(1, np.float32))


@pair("bounds", "y[row, column] = x[row, column]")
def the_predicate_of_the_rows_for_the_columns(bug: bool) -> None:
    """A ragged tile: 40 rows of 24 columns, of which each thread takes one element of 64 by 32."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        row, column = b * 2 + t // 32, t % 32
        limit = 40 if cutlass.const_expr(bug) else 24
        if row < 40 and column < limit:
            y[row, column] = x[row, column]

    launch(kernel, numbers(960).reshape(40, 24), np.zeros((40, 24), np.float32), grid=32)


@pair("data-race", "s[(t * 3 + k) % 256] = x[t] + k")
def pieces_of_four_at_a_distance_of_three(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = shared(256)
        for k in cutlass.range_constexpr(4 if bug else 3):
            s[(t * 3 + k) % 256] = x[t] + k
        cute.arch.sync_threads()
        y[t] = s[t]

    launch(kernel, numbers(64), numbers(64))


@pair("data-race", "s[t] = x[t]", "mine = s[t + 1]")
def a_warp_reads_past_its_own_part(bug: bool) -> None:
    """The last lane's neighbour is in the next warp."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = shared(65)
        s[t] = x[t]
        if t == 0:
            s[64] = 0.0
        if cutlass.const_expr(bug):
            cute.arch.sync_warp()
        else:
            cute.arch.sync_threads()
        mine = s[t + 1]
        y[t] = mine

    launch(kernel, numbers(64), numbers(64))
