"""Tensor memory in the simulator: allocation, loads and stores of all shapes, waits, and the CUDA text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tests.check.pairs import launch
from tilewright import cute
from tilewright.atoms.tensor_memory_copy import tmem_copy_layouts
from tilewright.cute.nvgpu import tcgen05
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ConstraintError, SimulationError

SHAPES = [("32x32b", n) for n in (1, 4, 32, 128)] + [("16x64b", 4), ("16x128b", 8), ("16x256b", 4), ("16x256b", 32)]


def op_of(kind: str, shape: str, repeat: int) -> Any:
    return getattr(tcgen05, f"{kind}{shape}Op")(tcgen05.Repetition(repeat))


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


def through(store: Any, load: Any, columns: int, rows: int = 128) -> Any:
    """A kernel that carries a matrix (rows, columns) through tensor memory, stored by one op and loaded by another."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        base, warp = allocated(max(32, columns))
        t, _, _ = cute.arch.thread_idx()
        memory = cute.make_tensor(base, cute.make_layout((rows, columns), stride=(65536, 1)))
        into = tcgen05.make_tmem_copy(cute.make_copy_atom(store, cutlass.Float32), memory)
        mine = into.get_slice(t)
        given = cute.make_rmem_tensor(mine.partition_S(x).shape, cutlass.Float32)
        cute.autovec_copy(mine.partition_S(x), given)
        cute.copy(into, given, mine.partition_D(memory))
        cute.arch.fence_view_async_tmem_store()
        cute.arch.sync_threads()
        out = tcgen05.make_tmem_copy(cute.make_copy_atom(load, cutlass.Float32), memory)
        mine = out.get_slice(t)
        taken = cute.make_rmem_tensor(mine.partition_D(y).shape, cutlass.Float32)
        cute.copy(out, mine.partition_S(memory), taken)
        cute.arch.fence_view_async_tmem_load()
        cute.autovec_copy(taken, mine.partition_D(y))
        cute.arch.sync_threads()
        if warp == 0:
            cute.arch.dealloc_tmem(base, max(32, columns))

    return kernel


@pytest.mark.parametrize("shape, repeat", SHAPES)
def test_what_one_shape_stores_another_loads(shape: str, repeat: int) -> None:
    columns = max(32, tmem_copy_layouts(shape, repeat).columns)
    x = np.random.default_rng(0).standard_normal((128, columns)).astype(np.float32)
    for store, load in ((shape, "32x32b"), ("32x32b", shape)):
        other = 8
        y = np.zeros_like(x)
        ops = op_of("St", store, repeat if store == shape else other), op_of("Ld", load, repeat if load == shape else other)
        launch(through(*ops, columns), from_dlpack(x), from_dlpack(y), block=128)
        np.testing.assert_array_equal(y, x)
