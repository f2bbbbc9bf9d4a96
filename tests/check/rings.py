"""Rings of stages written by hand: phases, counts, groups, and what lies in the bytes of a stage afterwards."""

from __future__ import annotations

import numpy as np

import tilewright as cutlass
from tests.check.pairs import launch, numbers, pair, shared
from tilewright import cute, utils
from tilewright.cute.nvgpu import cpasync

I32 = np.int32
SIX = numbers(6 * 32).reshape(6, 32)


def two_stages(full_phase: str = "k // 2", empty_phase: str = "k // 2", start: int = 1, slot: str = "k % 2") -> None:
    """Warp 0 fills two stages in turn, warp 1 reads them."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        full = cute.arch.alloc_smem(cutlass.Int64, 4)
        empty = full + 2
        s = cute.make_tensor(cute.arch.alloc_smem(cutlass.Float32, 64), cute.make_layout((32, 2)))
        if t == 0:
            for i in cutlass.range_constexpr(4):
                cute.arch.mbarrier_init(full + i, 32)
            cute.arch.mbarrier_init_fence()
        cute.arch.sync_threads()
        lane = t % 32
        for k in cutlass.range(6):
            stage = k % 2
            if t < 32:
                phase = (k // 2 if cutlass.const_expr(empty_phase == "k // 2") else k) & 1
                cute.arch.mbarrier_wait(empty + stage, phase ^ start)
                target = k % 2 if cutlass.const_expr(slot == "k % 2") else k // 2 % 2
                s[lane, target] = x[k, lane]
                cute.arch.mbarrier_arrive(full + stage)
            else:
                phase = (k // 2 if cutlass.const_expr(full_phase == "k // 2") else k) & 1
                cute.arch.mbarrier_wait(full + stage, phase)
                y[k, lane] = s[31 - lane, stage]
                cute.arch.mbarrier_arrive(empty + stage)

    launch(kernel, SIX, np.zeros_like(SIX))


@pair("data-race | deadlock", "cute.arch.mbarrier_wait(full + stage, phase)")
def a_consumer_whose_phase_follows_the_tile(bug: bool) -> None:
    two_stages(full_phase="k" if bug else "k // 2")


@pair("data-race | deadlock", "cute.arch.mbarrier_wait(empty + stage, phase ^ start)")
def a_producer_whose_phase_follows_the_tile(bug: bool) -> None:
    two_stages(empty_phase="k" if bug else "k // 2")


@pair("deadlock", "cute.arch.mbarrier_wait(empty + stage, phase ^ start)")
def a_ring_whose_stages_are_empty_only_after_a_release(bug: bool) -> None:
    two_stages(start=0 if bug else 1)


@pair("data-race", "s[lane, target] = x[k, lane]", "y[k, lane] = s[31 - lane, stage]")
def a_producer_that_fills_another_stage_than_it_waited_for(bug: bool) -> None:
    two_stages(slot="k // 2" if bug else "k % 2")


COPY = "cute.copy(atom, x[None, t, k], s[None, t, k % 3])"


def three_groups(pending: int = 1, tail: bool = True, ahead: int = 2) -> None:
    """cp.async three stages deep, two tiles ahead."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        layout = cute.make_layout((4, 64, 3))
        s = cute.make_tensor(cute.arch.alloc_smem(cutlass.Float32, 768, alignment=16), layout)
        atom = cute.make_copy_atom(cpasync.CopyG2SOp(), cutlass.Float32, num_bits_per_copy=128)
        for k in cutlass.range_constexpr(2):
            cute.copy(atom, x[None, t, k], s[None, t, k])
            cute.arch.cp_async_commit_group()
        for n in cutlass.range(6):
            cute.arch.cp_async_wait_group(pending)
            cute.arch.sync_threads()
            y[t, n] = s[0, 63 - t, n % 3]
            k = n + ahead
            if k < 6:
                cute.copy(atom, x[None, t, k], s[None, t, k % 3])
                if cutlass.const_expr(not tail):
                    cute.arch.cp_async_commit_group()
            if cutlass.const_expr(tail):
                cute.arch.cp_async_commit_group()

    x = cute.runtime.from_dlpack(np.asfortranarray(numbers(1536).reshape(4, 64, 6)), assumed_align=16)
    launch(kernel, x, numbers(384).reshape(64, 6))


@pair("data-race", COPY, "y[t, n] = s[0, 63 - t, n % 3]")
def a_wait_that_leaves_one_group_too_many(bug: bool) -> None:
    three_groups(pending=2 if bug else 1)


