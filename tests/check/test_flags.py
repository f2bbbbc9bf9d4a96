"""What relaxed writes release by fences: the short way, once for the lanes of a warp, against asking for each lane."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tests.check.pairs import PAIRS, Pair
from tilewright import cute, sim
from tilewright.errors import SimulationError
from tilewright.sim.checks import collecting
from tilewright.sim.checks.flags import Flags

for module in ("blocks", "exchanges", "global_memory"):
    importlib.import_module(f"tests.check.{module}")


def compare(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Compare each answer of the short way with the plain rule; gives a list that grows by whether it was kept."""
    short, kept = Flags._by_fence_once, []

    def once(self: Flags, access: Any, warp: int, lane: Any) -> Any:
        before = len(access.by_fence)
        know, level = short(self, access, warp, lane)
        kept.append(len(access.by_fence) == before)
        plain, same_level = self.released_by_fence(access.clocks, warp, lane, access.site.scope)
        assert level == same_level and (know is None) == (plain is None)
        if know is not None and plain is not None:
            assert know.lanes == plain.lanes and know.rows.keys() == plain.rows.keys()
            assert all((know.rows[cluster] == row).all() for cluster, row in plain.rows.items())
        return know, level

    monkeypatch.setattr(Flags, "_by_fence_once", once)
    return kept


@cute.kernel
def lanes_that_fence(x: cute.Tensor, counts: cute.Tensor, odd_alone: cutlass.Constexpr) -> None:
    """All lanes fence together and synchronise, or (``odd_alone``) those of odd number fence at another time than the
    others; then each adds to a counter of its own, twice."""
    t, _, _ = cute.arch.thread_idx()
    x[t] = cutlass.Int32(t)
    if cutlass.const_expr(odd_alone):
        if t % 2 == 1:
            cute.arch.fence_acq_rel_gpu()
        x[t + 64] = cutlass.Int32(t)
        if t % 2 == 0:
            cute.arch.fence_acq_rel_gpu()
    else:
        cute.arch.fence_acq_rel_gpu()
        cute.arch.sync_warp()
    for _ in cutlass.range_constexpr(2):
        cute.arch.atomic_add((counts.iterator + t).llvm_ptr, cutlass.Int32(1), sem="relaxed", scope="gpu")


@pytest.mark.parametrize("odd_alone", [False, True])
def test_lanes_of_a_warp(odd_alone: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = compare(monkeypatch)

    @cute.jit
    def host(x: cute.Tensor, counts: cute.Tensor) -> None:
        lanes_that_fence(x, counts, odd_alone).launch(grid=(2, 1, 1), block=(64, 1, 1))

    with sim.options(check="races"), collecting():
        host(np.zeros(128, np.int32), np.zeros(64, np.int32))
    assert kept and any(kept) is not odd_alone


@pytest.mark.parametrize("bug", [False, True])
@pytest.mark.parametrize("pair", [p for p in PAIRS if "fence" in p.name or "relaxed" in p.name], ids=lambda p: p.name)
def test_programs_with_fences(pair: Pair, bug: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    compare(monkeypatch)
    try:
        pair.run(bug)
    except SimulationError:
        assert bug
