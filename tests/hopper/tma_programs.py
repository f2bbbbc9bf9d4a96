"""Programs that copy by TMA, for both machines."""

from __future__ import annotations

from typing import Any

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import utils
from tilewright.cute.nvgpu import cpasync


class Through:
    """``b = a`` by tiles through shared memory: load and store by TMA, or one of them by threads (``ways``).

    Each block copies one tile: warp 0 issues, the others wait.
    """

    def __init__(self, tile: tuple[int, ...], smem_layout: Any, ways: tuple[str, str] = ("tma", "tma")) -> None:
        self.tile, self.smem_layout, self.ways = tile, smem_layout, ways

    @cute.jit
    def __call__(self, a: cute.Tensor, b: cute.Tensor):
        load = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), a, self.smem_layout, self.tile)
        store = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), b, self.smem_layout, self.tile)
        tiles = cute.ceil_div(a.shape, self.tile)
        self.kernel(*load, *store, a, b).launch(grid=(cute.size(tiles), 1, 1), block=(64, 1, 1))

    @cute.kernel
    def kernel(
        self, load: cute.CopyAtom, tma_a: cute.Tensor, store: cute.CopyAtom, tma_b: cute.Tensor, a: cute.Tensor,
        b: cute.Tensor,
    ):  # fmt: skip
        tidx, _, _ = cute.arch.thread_idx()
        bidx, _, _ = cute.arch.block_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        smem = utils.SmemAllocator()
        full = smem.allocate_array(cutlass.Int64, 1)
        sA = smem.allocate_tensor(a.element_type, self.smem_layout, 1024)
        if tidx == 0:
            cute.arch.mbarrier_init(full, 1)
            cute.arch.mbarrier_init_fence()
        cute.arch.sync_threads()
        tile = cute.idx2crd(bidx, cute.ceil_div(a.shape, self.tile))
        whole = len(self.tile)
        if cutlass.const_expr(self.ways[0] == "tma"):
            gA = cute.group_modes(cute.local_tile(tma_a, self.tile, tile), 0, whole)
            tAsA, tAgA = cpasync.tma_partition(load, 0, cute.make_layout(1), cute.group_modes(sA, 0, whole), gA)
            if warp == 0:
                with cute.arch.elect_one():
                    cute.arch.mbarrier_arrive_and_expect_tx(full, cute.size_in_bytes(a.element_type, self.smem_layout))
                cute.copy(load, tAgA, tAsA, tma_bar_ptr=full)
            cute.arch.mbarrier_wait(full, 0)
        else:
            self.by_threads(cute.local_tile(a, self.tile, tile), sA, tidx)
            cute.arch.fence_proxy("async.shared")
            cute.arch.sync_threads()
        if cutlass.const_expr(self.ways[1] == "tma"):
            gB = cute.group_modes(cute.local_tile(tma_b, self.tile, tile), 0, whole)
            tBsB, tBgB = cpasync.tma_partition(store, 0, cute.make_layout(1), cute.group_modes(sA, 0, whole), gB)
            if warp == 0:
                cute.copy(store, tBsB, tBgB)
                cute.arch.cp_async_bulk_commit_group()
                cute.arch.cp_async_bulk_wait_group(0, read=True)
        else:
            self.by_threads(sA, cute.local_tile(b, self.tile, tile), tidx)

    @cute.jit
    def by_threads(self, source: cute.Tensor, target: cute.Tensor, tidx: cutlass.Int32):
        """One element after another: what one machine's TMA wrote is read through the swizzled layout."""
        for i in cutlass.range(tidx, cute.size(source), 64):
            target[i] = source[i]
