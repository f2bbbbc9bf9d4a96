"""Races between blocks, in the algorithms that have them: histograms, locks, queues, grid barriers, split K."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilewright as cutlass
from tests.check.pairs import launch, numbers, pair, shared
from tilewright import cute

I32 = np.int32


@pair("data-race", "bins[key[i]] = bins[key[i]] + 1")
def a_histogram_of_all_blocks(bug: bool) -> None:
    @cute.kernel
    def kernel(key: cute.Tensor, bins: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        i = b * 32 + t
        if t == 0:
            if cutlass.const_expr(bug):
                bins[key[i]] = bins[key[i]] + 1
            else:
                cute.arch.atomic_add(bins.iterator + key[i], cutlass.Int32(1))

    launch(kernel, np.zeros(128, I32), np.zeros(8, I32), grid=4, block=32)


@pair("data-race", "best[0] = x[b]")
def the_largest_by_compare_and_store(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, best: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        if t == 0:
            if cutlass.const_expr(bug):
                if x[b] > best[0]:
                    best[0] = x[b]
            else:
                cute.arch.atomic_max(best.iterator, x[b])

    launch(kernel, numbers(4, I32) + 1, np.zeros(1, I32), grid=4, block=32)


@pair("data-race", "total[0] = 0", "cute.arch.atomic_add(total.iterator, x[b])")
def block_0_clears_what_all_add_to(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, total: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        if t == 0:
            if cutlass.const_expr(bug):
                if b == 0:
                    total[0] = 0
            cute.arch.atomic_add(total.iterator, x[b])

    launch(kernel, numbers(4, I32), np.ones(1, I32), grid=4, block=32)


@pair("data-race", "part[b] = b + 1", "total += part[k]")
def block_0_adds_up_without_waiting(bug: bool) -> None:
    @cute.kernel
    def kernel(part: cute.Tensor, count: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        if t == 0:
            part[b] = b + 1
            cute.arch.atomic_add(count.iterator, cutlass.Int32(1), sem="release")
            if b == 0:
                if cutlass.const_expr(not bug):
                    while cute.arch.load(count.iterator, sem="acquire") != 4:
                        pass
                total = cutlass.Int32(0)
                for k in cutlass.range(4):
                    total += part[k]
                y[0] = total

    launch(kernel, np.zeros(4, I32), np.zeros(1, I32), np.zeros(1, I32), grid=4, block=32)


def grid_barrier(sem: str = "acq_rel", acquire: str = "acquire", before: bool = True, after: bool = True) -> None:
    """All blocks write, meet at a counter in global memory, and read what the next one wrote."""

    @cute.kernel
    def kernel(data: cute.Tensor, count: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        data[b * 64 + t] = b + t
        if cutlass.const_expr(before):
            cute.arch.sync_threads()
        if t == 0:
            cute.arch.atomic_add(count.iterator, cutlass.Int32(1), sem=sem)
            while cute.arch.load(count.iterator, sem=acquire) != 4:
                pass
        if cutlass.const_expr(after):
            cute.arch.sync_threads()
        y[b * 64 + t] = data[(b * 64 + t + 64) % 256]

    launch(kernel, np.zeros(256, I32), np.zeros(1, I32), np.zeros(256, I32), grid=4)


GRID = ("data[b * 64 + t] = b + t", "y[b * 64 + t] = data[(b * 64 + t + 64) % 256]")


@pair("data-race", *GRID)
def a_grid_barrier_of_relaxed_arrivals(bug: bool) -> None:
    grid_barrier(sem="relaxed" if bug else "release")


@pair("data-race", *GRID)
def a_grid_barrier_with_a_relaxed_wait(bug: bool) -> None:
    grid_barrier(acquire="relaxed" if bug else "acquire")


@pair("data-race", *GRID)
def a_grid_barrier_before_all_threads_have_written(bug: bool) -> None:
    grid_barrier(before=not bug)


@pair("data-race", *GRID)
def a_grid_barrier_that_one_thread_waits_at(bug: bool) -> None:
    grid_barrier(after=not bug)


def grid_rounds(few: int, rounds: int = 1, threads: int = 32) -> None:
    """The same with a count that a wait may take too small, ``rounds`` times, each round with memory of its own."""

    @cute.kernel
    def kernel(data: cute.Tensor, count: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        blocks, _, _ = cute.arch.grid_dim()
        for k in cutlass.range_constexpr(rounds):
            data[k, b, t] = b + t + k
            cute.arch.sync_threads()
            if t == 0:
                goal = blocks * (k + 1) - (few if cutlass.const_expr(k == rounds - 1) else 0)
                cute.arch.atomic_add(count.iterator, cutlass.Int32(1), sem="release")
                while cute.arch.load(count.iterator, sem="acquire") < goal:
                    pass
            cute.arch.sync_threads()
            y[k, b, t] = data[k, (b + 1) % blocks, t]

    shape = (rounds, 3, threads)
    launch(kernel, np.zeros(shape, I32), np.zeros(1, I32), np.zeros(shape, I32), grid=3, block=threads)


ROUNDS = ("data[k, b, t] = b + t + k", "y[k, b, t] = data[k, (b + 1) % blocks, t]")


@pair("data-race", *ROUNDS)
def a_grid_barrier_for_one_block_too_few(bug: bool) -> None:
    grid_rounds(few=1 if bug else 0)


@pair("data-race", *ROUNDS)
def a_second_grid_barrier_for_one_block_too_few(bug: bool) -> None:
    grid_rounds(few=1 if bug else 0, rounds=2, threads=64)


FIXUP = ("parts[b, t] = b + t", "total += parts[i, t]")


@pair("data-race", *FIXUP)
def a_sum_that_waits_for_one_block_too_few(bug: bool) -> None:
    """Block 0 adds up what the others have left; those end before it has seen the count."""
    few = 1 if bug else 0

    @cute.kernel
    def kernel(parts: cute.Tensor, count: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        blocks, _, _ = cute.arch.grid_dim()
        if b > 0:
            parts[b, t] = b + t
            cute.arch.sync_threads()
            if t == 0:
                cute.arch.atomic_add(count.iterator, cutlass.Int32(1), sem="release")
        else:
            if t == 0:
                while cute.arch.load(count.iterator, sem="acquire") < blocks - 1 - few:
                    pass
            cute.arch.sync_threads()
            total = cutlass.Int32(0)
            for i in cutlass.range(1, blocks, unroll=1):
                total += parts[i, t]
            y[t] = total

    launch(kernel, np.zeros((5, 64), I32), np.zeros(1, I32), np.zeros(64, I32), grid=5)


def chain(middle: str) -> None:
    """Block 0 writes and tells block 1, which tells block 2, which reads: causality through a third block."""

    @cute.kernel
    def kernel(data: cute.Tensor, flags: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        if t == 0:
            if b == 0:
                data[0] = 42
                cute.arch.store(flags.iterator, cutlass.Int32(1), sem="release")
            elif b == 1:
                while cute.arch.load(flags.iterator, sem=middle) == 0:
                    pass
                cute.arch.store(flags.iterator + 1, cutlass.Int32(1), sem="release")
            else:
                while cute.arch.load(flags.iterator + 1, sem="acquire") == 0:
                    pass
                y[0] = data[0]

    launch(kernel, np.zeros(1, I32), np.zeros(2, I32), np.zeros(1, I32), grid=3, block=32)


@pair("data-race", "data[0] = 42", "y[0] = data[0]")
def a_message_passed_on_without_acquire(bug: bool) -> None:
    chain("relaxed" if bug else "acquire")


@pair("data-race", "data[0] = 7", "y[0] = data[0]")
def the_flag_is_raised_before_the_data(bug: bool) -> None:
    @cute.kernel
    def kernel(data: cute.Tensor, flag: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        if t == 0:
            if b == 0:
                if cutlass.const_expr(bug):
                    cute.arch.store(flag.iterator, cutlass.Int32(1), sem="release")
                    data[0] = 7
                else:
                    data[0] = 7
                    cute.arch.store(flag.iterator, cutlass.Int32(1), sem="release")
            else:
                while cute.arch.load(flag.iterator, sem="acquire") == 0:
                    pass
                y[0] = data[0]

    launch(kernel, np.zeros(1, I32), np.zeros(1, I32), np.zeros(1, I32), grid=2, block=32)


@pair("data-race", "flag[0] = 1", 'while cute.arch.load(flag.iterator, sem="acquire") == 0:')
def a_flag_that_is_raised_by_a_plain_store(bug: bool) -> None:
    @cute.kernel
    def kernel(data: cute.Tensor, flag: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        if t == 0:
            if b == 0:
                data[0] = 7
                cute.arch.fence_acq_rel_gpu()
                if cutlass.const_expr(bug):
                    flag[0] = 1
                else:
                    cute.arch.store(flag.iterator, cutlass.Int32(1))
            else:
                while cute.arch.load(flag.iterator, sem="acquire") == 0:
                    pass
                y[0] = data[0]

    launch(kernel, np.zeros(1, I32), np.zeros(1, I32), np.zeros(1, I32), grid=2, block=32)


@pair("data-race", "data[0] = 7", "y[0] = data[0]")
def a_plain_read_polls_the_flag(bug: bool) -> None:
    @cute.kernel
    def kernel(data: cute.Tensor, flag: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        if t == 0:
            if b == 0:
                data[0] = 7
                cute.arch.store(flag.iterator, cutlass.Int32(1), sem="release")
            else:
                if cutlass.const_expr(bug):
                    while flag[0] == 0:
                        pass
                else:
                    while cute.arch.load(flag.iterator, sem="acquire") == 0:
                        pass
                y[0] = data[0]

    launch(kernel, np.zeros(1, I32), np.zeros(1, I32), np.zeros(1, I32), grid=2, block=32)


@pair("data-race", "data[0] = 7", "y[0] = data[0]")
def the_writers_fence_stands_after_the_flag(bug: bool) -> None:
    @cute.kernel
    def kernel(data: cute.Tensor, flag: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        if t == 0:
            if b == 0:
                data[0] = 7
                if cutlass.const_expr(not bug):
                    cute.arch.fence_acq_rel_gpu()
                cute.arch.store(flag.iterator, cutlass.Int32(1))
                if cutlass.const_expr(bug):
                    cute.arch.fence_acq_rel_gpu()
            else:
                while cute.arch.load(flag.iterator, sem="acquire") == 0:
                    pass
                y[0] = data[0]

    launch(kernel, np.zeros(1, I32), np.zeros(1, I32), np.zeros(1, I32), grid=2, block=32)


@pair("data-race", "data[0] = 7", "y[0] = data[0]")
def the_readers_fence_stands_before_the_poll(bug: bool) -> None:
    @cute.kernel
    def kernel(data: cute.Tensor, flag: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        if t == 0:
            if b == 0:
                data[0] = 7
                cute.arch.store(flag.iterator, cutlass.Int32(1), sem="release")
            else:
                if cutlass.const_expr(bug):
                    cute.arch.fence_acq_rel_gpu()
                while cute.arch.load(flag.iterator) == 0:
                    pass
                if cutlass.const_expr(not bug):
                    cute.arch.fence_acq_rel_gpu()
                y[0] = data[0]

    launch(kernel, np.zeros(1, I32), np.zeros(1, I32), np.zeros(1, I32), grid=2, block=32)


@pair("data-race", "data[0] = 7", "y[0] = data[0]")
def a_fence_of_the_blocks_scope(bug: bool) -> None:
    @cute.kernel
    def kernel(data: cute.Tensor, flag: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        if t == 0:
            if b == 0:
                data[0] = 7
                if cutlass.const_expr(bug):
                    cute.arch.fence_acq_rel_cta()
                else:
                    cute.arch.fence_acq_rel_sys()
                cute.arch.store(flag.iterator, cutlass.Int32(1))
            else:
                while cute.arch.load(flag.iterator, sem="acquire") == 0:
                    pass
                y[0] = data[0]

    launch(kernel, np.zeros(1, I32), np.zeros(1, I32), np.zeros(1, I32), grid=2, block=32)


def lock(take: str = "acquire", give: str = "release", inside: bool = True, whole: bool = True) -> None:
    """Each block adds a row to the sum under a lock that thread 0 takes for the block."""

    @cute.kernel
    def kernel(lock: cute.Tensor, total: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        if t == 0:
            while cute.arch.atomic_cas(lock.iterator, cmp=cutlass.Int32(0), val=cutlass.Int32(1), sem=take) != 0:
                pass
        if cutlass.const_expr(inside):
            cute.arch.sync_threads()
        total[t] = total[t] + 1
        if cutlass.const_expr(whole):
            cute.arch.sync_threads()
        if t == 0:
            cute.arch.atomic_exch(lock.iterator, cutlass.Int32(0), sem=give)

    launch(kernel, np.zeros(1, I32), np.zeros(64, I32), grid=3)


@pair("data-race", "total[t] = total[t] + 1")
def a_lock_of_the_block_taken_relaxed(bug: bool) -> None:
    lock(take="relaxed" if bug else "acquire")


@pair("data-race", "total[t] = total[t] + 1")
def a_lock_of_the_block_given_back_relaxed(bug: bool) -> None:
    lock(give="relaxed" if bug else "release")


@pair("data-race", "total[t] = total[t] + 1")
def a_lock_given_back_before_all_threads_are_done(bug: bool) -> None:
    lock(whole=not bug)


@pair("data-race", "total[t] = total[t] + 1")
def a_lock_that_the_other_threads_do_not_wait_for(bug: bool) -> None:
    lock(inside=not bug)


@pair("data-race", "item[slot] = b", "y[b] = item[0]")
def a_queue_whose_item_is_not_published(bug: bool) -> None:
    @cute.kernel
    def kernel(tail: cute.Tensor, ready: cute.Tensor, item: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        if t == 0:
            slot = cute.arch.atomic_add(tail.iterator, cutlass.Int32(1))
            item[slot] = b
            if cutlass.const_expr(bug):
                cute.arch.store(ready.iterator + slot, cutlass.Int32(1))
            else:
                cute.arch.store(ready.iterator + slot, cutlass.Int32(1), sem="release")
            while cute.arch.load(ready.iterator, sem="acquire") == 0:
                pass
            y[b] = item[0]

    launch(kernel, np.zeros(1, I32), np.zeros(4, I32), np.zeros(4, I32), np.zeros(4, I32), grid=4, block=32)


def split_k(fence: bool = True, barrier: bool = True, sem: str = "relaxed", reread: bool = True) -> None:
    """Parts of a sum go to a workspace; the block that draws the last ticket adds them up."""

    @cute.kernel
    def kernel(part: cute.Tensor, ticket: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        last = shared(1, cutlass.Int32)
        part[b, t] = b + t
        if cutlass.const_expr(fence):
            cute.arch.threadfence()
        if cutlass.const_expr(barrier):
            cute.arch.sync_threads()
        if t == 0:
            last[0] = cute.arch.atomic_add(ticket.iterator, cutlass.Int32(1), sem=sem)
        if cutlass.const_expr(reread):
            cute.arch.sync_threads()
        if last[0] == 3:
            if cutlass.const_expr(fence):
                cute.arch.threadfence()
            total = cutlass.Int32(0)
            for k in cutlass.range(4):
                total += part[k, t]
            y[t] = total

    launch(kernel, np.zeros((4, 64), I32), np.zeros(1, I32), np.zeros(64, I32), grid=4)


@pair("data-race", "part[b, t] = b + t", "total += part[k, t]")
def split_k_without_fences(bug: bool) -> None:
    split_k(fence=not bug)


@pair("data-race", "part[b, t] = b + t", "total += part[k, t]")
def split_k_without_the_blocks_barrier(bug: bool) -> None:
    split_k(barrier=not bug)


@pair("data-race", "part[b, t] = b + t", "total += part[k, t]")
def split_k_with_a_relaxed_ticket(bug: bool) -> None:
    split_k(fence=False, sem="relaxed" if bug else "acq_rel")


@pair("data-race", "if last[0] == 3:", "last[0] = cute.arch.atomic_add(ticket.iterator, cutlass.Int32(1), sem=sem)")
def split_k_whose_ticket_the_block_reads_too_early(bug: bool) -> None:
    split_k(reread=not bug)


@pair("data-race", "y[b * 48 + t] = x[b * 48 + t]")
def tiles_whose_ragged_edges_overlap(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        if cutlass.const_expr(bug):
            y[b * 48 + t] = x[b * 48 + t] + b
        elif t < 48:
            y[b * 48 + t] = x[b * 48 + t] + b

    launch(kernel, numbers(240), numbers(240), grid=4)


@pair("data-race", "y[i] = y[i - 1] + x[i]")
def a_scan_that_reads_its_neighbours_result(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        i = b + 1
        if t == 0:
            if cutlass.const_expr(bug):
                y[i] = y[i - 1] + x[i]
            else:
                y[i] = x[i - 1] + x[i]

    launch(kernel, numbers(9), numbers(9), grid=8, block=32)


@pair("data-race", "y[row, b] = x[row, b]", "y[b, row] = x[row, b] * 2")
def a_transpose_in_place(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        row, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        y[row, b] = x[row, b]
        if cutlass.const_expr(bug):
            y[b, row] = x[row, b] * 2

    launch(kernel, numbers(1024).reshape(32, 32) + 1, numbers(1024).reshape(32, 32), grid=32, block=32)


def done_flags(wait: Any) -> None:
    """Row b starts when row b - 1 has been done: flags between blocks, as in a wavefront."""

    @cute.kernel
    def kernel(y: cute.Tensor, done: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        if b > 0:
            if cutlass.const_expr(wait == "one"):
                if t == 0:
                    while cute.arch.load(done.iterator + b - 1, sem="acquire") == 0:
                        pass
            else:
                while cute.arch.load(done.iterator + b - 1, sem="acquire") == 0:
                    pass
            if cutlass.const_expr(wait == "barrier"):
                cute.arch.sync_threads()
            y[b, t] = y[b - 1, t] + 1
        cute.arch.sync_threads()
        if t == 0:
            cute.arch.store(done.iterator + b, cutlass.Int32(1), sem="release")

    launch(kernel, np.zeros((4, 64), I32), np.zeros(4, I32), grid=4)


@pair("data-race", "y[b, t] = y[b - 1, t] + 1")
def a_wavefront_that_one_thread_waits_for(bug: bool) -> None:
    done_flags("one" if bug else "all")


@pair("data-race", "cute.arch.atomic_add(total.iterator, x[b])", "y[0] = total[0]")
def a_sum_of_atomics_read_by_the_last_block_without_fences(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, total: cute.Tensor, ticket: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        if t == 0:
            cute.arch.atomic_add(total.iterator, x[b])
            if cutlass.const_expr(not bug):
                cute.arch.threadfence()
            if cute.arch.atomic_add(ticket.iterator, cutlass.Int32(1)) == 3:
                if cutlass.const_expr(not bug):
                    cute.arch.threadfence()
                y[0] = total[0]

    launch(kernel, numbers(4), np.zeros(1, np.float32), np.zeros(1, I32), numbers(1), grid=4, block=32)
