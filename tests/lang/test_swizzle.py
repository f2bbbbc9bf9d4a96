"""Where swizzles count: a pointer's permutes byte addresses, a layout's permutes offsets in elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute, sim, utils
from tilewright.cute.nvgpu import warp
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ConstraintError

SWIZZLE = cute.make_swizzle(3, 4, 3)
TILE = cute.make_layout((64, 64), stride=(64, 1))


def allocated() -> Any:
    return utils.SmemAllocator().allocate_tensor(cutlass.Float16, TILE, byte_alignment=128, swizzle=SWIZZLE)


def of_a_struct() -> Any:
    @cute.struct
    class Storage:
        ticket: cutlass.Int32
        tile: cute.struct.Align[cute.struct.MemRange[cutlass.Float16, 64 * 64], 1024]

    return utils.SmemAllocator().allocate(Storage).tile.get_tensor(TILE, swizzle=SWIZZLE)


def recast() -> Any:
    space = utils.SmemAllocator().allocate(64 * 64 * 2, byte_alignment=1024)
    return cute.make_tensor(cute.recast_ptr(space, SWIZZLE, dtype=cutlass.Float16), TILE)


def of_a_layout() -> Any:
    layout = cute.make_composed_layout(cute.make_swizzle(3, 3, 3), 0, TILE)
    return utils.SmemAllocator().allocate_tensor(cutlass.Float16, layout)


def through_shared_memory(make: Any) -> tuple[np.ndarray, np.ndarray, int]:
    """A K-major tile goes into shared memory by 16-byte vectors and out by ldmatrix: (in, out, bank conflicts)."""
    mma = cute.make_tiled_mma(warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16)))

    @cute.kernel
    def kernel(x: cute.Tensor, out: cute.Tensor) -> None:
        t, _, _ = cute.arch.thread_idx()
        tile = make()
        vector = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Float16, num_bits_per_copy=128)
        store = cute.make_tiled_copy_tv(vector, cute.make_layout((4, 8), stride=(8, 1)), cute.make_layout((1, 8)))
        mine = store.get_slice(t)
        cute.copy(store, mine.partition_S(x), mine.partition_D(tile))
        cute.arch.sync_threads()
        atom = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), cutlass.Float16)
        load = cute.make_tiled_copy_A(atom, mma)
        fragment = mma.make_fragment_A(mma.get_slice(t).partition_A(tile))
        mine_s = load.get_slice(t)
        cute.copy(load, mine_s.partition_S(tile), mine_s.retile(fragment))
        cute.autovec_copy(fragment, mma.get_slice(t).partition_A(out))

    @cute.jit
    def host(x: cute.Tensor, out: cute.Tensor) -> None:
        kernel(x, out).launch(grid=(1, 1, 1), block=(32, 1, 1))

    x = np.arange(64 * 64, dtype=np.uint16).view(np.float16).reshape(64, 64)  # all different
    out = np.zeros_like(x)
    with sim.profile() as report:
        host(from_dlpack(x, assumed_align=16), from_dlpack(out))
    return x, out, report.kernels[0].bank_conflicts


@pytest.mark.parametrize("make", [allocated, of_a_struct, recast, of_a_layout])
def test_a_k_major_tile_has_no_bank_conflicts(make: Any) -> None:
    x, out, conflicts = through_shared_memory(make)
    np.testing.assert_array_equal(x, out)
    assert conflicts == 0


def test_the_bytes_are_where_the_hardware_puts_them() -> None:
    """Offset by offset: byte address = Sw<3,4,3>(2 * element offset), for each way to say it."""

    @cute.kernel
    def kernel(out: cute.Tensor) -> None:
        space = utils.SmemAllocator().allocate(1024, byte_alignment=1024)
        raw = cute.make_tensor(cute.recast_ptr(space, dtype=cutlass.Float16), cute.make_layout(512))
        for i in range(512):
            raw[i] = cutlass.Float16(i)
        seen = cute.make_tensor(cute.recast_ptr(space, SWIZZLE, dtype=cutlass.Float16), cute.make_layout(512))
        for i in range(512):
            out[i] = seen[i]

    @cute.jit
    def host(out: cute.Tensor) -> None:
        kernel(out).launch(grid=(1, 1, 1), block=(1, 1, 1))

    out = np.zeros(512, np.float16)
    host(from_dlpack(out))
    assert out.tolist() == [SWIZZLE(2 * i) // 2 for i in range(512)]


@pytest.mark.parametrize("bits", [0, 2, 3])
def test_another_swizzle_takes_the_place_of_the_first(bits: int) -> None:
    """Memory that held a tile of one swizzle serves another one: from its start, and from its second stage."""

    @cute.kernel
    def kernel(out: cute.Tensor) -> None:
        space = utils.SmemAllocator().allocate(2048, byte_alignment=1024)
        raw = cute.make_tensor(cute.recast_ptr(space, dtype=cutlass.Int32), cute.make_layout(512))
        for i in range(512):
            raw[i] = i
        first = cute.recast_ptr(space, SWIZZLE, dtype=cutlass.Float16)
        for stage in cutlass.range_constexpr(2):
            pointer = cute.recast_ptr(first + 512 * stage, cute.make_swizzle(bits, 4, 3), dtype=cutlass.Int32)
            seen = cute.make_tensor(pointer, cute.make_layout(256))
            for i in range(256):
                out[stage, i] = seen[i]

    @cute.jit
    def host(out: cute.Tensor) -> None:
        kernel(out).launch(grid=(1, 1, 1), block=(1, 1, 1))

    out = np.zeros((2, 256), np.int32)
    host(from_dlpack(out))
    swizzle = cute.make_swizzle(bits, 4, 3)
    assert out.tolist() == [[256 * stage + swizzle(4 * i) // 4 for i in range(256)] for stage in range(2)]


def test_a_swizzle_that_parts_the_bytes_of_an_element(stage: Any) -> None:
    space = utils.SmemAllocator().allocate(1024, byte_alignment=1024)
    with pytest.raises(ConstraintError, match=r"S<3,0,3> on bytes breaks up elements of 4 bytes"):
        cute.recast_ptr(space, cute.make_swizzle(3, 0, 3), dtype=cutlass.Float32)


def test_the_iterator_of_a_tensor_with_a_swizzled_layout_is_plain() -> None:
    """Its memory can be seen again, plainly or through any other swizzled layout; slices keep their offset."""
    swizzled = cute.make_composed_layout(cute.make_swizzle(3, 3, 3), 0, cute.make_layout((8, 64), stride=(64, 1)))
    other = cute.make_composed_layout(cute.make_swizzle(2, 3, 3), 0, cute.make_layout((16, 32), stride=(32, 1)))

    @cute.kernel
    def kernel(out: cute.Tensor) -> None:
        t = utils.SmemAllocator().allocate_tensor(cutlass.Float16, swizzled)
        raw = cute.make_tensor(t.iterator, cute.make_layout(512))
        for i in range(512):
            raw[i] = cutlass.Float16(i)
        same = cute.make_tensor(t.iterator, t.layout)
        again = cute.make_tensor(t.iterator, other)
        row, _, _ = cute.arch.thread_idx()
        part = t[row + 3, None]
        view = cute.make_tensor(part.iterator, part.layout)
        for i in range(512):
            out[0, i] = t[i]
            out[1, i] = same[i]
            out[2, i] = again[i]
        for i in range(64):
            out[3, i] = part[i]
            out[3, i + 64] = view[i]

    @cute.jit
    def host(out: cute.Tensor) -> None:
        kernel(out).launch(grid=(1, 1, 1), block=(1, 1, 1))

    out = np.zeros((4, 512), np.float16)
    host(from_dlpack(out))
    assert out[0].tolist() == out[1].tolist() == [swizzled(i) for i in range(512)]
    assert out[2].tolist() == [other(i) for i in range(512)]
    assert out[3, :64].tolist() == out[3, 64:128].tolist() == [swizzled(3, j) for j in range(64)]
