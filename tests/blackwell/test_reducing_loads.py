"""``tcgen05.ld.red``: loads of tensor memory that give the greatest or least of what a thread loads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.blackwell.test_tensor_memory import allocated
from tests.check.pairs import launch
from tilewright import Float32, Int32, cute, sim
from tilewright.cute.nvgpu import tcgen05
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ConstraintError

RED = tcgen05.TmemLoadRedOp
COLUMNS = 64


def reduced(load: Any, dtype: Any = Float32) -> Any:
    """A kernel that stores x (128, 64) in tensor memory, and what each load of a thread gives in y (128, loads)."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor):
        base, warp = allocated(COLUMNS, dtype)
        t, _, _ = cute.arch.thread_idx()
        memory = cute.make_tensor(base, cute.make_layout((128, COLUMNS), stride=(65536, 1)))
        into = tcgen05.make_tmem_copy(cute.make_copy_atom(tcgen05.St32x32bOp(tcgen05.Repetition.x64), dtype), memory)
        mine = into.get_slice(t)
        given = cute.make_rmem_tensor(mine.partition_S(x).shape, dtype)
        cute.autovec_copy(mine.partition_S(x), given)
        cute.copy(into, given, mine.partition_D(memory))
        cute.arch.fence_view_async_tmem_store()
        cute.arch.sync_threads()
        out = tcgen05.make_tmem_copy(cute.make_copy_atom(load, dtype), memory)
        mine = out.get_slice(t)
        taken = cute.make_rmem_tensor(mine.partition_D(z).shape, dtype)
        ends = cute.make_rmem_tensor(((1, 1), *taken.shape[1:]), dtype)
        cute.copy(out, mine.partition_S(memory), (taken, ends))
        cute.autovec_copy(taken, mine.partition_D(z))
        cute.autovec_copy(cute.make_tensor(ends.iterator, cute.size(ends)), y[t, None])
        cute.arch.sync_threads()
        if warp == 0:
            cute.arch.dealloc_tmem(base, COLUMNS)

    return kernel


@pytest.mark.parametrize("way", list(RED))
@pytest.mark.parametrize("nan", [False, True])
def test_floats(way: Any, nan: bool) -> None:
    x = np.random.default_rng(0).standard_normal((128, COLUMNS)).astype(np.float32)
    x[5, 3], x[6, :16] = np.nan, np.nan
    y, z = np.zeros((128, 4), np.float32), np.zeros_like(x)
    with sim.options(arch="sm_103a"):
        launch(
            reduced(tcgen05.LdRed32x32bOp(tcgen05.Repetition.x16, way, nan)), *map(from_dlpack, (x, y, z)), block=128
        )
    parts = (np.abs(x) if way.value.endswith("abs") else x).reshape(128, 4, 16)
    join = {"max": (np.fmax, np.maximum), "min": (np.fmin, np.minimum)}[way.value[:3]][nan]
    np.testing.assert_array_equal(y, join.reduce(parts, axis=2))
    np.testing.assert_array_equal(z, x)


def test_integers() -> None:
    x = np.random.default_rng(0).integers(-1000, 1000, (128, COLUMNS)).astype(np.int32)
    y, z = np.zeros((128, 1), np.int32), np.zeros_like(x)
    launch(
        reduced(tcgen05.LdRed32x32bOp(tcgen05.Repetition.x64, RED.MIN), Int32), *map(from_dlpack, (x, y, z)), block=128
    )
    np.testing.assert_array_equal(y[:, 0], x.min(1))


def test_what_is_refused() -> None:
    with pytest.raises(ConstraintError, match="one number has nothing to be compared with"):
        tcgen05.LdRed32x32bOp(tcgen05.Repetition.x1)
    with pytest.raises(ConstraintError, match="red_op is a TmemLoadRedOp, not 'max'"):
        tcgen05.LdRed32x32bOp(tcgen05.Repetition.x2, "max")
    atom = cute.make_copy_atom(tcgen05.LdRed32x32bOp(tcgen05.Repetition.x2), Float32)
    assert not tcgen05.is_tmem_load(atom)
