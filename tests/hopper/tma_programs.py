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

    def __init__(
        self, tile: tuple[int, ...], smem_layout: Any, ways: tuple[str, str] = ("tma", "tma"), in_bytes: bool = False
    ) -> None:
        """``in_bytes``: the swizzle of ``smem_layout`` is one of byte addresses."""
        self.tile, self.smem_layout, self.ways, self.in_bytes = tile, smem_layout, ways, in_bytes

    @cute.jit
    def __call__(self, a: cute.Tensor, b: cute.Tensor):
        load = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), a, self.smem_layout, self.tile)
        store = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), b, self.smem_layout, self.tile)
        tiles = cute.ceil_div(a.shape, self.tile)
        self.kernel(*load, *store, a, b).launch(grid=(cute.size(tiles), 1, 1), block=(64, 1, 1))

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
        tidx, _, _ = cute.arch.thread_idx()
        bidx, _, _ = cute.arch.block_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        smem = utils.SmemAllocator()
        full = smem.allocate_array(cutlass.Int64, 1)
        if cutlass.const_expr(self.in_bytes):
            sA = smem.allocate_tensor(a.element_type, self.smem_layout.outer, 1024, swizzle=self.smem_layout.inner)
        else:
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


class Reduce:
    """Every block combines its tile of ones, twos, ... with the same tile of ``out``."""

    def __init__(self, tile: tuple[int, int], op: Any) -> None:
        self.tile, self.op = tile, op
        self.smem_layout = cute.make_layout(tile, stride=(tile[1], 1))

    @cute.jit
    def __call__(self, out: cute.Tensor, given: cute.Tensor, shape: cutlass.Constexpr = None):
        """``shape``: of the part of ``out`` that the tensor map describes."""
        if cutlass.const_expr(shape is not None):
            out = cute.make_tensor(out.iterator, cute.make_layout(shape, stride=out.stride))
        atom, tensor = cpasync.make_tiled_tma_atom(self.op, out, self.smem_layout, self.tile)
        self.kernel(atom, tensor, given).launch(grid=(given.shape[0], 1, 1), block=(32, 1, 1))

    @cute.kernel
    def kernel(self, atom: cute.CopyAtom, tensor: cute.Tensor, given: cute.Tensor):
        lane, _, _ = cute.arch.thread_idx()
        bidx, _, _ = cute.arch.block_idx()
        smem = utils.SmemAllocator()
        tile = smem.allocate_tensor(given.element_type, self.smem_layout, 128)
        for i in cutlass.range(lane, cute.size(tile), 32):
            tile[i] = given[bidx, i]
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_warp()
        source, target = cpasync.tma_partition(
            atom,
            0,
            cute.make_layout(1),
            cute.group_modes(tile, 0, 2),
            cute.group_modes(cute.local_tile(tensor, self.tile, (0, 0)), 0, 2),
        )
        cute.copy(atom, source, target)
        cute.arch.cp_async_bulk_commit_group()
        cute.arch.cp_async_bulk_wait_group(0)


