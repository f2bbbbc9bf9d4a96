"""Two consumer warpgroups that take turns: exact on both machines, whatever number of tiles a block has."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.gemm.test_gemm import MACHINES, integers
from tests.gemm.test_hopper import F16, KERNELS, OUT, operands, product, sized
from tilewright import Float16, Int32
from tilewright.errors import ArgumentError, ConstraintError
from tilewright.gemm import KernelEntry, StreamK, cross_compile, gemm, kernels, stage
from tilewright.gemm.choice import choose
from tilewright.gemm.config import HopperConfig
from tilewright.gemm.host import handle, plan
from tilewright.gemm.host.problem import Problem
from tilewright.gemm.mainloop.tma import TmaMainloop
from tilewright.gemm.mainloop.wgmma import WgmmaMath
from tilewright.gemm.schedule.decomposition import DataParallel
from tilewright.gemm.schedule.splitk import SplitK
from tilewright.pipeline import PipelineState

SMEM = 232448


def in_turns(tile: tuple[int, int] = (64, 64), entry: KernelEntry = F16, **changes: Any) -> KernelEntry:
    """The kernel in the size with this tile, its warpgroups taking turns."""
    return sized(tile, entry=entry, pingpong=True, **{"consumers": (2, 1), "stages": 3, **changes})


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two multiprocessors, so that blocks walk through several tiles."""
    monkeypatch.setattr(plan, "limits", lambda machine: (2, SMEM))


@pytest.mark.unchecked
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("k", [64, 128, 456], ids=lambda k: f"k{k}")
@pytest.mark.parametrize("tiles", [(1, 1), (2, 2), (1, 3), (2, 3), (3, 3)], ids=str)
def test_any_number_of_tiles(tiles: tuple[int, int], k: int, machine: str, few: None) -> None:
    """1 block of one tile; 2 blocks with 2, 2 and 1, 3, or 5 and 4 of them; fewer, as many and more k tiles than
    stages."""
    a, b = operands("hopper_f16", tiles[0] * 64, tiles[1] * 64, k)
    report = gemm(a, b, kernel=in_turns(), machine=machine, decomposition="data_parallel")
    assert report.grid[0] == min(2, tiles[0] * tiles[1])
    np.testing.assert_array_equal(report.d, product(a, b))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("stages", [2, 4])
def test_stages_that_do_and_do_not_divide_k(stages: int, machine: str, few: None) -> None:
    for k in (3 * 64, 4 * 64):
        a, b = operands("hopper_f16", 200, 136, k)
        report = gemm(a, b, kernel=in_turns(stages=stages), machine=machine)
        np.testing.assert_array_equal(report.d, product(a, b))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("cluster", [(2, 1), (1, 2)], ids=str)
def test_clusters(cluster: tuple[int, int], machine: str, few: None) -> None:
    a, b = operands("hopper_f16", 328, 136, 136)
    report = gemm(a, b, kernel=in_turns(cluster=cluster), machine=machine)
    np.testing.assert_array_equal(report.d, product(a, b))


@pytest.mark.unchecked
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("tile", [(64, 256), (128, 128)], ids=str)
def test_large_tiles_with_c_and_batches(tile: tuple[int, int], machine: str, few: None) -> None:
    rng = np.random.default_rng(3)
    m, n, k = tile[0] + 8, tile[1] + 16, 136
    a, b, c = (integers(rng, s, np.float16) for s in ((2, m, k), (2, k, n), (2, m, n)))
    report = gemm(a, b, c, alpha=2.0, beta=-1.0, kernel=in_turns(tile), machine=machine)
    assert report.tile[:2] == tile
    np.testing.assert_array_equal(report.d, 2 * product(a, b) - c)


@pytest.mark.parametrize("machine", MACHINES)
def test_tiles_dealt_out_while_blocks_run(machine: str, few: None) -> None:
    a, b = operands("hopper_f16", 200, 136, 136)
    report = gemm(a, b, kernel=in_turns(), machine=machine, decomposition="dynamic")
    assert report.decomposition == "dynamic"
    np.testing.assert_array_equal(report.d, product(a, b))