@pair("data-race", COPY, "y[t, n] = s[0, 63 - t, n % 3]")
def no_empty_groups_at_the_end_of_the_tiles(bug: bool) -> None:
    """The last tiles commit nothing, so the wait that leaves one group pending leaves that of the last tile."""
    three_groups(tail=not bug)


@pair("data-race", COPY, "y[t, n] = s[0, 63 - t, n % 3]")
def a_copy_into_the_stage_that_is_being_read(bug: bool) -> None:
    """Three tiles ahead in three stages: the slot is the one of this turn, without a wait for its readers."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        layout = cute.make_layout((4, 64, 3))
        s = cute.make_tensor(cute.arch.alloc_smem(cutlass.Float32, 768, alignment=16), layout)
        atom = cute.make_copy_atom(cpasync.CopyG2SOp(), cutlass.Float32, num_bits_per_copy=128)
        for k in cutlass.range(3):
            cute.copy(atom, x[None, t, k], s[None, t, k % 3])
            cute.arch.cp_async_commit_group()
        for n in cutlass.range(6):
            cute.arch.cp_async_wait_group(2)
            cute.arch.sync_threads()
            y[t, n] = s[0, 63 - t, n % 3]
            if cutlass.const_expr(not bug):
                cute.arch.sync_threads()
            k = n + 3
            if k < 6:
                cute.copy(atom, x[None, t, k], s[None, t, k % 3])
            cute.arch.cp_async_commit_group()

    x = cute.runtime.from_dlpack(np.asfortranarray(numbers(1536).reshape(4, 64, 6)), assumed_align=16)
    launch(kernel, x, numbers(384).reshape(64, 6))


TILE = (8, 32)
ROWS = cute.make_layout(TILE, stride=(32, 1))


class Epilogue:
    """A tile through one or two buffers of shared memory, stored by TMA in four parts."""

    def __init__(self, buffers: int = 1, pending: int = 0, wait_first: bool = True, barrier: bool = True) -> None:
        self.buffers, self.pending, self.wait_first, self.barrier = buffers, pending, wait_first, barrier

    @cute.jit
    def __call__(self, x: cute.Tensor, y: cute.Tensor):
        atom, tensor = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), y, ROWS, TILE)
        self.kernel(atom, tensor, x).launch(grid=(1, 1, 1), block=(64, 1, 1))

    @cute.kernel
    def kernel(self, atom: cute.CopyAtom, tensor: cute.Tensor, x: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        smem = utils.SmemAllocator()
        stages = [smem.allocate_tensor(cutlass.Float32, ROWS, 128) for _ in range(self.buffers)]
        for part in cutlass.range_constexpr(4):
            s = stages[part % self.buffers]
            for i in cutlass.range(t, 256, 64):
                s[i] = x[part, i]
            cute.arch.fence_view_async_shared()
            cute.arch.sync_threads()
            if warp == 0:
                tile = cute.group_modes(cute.local_tile(tensor, TILE, (part, 0)), 0, 2)
                source, target = cpasync.tma_partition(atom, 0, cute.make_layout(1), cute.group_modes(s, 0, 2), tile)
                cute.copy(atom, source, target)
                cute.arch.cp_async_bulk_commit_group()
                if cutlass.const_expr(self.wait_first):
                    cute.arch.cp_async_bulk_wait_group(self.pending, read=True)
            if cutlass.const_expr(self.barrier):
                cute.arch.sync_threads()
            if cutlass.const_expr(not self.wait_first):
                if warp == 0:
                    cute.arch.cp_async_bulk_wait_group(self.pending, read=True)
        if warp == 0:
            cute.arch.cp_async_bulk_wait_group(0)


def epilogue(**how) -> None:
    Epilogue(**how)(numbers(1024).reshape(4, 256), np.zeros((32, 32), np.float32))


STORE, FILL = "cute.copy(atom, source, target)", "s[i] = x[part, i]"


@pair("data-race", STORE, FILL)
def two_buffers_of_an_epilogue_with_two_stores_pending(bug: bool) -> None:
    epilogue(buffers=2, pending=2 if bug else 1)


@pair("data-race", STORE, FILL)
def the_issuer_waits_for_the_store_after_the_barrier(bug: bool) -> None:
    epilogue(wait_first=not bug)


@pair("data-race", STORE, FILL)
def the_next_part_before_the_barrier_after_the_store(bug: bool) -> None:
    epilogue(barrier=not bug)


@pair("data-race", "part = part + a[(t + k) % 64]", "c[t] = part")
def an_epilogue_in_the_bytes_of_the_main_loop(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        memory = cute.arch.alloc_smem(cutlass.Float32, 64)
        a = cute.make_tensor(memory, cute.make_layout(64))
        a[t] = x[t]
        cute.arch.sync_threads()
        part = cutlass.Float32(0)
        for k in cutlass.range(8):
            part = part + a[(t + k) % 64]
        if cutlass.const_expr(not bug):
            cute.arch.sync_threads()
        c = cute.make_tensor(memory, cute.make_layout(64))
        c[t] = part
        cute.arch.sync_threads()
        y[t] = c[63 - t]

    launch(kernel, numbers(64), numbers(64))


@pair("data-race", "cute.arch.atomic_add(box.iterator, cutlass.Int32(1))", "y[k, t] = box[0]")
def a_tile_number_overwritten_before_all_have_read_it(bug: bool) -> None:
    """A dynamic scheduler: one thread draws the next tile for the block."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        box = shared(1, cutlass.Int32)
        if t == 0:
            box[0] = 0
        for k in cutlass.range(3):
            if t == 0:
                cute.arch.atomic_add(box.iterator, cutlass.Int32(1))
            cute.arch.sync_threads()
            y[k, t] = box[0]
            if cutlass.const_expr(not bug):
                cute.arch.sync_threads()

    launch(kernel, numbers(64, I32), np.zeros((3, 64), I32))


