"""``sync_warp``: the mask reaches the CUDA text, and orders only the lanes that it names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute, sim
from tilewright.errors import SimulationError


def exchange(mask: int) -> Any:
    """Lanes 0 to 15 pass their numbers to the next one through shared memory."""

    @cute.kernel
    def kernel(x: cute.Tensor, mask: cutlass.Constexpr):
        t, _, _ = cute.arch.thread_idx()
        shared = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Int32, cute.make_layout(32))
        if t < 16:
            shared[t] = t
            cute.arch.sync_warp(mask)
            x[t] = shared[(t + 1) % 16]

    @cute.jit
    def run(x: cute.Tensor, mask: cutlass.Constexpr):
        kernel(x, mask).launch(grid=(1, 1, 1), block=(32, 1, 1))

    x = np.full(16, -1, np.int32)
    made = cute.compile(run, x, mask)
    with sim.options(check="all"):
        made(x)
    return x, made.__cuda__


def test_the_lanes_of_the_mask_wait_for_each_other() -> None:
    x, text = exchange(0xFFFF)
    assert x.tolist() == [*range(1, 16), 0]
    assert "__syncwarp(65535);" in text or "__syncwarp(0xffff);" in text, text


@pytest.mark.parametrize(
    ("mask", "told"),
    [
        (0x1FFFF, "names lane 16, which does not come"),
        (0xFFFFFFFF, "names lane 16, which does not come"),
        (0x7FFF, "lane 15 executes a sync_warp whose mask does not name it"),
        (0xFFFE, "lane 0 executes a sync_warp whose mask does not name it"),
    ],
)
def test_a_mask_names_the_lanes_that_come(mask: int, told: str) -> None:
    with pytest.raises(SimulationError) as caught:
        exchange(mask)
    assert told in " ".join(str(caught.value).split()), caught.value


def test_whole_warps_need_no_mask() -> None:
    from tilewright.testing import per_thread

    assert per_thread(lambda t: (cute.arch.sync_warp(), t)[1], 4) == [0, 1, 2, 3]
