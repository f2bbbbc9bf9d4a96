"""TMA copies of four rows that are not neighbours: ``tile::gather4`` and ``tile::scatter4``."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.experimental.cuda as cuda
from tests.blackwell.test_scaled import aligned
from tilewright import cute, sim
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ConstraintError, SimulationError
from tilewright.experimental import primitives as prims

COLUMNS = 32
MAPS = {"stride_order": (1, 0), "swizzle": cuda.TensorMapSwizzle.s64b}


def copies(
    rows: Any,
    to: Any,
    scatter: bool = True,
    box: int = 1,
    waits: bool = True,
    multicast: int = 0,
    count: int = 4,
    mode: Any = prims.TMALoadMode.TILE_GATHER4,
) -> Any:
    """A host function that brings ``rows`` of x to shared memory, from there to z in shared memory's order, and to the
    rows ``to`` of y. Mistakes: ``box`` rows in the box of the tensor map, no wait for the rows, other numbers of rows
    (``count``), another ``mode``."""

    @cute.kernel
    def kernel(load: Any, store: Any, z: cute.Tensor) -> None:
        t, _, _ = cute.arch.thread_idx()
        full = cutlass.Array(cutlass.Int64, 1, space=cutlass.AddressSpace.smem, alignment=8)
        tile = cutlass.Array(cutlass.Float16, 4 * COLUMNS, space=cutlass.AddressSpace.smem, alignment=1024)
        if t == 0:
            prims.mbarrier_init(full, 1)
            prims.fence_mbarrier_init()
            prims.mbarrier_arrive_expect_tx(full, 8 * COLUMNS)
            if cutlass.const_expr(multicast):
                prims.cp_async_bulk_tensor_shared_cluster_global(
                    tile, load.get_ptr(), (16, *rows), full, mode="tile_gather4", multicast_mask=multicast
                )
            else:
                prims.cp_async_bulk_tensor_shared_cta_global(tile, load.get_ptr(), (16, *rows[:count]), full, mode=mode)
        cute.arch.sync_threads()
        if cutlass.const_expr(waits):
            while not prims.mbarrier_try_wait_parity(full, 0):
                pass
        for i in range(t, 4 * COLUMNS, 32):
            z[i] = tile[i]
        if cutlass.const_expr(scatter):
            if t == 0:
                prims.cp_async_bulk_tensor_global_shared_cta(
                    store.get_ptr(), tile, (0, *to), mode=prims.TMAStoreMode.TILE_SCATTER4
                )
                prims.cp_async_bulk_commit_group()
                prims.cp_async_bulk_wait_group(0)

    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor) -> None:
        load, store = (
            cuda.create_tensor_map_tiled_from_view(matrix, box_dims=(box, COLUMNS), **MAPS) for matrix in (x, y)
        )
        kernel(load, store, z).launch(grid=(1, 1, 1), block=(32, 1, 1), cluster=(1, 1, 1))

    return host


def matrices() -> tuple[list[Any], list[Any]]:
    """x, y and z, as arrays and as tensors."""
    x = aligned(np.arange(16 * 64, dtype=np.float16).reshape(16, 64))
    y, z = aligned(np.zeros((8, COLUMNS), np.float16)), np.zeros(4 * COLUMNS, np.float16)
    return [x, y, z], [*(from_dlpack(a, assumed_align=16) for a in (x, y)), from_dlpack(z)]


def run(host: Any) -> list[Any]:
    arrays, tensors = matrices()
    with sim.options(check="all", arch="sm_100a"):
        host(*tensors)
    return arrays


@pytest.mark.parametrize("multicast", [0, 1])
def test_rows_go_where_their_coordinates_say(multicast: int) -> None:
    """A row outside of the matrix is zeros, and is not written."""
    x, y, z = run(copies((5, 0, 19, 9), (2, 7, 1, 8), multicast=multicast))
    wanted = np.stack([x[5, 16:48], x[0, 16:48], np.zeros(COLUMNS), x[9, 16:48]])
    # The swizzle of 64 bytes joins bits 4 and 5 of an address with bits 7 and 8.
    place = 2 * np.arange(4 * COLUMNS)
    np.testing.assert_array_equal(z[(place ^ (place >> 7 & 3) << 4) // 2], wanted.reshape(-1))
    written = np.zeros((8, COLUMNS))
    written[[2, 7, 1]] = wanted[:3]
    np.testing.assert_array_equal(y, written)
    with pytest.raises(SimulationError, match="tma.scatter4: the box begins at .0, -3., before the tensor"):
        run(copies((5, 0, 19, 9), (2, 7, 1, -3), multicast=multicast))


def test_tensor_maps_and_coordinates_of_other_copies() -> None:
    with pytest.raises(
        ConstraintError, match="tma.gather4 at .*: the tensor map has 2 modes, 4 rows in a box, and the copy"
    ):
        run(copies((5, 0, 3, 9), (2, 7, 1, 0), box=4))
    with pytest.raises(ConstraintError, match="tma.gather4 takes 5 coordinates, a column and four rows, not 4"):
        run(copies((5, 0, 3, 9), (2, 7, 1, 0), count=3))
    with pytest.raises(
        ConstraintError, match="tma.load.3d at .*: the tensor map has 2 modes, and the copy is of 3 coor"
    ):
        run(copies((5, 0), (2, 7, 1, 0), mode="tile"))


@pytest.mark.parametrize(
    ("arch", "multicast", "scatter"), [("sm_100a", 1, True), ("sm_103a", 0, True), ("sm_120a", 0, False)]
)
def test_the_text_is_assembled(arch: str, multicast: int, scatter: bool) -> None:
    pytest.importorskip("cuda.bindings.nvrtc")
    from tilewright.cuda import compile as build

    host = copies((5, 0, 19, 9), (2, 7, 1, 3), multicast=multicast, scatter=scatter)
    kernel = cute.compile(host, *matrices()[1]).kernels[0]
    text = build(kernel, arch).ptx
    assert re.search(r"cp\.async\.bulk\.tensor\.2d\.shared::c\w+\.global\.tile::gather4", text)
    assert scatter == ("cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4" in text)
    with pytest.raises(ConstraintError, match="needs sm_100"):
        build(kernel, "sm_90a")
