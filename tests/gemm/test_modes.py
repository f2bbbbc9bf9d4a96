"""Every mode of GemmUniversal with every decomposition and reduction on both main loops: right, and as it was asked
for, or refused for a reason that names what does not go together."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright import sim
from tilewright.errors import ArgumentError
from tilewright.gemm import GemmUniversal, SplitK, StreamK, kernels
from tilewright.gemm.schedule.sm90_streamk import StreamKScheduleSm90

pytestmark = pytest.mark.unchecked

M, N, K, L = 40, 72, 264, 2
HOPPER = kernels()["hopper_f16"]
AMPERE = kernels()["tensorop_f16"]
LOOPS = {
    "ampere": AMPERE.only(replace(AMPERE.config, tile=(64, 32, 32), stages=3)),
    "hopper": HOPPER.only(next(c for c in HOPPER.small if c.tile[:2] == (64, 32) and c.cluster_size == 1)),
}
MODES: dict[str, tuple[str, int]] = {
    "gemm": ("gemm", 1),
    "gemm, split": ("gemm", 2),
    "parallel": ("gemm_split_k_parallel", 2),
    "batched": ("batched", 1),
    "array": ("array", 1),
}
REDUCTIONS = (None, "mixed", "atomic", "shared", "none")
SINGLE, CLUSTERS = "split-K is for a single product", "its blocks do not share k tiles in clusters"
DRAW, POINTERS = "its blocks have no warp that could draw", "not by index or pointer"
SPLITS, PERSISTENT = "splits K in mode 'gemm'", "the schedule is for persistent blocks"
PARALLEL = r"is SplitK\(slices=2, mode='parallel'\), not"
OWN_BLOCK, DRAWN = "each tile has a block of its own", "each tile is drawn by one block"
AT_ONCE = "its blocks need not run at once"
WHOLE_PLAN = "the blocks of this plan share no tile"
WHOLE_SCHEDULE = "the blocks of this schedule share no tile"
NONE_PLAN, NONE_SCHEDULE = "'none' with a plan whose blocks share", "'none' with a schedule whose blocks share"
NONE_SLICES, NONE_SPLIT = "'none' with split-K, whose 2 slices", "'none' with batch_count = 2, which splits K"
ONE_PLAN = "a plan of shared tiles is for a single product|only a single product"
OTHER_SCHEDULE = "no size of kernel hopper_f16 cuts"
RULES = {mode: f"mode '{mode}' has a rule of its own" for mode in ("serial", "parallel", "cluster")}
TILES = {"ampere": (64, 32, 32), "hopper": (64, 32, 64)}
NAMED: dict[str, Any] = {
    "auto": "auto",
    "data_parallel": "data_parallel",
    "dynamic": "dynamic",
    "stream_k": "stream_k",
    "serial": SplitK(2),
    "parallel": SplitK(2, "parallel"),
    "cluster": SplitK(2, "cluster"),
}
PLANNED = ("plan", "whole plan", "schedule", "whole schedule")


def decomposition(loop: str, how: str) -> Any:
    """The named one, or a plan for single products of this size on the loop's tiles."""
    if how in NAMED:
        return NAMED[how]
    if "schedule" in how:
        mode = "DataParallel" if "whole" in how else "SplitK"
        return StreamKScheduleSm90.of((M, N, K, 1), TILES["hopper"], sm_count=6, splits=2, decomposition_mode=mode)
    numbers: dict[str, Any] = {"available": 1} if "whole" in how else {"split": 2}
    return StreamK.of((M, N, K), TILES[loop], multiprocessors=6, occupancy=1, fragments=1, **numbers)


def reason(loop: str, mode: str, how: str, reduction: str | None) -> str | None:
    """Why this cannot be; None where it can. In the order in which the library looks."""
    named, several = reduction not in (None, "none"), mode in ("batched", "array")
    if mode == "gemm, split":
        if how not in ("auto", "data_parallel", "stream_k"):
            return SPLITS
        if how == "data_parallel" or how == "auto" and not named:
            how = "serial"
    if mode == "parallel":
        if how not in ("auto", "parallel"):
            return PARALLEL
        how = "parallel"
    if reduction == "none":
        if mode == "gemm, split":
            return NONE_SPLIT
        if found := {"plan": NONE_PLAN, "schedule": NONE_SCHEDULE, **dict.fromkeys(RULES, NONE_SLICES)}.get(how):
            return found
    if named:
        rules = {
            "data_parallel": OWN_BLOCK,
            "dynamic": DRAWN,
            "whole plan": WHOLE_PLAN,
            "whole schedule": WHOLE_SCHEDULE,
            **RULES,
        }
        if how in rules:
            return rules[how]
    return reason_of_the_kernel(loop, mode, how, reduction, several)