def copied_for_the_other(noinc: bool, count: int) -> None:
    """Warp 0 copies by cp.async, whose landing arrives at an mbarrier; warp 1 waits for it."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        full = cute.arch.alloc_smem(cutlass.Int64, 1)
        s = cute.make_tensor(cute.arch.alloc_smem(cutlass.Float32, 128, alignment=16), cute.make_layout((4, 32)))
        atom = cute.make_copy_atom(cpasync.CopyG2SOp(), cutlass.Float32, num_bits_per_copy=128)
        if t == 0:
            cute.arch.mbarrier_init(full, count)
        cute.arch.sync_threads()
        if t < 32:
            cute.copy(atom, x[None, t], s[None, t])
            if cutlass.const_expr(noinc):
                cute.arch.cp_async_mbarrier_arrive_noinc(full)
            else:
                cute.arch.mbarrier_arrive(full)
        else:
            cute.arch.mbarrier_wait(full, 0)
            y[t - 32] = s[0, 63 - t]

    x = cute.runtime.from_dlpack(np.asfortranarray(numbers(128).reshape(4, 32)), assumed_align=16)
    launch(kernel, x, numbers(32))


@pair("data-race", "cute.copy(atom, x[None, t], s[None, t])", "y[t - 32] = s[0, 63 - t]")
def a_thread_arrives_before_its_copies_have_landed(bug: bool) -> None:
    copied_for_the_other(noinc=not bug, count=32)


@pair("deadlock", "cute.arch.mbarrier_wait(full, 0)")
def a_count_that_asks_for_two_arrivals_of_a_copy(bug: bool) -> None:
    copied_for_the_other(noinc=True, count=64 if bug else 32)


@pair("data-race", "s[slot * 64 + t] = x[k + 1, t]", "y[k, t] = s[k % 2 * 64 + 63 - t]")
def the_next_tile_into_the_buffer_of_this_one(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = shared(128)
        s[t] = x[0, t]
        cute.arch.sync_threads()
        for k in cutlass.range(3):
            slot = k % 2 if cutlass.const_expr(bug) else (k + 1) % 2
            s[slot * 64 + t] = x[k + 1, t]
            y[k, t] = s[k % 2 * 64 + 63 - t]
            cute.arch.sync_threads()

    launch(kernel, numbers(256).reshape(4, 64), np.zeros((3, 64), np.float32))


@pair("data-race", "cute.copy(get, x[None, k], s, mbar_ptr=full)", "y[63 - t, k] = s[t]")
def a_bulk_copy_into_what_others_still_read(bug: bool) -> None:
    """Full, but no empty: the next bytes may come before all have read these."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        full = cute.arch.alloc_smem(cutlass.Int64, 1)
        s = utils.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout(64), 128)
        get = cute.make_copy_atom(cpasync.CopyBulkG2SOp(), cutlass.Float32)
        if t == 0:
            cute.arch.mbarrier_init(full, 1)
            cute.arch.mbarrier_init_fence()
        cute.arch.sync_threads()
        for k in cutlass.range(3):
            if t == 0:
                cute.arch.mbarrier_arrive_and_expect_tx(full, 256)
                cute.copy(get, x[None, k], s, mbar_ptr=full)
            cute.arch.mbarrier_wait(full, k & 1)
            y[63 - t, k] = s[t]
            if cutlass.const_expr(not bug):
                cute.arch.sync_threads()

    x = cute.runtime.from_dlpack(np.asfortranarray(numbers(192).reshape(64, 3)), assumed_align=16)
    launch(kernel, x, np.zeros((64, 3), np.float32))
