"""Every way to bring the sums of a tile's blocks together, on every main loop: exact for integers, any shape."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.covering import covering
from tests.gemm.test_gemm import KERNELS, MACHINES, OUT, integers
from tests.gemm.test_hopper import operands, product, sized
from tests.gemm.test_sharing import plan, tile_of
from tilewright import Float16, cute, sim
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ArgumentError
from tilewright.gemm import Bias, Chain, KernelEntry, LinearCombination, Relu, SplitK, StreamK, gemm, kernels, launcher
from tilewright.gemm.host.plan import Plan
from tilewright.gemm.host.problem import Problem
from tilewright.gemm.schedule.launch_arguments import workspace_of
from tilewright.gemm.schedule.raster import raster_of
from tilewright.gemm.schedule.sm90_streamk import StreamKScheduleSm90

pytestmark = pytest.mark.unchecked

AMPERE = tile_of("tensorop_f16", "config").only(replace(kernels()["tensorop_f16"].config, tile=(64, 32, 32), stages=3))
HOPPER = sized((64, 32), epilogue_columns=8)
LOOPS = {"ampere": AMPERE, "hopper": HOPPER}

PLANS: dict[str, dict[str, int]] = {
    "uneven shares": {"multiprocessors": 5, "occupancy": 1},
    "regions, remapped": {"multiprocessors": 7, "occupancy": 2, "split": 4},
    "reduction blocks": {"multiprocessors": 40, "occupancy": 3, "split": 3, "fragments": 2},
    "semi-persistent": {"multiprocessors": 4, "occupancy": 4},
}
"""Of 136 x 200 x 608 in tiles of 64 x 32."""


def made(name: str, entry: KernelEntry, problem: tuple[int, int, int]) -> StreamK:
    return plan(problem, entry, **PLANS[name])


def check(a: np.ndarray, b: np.ndarray, entry: KernelEntry, machine: str = "cpu", **more: Any) -> Any:
    """D = A B + 2 C, exactly."""
    c = (np.arange(a.shape[0] * b.shape[1]).reshape(a.shape[0], b.shape[1]) % 7).astype(np.float16)
    report = gemm(a, b, c, beta=2.0, kernel=entry, machine=machine, **more)
    np.testing.assert_array_equal(report.d, (product(a, b) + 2 * c).astype(np.float16))
    return report


@pytest.mark.tilewright_check("all")
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("loop", "name", "reduction"),
    [
        *((loop, name, "mixed") for loop in LOOPS for name in PLANS),
        ("hopper", "uneven shares", "atomic"),
        ("ampere", "regions, remapped", "atomic"),  # flags of one number in two arrays
    ],
)
def test_stream_k(loop: str, name: str, reduction: str, machine: str) -> None:
    entry = LOOPS[loop]
    a, b = operands("hopper_f16", 136, 200, 512)
    report = check(a, b, entry, machine, decomposition=made(name, entry, (136, 200, 512)), reduction=reduction)
    assert report.decomposition == "stream_k"


@pytest.mark.tilewright_check("all")
def test_a_block_of_two_tiles_beside_reduction_blocks() -> None:
    """The copies of its second tile go where the epilogue of the first one reads: a barrier is between them."""
    entry = kernels()["tensorop_f16"]
    bM, bN, bK = entry.config.tile
    shares = StreamK.of(
        (3 * bM, bN, 3 * bK), entry.config.tile, multiprocessors=1, occupancy=4, fragments=1, shared=(1, 3)
    )
    assert shares.reduction_blocks and shares.dp_first_wave_tiles == 2
    check(*operands("hopper_f16", 3 * bM, bN, 3 * bK), entry, decomposition=shares)


def test_the_plans_are_varied() -> None:
    plans = {name: made(name, AMPERE, (136, 200, 608)) for name in PLANS}
    assert plans["regions, remapped"].remap_block_indices and plans["regions, remapped"].sk_regions > 1
    assert plans["reduction blocks"].reduction_blocks > 0
    assert plans["semi-persistent"].sk_tiles > 0 and plans["semi-persistent"].dp_blocks > 0
    assert plans["semi-persistent"].dp_first_wave_tiles > 1
    assert all(p.sk_tiles > 0 for p in plans.values())


@settings(deadline=None)
@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 9), st.integers(1, 12), st.integers(1, 4))
def test_plans_that_cut_tiles(down: int, across: int, k_tiles: int, sms: int, split: int) -> None:
    shares = StreamK.of((down, across, k_tiles), (1, 1, 1), multiprocessors=sms, occupancy=1, fragments=1, split=split)
    extents = [shares.get_iter_extents(block) for block in range(shares.sk_blocks)]
    assert shares.cuts_tiles is any(end % k_tiles for extent in extents for end in extent)


def test_tiles_in_cohorts() -> None:
    problem = (952, 240, 512)
    a, b = operands("hopper_f16", *problem)
    shares = plan(problem, AMPERE, multiprocessors=7)
    assert shares.cohort_raster and shares.sk_tiles > 0 and shares.num_blocks > 7 + 15 * 8 - shares.sk_tiles
    check(a, b, AMPERE, decomposition=shares)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("slices", [1, 3, 50])
@pytest.mark.parametrize("mode", ["serial", "parallel"])
@pytest.mark.parametrize("loop", LOOPS)
def test_split_k(loop: str, mode: str, slices: int, machine: str) -> None:
    """Also into more slices than there are k tiles."""
    a, b = operands("hopper_f16", 136, 200, 608)
    report = check(a, b, LOOPS[loop], machine, decomposition=SplitK(slices, mode))
    assert report.decomposition == "split_k"


@pytest.mark.parametrize(
    ("name", "mode"), covering([n for n in KERNELS if n != "tensorop_f16"], ["serial", "parallel"], strength=1)
)
def test_split_k_of_every_kernel(name: str, mode: str) -> None:
    entry = kernels()[name]
    m, n, k = 72, 72, 3 * entry.config.tile[2] + 8
    rng = np.random.default_rng(3)
    a, b = integers(rng, (m, k), KERNELS[name]), integers(rng, (k, n), KERNELS[name])
    d = gemm(a, b, kernel=name, decomposition=SplitK(2, mode)).d
    np.testing.assert_array_equal(d.astype(np.float64), product(a, b).astype(OUT[name]).astype(np.float64))


@settings(max_examples=15, deadline=None)
@given(
    st.integers(1, 200),
    st.integers(1, 200),
    st.integers(1, 300),
    st.integers(1, 12),
    st.integers(1, 3),
    st.integers(1, 4),
    st.sampled_from(["mixed", "atomic"]),
    st.booleans(),
    st.booleans(),
)
def test_any_plan_on_ampere(
    m: int, n: int, k: int, sms: int, occupancy: int, split: int, reduction: str, a_turned: bool, b_turned: bool
) -> None:
    rng = np.random.default_rng(m * n * k)
    a, b = integers(rng, (m, k), np.float16, a_turned), integers(rng, (k, n), np.float16, b_turned)
    shares = plan((m, n, k), AMPERE, multiprocessors=sms, occupancy=occupancy, split=split, fragments=2)
    check(a, b, AMPERE, decomposition=shares, reduction=reduction if shares.sk_tiles else None)


@settings(max_examples=12, deadline=None)
@given(
    st.integers(1, 25),
    st.integers(1, 25),
    st.integers(1, 40),
    st.integers(1, 12),
    st.integers(1, 4),
    st.sampled_from(["mixed", "atomic"]),
)
def test_any_plan_on_hopper(m: int, n: int, k: int, sms: int, split: int, reduction: str) -> None:
    a, b = operands("hopper_f16", 8 * m, 8 * n, 8 * k)
    shares = plan((8 * m, 8 * n, 8 * k), HOPPER, multiprocessors=sms, occupancy=2, split=split, fragments=2)
    check(a, b, HOPPER, decomposition=shares, reduction=reduction if shares.sk_tiles else None)


@settings(max_examples=12, deadline=None)
@given(
    st.integers(1, 150),
    st.integers(1, 150),
    st.integers(0, 300),
    st.integers(1, 9),
    st.sampled_from(["serial", "parallel"]),
)
def test_any_split_on_ampere(m: int, n: int, k: int, slices: int, mode: str) -> None:
    rng = np.random.default_rng(m * n * k)
    a, b = integers(rng, (m, k), np.float16), integers(rng, (k, n), np.float16)
    check(a, b, AMPERE, decomposition=SplitK(slices, mode))


def bias_relu(n: int) -> Chain:
    acc = AMPERE.config.acc_dtype
    bias = from_dlpack((np.arange(n, dtype=np.float32) % 5) - 20).mark_layout_dynamic()
    return Chain((LinearCombination(acc(1), acc(2)), Bias(bias), Relu()))


@pytest.mark.parametrize("how", [SplitK(3, "serial"), SplitK(3, "parallel"), "reduction blocks"], ids=str)
@pytest.mark.parametrize("loop", LOOPS)
def test_epilogue_functions_see_whole_sums(loop: str, how: Any) -> None:
    m, n, k = 136, 200, 608
    a, b = operands("hopper_f16", m, n, k)
    c = (np.arange(m * n).reshape(m, n) % 7).astype(np.float16)
    decomposition = made(how, LOOPS[loop], (m, n, k)) if isinstance(how, str) else how
    d = gemm(a, b, c, kernel=LOOPS[loop], decomposition=decomposition, epilogue=bias_relu(n)).d
    expected = np.maximum(product(a, b) + 2 * c + (np.arange(n) % 5) - 20, 0)
    assert (expected == 0).any() and (expected > 0).any()
    np.testing.assert_array_equal(d, expected.astype(np.float16))


@dataclass(frozen=True)
class Doubled:
    @cute.jit
    def __call__(self, acc: cute.Tensor, tile: Any) -> None:
        acc.store(acc.load() * 2)


def test_serial_split_k_asks_what_a_function_is_for_a_part() -> None:
    a, b = operands("hopper_f16", 72, 72, 128)
    with pytest.raises(ArgumentError, match="Doubled has no set_k_partition"):
        gemm(a, b, kernel=AMPERE, decomposition=SplitK(2), epilogue=Doubled())
    with pytest.raises(ArgumentError, match="Chain has no set_k_partition"):
        gemm(a, b, kernel=AMPERE, decomposition=SplitK(2), epilogue=Chain((Doubled(),)))
    d = gemm(a, b, kernel=AMPERE, decomposition=SplitK(2, "parallel"), epilogue=Doubled()).d
    np.testing.assert_array_equal(d, (2 * product(a, b)).astype(np.float16))


@pytest.mark.parametrize("how", [SplitK(3), SplitK(3, "parallel")], ids=str)
@pytest.mark.parametrize("loop", LOOPS)
def test_reductions_have_no_races(loop: str, how: SplitK) -> None:
    a, b = operands("hopper_f16", 72, 72, 320)
    with sim.options(check="all"):
        check(a, b, LOOPS[loop], decomposition=how)


def test_launches_follow_each_other() -> None:
    """Flags and semaphores are left as they were found."""
    m, n, k = 72, 72, 320
    a, b = operands("hopper_f16", m, n, k)
    for entry in LOOPS.values():
        shares = plan((m, n, k), entry, multiprocessors=40, occupancy=3, split=3, fragments=2)
        for how, reduction in ((shares, "mixed"), (shares, "atomic"), (SplitK(3), None)):
            out = np.zeros((m, n), np.float16)
            launch = launcher(a, b, out, kernel=entry, decomposition=how, reduction=reduction)
            for _ in range(2):
                out[:] = 77
                launch()
                np.testing.assert_array_equal(out, product(a, b).astype(np.float16))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"decomposition": SplitK(2, "cluster")}, "do not share k tiles in clusters"),
        ({"reduction": "sum"}, "reduction must be one of none, mixed, atomic, shared, got 'sum'"),
        (
            {"reduction": "none", "decomposition": made("uneven shares", AMPERE, (136, 200, 608))},
            "reduction 'none' with",
        ),
    ],
)
def test_ways_that_do_not_fit(changes: dict[str, Any], message: str) -> None:
    a, b = operands("hopper_f16", 136, 200, 608)
    with pytest.raises(ArgumentError, match=message):
        gemm(a, b, kernel=AMPERE, **changes)


def test_batches_are_not_split() -> None:
    a, b = np.zeros((2, 64, 64), np.float16), np.zeros((2, 64, 64), np.float16)
    with pytest.raises(ArgumentError, match="split-K is for a single product, not for a batch of 2"):
        gemm(a, b, kernel=AMPERE, decomposition=SplitK(2))


def test_plans_without_reduction_share_no_tiles() -> None:
    a, b = operands("hopper_f16", 72, 72, 3200)
    assert gemm(a, b, kernel=AMPERE, decomposition="stream_k").decomposition == "stream_k"
    assert gemm(a, b, kernel=AMPERE, decomposition="stream_k", reduction="none").decomposition == "data_parallel"


@pytest.mark.parametrize(("slices", "mode"), [(0, "serial"), (2.0, "serial"), (2, "series")])
def test_split_k_is_checked(slices: Any, mode: str) -> None:
    with pytest.raises(ArgumentError, match="slices must be a positive integer|mode must be one of serial, parallel"):
        SplitK(slices, mode)


def test_workspaces() -> None:
    """As much as CUTLASS 2.x asks for: a tile, or with reduction blocks two, for each Stream-K block, and its flags."""
    shares = made("uneven shares", AMPERE, (136, 200, 608))
    shape = (136, 200, 608, 1)
    assert workspace_of(shares, AMPERE.config, shape).size == shares.sk_blocks * 64 * 32 * 4 + 128
    separate = made("reduction blocks", AMPERE, (136, 200, 608))
    expected = separate.partials_workspace_size(64 * 32 * 4) + separate.barrier_workspace_size
    assert workspace_of(separate, AMPERE.config, shape).size == expected
    assert workspace_of(SplitK(3), AMPERE.config, shape).size == 128  # a semaphore for each of 21 tiles
    assert workspace_of(SplitK(3, "parallel"), AMPERE.config, shape).size == 3 * 136 * 200 * 4
    assert workspace_of(None, AMPERE.config, shape).size == 0


# -- Hopper's own schedule, and clusters that share tiles --------------------------------------------------------------


@pytest.mark.tilewright_check("default")
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("reduction", ["mixed", "atomic"])
@pytest.mark.parametrize("cluster", [(1, 1), (2, 1), (1, 2)], ids=str)
def test_clusters_share_tiles(cluster: tuple[int, int], reduction: str, machine: str) -> None:
    """Each block exchanges sums with those at its place in the other clusters."""
    entry = sized((64, 32), epilogue_columns=8, cluster=cluster)
    m, n, k = 72, 136, 320
    a, b = operands("hopper_f16", m, n, k)
    tile = entry.config.cluster_tile
    shares = StreamK.of((m, n, k), tile, multiprocessors=3, occupancy=1, fragments=1, shared=(4, 3))
    report = check(a, b, entry, machine, decomposition=shares, reduction=reduction)
    assert report.decomposition == "stream_k"


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("cluster", "numbers"),
    [
        ((1, 1), {"decomposition_mode": "StreamK"}),
        ((2, 1), {"decomposition_mode": "StreamK"}),
        ((1, 1), {"splits": 3}),
        ((1, 1), {"decomposition_mode": "DataParallel"}),
    ],
    ids=str,
)
def test_hoppers_schedule(cluster: tuple[int, int], numbers: dict[str, Any], machine: str) -> None:
    m, n, k = 72, 72, 64 * 12
    entry = sized((64, 32), epilogue_columns=8, cluster=cluster)
    schedule = StreamKScheduleSm90.of((m, n, k, 1), entry.config.tile, cluster, sm_count=4, **numbers)
    assert schedule.sk_groups > 1 or numbers.get("decomposition_mode") != "StreamK" or cluster != (1, 1)
    a, b = operands("hopper_f16", m, n, k)
    report = check(a, b, entry, machine, decomposition=schedule)
    assert report.decomposition == ("data_parallel" if "DataParallel" in numbers.values() else "stream_k")


def test_a_schedule_for_other_tiles() -> None:
    schedule = StreamKScheduleSm90.of((136, 200, 608, 1), (128, 128, 64), sm_count=8)
    a, b = operands("hopper_f16", 136, 200, 608)
    with pytest.raises(ArgumentError, match=r"no size of kernel hopper_f16 cuts 136 x 200 x 608 into these"):
        gemm(a, b, kernel=HOPPER, decomposition=schedule)
    with pytest.raises(ArgumentError, match="the schedule is for persistent blocks"):
        gemm(a, b, kernel=AMPERE, decomposition=schedule)


@pytest.mark.parametrize(("raster", "swizzle"), [("AlongM", 1), ("AlongN", 2), ("AlongM", 4)])
def test_a_schedules_order_of_tiles_and_reduction(raster: str, swizzle: int) -> None:
    """Clusters take tiles in its order, and add up by its reduction_mode unless another way is named."""
    cluster, (m, n, k) = (1, 2), (64 * 8, 64 * 16, 64 * 9)
    entry = sized((64, 32), epilogue_columns=8, cluster=cluster)
    schedule = StreamKScheduleSm90.of(
        (m, n, k, 1),
        entry.config.tile,
        cluster,
        sm_count=20,
        raster=raster,
        max_swizzle=swizzle,
        reduction_mode="Nondeterministic",
        decomposition_mode="StreamK",
    )
    persistent = schedule.persistent
    assert (persistent.along_n, 1 << persistent.log_swizzle_size) == (raster == "AlongN", swizzle)
    a, b = operands("hopper_f16", m, n, k)
    problem = Problem.of(a, b, out_dtype=Float16)
    found = Plan.of(problem, [entry], schedule, "cpu")
    down, across, _ = persistent.clusters_mnl
    order = [raster_of(found.config).tile(i, down, across) for i in range(down * across)]
    first = [persistent.tile(2 * i, (0, 0))[:2] for i in range(down * across)]  # a cluster's first block
    assert order == [(m, n // 2) for m, n in first]
    assert found.reduction == "atomic" and Plan.of(problem, [entry], schedule, "cpu", "shared").shares.shared_reduction
    in_order = replace(schedule, reduction_mode="Deterministic")
    assert Plan.of(problem, [entry], in_order, "cpu").reduction == "mixed"
    with pytest.raises(ArgumentError, match="reduction 'mixed' with a schedule whose reduction_mode"):
        Plan.of(problem, [entry], schedule, "cpu", "mixed")
    if swizzle == 4:
        np.testing.assert_array_equal(
            gemm(a, b, kernel=entry, decomposition=schedule).d, product(a, b).astype(np.float16)
        )
