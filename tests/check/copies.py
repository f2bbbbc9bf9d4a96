"""Races with asynchronous copies: cp.async, TMA and bulk copies."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilewright as cutlass
from tests.check.pairs import launch, numbers, pair
from tilewright import cute, utils
from tilewright.cute.nvgpu import cpasync

COPY = "cute.copy(atom, x[None, t, k], s[None, t, k % stages])"


def ring(stages: int = 2, wait: int = 0, after: bool = True, before_commit: bool = False) -> None:
    """cp.async into a ring; each turn waits, meets at a barrier, reads, and issues the copy of a later tile."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        layout = cute.make_layout((4, 128, stages))
        s = cute.make_tensor(cute.arch.alloc_smem(cutlass.Float32, 512 * stages, alignment=16), layout)
        atom = cute.make_copy_atom(cpasync.CopyG2SOp(), cutlass.Float32, num_bits_per_copy=128)
        for k in cutlass.range(4):
            cute.copy(atom, x[None, t, k], s[None, t, k % stages])
            if cutlass.const_expr(before_commit):
                cute.arch.cp_async_wait_group(wait)
                cute.arch.cp_async_commit_group()
            else:
                cute.arch.cp_async_commit_group()
                cute.arch.cp_async_wait_group(wait)
            cute.arch.sync_threads()
            y[t, k] = s[0, 127 - t, k % stages]
            if cutlass.const_expr(after):
                cute.arch.sync_threads()

    x = cute.runtime.from_dlpack(np.asfortranarray(numbers(2048).reshape(4, 128, 4)), assumed_align=16)
    launch(kernel, x, numbers(512).reshape(128, 4), block=128)


@pair("data-race", COPY, "y[t, k] = s[0, 127 - t, k % stages]")
def cp_async_into_what_others_still_read(bug: bool) -> None:
    ring(stages=1, after=not bug)


@pair("data-race", COPY, "y[t, k] = s[0, 127 - t, k % stages]")
def cp_async_waited_for_before_its_commit(bug: bool) -> None:
    ring(before_commit=bug)


@pair("data-race", COPY, "y[t, k] = s[0, 127 - t, k % stages]")
def cp_async_with_a_group_still_pending(bug: bool) -> None:
    ring(wait=1 if bug else 0)


