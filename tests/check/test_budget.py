"""When the budget of the default check for races is spent, it stops and keeps nothing, and the others go on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.check.pairs import launch, shared
from tilewright import cute, sim
from tilewright.sim.checks import races
from tilewright.sim.checks.collect import collecting
from tilewright.sim.checks.order import HappensBefore


@cute.kernel
def exchanges(y: cute.Tensor):
    """Blocks of several waves whose warps meet at two barriers; the last two warps come from other places to one."""
    t, _, _ = cute.arch.thread_idx()
    b, _, _ = cute.arch.block_idx()
    s = shared(64)
    for turn in range(4):
        s[t] = cute.Float32(t + turn)
        cute.arch.sync_threads()
        y[64 * b + t] = s[63 - t]
        cute.arch.sync_threads()
    if b == 9:
        if t < 32:
            cute.arch.sync_threads()
        else:
            cute.arch.sync_threads()


@pytest.mark.parametrize("budget", [0, 1000, 1 << 18])
def test_other_checks_continue_when_the_budget_is_spent(budget: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(races, "BUDGET", budget)
    waves = []
    begin = HappensBefore.wave

    def wave(self: HappensBefore, wave: object) -> None:
        waves.append(wave)
        begin(self, wave)

    monkeypatch.setattr(HappensBefore, "wave", wave)
    y = np.zeros(640, np.float32)
    with sim.options(check="default", lanes=128), collecting() as report:
        launch(exchanges, y, grid=10)
    assert report.rules == ["barrier-divergent"]
    assert (y.reshape(10, 64) == 66 - np.arange(64)).all()
    assert len(waves) == (5 if budget > 1000 else 1)  # of two blocks each; the order is kept as long as a check asks


@cute.kernel
def all_kinds_of_races(x: cute.Tensor, y: cute.Tensor):
    """In shared memory, in global memory, and by atomics."""
    t, _, _ = cute.arch.thread_idx()
    s = shared(64)
    s[t] = x[t]
    y[t] = s[63 - t]
    x[0] = y[t]
    cute.arch.atomic_add(y.iterator, 1.0)


@pytest.mark.parametrize("blocks", [1, 2, 3])
def test_launches_of_too_many_threads_are_not_looked_at(blocks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as the cells of a shadow have numbers for."""
    units: list[int] = []
    begin = races.Races.begin

    def counted(self: races.Races, launch: Any) -> None:
        begin(self, launch)
        units.append(launch.geometry.blocks * self.order.layout.block)

    def rules() -> list[str]:
        with sim.options(check="races"), collecting() as report:
            launch(all_kinds_of_races, np.zeros(64, np.float32), np.zeros(64, np.float32), grid=blocks)
        return [finding.rule for finding in report]

    monkeypatch.setattr(races.Races, "begin", counted)
    assert len(rules()) > 2
    for most, looked_at in ((units[0] + 1, True), (units[0], False), (1, False)):
        monkeypatch.setattr(races, "MOST_UNITS", most)
        assert bool(rules()) == looked_at
