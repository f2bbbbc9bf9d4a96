"""Four warps that multiply by wgmma, and who may say that their operands have been read."""

from __future__ import annotations

import numpy as np

import tilewright as cutlass
from tests.check.pairs import pair
from tests.hopper.warpgroup_programs import swizzled_layout
from tilewright import cute, utils
from tilewright.atoms.wgmma import WgmmaAtom
from tilewright.cute.nvgpu import warpgroup
from tilewright.cute.runtime import from_dlpack
from tilewright.ir.types import F16, F32


class Stage:
    """One warp fills a stage twice; ``groups`` warpgroups multiply it, and release it in between.

    ``waits``: who waits for the product (``all``, ``warp 0``, ``all, too late``); ``barrier``: whether the warps of a
    warpgroup meet before one of them releases; ``count``: the arrivals that make the stage empty.
    """

    def __init__(self, waits: str = "all", groups: int = 1, source: str = "SS", barrier: bool = False, count: int = 0):
        self.waits, self.groups, self.barrier, self.count = waits, groups, barrier, count or groups
        self.atom = WgmmaAtom((64, 64, 16), F32, F16, F16, source)

    @cute.jit
    def __call__(self, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
        threads = 128 * self.groups + 32
        self.kernel(a, b, c, cute.make_tiled_mma(self.atom, (1, 1, 1))).launch(grid=(1, 1, 1), block=(threads, 1, 1))

    @cute.kernel
    def kernel(self, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, mma: cute.TiledMma):
        t, _, _ = cute.arch.thread_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        smem = utils.SmemAllocator()
        layout = swizzled_layout("K", "SW64", 16, (64, 32), (0, 1))
        full = smem.allocate_array(cutlass.Int64, 2)
        empty = full + 1
        sA = smem.allocate_tensor(cutlass.Float16, layout, 1024)
        sB = smem.allocate_tensor(cutlass.Float16, layout, 1024)
        if t == 0:
            cute.arch.mbarrier_init(full, 32)
            cute.arch.mbarrier_init(empty, self.count)
        cute.arch.sync_threads()
        if warp == 4 * self.groups:
            for turn in cutlass.range_constexpr(2):
                if cutlass.const_expr(turn == 1):
                    cute.arch.mbarrier_wait(empty, 0)
                for i in cutlass.range(t % 32, 2048, 32):
                    sA[i] = a[i]
                    sB[i] = b[i]
                cute.arch.fence_view_async_shared()
                cute.arch.mbarrier_arrive(full)
        else:
            part = mma.get_slice(t % 128)
            tCsA, tCsB, tCgC = part.partition_A(sA), part.partition_B(sB), part.partition_C(c[None, None, t // 128])
            rA, rB = mma.make_fragment_A(tCsA), mma.make_fragment_B(tCsB)
            acc = mma.make_fragment_C(tCgC)
            mma.set(warpgroup.Field.ACCUMULATE, False)
            for turn in cutlass.range_constexpr(2):
                cute.arch.mbarrier_wait(full, turn)
                if cutlass.const_expr(self.atom.source == "RS"):
                    cute.autovec_copy(tCsA, rA)
                warpgroup.fence()
                for k in cutlass.range_constexpr(2):
                    cute.gemm(mma, acc, rA[None, None, k], rB[None, None, k], acc)
                    mma.set(warpgroup.Field.ACCUMULATE, True)
                warpgroup.commit_group()
                if cutlass.const_expr(self.waits == "all"):
                    warpgroup.wait_group(0)
                if cutlass.const_expr(self.waits == "warp 0" and turn == 0):
                    if warp == 0:
                        warpgroup.wait_group(0)
                if cutlass.const_expr(self.barrier):
                    cute.arch.barrier(barrier_id=1, number_of_threads=128)
                if cutlass.const_expr(turn == 0):
                    if t % 128 == 0 and t // 128 < self.count:
                        cute.arch.mbarrier_arrive(empty)
            warpgroup.wait_group(0)
            cute.autovec_copy(acc, tCgC)


def stage(groups: int = 1, **how) -> None:
    ones = from_dlpack(np.ones((64, 32), np.float16), assumed_align=16)
    c = np.zeros((64, 64, groups), np.float32)
    Stage(groups=groups, **how)(ones, ones, from_dlpack(c, assumed_align=16))
    assert (c == 64).all()


GEMM = "cute.gemm(mma, acc, rA[None, None, k], rB[None, None, k], acc)"


@pair("data-race", GEMM, "sA[i] = a[i]")
def a_stage_released_before_the_wait_for_the_product(bug: bool) -> None:
    stage(waits="all, too late" if bug else "all")


@pair("wgmma-aligned", "warpgroup.wait_group(0)")
def one_warp_waits_alone_and_releases_for_four(bug: bool) -> None:
    stage(waits="warp 0" if bug else "all")


@pair("data-race", GEMM, "sA[i] = a[i]")
def one_warpgroup_releases_for_two(bug: bool) -> None:
    stage(groups=2, count=1 if bug else 2)


@pair("data-race", "cute.autovec_copy(tCsA, rA)", "sA[i] = a[i]")
def one_warp_releases_what_the_threads_of_four_have_read(bug: bool) -> None:
    """A in registers: each thread has read it itself, which a wait for the product does not order."""
    stage(source="RS", barrier=not bug)


class Ends:
    """A last wait in which only some warps of the warpgroup take part, at the end of the kernel."""

    def __init__(self, bug: bool, hangs: bool = False, fence: bool = True) -> None:
        self.bug, self.hangs, self.fence = bug, hangs, fence
        self.atom = WgmmaAtom((64, 64, 16), F32, F16, F16, "SS")

    @cute.jit
    def __call__(self, a: cute.Tensor, c: cute.Tensor):
        self.kernel(a, c, cute.make_tiled_mma(self.atom, (1, 1, 1))).launch(grid=(1, 1, 1), block=(128, 1, 1))

    @cute.kernel
    def kernel(self, a: cute.Tensor, c: cute.Tensor, mma: cute.TiledMma):
        t, _, _ = cute.arch.thread_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        layout = swizzled_layout("K", "SW32", 16, (64, 16), (0, 1))
        s = utils.SmemAllocator().allocate_tensor(cutlass.Float16, layout, 1024)
        for i in cutlass.range(t, 1024, 128):
            s[i] = a[i]
        cute.arch.fence_view_async_shared()
        cute.arch.sync_threads()
        part = mma.get_slice(t)
        acc = mma.make_fragment_C(part.partition_C(c))
        mma.set(warpgroup.Field.ACCUMULATE, False)
        if cutlass.const_expr(self.fence):
            warpgroup.fence()
        cute.gemm(mma, acc, mma.make_fragment_A(part.partition_A(s)), mma.make_fragment_B(part.partition_B(s)), acc)
        warpgroup.commit_group()
        if warp < 2 or cutlass.const_expr(not self.bug):
            warpgroup.wait_group(0)
        if cutlass.const_expr(self.hangs):
            warpgroup.fence()
            cute.arch.barrier(barrier_id=1, number_of_threads=256)
        if warp < 2:
            cute.autovec_copy(acc, part.partition_C(c))


@pair("wgmma-aligned", "warpgroup.wait_group(0)")
def two_warps_never_wait_for_the_product(bug: bool) -> None:
    ends(bug)


@pair("wgmma-fence", "cute.gemm(mma, acc, mma.make_fragment_A(part.partition_A(s))", "acc = mma.make_fragment_C(")
def a_first_product_without_a_fence(bug: bool) -> None:
    ends(bug=False, fence=not bug)


def ends(bug: bool, hangs: bool = False, fence: bool = True) -> None:
    a = from_dlpack(np.ones((64, 16), np.float16), assumed_align=16)
    Ends(bug, hangs, fence)(a, from_dlpack(np.zeros((64, 64), np.float32), assumed_align=16))


class Begins:
    """Two blocks, each with two tiles of accumulators: the first block adds to zeros, the second one begins anew.
    ``anew``: whether it does; ``tiles``: how many of them are multiplied."""

    def __init__(self, anew: bool = True, tiles: int = 2):
        self.anew, self.tiles = anew, tiles
        self.atom = WgmmaAtom((64, 64, 16), F32, F16, F16, "SS")

    @cute.jit
    def __call__(self, a: cute.Tensor, c: cute.Tensor):
        self.kernel(a, c, cute.make_tiled_mma(self.atom, (1, 1, 1))).launch(grid=(2, 1, 1), block=(128, 1, 1))

    @cute.kernel
    def kernel(self, a: cute.Tensor, c: cute.Tensor, mma: cute.TiledMma):
        t, _, _ = cute.arch.thread_idx()
        block, _, _ = cute.arch.block_idx()
        layout = swizzled_layout("K", "SW32", 16, (128, 16), (0, 1))
        s = utils.SmemAllocator().allocate_tensor(cutlass.Float16, layout, 1024)
        for i in cutlass.range(t, 2048, 128):
            s[i] = a[i]
        cute.arch.fence_view_async_shared()
        cute.arch.sync_threads()
        part = mma.get_slice(t)
        rA, rB = mma.make_fragment_A(part.partition_A(s)), mma.make_fragment_B(part.partition_B(s))
        acc = mma.make_fragment_C(part.partition_C(c[None, None, 0]))  # (V, M, N): two tiles of M
        if block == 0:
            acc.fill(0.0)
        mma.set(warpgroup.Field.ACCUMULATE, block == 0 or cutlass.const_expr(not self.anew))
        warpgroup.fence()
        for m in cutlass.range_constexpr(self.tiles):
            cute.gemm(mma, acc[None, m, 0], rA[None, m, 0], rB[None, 0, 0], acc[None, m, 0])
        warpgroup.commit_group()
        warpgroup.wait_group(0)
        cute.autovec_copy(acc, part.partition_C(c[None, None, block]))


def begins(bug: bool, **how) -> None:
    a = from_dlpack(np.ones((128, 16), np.float16), assumed_align=16)
    c = np.zeros((128, 64, 2), np.float32, order="F")
    Begins(**how)(a, from_dlpack(c, assumed_align=16))
    assert bug or (c == 16).all()


RESULT = "cute.autovec_copy(acc, part.partition_C(c[None, None, block]))"


@pair("uninitialised", RESULT, "acc = mma.make_fragment_C(part.partition_C(c[None")
def one_of_two_blocks_adds_to_accumulators_never_written(bug: bool) -> None:
    begins(bug, anew=not bug)


@pair("uninitialised", RESULT, "acc = mma.make_fragment_C(part.partition_C(c[None")
def accumulators_of_a_tile_that_is_not_multiplied(bug: bool) -> None:
    begins(bug, tiles=1 if bug else 2)