@pair("data-race", "s[0, 32 + lane] = 7.0", "y[t] = s[0, (t + 32) % 64]")
def who_has_waited_for_its_own_copies_reads_what_a_thread_of_another_warp_has_stored(bug: bool) -> None:
    """The lane has waited for many groups of its copies; that says nothing of the same lane of the other warp."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        lane = t % 32
        s = cute.make_tensor(cute.arch.alloc_smem(cutlass.Float32, 768, alignment=16), cute.make_layout((4, 192)))
        atom = cute.make_copy_atom(cpasync.CopyG2SOp(), cutlass.Float32, num_bits_per_copy=128)
        if t >= 32:
            s[0, 32 + lane] = 7.0
        else:
            for k in cutlass.range_constexpr(4):
                cute.copy(atom, x[None, t], s[None, 64 + 32 * k + t])
                cute.arch.cp_async_commit_group()
                cute.arch.cp_async_wait_group(0)
        if cutlass.const_expr(not bug):
            cute.arch.sync_threads()
        if t < 32:
            y[t] = s[0, (t + 32) % 64]

    x = cute.runtime.from_dlpack(np.asfortranarray(numbers(128).reshape(4, 32)), assumed_align=16)
    launch(kernel, x, numbers(64))


@pair("data-race", "cute.copy(atom, x[None, t], s[None, t])", "y[t] = s[1, (t + 32) % 64]")
def who_has_waited_for_its_own_copies_reads_those_of_a_lane_of_another_warp(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        layout = cute.make_layout((4, 64))
        s = cute.make_tensor(cute.arch.alloc_smem(cutlass.Float32, 256, alignment=16), layout)
        atom = cute.make_copy_atom(cpasync.CopyG2SOp(), cutlass.Float32, num_bits_per_copy=128)
        cute.copy(atom, x[None, t], s[None, t])
        cute.arch.cp_async_commit_group()
        cute.arch.cp_async_wait_group(0)
        if cutlass.const_expr(not bug):
            cute.arch.sync_threads()
        y[t] = s[1, (t + 32) % 64]

    x = cute.runtime.from_dlpack(np.asfortranarray(numbers(256).reshape(4, 64)), assumed_align=16)
    launch(kernel, x, numbers(64))


@pair("data-race", "cute.copy(atom, x[None, t], s[None, t])", "s[0, t] = 5.0")
def a_store_into_what_cp_async_fills(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = cute.make_tensor(cute.arch.alloc_smem(cutlass.Float32, 512, alignment=16), cute.make_layout((4, 128)))
        atom = cute.make_copy_atom(cpasync.CopyG2SOp(), cutlass.Float32, num_bits_per_copy=128)
        cute.copy(atom, x[None, t], s[None, t])
        cute.arch.cp_async_commit_group()
        if cutlass.const_expr(not bug):
            cute.arch.cp_async_wait_group(0)
        s[0, t] = 5.0
        if cutlass.const_expr(bug):
            cute.arch.cp_async_wait_group(0)
        y[t] = s[0, t]

    x = cute.runtime.from_dlpack(np.asfortranarray(numbers(512).reshape(4, 128)), assumed_align=16)
    launch(kernel, x, numbers(128), block=128)


@pair("data-race", "x[t] = 3.0", "cute.copy(atom, x4[None, t], s[None, t])")
def cp_async_reads_what_others_write(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, x4: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = cute.make_tensor(cute.arch.alloc_smem(cutlass.Float32, 128, alignment=16), cute.make_layout((4, 32)))
        atom = cute.make_copy_atom(cpasync.CopyG2SOp(), cutlass.Float32, num_bits_per_copy=128)
        x[t] = 3.0
        if cutlass.const_expr(not bug):
            cute.arch.sync_threads()
        if t < 32:
            cute.copy(atom, x4[None, t], s[None, t])
        cute.arch.cp_async_commit_group()
        cute.arch.cp_async_wait_group(0)
        cute.arch.sync_threads()
        y[t] = s[t % 4, t // 4]

    x = numbers(128)
    view = cute.runtime.from_dlpack(x.reshape(32, 4).T, assumed_align=16)
    launch(kernel, cute.runtime.from_dlpack(x), view, numbers(128), block=128)


class Tiles:
    """Blocks move tiles of ``a`` to ``b`` by TMA through shared memory, ``tiles`` each; ``bug`` says what is left
    out."""

    def __init__(self, bug: str, tiles: int = 3, blocks: int = 1) -> None:
        self.bug, self.tiles, self.blocks = bug, tiles, blocks
        self.layout = cute.make_layout((16, 32), stride=(32, 1))

    @cute.jit
    def __call__(self, a: cute.Tensor, b: cute.Tensor):
        load = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), a, self.layout, (16, 32))
        store = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), b, self.layout, (16, 32))
        self.kernel(*load, *store, a, b).launch(grid=(self.blocks, 1, 1), block=(64, 1, 1))

    @cute.kernel
    def kernel(
        self,
        load: cute.CopyAtom,
        tma_a: cute.Tensor,
        store: cute.CopyAtom,
        tma_b: cute.Tensor,
        a: cute.Tensor,
        b: cute.Tensor,
    ):
        t, _, _ = cute.arch.thread_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        smem = utils.SmemAllocator()
        full = smem.allocate_array(cutlass.Int64, 1)
        sA = smem.allocate_tensor(cutlass.Float32, self.layout, 1024)
        sB = smem.allocate_tensor(cutlass.Float32, self.layout, 1024)
        if t == 0:
            cute.arch.mbarrier_init(full, 1)
            cute.arch.mbarrier_init_fence()
        cute.arch.sync_threads()
        block, _, _ = cute.arch.block_idx()
        first = block * self.tiles * 16 if cutlass.const_expr(self.blocks > 1) else 0
        gA, gB = (cute.local_tile(cute.domain_offset((first, 0), x), (16, 32), (None, 0)) for x in (tma_a, tma_b))
        one = cute.make_layout(1)
        tAsA, tAgA = cpasync.tma_partition(load, 0, one, cute.group_modes(sA, 0, 2), cute.group_modes(gA, 0, 2))
        tBsB, tBgB = cpasync.tma_partition(store, 0, one, cute.group_modes(sB, 0, 2), cute.group_modes(gB, 0, 2))
        if cutlass.const_expr(self.blocks > 1):
            # One more box for the first block, so that its mbarrier's clock is another one than those of the others.
            if (warp == 0) & (block == 0):
                with cute.arch.elect_one():
                    cute.arch.mbarrier_expect_tx(full, 2048)
                more, _ = cpasync.tma_partition(load, 0, one, cute.group_modes(sB, 0, 2), cute.group_modes(gA, 0, 2))
                cute.copy(load, tAgA[None, 0], more, tma_bar_ptr=full)
            # A further box that all wait for: so blocks that have waited for the tile read it with one that has not.
            further = smem.allocate_array(cutlass.Int64, 1)
            sC = smem.allocate_tensor(cutlass.Float32, self.layout, 1024)
            tCsC, _ = cpasync.tma_partition(load, 0, one, cute.group_modes(sC, 0, 2), cute.group_modes(gA, 0, 2))
            if t == 0:
                cute.arch.mbarrier_init(further, 1)
                cute.arch.mbarrier_init_fence()
            cute.arch.sync_threads()
        for k in cutlass.range(self.tiles):
            if warp == 0:
                with cute.arch.elect_one():
                    cute.arch.mbarrier_arrive_and_expect_tx(full, 2048)
                cute.copy(load, tAgA[None, k], tAsA, tma_bar_ptr=full)
                if cutlass.const_expr(self.blocks > 1):
                    with cute.arch.elect_one():
                        cute.arch.mbarrier_arrive_and_expect_tx(further, 2048)
                    cute.copy(load, tAgA[None, k], tCsC, tma_bar_ptr=further)
            if cutlass.const_expr(self.bug != "no wait"):
                cute.arch.mbarrier_wait(full, k & 1)
            elif cutlass.const_expr(self.blocks > 1):
                if block < self.blocks - 1:
                    cute.arch.mbarrier_wait(full, k & 1)
            if cutlass.const_expr(self.blocks > 1):
                cute.arch.mbarrier_wait(further, k & 1)
            for i in cutlass.range(8):
                sB[(t + 64 * i) // 32, t % 32] = sA[(t + 64 * i) // 32, 31 - t % 32] * 2
            cute.arch.fence_proxy("async.shared", space="cta")
            if cutlass.const_expr(self.bug != "no barrier before the store"):
                cute.arch.sync_threads()
            if warp == 0:
                cute.copy(store, tBsB, tBgB[None, k])
                cute.arch.cp_async_bulk_commit_group()
                if cutlass.const_expr(self.bug != "no wait for the store"):
                    cute.arch.cp_async_bulk_wait_group(0, read=True)
            cute.arch.sync_threads()
        if cutlass.const_expr(self.bug == "no wait"):
            cute.arch.mbarrier_wait(full, (self.tiles - 1) & 1)
        if warp == 0:
            if cutlass.const_expr(self.bug != "no wait for the bytes"):
                cute.arch.cp_async_bulk_wait_group(0)
            else:
                cute.arch.cp_async_bulk_wait_group(0, read=True)
        cute.arch.sync_threads()
        if cutlass.const_expr(self.bug in ("read back", "no wait for the bytes")):
            a[0, t % 32] = b[0, t % 32]


LOAD, FILL = "cute.copy(load, tAgA[None, k], tAsA, tma_bar_ptr=full)", "sB[(t + 64 * i) // 32, t % 32] ="
STORE = "cute.copy(store, tBsB, tBgB[None, k])"


def tiles(bug: str, blocks: int = 1) -> None:
    a = numbers(48 * blocks * 32).reshape(-1, 32)
    b = np.zeros_like(a)
    move = Tiles(bug, 1 if bug == "no wait" else 3, blocks)
    move(*(cute.runtime.from_dlpack(x, assumed_align=16) for x in (a, b)))


@pair("data-race", LOAD, FILL)
def tma_bytes_read_without_a_wait(bug: bool) -> None:
    tiles("no wait" if bug else "")


@pair("data-race", LOAD, FILL)
def tma_bytes_that_the_last_block_does_not_wait_for(bug: bool) -> None:
    """In the last of three blocks; their boxes land together."""
    tiles("no wait" if bug else "", blocks=3)


@pair("data-race", STORE, FILL)
def tma_stores_what_some_warps_have_not_written(bug: bool) -> None:
    tiles("no barrier before the store" if bug else "")


@pair("data-race", STORE, FILL)
def tma_reads_what_is_written_again(bug: bool) -> None:
    tiles("no wait for the store" if bug else "")


def bulk(wait: bool = True, read_wait: bool = True, again: bool = True) -> Any:
    """A bulk copy in, doubled in place, a bulk copy out, and the buffer is used again."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        smem = utils.SmemAllocator()
        full = smem.allocate_array(cutlass.Int64, 1)
        s = smem.allocate_tensor(cutlass.Float32, cute.make_layout(64), 128)
        if t == 0:
            cute.arch.mbarrier_init(full, 1)
            cute.arch.mbarrier_init_fence()
        cute.arch.sync_threads()
        fetch = cute.make_copy_atom(cpasync.CopyBulkG2SOp(), cutlass.Float32)
        send = cute.make_copy_atom(cpasync.CopyBulkS2GOp(), cutlass.Float32)
        if t < 32:
            with cute.arch.elect_one():
                cute.arch.mbarrier_arrive_and_expect_tx(full, 256)
                cute.copy(fetch, x, s, mbar_ptr=full)
        if cutlass.const_expr(wait):
            cute.arch.mbarrier_wait(full, 0)
        s[t] = s[t] * 2
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_threads()
        if t < 32:
            with cute.arch.elect_one():
                cute.copy(send, s, y)
                cute.arch.cp_async_bulk_commit_group()
                if cutlass.const_expr(read_wait):
                    cute.arch.cp_async_bulk_wait_group(0, read=True)
        cute.arch.sync_threads()
        if cutlass.const_expr(wait):
            s[t] = 1.0
        else:
            cute.arch.mbarrier_wait(full, 0)
        if t < 32:
            cute.arch.cp_async_bulk_wait_group(0, read=True)

    x, y = (cute.runtime.from_dlpack(numbers(64), assumed_align=16) for _ in range(2))
    launch(kernel, x, y)


