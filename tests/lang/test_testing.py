"""cute.testing: benchmark, tune, autotune_jit, convert, assert_."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute
from tilewright.cute import testing
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ArgumentError, MachineError


@cute.kernel
def add_one(x: cute.Tensor, step: cutlass.Constexpr):
    t, _, _ = cute.arch.thread_idx()
    x[t] = x[t] + step


@cute.jit
def run_add(x: cute.Tensor, step: cutlass.Constexpr = 1):
    add_one(x, step).launch(grid=(1, 1, 1), block=(8, 1, 1))


def test_benchmark_counts_calls() -> None:
    x = np.zeros(8, np.float32)
    tensor = from_dlpack(x)
    compiled = cute.compile(run_add, tensor)
    took = testing.benchmark(compiled, warmup_iterations=2, iterations=5, kernel_arguments=testing.JitArguments(tensor))
    assert took > 0 and x[0] == 7


def test_benchmark_turns_through_workspaces() -> None:
    arrays: list[np.ndarray] = []

    def workspace() -> testing.JitArguments:
        arrays.append(np.zeros(8, np.float32))
        return testing.JitArguments(from_dlpack(arrays[-1]))

    testing.benchmark(run_add, warmup_iterations=1, iterations=5, workspace_generator=workspace, workspace_count=3)
    assert [a[0] for a in arrays] == [2, 2, 2]
    with pytest.raises(ArgumentError, match="must be positive"):
        testing.benchmark(run_add, iterations=0)


def test_workspace_count() -> None:
    assert testing.get_workspace_count(1 << 40, 1, 1) == 1
    assert testing.get_workspace_count(1, 2, 3) == 5


def test_tune_takes_the_fastest_and_passes_over_failures() -> None:
    import time

    def build(delay: float):
        if delay < 0:
            raise testing.CantImplementError("no")
        return lambda: time.sleep(delay)

    with pytest.warns(UserWarning, match="delay=-1: CantImplementError: no"):
        assert testing.tune(build, {"delay": [0.01, -1, 0.0]}, warmup_iterations=0, iterations=1) == {"delay": 0.0}
    with pytest.raises(testing.CantImplementError):
        testing.tune(build, {"delay": [-1]}, warmup_iterations=0, iterations=1)


def test_autotune() -> None:
    tuned = testing.autotune_jit({"step": [1, 2]}, warmup_iterations=0, iterations=1)(run_add)
    x = np.zeros(8, np.float32)
    tuned(from_dlpack(x))
    before = x[0]
    assert before in (4, 5)  # one call of each, then the chosen one
    tuned(from_dlpack(x))
    assert x[0] - before == before - 3


def test_convert() -> None:
    source = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
    target = np.zeros((3, 4), ml_dtypes.bfloat16)
    testing.convert(from_dlpack(source), from_dlpack(target))
    np.testing.assert_array_equal(target, source.astype(ml_dtypes.bfloat16))
    with pytest.raises(ArgumentError, match="differ"):
        testing.convert(from_dlpack(source), from_dlpack(target.T))


def test_assert_at_run_time() -> None:
    @cute.kernel
    def kernel(n: cutlass.Int32):
        t, _, _ = cute.arch.thread_idx()
        testing.assert_(t < n, "too many threads")

    @cute.jit
    def host(n: cutlass.Int32):
        kernel(n).launch(grid=(1, 1, 1), block=(8, 1, 1))

    host(8)
    with pytest.raises(MachineError, match="too many threads"):
        host(7)
    with pytest.raises(AssertionError):
        testing.assert_(False)
