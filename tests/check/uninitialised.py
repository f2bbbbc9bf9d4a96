"""Unwritten values: in shared memory and registers, on their way to a result, a branch or an address."""

from __future__ import annotations

import numpy as np

import tilewright as cutlass
from tests.check.pairs import launch, numbers, pair, shared
from tilewright import cute

I32 = np.int32
RULE = "uninitialised"


@pair(RULE, "y[t] = s[63 - t]")
def shared_memory_written_up_to_the_last_element(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = shared(64)
        if t < (63 if cutlass.const_expr(bug) else 64):
            s[t] = x[t]
        cute.arch.sync_threads()
        y[t] = s[63 - t]

    launch(kernel, numbers(64), numbers(64))


@pair(RULE, "y[t] = found[2 if cutlass.const_expr(bug) else 0]", "cute.copy(load, rows, found)")
def the_second_of_two_matrices_is_not_written(bug: bool) -> None:
    """Two matrices are loaded by one ldmatrix, and again by a second one; only the first is written."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = shared(256, cutlass.Float16)
        s[t] = x[t]
        s[t + 32] = x[t + 32]
        cute.arch.sync_threads()
        load = cute.make_copy_atom(cute.nvgpu.warp.LdMatrix8x8x16bOp(False, 2), cutlass.Float16)
        rows = cute.make_tensor(s.iterator + t % 16 * 8, cute.make_layout((8, 2), stride=(1, 0)))
        found = cute.make_rmem_tensor((4, 2), cutlass.Float16)
        cute.copy(load, rows, found)
        y[t] = found[2 if cutlass.const_expr(bug) else 0]

    launch(kernel, numbers(64, np.float16) + 1, numbers(32, np.float16), block=32)


@pair(RULE, "y[t] = acc[0]", "acc = cute.make_rmem_tensor(4, cutlass.Float32)")
def an_accumulator_that_is_not_cleared(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        acc = cute.make_rmem_tensor(4, cutlass.Float32)
        if cutlass.const_expr(not bug):
            acc.fill(0.0)
        for _ in cutlass.range(4):
            acc[0] = acc[0] + x[t]
        y[t] = acc[0]

    launch(kernel, numbers(64), numbers(64))


@pair(RULE, "if flag[0] != 0:")
def a_flag_that_is_not_cleared(bug: bool) -> None:
    @cute.kernel
    def kernel(y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        flag = shared(1, cutlass.Int32)
        if cutlass.const_expr(not bug):
            if t == 0:
                flag[0] = 1
        cute.arch.sync_threads()
        if flag[0] != 0:
            y[t] = 2.0

    launch(kernel, numbers(64))


@pair(RULE, "y[t] = copy[t] * 2.0", "copy[t] = s[t]")
def padding_that_reaches_the_result(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s, copy = shared(64), shared(64)
        if t < 60:
            s[t] = x[t]
        cute.arch.sync_threads()
        copy[t] = s[t]  # moves the padding, too
        cute.arch.sync_threads()
        if t < (64 if cutlass.const_expr(bug) else 60):
            y[t] = copy[t] * 2.0

    launch(kernel, numbers(64), numbers(64))


@pair(RULE, "y[t] = count[0]")
def a_counter_that_starts_anywhere(bug: bool) -> None:
    @cute.kernel
    def kernel(y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        count = shared(1, cutlass.Int32)
        if cutlass.const_expr(not bug):
            if t == 0:
                count[0] = 0
        cute.arch.sync_threads()
        cute.arch.atomic_add(count.iterator, cutlass.Int32(1))
        cute.arch.sync_threads()
        y[t] = count[0]

    launch(kernel, numbers(64, I32))


@pair(RULE, "y[t] = found")
def one_side_of_a_branch(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = shared(64)
        found = s[t]
        if t > 40:
            found = x[t]
        if t > (30 if cutlass.const_expr(bug) else 40):
            y[t] = found

    launch(kernel, numbers(64), numbers(64))


@pair(RULE, "y[t] = found", "mine = s[t]")
def a_shuffle_from_a_lane_without_a_value(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = shared(32)
        if t < 20:
            s[t] = x[t]
        cute.arch.sync_warp()
        mine = s[t]
        found = cute.arch.shuffle_sync(mine, 23 if cutlass.const_expr(bug) else 3)
        if t < 20:
            y[t] = found

    launch(kernel, numbers(32), numbers(32), block=32)


@pair(RULE, "y[t] = sums[0] + sums[3]", "sums = cute.make_rmem_tensor(4, cutlass.Float32)")
def sums_at_run_time_places_that_are_not_cleared(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        sums = cute.make_rmem_tensor(4, cutlass.Float32)
        if cutlass.const_expr(not bug):
            sums.fill(0.0)
        for k in cutlass.range(x.shape[0]):
            sums[k % 4] += x[k]
        y[t] = sums[0] + sums[3]

    launch(kernel, numbers(64), numbers(32), block=32)


@pair(RULE, "y[t] = total", "held = cute.make_rmem_tensor(1, cutlass.Float32)")
def a_number_of_the_turn_before_in_the_first_turn(bug: bool) -> None:
    """The line that writes the register stands below the one that reads it, and comes first if ``first`` is 1."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor, first: cutlass.Int32):
        t, _, _ = cute.arch.thread_idx()
        held = cute.make_rmem_tensor(1, cutlass.Float32)
        total = cutlass.Float32(0)
        for k in cutlass.range(4):
            if k >= first:
                total += held[0]
            held[0] = x[k]
        y[t] = total

    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor, first: cutlass.Int32):
        kernel(x, y, first).launch(grid=(1, 1, 1), block=(32, 1, 1))

    host(numbers(64), numbers(32), 0 if bug else 1)


