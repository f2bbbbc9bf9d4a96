"""The model of the choice beside the timings that it was fitted to."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tilewright.gemm import kernels
from tilewright.gemm.choice.choose import KernelOptions
from tilewright.gemm.family import hopper_cost

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
import fit


@pytest.fixture(scope="module")
def problem() -> fit.Problem:
    options = KernelOptions.of(kernels()["hopper_f16"], fit.H200)
    return fit.Problem(fit.load([fit.TIMINGS], options), options)


def test_the_choice_is_near_the_best_timed(problem: fit.Problem) -> None:
    found = problem.fit(fit.constants_now())
    assert len(problem.products) > 300
    assert found.choice > 0.965 and found.error < 0.09


def test_other_constants_suit_the_timings_less(problem: fit.Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    now = fit.constants_now()
    for name in fit.FITTED:
        monkeypatch.setattr(hopper_cost, name, now[name])  # the search sets them; put back afterwards
    loss = problem.fit(now).loss
    for name in ("BYTES_PER_US", "CROWD", "STORE", "LATENCY", "SOME_FREE", "JOIN_ELEMENT"):
        for factor in (0.5, 2.0):
            assert problem.fit(now | {name: factor * now[name]}).loss > loss, name


def test_timings_are_kept_and_put_together(problem: fit.Problem, tmp_path: Path) -> None:
    shape, us = (64, 64, 64), {0: 2.0, 7: 3.0, len(problem.options.plan_options) - 1: 5.0}
    fit.keep({shape: us}, problem.options, tmp_path / "one.json")
    fit.keep({shape: {number: 1.1 * value for number, value in us.items()}}, problem.options, tmp_path / "slow.json")
    found = fit.load([tmp_path / "one.json", tmp_path / "slow.json"], problem.options)
    assert found == {shape: pytest.approx(us)}  # the second GPU is taken to be slower by a tenth
