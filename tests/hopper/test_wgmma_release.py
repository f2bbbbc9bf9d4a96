"""A stage that is released before the wgmma that read it have been waited for: TMA overwrites what they read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tests.gemm.test_hopper import operands, product, sized
from tilewright import cute, sim
from tilewright.cute.nvgpu import warpgroup
from tilewright.errors import SimulationError
from tilewright.gemm import LinearCombination
from tilewright.gemm.arrays import Matrix
from tilewright.gemm.family.base import kernel_of
from tilewright.gemm.mainloop.staged_mma import StagedMma
from tilewright.gemm.mainloop.tma import TmaMainloop
from tilewright.gemm.schedule.decomposition import PersistentTiles

STAGES = 2


class Mainloop(TmaMainloop):
    """The library's, or with one of two mistakes: each stage is released while its own wgmma may still read it
    (``early``), or the groups of the last one are never waited for (``unread``)."""

    mistake = ""

    @cute.jit
    def multiply_stages(self, mma: StagedMma, acc: Any, state: Any, k_tiles: Any, issued: Any) -> Any:
        ring = mma.ring
        mma.tiled_mma.set(warpgroup.Field.ACCUMULATE, False)
        release = state.clone()
        for k in cutlass.range(k_tiles, unroll=1):
            ring.consumer_wait(state)
            self.multiply_stage(mma, acc, state.index)
            if cutlass.const_expr(self.mistake == "early"):
                ring.consumer_release(state)
            else:
                warpgroup.wait_group(1)
                if k > 0:
                    ring.consumer_release(release)
                    release.advance()
            state.advance()
        if cutlass.const_expr(self.mistake == "unread"):
            warpgroup.wait_group(1)
        else:
            warpgroup.wait_group(0)
        if cutlass.const_expr(self.mistake != "early"):
            ring.consumer_release(release)
        return state


class Early(Mainloop):
    mistake = "early"


class Unread(Mainloop):
    mistake = "unread"


def run(kind: type[Mainloop], check: str = "none", seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The product of 128 x 128 x 512 with this main loop, and what it should be."""
    config = sized((128, 64), stages=STAGES).config
    a, b = (np.ascontiguousarray(x) for x in operands("hopper_f16", 128, 128, 512))  # A K-major, B MN-major
    d = np.zeros((128, 128), np.float16)
    kernel = kernel_of(config)
    kernel.mainloop = kind(config, kernel.math)
    tensors = [
        Matrix.of(name, array).tensor(operand)
        for name, array, operand in (("A", a, config.a), ("B", b.T, config.b), ("C", d, config.c), ("D", d, config.c))
    ]
    with sim.options(check=check, seed=seed):
        kernel(*tensors, LinearCombination(config.acc_dtype(1), config.acc_dtype(0)), PersistentTiles(cute.Int32(1)))
    return d, product(a, b)


@pytest.mark.parametrize("seed", range(3))
def test_the_clean_program(seed: int) -> None:
    got, want = run(Mainloop, "all", seed)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("seed", range(3))
def test_an_early_release_gives_a_wrong_product(seed: int) -> None:
    got, want = run(Early, seed=seed)
    assert (got != want).mean() > 0.9


def test_an_early_release_is_a_race() -> None:
    with pytest.raises(SimulationError, match="data race in shared memory") as caught:
        run(Early, "all")
    text = str(caught.value)
    assert "read by wgmma" in text and "cute.gemm(" in text and "after a write by TMA" in text


def test_accumulators_in_flight_are_poison() -> None:
    got, _ = run(Unread)
    assert np.isnan(got).all()
