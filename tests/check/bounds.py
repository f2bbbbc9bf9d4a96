"""Coordinates outside their tensor, addresses outside their array, accesses that are not aligned."""

from __future__ import annotations

import numpy as np

import tilewright as cutlass
from tests.check.pairs import launch, numbers, pair, shared
from tilewright import cute

I32 = np.int32


@pair("bounds", "y[t] = s[t + 1]")
def one_past_the_end_into_the_next_tensor(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s, behind = shared(64), shared(64)
        s[t] = x[t]
        behind[t] = 0.0
        cute.arch.sync_threads()
        if t < (64 if cutlass.const_expr(bug) else 63):
            y[t] = s[t + 1]

    launch(kernel, numbers(64), numbers(64))


@pair("bounds | global load of", "y[t] = x[row, t]")
def a_column_that_wraps_into_the_next_row(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        row, _, _ = cute.arch.block_idx()
        if t < (32 if cutlass.const_expr(bug) else 20):
            y[t] = x[row, t]

    launch(kernel, numbers(60).reshape(3, 20), numbers(32), block=32)


@pair("bounds", "s[t - 1] = x[t]")
def one_before_the_start_into_the_tensor_before(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        before, s = shared(64), shared(64)
        before[t] = 0.0
        cute.arch.sync_threads()
        if t >= (0 if cutlass.const_expr(bug) else 1):
            s[t - 1] = x[t]
        y[t] = before[t]

    launch(kernel, numbers(64), numbers(64))


@pair("bounds", "tile[row, column] = x[row, column]")
def a_tile_indexed_with_row_and_column_exchanged(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        tile = cute.make_tensor(cute.arch.alloc_smem(cutlass.Float32, 128), cute.make_layout((4, 8), stride=(8, 1)))
        row, column = t // 8, t % 8
        if cutlass.const_expr(bug):
            row, column = t % 8, t // 8
        tile[row, column] = x[row, column]
        cute.arch.sync_threads()
        y[t] = tile[t // 8, t % 8]

    launch(kernel, numbers(64).reshape(8, 8), numbers(32), block=32)


@pair("global store of", "y[i] = x[i]")
def a_grid_that_is_larger_than_the_array(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        i = b * 64 + t
        if i < (128 if cutlass.const_expr(bug) else 100):
            y[i] = x[i]

    launch(kernel, numbers(128), numbers(100), grid=2)


@pair("shared store of", "where.store(x[t])")
def a_pointer_past_the_allocation(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = shared(64)
        where = s.iterator + t * (2 if cutlass.const_expr(bug) else 1)
        where.store(x[t])
        y[t] = x[t]

    launch(kernel, numbers(64), numbers(64))


@pair("misaligned global load of", "cute.copy(atom, part, frag)")
def a_vector_at_an_odd_place(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Float32, num_bits_per_copy=128)
        frag = cute.make_rmem_tensor(4, cutlass.Float32)
        offset = cute.assume(t * 4 + (1 if cutlass.const_expr(bug) else 0), divby=4)
        part = cute.make_tensor(x.iterator + offset, cute.make_layout(4))
        cute.copy(atom, part, frag)
        y[t] = frag[0]

    x = cute.runtime.from_dlpack(numbers(160), assumed_align=16)
    launch(kernel, x, numbers(32), block=32)


@pair("register 4 of a fragment of 4 registers", "total += frag[k]")
def a_fragment_indexed_past_its_end(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        frag = cute.make_rmem_tensor(4, cutlass.Float32)
        frag.fill(1.0)
        total = cutlass.Float32(0)
        for k in cutlass.range(5 if cutlass.const_expr(bug) else 4):
            total += frag[k]
        y[t] = total + x[t]

    launch(kernel, numbers(32), numbers(32), block=32)


@pair("bounds", "y[t] = view[t, 0]")
def one_array_passed_as_it_is_and_transposed(bug: bool) -> None:
    """The extents of a view are its own, not those of the array that owns its memory."""

    @cute.kernel
    def kernel(x: cute.Tensor, view: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        y[t] = x[0, t]
        if t < (64 if cutlass.const_expr(bug) else 40):
            y[t] = view[t, 0]

    x = numbers(256).reshape(4, 64)
    launch(kernel, x, x.T[:40], numbers(64))
