"""A division that only one arm of a branch reads is done there: by zero only if it is read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute
from tilewright.errors import SimulationError
from tilewright.gemm import kernels
from tilewright.gemm.family.compile import stage
from tilewright.ir.passes import sink

THREADS = 12


@cute.kernel
def overwritten(y: cute.Tensor, n: cutlass.Int32) -> None:
    """Number t counted in rows of n, but for the threads from 3 n on."""
    t, _, _ = cute.arch.thread_idx()
    row, column = t // n, t % n
    if t >= 3 * n:
        row, column = -1, t
    y[t] = 100 * row + column


@cute.kernel
def read_afterwards(y: cute.Tensor, n: cutlass.Int32) -> None:
    t, _, _ = cute.arch.thread_idx()
    column = t % n
    value = column + 1
    if t >= 3 * n:
        value = t
    y[t] = value + column


@cute.kernel
def both_arms(y: cute.Tensor, n: cutlass.Int32) -> None:
    t, _, _ = cute.arch.thread_idx()
    column = t % n
    value = t
    if t >= 3 * n:
        value = column + 1
    else:
        value = column + 2
    y[t] = value


@cute.kernel
def nested(y: cute.Tensor, n: cutlass.Int32) -> None:
    t, _, _ = cute.arch.thread_idx()
    for i in cutlass.range(3, unroll=1):
        column = t % (n + i - 2)
        if t > 3:
            if i < 2:
                column = -1
            y[t] = column


def run(kernel: Any, n: int) -> Any:
    @cute.jit
    def host(y: cute.Tensor, n: cutlass.Int32) -> None:
        kernel(y, n).launch(grid=(1, 1, 1), block=(THREADS, 1, 1))

    y = np.zeros(THREADS, np.int32)
    compiled = cute.compile(host, y, n)
    compiled(y, n)
    return y


@pytest.mark.parametrize("n", [0, 2, 4])
def test_an_unused_quotient_is_not_divided(n: int) -> None:
    expected = [100 * (t // n) + t % n if t < 3 * n else t - 100 for t in range(THREADS)]
    assert run(overwritten, n).tolist() == expected


@pytest.mark.parametrize("kernel", [read_afterwards, both_arms])
def test_values_with_other_readers_are_not_sunk(kernel: Any) -> None:
    with pytest.raises(SimulationError, match="remainder by zero"):
        run(kernel, 0)
    columns = np.arange(THREADS) % 2
    value = {
        "read_afterwards": np.where(np.arange(THREADS) >= 6, np.arange(THREADS) + columns, 2 * columns + 1),
        "both_arms": np.where(np.arange(THREADS) >= 6, columns + 1, columns + 2),
    }[kernel.__name__]
    assert run(kernel, 2).tolist() == value.tolist()


def test_inside_loops_and_further_branches() -> None:
    """The divisor is zero for i = 0 and 1 with n = 1, 2; only i = 2 is read."""
    assert run(nested, 2).tolist() == [0] * 4 + [t % 2 for t in range(4, THREADS)]


@pytest.mark.parametrize("name", ("tensorop_f16", "simt_f32"))
def test_arms_that_are_passed_over_have_nothing_to_take_over(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The filter in front of the search leaves out no arm to which an op moves."""
    takes_over, needed = sink._takes_over, sink._needed_only_in
    answers: dict[int, bool] = {}
    moved, passed_over = [], []

    def answer(arm: Any, uses: Any, dividing: Any) -> bool:
        answers[id(arm)] = takes_over(arm, uses, dividing)
        return True

    def search(arm: Any, before: Any, uses: Any) -> Any:
        found = needed(arm, before, uses)
        (moved if found else passed_over).append(answers[id(arm)])
        return found

    monkeypatch.setattr(sink, "_takes_over", answer)
    monkeypatch.setattr(sink, "_needed_only_in", search)
    stage(replace(kernels()[name].config, group=7), "stream_k")  # a size that no other test has staged
    assert all(moved) and not all(passed_over)
