"""Groups of asynchronous copies: whose wait orders what, and for whom."""

from __future__ import annotations

import tilewright as cutlass
from tests.check.pairs import launch, numbers, pair
from tilewright import cute, utils
from tilewright.cute.nvgpu import cpasync
from tilewright.cute.runtime import from_dlpack


@pair("data-race", "cute.copy(atom, x[None, t], s[None, t])", "y[t] = s[0, 63 - t]")
def cp_async_of_which_others_know_the_groups_before(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = cute.make_tensor(cute.arch.alloc_smem(cutlass.Float32, 256, alignment=16), cute.make_layout((4, 64)))
        cute.arch.sync_threads()  # what the threads tell each other here says nothing of the copies that follow
        atom = cute.make_copy_atom(cpasync.CopyG2SOp(), cutlass.Float32, num_bits_per_copy=128)
        cute.copy(atom, x[None, t], s[None, t])
        cute.arch.cp_async_commit_group()
        cute.arch.cp_async_wait_group(0)
        if cutlass.const_expr(not bug):
            cute.arch.sync_threads()
        y[t] = s[0, 63 - t]

    x = cute.runtime.from_dlpack(numbers(256).reshape(64, 4).T, assumed_align=16)
    launch(kernel, x, numbers(64))


def stores(wait: bool = True, barrier: bool = True, twice: bool = True) -> None:
    """Bulk stores, two to one place, which another warp reads back."""

    @cute.kernel
    def kernel(y: cute.Tensor, z: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = utils.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout((64, 2)), 128)
        send = cute.make_copy_atom(cpasync.CopyBulkS2GOp(), cutlass.Float32)
        s[t, 0] = 1.0
        s[t, 1] = 2.0
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_threads()
        if t == 0:
            cute.copy(send, s[None, 0], y)
            cute.arch.cp_async_bulk_commit_group()
            if cutlass.const_expr(wait):
                cute.arch.cp_async_bulk_wait_group(0)
            if cutlass.const_expr(twice):
                cute.copy(send, s[None, 1], y)  # over the first
                cute.arch.cp_async_bulk_commit_group()
                cute.arch.cp_async_bulk_wait_group(0)
        if cutlass.const_expr(barrier):
            cute.arch.sync_threads()
        z[t] = y[t]

    launch(kernel, *[cute.runtime.from_dlpack(numbers(64), assumed_align=16) for _ in range(2)])


@pair("data-race", "cute.copy(send, s[None, 0], y)", "cute.copy(send, s[None, 1], y)  # over the first")
def two_bulk_stores_to_one_place(bug: bool) -> None:
    stores(wait=not bug)


@pair("data-race", "cute.copy(send, s[None, 0], y)", "z[t] = y[t]")
def a_bulk_store_read_back_without_a_barrier(bug: bool) -> None:
    stores(barrier=not bug, twice=False)


@pair("data-race", "cute.copy(send, s, y)", "s[t] = 7.0")
def a_group_that_another_lane_commits(bug: bool) -> None:
    """The groups of bulk copies are each thread's own."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = utils.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout(64), 128)
        send = cute.make_copy_atom(cpasync.CopyBulkS2GOp(), cutlass.Float32)
        s[t] = x[t]
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_threads()
        if t == 0:
            cute.copy(send, s, y)
            if cutlass.const_expr(not bug):
                cute.arch.cp_async_bulk_commit_group()
        if cutlass.const_expr(bug):
            if t == 1:
                cute.arch.cp_async_bulk_commit_group()
        if t < 32:
            cute.arch.cp_async_bulk_wait_group(0, read=True)
        cute.arch.sync_threads()
        s[t] = 7.0
        if t == 0:
            cute.arch.cp_async_bulk_commit_group()
            cute.arch.cp_async_bulk_wait_group(0)

    launch(kernel, *[cute.runtime.from_dlpack(numbers(64), assumed_align=16) for _ in range(2)])


@pair("data-race", "cute.copy(send, mine, theirs)", "s[t] = 7.0")
def one_of_the_lanes_that_copy_does_not_wait(bug: bool) -> None:
    """Several lanes issue bulk copies with one instruction, and each has to wait for its own."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = utils.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout(32), 128)
        send = cute.make_copy_atom(cpasync.CopyBulkS2GOp(), cutlass.Float32)
        s[t] = x[t]
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_threads()
        if t % 16 == 0:
            mine, theirs = cute.local_tile(s, (16,), (t // 16,)), cute.local_tile(y, (16,), (t // 16,))
            cute.copy(send, mine, theirs)
            cute.arch.cp_async_bulk_commit_group()
        if t < (1 if cutlass.const_expr(bug) else 32):
            cute.arch.cp_async_bulk_wait_group(0, read=True)
        cute.arch.sync_threads()
        s[t] = 7.0
        if t % 16 == 0:
            cute.arch.cp_async_bulk_wait_group(0)

    launch(kernel, *[cute.runtime.from_dlpack(numbers(32), assumed_align=16) for _ in range(2)], block=32)


@pair("data-race", "cute.copy(put, tile, y)", "tile[t] = x[t]")
def a_bulk_store_at_the_end_of_a_block_that_reads_too_early(bug: bool) -> None:
    """No thread waits for it either, which ends the launch: the earlier mistakes are reported, too."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        tile = utils.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout(128), 16)
        put = cute.make_copy_atom(cpasync.CopyBulkS2GOp(), cutlass.Float32)
        tile[t] = x[t]
        if cutlass.const_expr(not bug):
            cute.arch.fence_view_async_shared()
            cute.arch.sync_threads()
        if t == 0:
            cute.copy(put, tile, y)
            cute.arch.cp_async_bulk_commit_group()
            if cutlass.const_expr(not bug):
                cute.arch.cp_async_bulk_wait_group(0)

    launch(kernel, *(from_dlpack(numbers(128), assumed_align=16) for _ in range(2)), block=128)