@pair("data-race", "cute.copy(fetch, x, s, mbar_ptr=full)", "s[t] = s[t] * 2")
def a_bulk_copy_read_without_a_wait(bug: bool) -> None:
    bulk(wait=not bug)


@pair("data-race", "cute.copy(send, s, y)", "s[t] = 1.0")
def a_bulk_store_whose_source_is_written_again(bug: bool) -> None:
    bulk(read_wait=not bug)


@pair("data-race", "a[0, t % 32] = b[0, t % 32]", STORE)
def a_tma_store_read_back_before_its_bytes_are_there(bug: bool) -> None:
    tiles("no wait for the bytes" if bug else "read back once")


def prefetch(early: bool) -> None:
    """One stage, loaded by TMA for each turn: for the next one after all have read it, or before."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        smem = utils.SmemAllocator()
        full = smem.allocate_array(cutlass.Int64, 1)
        s = smem.allocate_tensor(cutlass.Float32, cute.make_layout(64), 128)
        fetch = cute.make_copy_atom(cpasync.CopyBulkG2SOp(), cutlass.Float32)
        if t == 0:
            cute.arch.mbarrier_init(full, 1)
            cute.arch.mbarrier_init_fence()
            cute.arch.mbarrier_arrive_and_expect_tx(full, 256)
            cute.copy(fetch, x[None, 0], s, mbar_ptr=full)
        cute.arch.sync_threads()
        for k in cutlass.range(3):
            cute.arch.mbarrier_wait(full, k & 1)
            if cutlass.const_expr(not early):
                y[t, k] = s[63 - t]
                cute.arch.sync_threads()
            if (t == 0) & (k < 2):
                cute.arch.mbarrier_arrive_and_expect_tx(full, 256)
                cute.copy(fetch, x[None, k + 1], s, mbar_ptr=full)
            if cutlass.const_expr(early):
                y[t, k] = s[63 - t]

    x = cute.runtime.from_dlpack(np.asfortranarray(numbers(192).reshape(64, 3)), assumed_align=16)
    launch(kernel, x, numbers(192).reshape(64, 3))


@pair("data-race", "cute.copy(fetch, x[None, k + 1], s, mbar_ptr=full)", "y[t, k] = s[63 - t]")
def a_load_into_what_others_still_read(bug: bool) -> None:
    prefetch(early=bug)


@pair("data-race", "cute.copy(atom, x[None, t], s[None, t])", "s[2, 1] = 5.0")
def a_copy_into_what_another_lane_wrote_after_a_flag_of_a_third(bug: bool) -> None:
    """What one lane has acquired says nothing of what the other lanes of its warp have done."""

    @cute.kernel
    def kernel(x: cute.Tensor, flags: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = cute.make_tensor(cute.arch.alloc_smem(cutlass.Float32, 128, alignment=16), cute.make_layout((4, 32)))
        atom = cute.make_copy_atom(cpasync.CopyG2SOp(), cutlass.Float32, num_bits_per_copy=128)
        if t == 5:
            s[2, 1] = 5.0
        if t == 0:
            cute.arch.store(flags.iterator, cutlass.Int32(1), sem="release", scope="cta")
            while cute.arch.load(flags.iterator, sem="acquire", scope="cta") == 0:
                pass
        if cutlass.const_expr(not bug):
            cute.arch.sync_warp()
        cute.copy(atom, x[None, t], s[None, t])
        cute.arch.cp_async_commit_group()
        cute.arch.cp_async_wait_group(0)

    x = cute.runtime.from_dlpack(np.asfortranarray(numbers(128).reshape(4, 32)), assumed_align=16)
    launch(kernel, x, np.zeros(1, np.int32), block=32)
