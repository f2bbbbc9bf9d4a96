"""Warps that rest under a mask while others poll: they go on behind the branch that they have left."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute, sim, utils
from tilewright.cute.runtime import from_dlpack

WARPS = 4
arch = cute.arch


@cute.kernel
def roles(y: cute.Tensor):
    """Warp 0 polls for warps 2 and 3, which poll for warp 1 and then for warp 0."""
    t, _, _ = arch.thread_idx()
    bars = utils.SmemAllocator().allocate_array(cutlass.Int64, 3)
    if t == 0:
        for n, arrivals in enumerate((64, 32, 32)):
            arch.mbarrier_init(bars + n, arrivals)
    arch.mbarrier_init_fence()
    arch.sync_threads()
    if t // 32 < 2:
        if t // 32 == 0:
            while not arch.mbarrier_try_wait(bars, 0):
                pass
            arch.mbarrier_arrive(bars + 2)
        else:
            arch.mbarrier_arrive(bars + 1)
    else:
        while not arch.mbarrier_try_wait(bars + 1, 0):
            pass
        arch.mbarrier_arrive(bars)
        while not arch.mbarrier_try_wait(bars + 2, 0):
            pass
    y[t] = t // 32


@pytest.mark.parametrize("schedule", ["lockstep", "seeded"])
def test_warps_behind_one_side_do_not_run_the_other(schedule: str) -> None:
    """Warp 1 leaves the first side before warp 0, and has no lanes for the second one, where it would poll, too."""
    y = np.full(32 * WARPS, -1, np.int32)

    @cute.jit
    def run(y: cute.Tensor):
        roles(y).launch(grid=(1, 1, 1), block=(32 * WARPS, 1, 1))

    with sim.options(schedule=schedule):
        run(from_dlpack(y))
    assert (y == np.arange(32 * WARPS) // 32).all()
