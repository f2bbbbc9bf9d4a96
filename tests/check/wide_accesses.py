"""Races of accesses that are wider than an element, of matrix copies, and of waits whose answer is not read."""

from __future__ import annotations

import numpy as np

import tilewright as cutlass
from tests.check.pairs import launch, numbers, pair, shared
from tilewright import cute
from tilewright.cute.runtime import from_dlpack


@pair("data-race", "cute.autovec_copy(x[None, t], s[None, t])", "y[t] = s[t % 4, 31 - t]")
def a_vector_written_and_an_element_read_by_another_lane(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = cute.make_tensor(cute.arch.alloc_smem(cutlass.Float32, 128, 16), cute.make_layout((4, 32)))
        cute.autovec_copy(x[None, t], s[None, t])
        if cutlass.const_expr(not bug):
            cute.arch.sync_warp()
        y[t] = s[t % 4, 31 - t]

    launch(kernel, from_dlpack(np.asfortranarray(numbers(128).reshape(4, 32)), assumed_align=16), numbers(32), block=32)


@pair("data-race", "s[t] = x[t]", "cute.autovec_copy(s4[None, t], y[None, t])")
def elements_written_and_a_vector_read_by_another_warp(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        p = cute.arch.alloc_smem(cutlass.Float32, 256, 16)
        s, s4 = cute.make_tensor(p, cute.make_layout(256)), cute.make_tensor(p, cute.make_layout((4, 64)))
        s[t] = x[t]
        if cutlass.const_expr(not bug):
            cute.arch.sync_threads()
        if t < 64:
            cute.autovec_copy(s4[None, t], y[None, t])

    y = from_dlpack(np.asfortranarray(numbers(256).reshape(4, 64)), assumed_align=16)
    launch(kernel, numbers(256), y, block=256)


@pair("data-race", "cute.copy(copy, r, y[None, t // 2])")
def threads_that_copy_to_one_vector(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        copy = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Float32, num_bits_per_copy=128)
        r = cute.make_fragment_like(x[None, t])
        if cutlass.const_expr(bug):
            cute.copy(copy, x[None, t], r)
            cute.copy(copy, r, y[None, t // 2])
        else:
            cute.copy(copy, x[None, t], r)
            cute.copy(copy, r, y[None, t])

    x, y = (from_dlpack(np.asfortranarray(numbers(256).reshape(4, 64)), assumed_align=16) for _ in range(2))
    launch(kernel, x, y)


@pair("data-race", "s[t] = x[t]", "y[t - 32] = s[t - 32]")
def an_answer_of_try_wait_that_is_not_read(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        full, s = cute.arch.alloc_smem(cutlass.Int64, 1), shared(32)
        if t == 0:
            cute.arch.mbarrier_init(full, 32)
            cute.arch.mbarrier_init_fence()
        cute.arch.sync_threads()
        if t < 32:
            s[t] = x[t]
            cute.arch.mbarrier_arrive(full)
        else:
            if cutlass.const_expr(bug):
                cute.arch.mbarrier_try_wait(full, 1)
            else:
                cute.arch.mbarrier_wait(full, 0)
            y[t - 32] = s[t - 32]

    launch(kernel, numbers(32), numbers(32))


@pair("data-race", "total[0] = 5.0", "cute.arch.atomic_add(total.iterator, x[t])")
def a_plain_store_among_atomics_of_a_block(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, total: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        if t == 40:
            total[0] = 5.0
        if cutlass.const_expr(not bug):
            cute.arch.sync_threads()
        cute.arch.atomic_add(total.iterator, x[t])

    launch(kernel, numbers(64), numbers(1))


@pair("data-race", "cute.copy(store, r, tiled)", "y[t] = s[7 - t, 7]")
def a_matrix_store_read_by_other_lanes(bug: bool) -> None:
    @cute.kernel
    def kernel(y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = cute.make_tensor(cute.arch.alloc_smem(cutlass.Float16, 64, 16), cute.make_layout((8, 8), stride=(8, 1)))
        store = cute.make_copy_atom(cute.nvgpu.warp.StMatrix8x8x16bOp(False, 1), cutlass.Float16)
        r = cute.make_rmem_tensor(cute.make_layout((2, 1)), cutlass.Float16)
        r.fill(cutlass.Float16(1.0))
        tiled = cute.make_tensor(s.iterator + (t % 8) * 8, cute.make_layout((8, 1)))
        cute.copy(store, r, tiled)
        if cutlass.const_expr(not bug):
            cute.arch.sync_warp()
        if t < 8:
            y[t] = s[7 - t, 7]

    launch(kernel, np.zeros(8, np.float16), block=32)
