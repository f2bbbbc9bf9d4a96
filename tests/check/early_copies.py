"""Reads that come before the bytes of other copies than a TMA ring's: by cp.async, read by a bulk store, announced
with too few bytes."""

from __future__ import annotations

import numpy as np

import tilewright as cutlass
from tests.check.pairs import launch, numbers, pair
from tilewright import cute, utils
from tilewright.cute.nvgpu import cpasync
from tilewright.cute.runtime import from_dlpack

TILES = 6
FILL, READ = "cute.copy(get, x[None, t, k], ring[None, t, stage])", "y[k, t - 32] = ring[0, 63 - t, stage]"


def cp_async_ring(wait: str) -> None:
    """Warp 0 fills two stages by ``cp.async``, whose arrivals stand for the copies; warp 1 reads. ``wait``: how."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        smem = utils.SmemAllocator()
        full, empty = smem.allocate_array(cutlass.Int64, 2), smem.allocate_array(cutlass.Int64, 2)
        ring = smem.allocate_tensor(cutlass.Float32, cute.make_layout((4, 32, 2)), 16)
        get = cute.make_copy_atom(cpasync.CopyG2SOp(), cutlass.Float32, num_bits_per_copy=128)
        if t == 0:
            for i in cutlass.range_constexpr(2):
                cute.arch.mbarrier_init(full + i, 32)
                cute.arch.mbarrier_init(empty + i, 32)
        cute.arch.sync_threads()
        if t < 32:
            for k in cutlass.range(TILES):
                stage = k % 2
                cute.arch.mbarrier_wait(empty + stage, (k // 2 & 1) ^ 1)
                cute.copy(get, x[None, t, k], ring[None, t, stage])
                cute.arch.cp_async_mbarrier_arrive_noinc(full + stage)
        else:
            for k in cutlass.range(TILES):
                stage, phase = k % 2, k // 2 & 1
                if cutlass.const_expr(wait in ("right", "inverted")):
                    cute.arch.mbarrier_wait(full + stage, phase ^ (wait == "inverted"))
                elif cutlass.const_expr(wait == "empty"):
                    cute.arch.mbarrier_wait(empty + stage, phase ^ 1)
                y[k, t - 32] = ring[0, 63 - t, stage]
                cute.arch.mbarrier_arrive(empty + stage)

    x = from_dlpack(np.asfortranarray(numbers(128 * TILES).reshape(4, 32, TILES)), assumed_align=16)
    launch(kernel, x, np.zeros((TILES, 32), np.float32))


@pair("data-race", READ, FILL)
def stages_of_cp_async_that_are_read_without_a_wait(bug: bool) -> None:
    cp_async_ring("none" if bug else "right")


@pair("data-race", READ, FILL, 'cute.arch.mbarrier_wait(full + stage, phase ^ (wait == "inverted"))')
def stages_of_cp_async_and_the_other_parity(bug: bool) -> None:
    cp_async_ring("inverted" if bug else "right")


@pair("data-race", READ, FILL, "cute.arch.mbarrier_wait(empty + stage, phase ^ 1)")
def stages_of_cp_async_whose_reader_waits_for_empty(bug: bool) -> None:
    cp_async_ring("empty" if bug else "right")


GET, PUT = "cute.copy(get, x, tile, mbar_ptr=full)", "cute.copy(put, tile, y)"


def passed_on(out: bool, waits: bool = True, announced: int = 512) -> None:
    """One thread has a tile copied in and ``out`` again, or all threads read it; ``announced``: of its 512 bytes."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        smem = utils.SmemAllocator()
        full = smem.allocate_array(cutlass.Int64, 1)
        tile = smem.allocate_tensor(cutlass.Float32, cute.make_layout(128), 16)
        get = cute.make_copy_atom(cpasync.CopyBulkG2SOp(), cutlass.Float32)
        put = cute.make_copy_atom(cpasync.CopyBulkS2GOp(), cutlass.Float32)
        if t == 0:
            cute.arch.mbarrier_init(full, 1)
            cute.arch.mbarrier_init_fence()
            if cutlass.const_expr(announced > 0):
                cute.arch.mbarrier_arrive_and_expect_tx(full, announced)
            else:
                cute.arch.mbarrier_arrive(full)
            cute.copy(get, x, tile, mbar_ptr=full)
            if cutlass.const_expr(not waits):
                cute.copy(put, tile, y)
                cute.arch.cp_async_bulk_commit_group()
        cute.arch.sync_threads()
        cute.arch.mbarrier_wait(full, 0)
        if cutlass.const_expr(out):
            if t == 0:
                if cutlass.const_expr(waits):
                    cute.copy(put, tile, y)
                    cute.arch.cp_async_bulk_commit_group()
                cute.arch.cp_async_bulk_wait_group(0)
        else:
            y[t] = tile[127 - t]

    arrays = (from_dlpack(numbers(128), assumed_align=16) for _ in range(2))
    launch(kernel, *arrays, block=128)


@pair("data-race", PUT, GET)
def a_bulk_store_of_a_tile_that_is_not_waited_for(bug: bool) -> None:
    passed_on(True, waits=not bug)


@pair("data-race", "y[t] = tile[127 - t]", GET)
def a_copy_whose_bytes_are_not_announced(bug: bool) -> None:
    passed_on(False, announced=0 if bug else 512)
