"""``cute.experimental``: kernels whose copies stay within their arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute
from tilewright.cute import experimental as cute_ext
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ConstraintError


@cute.experimental.kernel
def add(x: cute.Tensor, y: cute.Tensor, addend: cutlass.Float16, bits: cutlass.Constexpr) -> None:
    m, n, _ = cute.arch.block_idx()
    t, _, _ = cute.arch.thread_idx()
    tile = cute.core._pack_tile((32, 16))
    gx, gy = cute.zipped_divide(x, tile), cute.zipped_divide(y, tile)
    tv = cute.make_layout(((4, 8), (8, 1)), stride=((8, 32), (1, 256)))
    parts = [
        cute_ext.partition(g[(None, None), (m, n)], t, layout_tv=tv, tiler=cute.core._pack_tile((32, 8)))
        for g in (gx, gy)
    ]
    values = cute_ext.allocate(
        cutlass.Float16, cute.AddressSpace.rmem, cute.make_layout(((8, 1), (1, 2)), stride=((1, 8), (1, 8)))
    )
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), y.element_type, num_bits_per_copy=bits)
    cute_ext.copy(parts[0], values, copy_atom=atom)
    values.store(values.load() + addend)
    cute_ext.copy(values, parts[1], copy_atom=atom)


@cute.experimental.jit
def host(x: cute.Tensor, y: cute.Tensor, addend: cutlass.Float16, bits: cutlass.Constexpr) -> None:
    grid = (*cute.ceil_div(x.shape, (32, 16)), 1)
    add(x, y, addend, bits).launch(grid=grid, block=(32, 1, 1))


def columns(m: int, n: int, pitch: int) -> np.ndarray:
    """A column-major (m, n) view whose columns are ``pitch`` apart."""
    return np.arange(pitch * n).astype(np.float16).reshape(n, pitch)[:, :m].T


@pytest.mark.parametrize(("m", "n"), [(64, 32), (40, 19), (8, 2)])
@pytest.mark.parametrize("dynamic", [True, False])
def test_ragged_edges_are_left_out(m: int, n: int, dynamic: bool) -> None:
    x = columns(m, n, m)
    whole = np.full((n + 2, m), -1, np.float16)
    y = whole[:n].T
    a, b = from_dlpack(x, assumed_align=16), from_dlpack(y, assumed_align=16)
    if dynamic:
        a, b = (
            t.mark_compact_shape_dynamic(0, (1, 0), divisibility=8).mark_compact_shape_dynamic(1, (1, 0))
            for t in (a, b)
        )
    host(a, b, 2.0, 128)
    np.testing.assert_array_equal(y, x + np.float16(2))
    assert (whole[n:] == -1).all()


def test_extents_that_vectors_may_cross_are_copied_by_elements() -> None:
    x, whole = columns(37, 5, 40), np.full((5, 40), -1, np.float16)
    host(from_dlpack(x, assumed_align=16), from_dlpack(whole[:, :37].T, assumed_align=16), 1.0, 128)
    np.testing.assert_array_equal(whole[:, :37].T, x + np.float16(1))
    assert (whole[:, 37:] == -1).all()


@cute.experimental.kernel
def by_cp_async(x: cute.Tensor, y: cute.Tensor) -> None:
    t, _, _ = cute.arch.thread_idx()
    tv = cute.make_layout((32, 4), stride=(4, 1))
    buffer = cute_ext.allocate(cutlass.Float32, cute.AddressSpace.smem, cute.make_layout(128), alignment=16)
    atom = cute.make_copy_atom(cute.nvgpu.cpasync.CopyG2SOp(), cutlass.Float32, num_bits_per_copy=128)
    mine = cute_ext.partition(cute.local_tile(x, (128,), (0,)), t, layout_tv=tv, tiler=(128,))
    place = cute_ext.partition(buffer, t, layout_tv=tv, tiler=(128,))
    cute_ext.copy(mine, place, copy_atom=atom)
    cute.arch.cp_async_commit_group()
    cute.arch.cp_async_wait_group(0)
    out = cute_ext.partition(cute.local_tile(y, (128,), (0,)), t, layout_tv=tv, tiler=(128,))
    values = cute.make_rmem_tensor_like(place)
    cute.autovec_copy(place, values)
    one = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Float32, num_bits_per_copy=128)
    cute_ext.copy(values, out, copy_atom=one)


@cute.experimental.jit
def run_cp_async(x: cute.Tensor, y: cute.Tensor) -> None:
    by_cp_async(x, y).launch(grid=(1, 1, 1), block=(32, 1, 1))


def test_asynchronous_copies_write_zeros_outside() -> None:
    x, y = np.arange(1, 101, dtype=np.float32), np.full(128, -1, np.float32)
    run_cp_async(from_dlpack(x, assumed_align=16), from_dlpack(y, assumed_align=16))
    np.testing.assert_array_equal(y, np.concatenate([x, np.zeros(28, np.float32)]))


def test_an_instruction_that_would_cross_a_bound_is_refused() -> None:
    x, y = np.zeros(99, np.float32), np.zeros(128, np.float32)
    with pytest.raises(ConstraintError, match=r"moves 4 elements at once, and the extents .*divisibility=4"):
        run_cp_async(from_dlpack(x, assumed_align=16), from_dlpack(y, assumed_align=16))


def test_memories_that_a_kernel_cannot_allocate() -> None:
    with pytest.raises(ConstraintError, match=r"gmem is not a memory of a kernel's own"):
        cute_ext.allocate(cutlass.Float32, cute.AddressSpace.gmem, cute.make_layout(4))


def test_parts_pass_through_run_time_loops() -> None:
    @cute.experimental.kernel
    def rows(x: cute.Tensor, n: cutlass.Int32) -> None:
        t, _, _ = cute.arch.thread_idx()
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Int32, num_bits_per_copy=32)
        tiles: Any = cute.zipped_divide(x, (32,))
        part = tiles[None, 0]
        for i in cutlass.range(n, unroll=1):
            part = tiles[None, i]
            mine = cute_ext.partition(part, t, layout_tv=cute.make_layout((32, 1)), tiler=(32,))
            values = cute_ext.allocate(cutlass.Int32, cute.AddressSpace.rmem, cute.make_layout((1, 1)))
            cute_ext.copy(mine, values, copy_atom=atom)
            values.store(values.load() * 2)
            cute_ext.copy(values, mine, copy_atom=atom)

    @cute.experimental.jit
    def run(x: cute.Tensor, n: cutlass.Int32) -> None:
        rows(x, n).launch(grid=(1, 1, 1), block=(32, 1, 1))

    whole = np.arange(80, dtype=np.int32)
    run(from_dlpack(whole[:70]), 3)
    np.testing.assert_array_equal(whole, [*range(0, 140, 2), *range(70, 80)])


@pytest.mark.parametrize("extents", [(8, 16, 2), (7, 13, 2)])
def test_a_tile_of_two_modes_of_a_tensor_of_three(extents: tuple[int, int, int]) -> None:
    """What lies outside is left out along every mode; the third is sliced away."""

    @cute.experimental.kernel
    def move(x: cute.Tensor, y: cute.Tensor) -> None:
        m, n, batch = cute.arch.block_idx()
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Float32, num_bits_per_copy=32)
        cute_ext.copy(*(cute.local_tile(t, (4, 8), (m, n, batch)) for t in (x, y)), copy_atom=atom)

    @cute.experimental.jit
    def run(x: cute.Tensor, y: cute.Tensor) -> None:
        move(x, y).launch(grid=(2, 2, 2), block=(1, 1, 1))

    x, y = np.arange(2 * 8 * 16, dtype=np.float32).reshape(8, 16, 2), np.full((8, 16, 2), -1, np.float32)
    part = tuple(slice(extent) for extent in extents)
    run(from_dlpack(x[part]), from_dlpack(y[part]))
    np.testing.assert_array_equal(y[part], x[part])
    assert (y == -1).sum() == y.size - y[part].size
