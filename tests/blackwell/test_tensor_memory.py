"""Tensor memory in the simulator: allocation, loads and stores of all shapes, waits, and the CUDA text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tests.check.pairs import launch
from tests.check.tensor_memory import COLUMNS, handed_on, stored
from tests.check.tensor_memory import freed as freed_by
from tilewright import cute, sim
from tilewright.atoms.tensor_memory_copy import tmem_copy_layouts
from tilewright.cute.nvgpu import tcgen05
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ConstraintError, SimulationError
from tilewright.experimental import primitives as prims

SHAPES = [("32x32b", n) for n in (1, 4, 32, 128)] + [("16x64b", 4), ("16x128b", 8), ("16x256b", 4), ("16x256b", 32)]
SHAPES += [("16x32bx2", 8), ("16x32bx2", 128)]


def op_of(kind: str, shape: str, repeat: int, packed: bool = False) -> Any:
    packing = {"Ld": tcgen05.Pack.PACK_16b_IN_32b, "St": tcgen05.Unpack.UNPACK_32b_IN_16b}[kind]
    return getattr(tcgen05, f"{kind}{shape}Op")(tcgen05.Repetition(repeat), *[packing] * packed)


@cute.jit
def allocated(columns: int, dtype: Any = cutlass.Float32) -> Any:
    """Columns that warp 0 allocates, as all warps see them, and the number of this warp."""
    holder = cute.arch.alloc_smem(cutlass.Int32, 1)
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    if warp == 0:
        cute.arch.alloc_tmem(columns, holder)
        cute.arch.relinquish_tmem_alloc_permit()
    cute.arch.sync_threads()
    return cute.arch.retrieve_tmem_ptr(dtype, 16, holder), warp


def through(store: Any, load: Any, columns: int, dtype: Any = cutlass.Float32) -> Any:
    """A kernel that carries a matrix (128, columns) through tensor memory, stored by one op and loaded by another; each
    element is a column."""
    each = 32 // dtype.width

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        base, warp = allocated(max(32, columns), dtype)
        t, _, _ = cute.arch.thread_idx()
        memory = cute.make_tensor(base, cute.make_layout((128, columns), stride=(each * 65536, each)))
        into = tcgen05.make_tmem_copy(cute.make_copy_atom(store, dtype), memory)
        mine = into.get_slice(t)
        given = cute.make_rmem_tensor(mine.partition_S(x).shape, dtype)
        cute.autovec_copy(mine.partition_S(x), given)
        cute.copy(into, given, mine.partition_D(memory))
        cute.arch.fence_view_async_tmem_store()
        cute.arch.sync_threads()
        out = tcgen05.make_tmem_copy(cute.make_copy_atom(load, dtype), memory)
        mine = out.get_slice(t)
        taken = cute.make_rmem_tensor(mine.partition_D(y).shape, dtype)
        cute.copy(out, mine.partition_S(memory), taken)
        cute.arch.fence_view_async_tmem_load()
        cute.autovec_copy(taken, mine.partition_D(y))
        cute.arch.sync_threads()
        if warp == 0:
            cute.arch.dealloc_tmem(base, max(32, columns))

    return kernel


@pytest.mark.parametrize("shape, repeat", SHAPES)
def test_tensor_memory_stored_by_one_shape_is_loaded_by_another(shape: str, repeat: int) -> None:
    columns = max(32, tmem_copy_layouts(shape, repeat).columns)
    x = np.random.default_rng(0).standard_normal((128, columns)).astype(np.float32)
    for store, load in ((shape, "32x32b"), ("32x32b", shape)):
        other = 8
        y = np.zeros_like(x)
        ops = (
            op_of("St", store, repeat if store == shape else other),
            op_of("Ld", load, repeat if load == shape else other),
        )
        launch(through(*ops, columns), from_dlpack(x), from_dlpack(y), block=128)
        np.testing.assert_array_equal(y, x)


@pytest.mark.parametrize(
    "shape, repeat", [("32x32b", 8), ("16x64b", 8), ("16x128b", 4), ("16x256b", 2), ("16x32bx2", 4)]
)
def test_halves_of_registers_are_columns_of_their_own(shape: str, repeat: int) -> None:
    x = np.random.default_rng(0).standard_normal((128, 32)).astype(np.float16)
    for store, load in ((shape, "32x32b"), ("32x32b", shape)):
        y = np.zeros_like(x)
        ops = (
            op_of("St", store, repeat if store == shape else 8, True),
            op_of("Ld", load, repeat if load == shape else 8, True),
        )
        launch(through(*ops, 32, cutlass.Float16), from_dlpack(x), from_dlpack(y), block=128)
        np.testing.assert_array_equal(y, x)
    with pytest.raises(ConstraintError, match="packs numbers of 16 bits, and the atom is for f32"):
        launch(through(*ops, 32), from_dlpack(x.astype(np.float32)), from_dlpack(x.astype(np.float32)), block=128)


def artifact(arch: str, *ops: Any, dtype: Any = cutlass.Float32) -> Any:
    pytest.importorskip("cuda.bindings.nvrtc")
    from tilewright.cuda import compile as build

    x, y = (from_dlpack(np.zeros((128, 64), dtype.ir_type.dtype)) for _ in range(2))
    kernel = through(*ops, 64, dtype)

    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor):
        kernel(x, y).launch(grid=(1, 1, 1), block=(128, 1, 1))

    return build(cute.compile(host, x, y).kernels[0], arch)


@pytest.mark.parametrize("arch", ["sm_100a", "sm_103a"])
@pytest.mark.parametrize("shape, repeat", [("32x32b", 64), ("16x64b", 2), ("16x128b", 4), ("16x256b", 8)])
def test_the_text_is_assembled(arch: str, shape: str, repeat: int) -> None:
    made = artifact(arch, op_of("St", shape, repeat), op_of("Ld", "32x32b", 64))
    assert made.spills == 0 and not made.warnings
    for name in (f"st.sync.aligned.{shape}.x{repeat}.b32", "ld.sync.aligned.32x32b.x64.b32", "alloc.cta_group::1"):
        assert f"tcgen05.{name}" in made.ptx


@pytest.mark.parametrize("arch", ["sm_100a", "sm_103a"])
def test_the_text_of_packed_ones_is_assembled(arch: str) -> None:
    ops = op_of("St", "16x32bx2", 8, True), op_of("Ld", "16x32bx2", 8, True)
    made = artifact(arch, *ops, dtype=cutlass.Float16)
    assert made.spills == 0 and all(f"tcgen05.{x}.sync.aligned.16x32bx2.x8" in made.ptx for x in ("ld", "st"))


@pytest.mark.parametrize("columns", [0, 16, 48, 1024])
def test_numbers_of_columns_that_cannot_be_allocated(columns: int) -> None:
    @cute.kernel
    def kernel(y: cute.Tensor):
        cute.arch.alloc_tmem(columns, cute.arch.alloc_smem(cutlass.Int32, 1))

    with pytest.raises(ConstraintError, match=f"tcgen05.alloc: {columns} columns cannot be allocated"):
        launch(kernel, np.zeros(1, np.float32), block=32)


def test_an_allocation_that_cannot_succeed_waits_forever() -> None:
    @cute.kernel
    def kernel(y: cute.Tensor):
        holder = cute.arch.alloc_smem(cutlass.Int32, 2)
        cute.arch.alloc_tmem(256, holder)
        cute.arch.alloc_tmem(512, holder + 1)

    with pytest.raises(SimulationError, match="columns of tensor memory to be freed"):
        launch(kernel, np.zeros(1, np.float32), block=32)


def test_a_block_that_gave_up_its_permit_allocates_no_more() -> None:
    @cute.kernel
    def kernel(y: cute.Tensor):
        holder = cute.arch.alloc_smem(cutlass.Int32, 2)
        cute.arch.relinquish_tmem_alloc_permit()
        cute.arch.alloc_tmem(32, holder)

    with pytest.raises(SimulationError, match="given up its permit"):
        launch(kernel, np.zeros(1, np.float32), block=32)


def test_columns_are_freed_as_they_were_allocated() -> None:
    @cute.kernel
    def kernel(y: cute.Tensor):
        base, _ = allocated(64)
        cute.arch.dealloc_tmem(base, 32)

    with pytest.raises(SimulationError, match="which are not allocated as such: 64 from column 0 on"):
        launch(kernel, np.zeros(1, np.float32), block=32)


def test_columns_that_were_freed_are_allocated_again() -> None:
    """The second allocation of all columns waits for the warp that frees the first."""

    @cute.kernel
    def kernel(y: cute.Tensor):
        holder = cute.arch.alloc_smem(cutlass.Int32, 2)
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        if warp == 0:
            cute.arch.alloc_tmem(512, holder)
        cute.arch.sync_threads()
        if warp == 0:
            cute.arch.alloc_tmem(512, holder + 1)
        else:
            cute.arch.dealloc_tmem(cute.arch.retrieve_tmem_ptr(cutlass.Float32, 16, holder), 512)
        cute.arch.sync_threads()
        if warp == 0:
            cute.arch.dealloc_tmem(cute.arch.retrieve_tmem_ptr(cutlass.Float32, 16, holder + 1), 512)
        y[0] = 1.0

    y = np.zeros(1, np.float32)
    launch(kernel, y, block=64)
    assert y[0] == 1


def test_elements_of_tensor_memory_are_not_loaded_by_themselves() -> None:
    @cute.kernel
    def kernel(y: cute.Tensor):
        base, _ = allocated(32)
        y[0] = cute.make_tensor(base, cute.make_layout((128, 32), stride=(65536, 1)))[0, 0]

    with pytest.raises(ConstraintError, match="make_tmem_copy"):
        launch(kernel, np.zeros(1, np.float32), block=32)


def test_addresses_of_smaller_elements() -> None:
    """The address of element 3 of lane 5 of 16 bits: column 1, upper half."""
    from tilewright.atoms.tensor_memory import lane_stride, tmem_address
    from tilewright.lang.tensors.tensor_memory import TensorMemory
    from tilewright.testing import per_thread

    def address(t: Any) -> Any:
        return TensorMemory(cutlass.Int32(0x00020010), cutlass.Float16, 0).__add__(5 * lane_stride(16) + t).toint()

    found = np.array(per_thread(address, 4), np.int32).view(np.uint32)
    assert found.tolist() == [tmem_address(0x00020010, 5 * lane_stride(16) + t, 16) for t in range(4)]


@pytest.mark.parametrize("leave_out", ["before after", "all before"])
def test_programs_without_any_fence_before_a_synchronisation_are_let_through_by_default(leave_out: str) -> None:
    """A barrier orders their accesses; that tcgen05 wants fences beside it is said where all is checked."""
    handed_on(leave_out)
    with sim.options(check="all"), pytest.raises(SimulationError, match="tcgen05-fence"):
        handed_on(leave_out)


def test_a_missing_fence_behind_a_synchronisation_is_reported_beside_fences_of_the_other_side() -> None:
    with pytest.raises(SimulationError, match="after_thread_sync"):
        handed_on("all after")


@pytest.mark.parametrize("half", [0, 16])
def test_an_address_without_the_lanes_of_a_warp_means_its_own(half: int) -> None:
    """Every warp passes the address of the whole block, as in DeepGEMM and cuDNN; ``half``: the upper 16 of its lanes.
    Lane i of tensor memory holds i in each column."""
    threads = 128

    @cute.kernel
    def kernel(y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        base, warp = allocated(COLUMNS)
        stored(base, t, cutlass.Float32(t))
        shape = "16x64b" if half else "32x32b"
        place = prims.make_tmem_ptr(base.toint() + (half << 16), cutlass.Float32)
        taken = prims.tcgen05_ld(shape, place, num=1)
        prims.tcgen05_wait("load")
        y[t] = taken[0]
        freed_by(base, warp, COLUMNS)

    y = np.zeros(threads, np.float32)
    launch(kernel, from_dlpack(y), block=threads)
    lane = np.arange(threads)
    # 16x64b: thread l holds row l // 4 + 8 * (l % 2) of its 16
    rows = lane if not half else lane // 32 * 32 + 16 + lane % 32 // 4 + 8 * (lane % 2)
    np.testing.assert_array_equal(y, rows)
