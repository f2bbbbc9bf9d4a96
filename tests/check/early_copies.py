"""Reads that come before the bytes of other copies than a TMA ring's: by cp.async, read by a bulk store, announced
with too few bytes."""

from __future__ import annotations

import numpy as np

import tilewright as cutlass
from tests.check.pairs import launch, numbers, pair
from tests.hopper.warpgroup_programs import swizzled_layout
from tilewright import cute, utils
from tilewright.atoms.wgmma import WgmmaAtom
from tilewright.cute.nvgpu import cpasync, warpgroup
from tilewright.cute.runtime import from_dlpack
from tilewright.ir.types import F16, F32

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


class Announced:
    """Warp 4 loads both operands of a product by TMA; four warps wait for ``announced`` of their 8,192 bytes."""

    layout = swizzled_layout("K", "SW64", 16, (64, 32), (0, 1))

    def __init__(self, announced: int) -> None:
        self.announced = announced

    @cute.jit
    def __call__(self, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
        op = cpasync.CopyBulkTensorTileG2SOp()
        loadA, tA = cpasync.make_tiled_tma_atom(op, a, self.layout, (64, 32))
        loadB, tB = cpasync.make_tiled_tma_atom(op, b, self.layout, (64, 32))
        mma = cute.make_tiled_mma(WgmmaAtom((64, 64, 16), F32, F16, F16, "SS"), (1, 1, 1))
        self.kernel(loadA, tA, loadB, tB, c, mma).launch(grid=(1, 1, 1), block=(160, 1, 1))

    @cute.kernel
    def kernel(
        self,
        loadA: cute.CopyAtom,
        tA: cute.Tensor,
        loadB: cute.CopyAtom,
        tB: cute.Tensor,
        c: cute.Tensor,
        mma: cute.TiledMma,
    ):
        t, _, _ = cute.arch.thread_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        smem = utils.SmemAllocator()
        full = smem.allocate_array(cutlass.Int64, 1)
        sA = smem.allocate_tensor(cutlass.Float16, self.layout, 1024)
        sB = smem.allocate_tensor(cutlass.Float16, self.layout, 1024)
        if t == 0:
            cute.arch.mbarrier_init(full, 1)
            cute.arch.mbarrier_init_fence()
        cute.arch.sync_threads()
        if warp == 4:
            with cute.arch.elect_one():
                cute.arch.mbarrier_arrive_and_expect_tx(full, self.announced)
            gA, gB = (cute.group_modes(cute.local_tile(x, (64, 32), (0, 0)), 0, 2) for x in (tA, tB))
            one = cute.make_layout(1)
            intoA, fromA = cpasync.tma_partition(loadA, 0, one, cute.group_modes(sA, 0, 2), gA)
            intoB, fromB = cpasync.tma_partition(loadB, 0, one, cute.group_modes(sB, 0, 2), gB)
            cute.copy(loadA, fromA, intoA, tma_bar_ptr=full)
            cute.copy(loadB, fromB, intoB, tma_bar_ptr=full)
        else:
            part = mma.get_slice(t)
            rA, rB = mma.make_fragment_A(part.partition_A(sA)), mma.make_fragment_B(part.partition_B(sB))
            acc = mma.make_fragment_C(part.partition_C(c))
            mma.set(warpgroup.Field.ACCUMULATE, False)
            cute.arch.mbarrier_wait(full, 0)
            warpgroup.fence()
            cute.gemm(mma, acc, rA[None, None, 0], rB[None, None, 0], acc)
            warpgroup.commit_group()
            warpgroup.wait_group(0)
            cute.autovec_copy(acc, part.partition_C(c))
            cute.arch.mbarrier_wait(full, 0)  # after the product: it says nothing of what that has read


@pair(
    "data-race",
    "cute.gemm(mma, acc, rA[None, None, 0], rB[None, None, 0], acc)",
    "cute.copy(loadB, fromB, intoB, tma_bar_ptr=full)",
)
def a_product_of_an_operand_that_is_not_announced(bug: bool) -> None:
    ones = from_dlpack(np.ones((64, 32), np.float16), assumed_align=16)
    c = from_dlpack(np.zeros((64, 64), np.float32), assumed_align=16)
    Announced(4096 if bug else 8192)(ones, ones, c)
