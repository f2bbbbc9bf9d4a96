"""Tensor memory: who may touch which columns and lanes when, and what is asynchronous."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilewright as cutlass
from tests.check.pairs import launch, pair
from tilewright import cute, sim
from tilewright.cute.nvgpu import tcgen05
from tilewright.cute.runtime import from_dlpack

COLUMNS = 32


@cute.jit
def allocated(columns: cutlass.Constexpr[int], meet: cutlass.Constexpr[bool] = True) -> Any:
    """Columns that warp 0 allocates, as all warps see them, and the number of this warp."""
    holder = cute.arch.alloc_smem(cutlass.Int32, 1)
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    if warp == 0:
        cute.arch.alloc_tmem(columns, holder)
    if cutlass.const_expr(meet):
        cute.arch.sync_threads()
    return cute.arch.retrieve_tmem_ptr(cutlass.Float32, 16, holder), warp


@cute.jit
def freed(base: Any, warp: Any, columns: cutlass.Constexpr[int]):
    """Warp 0 frees the columns when all have come here."""
    cute.arch.sync_threads()
    if warp == 0:
        cute.arch.dealloc_tmem(base, columns)


def parts(base: Any, thread: Any) -> Any:
    """A tiled load of 128 lanes and 32 columns, this thread's part of them, and registers for it."""
    memory = cute.make_tensor(base, cute.make_layout((128, COLUMNS), stride=(65536, 1)))
    atom = cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x32), cutlass.Float32)
    load = tcgen05.make_tmem_copy(atom, memory)
    mine = load.get_slice(thread)
    part = mine.partition_S(memory)
    rows = cute.make_identity_tensor((128, COLUMNS))
    return load, part, cute.make_rmem_tensor(mine.partition_D(rows).shape, cutlass.Float32)


def sum_of_a_lane(base: Any, thread: Any) -> Any:
    """The sum of the 32 columns of this thread's lane, loaded and waited for."""
    load, part, taken = parts(base, thread)
    cute.copy(load, part, taken)
    cute.arch.fence_view_async_tmem_load()
    return taken.load().reduce(cute.ReductionOp.ADD, cutlass.Float32(0.0), 0)


def stored(base: Any, thread: Any, value: Any, fence: bool = True) -> None:
    """All of 128 lanes and 32 columns become ``value``."""
    memory = cute.make_tensor(base, cute.make_layout((128, COLUMNS), stride=(65536, 1)))
    atom = cute.make_copy_atom(tcgen05.St32x32bOp(tcgen05.Repetition.x32), cutlass.Float32)
    store = tcgen05.make_tmem_copy(atom, memory)
    mine = store.get_slice(thread)
    given = cute.make_rmem_tensor(mine.partition_S(cute.make_identity_tensor((128, COLUMNS))).shape, cutlass.Float32)
    given.fill(value)
    cute.copy(store, given, mine.partition_D(memory))
    if fence:
        cute.arch.fence_view_async_tmem_store()


