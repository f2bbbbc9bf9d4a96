"""The tiles that gemm takes on the simulator, and how to ask for those of a GPU."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from tilewright import sim
from tilewright.errors import ArgumentError
from tilewright.gemm import gemm, kernels, launcher, matmul
from tilewright.gemm.choice import simulated
from tilewright.gemm.choice.choose import best
from tilewright.gemm.choice.simulated import (
    SlowSimulationWarning,
    for_simulator,
    multiply_adds,
    simulated_work,
    warn_if_slow,
)
from tilewright.gemm.config import HopperConfig
from tilewright.gemm.host.plan import Plan
from tilewright.gemm.host.problem import Problem
from tilewright.sim.engine import Launch

H200 = (132, 232448)


@pytest.mark.parametrize("name", ["hopper_f16", "tensorop_f16", "simt_f32"])
@pytest.mark.parametrize("problem", [(16, 16, 64, 1), (512, 512, 512, 1), (520, 1000, 64, 2)], ids=str)
def test_the_size_of_least_work(name: str, problem: tuple[int, int, int, int]) -> None:
    entry = kernels()[name]
    chosen = for_simulator(entry, problem, H200)
    assert not isinstance(chosen.config, HopperConfig) or chosen.config.cluster_size == 1
    single = [c for c in (entry.config, *entry.small) if getattr(c, "cluster_size", 1) == 1]
    assert simulated_work(chosen.config, problem) == min(simulated_work(c, problem) for c in (chosen.config, *single))
    assert best(chosen, "data_parallel", problem, H200)[0].config == chosen.config  # nothing is left to choose


def test_few_large_tiles_unless_a_gpu_is_asked_for() -> None:
    """A GPU wants a tile for each multiprocessor; the simulator pays for each tile."""
    a, b = np.ones((256, 64), np.float16), np.ones((64, 256), np.float16)
    here = gemm(a, b, kernel="hopper_f16", machine="cpu")
    with sim.options(sizes="gpu"):
        there = gemm(a, b, kernel="hopper_f16", machine="cpu")
    with sim.options(sizes="gpu", sms=2):
        small = gemm(a, b, kernel="hopper_f16", machine="cpu")
    assert here.grid[0] <= 2 < there.grid[0] and small.grid[0] < there.grid[0]
    for report in (here, there, small):
        assert (report.d == 64).all()


def test_tiles_are_shared_only_where_it_is_asked_for() -> None:
    a, b = np.ones((64, 2048), np.float16), np.ones((2048, 64), np.float16)
    kernel = kernels()["tensorop_f16"]
    assert gemm(a, b, kernel=kernel, machine="cpu").decomposition == "data_parallel"
    assert gemm(a, b, kernel=kernel, machine="cpu", decomposition="stream_k").decomposition == "stream_k"
    with sim.options(sizes="gpu"):
        assert gemm(a, b, kernel=kernel, machine="cpu").decomposition == "stream_k"


def test_sizes_that_do_not_exist() -> None:
    with pytest.raises(ArgumentError, match="sizes='h200'; it is one of 'simulator', 'gpu'"):
        sim.options(sizes="h200").__enter__()


def test_the_kernel_is_the_one_that_is_simulated_first_and_the_report_names_the_gpus() -> None:
    a, b = np.ones((64, 64), np.float16), np.ones((64, 64), np.float16)
    found = gemm(a, b)
    assert (found.kernel, found.on_gpu) == ("tensorop_f16", "hopper_f16")
    assert "hopper_f16, which takes longer to simulate" in str(found)
    with sim.options(sizes="gpu"):
        assert gemm(a, b).kernel == "hopper_f16" and not gemm(a, b).on_gpu
    named = gemm(a, b, kernel="hopper_f16")
    assert named.kernel == "hopper_f16" and not named.on_gpu
    assert gemm(a.astype(np.float32), b.astype(np.float32)).on_gpu == ""  # the first kernel of fp32 has one form


def test_progress_counts_the_multiply_adds_of_a_persistent_kernel() -> None:
    """Its warps all end with the last tile, so they say nothing about how far it is."""
    a, b = np.ones((300, 200), np.float16), np.ones((200, 496), np.float16)
    heard: list[float] = []
    gemm(a, b, kernel="hopper_f16", machine="cpu", progress=heard.append)
    assert heard == sorted(heard) and heard[-1] == 1.0
    assert len({fraction for fraction in heard if 0 < fraction < 1}) >= 3


@pytest.mark.parametrize("name", ["hopper_f16", "tensorop_f16", "simt_f32"])
def test_the_multiply_adds_of_a_plan_are_those_that_are_executed(name: str) -> None:
    dtype = np.float32 if name == "simt_f32" else np.float16
    a, b = np.ones((200, 72), dtype), np.ones((72, 136), dtype)
    problem = Problem.of(a, b, None, None, kernels()[name].config.c.dtype)
    plan = Plan.of(problem, [kernels()[name]], "data_parallel", "cpu")
    launch = launcher(a, b, np.empty((200, 136), dtype), kernel=name, decomposition="data_parallel")
    heard: list[float] = []
    with sim.profile(heard.append, 4 * multiply_adds(plan.config, problem.shape)):
        launch()
    assert max(fraction for fraction in heard if fraction < 1) == 0.25


def test_a_user_who_stops_a_launch_sees_no_frames_of_the_simulator(monkeypatch) -> None:
    def stopped(self: Launch) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Launch, "run", stopped)
    a = np.ones((64, 64), np.float16)
    with pytest.raises(KeyboardInterrupt, match="the simulation of kernel .* was stopped") as caught:
        gemm(a, a, machine="cpu")
    assert caught.value.__suppress_context__ and "engine.py" not in str(caught.traceback[-1].path)


def test_a_product_that_will_take_long_is_announced() -> None:
    config = kernels()["hopper_f16"].config
    with pytest.warns(SlowSimulationWarning, match=r"about 34 s for a product of 4096 x 4096 x 4096 by hopper_f16"):
        warn_if_slow("hopper_f16", config, (4096, 4096, 4096, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_slow("tensorop_f16", kernels()["tensorop_f16"].config, (2048, 2048, 2048, 1))


@pytest.mark.parametrize("call", [gemm, matmul])
def test_calls_announce_it(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulated, "LONG", 0.0)
    a = np.ones((16, 16), np.float16)
    with pytest.warns(SlowSimulationWarning, match="16 x 16 x 16"):
        call(a, a)
