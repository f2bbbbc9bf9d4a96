"""What a deadlock report says of who waits for whom."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.pipeline.hopper_programs import Broadcast, Turns
from tilewright import utils
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import SimulationError


def report(program: Any, *shape: int) -> list[str]:
    with pytest.raises(SimulationError, match="deadlock") as caught:
        program(from_dlpack(np.zeros(shape, np.int32)))
    return str(caught.value).splitlines()


class Crossed:
    """In a cluster of two blocks, the first warps signal the second ones of the other block, and those the first ones
    of their own; after a round, each waits for the other to begin the next one."""

    @cute.jit
    def __call__(self, out: cute.Tensor):
        self.kernel(out).launch(grid=(2, 1, 1), block=(64, 1, 1), cluster=(2, 1, 1))

    @cute.kernel
    def kernel(self, out: cute.Tensor):
        bar = utils.SmemAllocator().allocate_array(cutlass.Int64, 2)
        if cute.arch.thread_idx()[0] == 0:
            cute.arch.mbarrier_init(bar, 32)
            cute.arch.mbarrier_init(bar + 1, 32)
            cute.arch.mbarrier_init_fence()
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
        if cute.arch.warp_idx() == 0:
            cute.arch.mbarrier_arrive(bar, cute.arch.block_idx_in_cluster() ^ 1)
            cute.arch.mbarrier_wait(bar + 1, 0)
            cute.arch.mbarrier_wait(bar + 1, 1)  # the wait of the first warps
            cute.arch.mbarrier_arrive(bar)
        else:
            cute.arch.mbarrier_arrive(bar + 1)
            cute.arch.mbarrier_wait(bar, 0)
            cute.arch.mbarrier_wait(bar, 1)  # the wait of the second warps
            cute.arch.mbarrier_arrive(bar + 1)


def test_a_cycle_through_two_blocks() -> None:
    lines = report(Crossed(), 1)
    start = next(i for i, line in enumerate(lines) if "wait-for cycle: warp 0 of block (0, 0, 0)" in line)
    chain = lines[start + 1 : start + 5]
    for line, (who, stage, text) in zip(
        chain,
        [
            ("warp 1 of block (0, 0, 0)", 1, "the wait of the first warps"),
            ("warp 0 of block (1, 0, 0)", 0, "the wait of the second warps"),
            ("warp 1 of block (1, 0, 0)", 1, "the wait of the first warps"),
            ("warp 0 of block (0, 0, 0)", 0, "the wait of the second warps"),
        ],
        strict=True,
    ):
        assert f"waits for the arrival of {who} at the phase of parity 1 of the mbarrier " in line
        assert f"bar[{stage}] (in phase 1: 0 of 32 arrivals)" in line and text in line and "test_cycles.py:" in line
    assert "closes the cycle" in lines[start + 5]
    assert sum("block (" in line and line.rstrip().endswith(":") for line in lines) == 2, "both blocks are listed"


def test_a_chain_that_ends_at_a_warp_that_has_ended() -> None:
    text = "\n".join(report(Turns(2, bug="no arrive"), 2, 10))
    assert "waits for the arrival of warp 0 at" in text or "waits for the arrival of warp 1 at" in text
    assert "which has ended" in text


def test_a_first_phase_without_a_release() -> None:
    """The first phase of an empty barrier: the report lists where the kernel arrives, and no release is among it."""
    lines = report(Broadcast((2, 1), bug="no release"), 4, 1, 7, 32)
    start = next(i for i, line in enumerate(lines) if "this kernel arrives at mbarriers" in line)
    assert "acquire_and_advance" in lines[start + 1] and "to fix" in lines[start + 2]


class Barriers:
    """Two warps wait at different barriers of the block for all of its threads."""

    @cute.jit
    def __call__(self, out: cute.Tensor):
        self.kernel(out).launch(grid=(1, 1, 1), block=(64, 1, 1))

    @cute.kernel
    def kernel(self, out: cute.Tensor):
        if cute.arch.warp_idx() == 0:
            cute.arch.barrier(barrier_id=1, number_of_threads=64)
        else:
            cute.arch.barrier(barrier_id=2, number_of_threads=64)


def test_a_cycle_through_two_barriers_of_a_block() -> None:
    text = "\n".join(report(Barriers(), 1))
    assert "wait-for cycle: warp " in text
    assert "waits for the arrival of warp 1 at barrier 1, where 32 of 64 threads have arrived" in text
    assert "waits for the arrival of warp 0 at barrier 2, where 32 of 64 threads have arrived" in text
