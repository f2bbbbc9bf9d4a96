"""Races in the shared memory of other blocks of a cluster."""

from __future__ import annotations

import numpy as np

import tilewright as cutlass
from tests.check.pairs import launch, numbers, pair, shared
from tilewright import cute

I32 = np.int32
TWO = numbers(128).reshape(2, 64)


@pair("data-race", "s[t] = x[b, t] + 1", "y[b, t] = theirs[t]")
def a_buffer_changed_while_the_neighbour_reads(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        s = shared(64)
        s[t] = x[b, t]
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
        theirs = cute.make_tensor(cute.arch.mapa(s.iterator, cute.arch.block_idx_in_cluster() ^ 1), s.layout)
        y[b, t] = theirs[t]
        if cutlass.const_expr(not bug):
            cute.arch.cluster_arrive()
            cute.arch.cluster_wait()
        s[t] = x[b, t] + 1
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()

    launch(kernel, TWO, np.zeros_like(TWO), grid=2, cluster=2)


@pair("data-race", "s[t] = x[b, t]", "y[b, t] = theirs[t]")
def an_arrive_before_the_write_to_the_cluster(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        s = shared(64)
        if cutlass.const_expr(bug):
            cute.arch.cluster_arrive()
            s[t] = x[b, t]
        else:
            s[t] = x[b, t]
            cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
        theirs = cute.make_tensor(cute.arch.mapa(s.iterator, cute.arch.block_idx_in_cluster() ^ 1), s.layout)
        y[b, t] = theirs[t]
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()

    launch(kernel, TWO, np.zeros_like(TWO), grid=2, cluster=2)


@pair("data-race", "y[b, t] = theirs[t]", "s[t] = x[b, t]")
def a_read_before_the_cluster_wait(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        s = shared(64)
        s[t] = x[b, t]
        cute.arch.cluster_arrive()
        if cutlass.const_expr(not bug):
            cute.arch.cluster_wait()
        theirs = cute.make_tensor(cute.arch.mapa(s.iterator, cute.arch.block_idx_in_cluster() ^ 1), s.layout)
        y[b, t] = theirs[t]
        if cutlass.const_expr(bug):
            cute.arch.cluster_wait()
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()

    launch(kernel, TWO, np.zeros_like(TWO), grid=2, cluster=2)


@pair("data-race", "total[0] = total[0] + 1")
def two_blocks_add_to_one_counter_of_the_cluster(bug: bool) -> None:
    @cute.kernel
    def kernel(y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = shared(1, cutlass.Int32)
        if t == 0:
            s[0] = 0
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
        total = cute.make_tensor(cute.arch.mapa(s.iterator, 0), s.layout)
        if t == 0:
            if cutlass.const_expr(bug):
                total[0] = total[0] + 1
            else:
                cute.arch.atomic_add(total.iterator, cutlass.Int32(1), scope="cluster")
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
        if (t == 0) & (cute.arch.block_idx_in_cluster() == 0):
            y[0] = s[0]

    launch(kernel, np.zeros(1, I32), grid=2, block=32, cluster=2)


@pair("data-race", "cute.arch.atomic_add(total.iterator, cutlass.Int32(1), scope=scope)")
def an_atomic_of_the_blocks_scope_in_a_cluster(bug: bool) -> None:
    scope = "cta" if bug else "cluster"

    @cute.kernel
    def kernel(y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = shared(1, cutlass.Int32)
        if t == 0:
            s[0] = 0
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
        total = cute.make_tensor(cute.arch.mapa(s.iterator, 0), s.layout)
        if t == 0:
            cute.arch.atomic_add(total.iterator, cutlass.Int32(1), scope=scope)
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
        if (t == 0) & (cute.arch.block_idx_in_cluster() == 0):
            y[0] = s[0]

    launch(kernel, np.zeros(1, I32), grid=2, block=32, cluster=2)


@pair("data-race", "parts[rank] = x[b, 0]", "total += s[k]")
def a_cluster_reduction_read_without_the_clusters_barrier(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        s = shared(4)
        rank = cute.arch.block_idx_in_cluster()
        if t < 4:
            s[t] = 0.0
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
        parts = cute.make_tensor(cute.arch.mapa(s.iterator, 0), s.layout)
        if t == 0:
            parts[rank] = x[b, 0]
        if cutlass.const_expr(bug):
            cute.arch.sync_threads()
        else:
            cute.arch.cluster_arrive()
            cute.arch.cluster_wait()
        if (rank == 0) & (t == 0):
            total = cutlass.Float32(0)
            for k in cutlass.range_constexpr(4):
                total += s[k]
            y[0] = total
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()

    launch(kernel, numbers(256).reshape(4, 64) + 1, numbers(1), grid=4, cluster=4)


def told(scope_barrier: bool = True, early: bool = False, wait: bool = True) -> None:
    """Block 0 writes into block 1's memory and arrives at an mbarrier there."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = shared(64)
        full = cute.arch.alloc_smem(cutlass.Int64, 1)
        rank = cute.arch.block_idx_in_cluster()
        s[t] = 0.0
        if t == 0:
            cute.arch.mbarrier_init(full, 64)
            cute.arch.mbarrier_init_fence()
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
        theirs = cute.make_tensor(cute.arch.mapa(s.iterator, 1), s.layout)
        if rank == 0:
            if cutlass.const_expr(early):
                cute.arch.mbarrier_arrive(full, 1)
                theirs[t] = x[t]
            else:
                theirs[t] = x[t]
                cute.arch.mbarrier_arrive(full, 1)
        else:
            if cutlass.const_expr(wait):
                cute.arch.mbarrier_wait(full, 0)
            y[t] = s[63 - t]
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()

    launch(kernel, numbers(64) + 1, np.zeros(64, np.float32), grid=2, cluster=2)


@pair("data-race", "theirs[t] = x[t]", "y[t] = s[63 - t]")
def a_remote_arrive_before_the_write(bug: bool) -> None:
    told(early=bug)


@pair("data-race", "theirs[t] = x[t]", "y[t] = s[63 - t]")
def a_read_that_does_not_wait_for_the_remote_arrive(bug: bool) -> None:
    told(wait=not bug)


def sent(wait: bool = True, cluster: bool = True) -> None:
    """Each block stores numbers into the other's inbox by st.async."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        inbox = shared(64)
        full = cute.arch.alloc_smem(cutlass.Int64, 1)
        other = cute.arch.block_idx_in_cluster() ^ 1
        if t == 0:
            cute.arch.mbarrier_init(full, 1)
            cute.arch.mbarrier_init_fence()
            cute.arch.mbarrier_arrive_and_expect_tx(full, 256)
        if cutlass.const_expr(cluster):
            cute.arch.cluster_arrive()
            cute.arch.cluster_wait()
        else:
            cute.arch.sync_threads()
        cute.arch.store_shared_remote(x[b, t], inbox.iterator + t, full, other)
        if cutlass.const_expr(wait):
            cute.arch.mbarrier_wait(full, 0)
        y[b, t] = inbox[63 - t]
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
        if cutlass.const_expr(not wait):
            cute.arch.mbarrier_wait(full, 0)

    launch(kernel, TWO, np.zeros_like(TWO), grid=2, cluster=2)


@pair("data-race", "cute.arch.store_shared_remote(x[b, t], inbox.iterator + t, full, other)", "y[b, t] = inbox[63 - t]")
def an_inbox_read_before_its_bytes_have_come(bug: bool) -> None:
    sent(wait=not bug)


@pair(
    "mbarrier-init",
    "cute.arch.store_shared_remote(x[b, t], inbox.iterator + t, full, other)",
    "cute.arch.mbarrier_init(full, 1)",
)
def an_inbox_whose_mbarrier_the_sender_need_not_see(bug: bool) -> None:
    sent(cluster=not bug)


@pair("data-race", 'cute.arch.atomic_add(theirs + x[b, t], cutlass.Int32(1), scope="cluster")', "y[t] = counts[t]")
def counts_of_a_cluster_read_after_the_blocks_barrier(bug: bool) -> None:
    """Some atomics of the other blocks are not ordered before the read of the block that counts last."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        counts = shared(8, cutlass.Int32)
        if t < 8:
            counts[t] = 0
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
        theirs = cute.arch.mapa(counts.iterator, 0)
        cute.arch.atomic_add(theirs + x[b, t], cutlass.Int32(1), scope="cluster")
        if cutlass.const_expr(bug):
            cute.arch.sync_threads()
        else:
            cute.arch.cluster_arrive()
            cute.arch.cluster_wait()
        if (b == 0) & (t < 8):
            y[t] = counts[t]
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()

    launch(kernel, numbers(128, I32).reshape(2, 64) % 8, np.zeros(8, I32), grid=2, cluster=2)


@pair("unstarted-block", "theirs[t] = x[b, t]")
def a_neighbours_memory_before_the_neighbour_has_begun(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        s = shared(64)
        if cutlass.const_expr(not bug):  # relaxed: nothing is published, but all have begun
            cute.arch.cluster_arrive_relaxed()
            cute.arch.cluster_wait()
        theirs = cute.make_tensor(cute.arch.mapa(s.iterator, cute.arch.block_idx_in_cluster() ^ 1), s.layout)
        theirs[t] = x[b, t]
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
        y[b, t] = s[63 - t]

    launch(kernel, TWO, np.zeros_like(TWO), grid=2, cluster=2)


@pair("unstarted-block", "theirs[t] = x[b, t]")
def a_neighbour_that_has_said_by_a_flag_that_it_has_begun(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor, flags: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        s = shared(64)
        if cutlass.const_expr(not bug):
            if t == 0:
                cute.arch.store(flags.iterator + b, 1, sem="release", scope="gpu")
                while cute.arch.load(flags.iterator + (b ^ 1), sem="acquire", scope="gpu") == 0:
                    pass
            cute.arch.sync_threads()
        theirs = cute.make_tensor(cute.arch.mapa(s.iterator, cute.arch.block_idx_in_cluster() ^ 1), s.layout)
        theirs[t] = x[b, t]
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
        y[b, t] = s[63 - t]

    launch(kernel, TWO, np.zeros_like(TWO), numbers(2, I32) * 0, grid=2, cluster=2)


def last_access(acquire: bool = True) -> None:
    """Block 1 writes into block 0's memory and says so by a flag there; block 0 ends when it has acquired the flag."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        rank = cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster())
        s, flag = shared(32), shared(1, cutlass.Int32)
        if t == 0:
            flag[0] = 0
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
        if rank == 1:
            far = cute.make_tensor(cute.arch.mapa(s.iterator, 0), s.layout)
            far[t] = x[t]
            cute.arch.sync_threads()
            if t == 0:
                cute.arch.store(cute.arch.mapa(flag.iterator, 0), cutlass.Int32(1), sem="release", scope="cluster")
        else:
            if t == 0:
                sem = "acquire" if acquire else "relaxed"
                while cute.arch.load(flag.iterator, sem=sem, scope="cluster") < 1:
                    pass
            cute.arch.sync_threads()

    launch(kernel, numbers(32), numbers(32), grid=2, block=32, cluster=2)


@pair("exited-block", 'cute.arch.store(cute.arch.mapa(flag.iterator, 0), cutlass.Int32(1), sem="release"')
def a_block_that_ends_after_it_has_read_the_neighbours_flag_without_acquire(bug: bool) -> None:
    last_access(acquire=not bug)
