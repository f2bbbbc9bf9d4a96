"""Arrays of ``numpy.empty`` and ``torch.empty`` that a kernel reads before they were written."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilewright as cutlass
from tests.check.pairs import launch, numbers, pair, shared
from tilewright import cute
from tilewright.cute.nvgpu import cpasync
from tilewright.cute.runtime import from_dlpack
from tilewright.sim import marking_empty_arrays

F32, I32 = np.float32, np.int32
RULE = "uninitialised"


@pair(RULE, "y[t] = y[t] + x[t]", "y = np.empty(64, F32)")
def an_accumulation_in_place(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        y[t] = y[t] + x[t]

    with marking_empty_arrays():
        y = np.empty(64, F32)
        if not bug:
            y[:] = 1
        launch(kernel, numbers(64), y)


@pair(RULE, "cute.arch.atomic_add(c.iterator + t % 32, part)", "c = np.empty_like(x[:32])")
def split_k_that_adds_into_an_output_that_is_not_zeroed(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, c: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        split, _, _ = cute.arch.block_idx()
        part = x[split * 64 + t] * 2.0
        cute.arch.atomic_add(c.iterator + t % 32, part)

    with marking_empty_arrays():
        x = numbers(256)
        c = np.empty_like(x[:32])
        if not bug:
            np.multiply(x[:32], 0, out=c)
        launch(kernel, x, c, grid=4)


@pair(RULE, "ticket = cute.arch.atomic_add(counter.iterator, 1)", "counter = np.empty(1, I32)")
def a_ticket_of_a_counter_that_is_not_set(bug: bool) -> None:
    @cute.kernel
    def kernel(counter: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        if t == 0:
            ticket = cute.arch.atomic_add(counter.iterator, 1)
            y[cute.arch.block_idx()[0]] = ticket

    with marking_empty_arrays():
        counter = np.empty(1, I32)
        if not bug:
            counter.fill(0)
        launch(kernel, counter, numbers(4, I32), grid=4)


@pair(RULE, 'if cute.arch.load(flag.iterator, sem="acquire", scope="gpu") == 1:', "flag = np.empty(2, I32)")
def a_flag_of_whatever_was_there(bug: bool) -> None:
    @cute.kernel
    def kernel(flag: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        if cute.arch.load(flag.iterator, sem="acquire", scope="gpu") == 1:
            y[t] = 1.0

    with marking_empty_arrays():
        flag = np.empty(2, I32)
        if not bug:
            flag[...] = 0, 1
        launch(kernel, flag, numbers(64))


@pair(RULE, "y[t] = x[index[t]]", "index = np.empty((8, 8), I32)")
def an_index_from_a_table_of_which_half_is_filled(bug: bool) -> None:
    @cute.kernel
    def kernel(index: cute.Tensor, x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        if t < 32:
            y[t] = x[index[t]]

    with marking_empty_arrays():
        index = np.empty((8, 8), I32)
        index.reshape(-1)[: 16 if bug else 32] = 3
        launch(kernel, index.reshape(-1), numbers(8), numbers(64))


@pair(RULE, "y[t] = alpha * x[t] + beta * y[t]", "y = np.empty(64, np.float16)")
def beta_is_zero_but_the_output_is_read(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor, alpha: cutlass.Float16, beta: cutlass.Float16):
        t, _, _ = cute.arch.thread_idx()
        if cutlass.const_expr(bug):
            y[t] = alpha * x[t] + beta * y[t]
        else:
            found = alpha * x[t]
            if beta != 0.0:
                found = found + beta * y[t]
            y[t] = found

    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor, alpha: cutlass.Float16, beta: cutlass.Float16):
        kernel(x, y, alpha, beta).launch(grid=(1, 1, 1), block=(64, 1, 1))

    with marking_empty_arrays():
        y = np.empty(64, np.float16)
        host(numbers(64, np.float16), y, 1.0, 0.0)


@pair(RULE, "y[t] = middle[t] + middle[t + 4]", "middle = np.empty(68, F32)")
def the_second_kernel_reads_beyond_what_the_first_wrote(bug: bool) -> None:
    @cute.kernel
    def first(x: cute.Tensor, middle: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        middle[t] = x[t]
        if t < (3 if cutlass.const_expr(bug) else 4):
            middle[t + 64] = x[t]

    @cute.kernel
    def second(middle: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        y[t] = middle[t] + middle[t + 4]

    with marking_empty_arrays():
        middle = np.empty(68, F32)
        launch(first, numbers(64), middle)
        launch(second, middle, numbers(64))


@pair(RULE, "y[t] = s[63 - t]", "x = np.empty(64, F32)")
def cp_async_of_a_tail_that_the_host_has_not_filled(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = shared(64)
        atom = cute.make_copy_atom(cpasync.CopyG2SOp(), cutlass.Float32, num_bits_per_copy=32)
        cute.copy(atom, cute.local_tile(x, (1,), (t,)), cute.local_tile(s, (1,), (t,)))
        cute.arch.cp_async_commit_group()
        cute.arch.cp_async_wait_group(0)
        cute.arch.sync_threads()
        y[t] = s[63 - t]

    with marking_empty_arrays():
        x = np.empty(64, F32)
        x[: 60 if bug else 64] = 1
        launch(kernel, from_dlpack(x), numbers(64))


class Boxes:
    """TMA loads a tile of x, the threads scale it, TMA stores it to y, or adds it there."""

    def __init__(self, adds: bool) -> None:
        self.store = cpasync.CopyReduceBulkTensorTileS2GOp() if adds else cpasync.CopyBulkTensorTileS2GOp()

    @cute.jit
    def __call__(self, x: cute.Tensor, y: cute.Tensor):
        layout = cute.make_layout((8, 32), stride=(32, 1))
        load = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), x, layout, (8, 32))
        self.kernel(*load, *cpasync.make_tiled_tma_atom(self.store, y, layout, (8, 32))).launch(
            grid=(1, 1, 1), block=(32, 1, 1)
        )

    @cute.kernel
    def kernel(self, load: cute.CopyAtom, x: cute.Tensor, store: cute.CopyAtom, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        smem = cutlass.utils.SmemAllocator()
        full = smem.allocate_array(cutlass.Int64, 1)
        tile = smem.allocate_tensor(cutlass.Float32, cute.make_layout((8, 32), stride=(32, 1)), 128)
        with cute.arch.elect_one():
            cute.arch.mbarrier_init(full, 1)
            cute.arch.mbarrier_init_fence()
            cute.arch.mbarrier_arrive_and_expect_tx(full, 8 * 32 * 4)
        cute.arch.sync_warp()
        whole, one = cute.group_modes(tile, 0, 2), cute.make_layout(1)
        sX, gX = cpasync.tma_partition(load, 0, one, whole, cute.group_modes(x, 0, 2))
        sY, gY = cpasync.tma_partition(store, 0, one, whole, cute.group_modes(y, 0, 2))
        cute.copy(load, gX, sX, tma_bar_ptr=full)
        cute.arch.mbarrier_wait(full, 0)
        for row in cutlass.range(8):
            tile[row, t] = tile[row, t] * 2.0
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_warp()
        cute.copy(store, sY, gY)
        cute.arch.cp_async_bulk_commit_group()
        cute.arch.cp_async_bulk_wait_group(0)


def boxes(x: Any, y: Any, adds: bool = False) -> None:
    Boxes(adds)(*(from_dlpack(a, assumed_align=16) for a in (x, y)))


@pair(RULE, "cute.copy(store, sY, gY)", "x = np.empty((8, 32), F32)", "cute.copy(load, gX, sX, tma_bar_ptr=full)")
def tma_loads_rows_that_are_not_filled(bug: bool) -> None:
    with marking_empty_arrays():
        x = np.empty((8, 32), F32)
        x[: 6 if bug else 8] = 1
        boxes(x, np.empty((8, 32), F32))


@pair(RULE, "cute.copy(store, sY, gY)", "y = np.empty((8, 32), F32)")
def tma_adds_to_memory_that_is_not_zeroed(bug: bool) -> None:
    with marking_empty_arrays():
        y = np.empty((8, 32), F32)
        if not bug:
            y[:] = 0
        boxes(np.ones((8, 32), F32), y, adds=True)


@pair(RULE, "y[t] = y[t] + 1", "y = np.empty(64, np.int8)")
def bytes_of_which_a_part_is_filled(bug: bool) -> None:
    @cute.kernel
    def kernel(y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        y[t] = y[t] + 1

    with marking_empty_arrays():
        y = np.empty(64, np.int8)
        y[: 48 if bug else 64] = 5
        launch(kernel, y)


@pair(RULE, "y[t] = exchange(lock.iterator, 1)", "lock = np.empty(64, I32)")
def what_an_exchange_finds(bug: bool) -> None:
    exchange = cute.arch.atomic_exch

    @cute.kernel
    def kernel(lock: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        if t == 0:
            y[t] = exchange(lock.iterator, 1)

    with marking_empty_arrays():
        lock = np.empty(64, I32)
        if not bug:
            lock[0] = 0
        launch(kernel, lock, numbers(64, I32))
