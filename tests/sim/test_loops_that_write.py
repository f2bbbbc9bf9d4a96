"""While loops that write memory in each iteration: one that nothing can end is an error soon; one that makes progress,
however slowly, runs to its end."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tilewright import cute, sim
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ArgumentError, SimulationError

arch = cute.arch


def launch(kernel: Any, block: int = 64, grid: int = 1, size: int = 256) -> np.ndarray:
    @cute.jit
    def run(x: cute.Tensor):
        kernel(x).launch(grid=(grid, 1, 1), block=(block, 1, 1))

    x = np.zeros(size, np.int32)
    run(from_dlpack(x))
    return x


# -- without end -------------------------------------------------------------------------------------------------------


@cute.kernel
def the_same_write_each_turn(x: cute.Tensor):
    tidx, _, _ = arch.thread_idx()
    while arch.load(x.iterator + 1, sem="acquire") == 0:
        x[64 + tidx] = 7


@cute.kernel
def counts_its_turns(x: cute.Tensor):
    tidx, _, _ = arch.thread_idx()
    while arch.load(x.iterator + 1, sem="acquire") == 0:
        x[64 + tidx] = x[64 + tidx] + 1


@cute.kernel
def writes_back_and_forth(x: cute.Tensor):
    while x[1] != 2:
        x[1] = 1 - x[1]


@cute.kernel
def counts_beside_a_barrier(x: cute.Tensor):
    tidx, _, _ = arch.thread_idx()
    while arch.load(x.iterator + 1, sem="acquire") == 0:
        x[64 + tidx] = x[64 + tidx] + 1
        arch.sync_threads()


@cute.kernel
def counts_its_attempts_at_a_lock(x: cute.Tensor):
    tidx, _, _ = arch.thread_idx()
    if tidx % 32 == 0:
        while arch.atomic_cas(x.iterator + 1, cmp=1, val=2, sem="acquire") != 1:
            arch.atomic_add(x.iterator + 2, 1)


@cute.kernel
def a_condition_of_branches(x: cute.Tensor):
    """What ends the loop is set in a branch that is never taken."""
    tidx, _, _ = arch.thread_idx()
    go, n = True, tidx
    while go:
        n = n + 1
        x[64 + tidx] = n
        if x[1] == 1:
            go = False


STUCK = [
    the_same_write_each_turn,
    counts_its_turns,
    writes_back_and_forth,
    counts_beside_a_barrier,
    counts_its_attempts_at_a_lock,
    a_condition_of_branches,
]


@pytest.mark.parametrize("kernel", STUCK)
@pytest.mark.parametrize("check", ["none", "races"])
def test_a_loop_that_writes_and_waits_for_ever_is_an_error(kernel: Any, check: str) -> None:
    with sim.options(idle_turns=400, check=check, turns=1 << 16), pytest.raises(SimulationError) as caught:
        launch(kernel)
    text = str(caught.value)
    turns = re.search(r"hangs: a while loop has run (\d+) iterations, and nothing has changed", text)
    assert turns and int(turns[1]) < 500, text
    assert re.search(r"spinning at .*test_loops_that_write.py:\d+:  while ", text), text
    assert "byte offset 4 in an array of 1024 bytes" in text, text  # what it waits for, not what it writes
    assert "byte offset 256" not in text
    assert "options(idle_turns=...)" in text


@pytest.mark.parametrize("kernel", [the_same_write_each_turn, writes_back_and_forth])
def test_a_loop_that_repeats_itself_gets_fewer_turns(kernel: Any) -> None:
    with sim.options(idle_turns=16000, check="none"), pytest.raises(SimulationError) as caught:
        launch(kernel)
    turns = re.search(r"has run (\d+) iterations", str(caught.value))
    assert turns and 1000 < int(turns[1]) < 1200


# -- with an end -------------------------------------------------------------------------------------------------------


@cute.kernel
def long_copy(x: cute.Tensor):
    tidx, _, _ = arch.thread_idx()
    n = tidx
    while n < 2000:
        x[64 + tidx] = n
        n = n + 1


@cute.kernel
def long_copy_with_a_flag(x: cute.Tensor):
    """The condition is the same in each turn; what it is computed from is not."""
    tidx, _, _ = arch.thread_idx()
    n, more = tidx, True
    while more:
        x[64 + tidx] = n
        n = n + 1
        more = n < 2000


@cute.kernel
def waits_beside_a_long_loop(x: cute.Tensor):
    """Warp 0 counts its polls for as long as warp 1 computes."""
    tidx, _, _ = arch.thread_idx()
    if tidx == 0:
        while arch.load(x.iterator + 1, sem="acquire") == 0:
            x[64] = x[64] + 1
    if tidx == 32:
        n = tidx
        while n < 2000:
            n = n + 1
        arch.store(x.iterator + 1, n, sem="release")


@cute.kernel
def many_short_waits(x: cute.Tensor):
    """All waits together turn more often than one may."""
    tidx, _, _ = arch.thread_idx()
    for k in range(30):
        if tidx == 0:
            while arch.load(x.iterator + 1, sem="acquire") != k:
                x[64] = x[64] + 1
            arch.store(x.iterator + 2, k + 1, sem="release")
        if tidx == 32:
            n = x[3]
            while n < 100:
                n = n + 1
            arch.store(x.iterator + 1, k, sem="release")
            while arch.load(x.iterator + 2, sem="acquire") != k + 1:
                x[65] = x[65] + 1


@cute.kernel
def waits_for_the_last_block(x: cute.Tensor):
    tidx, _, _ = arch.thread_idx()
    bidx, _, _ = arch.block_idx()
    if bidx == 0:
        if tidx == 0:
            while arch.load(x.iterator + 59, sem="acquire") == 0:
                x[64] = x[64] + 1
    else:
        if tidx == 0:
            arch.store(x.iterator + bidx, 1, sem="release")


@pytest.mark.parametrize(
    ("kernel", "grid"),
    [
        (long_copy, 1),
        (long_copy_with_a_flag, 1),
        (waits_beside_a_long_loop, 1),
        (many_short_waits, 1),
        (waits_for_the_last_block, 60),
    ],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_progressing_loop_is_not_stopped(kernel: Any, grid: int, seed: int) -> None:
    with sim.options(idle_turns=400, seed=seed, lanes=64 if grid > 1 else 16384, check="none"):
        x = launch(kernel, grid=grid)
    if grid == 1 and kernel in (long_copy, long_copy_with_a_flag):
        assert (x[64:128] == 1999).all()


def test_the_budget_is_a_number_of_iterations() -> None:
    with (
        pytest.raises(ArgumentError, match="idle_turns=0; a loop needs at least one iteration"),
        sim.options(idle_turns=0),
    ):
        pass