def run(body: Any, bug: bool, block: int = 128) -> None:
    """A kernel whose threads store 1 to tensor memory and add up what ``body`` loads."""

    @cute.kernel
    def kernel(y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        body(y, t, bug)

    y = np.zeros(block, np.float32)
    launch(kernel, from_dlpack(y), block=block)
    if not bug:
        np.testing.assert_array_equal(y, 32)


def plain(
    at: int = 0,
    columns: int = 32,
    turned: int = 0,
    wait_store: bool = True,
    wait_load: bool = True,
    free: str = "after",
) -> Any:
    """A body that stores, loads and adds up, with one thing left out or wrong."""

    @cute.jit
    def body(y: cute.Tensor, t: Any, bug: Any):
        base, warp = allocated(columns)
        stored(base, t, 1.0, wait_store)
        cute.arch.sync_threads()
        if cutlass.const_expr(free == "before"):
            freed(base, warp, columns)
            cute.arch.sync_threads()
        load, part, taken = parts(base + at, (t + turned) % 128)
        cute.copy(load, part, taken)
        if cutlass.const_expr(wait_load):
            cute.arch.fence_view_async_tmem_load()
        y[t] = taken.load().reduce(cute.ReductionOp.ADD, cutlass.Float32(0.0), 0)
        if cutlass.const_expr(not wait_load):
            cute.arch.fence_view_async_tmem_load()
        if cutlass.const_expr(free == "after"):
            freed(base, warp, columns)
        if cutlass.const_expr(free == "at once"):
            if warp == 0:
                cute.arch.dealloc_tmem(base, columns)

    return body


@pair("uninitialised", "y[t] = taken.load()", "cute.copy(load, part, taken)")
def columns_that_nothing_has_written(bug: bool) -> None:
    run(plain(at=32 if bug else 0, columns=64), bug)


@pair("tcgen05.ld.32x32b.x32 reaches column 543 of tensor memory", "cute.copy(load, part, taken)")
def beyond_the_columns(bug: bool) -> None:
    run(plain(at=512 if bug else 0), bug)


@pair(
    "tcgen05.ld.32x32b.x32 touches column 32 of tensor memory, which is not allocated", "cute.copy(load, part, taken)"
)
def before_they_are_allocated(bug: bool) -> None:
    run(plain(at=32 if bug else 0), bug)


@pair("tcgen05.ld.32x32b.x32 touches column 0 of tensor memory after it was freed", "cute.copy(load, part, taken)")
def after_they_are_freed(bug: bool) -> None:
    run(plain(free="before" if bug else "after"), bug)


@pair("tensor-memory-race", "cute.copy(load, part, taken)", "cute.arch.dealloc_tmem(base, columns)")
def freed_while_other_warps_load(bug: bool) -> None:
    run(plain(free="at once" if bug else "after"), bug)


@pair("tensor memory: the 32 columns from 0 on are never freed")
def never_freed(bug: bool) -> None:
    run(plain(free="never" if bug else "after"), bug)


@pair("tcgen05.dealloc of 32 columns at 0x0, which are not allocated as such", "cute.arch.dealloc_tmem(base, COLUMNS)")
def freed_by_each_warp(bug: bool) -> None:
    """Another block of the multiprocessor may have got the columns in between."""

    @cute.kernel
    def kernel(y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        base, warp = allocated(COLUMNS)
        cute.arch.sync_threads()
        if warp < (4 if bug else 1):
            cute.arch.dealloc_tmem(base, COLUMNS)
        y[t] = cutlass.Float32(1.0)

    launch(kernel, from_dlpack(np.zeros(128, np.float32)), block=128)


@pair("tcgen05.ld.32x32b.x32: warp", "cute.copy(load, part, taken)")
def lanes_of_another_warp(bug: bool) -> None:
    run(plain(turned=32 if bug else 0), bug)


@pair(
    "tcgen05.ld.32x32b.x32 reads tensor memory to which a tcgen05.st is still on its way",
    "cute.copy(load, part, taken)",
)
def loaded_before_it_is_stored(bug: bool) -> None:
    run(plain(wait_store=not bug), bug)


@pair("tcgen05-registers", "cute.copy(load, part, taken)", "y[t] = taken.load()")
def registers_read_before_they_are_loaded(bug: bool) -> None:
    run(plain(wait_load=not bug), bug)


def handed_on(leave_out: str) -> None:
    """Four warps store ones, and four others load and add them up. Left out are ``"barrier"``, or the fence on one of
    its sides, or both; the program has other fences of that side but for ``"before after"`` and ``"all ..."``."""
    others = {"before after": "", "all before": "after", "all after": "before"}.get(leave_out, "before after")

    @cute.kernel
    def kernel(y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        base, warp = allocated(COLUMNS)
        if cutlass.const_expr("after" in others):
            cute.arch.tcgen05_fence_after_thread_sync()
        if warp < 4:
            stored(base, t, 1.0)
            if cutlass.const_expr("before" not in leave_out):
                cute.arch.tcgen05_fence_before_thread_sync()
        if cutlass.const_expr(leave_out != "barrier"):
            cute.arch.sync_threads()
        if warp >= 4:
            if cutlass.const_expr("after" not in leave_out):
                cute.arch.tcgen05_fence_after_thread_sync()
            load, part, taken = parts(base, t % 128)
            cute.copy(load, part, taken)
            cute.arch.fence_view_async_tmem_load()
            y[t % 128] = taken.load().reduce(cute.ReductionOp.ADD, cutlass.Float32(0.0), 0)
        if cutlass.const_expr("before" in others):
            cute.arch.tcgen05_fence_before_thread_sync()
        freed(base, warp, COLUMNS)

    y = np.zeros(128, np.float32)
    launch(kernel, from_dlpack(y), block=256)
    if leave_out != "barrier":
        np.testing.assert_array_equal(y, 32)


@pair("tensor-memory-race", "cute.copy(load, part, taken)", "cute.copy(store, given, mine.partition_D(memory))")
def loaded_by_other_warps_without_a_barrier(bug: bool) -> None:
    handed_on("barrier" if bug else "")


@pair("tcgen05-fence", "cute.copy(load, part, taken)", "cute.copy(store, given, mine.partition_D(memory))")
def no_fence_before_the_barrier(bug: bool) -> None:
    handed_on("before" if bug else "")


@pair("tcgen05-fence", "cute.copy(load, part, taken)", "cute.copy(store, given, mine.partition_D(memory))")
def no_fence_behind_the_barrier(bug: bool) -> None:
    handed_on("after" if bug else "")


@pair(
    "residency", "while cute.arch.load(count.iterator) < 8:", "cute.arch.atomic_add(count.iterator, cutlass.Int32(1))"
)
def blocks_that_wait_for_one_without_columns(bug: bool) -> None:
    """A multiprocessor holds two of these blocks, but with all of its columns only one that has some."""

    @cute.kernel
    def kernel(count: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        base, warp = allocated(512 if bug else 256)
        if t == 0:
            cute.arch.atomic_add(count.iterator, cutlass.Int32(1))
            while cute.arch.load(count.iterator) < 8:
                pass
        freed(base, warp, 512 if bug else 256)

    with sim.options(sms=4):
        launch(kernel, np.zeros(1, np.int32), grid=8, block=128)


@pair("deadlock", "cute.arch.alloc_tmem(512, holder)")
def allocated_twice(bug: bool) -> None:
    """All columns, and some more before they are freed: nothing will ever free them."""

    @cute.kernel
    def kernel(y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        base, warp = allocated(32)
        holder = cute.arch.alloc_smem(cutlass.Int32, 1)
        if cutlass.const_expr(not bug):
            freed(base, warp, 32)
        if warp == 0:
            cute.arch.alloc_tmem(512, holder)
            cute.arch.sync_warp()
            cute.arch.dealloc_tmem(cute.arch.retrieve_tmem_ptr(cutlass.Float32, 16, holder), 512)
        if cutlass.const_expr(bug):
            freed(base, warp, 32)
        y[t] = cutlass.Float32(32.0)

    y = np.zeros(128, np.float32)
    launch(kernel, from_dlpack(y), block=128)


def reused(early: str = "") -> None:
    """Four warps store ones and load them; four others store twos over them behind a barrier, and the first load
    again. ``early``: the load, or the store, that is waited for only behind the barrier, without fences."""

    @cute.jit
    def meet():
        if cutlass.const_expr(not early):
            cute.arch.tcgen05_fence_before_thread_sync()
        cute.arch.sync_threads()
        if cutlass.const_expr(not early):
            cute.arch.tcgen05_fence_after_thread_sync()

    @cute.kernel
    def kernel(y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        base, warp = allocated(COLUMNS)
        load, part, taken = parts(base, t % 128)
        if warp < 4:
            stored(base, t, 1.0)
            cute.copy(load, part, taken)
            if cutlass.const_expr(early != "load"):
                cute.arch.fence_view_async_tmem_load()
        meet()
        if warp < 4:
            if cutlass.const_expr(early == "load"):
                cute.arch.fence_view_async_tmem_load()
            y[t] = taken.load().reduce(cute.ReductionOp.ADD, cutlass.Float32(0.0), 0)
        else:
            stored(base, t % 128, 2.0, early != "store")
        meet()
        if warp < 4:
            cute.copy(load, part, taken)
            cute.arch.fence_view_async_tmem_load()
            y[t] += taken.load().reduce(cute.ReductionOp.ADD, cutlass.Float32(0.0), 0)
        else:
            if cutlass.const_expr(early == "store"):
                cute.arch.fence_view_async_tmem_store()
        freed(base, warp, COLUMNS)

    y = np.zeros(128, np.float32)
    launch(kernel, from_dlpack(y), block=256)
    if not early:
        np.testing.assert_array_equal(y, 96)


@pair("tensor-memory-race", "cute.copy(store, given, mine.partition_D(memory))", "cute.copy(load, part, taken)")
def cells_given_back_before_their_load_is_waited_for(bug: bool) -> None:
    reused("load" if bug else "")


@pair(
    "tensor-memory-race | tcgen05.ld.32x32b.x32 reads tensor memory to which a tcgen05.st is still on its way",
    "cute.copy(load, part, taken)",
)
def cells_handed_on_before_their_store_is_waited_for(bug: bool) -> None:
    reused("store" if bug else "")


@pair("data-race", "cute.arch.alloc_tmem(COLUMNS, holder)")
def two_warps_that_allocate_into_one_place(bug: bool) -> None:
    @cute.kernel
    def kernel(y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        holder = cute.arch.alloc_smem(cutlass.Int32, 1)
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        if warp < (2 if bug else 1):
            cute.arch.alloc_tmem(COLUMNS, holder)
        cute.arch.sync_threads()
        base = cute.arch.retrieve_tmem_ptr(cutlass.Float32, 16, holder)
        stored(base, t, 1.0)
        freed(base, warp, COLUMNS)

    launch(kernel, from_dlpack(np.zeros(1, np.float32)), block=128)
