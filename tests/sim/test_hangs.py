"""Launches that cannot end: each must become an error soon, with the line, the threads and what they wait on."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute, sim, utils
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import SimulationError

arch = cute.arch


@cute.kernel
def one_thread(flags: cute.Tensor):
    tidx, _, _ = arch.thread_idx()
    if tidx == 3:
        while arch.load(flags.iterator + 2, sem="acquire") == 0:
            pass
    arch.sync_threads()


@cute.kernel
def around_a_barrier(flags: cute.Tensor):
    while arch.load(flags.iterator + 2, sem="acquire") == 0:
        arch.sync_threads()


@cute.kernel
def taken_lock(flags: cute.Tensor):
    while arch.atomic_cas(flags.iterator + 2, cmp=1, val=5) != 1:
        pass


@cute.kernel
def lock_of_a_lane(flags: cute.Tensor):
    """One lane has the lock and rests behind the loop in which the others of its warp wait for it."""
    while arch.atomic_cas(flags.iterator + 2, cmp=0, val=1) != 0:
        pass
    arch.atomic_exch(flags.iterator + 2, 0)


@cute.kernel
def mbarrier(flags: cute.Tensor):
    full = utils.SmemAllocator().allocate_array(cutlass.Int64, 1)
    tidx, _, _ = arch.thread_idx()
    if tidx == 0:
        arch.mbarrier_init(full, 64)
    arch.mbarrier_init_fence()
    arch.sync_threads()
    if tidx < 32:
        arch.mbarrier_arrive(full)
    while not arch.mbarrier_try_wait(full, 0):
        pass


@cute.kernel
def endless_computation(flags: cute.Tensor):
    n = flags[2]
    while n > -1:
        n = (n + 1) % 1000
    flags[3] = n


@cute.kernel
def endless_barriers(flags: cute.Tensor):
    n = flags[2]
    while n > -1:
        n = (n + 1) % 1000
        arch.sync_threads()


def launch(kernel: Any, grid: int, block: int, *arrays: np.ndarray) -> None:
    @cute.jit
    def run(flags: cute.Tensor):
        kernel(flags).launch(grid=(grid, 1, 1), block=(block, 1, 1))

    run(*map(from_dlpack, arrays))


@pytest.mark.parametrize("grid", [1, 40])
@pytest.mark.parametrize(
    ("kernel", "block", "words"),
    [
        (one_thread, 96, ["warp 0 (threads 0-31): lanes 3 spinning", "barrier 0, where 64 of 96 threads have arrived"]),
        (around_a_barrier, 64, ["warps 0-1 (threads 0-63): spinning", "i32 0 at address"]),
        (taken_lock, 32, ["warp 0 (threads 0-31): spinning", "i32 0 at address"]),
        (lock_of_a_lane, 32, ["lanes 1-31 spinning", "i32 1 at address"]),
        (mbarrier, 64, ["mbarrier full (in phase 0: 32 of 64 arrivals)"]),
    ],
)
def test_a_spin_without_end_is_an_error_soon(
    kernel: Any, block: int, words: list[str], grid: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tilewright.sim.engine.STUCK", 10**9)  # what does not change needs no such bound
    flags = np.zeros(8, np.int32)
    with pytest.raises(SimulationError) as caught:
        launch(kernel, grid, block, flags)
    text = str(caught.value)
    for word in ["hangs", "block (0, 0, 0)", *words]:
        assert word in text
    assert re.search(r"spinning at .*test_hangs.py:\d+:  while ", text)
    if kernel is not mbarrier:
        assert "byte offset 8 in an array of 32 bytes" in text
        assert hex(flags.ctypes.data + 8) in text


@pytest.mark.parametrize("kernel", [endless_computation, endless_barriers])
def test_a_loop_that_computes_for_ever_ends_at_the_bound(kernel: Any) -> None:
    with (
        sim.options(turns=2000),
        pytest.raises(SimulationError, match=r"run 2\d\d\d iterations(.|\n)*turns=") as caught,
    ):
        launch(kernel, 1, 64, np.zeros(8, np.int32))
    assert "test_hangs.py" in str(caught.value)


@cute.kernel
def wait_for_the_next(flags: cute.Tensor):
    tidx, _, _ = arch.thread_idx()
    bidx, _, _ = arch.block_idx()
    grid, _, _ = arch.grid_dim()
    if tidx == 0:
        if bidx < grid - 1:
            while arch.load(flags.iterator + bidx + 1, sem="acquire") == 0:
                pass
        arch.store(flags.iterator + bidx, bidx + 1, sem="release")


@cute.kernel
def wait_for_the_last(flags: cute.Tensor):
    tidx, _, _ = arch.thread_idx()
    bidx, _, _ = arch.block_idx()
    grid, _, _ = arch.grid_dim()
    if bidx == 0:
        if tidx == 33:
            while arch.load(flags.iterator + grid - 1, sem="acquire") == 0:
                pass
        arch.sync_threads()
    arch.store(flags.iterator + bidx, bidx + 1, sem="release")


@cute.kernel
def barrier_of_the_grid(flags: cute.Tensor):
    tidx, _, _ = arch.thread_idx()
    bidx, _, _ = arch.block_idx()
    grid, _, _ = arch.grid_dim()
    arch.sync_threads()
    if tidx == 0:
        arch.atomic_add(flags.iterator + grid, 1, sem="release")
        while arch.load(flags.iterator + grid, sem="acquire") < grid:
            pass
    arch.sync_threads()
    flags[bidx] = bidx + 1


@pytest.mark.parametrize("kernel", [wait_for_the_next, wait_for_the_last, barrier_of_the_grid])
@pytest.mark.parametrize(("blocks", "lanes"), [(140, 4096), (60, 1)])
def test_blocks_that_wait_for_later_ones_get_there(kernel: Callable[..., None], blocks: int, lanes: int) -> None:
    flags = np.zeros(blocks + 1, np.int32)
    with sim.options(lanes=lanes):
        launch(kernel, blocks, 64, flags)
    assert (flags[:blocks] == np.arange(1, blocks + 1)).all()


@cute.kernel
def count_up(flags: cute.Tensor):
    n = flags[0]
    while n < 300_000:
        n = n + 1
    flags[1] = n


def test_a_long_computation_is_no_hang() -> None:
    """More iterations than a loop gets that only reads memory."""
    flags = np.zeros(8, np.int32)
    launch(count_up, 1, 32, flags)
    assert flags[1] == 300_000
