"""``sync_warp``: the mask reaches the CUDA text, and orders only the lanes that it names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute, sim
from tilewright.errors import SimulationError
from tilewright.sim.checks import collecting


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
        (0x1FFFF, "names lane 16, which does not execute it"),
        (0xFFFFFFFF, "names lane 16, which does not execute it"),
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


def meetings(first: int, second: int, mask: int = 0xFFFF) -> str:
    """What is said where lanes 0 to 7 come ``first`` times to a ``sync_warp`` and lanes 8 to 15 ``second`` times."""

    @cute.kernel
    def kernel(x: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        if t < 8:
            for _ in cutlass.range_constexpr(first):
                cute.arch.sync_warp(mask)
        elif t < 16:
            for _ in cutlass.range_constexpr(second):
                cute.arch.sync_warp(mask)
        x[t] = t

    @cute.jit
    def run(x: cute.Tensor):
        kernel(x).launch(grid=(1, 1, 1), block=(32, 1, 1))

    with sim.options(check="divergence"), collecting() as report:
        run(np.zeros(32, np.int32))
    return " ".join(" ".join(map(str, report)).split())


def test_sync_warp_meets_across_branches() -> None:
    assert not meetings(1, 1) and not meetings(0, 0)


@pytest.mark.parametrize(
    ("first", "second", "lanes"),
    [
        (1, 0, [*range(8, 16)]),
        (0, 1, [*range(8)]),
        (2, 1, [*range(8, 16)]),  # lanes that come a second time do not stand for those that never came
        (3, 1, [*range(8, 16)]),
        (1, 2, [*range(8)]),
    ],
)
def test_sync_warp_with_unequal_trip_counts_is_an_error(first: int, second: int, lanes: list[int]) -> None:
    assert f"lanes {lanes} of its mask did not execute" in meetings(first, second)


def test_sync_warp_with_different_masks_is_an_error() -> None:
    @cute.kernel
    def kernel(x: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        if t < 8:
            cute.arch.sync_warp(0xFFFF)
            cute.arch.sync_warp(0xFF)
        elif t < 16:
            cute.arch.sync_warp(0xFFFF)
        x[t] = t

    @cute.jit
    def run(x: cute.Tensor):
        kernel(x).launch(grid=(1, 1, 1), block=(32, 1, 1))

    with sim.options(check="divergence"), pytest.raises(SimulationError, match="names lane 8, which does not execute"):
        run(np.zeros(32, np.int32))


@pytest.mark.parametrize(("mask", "races"), [(0xFFFF, False), (0xFFFFFFFF, False), (0x00FF, True), (0xFF00, True)])
def test_only_the_lanes_of_the_mask_are_ordered(mask: int, races: bool) -> None:
    """Lanes 0 to 7 write what 8 to 15 read; a mask that leaves one side out orders nothing."""

    @cute.kernel
    def kernel(x: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        shared = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Int32, cute.make_layout(32))
        if t < 8:
            shared[t] = t
        cute.arch.sync_warp(mask)
        if (t >= 8) & (t < 16):
            x[t] = shared[t - 8]

    @cute.jit
    def run(x: cute.Tensor):
        kernel(x).launch(grid=(1, 1, 1), block=(32, 1, 1))

    with sim.options(check="races"), collecting() as report:
        run(np.zeros(32, np.int32))
    assert ("data-race" in report.rules) == races