class Multicast:
    """The blocks of a cluster load parts of one tile for all of them; ``out[block]`` is the tile that block has."""

    def __init__(self, tile: tuple[int, int], smem_layout: Any, blocks: int) -> None:
        self.tile, self.smem_layout, self.blocks = tile, smem_layout, blocks

    @cute.jit
    def __call__(self, a: cute.Tensor, out: cute.Tensor):
        op = cpasync.CopyBulkTensorTileG2SMulticastOp()
        atom, tensor = cpasync.make_tiled_tma_atom(op, a, self.smem_layout, self.tile, num_multicast=self.blocks)
        self.kernel(atom, tensor, out).launch(grid=(out.shape[0], 1, 1), block=(64, 1, 1), cluster=(self.blocks, 1, 1))

    @cute.kernel
    def kernel(self, atom: cute.CopyAtom, tensor: cute.Tensor, out: cute.Tensor):
        tidx, _, _ = cute.arch.thread_idx()
        bidx, _, _ = cute.arch.block_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        rank = cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster())
        if warp == 0:
            cpasync.prefetch_descriptor(atom)
        smem = utils.SmemAllocator()
        full = smem.allocate_array(cutlass.Int64, 1)
        tile = smem.allocate_tensor(out.element_type, self.smem_layout, 1024)
        if tidx == 0:
            cute.arch.mbarrier_init(full, 1)
            cute.arch.mbarrier_init_fence()
        cute.arch.cluster_arrive_relaxed()
        cute.arch.cluster_wait()
        source = cute.group_modes(cute.local_tile(tensor, self.tile, (bidx // self.blocks, 0)), 0, 2)
        shared = cute.make_layout(self.blocks)
        target, source = cpasync.tma_partition(atom, rank, shared, cute.group_modes(tile, 0, 2), source)
        mask = cpasync.create_tma_multicast_mask(cute.make_layout((1, self.blocks, 1, 1)), (0, rank, 0, 0), 1)
        if warp == 0:
            cute.prefetch(atom, source)
            with cute.arch.elect_one():
                cute.arch.mbarrier_arrive_and_expect_tx(full, cute.size_in_bytes(out.element_type, self.smem_layout))
            cute.copy(atom, source, target, tma_bar_ptr=full, mcast_mask=mask)
        cute.arch.mbarrier_wait(full, 0)
        for i in cutlass.range(tidx, cute.size(tile), 64):
            out[bidx, i] = tile[i]
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()


class OfMma:
    """The stages of A and B as a tiled MMA partitions them, filled by atoms made for the MMA, and copied out."""

    def __init__(self, tiled_mma: Any, tiler: tuple[int, int, int], layouts: tuple[Any, Any]) -> None:
        self.mma, self.tiler, self.layouts = tiled_mma, tiler, layouts

    @cute.jit
    def __call__(self, a: cute.Tensor, b: cute.Tensor, a_out: cute.Tensor, b_out: cute.Tensor):
        op = cpasync.CopyBulkTensorTileG2SOp()
        layout_a, layout_b = (self.partitioned(i) for i in range(2))
        for_a = cute.nvgpu.make_tiled_tma_atom_A(op, a, layout_a, self.tiler, self.mma, (1, 1, 1, 1))
        for_b = cute.nvgpu.make_tiled_tma_atom_B(op, b, layout_b, self.tiler, self.mma, (1, 1, 1, 1))
        self.kernel(*for_a, *for_b, a_out, b_out).launch(grid=(1, 1, 1), block=(128, 1, 1))

    def partitioned(self, which: int) -> Any:
        """(MMA, MMA_M, MMA_K) of one stage."""
        part = (self.mma.get_slice(0).partition_A, self.mma.get_slice(0).partition_B)[which]
        found = part(self.layouts[which].outer)[0]
        return cute.make_composed_layout(self.layouts[which].inner, 0, found)

    @cute.kernel
    def kernel(
        self,
        atom_a: cute.CopyAtom,
        a: cute.Tensor,
        atom_b: cute.CopyAtom,
        b: cute.Tensor,
        a_out: cute.Tensor,
        b_out: cute.Tensor,
    ):
        tidx, _, _ = cute.arch.thread_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        smem = utils.SmemAllocator()
        full = smem.allocate_array(cutlass.Int64, 1)
        kind = a_out.element_type
        sA, sB = (smem.allocate_tensor(kind, layout, 1024) for layout in self.layouts)
        if tidx == 0:
            cute.arch.mbarrier_init(full, 1)
            cute.arch.mbarrier_init_fence()
        cute.arch.sync_threads()
        thread = self.mma.get_slice(0)
        one, tiler = cute.make_layout(1), self.tiler
        tAgA = thread.partition_A(cute.local_tile(a, tiler, (0, 0, 0), proj=(1, None, 1)))
        tBgB = thread.partition_B(cute.local_tile(b, tiler, (0, 0, 0), proj=(None, 1, 1)))
        tAsA, tAgA = cpasync.tma_partition(
            atom_a, 0, one, cute.group_modes(thread.partition_A(sA), 0, 3), cute.group_modes(tAgA, 0, 3)
        )
        tBsB, tBgB = cpasync.tma_partition(
            atom_b, 0, one, cute.group_modes(thread.partition_B(sB), 0, 3), cute.group_modes(tBgB, 0, 3)
        )
        if warp == 0:
            with cute.arch.elect_one():
                size = sum(cute.size_in_bytes(kind, layout) for layout in self.layouts)
                cute.arch.mbarrier_arrive_and_expect_tx(full, size)
            cute.copy(atom_a, tAgA, tAsA, tma_bar_ptr=full)
            cute.copy(atom_b, tBgB, tBsB, tma_bar_ptr=full)
        cute.arch.mbarrier_wait(full, 0)
        for i in cutlass.range(tidx, cute.size(sA), 128):
            a_out[i] = sA[i]
        for i in cutlass.range(tidx, cute.size(sB), 128):
            b_out[i] = sB[i]


class Grouped:
    """``out = a`` for several matrices by one atom, whose tensor map is changed in memory for each of them."""

    def __init__(self, tile: tuple[int, int], mode: utils.TensorMapUpdateMode) -> None:
        self.tile, self.mode = tile, mode

    @cute.jit
    def __call__(self, given: list, outs: list, workspace: cute.Tensor):
        layout = cute.make_layout(self.tile, stride=(self.tile[1], 1))
        op = cpasync.CopyBulkTensorTileG2SOp()
        atom, tensor = cpasync.make_tiled_tma_atom(op, given[0], layout, self.tile)
        self.kernel(atom, tensor, given, outs, workspace).launch(grid=(workspace.shape[0], 1, 1), block=(64, 1, 1))

    @cute.kernel
    def kernel(self, atom: cute.CopyAtom, first: cute.Tensor, given: list, outs: list, workspace: cute.Tensor):
        tidx, _, _ = cute.arch.thread_idx()
        bidx, _, _ = cute.arch.block_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        smem = utils.SmemAllocator()
        full = smem.allocate_array(cutlass.Int64, 1)
        in_shared = smem.allocate_array(cutlass.Int64, 16, 128)
        layout = cute.make_layout(self.tile, stride=(self.tile[1], 1))
        tile = smem.allocate_tensor(given[0].element_type, layout, 128)
        if tidx == 0:
            cute.arch.mbarrier_init(full, 1)
            cute.arch.mbarrier_init_fence()
        manager = utils.TensorMapManager(self.mode, 128)
        in_global = manager.get_tensormap_ptr(workspace[bidx, None].iterator)
        by = manager.get_tensormap_ptr(workspace[bidx, None].iterator, cute.AddressSpace.generic)
        place = in_shared if cutlass.const_expr(self.mode is utils.TensorMapUpdateMode.SMEM) else in_global
        manager.init_tensormap_from_atom(atom, place, 0)
        manager.fence_tensormap_initialization()
        cute.arch.sync_threads()
        phase = cutlass.Int32(0)
        for k in cutlass.range_constexpr(len(given)):
            manager.update_tensormap((given[k],), (atom,), (in_global,), 0, (in_shared,))
            if warp == 0:
                manager.fence_tensormap_update(by)
            tiles = cute.ceil_div(given[k].shape, self.tile)
            for i in cutlass.range(bidx, cute.size(tiles), workspace.shape[0]):
                where = cute.idx2crd(i, tiles)
                source = cute.group_modes(cute.local_tile(self.like(first, given[k]), self.tile, where), 0, 2)
                target, source = cpasync.tma_partition(
                    atom, 0, cute.make_layout(1), cute.group_modes(tile, 0, 2), source
                )
                if warp == 0:
                    with cute.arch.elect_one():
                        cute.arch.mbarrier_arrive_and_expect_tx(full, cute.size_in_bytes(tile.element_type, layout))
                    cute.copy(atom, source, target, tma_bar_ptr=full, tma_desc_ptr=by)
                cute.arch.mbarrier_wait(full, phase)
                out = cute.local_tile(outs[k], self.tile, where)
                known = cute.local_tile(cute.make_identity_tensor(outs[k].shape), self.tile, where)
                for j in cutlass.range(tidx, cute.size(tile), 64):
                    if cute.elem_less(known[j], outs[k].shape):
                        out[j] = tile[j]
                cute.arch.sync_threads()
                phase ^= 1

    @staticmethod
    def like(tensor: cute.Tensor, other: cute.Tensor) -> cute.Tensor:
        """The coordinates of ``tensor`` over the shape of ``other``."""
        return cute.make_tensor(tensor.iterator, cute.make_layout(other.shape, stride=tensor.stride))


class Bulk:
    """``out[block] = a[block]``, or combined with it, by bulk copies without a tensor map."""

    def __init__(self, store: Any = None, multicast: bool = False) -> None:
        self.store, self.multicast = store or cpasync.CopyBulkS2GOp(), multicast

    @cute.jit
    def __call__(self, a: cute.Tensor, out: cute.Tensor):
        cluster = (2, 1, 1) if self.multicast else (1, 1, 1)
        self.kernel(a, out).launch(grid=(out.shape[0], 1, 1), block=(32, 1, 1), cluster=cluster)

    @cute.kernel
    def kernel(self, a: cute.Tensor, out: cute.Tensor):
        bidx, _, _ = cute.arch.block_idx()
        rank = cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster())
        smem = utils.SmemAllocator()
        full = smem.allocate_array(cutlass.Int64, 1)
        row = smem.allocate_tensor(a.element_type, cute.make_layout(a.shape[1]), 128)
        with cute.arch.elect_one():
            cute.arch.mbarrier_init(full, 1)
            cute.arch.mbarrier_init_fence()
        cute.arch.sync_warp()
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
        op = cpasync.CopyBulkG2SMulticastOp() if self.multicast else cpasync.CopyBulkG2SOp()
        load = cute.make_copy_atom(op, a.element_type)
        store = cute.make_copy_atom(self.store, a.element_type)
        with cute.arch.elect_one():
            cute.arch.mbarrier_arrive_and_expect_tx(full, cute.size_in_bytes(a.element_type, row.layout))
            if cutlass.const_expr(self.multicast):  # the first block of each cluster loads for both
                if rank == 0:
                    cute.copy(load, a[bidx, None], row, mbar_ptr=full, mcast_mask=3)
            else:
                cute.copy(load, a[bidx, None], row, mbar_ptr=full)
        cute.arch.mbarrier_wait(full, 0)
        with cute.arch.elect_one():
            cute.copy(store, row, out[bidx, None])
            cute.arch.cp_async_bulk_commit_group()
            cute.arch.cp_async_bulk_wait_group(0)
        cute.arch.sync_warp()
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
