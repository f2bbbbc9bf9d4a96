"""Structs and the shared memory allocator: offsets, alignment, members, totals."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute, utils
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ArgumentError, ConstraintError
from tilewright.testing import per_thread


@cute.struct
class Inner:
    flag: cutlass.Int8
    pair: cute.struct.MemRange[cutlass.Int64, 2]


@cute.struct
class Storage:
    bars: cute.struct.MemRange[cutlass.Int64, 3]
    tile: cute.struct.Align[cute.struct.MemRange[cutlass.Float16, 512], 1024]
    ticket: cutlass.Int32
    inner: Inner


def test_layout_of_members() -> None:
    assert {name: offset for name, (_, offset) in Storage.fields.items()} == {
        "bars": 0,
        "tile": 1024,
        "ticket": 2048,
        "inner": 2056,
    }
    assert (Inner.size_in_bytes(), Inner.alignment()) == (24, 8)
    assert (Storage.size_in_bytes(), Storage.alignment()) == (3072, 1024)


def test_size_follows_local_names() -> None:
    count = 7

    @cute.struct
    class Local:
        data: cute.struct.MemRange[cutlass.Float32, count]

    assert Local.size_in_bytes() == 28


def test_functions_of_the_class_are_methods() -> None:
    @cute.struct
    class Stages:
        tile: cute.struct.MemRange[cutlass.Int32, 64]
        count: cutlass.Int32

        def plain(self, layout):
            return self.tile.get_tensor(layout)

        @cute.jit
        def put(self, t, x):
            self.plain(cute.make_layout(64))[t] = x
            if t == 0:
                self.count = x + 1

    def use(t):
        storage = utils.SmemAllocator().allocate(Stages)
        storage.put(t, 3 * t + 5)
        cute.arch.sync_warp()
        return storage.plain(cute.make_layout(64))[31 - t] + 1000 * storage.count

    assert Stages.size_in_bytes() == 260 and per_thread(use) == [6000 + 3 * (31 - t) + 5 for t in range(32)]


def test_wrong_declarations() -> None:
    with pytest.raises(ArgumentError, match="not a member type"):

        @cute.struct
        class _Wrong:
            x: list

    with pytest.raises(ArgumentError, match="annotates no members"):
        cute.struct(type("Empty", (), {}))
    with pytest.raises(ArgumentError, match="power of two"):
        _ = cute.struct.Align[cutlass.Int32, 12]


def test_allocations_follow_each_other(stage) -> None:
    smem = utils.SmemAllocator()
    raw = smem.allocate(100)
    number = smem.allocate(cutlass.Int32)
    array = smem.allocate_array(cutlass.Float16, 8, byte_alignment=16)
    again = utils.SmemAllocator()
    storage = again.allocate(Storage)
    offsets = [op.attrs["offset"] for op in stage.block.ops if op.opcode == "smem.alloc"]
    assert offsets == [0, 100, 112]
    assert (str(raw.dtype), str(number.dtype), array.alignment) == ("Uint8", "Int32", 16)
    assert storage.tile.data_ptr().alignment == 1024
    assert stage.builder.smem_bytes == 1024 + 3072


def test_tensors_check_their_range(stage) -> None:
    storage = utils.SmemAllocator().allocate(Storage)
    assert storage.tile.get_tensor(cute.make_layout((8, 64))).element_type is cutlass.Float16
    with pytest.raises(ConstraintError, match="needs 2048 bytes, but the range 'tile' has 1024"):
        storage.tile.get_tensor(cute.make_layout((16, 64)))
    with pytest.raises(AttributeError, match="it has bars, tile, ticket, inner"):
        _ = storage.tiles
    with pytest.raises(ConstraintError, match="cannot be assigned"):
        storage.tile = 3


def test_allocate_tensor_aligns_to_the_swizzle(stage) -> None:
    smem = utils.SmemAllocator()
    smem.allocate(16)
    layout = cute.make_composed_layout(cute.make_swizzle(3, 3, 3), 0, cute.make_layout((8, 64), stride=(64, 1)))
    tensor = smem.allocate_tensor(cutlass.Float16, layout, 16)
    outer = smem.allocate_tensor(cutlass.Float16, layout.outer, 16, cute.make_swizzle(3, 4, 3))
    assert tensor.iterator.alignment == outer.iterator.alignment == 1024
    assert tensor.layout == layout and tensor.iterator.swizzle is None
    assert outer.layout == layout.outer and str(outer.iterator.swizzle) == "S<3,4,3>"
    with pytest.raises(ConstraintError, match="static layout"):
        smem.allocate_tensor(cutlass.Float16, cute.make_layout((cutlass.Int32(stage.n), 4)))
    with pytest.raises(ConstraintError, match="the element type comes first: allocate_tensor.dtype, layout"):
        smem.allocate_tensor(cute.make_layout(8), cutlass.Float16)


def test_shared_struct_in_a_kernel() -> None:
    @cute.kernel
    def kernel(out: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        storage = utils.SmemAllocator().allocate(Storage)
        tile = storage.tile.get_tensor(cute.make_layout((8, 64), stride=(64, 1)), swizzle=cute.make_swizzle(3, 4, 3))
        tile[t % 8, t // 8] = cutlass.Float16(t)
        if t == 0:
            storage.ticket = 5
            storage.inner.pair[1] = 7
        cute.arch.sync_threads()
        out[t] = tile[t % 8, t // 8].to(cutlass.Float32) + storage.ticket + storage.inner.pair[1]

    @cute.jit
    def host(out: cute.Tensor):
        kernel(out).launch(grid=(1, 1, 1), block=(512, 1, 1))

    out = np.zeros(512, np.float32)
    host(from_dlpack(out))
    np.testing.assert_array_equal(out, np.arange(512) + 12)


def test_capacity() -> None:
    assert utils.get_smem_capacity_in_bytes("sm_90a") == 227 * 1024
    with pytest.raises(ArgumentError, match="unknown compute capability"):
        utils.get_smem_capacity_in_bytes("sm_11")


def test_a_swizzle_that_reaches_past_the_layout_stays_in_its_allocation() -> None:
    swizzle, plain = cute.make_swizzle(3, 3, 3), cute.make_layout((8, 56), stride=(64, 1))

    @cute.kernel
    def kernel(out: cute.Tensor) -> None:
        smem = utils.SmemAllocator()
        first = smem.allocate_tensor(cutlass.Float16, cute.make_composed_layout(swizzle, 0, plain))
        second = smem.allocate_tensor(cutlass.Float16, plain, swizzle=cute.make_swizzle(3, 4, 3))
        after = smem.allocate_tensor(cutlass.Float16, cute.make_layout(8))
        for i in cutlass.range_constexpr(8):
            after[i] = cutlass.Float16(7)
        for j in range(56):
            first[7, j] = cutlass.Float16(1)
            second[7, j] = cutlass.Float16(2)
        for i in cutlass.range_constexpr(8):
            out[i] = after[i] + first[7, 55]

    @cute.jit
    def host(out: cute.Tensor) -> None:
        kernel(out).launch(grid=(1, 1, 1), block=(1, 1, 1))

    out = np.zeros(8, np.float16)
    host(from_dlpack(out))
    assert out.tolist() == [8] * 8
    assert cute.size_in_bytes(cutlass.Float16, cute.make_composed_layout(swizzle, 0, plain)) == 1024


def test_a_swizzled_view_of_a_range_that_is_too_short(stage) -> None:
    @cute.struct
    class Short:
        tile: cute.struct.MemRange[cutlass.Float16, 504]

    plain = cute.make_layout((8, 56), stride=(64, 1))
    with pytest.raises(ConstraintError, match="needs 1024 bytes"):
        utils.SmemAllocator().allocate(Short).tile.get_tensor(plain, swizzle=cute.make_swizzle(3, 4, 3))


@cute.struct
class Boxes:
    bars: cute.struct.MemRange[cutlass.Int64, 3]
    a: cute.struct.Align[cute.struct.MemRange[cutlass.Float16, 512], 128]
    b: cute.struct.Align[cute.struct.MemRange[cutlass.Float16, 1024], 128]


@cute.struct
class Apart:
    a: cute.struct.Align[cute.struct.MemRange[cutlass.Float16, 512], 128]
    bars: cute.struct.MemRange[cutlass.Int64, 3]
    b: cute.struct.Align[cute.struct.MemRange[cutlass.Float16, 512], 128]


def test_tiles_of_a_struct_that_asks_for_128_bytes_may_be_swizzled(stage) -> None:
    """Mbarriers before them put them 128 bytes behind a block of the swizzle; the struct lies 896 bytes on."""
    plain, swizzle = cute.make_layout((8, 64), stride=(64, 1)), cute.make_swizzle(3, 4, 3)
    smem = utils.SmemAllocator()
    smem.allocate(8, 8)
    boxes = smem.allocate(Boxes)
    a, b = (tile.get_tensor(plain, swizzle=swizzle) for tile in (boxes.a, boxes.b))
    assert a.iterator.alignment == b.iterator.alignment == 1024 and boxes.bars.data_ptr().alignment == 128
    assert cute.arch.get_dyn_smem_size() == 1024 + 896 + Boxes.size_in_bytes() and Boxes.size_in_bytes() == 128 + 3072
    apart = smem.allocate(Apart)
    apart.a.get_tensor(plain)
    with pytest.raises(ConstraintError, match="permutes blocks of 1024 bytes"):
        apart.b.get_tensor(plain, swizzle=swizzle)
    left = utils.get_smem_capacity_in_bytes() - cute.arch.get_dyn_smem_size()
    smem.allocate(left - Boxes.size_in_bytes() - 256, 1)
    assert smem.allocate(Boxes).a.data_ptr().alignment < 1024, "not where it would not fit"


def test_a_member_is_an_mbarrier_by_itself() -> None:
    """A number that instructions work on is passed as it is: its address is meant."""

    @cute.struct
    class Barriers:
        full: cutlass.Int64
        empty: cutlass.Int64

    @cute.jit
    def meet(t):
        storage = utils.SmemAllocator().allocate(Barriers)
        if t == 0:
            cute.arch.mbarrier_init(storage.full, 32)
            cute.arch.mbarrier_init(storage.empty, 32)
        cute.arch.sync_threads()
        cute.arch.mbarrier_arrive(storage.empty)
        cute.arch.mbarrier_wait(storage.empty, 0)
        return storage.empty.toint() - storage.full.toint() + 100 * cute.arch.mbarrier_try_wait(storage.full, 1)

    assert per_thread(meet, 32) == [108] * 32
