"""Many blocks that wait for each other: what a poll learns is looked at once, however often it looks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tests.check.pairs import launch
from tilewright import cute, sim
from tilewright.sim.checks.race_cells import CellCheck
from tilewright.sim.checks.shadow import Shadow
from tilewright.sim.checks.sparse_clock import SparseClock


@cute.kernel
def taking_turns(count: cute.Tensor, d: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    b, _, _ = cute.arch.block_idx()
    if t == 0:
        while cute.arch.load(count.iterator, sem="acquire", scope="gpu") < b:
            pass
    cute.arch.sync_threads()
    d[t] = d[t] + 1.0
    cute.arch.sync_threads()
    if t == 0:
        cute.arch.atomic_add(count.iterator, cutlass.Int32(1), sem="release", scope="gpu")


def test_a_chain_of_blocks_joins_what_each_block_released_once_for_each_block(monkeypatch: pytest.MonkeyPatch) -> None:
    joins, join = [0], SparseClock.join

    def counted(self: SparseClock, other: SparseClock) -> None:
        joins[0] += 1
        join(self, other)

    monkeypatch.setattr(SparseClock, "join", counted)
    blocks, d = 60, np.zeros(64, np.float32)
    with sim.options(check="all", sms=blocks):
        launch(taking_turns, np.zeros(1, np.int32), d, grid=blocks)
    assert (d == blocks).all()
    assert joins[0] < blocks**2


@cute.kernel
def all_threads_poll(count: cute.Tensor, d: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    b, _, _ = cute.arch.block_idx()
    if b > 0:
        while cute.arch.load(count.iterator, sem="acquire", scope="gpu") < b:
            pass
    d[t] = d[t] + 1.0
    cute.arch.sync_threads()
    if t == 0:
        cute.arch.atomic_add(count.iterator, cutlass.Int32(1), sem="release", scope="gpu")


def test_a_chain_whose_threads_all_poll_is_not_looked_at_lane_by_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = [0]

    def counted(function: Any) -> Any:
        def call(*args: Any) -> Any:
            calls[0] += 1
            return function(*args)

        return call

    for kind, name in ((Shadow, "keep_strong"), (CellCheck, "_happened_before")):
        monkeypatch.setattr(kind, name, counted(getattr(kind, name)))
    blocks, d = 40, np.zeros(64, np.float32)
    with sim.options(check="all", sms=blocks):
        launch(all_threads_poll, np.zeros(1, np.int32), d, grid=blocks)
    assert (d == blocks).all()
    assert calls[0] < blocks**2 * 4
