"""Tensor maps that kernels copy and change: by one lane, or by all lanes of a warp with equal values."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilewright as cutlass
from tests.check.pairs import numbers, pair
from tilewright import cute, utils
from tilewright.cute.nvgpu import cpasync
from tilewright.cute.runtime import from_dlpack

BOX = (8, 32)
ROWS = cute.make_layout(BOX, stride=(32, 1))


def aligned(shape: tuple[int, ...]) -> Any:
    """int64 zeros at a multiple of 128 bytes, as tensor maps need it."""
    count = int(np.prod(shape)) * 8
    raw = np.zeros(count + 128, np.uint8)
    start = -raw.ctypes.data % 128
    return raw[start : start + count].view(np.int64).reshape(shape)


def updated(in_shared: bool, sync: bool, fences: int = 1) -> None:
    """In each of two blocks lane 0 copies an atom's tensor map, all lanes of warp 0 let it describe another tensor, and
    TMA copies by it. ``sync``: a barrier of the warp after the copy of the map. ``fences``: how often it is
    acquired."""

    @cute.kernel
    def kernel(atom: cute.CopyAtom, tma: cute.Tensor, other: cute.Tensor, maps: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        smem = utils.SmemAllocator()
        full = smem.allocate_array(cutlass.Int64, 1)
        s = smem.allocate_tensor(cutlass.Float32, ROWS, 128)
        mine = smem.allocate_tensor(cutlass.Int64, cute.make_layout(16), 128)
        manager = utils.TensorMapManager(utils.TensorMapUpdateMode.GMEM, 128)
        place = manager.get_tensormap_ptr(maps[b, None].iterator)
        generic = manager.get_tensormap_ptr(maps[b, None].iterator, cute.AddressSpace.generic)
        if t == 0:
            cute.arch.mbarrier_init(full, 1)
            cute.arch.mbarrier_init_fence()
        cute.arch.sync_threads()
        if cute.arch.make_warp_uniform(cute.arch.warp_idx()) == 0:
            target = mine.iterator if cutlass.const_expr(in_shared) else place
            with cute.arch.elect_one():
                cpasync.copy_tensormap(atom, target)
            if cutlass.const_expr(sync):
                cute.arch.sync_warp()
            cpasync.update_tma_descriptor(atom, other, target)
            if cutlass.const_expr(in_shared):
                cute.arch.sync_warp()
                cpasync.cp_fence_tma_desc_release(place, mine.iterator)
            else:
                cpasync.fence_tma_desc_release()
            for _ in cutlass.range_constexpr(fences):
                cpasync.fence_tma_desc_acquire(generic)
            here = cute.group_modes(cute.local_tile(tma, BOX, (0, 0)), 0, 2)
            into, of = cpasync.tma_partition(atom, 0, cute.make_layout(1), cute.group_modes(s, 0, 2), here)
            with cute.arch.elect_one():
                cute.arch.mbarrier_arrive_and_expect_tx(full, 1024)
            cute.copy(atom, of, into, tma_bar_ptr=full, tma_desc_ptr=generic)
        cute.arch.mbarrier_wait(full, 0)
        for i in cutlass.range_constexpr(4):
            k = i * 64 + t
            y[b, k] = s[k // 32, k % 32]

    @cute.jit
    def host(x: cute.Tensor, other: cute.Tensor, maps: cute.Tensor, y: cute.Tensor):
        atom, tma = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), x, ROWS, BOX)
        kernel(atom, tma, other, maps, y).launch(grid=(2, 1, 1), block=(64, 1, 1))

    first, other = np.zeros((8, 64), np.float32), numbers(512).reshape(8, 64)
    y = np.zeros((2, 256), np.float32)
    tensors = [from_dlpack(x[:, :32], assumed_align=16) for x in (first, other)]
    host(*tensors, from_dlpack(aligned((2, 16)), assumed_align=128), y)
    assert not sync or (y.reshape(2, *BOX) == other[:, :32]).all()


@pair("data-race", "cpasync.copy_tensormap(atom, target)", "cpasync.update_tma_descriptor(atom, other, target)")
def a_warp_that_changes_a_tensor_map_in_global_memory_that_one_lane_copies(bug: bool) -> None:
    updated(False, sync=not bug)


@pair("data-race", "cpasync.copy_tensormap(atom, target)", "cpasync.update_tma_descriptor(atom, other, target)")
def a_warp_that_changes_a_tensor_map_in_shared_memory_that_one_lane_copies(bug: bool) -> None:
    updated(True, sync=not bug, fences=2)
