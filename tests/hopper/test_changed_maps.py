"""Tensor maps that a kernel changes for tensors of run-time strides: right, or the simulator says what is wrong."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tests.check.tensor_maps import aligned
from tilewright import cute, utils
from tilewright.cute.nvgpu import cpasync
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import MachineError

BOX = (8, 32)
ROWS = cute.make_layout(BOX, stride=(32, 1))


def brought(other: np.ndarray[Any, Any], extents: tuple[int, int], strides: tuple[int, int], at: int = 0) -> Any:
    """The box that TMA brings from element ``at`` of ``other``, by the tensor map of a matrix with contiguous rows that
    the kernel changes for these extents and strides, all of them run-time numbers."""

    @cute.kernel
    def kernel(atom: cute.CopyAtom, tma: cute.Tensor, given: cute.Tensor, maps: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        smem = utils.SmemAllocator()
        full = smem.allocate_array(cutlass.Int64, 1)
        s = smem.allocate_tensor(cutlass.Float32, ROWS, 128)
        manager = utils.TensorMapManager(utils.TensorMapUpdateMode.GMEM, 128)
        place = manager.get_tensormap_ptr(maps.iterator)
        generic = manager.get_tensormap_ptr(maps.iterator, cute.AddressSpace.generic)
        if t == 0:
            cute.arch.mbarrier_init(full, 1)
            cute.arch.mbarrier_init_fence()
        cute.arch.sync_threads()
        manager.init_tensormap_from_atom(atom, place, 0)
        manager.fence_tensormap_initialization()
        manager.update_tensormap((given,), (atom,), (place,), 0)
        manager.fence_tensormap_update(generic)
        here = cute.group_modes(cute.local_tile(tma, BOX, (0, 0)), 0, 2)
        into, of = cpasync.tma_partition(atom, 0, cute.make_layout(1), cute.group_modes(s, 0, 2), here)
        with cute.arch.elect_one():
            cute.arch.mbarrier_arrive_and_expect_tx(full, 1024)
        cute.copy(atom, of, into, tma_bar_ptr=full, tma_desc_ptr=generic)
        cute.arch.mbarrier_wait(full, 0)
        for i in cutlass.range_constexpr(BOX[0]):
            y[i, t] = s[i, t]

    @cute.jit
    def host(x: cute.Tensor, other: cute.Tensor, numbers: tuple, maps: cute.Tensor, y: cute.Tensor):
        m, n, row, column, start = numbers
        given = cute.make_tensor(other.iterator + start, cute.make_layout((m, n), stride=(row, column)))
        atom, tma = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), x, ROWS, BOX)
        kernel(atom, tma, given, maps, y).launch(grid=1, block=32)

    y = np.zeros(BOX, np.float32)
    numbers = tuple(map(cutlass.Int32, (*extents, *strides, at)))
    tensors = [from_dlpack(x, assumed_align=16) for x in (np.zeros((8, 64), np.float32)[:, :32], other)]
    host(*tensors, numbers, from_dlpack(aligned((16,)), assumed_align=128), y)
    return y


OTHER = np.arange(4096, dtype=np.float32)


@pytest.mark.parametrize(
    ("extents", "strides", "at"),
    [((8, 32), (64, 1), 0), ((8, 32), (128, 1), 4), ((3, 20), (64, 1), 0), ((8, 1), (64, 7), 0)],
)
def test_the_tensor_that_a_changed_map_describes(extents: Any, strides: Any, at: int) -> None:
    """Elements outside of the tensor arrive as zeros; a mode of one element may have any stride."""
    m, n = extents
    expected = np.zeros(BOX, np.float32)
    expected[:m, :n] = OTHER[at:][np.add.outer(np.arange(m) * strides[0], np.arange(n) * strides[1])]
    np.testing.assert_array_equal(brought(OTHER, extents, strides, at), expected)


@pytest.mark.parametrize(
    ("strides", "at", "words"),
    [
        ((64, 2), 0, "update_tma_descriptor: mode 1 of (?,?):(?,?) x f32 has the stride 2, and TMA brings"),
        ((64, 0), 0, "update_tma_descriptor: mode 1 of (?,?):(?,?) x f32 has the stride 0, and TMA brings"),
        ((1, 64), 0, "update_tma_descriptor: mode 1 of (?,?):(?,?) x f32 has the stride 64, and TMA brings"),
        ((66, 1), 0, "tensormap.replace.global_stride 0: 264 bytes are not a stride that TMA takes"),
        ((64, 1), 1, "is not an address that TMA takes: tensors begin at a multiple of 16 bytes"),
    ],
)
def test_update_tensormap_refuses_strides_and_addresses(strides: Any, at: int, words: str) -> None:
    with pytest.raises(MachineError, match=re.escape(words)) as caught:
        brought(OTHER, (8, 32), strides, at)
    assert f"{__file__}:" in str(caught.value) and "manager.update_tensormap" in str(caught.value)
