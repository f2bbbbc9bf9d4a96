"""``utils.TmemAllocator``: one warp allocates and frees for all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tests.blackwell.test_tensor_memory import op_of
from tests.check.pairs import launch
from tilewright import cute, pipeline, sim, utils
from tilewright.cute.nvgpu import tcgen05
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ArgumentError, ConstraintError

COLUMNS = 48


def program(warp: int) -> Any:
    """Threads store their number to a row of tensor memory and read it back, with the columns of warp ``warp``."""

    @cute.kernel
    def kernel(y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        barrier = pipeline.NamedBarrier(barrier_id=1, num_threads=128)
        tmem = utils.TmemAllocator(cute.arch.alloc_smem(cutlass.Int32, 1), barrier, allocator_warp_id=warp)
        tmem.allocate(64)
        tmem.relinquish_alloc_permit()
        tmem.wait_for_alloc()
        base = tmem.retrieve_ptr(cutlass.Float32)
        memory = cute.make_tensor(base + 16, cute.make_layout((128, COLUMNS), stride=(65536, 1)))
        assert utils.get_num_tmem_alloc_cols(memory) == 64
        assert utils.get_num_tmem_alloc_cols([memory, memory], rounding=False) == 2 * COLUMNS
        assert tcgen05.find_tmem_tensor_col_offset(memory) == COLUMNS
        store = tcgen05.make_tmem_copy(cute.make_copy_atom(op_of("St", "32x32b", 16), cutlass.Float32), memory)
        load = tcgen05.make_tmem_copy(cute.make_copy_atom(op_of("Ld", "32x32b", 16), cutlass.Float32), memory)
        assert tcgen05.is_tmem_store(store) and tcgen05.is_tmem_load(load)
        assert not tcgen05.is_tmem_load(store) and not tcgen05.is_tmem_store(load)
        part = store.get_slice(t).partition_D(memory)
        given = cute.make_rmem_tensor(load.get_slice(t).partition_D(y).shape, cutlass.Float32)
        given.fill(cutlass.Float32(t))
        cute.copy(store, given, part)
        cute.arch.fence_view_async_tmem_store()
        cute.copy(load, load.get_slice(t).partition_S(memory), given)
        cute.arch.fence_view_async_tmem_load()
        cute.autovec_copy(given, load.get_slice(t).partition_D(y))
        barrier.arrive_and_wait()
        tmem.free(base)

    return kernel


@pytest.mark.parametrize("warp", [0, 3])
def test_columns_allocated_by_one_warp_serve_all_warps(warp: int) -> None:
    y = np.zeros((128, COLUMNS), np.float32)
    with sim.options(check="all"):
        launch(program(warp), from_dlpack(y), block=128)
    np.testing.assert_array_equal(y, np.arange(128)[:, None] + np.zeros((1, COLUMNS)))


@pytest.mark.parametrize("columns", [(16,), (96,), (256, 512)])
def test_columns_that_cannot_be_allocated_are_refused(columns: tuple[int, ...]) -> None:
    @cute.kernel
    def kernel(y: cute.Tensor):
        tmem = utils.TmemAllocator(cute.arch.alloc_smem(cutlass.Int32, 1), pipeline.NamedBarrier(1, 128))
        for count in columns:
            tmem.allocate(count)

    with pytest.raises(ConstraintError, match=f"TmemAllocator: {columns[-1]} columns beside"):
        launch(kernel, np.zeros(1, np.float32), block=128)


def test_tensors_of_other_memory_have_no_columns() -> None:
    @cute.kernel
    def kernel(y: cute.Tensor):
        utils.get_num_tmem_alloc_cols(y)

    with pytest.raises(ConstraintError, match="find_tmem_tensor_col_offset takes a static tensor of tensor memory"):
        launch(kernel, np.zeros(1, np.float32), block=32)


def test_more_columns_than_there_are() -> None:
    @cute.kernel
    def kernel(y: cute.Tensor):
        base = cute.arch.retrieve_tmem_ptr(cutlass.Float32, 16, cute.arch.alloc_smem(cutlass.Int32, 1))
        utils.get_num_tmem_alloc_cols([cute.make_tensor(base, cute.make_layout((128, 300), stride=(65536, 1)))] * 2)

    with pytest.raises(ConstraintError, match="600 columns are needed, and there are 512"):
        launch(kernel, np.zeros(1, np.float32), block=32)


def test_reserved_columns_are_given_away_one_after_another() -> None:
    """Two tensors of a pool, of 32 and of 16 bits, keep what each thread stores to both."""

    @cute.kernel
    def kernel(y: cute.Tensor, z: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        barrier = pipeline.NamedBarrier(barrier_id=1, num_threads=128)
        tmem = utils.TmemAllocator(barrier_for_retrieve=barrier)
        pool = tmem.reserve(64)
        wide = pool.allocate_tensor(cute.make_layout((128, 32), stride=(65536, 1)), cutlass.Float32)
        narrow = pool.allocate_tensor(cute.make_layout((128, 32), stride=(2 * 65536, 1)), cutlass.Float16)
        assert (pool.current_offset, pool.remaining_cols, pool.total_cols) == (48, 16, 64)
        held = []
        for memory, out, repeat in ((wide, y, 32), (narrow, z, 16)):
            dtype = memory.element_type
            put, get = (
                tcgen05.make_tmem_copy(cute.make_copy_atom(op_of(kind, "32x32b", repeat), dtype), memory).get_slice(t)
                for kind in ("St", "Ld")
            )
            given = cute.make_rmem_tensor(put.partition_S(out).shape, dtype)
            for i in cutlass.range_constexpr(cute.size(given)):
                given[i] = dtype(t + i if repeat == 32 else t - i)
            cute.copy(put, given, put.partition_D(memory))
            held.append((get, memory, out, given))
        cute.arch.fence_view_async_tmem_store()
        for get, memory, out, given in held:
            cute.copy(get, get.partition_S(memory), given)
            cute.arch.fence_view_async_tmem_load()
            cute.autovec_copy(given, get.partition_D(out))
        barrier.arrive_and_wait()
        tmem.free(pool.base_ptr)

    y, z = np.zeros((128, 32), np.float32), np.zeros((128, 32), np.float16)
    with sim.options(check="all"):
        launch(kernel, from_dlpack(y), from_dlpack(z), block=128)
    rows, columns = np.arange(128)[:, None], np.arange(32)
    np.testing.assert_array_equal(y, rows + columns)
    np.testing.assert_array_equal(z, rows - columns)


def test_a_pool_gives_no_more_than_it_has() -> None:
    @cute.kernel
    def kernel(y: cute.Tensor):
        pool = utils.TmemBufferPool(cute.make_ptr(cutlass.Float32, 0, cute.AddressSpace.tmem), 64)
        pool.allocate(40, cutlass.Float32)
        pool.allocate_tensor(cute.make_layout((128, 32), stride=(65536, 1)), cutlass.Float32)

    with pytest.raises(ConstraintError, match=r"32 columns for \(128,32\):\(65536,1\), but 24 of 64 are left"):
        launch(kernel, np.zeros(1, np.float32), block=32)


def test_architectures_without_tensor_memory_have_no_allocator() -> None:
    @cute.kernel
    def kernel(y: cute.Tensor):
        utils.TmemAllocator(barrier_for_retrieve=pipeline.NamedBarrier(1, 128), arch="sm_90")

    with pytest.raises(ArgumentError, match="'sm_90' has no tensor memory"):
        launch(kernel, np.zeros(1, np.float32), block=128)
