"""Stream-K whose blocks share the adding up: each block of a tile adds up, and writes, a part of it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.gemm.test_gemm import MACHINES
from tests.gemm.test_hopper import KERNELS, OUT, operands, product, sized
from tests.gemm.test_reductions import AMPERE, bias_relu
from tilewright import cute, sim
from tilewright.errors import ArgumentError, ConstraintError, TilewrightError
from tilewright.gemm import GemmUniversal, KernelEntry, StreamK, cross_compile, gemm, kernels, launcher
from tilewright.gemm.choice.choose import best
from tilewright.gemm.schedule.fixup import Fixup
from tilewright.gemm.schedule.launch_arguments import workspace_of
from tilewright.gemm.schedule.sm90_streamk import StreamKScheduleSm90
from tilewright.gemm.tuning.candidate import Candidate
from tilewright.lang.launch.machine import machine_of

pytestmark = pytest.mark.unchecked

ENTRY = sized((64, 32), epilogue_columns=8)
PROBLEM = (136, 200, 608)  # 3 x 7 tiles of 10 k tiles


def shares_of(entry: KernelEntry, problem: tuple[int, int, int], shared: tuple[int, int], sms: int = 8) -> StreamK:
    m, n, k = problem
    extents = (n, m, k) if entry.config.transposed else problem
    return StreamK.of(extents, entry.config.cluster_tile, multiprocessors=sms, occupancy=1, fragments=1, shared=shared)


def check(
    entry: KernelEntry, problem: tuple[int, int, int], plan: Any, machine: str = "cpu", kernel: str = "hopper_f16"
) -> Any:
    """D = A B + 2 C, exactly."""
    m, n, k = problem
    a, b = operands(kernel, m, n, k)
    c = (np.arange(m * n).reshape(m, n) % 7).astype(OUT[kernel])
    report = gemm(a, b, c, beta=2.0, kernel=entry, machine=machine, decomposition=plan, reduction="shared")
    expected = (product(a, b) + 2 * c.astype(np.float64)).astype(OUT[kernel])
    np.testing.assert_array_equal(report.d.astype(np.float64), expected.astype(np.float64))
    assert report.decomposition == "stream_k"
    return report


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("shared", "cluster"),
    [((4, 3), (1, 1)), ((2, 10), (1, 1)), ((3, 3), (1, 1)), ((1, 9), (1, 1)), ((4, 3), (2, 1)), ((4, 16), (1, 2))],
    ids=str,
)
def test_exact_for_integers(shared: tuple[int, int], cluster: tuple[int, int], machine: str) -> None:
    """Shares of parts of several tiles, even parts of each, whole tiles, more blocks than parts of the epilogue; other
    tiles beside the shared ones, ragged edges."""
    entry = sized((64, 32), epilogue_columns=8, cluster=cluster)
    report = check(entry, PROBLEM, shares_of(entry, PROBLEM, shared), machine)
    size = cluster[0] * cluster[1]
    plan = shares_of(entry, PROBLEM, shared)
    whole = plan.tiled_shape[0] * plan.tiled_shape[1] - shared[0]
    assert report.grid == (size * max(shared[1], whole), 1, 1)


TILES: list[tuple[tuple[int, int], dict[str, Any]]] = [
    ((128, 64), {"epilogue_columns": 8}),
    ((128, 144), {"transposed": True, "epilogue_columns": 16}),
    ((128, 320), {"stages": 3, "epilogue_columns": 32}),
    ((192, 64), {"epilogue_columns": 16}),
    ((64, 64), {"epilogue_columns": 16, "roles": "one"}),
    ((64, 64), {}),
]


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("tile", "changes"), TILES, ids=str)
def test_sizes(tile: tuple[int, int], changes: dict[str, Any], machine: str) -> None:
    """One to three warpgroups, side by side or one below the other, parts of several widths."""
    entry = sized(tile, **changes)
    problem = (136, 328, 64 * 5 + 16)
    plan = shares_of(entry, problem, (99, 99))
    tiles = plan.sk_tiles
    check(entry, problem, shares_of(entry, problem, (tiles, 3 * tiles), 3 * tiles), machine)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_type(kernel: str, machine: str) -> None:
    entry = sized((64, 64), entry=kernels()[kernel], epilogue_columns=16)
    problem = (72, 136, 7 * entry.config.tile[2])
    check(entry, problem, shares_of(entry, problem, (6, 15), 15), machine, kernel)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("turned", [(0, 0, 0), (1, 0, 1), (0, 1, 0), (1, 1, 1)], ids=str)
def test_every_major(turned: tuple[int, int, int], machine: str) -> None:
    rng = np.random.default_rng(0)
    m, n, k = 136, 72, 320
    a, b, c = (
        rng.integers(-3, 4, s).astype(np.float16) if not t else rng.integers(-3, 4, s[::-1]).astype(np.float16).T
        for s, t in zip(((m, k), (k, n), (m, n)), turned, strict=True)
    )
    out = np.zeros((m, n), np.float16) if not turned[2] else np.zeros((n, m), np.float16).T
    plan = shares_of(ENTRY, (m, n, k), (9, 20), 20)
    gemm(a, b, c, beta=1.0, out=out, kernel=ENTRY, machine=machine, decomposition=plan, reduction="shared")
    np.testing.assert_array_equal(out, (product(a, b) + c).astype(np.float16))


@settings(max_examples=12, deadline=None)
@given(
    st.integers(1, 25),
    st.integers(1, 25),
    st.integers(1, 60),
    st.integers(1, 60),
    st.integers(1, 60),
    st.sampled_from([(1, 1), (2, 1), (1, 2)]),
)
def test_any_plan(m: int, n: int, k: int, tiles: int, blocks: int, cluster: tuple[int, int]) -> None:
    problem = (8 * m, 8 * n, 8 * k)
    entry = sized((64, 32), epilogue_columns=8, cluster=cluster)
    check(entry, problem, shares_of(entry, problem, (tiles, blocks), 60))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("cluster", [(1, 1), (2, 1)], ids=str)
def test_hoppers_schedule(cluster: tuple[int, int], machine: str) -> None:
    """Groups of units that take every other tile."""
    m, n, k = 72, 72, 64 * 12
    entry = sized((64, 32), epilogue_columns=8, cluster=cluster)
    schedule = StreamKScheduleSm90.of(
        (m, n, k, 1), entry.config.tile, cluster, sm_count=4, decomposition_mode="StreamK"
    )
    assert schedule.sk_groups > 1 or cluster != (1, 1)
    check(entry, (m, n, k), schedule, machine)


def test_epilogue_functions_see_whole_sums() -> None:
    m, n, k = PROBLEM
    a, b = operands("hopper_f16", m, n, k)
    c = (np.arange(m * n).reshape(m, n) % 7).astype(np.float16)
    plan = shares_of(ENTRY, PROBLEM, (21, 60), 60)
    d = gemm(a, b, c, kernel=ENTRY, decomposition=plan, reduction="shared", epilogue=bias_relu(n)).d
    expected = np.maximum(product(a, b) + 2 * c + (np.arange(n) % 5) - 20, 0)
    assert (expected == 0).any() and (expected > 0).any()
    np.testing.assert_array_equal(d, expected.astype(np.float16))


@pytest.mark.parametrize(
    ("shared", "tile", "changes"),
    [
        ((4, 3), (64, 32), {"epilogue_columns": 8}),
        ((4, 16), (64, 32), {"epilogue_columns": 8, "cluster": (2, 1)}),
        ((4, 16), *TILES[4]),
    ],
    ids=str,
)
def test_shared_reduction_has_no_races(shared: tuple[int, int], tile: tuple[int, int], changes: dict[str, Any]) -> None:
    entry = sized(tile, **changes)
    with sim.options(check="all", sms=40):
        check(entry, PROBLEM, shares_of(entry, PROBLEM, shared))


def test_the_same_bits_in_any_order() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((136, 608)).astype(np.float16), rng.standard_normal((608, 72)).astype(np.float16)
    plan = shares_of(ENTRY, (136, 72, 608), (9, 31), 31)
    found = []
    for seed in range(4):
        with sim.options(seed=seed):
            found.append(gemm(a, b, kernel=ENTRY, decomposition=plan, reduction="shared").d)
    assert all(np.array_equal(found[0], other) for other in found[1:])
    np.testing.assert_allclose(found[0].astype(float), product(a, b), rtol=2e-3, atol=2e-2)


@pytest.mark.parametrize("cluster", [(1, 1), (2, 1)], ids=str)
def test_launches_leave_the_workspace_clean(cluster: tuple[int, int]) -> None:
    entry = sized((64, 32), epilogue_columns=8, cluster=cluster)
    m, n, k = PROBLEM
    a, b = operands("hopper_f16", m, n, k)
    d = np.zeros((m, n), np.float16)
    plan = shares_of(entry, PROBLEM, (5, 16), 16)
    handle = GemmUniversal(entry, plan, "shared")
    arguments = GemmUniversal.Arguments(A=a, B=b, D=d)
    needed = workspace_of(replace(plan, shared_reduction=True), entry.config, (*PROBLEM, 1))
    assert needed.flags == 5 * cluster[0] and handle.workspace_size(arguments) == needed.size
    workspace = np.full(needed.size, 0xFF, np.uint8)
    handle.initialize(arguments, workspace)
    for _ in range(3):
        d[:] = 77
        handle.run()
        np.testing.assert_array_equal(d, product(a, b).astype(np.float16))
        assert not workspace[needed.flags_offset : needed.flags_offset + 4 * needed.flags].any()


@cute.jit
def wait_for_all_but_one(self: Fixup, flag: Any, tidx: Any, count: Any) -> None:
    if tidx == 0:
        while cute.arch.load(flag, sem="acquire", scope="gpu") < count - 1:
            pass
    self.sync()


@cute.jit
def wait_in_one_thread(self: Fixup, flag: Any, tidx: Any, count: Any) -> None:
    if tidx == 0:
        while cute.arch.load(flag, sem="acquire", scope="gpu") < count:
            pass


@cute.jit
def wait_relaxed(self: Fixup, flag: Any, tidx: Any, count: Any) -> None:
    if tidx == 0:
        while cute.arch.load(flag, sem="relaxed", scope="gpu") < count:
            pass
    self.sync()


@pytest.mark.parametrize("wait", [wait_for_all_but_one, wait_in_one_thread, wait_relaxed], ids=lambda w: w.__name__)
def test_a_wait_that_is_wrong_is_reported(wait: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Fixup, "wait_until", wait)
    stages = 3 + [wait_for_all_but_one, wait_in_one_thread, wait_relaxed].index(wait)  # kernels of this test alone
    entry = sized((64, 32), epilogue_columns=16, stages=stages)
    plan = shares_of(entry, (72, 72, 640), (6, 20), 20)
    a, b = operands("hopper_f16", 72, 72, 640)
    with sim.options(check="all"), pytest.raises(TilewrightError, match="race|never written|uninitiali"):
        gemm(a, b, kernel=entry, decomposition=plan, reduction="shared")


def test_blocks_run_at_once_or_not_at_all() -> None:
    """The driver is asked for all blocks at once; more than the GPU holds are refused before."""
    a, b = operands("hopper_f16", 72, 72, 640)
    out = np.zeros((72, 72), np.float16)
    plan = shares_of(ENTRY, (72, 72, 640), (6, 20), 20)
    for reduction, asked in (("shared", ("use_pdl", "cooperative")), ("mixed", ("use_pdl",)), ("atomic", ("use_pdl",))):
        launch = launcher(a, b, out, kernel=ENTRY, decomposition=plan, reduction=reduction)
        with machine_of("cpu").profile(None) as profile:
            launch()
        assert [config.attributes for _, config in profile.launches] == [asked]
    with sim.options(sms=19), pytest.raises(ConstraintError, match=r"20 blocks share tiles .* runs 19 at once"):
        gemm(a, b, kernel=ENTRY, decomposition=plan, reduction="shared")
    with sim.options(sms=19):
        gemm(a, b, kernel=ENTRY, decomposition=plan)
    pairs = sized((64, 32), epilogue_columns=8, cluster=(2, 1))
    with sim.options(sms=10), pytest.raises(ConstraintError, match="6 clusters share tiles .* runs 5 at once"):
        gemm(a, b, kernel=pairs, decomposition=shares_of(pairs, (72, 72, 640), (3, 6)), reduction="shared")


def test_the_librarys_plan() -> None:
    """As on a GPU of a few multiprocessors: nothing is said of the size and the shares."""
    m, n, k = 72, 136, 4096
    a, b = operands("hopper_f16", m, n, k)
    d = np.zeros((m, n), np.float16)
    with sim.options(sizes="gpu", sms=16):
        launch = launcher(a, b, d, kernel="hopper_f16", decomposition="stream_k", reduction="shared")
        with machine_of("cpu").profile(None) as profile:
            launch()
    assert profile.launches[0][1].attributes == ("use_pdl", "cooperative")
    np.testing.assert_array_equal(d, product(a, b).astype(np.float16))


def test_shared_reduction_round_trips_as_text() -> None:
    """As tuning remembers it."""
    entry, plan = best(kernels()["hopper_f16"], "auto", (136, 512, 32768, 1), (132, 232448))
    written = Candidate.of(entry, plan)
    read = Candidate.from_json(json.loads(json.dumps(written.to_json())))
    assert read == written and "that add up" in str(read)
    assert read.entry.config == entry.config
    again = read.decomposition((136, 512, 32768, 1), 132, 232448)
    assert isinstance(again, StreamK) and plan is not None
    assert (again.shared_reduction, again.sk_tiles, again.sk_blocks) == (True, plan.sk_tiles, plan.sk_blocks)


def test_a_kernel_without_persistent_blocks() -> None:
    a, b = operands("hopper_f16", *PROBLEM)
    with pytest.raises(ArgumentError, match="its blocks need not run at once.*reduction 'shared'"):
        gemm(a, b, kernel=AMPERE, decomposition="stream_k", reduction="shared")
    plan = replace(shares_of(AMPERE, PROBLEM, (5, 16)), shared_reduction=True)
    with pytest.raises(ArgumentError, match="its blocks need not run at once"):
        gemm(a, b, kernel=AMPERE, decomposition=plan)


@pytest.mark.parametrize(
    ("tile", "changes"),
    [TILES[3], ((256, 128), {"cluster": (2, 1), "epilogue_columns": 8})],
    ids=str,
)
def test_compiled(tile: tuple[int, int], changes: dict[str, Any]) -> None:
    artifact = cross_compile(sized(tile, **changes).config, "sm_90a", "stream_k", "shared")
    assert artifact.spills == 0 and artifact.stack == 0 and "serializ" not in artifact.log


@pytest.mark.gpu
@pytest.mark.parametrize("cluster", [(1, 1), (2, 1)], ids=str)
@pytest.mark.parametrize("transposed", [False, True])
def test_the_same_bits_each_time(transposed: bool, cluster: tuple[int, int]) -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    m, n, k = 136, 512, 16384
    a, b = (torch.randn(s, device="cuda", dtype=torch.float16) for s in ((m, k), (k, n)))
    out = torch.empty((m, n), device="cuda", dtype=torch.float16)
    entry = sized((128, 144), transposed, epilogue_columns=16, cluster=cluster)
    extents = (n, m, k) if transposed else (m, n, k)
    tiles = -(-extents[0] // entry.config.cluster_tile[0]) * -(-extents[1] // entry.config.cluster_tile[1])
    clusters = 132 // (cluster[0] * cluster[1])
    plan = StreamK.of(
        extents,
        entry.config.cluster_tile,
        multiprocessors=clusters,
        occupancy=1,
        fragments=1,
        shared=(tiles, clusters // tiles * tiles),
    )
    handle = GemmUniversal(entry, plan, "shared")
    arguments = GemmUniversal.Arguments(A=a, B=b, D=out)
    workspace = torch.full((handle.workspace_size(arguments),), 0xFF, device="cuda", dtype=torch.uint8)
    handle.initialize(arguments, workspace)
    needed = workspace_of(replace(plan, shared_reduction=True), entry.config, (*extents, 1))
    flags = workspace[needed.flags_offset : needed.flags_offset + 4 * needed.flags]
    handle.run()
    first = out.clone()
    for _ in range(1000):
        out.fill_(float("nan"))
        handle.run()
        assert torch.equal(out, first) and not flags.any()
    exact = a.double() @ b.double()
    assert (first.double() - exact).norm() / exact.norm() < 5e-4


@pytest.mark.gpu
def test_two_streams_at_once() -> None:
    """Two launches that each want the whole GPU follow each other; neither waits for blocks that cannot begin."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    m, n, k = 128, 512, 8192
    entry = sized((128, 128), epilogue_columns=8)
    plan = StreamK.of((m, n, k), entry.config.tile, multiprocessors=132, occupancy=1, fragments=1, shared=(4, 132))
    runs = []
    for _ in range(2):
        a, b = (torch.randn(s, device="cuda", dtype=torch.float16) for s in ((m, k), (k, n)))
        out = torch.empty((m, n), device="cuda", dtype=torch.float16)
        runs.append(
            (torch.cuda.Stream(), a, b, out, launcher(a, b, out, kernel=entry, decomposition=plan, reduction="shared"))
        )
    torch.cuda.synchronize()
    for _ in range(200):
        for stream, _, _, _, run in runs:
            with torch.cuda.stream(stream):
                run()
    torch.cuda.synchronize()
    for _, a, b, out, _ in runs:
        exact = a.double() @ b.double()
        assert (out.double() - exact).norm() / exact.norm() < 5e-4