def reason_of_the_kernel(loop: str, mode: str, how: str, reduction: str | None, several: bool) -> str | None:
    if loop == "ampere" and reduction == "shared":
        return AT_ONCE
    if several and how in RULES:
        return SINGLE
    if loop == "ampere":
        if how in ("dynamic", "cluster"):
            return DRAW if how == "dynamic" else CLUSTERS
        if "schedule" in how:
            return PERSISTENT
        return ONE_PLAN if several and "plan" in how else None
    if mode == "array":
        return POINTERS
    if several and how in PLANNED:
        return ONE_PLAN if "plan" in how else OTHER_SCHEDULE
    return None


def integers(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-2, 3, shape).astype(np.float16)


def run(loop: str, mode: str, how: str, reduction: str | None) -> None:
    name, count = MODES[mode]
    lead = (L,) if mode in ("batched", "array") else ()
    a, b, c = (integers(i, *lead, *s) for i, s in enumerate(((M, K), (K, N), (M, N))))
    d = np.full_like(c, 9)
    given: dict[str, Any] = {"A": a, "B": b, "C": c, "D": d}
    if mode == "array":
        given = {key: list(x) for key, x in given.items()}
    handle = GemmUniversal(LOOPS[loop], decomposition(loop, how), reduction)
    arguments = GemmUniversal.Arguments(**given, alpha=2.0, beta=-1.0, mode=name, batch_count=count)
    try:
        handle.initialize(arguments, np.zeros(handle.workspace_size(arguments) + 16, np.uint8))
    except ArgumentError:
        assert not handle.can_implement(arguments) and (d == 9).all()
        raise
    handle.run()
    np.testing.assert_array_equal(d, 2 * (a.astype(float) @ b.astype(float)) - c)
    plan = handle.plan
    if reduction == "none":
        assert plan.shares is None
    elif reduction is not None:
        assert plan.decomposition == "stream_k" and plan.reduction == reduction
        assert plan.shares is not None and plan.shares.sk_tiles
        assert plan.shares.shared_reduction == (reduction == "shared")


@pytest.mark.parametrize("how", [*NAMED, *PLANNED])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("loop", LOOPS)
def test_right_or_refused(loop: str, mode: str, how: str) -> None:
    for reduction in REDUCTIONS:
        expected = reason(loop, mode, how, reduction)
        if expected is None:
            run(loop, mode, how, reduction)
        else:
            with pytest.raises(ArgumentError, match=expected):
                run(loop, mode, how, reduction)


def test_the_table_has_both_for_every_reduction() -> None:
    for reduction in REDUCTIONS:
        found = {
            reason(loop, mode, how, reduction) is None
            for loop, mode, how in itertools.product(LOOPS, MODES, (*NAMED, *PLANNED))
        }
        assert found == {True, False}


@settings(max_examples=6, deadline=None)
@given(st.sampled_from(list(LOOPS)), st.integers(1, 3), st.integers(1, 2), st.integers(3, 9), st.integers(2, 4))
def test_shares_reach_from_one_product_into_the_next(
    loop: str, rows: int, columns: int, depth: int, batch: int
) -> None:
    bM, bN, bK = TILES[loop]
    m, n, k = bM * rows - 24, bN * columns - 8, bK * depth - 8
    a, b = integers(0, batch, m, k), integers(1, batch, k, n)
    d = np.full((batch, m, n), 9, np.float16)
    with sim.options(sms=4):
        handle = GemmUniversal(LOOPS[loop], "stream_k")
        arguments = GemmUniversal.Arguments(A=a, B=b, D=d, mode="batched")
        workspace = np.zeros(handle.workspace_size(arguments) + 16, np.uint8)
        handle.initialize(arguments, workspace)
        handle.run()
        handle.run()  # the flags are zero again
    np.testing.assert_array_equal(d, a.astype(float) @ b.astype(float))
    plan = handle.plan.shares
    tiles = rows * columns * batch
    assert (plan is None) == (tiles % 4 == 0)
    if plan is not None:
        shares = [plan.get_iter_extents(block) for block in range(plan.sk_blocks)]
        edges = {begin for begin, _ in shares} | {end for _, end in shares}
        assert max(edges) == plan.sk_tiles * plan.iters_per_tile and plan.cuts_tiles
