"""When a loop that waits gets on: the counts of its turns begin anew, and those of others that wait for it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tilewright.sim.progress import ended, idle_turns

MOST = 64


class Waits:
    """Warps of one wave that turn in loops; each turn has a sample of the loop's own values and of all it writes."""

    def __init__(self) -> None:
        options = SimpleNamespace(idle_turns=MOST)
        self.launch = SimpleNamespace(epoch=0, options=options)
        self.wave = SimpleNamespace(launch=self.launch, turning={})
        self.turns: dict[int, int] = {}

    def group(self, warp: int) -> Any:
        return SimpleNamespace(wave=self.wave, warps=np.array([warp]), spins=self.turns.get(warp, 0))

    def turn(self, warp: int, own: Any = 0, rest: Any = 0) -> int:
        self.turns[warp] = self.turns.get(warp, 0) + 1
        inputs: Any = SimpleNamespace(sample=lambda *_: ([own], rest))
        op: Any = "loop"
        return idle_turns(inputs, self.group(warp), [], [], op, False)

    def until_idle(self, warp: int, **sample: Any) -> int:
        for turn in range(1, 10 * MOST):
            if self.turn(warp, **sample):
                return turn
        return 0


def test_a_loop_whose_values_stay_is_idle_after_as_many_turns_as_the_option_says() -> None:
    waits = Waits()
    assert waits.until_idle(0, rest=None) == MOST + 2  # what it writes is not known; the first sample, then one more
    assert waits.turn(0, rest=None) == MOST + 2


def test_group_that_repeats_its_writes_is_idle_sooner() -> None:
    assert 2 < Waits().until_idle(0, rest=0) < MOST / 2


def test_a_loop_that_counts_its_turns_in_memory_waits_all_the_same() -> None:
    waits = Waits()
    assert not any(waits.turn(0, rest=turn) for turn in range(MOST + 1))
    assert waits.turn(0, rest=-1)


def test_a_loop_of_which_a_value_changes_is_never_idle() -> None:
    waits = Waits()
    assert not any(waits.turn(0, own=turn) for turn in range(4 * MOST))


@pytest.mark.parametrize("rest", [None, 0])
def test_waiter_of_a_progressing_warp_is_not_idle(rest: Any) -> None:
    """Warp 1 gets on every tenth turn only: each time warp 0 may wait again."""
    waits = Waits()
    for turn in range(4 * MOST):
        assert not waits.turn(0, rest=rest)
        assert not waits.turn(1, own=turn // 3, rest=rest)
    assert waits.until_idle(0, rest=rest) <= MOST + 2  # counted from the last turn with progress


@pytest.mark.parametrize("rest", [None, 0])
def test_progress_of_another_group_is_counted_once(rest: Any) -> None:
    waits, alone = Waits(), Waits()
    for _ in range(4):
        waits.turn(0, rest=rest)
    waits.turn(1, own=1, rest=rest)
    assert abs(waits.until_idle(0, rest=rest) - alone.until_idle(0, rest=rest)) <= 1


def test_leaving_a_loop_is_getting_on() -> None:
    waits = Waits()
    waits.turn(1)
    assert not any(waits.turn(0, rest=None) for _ in range(MOST))
    op: Any = "loop"
    ended(waits.group(1), op)
    assert ("loop", 1) not in waits.wave.turning and ("loop", 0) in waits.wave.turning
    assert waits.until_idle(0, rest=None) > MOST - 1
    before = waits.launch.epoch
    ended(waits.group(7), op)  # which has not turned in it
    assert waits.launch.epoch == before
