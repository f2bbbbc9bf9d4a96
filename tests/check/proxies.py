"""TMA and wgmma beside threads: fences between the proxies, groups that are not waited for, registers in flight."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilewright as cutlass
from tests.check.pairs import numbers, pair
from tests.hopper.warpgroup_programs import swizzled_layout
from tilewright import cute, utils
from tilewright.atoms.wgmma import WgmmaAtom
from tilewright.cute.nvgpu import cpasync, warpgroup
from tilewright.cute.runtime import from_dlpack
from tilewright.ir.types import F16, F32

TILE = (16, 64)
ROWS = cute.make_layout(TILE, stride=(64, 1))


class Store:
    """Threads fill a tile in shared memory, TMA stores it; twice, with the same buffer."""

    def __init__(
        self, fence: str = "writers", barrier: bool = True, commit: bool = True, wait: str = "read", bulk: bool = False
    ) -> None:
        self.fence, self.barrier, self.commit, self.wait, self.bulk = fence, barrier, commit, wait, bulk

    @cute.jit
    def __call__(self, x: cute.Tensor, y: cute.Tensor):
        atom, tensor = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), y, ROWS, TILE)
        self.kernel(atom, tensor, x).launch(grid=(1, 1, 1), block=(64, 1, 1))

    @cute.kernel
    def kernel(self, atom: cute.CopyAtom, tensor: cute.Tensor, x: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        s = utils.SmemAllocator().allocate_tensor(cutlass.Float32, ROWS, 128)
        for k in cutlass.range_constexpr(2):
            if cutlass.const_expr(self.fence == "before"):
                cute.arch.fence_proxy("async.shared", space="cta")
            for i in cutlass.range(t, 1024, 64):
                s[i] = x[k, i]
            if cutlass.const_expr(self.fence == "writers"):
                cute.arch.fence_proxy("async.shared", space="cta")
            if cutlass.const_expr(self.fence == "one lane"):
                if t == 0:
                    cute.arch.fence_proxy("async.shared", space="cta")
            if cutlass.const_expr(self.barrier):
                cute.arch.sync_threads()
            if cutlass.const_expr(self.fence == "after the barrier"):
                cute.arch.fence_proxy("async.shared", space="cta")
            tile = cute.group_modes(cute.local_tile(tensor, TILE, (k, 0)), 0, 2)
            source, target = cpasync.tma_partition(atom, 0, cute.make_layout(1), cute.group_modes(s, 0, 2), tile)
            if warp == 0:
                if cutlass.const_expr(self.fence == "issuer"):
                    cute.arch.fence_proxy("async.shared", space="cta")
                cute.copy(atom, source, target)
                if cutlass.const_expr(self.commit):
                    cute.arch.cp_async_bulk_commit_group()
                if cutlass.const_expr(self.wait == "read"):
                    cute.arch.cp_async_bulk_wait_group(0, read=True)
                if cutlass.const_expr(self.wait == "one too few"):
                    cute.arch.cp_async_bulk_wait_group(1, read=True)
            if cutlass.const_expr(self.wait == "other warp"):
                if warp == 1:
                    cute.arch.cp_async_bulk_wait_group(0, read=True)
            cute.arch.sync_threads()
        if warp == 0:
            cute.arch.cp_async_bulk_commit_group()
            cute.arch.cp_async_bulk_wait_group(0)


def store(**how: Any) -> None:
    Store(**how)(numbers(2048).reshape(2, 1024), np.zeros((32, 64), np.float32))


COPY, WRITE = "cute.copy(atom, source, target)", "s[i] = x[k, i]"


@pair("proxy-fence", COPY, WRITE)
def a_tma_store_without_a_fence(bug: bool) -> None:
    store(fence="none" if bug else "writers")


@pair("proxy-fence", COPY, WRITE)
def a_proxy_fence_before_the_write(bug: bool) -> None:
    store(fence="before" if bug else "writers")


@pair("proxy-fence", COPY, WRITE)
def a_proxy_fence_by_the_issuing_warp_alone(bug: bool) -> None:
    store(fence="issuer" if bug else "writers")


@pair("proxy-fence", COPY, WRITE)
def a_proxy_fence_by_one_lane(bug: bool) -> None:
    store(fence="one lane" if bug else "writers")


@pair("proxy-fence", COPY, WRITE)
def a_proxy_fence_by_all_after_the_barrier(bug: bool) -> None:
    store(fence="after the barrier" if bug else "writers")


@pair("data-race", COPY, WRITE)
def a_tma_store_before_the_barrier(bug: bool) -> None:
    store(barrier=not bug)


@pair("data-race", COPY, WRITE)
def a_buffer_written_while_tma_reads_it(bug: bool) -> None:
    store(wait="none" if bug else "read")


@pair("data-race", COPY, WRITE)
def a_bulk_group_that_was_not_committed(bug: bool) -> None:
    store(commit=not bug)


@pair("data-race", COPY, WRITE)
def a_bulk_wait_that_leaves_one_group(bug: bool) -> None:
    store(wait="one too few" if bug else "read")


@pair("data-race", COPY, WRITE)
def a_bulk_wait_by_another_warp(bug: bool) -> None:
    store(wait="other warp" if bug else "read")


class Load:
    """TMA loads a tile over a buffer that threads have cleared; threads read it."""

    def __init__(self, wait: bool = True, size: int = 4096, fence: bool = True, init: str = "fence") -> None:
        self.wait, self.size, self.fence, self.init = wait, size, fence, init

    @cute.jit
    def __call__(self, x: cute.Tensor, y: cute.Tensor):
        atom, tensor = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), x, ROWS, TILE)
        self.kernel(atom, tensor, y).launch(grid=(1, 1, 1), block=(64, 1, 1))

    @cute.kernel
    def kernel(self, atom: cute.CopyAtom, tensor: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        smem = utils.SmemAllocator()
        full = smem.allocate_array(cutlass.Int64, 1)
        s = smem.allocate_tensor(cutlass.Float32, ROWS, 128)
        if t == 0:
            cute.arch.mbarrier_init(full, 1)
            if cutlass.const_expr(self.init != "no fence"):
                cute.arch.mbarrier_init_fence()
        for i in cutlass.range(t, 1024, 64):
            s[i] = 0.0
        if cutlass.const_expr(self.fence):
            cute.arch.fence_view_async_shared()
        cute.arch.sync_threads()
        tile = cute.group_modes(cute.local_tile(tensor, TILE, (0, 0)), 0, 2)
        target, source = cpasync.tma_partition(atom, 0, cute.make_layout(1), cute.group_modes(s, 0, 2), tile)
        if warp == 0:
            with cute.arch.elect_one():
                cute.arch.mbarrier_arrive_and_expect_tx(full, self.size)
            cute.copy(atom, source, target, tma_bar_ptr=full)
        if cutlass.const_expr(self.wait):
            cute.arch.mbarrier_wait(full, 0)
        for i in cutlass.range(t, 1024, 64):
            y[i] = s[i]
        cute.arch.mbarrier_wait(full, 0)


def load(**how: Any) -> None:
    Load(**how)(numbers(1024).reshape(16, 64), np.zeros(1024, np.float32))


LOAD = "cute.copy(atom, source, target, tma_bar_ptr=full)"


@pair("data-race", LOAD, "y[i] = s[i]")
def a_tile_that_is_read_before_tma_brought_it(bug: bool) -> None:
    load(wait=not bug)


@pair("proxy-fence", LOAD, "s[i] = 0.0")
def a_buffer_cleared_without_a_fence_before_tma(bug: bool) -> None:
    load(fence=not bug)


@pair("mbarrier-bytes", LOAD, "cute.arch.mbarrier_arrive_and_expect_tx(full, self.size)")
def fewer_bytes_than_tma_brings(bug: bool) -> None:
    load(size=2048 if bug else 4096)


@pair("mbarrier-bytes", LOAD, "cute.arch.mbarrier_arrive_and_expect_tx(full, self.size)")
def more_bytes_than_tma_brings(bug: bool) -> None:
    load(size=4097 if bug else 4096)


class Product:
    """One warpgroup multiplies two tiles, K in two steps; A comes from shared memory or from registers."""

    def __init__(self, mistake: str = "", source: str = "SS") -> None:
        self.mistake = mistake
        self.atom = WgmmaAtom((64, 64, 16), F32, F16, F16, source)

    @cute.jit
    def __call__(self, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
        self.kernel(a, b, c, cute.make_tiled_mma(self.atom, (1, 1, 1))).launch(grid=(1, 1, 1), block=(128, 1, 1))

    @cute.kernel
    def kernel(self, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, mma: cute.TiledMma):
        t, _, _ = cute.arch.thread_idx()
        smem = utils.SmemAllocator()
        layout = swizzled_layout("K", "SW64", 16, (64, 32), (0, 1))
        sA = smem.allocate_tensor(cutlass.Float16, layout, 1024)
        sB = smem.allocate_tensor(cutlass.Float16, layout, 1024)
        if cutlass.const_expr(self.mistake == "fence before"):
            cute.arch.fence_view_async_shared()
        for i in cutlass.range(t, 2048, 128):
            sA[i] = a[i]
            sB[i] = b[i]
        if cutlass.const_expr(self.mistake not in ("no fence", "fence before", "fence after")):
            cute.arch.fence_view_async_shared()
        if cutlass.const_expr(self.mistake != "no barrier"):
            cute.arch.sync_threads()
        if cutlass.const_expr(self.mistake == "fence after"):
            cute.arch.fence_view_async_shared()
        part = mma.get_slice(t)
        tCsA, tCsB, tCgC = part.partition_A(sA), part.partition_B(sB), part.partition_C(c)
        rA, rB = mma.make_fragment_A(tCsA), mma.make_fragment_B(tCsB)
        if cutlass.const_expr(self.atom.source == "RS"):
            cute.autovec_copy(tCsA, rA)
        acc = mma.make_fragment_C(tCgC)
        mma.set(warpgroup.Field.ACCUMULATE, False)
        warpgroup.fence()
        for k in cutlass.range_constexpr(2):
            cute.gemm(mma, acc, rA[None, None, k], rB[None, None, k], acc)
            mma.set(warpgroup.Field.ACCUMULATE, True)
            if cutlass.const_expr(self.mistake != "no commit" or k == 0):
                warpgroup.commit_group()
        if cutlass.const_expr(self.mistake == "operand"):
            rA.fill(0.0)
        if cutlass.const_expr(self.mistake == "buffer"):
            sB[t] = cutlass.Float16(0)
        if cutlass.const_expr(self.mistake == "early"):
            acc[0] = acc[0] * 2.0
        warpgroup.wait_group(1 if cutlass.const_expr(self.mistake == "one too few") else 0)
        if cutlass.const_expr(self.mistake != "no wait"):
            acc[0] = acc[0] * 2.0
        cute.autovec_copy(acc, tCgC)
        warpgroup.wait_group(0)


def product(mistake: str, source: str = "SS") -> None:
    ones = from_dlpack(np.ones((64, 32), np.float16), assumed_align=16)
    Product(mistake, source)(ones, ones, from_dlpack(np.zeros((64, 64), np.float32), assumed_align=16))


GEMM = "cute.gemm(mma, acc, rA[None, None, k], rB[None, None, k], acc)"


@pair("proxy-fence", GEMM, "sB[i] = b[i]")
def wgmma_of_a_tile_without_a_fence(bug: bool) -> None:
    product("no fence" if bug else "")


@pair("proxy-fence", GEMM, "sA[i] = a[i]")
def wgmma_with_the_fence_before_the_writes(bug: bool) -> None:
    product("fence before" if bug else "")


@pair("proxy-fence", GEMM, "sA[i] = a[i]")
def wgmma_with_the_fence_after_the_barrier(bug: bool) -> None:
    product("fence after" if bug else "")


@pair("data-race", GEMM, "sB[i] = b[i]")
def wgmma_before_the_other_warps_have_written(bug: bool) -> None:
    product("no barrier" if bug else "")


@pair("wgmma-registers", GEMM, "acc[0] = acc[0] * 2.0")
def accumulators_that_are_read_before_the_wait(bug: bool) -> None:
    product("early" if bug else "")


@pair("wgmma-registers", GEMM, "acc[0] = acc[0] * 2.0")
def a_wait_that_leaves_the_newest_product(bug: bool) -> None:
    product("one too few" if bug else "")


@pair("wgmma-registers", GEMM, "acc[0] = acc[0] * 2.0")
def a_product_that_was_not_committed(bug: bool) -> None:
    product("no commit" if bug else "")


@pair("wgmma-registers", GEMM, "rA.fill(0.0)")
def an_operand_in_registers_overwritten_too_early(bug: bool) -> None:
    product("operand" if bug else "", "RS")


@pair("data-race", GEMM, "sB[t] = cutlass.Float16(0)")
def a_tile_overwritten_while_wgmma_reads_it(bug: bool) -> None:
    product("buffer" if bug else "")
