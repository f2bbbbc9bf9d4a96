"""Races in global memory: between blocks, with flags, locks and tickets."""

from __future__ import annotations

import numpy as np

import tilewright as cutlass
from tests.check.pairs import launch, numbers, pair, shared
from tilewright import cute, utils

I32 = np.int32


@pair("data-race", "y[0] = b")
def blocks_store_to_one_place(bug: bool) -> None:
    @cute.kernel
    def kernel(y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        if t == 0:
            if cutlass.const_expr(bug):
                y[0] = b
            else:
                cute.arch.atomic_exch(y.iterator, b)

    launch(kernel, numbers(1, I32), grid=4, block=32)


@pair("data-race", "y[0] += x[i]")
def blocks_add_without_an_atomic(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        i = 32 * b + t
        if t == 0:
            if cutlass.const_expr(bug):
                y[0] += x[i]
            else:
                cute.arch.atomic_add(y.iterator, x[i])

    launch(kernel, numbers(128, I32), numbers(1, I32), grid=4, block=32)


@pair("data-race", "y[i] = x[i]", "z[i] = y[(i + 32) % 128]")
def a_block_reads_its_neighbours_output(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        i = 32 * b + t
        y[i] = x[i]
        if cutlass.const_expr(bug):
            z[i] = y[(i + 32) % 128]
        else:
            z[i] = x[(i + 32) % 128]

    launch(kernel, *(numbers(128) for _ in range(3)), grid=4, block=32)


@pair("data-race", "x[i] = x[(i + 1) % 128]")
def a_stencil_in_place(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        i = 64 * b + t
        if cutlass.const_expr(bug):
            x[i] = x[(i + 1) % 128]
        else:
            y[i] = x[(i + 1) % 128]

    launch(kernel, numbers(128), numbers(128), grid=2)


@pair("data-race", "y[(b * 32 + t) // 2] = x[b * 32 + t]")
def tiles_that_overlap(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        if cutlass.const_expr(bug):
            y[(b * 32 + t) // 2] = x[b * 32 + t]
        else:
            y[b * 32 + t] = x[b * 32 + t]

    launch(kernel, numbers(128), numbers(128), grid=4, block=32)


def message(release: str, acquire: str, scope: str, fences: bool = False, again: bool = False) -> None:
    """Block 0 writes a message and raises a flag; block 1 waits for the flag (``again``: and acquires what it has seen)
    and reads the message."""

    @cute.kernel
    def kernel(data: cute.Tensor, flag: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        if b == 0:
            data[t] = 7 * t
            cute.arch.sync_threads()
            if cutlass.const_expr(fences):
                cute.arch.fence_acq_rel_gpu()
            if t == 0:
                cute.arch.store(flag.iterator, cutlass.Int32(1), sem=release, scope=scope)
        else:
            if t == 0:
                while cute.arch.load(flag.iterator, sem=acquire, scope=scope) == 0:
                    pass
                if cutlass.const_expr(again):
                    cute.arch.load(flag.iterator, sem="acquire", scope=scope)
                if cutlass.const_expr(fences):
                    cute.arch.fence_acq_rel_gpu()
            cute.arch.sync_threads()
            y[t] = data[t]

    launch(kernel, numbers(64, I32), np.zeros(1, I32), numbers(64, I32), grid=2)


@pair("data-race", "data[t] = 7 * t", "y[t] = data[t]")
def a_flag_that_is_raised_relaxed(bug: bool) -> None:
    message("relaxed" if bug else "release", "acquire", "gpu")


@pair("data-race", "data[t] = 7 * t", "y[t] = data[t]")
def a_flag_that_is_read_relaxed(bug: bool) -> None:
    message("release", "relaxed" if bug else "acquire", "gpu")


@pair("data-race", "data[t] = 7 * t", "y[t] = data[t]")
def a_flag_that_is_seen_relaxed_and_never_acquired(bug: bool) -> None:
    message("release", "relaxed", "gpu", again=not bug)


@pair("data-race", "data[t] = 7 * t", "y[t] = data[t]")
def a_flag_of_the_blocks_scope(bug: bool) -> None:
    message("release", "acquire", "cta" if bug else "gpu")


@pair("data-race", "data[t] = 7 * t", "y[t] = data[t]")
def a_relaxed_flag_without_fences(bug: bool) -> None:
    message("relaxed", "relaxed", "gpu", fences=not bug)


@pair("data-race", "data[t] = 7 * t", "y[t] = data[t]")
def a_flag_raised_before_the_blocks_barrier(bug: bool) -> None:
    @cute.kernel
    def kernel(data: cute.Tensor, flag: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        if b == 0:
            data[t] = 7 * t
            if cutlass.const_expr(not bug):
                cute.arch.sync_threads()
            if t == 0:
                cute.arch.store(flag.iterator, cutlass.Int32(1), sem="release", scope="gpu")
        else:
            if t == 0:
                while cute.arch.load(flag.iterator, sem="acquire", scope="gpu") == 0:
                    pass
            cute.arch.sync_threads()
            y[t] = data[t]

    launch(kernel, numbers(64, I32), np.zeros(1, I32), numbers(64, I32), grid=2)


@pair("data-race", "data[t] = 7 * t", "y[t] = data[t]")
def a_flag_that_one_thread_waits_for(bug: bool) -> None:
    @cute.kernel
    def kernel(data: cute.Tensor, flag: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        if b == 0:
            data[t] = 7 * t
            cute.arch.sync_threads()
            if t == 0:
                cute.arch.store(flag.iterator, cutlass.Int32(1), sem="release", scope="gpu")
        else:
            if t == 0:
                while cute.arch.load(flag.iterator, sem="acquire", scope="gpu") == 0:
                    pass
            if cutlass.const_expr(not bug):
                cute.arch.sync_threads()
            y[t] = data[t]

    launch(kernel, numbers(64, I32), np.zeros(1, I32), numbers(64, I32), grid=2)


def locked(take: str, give: str) -> None:
    @cute.kernel
    def kernel(lock: cute.Tensor, count: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        if t == 0:
            while cute.arch.atomic_cas(lock.iterator, cmp=cutlass.Int32(0), val=cutlass.Int32(1), sem=take) != 0:
                pass
            count[0] = count[0] + 1
            cute.arch.store(lock.iterator, cutlass.Int32(0), sem=give)

    launch(kernel, np.zeros(1, I32), np.zeros(1, I32), grid=4, block=32)


@pair("data-race", "count[0] = count[0] + 1")
def a_lock_that_is_taken_relaxed(bug: bool) -> None:
    locked("relaxed" if bug else "acquire", "release")


@pair("data-race", "count[0] = count[0] + 1")
def a_lock_that_is_given_back_relaxed(bug: bool) -> None:
    locked("acquire", "relaxed" if bug else "release")


def tickets(fence: bool, barrier: bool, acquire: bool = True) -> None:
    """Split K: each block writes its part; the one that draws the last ticket adds all parts."""

    @cute.kernel
    def kernel(x: cute.Tensor, parts: cute.Tensor, ticket: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        last = shared(1, cutlass.Int32)
        parts[b, t] = x[b, t]
        if cutlass.const_expr(fence):
            cute.arch.threadfence()
        if cutlass.const_expr(barrier):
            cute.arch.sync_threads()
        if t == 0:
            last[0] = cute.arch.atomic_add(ticket.iterator, cutlass.Int32(1))
        cute.arch.sync_threads()
        if last[0] == 3:
            if cutlass.const_expr(acquire):
                cute.arch.threadfence()
            total = cutlass.Float32(0)
            for k in cutlass.range(4):
                total += parts[k, t]
            y[t] = total

    x = numbers(256).reshape(4, 64)
    launch(kernel, x, np.zeros_like(x), np.zeros(1, I32), numbers(64), grid=4)


@pair("data-race", "parts[b, t] = x[b, t]", "total += parts[k, t]")
def a_ticket_without_a_fence(bug: bool) -> None:
    tickets(fence=not bug, barrier=True)


@pair("data-race", "parts[b, t] = x[b, t]", "total += parts[k, t]")
def a_ticket_without_the_blocks_barrier(bug: bool) -> None:
    tickets(fence=True, barrier=not bug)


@pair("data-race", "parts[b, t] = x[b, t]", "total += parts[k, t]")
def a_last_block_that_does_not_acquire(bug: bool) -> None:
    tickets(fence=True, barrier=True, acquire=not bug)


@pair("data-race", "cute.arch.atomic_add(count.iterator, cutlass.Int32(1), scope=scope)")
def an_atomic_of_too_narrow_a_scope(bug: bool) -> None:
    scope = "cta" if bug else "gpu"

    @cute.kernel
    def kernel(count: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        if t == 0:
            cute.arch.atomic_add(count.iterator, cutlass.Int32(1), scope=scope)

    launch(kernel, np.zeros(1, I32), grid=3, block=32)


@pair("data-race", "cute.arch.atomic_add(count.iterator, cutlass.Int32(1))", "y[b] = count[0]")
def a_plain_read_of_an_atomic_counter(bug: bool) -> None:
    @cute.kernel
    def kernel(count: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        if t == 0:
            cute.arch.atomic_add(count.iterator, cutlass.Int32(1))
            if cutlass.const_expr(bug):
                y[b] = count[0]
            else:
                y[b] = cute.arch.load(count.iterator)

    launch(kernel, np.zeros(1, I32), numbers(3, I32), grid=3, block=32)


@pair("data-race", "data[t] = t", "y[t] = data[63 - t]")
def global_memory_within_one_block(bug: bool) -> None:
    @cute.kernel
    def kernel(data: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        data[t] = t
        if cutlass.const_expr(not bug):
            cute.arch.sync_threads()
        y[t] = data[63 - t]

    launch(kernel, numbers(64, I32), numbers(64, I32))


@pair("data-race", "total[0] = 0.0  # cleared by block 0", "cute.arch.atomic_add(total.iterator, x[b * 64 + t])")
def a_sum_cleared_by_one_of_those_who_add(bug: bool) -> None:
    """Block 0's own sum hides what it cleared from a look at the last access only."""

    @cute.kernel
    def kernel(x: cute.Tensor, total: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        if cutlass.const_expr(bug):
            if b == 0:
                total[0] = 0.0  # cleared by block 0
                cute.arch.sync_threads()
        cute.arch.atomic_add(total.iterator, x[b * 64 + t])

    launch(kernel, numbers(256), np.zeros(1, np.float32), grid=4)


@pair("data-race", "tickets[0] = 0", "last[0] = cute.arch.atomic_add(tickets.iterator, 1)")
def tickets_cleared_by_a_block_that_need_not_be_the_last(bug: bool) -> None:
    """A plain store may follow the atomic that has seen all others: that of the last block, not of the first."""

    @cute.kernel
    def kernel(x: cute.Tensor, sums: cute.Tensor, y: cute.Tensor, tickets: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        last = shared(1, cutlass.Int32)
        if t == 0:
            sums[b] = x[b]
            cute.arch.threadfence()
            last[0] = cute.arch.atomic_add(tickets.iterator, 1)
        cute.arch.sync_threads()
        if last[0] == 7:
            cute.arch.threadfence()
            if t == 0:
                total = cutlass.Float32(0)
                for k in cutlass.range(8):
                    total += sums[k]
                y[0] = total
        if last[0] == (3 if bug else 7):
            if t == 0:
                tickets[0] = 0

    launch(kernel, numbers(8), np.zeros(8, np.float32), np.zeros(1, np.float32), np.zeros(1, np.int32), grid=8)


@pair("data-race", "flag[0] = 0  # lowered", "cute.arch.atomic_exch(flag.iterator, 1)")
def a_flag_lowered_before_it_has_been_seen(bug: bool) -> None:
    """Who has read the flag may store to it plainly, whatever the scope of what it acquired."""

    @cute.kernel
    def kernel(x: cute.Tensor, d: cute.Tensor, y: cute.Tensor, flag: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        if b == 1:
            d[t] = x[t]
            cute.arch.threadfence()
            cute.arch.sync_threads()
            if t == 0:
                cute.arch.atomic_exch(flag.iterator, 1)
        else:
            if cutlass.const_expr(bug):
                if t == 0:
                    flag[0] = 0  # lowered
            if t == 0:
                while cute.arch.load(flag.iterator, sem="relaxed", scope="gpu") != 1:
                    pass
                cute.arch.threadfence()
            cute.arch.sync_threads()
            y[t] = d[63 - t]
            if cutlass.const_expr(not bug):
                if t == 0:
                    flag[0] = 0

    launch(kernel, numbers(64), np.zeros(64, np.float32), np.zeros(64, np.float32), np.zeros(1, np.int32), grid=2)


@pair("data-race", "data[t] = t + 1", "y[t] = data[63 - t]")
def a_flag_lowered_in_a_narrower_scope_than_it_was_raised(bug: bool) -> None:
    """Who has seen the flag comes after it was raised: the store that lowers it does not race with the one before."""

    @cute.kernel
    def kernel(data: cute.Tensor, flag: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        if b == 0:
            data[t] = t + 1
            cute.arch.sync_threads()
            if t == 0:
                cute.arch.store(flag.iterator, 1, sem="release", scope="gpu")
        else:
            if t == 0:
                while cute.arch.load(flag.iterator, sem="acquire", scope="gpu") == 0:
                    pass
                cute.arch.store(flag.iterator, 0, sem="relaxed", scope="cta")
            if cutlass.const_expr(not bug):
                cute.arch.sync_threads()
            y[t] = data[63 - t]

    launch(kernel, numbers(64, I32), numbers(1, I32) * 0, numbers(64, I32), grid=2)


@pair("data-race", "data[t] = t + 1", "y[t] = data[t]")
def a_flag_that_one_lane_has_seen_and_its_block_learns_by_an_mbarrier(bug: bool) -> None:
    """What the lane has acquired goes on to those who wait for its arrival."""

    @cute.kernel
    def kernel(data: cute.Tensor, flag: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        ready = utils.SmemAllocator().allocate_array(cutlass.Int64, 1)
        if t == 0:
            cute.arch.mbarrier_init(ready, 1)
        cute.arch.sync_threads()
        if b == 0:
            data[t] = t + 1
            cute.arch.sync_threads()
            if t == 0:
                cute.arch.atomic_add(flag.iterator, cutlass.Int32(1), sem="release")
        else:
            if t == 1:
                while cute.arch.load(flag.iterator, sem="relaxed" if bug else "acquire") == 0:
                    pass
                cute.arch.mbarrier_arrive(ready)
            cute.arch.mbarrier_wait(ready, 0)
            y[t] = data[t]

    launch(kernel, np.zeros(64, I32), np.zeros(1, I32), np.zeros(64, I32), grid=2, block=64)
