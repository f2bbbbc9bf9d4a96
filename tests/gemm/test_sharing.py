"""Products whose thread blocks share tiles: exact on both machines, the same bits each time, chosen where it pays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.covering import covering
from tests.gemm.test_gemm import KERNELS, MACHINES, OUT, integers
from tilewright import sim
from tilewright.errors import ArgumentError, ConstraintError
from tilewright.gemm import KernelEntry, StreamK, cross_compile, gemm, kernels, launcher, stage
from tilewright.gemm.choice.choose import KernelOptions, best, sizes_for_sharing
from tilewright.gemm.family.plan_options import EVEN_SHARES
from tilewright.lang.tools.hardware import clusters_at_once

pytestmark = pytest.mark.unchecked

H200 = (132, 232448)


def plan(problem: tuple[int, int, int], entry: KernelEntry, **numbers: int) -> StreamK:
    numbers = {"multiprocessors": 5, "occupancy": 1, "fragments": 1, **numbers}
    return StreamK.of(problem, entry.config.tile, **numbers)


def tile_of(name: str, which: str) -> KernelEntry:
    entry = kernels()[name]
    return entry.only(getattr(entry, which) or entry.config)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("name", "split"), covering(KERNELS, (2, 3), strength=1))
def test_split_tiles_of_every_kernel(name: str, split: int, machine: str) -> None:
    entry = tile_of(name, "shared")
    m, n, k = 136, 264, 7 * entry.config.tile[2] + 8
    rng = np.random.default_rng(split)
    a, b = integers(rng, (m, k), KERNELS[name]), integers(rng, (k, n), KERNELS[name])
    c = integers(rng, (m, n), OUT[name])
    shares = plan((m, n, k), entry, split=split)
    report = gemm(a, b, c, beta=1.0, kernel=entry, machine=machine, decomposition=shares)
    assert report.decomposition == "stream_k" and report.grid[0] == shares.num_blocks
    expected = a.astype(np.float64) @ b.astype(np.float64) + c.astype(np.float64)
    np.testing.assert_array_equal(report.d.astype(np.float64), expected.astype(OUT[name]).astype(np.float64))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("problem", "which"),
    covering(
        [(256, 512, 512), (300, 520, 500), (1, 1, 2048), (640, 500, 360)], ["config", "shared", "large"], strength=1
    ),
)
def test_uneven_shares(problem: tuple[int, int, int], which: str, machine: str) -> None:
    m, n, k = problem
    entry = tile_of("tensorop_f16", which)
    rng = np.random.default_rng(7)
    a, b = integers(rng, (m, k), np.float16), integers(rng, (k, n), np.float16)
    shares = plan(problem, entry, multiprocessors=7)
    d = gemm(a, b, kernel=entry, machine=machine, decomposition=shares).d
    np.testing.assert_array_equal(d.astype(np.float64), a.astype(np.float64) @ b.astype(np.float64))


@pytest.mark.gpu
def test_the_same_bits_each_time_and_flags_left_as_found() -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    a, b = (torch.randn(s, device="cuda", dtype=torch.float16) for s in ((320, 6592), (6592, 1736)))
    out = torch.empty((320, 1736), device="cuda", dtype=torch.float16)
    run = launcher(a, b, out, kernel="tensorop_f16", decomposition="stream_k")
    run()
    first = out.clone()
    for _ in range(200):
        out.fill_(float("nan"))
        run()
        assert torch.equal(out, first)
    exact = a.double() @ b.double()
    assert (first.double() - exact).norm() / exact.norm() < 5e-4


@pytest.mark.parametrize(
    ("problem", "decomposition", "tile"),
    [
        ((5120, 5120, 5120), "stream_k", (128, 256, 32)),
        ((2048, 2048, 2048), "data_parallel", (128, 256, 32)),
        ((3816, 272, 1440), "data_parallel", (128, 128, 32)),
        ((128, 4096, 14336), "stream_k", (128, 128, 64)),
        ((512, 512, 4096), "stream_k", (64, 128, 64)),
        ((64, 14336, 4096), "data_parallel", (64, 128, 64)),
        ((16, 16, 16), "data_parallel", (64, 64, 64)),
    ],
)
def test_the_choice_on_a_large_gpu(problem: tuple[int, int, int], decomposition: str, tile: tuple[int, ...]) -> None:
    entry, shares = best(kernels()["tensorop_f16"], "auto", (*problem, 1), H200)
    assert ("data_parallel" if shares is None else "stream_k", entry.config.tile) == (decomposition, tile)


@pytest.mark.parametrize("name", ["tensorop_f16", "hopper_f16"])
def test_auto_is_the_cheaper_of_both(name: str) -> None:
    rng = np.random.default_rng(0)
    options = KernelOptions.of(kernels()[name], H200)
    for problem in rng.integers(1, 8000, (50, 3)).tolist():
        costs = dict(zip(options.plan_options, options.model.times((*problem, 1)).tolist(), strict=True))
        chosen = {how: options.best((*problem, 1), how) for how in ("auto", "data_parallel", "stream_k")}
        assert chosen["data_parallel"].parts == 1 != chosen["stream_k"].parts
        assert costs[chosen["auto"]] == min(costs.values()) == min(costs[way] for way in chosen.values())


@pytest.mark.parametrize("name", ["tensorop_f16", "hopper_f16"])
def test_plans_are_those_that_the_model_timed(name: str) -> None:
    rng = np.random.default_rng(1)
    options = KernelOptions.of(kernels()[name], H200)
    seen = set()
    for problem in (2 ** rng.uniform(4, 13, (40, 3))).astype(int).tolist():
        m, n, k = problem
        for way in options.plan_options:
            plan = way.plan((m, n, k, 1), H200)
            if plan is None:
                continue
            plan.check()
            tiles, seen = plan.tiled_shape[0] * plan.tiled_shape[1], seen | {(way.parts, way.shared_reduction)}
            workers = clusters_at_once(132, way.config.cluster_size)
            assert plan.shared_reduction is way.shared_reduction
            if way.parts > 1:
                assert plan.sk_tiles == tiles and plan.sk_blocks == min(tiles * way.parts, tiles * plan.iters_per_tile)
            else:
                assert plan.sk_blocks <= workers and (tiles - plan.sk_tiles) % workers == 0
                assert plan.sk_tiles < 2 * workers
                if way.shared_reduction:
                    parts = min(workers // tiles, plan.iters_per_tile // 2)
                    assert (plan.sk_tiles, plan.sk_blocks) == (tiles, tiles * parts)
    hopper = name.startswith("hopper")
    parts = {(number, False) for number in ((EVEN_SHARES,) if hopper else (EVEN_SHARES, 2, 3, 4, 8))}
    assert seen == parts | ({(EVEN_SHARES, True)} if hopper else set())


def test_few_tiles_with_a_long_k_use_shared_reduction() -> None:
    """The choice goes to it by a clear margin, with a plan for as many clusters as run at once."""
    entry = kernels()["hopper_f16"]
    for problem in ((136, 512, 32768, 1), (128, 256, 65536, 1), (384, 512, 16384, 1)):
        size, shares = best(entry, "auto", problem, H200)
        at_once = clusters_at_once(132, size.config.cluster_size)
        assert shares is not None and shares.shared_reduction and at_once * 15 // 16 <= shares.sk_blocks <= at_once
        _, shares = best(entry, "auto", problem, H200, "atomic")
        assert shares is None or not shares.shared_reduction
    for problem in ((136, 512, 32768, 1), (384, 512, 16384, 1), (968, 376, 6768, 1), (2096, 864, 4640, 1)):
        # By name also where the choice passes it over: in a size whose tiles many blocks share.
        size, shares = best(entry, "stream_k", problem, H200, "shared")
        assert shares is not None and shares.shared_reduction and shares.cuts_tiles
        assert size.config.tile[0] * size.config.tile[1] >= 64 * 128 and shares.sk_blocks >= 2 * shares.sk_tiles
    for problem in (
        (4096, 4096, 4096, 1),
        (16, 4096, 4096, 1),
        (512, 512, 512, 1),
        (968, 376, 6768, 1),
        (2096, 864, 4640, 1),
        (5040, 368, 6496, 1),
    ):
        _, shares = best(entry, "auto", problem, H200)
        assert shares is None or not shares.shared_reduction


def test_a_kernel_in_one_size_stays_in_it() -> None:
    for which in ("config", "large", "narrow"):
        entry = tile_of("tensorop_f16", which)
        for problem in ((64, 64, 8192), (4096, 4096, 4096), (63, 65, 8191)):
            chosen, _ = best(entry, "auto", (*problem, 1), H200)
            assert chosen.config == entry.config
    rng = np.random.default_rng(8)
    a, b = integers(rng, (65, 1001), np.float16), integers(rng, (1001, 63), np.float16)  # narrow accesses
    with sim.options(sizes="gpu"):
        report = gemm(a, b, kernel=tile_of("tensorop_f16", "config"))
    assert (report.tile, report.decomposition) == ((128, 128, 32), "stream_k")
    np.testing.assert_array_equal(report.d.astype(np.float64), a.astype(np.float64) @ b.astype(np.float64))


def test_products_without_k_tiles_do_not_share_tiles() -> None:
    for name in ("tensorop_f16", "hopper_f16"):
        for problem, shared in (((128, 128, 8192, 1), True), ((128, 128, 8192, 2), True), ((128, 128, 0, 1), False)):
            assert (best(kernels()[name], "stream_k", problem, H200)[1] is not None) == shared


SIXTEEN = ("tensorop_f16", "tensorop_bf16", "tensorop_f16_f16")
SIZES_TO_SHARE = range(len(sizes_for_sharing(kernels()["tensorop_f16"])))


@pytest.mark.parametrize(
    ("name", "size", "decomposition", "arch"),
    covering(SIXTEEN, SIZES_TO_SHARE, ("data_parallel", "stream_k"), ("sm_80", "sm_90a"), strength=1),
)
def test_other_sizes_do_not_spill(name: str, size: int, decomposition: str, arch: str) -> None:
    artifact = cross_compile(sizes_for_sharing(kernels()[name])[size], arch, decomposition)
    assert (artifact.spills, artifact.registers <= 255) == (0, True)


@pytest.mark.parametrize("name", [n for n in KERNELS if n not in (*SIXTEEN, "tensorop_e4m3", "tensorop_e5m2")])
def test_sharing_does_not_spill(name: str) -> None:
    assert cross_compile(tile_of(name, "shared").config, "sm_80", "stream_k").spills == 0


half = np.zeros((256, 256), np.float16)


@pytest.mark.parametrize(
    ("decomposition", "message"),
    [
        ("split_k", "there is no decomposition 'split_k': it is a StreamK, a SplitK or one of auto"),
        (["stream_k"], r"there is no decomposition \['stream_k'\]: it is a StreamK, a SplitK or one of"),
        (plan((256, 256, 512), kernels()["tensorop_f16"], split=2), "for 2 x 2 tiles of 16 k tiles; the problem has"),
    ],
)
def test_decompositions_that_do_not_fit(decomposition: object, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        gemm(half, half, kernel="tensorop_f16", decomposition=decomposition)


def test_a_kernel_to_stage_is_named_by_a_known_decomposition() -> None:
    with pytest.raises(ArgumentError, match="no kernel for 'streamk': it is data_parallel, dynamic or stream_k"):
        stage(kernels()["tensorop_f16"].config, "streamk")


def test_an_edited_plan_does_not_run() -> None:
    good = StreamK.of((256, 256, 256), (128, 128, 32), multiprocessors=8, occupancy=1, fragments=1, split=2)
    with pytest.raises(ConstraintError, match="Make plans with StreamK.of"):
        gemm(half, half, kernel="tensorop_f16", decomposition=replace(good, sk_iters_per_normal_block=1))
