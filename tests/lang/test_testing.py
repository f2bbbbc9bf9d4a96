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


def test_autotune_derives_and_prunes() -> None:
    seen: list[tuple[int, int]] = []

    @cute.jit
    def add(x: cute.Tensor, M: cutlass.Int32, step: cutlass.Constexpr = 0, twice: cutlass.Constexpr = 0):
        seen.append((step, twice))
        add_one(x, twice).launch(grid=(1, 1, 1), block=(8, 1, 1))

    tuned = testing.autotune_jit(
        params_dict={"step": [1, 2, 3]},
        update_on_change=["M"],
        derived_params={"twice": lambda step: 2 * step},
        prune_configs=lambda step: step != 2,
        warmup_iterations=0,
        iterations=1,
    )(add)
    x = np.zeros(8, np.float32)
    tuned(from_dlpack(x), 1)
    assert set(seen) == {(1, 2), (3, 6)} and tuned._best_config in ({"step": 1, "twice": 2}, {"step": 3, "twice": 6})
    before = x[0]
    assert before == 8 + tuned._best_config["twice"]
    tuned(from_dlpack(x), 1)
    assert x[0] == before + tuned._best_config["twice"]
    before = x[0]
    tuned(from_dlpack(x), 2)  # another problem: chosen again
    assert x[0] == before + 8 + tuned._best_config["twice"]
    for options in ({"prune_configs": lambda stage: True}, {"derived_params": {"twice": lambda stage: 1}}):
        with pytest.raises(ArgumentError, match="'stage' is not a parameter"):
            testing.autotune_jit({"step": [1]}, **options)
    with pytest.raises(ArgumentError, match="leaves no configuration"):
        testing.autotune_jit({"step": [1]}, prune_configs=lambda step: False)
    with pytest.raises(ArgumentError, match="update_on_change names 'N'"):
        testing.autotune_jit({"step": [1]}, update_on_change=["N"])(run_add)


def test_autotune_of_a_class() -> None:
    made: list[int] = []

    @testing.autotune_jit({"step": [1, 2]}, update_on_change=["M"], warmup_iterations=0, iterations=1)
    class Add:
        """Adds."""

        def __init__(self, factor: int, step: int = 1):
            made.append(step)
            self.step = step * factor

        @cute.jit
        def __call__(self, x: cute.Tensor, M: cutlass.Int32):
            add_one(x, self.step).launch(grid=(1, 1, 1), block=(8, 1, 1))

    add = Add(10)
    assert (Add.__name__, Add.__doc__, add._best_config) == ("Add", "Adds.", None)
    x = np.zeros(8, np.float32)
    add(from_dlpack(x), 3)
    chosen = add._best_config["step"] * 10
    assert x[0] == 30 + chosen and made == [1, 2]
    add(from_dlpack(x), M=3)
    assert x[0] == 30 + 2 * chosen and made == [1, 2]
    add(from_dlpack(x), M=4)
    assert made == [1, 2, 1, 2]


def test_a_suite_ranks_what_runs_everywhere(capsys: pytest.CaptureFixture[str]) -> None:
    arrays = []

    @cute.jit
    def add(x: cute.Tensor, n: cutlass.Int32, step: cutlass.Constexpr = 0):
        if cutlass.const_expr(step == 3):
            raise ValueError("three is too many")
        add_one(x, step).launch(grid=(1, 1, 1), block=(8, 1, 1))

    def make_arguments(n: int):
        arrays.append(np.zeros(8, np.float32))
        return from_dlpack(arrays[-1]), n

    reports, recommended = testing.autotune_suite(
        add,
        make_arguments,
        cases=[(1,), (2,)],
        params_dict={"step": [1, 2, 3]},
        accept_percentile=100,
        workspace_count=2,
        warmup_iterations=1,
        iterations=3,
        print_summary=True,
    )
    assert [a[0] for a in arrays] == [6] * 4  # four calls in turn on two sets, of the two configurations that run
    assert [[row["config"]["step"] for row in rows][-1] for rows in reports] == [3, 3]
    assert all(rows[0]["time_us"] <= rows[1]["time_us"] and "three" in str(rows[2]["error"]) for rows in reports)
    assert sorted(row["config"]["step"] for row in recommended) == [1, 2] and recommended[0]["accepted"] == 2
    shown = capsys.readouterr().out
    assert "accepted by 2 of 2 cases, step=" in shown and "does not run  step=3" in shown
    with pytest.raises(testing.CantImplementError, match=r"no configuration runs the case \(1,\)"):
        testing.autotune_suite(add, make_arguments, cases=[(1,)], params_dict={"step": [3]}, iterations=1)


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
