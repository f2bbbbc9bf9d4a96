"""The async proxy beside what is not plainly written to shared memory: copies by cp.async, and global memory."""

from __future__ import annotations

import numpy as np

import tilewright as cutlass
from tests.check.pairs import numbers, pair
from tilewright import cute, pipeline, utils
from tilewright.cute.nvgpu import OperandMajorMode, cpasync, warpgroup
from tilewright.cute.runtime import from_dlpack
from tilewright.utils import hopper_helpers

TILE = (64, 64, 64)
ROW = utils.LayoutEnum.ROW_MAJOR


class Copied:
    """128 threads copy A and B by cp.async for 128 others, which multiply by wgmma."""

    def __init__(self, fence: str) -> None:
        self.fence = fence

    @cute.jit
    def __call__(self, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
        major = OperandMajorMode.K
        tiled_mma = hopper_helpers.make_trivial_tiled_mma(
            a.element_type, b.element_type, major, major, cutlass.Float32, atom_layout_mnk=(1, 1, 1), tiler_mn=(64, 64)
        )
        self.kernel(a, b, c, tiled_mma).launch(grid=(1, 1, 1), block=(256, 1, 1))

    @cute.kernel
    def kernel(self, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, tiled_mma: cute.TiledMma):
        t, _, _ = cute.arch.thread_idx()
        smem = utils.SmemAllocator()
        layouts = [
            make(ROW, TILE, cutlass.Float16, 1)
            for make in (hopper_helpers.make_smem_layout_a, hopper_helpers.make_smem_layout_b)
        ]
        sA, sB = [smem.allocate_tensor(cutlass.Float16, x.outer, 1024, swizzle=x.inner) for x in layouts]
        group = pipeline.CooperativeGroup(pipeline.Agent.Thread, 128)
        ring = pipeline.PipelineCpAsync.create(num_stages=1, producer_group=group, consumer_group=group)
        producer, consumer = ring.make_participants()
        if t >= 128:
            atom = cute.make_copy_atom(cpasync.CopyG2SOp(), cutlass.Float16, num_bits_per_copy=128)
            threads = cute.make_layout((16, 8), stride=(8, 1))
            copy = cute.make_tiled_copy_tv(atom, threads, cute.make_layout((1, 8))).get_slice(t - 128)
            stage = producer.acquire_and_advance()
            for x, s in ((a, sA), (b, sB)):
                cute.copy(atom, copy.partition_S(x), copy.partition_D(s[None, None, 0]))
            if cutlass.const_expr(self.fence == "before the copies have landed"):
                cute.arch.fence_view_async_shared()
            stage.commit()
        else:
            thread = tiled_mma.get_slice(t)
            fA = tiled_mma.make_fragment_A(thread.partition_A(sA))
            fB = tiled_mma.make_fragment_B(thread.partition_B(sB))
            target = thread.partition_C(c)
            acc = tiled_mma.make_fragment_C(target)
            tiled_mma.set(warpgroup.Field.ACCUMULATE, False)
            consumer.wait_and_advance()
            if cutlass.const_expr(self.fence == "by those who multiply"):
                cute.arch.fence_view_async_shared()
            warpgroup.fence()
            cute.gemm(tiled_mma, acc, fA[None, None, None, 0], fB[None, None, None, 0], acc)
            warpgroup.commit_group()
            warpgroup.wait_group(0)
            cute.autovec_copy(acc, target)


GEMM = "cute.gemm(tiled_mma, acc, fA[None, None, None, 0], fB[None, None, None, 0], acc)"


def copied(fence: str) -> None:
    a, b = (from_dlpack(np.ones((64, 64), np.float16), assumed_align=16) for _ in range(2))
    Copied(fence)(a, b, from_dlpack(np.zeros((64, 64), np.float32), assumed_align=16))


@pair("proxy-fence", GEMM, "cute.copy(atom, copy.partition_S(x), copy.partition_D(s[None, None, 0]))")
def wgmma_of_what_cp_async_brought(bug: bool) -> None:
    copied("none" if bug else "by those who multiply")


@pair("proxy-fence", GEMM, "cute.copy(atom, copy.partition_S(x), copy.partition_D(s[None, None, 0]))")
def a_proxy_fence_before_cp_async_has_landed(bug: bool) -> None:
    copied("before the copies have landed" if bug else "by those who multiply")


class Through:
    """Threads write an array in global memory, TMA loads a tile of it in the same kernel."""

    layout = cute.make_layout((16, 32), stride=(32, 1))

    def __init__(self, fence: str, read: bool, part: bool) -> None:
        self.fence, self.read, self.part = fence, read, part

    @cute.jit
    def __call__(self, x: cute.Tensor, y: cute.Tensor):
        atom, tensor = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), x, self.layout, (16, 32))
        self.kernel(atom, tensor, x, y).launch(grid=(1, 1, 1), block=(64, 1, 1))

    @cute.kernel
    def kernel(self, atom: cute.CopyAtom, tensor: cute.Tensor, x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        smem = utils.SmemAllocator()
        full = smem.allocate_array(cutlass.Int64, 1)
        s = smem.allocate_tensor(cutlass.Float32, self.layout, 128)
        if t == 0:
            cute.arch.mbarrier_init(full, 1)
            cute.arch.mbarrier_init_fence()
        for i in cutlass.range(4 if cutlass.const_expr(self.part) else 8):
            x[2 * i + t // 32, t % 32] = cutlass.Float32(i)
        if cutlass.const_expr(self.fence == "shared"):
            cute.arch.fence_proxy("async.shared", space="cta")
        if cutlass.const_expr(self.fence == "global"):
            cute.arch.fence_proxy("async.global")
        cute.arch.sync_threads()
        if cutlass.const_expr(self.read):
            y[t // 32, t % 32] = x[t // 32, t % 32]  # what threads only read after the fence needs no other
            cute.arch.sync_threads()
        if cutlass.const_expr(self.part):
            x[16 + t // 32, t % 32] = 0.0  # outside of the tile: no fence is needed for it
        tile = cute.group_modes(cute.local_tile(tensor, (16, 32), (0, 0)), 0, 2)
        target, source = cpasync.tma_partition(atom, 0, cute.make_layout(1), cute.group_modes(s, 0, 2), tile)
        if t < 32:
            with cute.arch.elect_one():
                cute.arch.mbarrier_arrive_and_expect_tx(full, 2048)
            cute.copy(atom, source, target, tma_bar_ptr=full)
        cute.arch.mbarrier_wait(full, 0)
        for i in cutlass.range(8):
            y[2 * i + t // 32, t % 32] = s[2 * i + t // 32, t % 32]


def through(fence: str, read: bool = False, part: bool = False) -> None:
    x, y = (from_dlpack(numbers(1024).reshape(32, 32), assumed_align=16) for _ in range(2))
    Through(fence, read, part)(x, y)


FETCH, FILL = "cute.copy(atom, source, target, tma_bar_ptr=full)", "x[2 * i + t // 32, t % 32] = cutlass.Float32(i)"


@pair("proxy-fence", FETCH, FILL)
def a_tma_load_of_what_this_kernel_wrote(bug: bool) -> None:
    through("none" if bug else "global", read=True)


@pair("proxy-fence", FETCH, FILL)
def a_fence_for_shared_memory_where_global_was_written(bug: bool) -> None:
    through("shared" if bug else "global")


@pair("proxy-fence", FETCH, FILL)
def a_tma_load_of_a_tile_that_this_kernel_wrote_in_part(bug: bool) -> None:
    """Of the rest of the tile nothing is asked, whatever threads write elsewhere after the fence."""
    through("none" if bug else "global", part=True)
