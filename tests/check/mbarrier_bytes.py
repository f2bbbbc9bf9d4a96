"""Data in the eight bytes of an mbarrier: by a vector that begins before it, and from another block."""

from __future__ import annotations

import numpy as np

import tilewright as cutlass
from tests.check.pairs import launch, numbers, pair
from tilewright import cute


@pair("mbarrier-memory", "cute.autovec_copy(row, words)", "cute.arch.mbarrier_init(full, 32)")
def a_vector_that_reaches_into_an_mbarrier(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        place = cute.arch.alloc_smem(cutlass.Float32, 2 if bug else 4, alignment=16)
        full = cute.arch.alloc_smem(cutlass.Int64, 1)
        words = cute.make_tensor(place, cute.make_layout(4))
        if t == 0:
            cute.arch.mbarrier_init(full, 32)
        cute.arch.sync_threads()
        row = cute.make_rmem_tensor(cute.make_layout(4), cutlass.Float32)
        row.fill(1.0)
        if t == 0:
            cute.autovec_copy(row, words)
        cute.arch.sync_warp()
        cute.arch.mbarrier_arrive(full)
        cute.arch.mbarrier_wait(full, 0)
        y[t] = words[t % 2]

    launch(kernel, numbers(32), np.zeros(32, np.float32), block=32)


@pair("mbarrier-memory", "theirs[t + (2 - bug)] = cutlass.Float32(t)", "cute.arch.mbarrier_init(full, 32)")
def data_in_the_mbarrier_of_another_block(bug: bool) -> None:
    @cute.kernel
    def kernel(y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        full = cute.arch.alloc_smem(cutlass.Int64, 1)
        words = cute.arch.alloc_smem(cutlass.Float32, 32)
        if t == 0:
            cute.arch.mbarrier_init(full, 32)
            cute.arch.mbarrier_init_fence()
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
        first = cute.recast_ptr(full, dtype=cutlass.Float32)
        theirs = cute.make_tensor(cute.arch.map_dsmem_ptr(first, 1 - b), cute.make_layout(66))
        theirs[t + (2 - bug)] = cutlass.Float32(t)
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
        cute.arch.mbarrier_arrive(full)
        cute.arch.mbarrier_wait(full, 0)
        y[b * 32 + t] = cute.make_tensor(words, cute.make_layout(32))[t] if cutlass.const_expr(not bug) else 0.0

    launch(kernel, np.zeros(64, np.float32), grid=2, block=32, cluster=2)


@pair("mbarrier-memory", "words[t + bug] = x[t]", "cute.arch.mbarrier_init(full, 32)")
def the_last_of_many_numbers_in_an_mbarrier(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        words = cute.make_tensor(cute.arch.alloc_smem(cutlass.Float32, 32, alignment=128), cute.make_layout(33))
        full = cute.arch.alloc_smem(cutlass.Int64, 1)
        if t == 0:
            cute.arch.mbarrier_init(full, 32)
        cute.arch.sync_threads()
        words[t + bug] = x[t]
        cute.arch.mbarrier_arrive(full)
        cute.arch.mbarrier_wait(full, 0)
        y[t] = words[31 - t] if cutlass.const_expr(not bug) else x[t]

    launch(kernel, numbers(32), np.zeros(32, np.float32), block=32)
