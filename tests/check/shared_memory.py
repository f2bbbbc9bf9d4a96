"""Races in shared memory: between warps, between lanes, with cp.async."""

from __future__ import annotations

import numpy as np

import tilewright as cutlass
from tests.check.pairs import launch, numbers, pair, shared
from tilewright import cute


@pair("data-race", "s[t] = x[t]", "y[t] = s[63 - t]")
def reversed_without_a_barrier(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = shared(64)
        s[t] = x[t]
        if cutlass.const_expr(not bug):
            cute.arch.sync_threads()
        y[t] = s[63 - t]

    launch(kernel, numbers(64), numbers(64))


@pair("data-race", "s[8 * t + 4] = x[t]", "total = total + s[8 * u + 4 * k]")
def every_other_line_is_apart(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = shared(256)
        s[4 * t] = 0.0
        cute.arch.sync_threads()
        u = t - 32
        if t < 32:
            s[8 * t + 4] = x[t]
        if cutlass.const_expr(not bug):
            cute.arch.sync_threads()
        total = cute.Float32(0)
        if t >= 32:
            for k in range(2):  # at first a line that is not written since
                total = total + s[8 * u + 4 * k]
        y[t] = total

    launch(kernel, numbers(64), numbers(64))


@pair("data-race", "s[t] = x[t]", "y[t] = s[31 - t]")
def lanes_exchange_without_sync_warp(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = shared(32)
        s[t] = x[t]
        if cutlass.const_expr(not bug):
            cute.arch.sync_warp()
        y[t] = s[31 - t]

    launch(kernel, numbers(32), numbers(32), block=32)


@pair("data-race", "s[t] = s[t] + s[t + 1]")
def neighbours_within_one_statement(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = shared(33)
        s[t] = x[t]
        if t == 0:
            s[32] = 0.0
        cute.arch.sync_warp()
        if cutlass.const_expr(bug):
            s[t] = s[t] + s[t + 1]
        else:
            following = s[t + 1]
            cute.arch.sync_warp()
            s[t] = s[t] + following
        y[t] = s[t]

    launch(kernel, numbers(32), numbers(32), block=32)


@pair("data-race", "s[t] = x[k, t]", "total += s[(t + 32) % 64]")
def no_barrier_at_the_end_of_the_loop(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = shared(64)
        total = cutlass.Float32(0)
        for k in cutlass.range(4):
            s[t] = x[k, t]
            cute.arch.sync_threads()
            total += s[(t + 32) % 64]
            if cutlass.const_expr(not bug):
                cute.arch.sync_threads()
        y[t] = total

    launch(kernel, numbers(256).reshape(4, 64), numbers(64))


@pair("data-race", "s[t] += s[t + width]")
def a_tree_reduction_without_barriers(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = shared(128)
        s[t] = x[t]
        cute.arch.sync_threads()
        for step in cutlass.range_constexpr(7):
            width = 64 >> step
            if t < width:
                s[t] += s[t + width]
            if cutlass.const_expr(not bug or width > 32):
                cute.arch.sync_threads()
        if t == 0:
            y[0] = s[0]

    launch(kernel, numbers(128), numbers(1), block=128)


@pair("data-race", "s[0] = t", "s[0] = t")
def all_threads_store_to_one_place(bug: bool) -> None:
    @cute.kernel
    def kernel(y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = shared(1, cutlass.Int32)
        if cutlass.const_expr(bug):
            s[0] = t
        elif t == 5:
            s[0] = t
        cute.arch.sync_threads()
        y[t] = s[0]

    launch(kernel, numbers(64, np.int32))


@pair("data-race", "s[t // 2] = s[t // 2] + 1", "s[t // 2] = s[t // 2] + 1")
def two_threads_increment_one_counter(bug: bool) -> None:
    @cute.kernel
    def kernel(y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = shared(32, cutlass.Int32)
        if t < 32:
            s[t] = 0
        cute.arch.sync_threads()
        if cutlass.const_expr(bug):
            s[t // 2] = s[t // 2] + 1
        else:
            cute.arch.atomic_add(s.iterator + t // 2, cutlass.Int32(1))
        cute.arch.sync_threads()
        y[t] = s[t // 2]

    launch(kernel, numbers(64, np.int32))


@pair("data-race", "s[t] = x[t]", "y[t] = s[t ^ 32]")
def a_named_barrier_of_one_half(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = shared(64)
        s[t] = x[t]
        if cutlass.const_expr(bug):
            cute.arch.barrier(barrier_id=1 + t // 32, number_of_threads=32)
        else:
            cute.arch.barrier(barrier_id=1, number_of_threads=64)
        y[t] = s[t ^ 32]

    launch(kernel, numbers(64), numbers(64))


@pair("data-race", "s[t] = x[t]", "y[t - 32] = s[t - 32]")
def an_arrive_before_the_write_it_publishes(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = shared(32)
        if t < 32:
            if cutlass.const_expr(bug):
                cute.arch.barrier_arrive(barrier_id=1, number_of_threads=64)
                s[t] = x[t]
            else:
                s[t] = x[t]
                cute.arch.barrier_arrive(barrier_id=1, number_of_threads=64)
        else:
            cute.arch.barrier(barrier_id=1, number_of_threads=64)
            y[t - 32] = s[t - 32]

    launch(kernel, numbers(32), numbers(32))


@pair("data-race", "cute.copy(atom, x[None, t], s[None, t])", "y[t] = s[0, 127 - t]")
def cp_async_without_a_wait(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = cute.make_tensor(cute.arch.alloc_smem(cutlass.Float32, 512, alignment=16), cute.make_layout((4, 128)))
        atom = cute.make_copy_atom(cute.nvgpu.cpasync.CopyG2SOp(), cutlass.Float32, num_bits_per_copy=128)
        cute.copy(atom, x[None, t], s[None, t])
        cute.arch.cp_async_commit_group()
        if cutlass.const_expr(not bug):
            cute.arch.cp_async_wait_group(0)
        cute.arch.sync_threads()
        y[t] = s[0, 127 - t]

    x = cute.runtime.from_dlpack(np.asfortranarray(numbers(512).reshape(4, 128)), assumed_align=16)
    launch(kernel, x, numbers(128), block=128)


@pair("data-race", "cute.copy(atom, x[None, t], s[None, t])", "y[t] = s[0, 127 - t]")
def cp_async_waited_for_without_a_barrier(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = cute.make_tensor(cute.arch.alloc_smem(cutlass.Float32, 512, alignment=16), cute.make_layout((4, 128)))
        atom = cute.make_copy_atom(cute.nvgpu.cpasync.CopyG2SOp(), cutlass.Float32, num_bits_per_copy=128)
        cute.copy(atom, x[None, t], s[None, t])
        cute.arch.cp_async_commit_group()
        cute.arch.cp_async_wait_group(0)
        if cutlass.const_expr(not bug):
            cute.arch.sync_threads()
        y[t] = s[0, 127 - t]

    x = cute.runtime.from_dlpack(np.asfortranarray(numbers(512).reshape(4, 128)), assumed_align=16)
    launch(kernel, x, numbers(128), block=128)


@pair("data-race", "cute.copy(atom, x[None, t, k], s[None, t, k])", "y[t] = s[0, 127 - t, 1]")
def cp_async_that_leaves_one_group_too_many(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = cute.make_tensor(cute.arch.alloc_smem(cutlass.Float32, 1024, alignment=16), cute.make_layout((4, 128, 2)))
        atom = cute.make_copy_atom(cute.nvgpu.cpasync.CopyG2SOp(), cutlass.Float32, num_bits_per_copy=128)
        for k in cutlass.range_constexpr(2):
            cute.copy(atom, x[None, t, k], s[None, t, k])
            cute.arch.cp_async_commit_group()
        cute.arch.cp_async_wait_group(1 if cutlass.const_expr(bug) else 0)
        cute.arch.sync_threads()
        y[t] = s[0, 127 - t, 1]

    x = cute.runtime.from_dlpack(np.asfortranarray(numbers(1024).reshape(4, 128, 2)), assumed_align=16)
    launch(kernel, x, numbers(128), block=128)
