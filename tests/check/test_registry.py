"""Which checkers a text chooses, and what a checker of one's own gets and gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.check.copies import tiles
from tests.check.pairs import launch, numbers
from tilewright import cute, sim
from tilewright.errors import ArgumentError, SimulationError
from tilewright.sim.checks import Checker, Finding, Party, chosen, registry
from tilewright.sim.checks.actors import lanes_of, thread_of


class Negative(Checker):
    """Reports stores of negative numbers."""

    name, cost = "negative", "all"

    def access(self, verb: str, buffer: Any, group: Any, off: Any, access: Any, mask: Any, values: Any) -> None:
        if verb == "store" and np.ndim(values) and (np.asarray(values) < 0).any():
            lane = lanes_of(group, mask)[np.flatnonzero(np.asarray(values) < 0)[0]]
            parties = [Party("store", group.lanes.op, thread_of(group, lane))]
            self.findings.add(Finding("negative", "a negative number is stored", parties))


@pytest.fixture
def negative(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "CHECKERS", (*registry.CHECKERS, Negative))
    monkeypatch.setattr("tilewright.sim.checks.run.CHECKERS", registry.CHECKERS)


@cute.kernel
def minus(y: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    y[t] = 20.0 - t


def test_names_sets_and_exceptions(negative: None) -> None:
    assert "negative" not in chosen("default")
    assert chosen("negative") == {"negative": True}
    assert "negative" in chosen("all") and "negative" not in chosen("all,-negative")
    assert chosen("default,negative")["negative"] and not chosen("default,negative")["races"]
    assert chosen("none") == {} == chosen("none,-negative")
    with pytest.raises(ArgumentError, match="did you mean 'negative'"):
        chosen("negativ")


def test_a_checker_reports(negative: None) -> None:
    with sim.options(check="negative"), pytest.raises(SimulationError) as caught:
        launch(minus, numbers(32), block=32)
    assert "negative: a negative number is stored" in str(caught.value)
    assert "block (0, 0, 0), warp 0, lane 21 (thread (21, 0, 0))" in str(caught.value)
    (finding,) = caught.value.findings
    assert finding.kernel == "minus" and finding.parties[0].location.file == __file__


def test_one_that_is_not_chosen_does_not(negative: None) -> None:
    with sim.options(check="all,-negative"):
        launch(minus, numbers(32), block=32)


def test_findings_name_the_roles_of_warps() -> None:
    with sim.options(check="races"), pytest.raises(SimulationError) as caught:
        tiles("no wait")
    assert "warp 0 (loads, stores), lane" in str(caught.value)