@pair(RULE, "y[0] = total", "r = cute.make_rmem_tensor(4, cutlass.Float32)")
def a_sum_of_registers_whose_load_has_predicates(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        r = cute.make_rmem_tensor(4, cutlass.Float32)
        inside = cute.make_rmem_tensor(4, cutlass.Boolean)
        for i in cutlass.range_constexpr(4):
            inside[i] = t * 4 + i < cute.size(x)
        if cutlass.const_expr(not bug):
            r.fill(0.0)
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Float32)
        cute.copy(atom, cute.local_tile(x, (4,), (t,)), r, pred=inside)
        total = cute.arch.warp_reduction_sum(r[0] + r[1] + r[2] + r[3])
        if t == 0:
            y[0] = total

    launch(kernel, numbers(100), numbers(1), block=32)


@pair(RULE, "y[t] = x[where[0] & 63]")
def an_index_that_is_not_written(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        where = cute.make_rmem_tensor(1, cutlass.Int32)
        if t < (32 if cutlass.const_expr(bug) else 64):
            where[0] = 63 - t
        y[t] = x[where[0] & 63]

    launch(kernel, numbers(64), numbers(64))


@pair(RULE, "y[t] = total", "total += s[k]")
def a_loop_over_more_than_was_written(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = shared(40, cutlass.Int32)
        if t < 32:
            s[t] = x[t]
        cute.arch.sync_warp()
        total = cutlass.Int32(0)
        for k in cutlass.range(33 if cutlass.const_expr(bug) else 32):
            total += s[k]
        y[t] = total

    launch(kernel, numbers(32, I32), numbers(32, I32), block=32)


@pair(RULE, "cute.copy(store, frag, y[None, t])", "frag = cute.make_rmem_tensor(4, cutlass.Float32)")
def a_predicated_load_whose_registers_are_stored(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        store = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Float32, num_bits_per_copy=128)
        frag = cute.make_rmem_tensor(4, cutlass.Float32)
        if cutlass.const_expr(not bug):
            frag.fill(0.0)
        if t < 50:
            cute.copy(store, x[None, t], frag)
        cute.copy(store, frag, y[None, t])

    x, y = (cute.runtime.from_dlpack(np.asfortranarray(numbers(256).reshape(4, 64)), assumed_align=16) for _ in "xy")
    launch(kernel, x, y)


def product_of(partly: str) -> None:
    """A product of which the operands named, of "ab", have one element that is loaded."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        op = cute.nvgpu.warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16))
        mma = cute.make_tiled_mma(op)
        a = cute.make_rmem_tensor(cute.make_layout(((2, 2, 2), 1, 1)), cutlass.Float16)
        b = cute.make_rmem_tensor(cute.make_layout(((2, 2), 1, 1)), cutlass.Float16)
        acc = cute.make_rmem_tensor(cute.make_layout(((2, 2), 1, 1)), cutlass.Float32)
        acc.fill(0.0)
        if cutlass.const_expr("a" in partly):
            a[0] = x[t].to(cutlass.Float16)
        else:
            a.fill(1.0)
        if cutlass.const_expr("b" in partly):
            b[0] = x[t].to(cutlass.Float16)
        else:
            b.fill(1.0)
        cute.gemm(mma, acc, a, b, acc)
        y[t] = acc[0]

    launch(kernel, numbers(32), numbers(32), block=32)


@pair(RULE, "y[t] = acc[0]")
def a_product_with_an_operand_that_was_not_loaded(bug: bool) -> None:
    product_of("b" if bug else "")


@pair(RULE, "y[t] = acc[0]")
def a_product_with_its_first_operand_not_loaded(bug: bool) -> None:
    product_of("a" if bug else "")


@pair(RULE, "y[t] = acc[0]")
def a_product_of_two_operands_that_were_not_loaded(bug: bool) -> None:
    product_of("ab" if bug else "")


@pair(RULE, "y[t] = part[(t + 1) % 4]")
def an_element_of_a_fragment_from_unwritten_memory(bug: bool) -> None:
    """The fragment was written, before one of its elements came from shared memory."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = shared(32)
        part = cute.make_rmem_tensor(cute.make_layout(4), cutlass.Float32)
        part.fill(0.0)
        part[t % 4] = x[t]
        if cutlass.const_expr(not bug):
            s[t] = x[t]
        part[(t + 1) % 4] = s[t]
        y[t] = part[(t + 1) % 4]

    launch(kernel, numbers(32), numbers(32), block=32)


@pair(RULE, "y[t] = cute.arch.shuffle_sync(x[t], source, mask=0xFFFF)")
def a_shuffle_from_a_lane_that_takes_no_part(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        source = 20 if cutlass.const_expr(bug) else 4
        if t < 16:
            y[t] = cute.arch.shuffle_sync(x[t], source, mask=0xFFFF)

    launch(kernel, numbers(32), numbers(32), block=32)
