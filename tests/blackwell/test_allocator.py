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
from tilewright.errors import ConstraintError

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
