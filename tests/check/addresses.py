"""Addresses that are made of slices at run-time coordinates: matrix descriptors, tensor memory, tiles, swizzled rows.

Behind each tensor lies another one that is written, too, so that nothing but the wrong coordinate is to be seen.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tilewright as cutlass
from tests.check.pairs import launch, numbers, pair
from tests.check.tensor_cores import COLUMNS, DEPTH, OP, ROWS, fill
from tests.check.tensor_memory import allocated, freed, parts, stored, sum_of_a_lane
from tilewright import cute, utils
from tilewright.atoms.wgmma import WgmmaAtom
from tilewright.cute.nvgpu import tcgen05, warpgroup
from tilewright.cute.runtime import from_dlpack
from tilewright.experimental import primitives as prims
from tilewright.ir.types import F16, F32

STAGES = 2


def ones(*shape: int) -> Any:
    return from_dlpack(np.ones(shape, np.float32), assumed_align=16)


def place(bug: bool, last: int = STAGES) -> Any:
    """An array with the coordinate that a kernel reads: the last one, or in the bug the one behind it."""
    return from_dlpack(np.array([last - 1 + bug], np.int32))


@cute.jit
def ring(mma: Any, which: Any, extent: Any) -> Any:
    """A ring of stages of an operand, and the tensor of one more stage that has its memory, too."""
    atom = tcgen05.make_smem_layout_atom(tcgen05.SmemLayoutAtomKind.K_INTER, cutlass.Float16)
    shape = mma.partition_shape(which, (extent, DEPTH))
    every = tcgen05.tile_to_mma_shape(atom, (*shape, STAGES + 1))
    memory = utils.SmemAllocator().allocate_tensor(cutlass.Float16, every, 128)
    return cute.make_tensor(memory.iterator, tcgen05.tile_to_mma_shape(atom, (*shape, STAGES))), memory


@pair("bounds", "cute.gemm(mma, sums, part_a[None, None, None, k], part_b[None, None, None, 0], sums)")
def an_mma_reads_a_stage_past_the_ring(bug: bool) -> None:
    """The descriptor's address is that of the stage; the unit reads it later."""

    @cute.kernel
    def kernel(stage: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        base, warp = allocated(COLUMNS)
        done = cute.arch.alloc_smem(cutlass.Int64, 1)
        if t == 0:
            cute.arch.mbarrier_init(done, 1)
        cute.arch.mbarrier_init_fence()
        mma = cute.make_tiled_mma(OP)
        (a, every_a), (b, every_b) = ring(mma, "A", ROWS), ring(mma, "B", COLUMNS)
        fill(every_a, 1.0, t)
        fill(every_b, 1.0, t)
        sums = cute.make_tensor(base, mma.make_fragment_C(mma.partition_shape_C((ROWS, COLUMNS))).layout)
        part_a, part_b = mma.make_fragment_A(a), mma.make_fragment_B(b)
        mma.set(tcgen05.Field.ACCUMULATE, False)
        k = stage[0]
        if warp == 0:
            cute.gemm(mma, sums, part_a[None, None, None, k], part_b[None, None, None, 0], sums)
            with cute.arch.elect_one():
                tcgen05.commit(done)
        cute.arch.mbarrier_wait(done, 0)
        cute.arch.tcgen05_fence_after_thread_sync()
        y[t] = sum_of_a_lane(base, t)
        freed(base, warp, COLUMNS)

    y = np.zeros(128, np.float32)
    launch(kernel, place(bug), from_dlpack(y), block=128)


GEMM = "cute.gemm(mma, acc, of_a, of_b, acc)"


def products_of_warpgroup(bug: bool, slice_first: bool) -> None:
    atom = WgmmaAtom((64, 64, 16), F32, F16, F16, "SS")

    @cute.kernel
    def kernel(stage: cute.Tensor, c: cute.Tensor, mma: cute.TiledMma):
        t, _, _ = cute.arch.thread_idx()
        kind = warpgroup.make_smem_layout_atom(warpgroup.SmemLayoutAtomKind.K_SW32, cutlass.Float16)
        every = cute.tile_to_shape(kind, (64, 16, STAGES + 1), (0, 1, 2))
        memory = utils.SmemAllocator().allocate_tensor(cutlass.Float16, every.outer, 1024, every.inner)
        tiles = cute.make_tensor(memory.iterator, cute.tile_to_shape(kind, (64, 16, STAGES), (0, 1, 2)).outer)
        for i in range(t, cute.size(memory), 128):
            memory[i] = cutlass.Float16(1.0)
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_threads()
        part, k = mma.get_slice(t), stage[0]
        if cutlass.const_expr(slice_first):
            of_a = mma.make_fragment_A(part.partition_A(tiles[None, None, k]))
        else:
            of_a = mma.make_fragment_A(part.partition_A(tiles))[None, None, None, k]
        of_b = mma.make_fragment_B(part.partition_B(tiles[None, None, 0]))
        mine = part.partition_C(c)
        acc = mma.make_fragment_C(mine)
        acc.fill(0.0)
        warpgroup.fence()
        cute.gemm(mma, acc, of_a, of_b, acc)
        warpgroup.commit_group()
        warpgroup.wait_group(0)
        cute.autovec_copy(acc, mine)

    @cute.jit
    def host(stage: cute.Tensor, c: cute.Tensor):
        kernel(stage, c, cute.make_tiled_mma(atom, (1, 1, 1))).launch(grid=(1, 1, 1), block=(128, 1, 1))

    c = np.zeros((64, 64), np.float32)
    host(place(bug), from_dlpack(c, assumed_align=16))
    assert (c == 16).all()


@pair(
    "bounds",
    "cute.gemm(mma, acc, of_a, of_b, acc)",
    "of_a = mma.make_fragment_A(part.partition_A(tiles))[None, None, None, k]",
)
def a_wgmma_reads_a_stage_past_the_ring(bug: bool) -> None:
    products_of_warpgroup(bug, slice_first=False)


@pair(
    "bounds",
    "cute.gemm(mma, acc, of_a, of_b, acc)",
    "of_a = mma.make_fragment_A(part.partition_A(tiles[None, None, k]))",
)
def a_descriptor_is_made_of_a_stage_past_the_ring(bug: bool) -> None:
    products_of_warpgroup(bug, slice_first=True)


SUMS = "sums = cute.make_tensor(cute.recast_ptr(base, dtype=dtype), layout)[None, None, stage[0]]"


def stages_of_sums(bug: bool, dtype: Any) -> None:
    @cute.kernel
    def kernel(stage: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        base, warp = allocated(128)
        for k in cutlass.range_constexpr(4):
            stored(base + 32 * k, t, 1.0)
        per = 32 // dtype.width
        layout = cute.make_layout((128, COLUMNS, STAGES), stride=(65536 * per, per, COLUMNS * per))
        sums = cute.make_tensor(cute.recast_ptr(base, dtype=dtype), layout)[None, None, stage[0]]
        load, part, taken = parts(cute.recast_ptr(sums.iterator, dtype=cutlass.Float32), t)
        cute.copy(load, part, taken)
        cute.arch.fence_view_async_tmem_load()
        y[t] = taken.load().reduce(cute.ReductionOp.ADD, cutlass.Float32(0.0), 0)
        freed(base, warp, 128)

    y = np.zeros(128, np.float32)
    launch(kernel, place(bug), from_dlpack(y), block=128)


@pair("bounds", "cute.copy(load, part, taken)", SUMS)
def sums_loaded_from_a_stage_that_they_do_not_have(bug: bool) -> None:
    stages_of_sums(bug, cutlass.Float32)


@pair("bounds", "cute.copy(load, part, taken)", SUMS)
def a_stage_past_the_end_of_numbers_of_16_bits_in_tensor_memory(bug: bool) -> None:
    """Two of them are in a column, so that the address is turned to count them."""
    stages_of_sums(bug, cutlass.Float16)


def tiles(bug: bool, dynamic: bool) -> None:
    """The tile behind the last one of a row is in the next rows."""

    @cute.kernel
    def kernel(at: cute.Tensor, x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        tile = cute.local_tile(x, (4, 8), (0, at[0]))
        y[t] = tile[t // 8, t % 8]

    x = from_dlpack(np.ones((8, 24), np.float32))
    launch(kernel, place(bug, 3), x.mark_layout_dynamic() if dynamic else x, numbers(32), block=32)


@pair("bounds", "y[t] = tile[t // 8, t % 8]", "tile = cute.local_tile(x, (4, 8), (0, at[0]))")
def a_tile_behind_the_last_one_of_a_row(bug: bool) -> None:
    tiles(bug, dynamic=False)


@pair("bounds", "y[t] = tile[t // 8, t % 8]", "tile = cute.local_tile(x, (4, 8), (0, at[0]))")
def a_tile_behind_the_last_one_of_a_row_of_run_time_extent(bug: bool) -> None:
    tiles(bug, dynamic=True)


@pair("bounds", "y[t] = row[t]")
def a_row_under_a_swizzle_that_its_tensor_does_not_have(bug: bool) -> None:
    """The row moves inside of the span of the swizzle: its offset is added where an element is read."""

    @cute.kernel
    def kernel(at: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        memory = cute.recast_ptr(cute.arch.alloc_smem(cutlass.Float16, 8 * 32, 1024), cute.make_swizzle(2, 4, 3))
        every = cute.make_tensor(memory, cute.make_layout((8, 32), stride=(32, 1)))
        swizzled = cute.make_tensor(memory, cute.make_layout((6, 32), stride=(32, 1)))
        for k in cutlass.range_constexpr(8):
            every[k, t] = cutlass.Float16(1.0)
        row = swizzled[at[0], None]
        y[t] = row[t]

    launch(kernel, place(bug, 6), numbers(32, np.float16), block=32)


@pair("bounds", "y[t] = row.load().to(cutlass.Float32)", "row = rows[at[0], None]")
def a_row_of_numbers_of_4_bits_that_their_tensor_does_not_have(bug: bool) -> None:
    @cute.kernel
    def kernel(at: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        memory = cute.arch.alloc_smem(cutlass.Float4E2M1FN, 4 * 64, 16)
        every = cute.make_tensor(cute.recast_ptr(memory, dtype=cutlass.Uint8), cute.make_layout(128))
        rows = cute.make_tensor(memory, cute.make_layout((3, 64), stride=(64, 1)))
        for k in cutlass.range_constexpr(4):
            every[32 * k + t] = cutlass.Uint8(0x22)
        cute.arch.sync_threads()
        row = rows[at[0], None]
        y[t] = row.load().to(cutlass.Float32).reduce(cute.ReductionOp.ADD, cutlass.Float32(0.0), 0)

    launch(kernel, place(bug, 3), numbers(32), block=32)


def described(bug: bool, turns: int, from_start: bool = False) -> None:
    """A descriptor is built of a pointer, and moved by numbers: to the stage ``turns`` further on. ``from_start``: the
    pointer is one to all shared memory, moved to the operand."""

    @cute.kernel
    def kernel(y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        base, warp = allocated(COLUMNS)
        done = cute.arch.alloc_smem(cutlass.Int64, 1)
        if t == 0:
            cute.arch.mbarrier_init(done, 1)
        cute.arch.mbarrier_init_fence()
        used = -(-cute.arch.get_dyn_smem_size() // 128) * 128
        a, _, b = (cute.arch.alloc_smem(cutlass.Float16, n * DEPTH, 128) for n in (STAGES * ROWS, ROWS, COLUMNS))
        if cutlass.const_expr(from_start):
            a = cute.arch.get_dyn_smem(cutlass.Float16) + used // 2
        every = cute.make_tensor(a, cute.make_layout(((STAGES + 1) * ROWS + COLUMNS) * DEPTH))
        fill(every, 1.0, t)
        if warp == 0:
            how: Any = {"c_dtype": cutlass.Float32, "a_dtype": cutlass.Float16, "b_dtype": cutlass.Float16}
            word = prims.Tcgen05InstrDesc.build(m_dim=ROWS, n_dim=COLUMNS, **how)
            plain = {"leading_byte_offset": 128, "stride_byte_offset": 256, "layout": prims.Tcgen05SmemSwizzle.NONE}
            desc_a = prims.Tcgen05SmemDesc.build(a, **plain)
            desc_b = prims.Tcgen05SmemDesc.build(b, **plain)
            sums = prims.make_tmem_ptr(base.toint(), cutlass.Float32)
            for _ in range(turns):
                desc_a = desc_a + ROWS * DEPTH * 2 // 16
            if prims.elect_sync():
                prims.tcgen05_mma("f16", "cta_1", sums, desc_a, desc_b, word, False)
                prims.tcgen05_commit(done)
        cute.arch.mbarrier_wait(done, 0)
        cute.arch.tcgen05_fence_after_thread_sync()
        y[t] = sum_of_a_lane(base, t)
        freed(base, warp, COLUMNS)

    y = np.zeros(128, np.float32)
    launch(kernel, from_dlpack(y), block=128)


MMA = 'prims.tcgen05_mma("f16", "cta_1", sums, desc_a, desc_b, word, False)'


@pair("bounds", MMA, "a, _, b = (cute.arch.alloc_smem(")
def a_descriptor_that_a_loop_moves_past_its_allocation(bug: bool) -> None:
    described(bug, turns=STAGES - 1 + bug)