@pytest.mark.gpu
@pytest.mark.parametrize("name", [name for name in KERNELS if any(size.pingpong for size in kernels()[name].sizes)])
@pytest.mark.parametrize("more", [{}, {"decomposition": "dynamic"}, {"alpha": 2.0, "beta": -1.0}], ids=str)
def test_the_library_takes_turns(name: str, more: dict[str, Any]) -> None:
    """Two waves and a bit of tiles with few k tiles: the size that the model chooses, with each type."""
    a, b = operands(name, 4112, 6752, 256)
    chosen, _ = choose.best(kernels()[name], "auto", (4112, 6752, 256, 1), (132, SMEM))
    assert isinstance(chosen.config, HopperConfig) and chosen.config.pingpong
    if "beta" in more:
        more = {**more, "c": integers(np.random.default_rng(5), (4112, 6752), OUT[name])}
    report = gemm(a, b, machine="gpu", **({"kernel": name} | more))
    wanted = product(a, b).astype(OUT[name])
    if "beta" in more:
        wanted = 2 * wanted - more["c"]
    np.testing.assert_array_equal(report.d.astype(np.float64), wanted.astype(np.float64))


def test_slices_of_k_have_a_size_without_turns() -> None:
    """Warpgroups that take turns skip whole tiles: the model prefers them for these parts, and must not have them."""
    entry = kernels()["hopper_f16"]
    chosen, _ = choose.best(entry, "data_parallel", (4112, 6752, 128, 2), (132, SMEM))
    assert isinstance(chosen.config, HopperConfig) and chosen.config.pingpong
    a, b = (np.broadcast_to(np.float16(1), shape) for shape in ((4112, 256), (256, 6752)))
    found = plan.Plan.of(Problem.of(np.array(a), np.array(b), out_dtype=Float16), [entry], SplitK(2, "parallel"), "cpu")
    assert isinstance(found.config, HopperConfig) and not found.config.pingpong


@pytest.mark.unchecked
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", KERNELS)
def test_every_type(name: str, machine: str, few: None) -> None:
    a, b = operands(name, 136, 136, 160)
    report = gemm(a, b, kernel=in_turns(entry=kernels()[name]), machine=machine)
    np.testing.assert_array_equal(report.d.astype(np.float64), product(a, b).astype(OUT[name]).astype(np.float64))


@pytest.mark.parametrize("machine", MACHINES)
def test_a_block_for_each_tile(machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second warpgroup has nothing to do."""
    monkeypatch.setattr(handle, "decomposition_of", lambda *args: DataParallel())
    a, b = operands("hopper_f16", 136, 72, 264)
    report = gemm(a, b, kernel=in_turns(), machine=machine)
    np.testing.assert_array_equal(report.d, product(a, b))


@pytest.mark.parametrize("stages", [1, 2, 3, 5])
def test_a_skip_is_many_advances(stages: int) -> None:
    config = in_turns().config
    assert isinstance(config, HopperConfig)
    mainloop = TmaMainloop(config, WgmmaMath(config))
    for start in range(2 * stages):
        stepwise = PipelineState(stages, 0, 0, 0)
        for _ in range(start):
            stepwise.advance()
        begin = stepwise.clone()
        for count in range(4 * stages + 2):
            assert repr(mainloop.skip(begin, Int32(count))) == repr(stepwise)
            stepwise.advance()


def test_tiles_are_not_shared() -> None:
    entry = in_turns()
    a, b = operands("hopper_f16", 64, 64, 512)
    shares = StreamK.of((64, 64, 512), entry.config.tile, multiprocessors=8, occupancy=1, fragments=1, split=2)
    with pytest.raises(ArgumentError, match=r"take turns \(pingpong\) work on whole tiles"):
        gemm(a, b, kernel=entry, decomposition=shares)
    with pytest.raises(ArgumentError, match=r"its warpgroups take turns \(pingpong\) on whole tiles, which blocks"):
        gemm(a, b, kernel=entry, decomposition="stream_k")
    assert gemm(a, b, kernel=entry).decomposition == "data_parallel"
    with pytest.raises(ConstraintError, match="PersistentSharedTiles deals out parts of tiles"):
        stage(entry.config, "stream_k")


def test_two_take_turns() -> None:
    with pytest.raises(ConstraintError, match=r"2 consumer warpgroups that take turns \(pingpong\), not \(1, 1\)"):
        replace(in_turns().config, consumers=(1, 1)).check()


@pytest.mark.parametrize(("tile", "stages"), [((64, 256), 4), ((64, 64), 6)], ids=str)
def test_compiled(tile: tuple[int, int], stages: int) -> None:
    config = in_turns(tile, stages=stages).config
    assert config.smem_bytes <= SMEM
    artifact = cross_compile(config, "sm_90a")
    assert artifact.spills == 0 and "serializ" not in artifact.log


@pytest.mark.parametrize("name", ["hopper_f16", "hopper_i8"])
def test_the_largest_tile_keeps_its_sums_in_registers(name: str) -> None:
    config = next(c for c in kernels()[name].small if isinstance(c, HopperConfig) and c.pingpong and c.tile[1] == 192)
    artifact = cross_compile(config, "sm_90a")
    assert artifact.spills == 0 and "serializ" not in artifact.log
