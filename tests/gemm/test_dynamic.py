"""Tiles that blocks draw from a counter as they go: exact, launch after launch, in any order in which blocks run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from tests.gemm.test_gemm import MACHINES, integers
from tests.gemm.test_hopper import F16, operands, product, sized
from tilewright import Int32, cute, sim
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ArgumentError
from tilewright.gemm import KernelEntry, LinearCombination, cross_compile, gemm, kernels, launcher
from tilewright.gemm.arrays import Matrix
from tilewright.gemm.config import Major
from tilewright.gemm.family.base import kernel_of
from tilewright.gemm.schedule.decomposition import DynamicTiles

pytestmark = pytest.mark.unchecked

CLUSTERS = [(1, 1), (2, 1), (2, 2)]


def dynamic(a: Any, b: Any, entry: KernelEntry, machine: str, **more: Any) -> Any:
    report = gemm(a, b, kernel=entry, machine=machine, decomposition="dynamic", **more)
    assert report.decomposition == "dynamic"
    return report


def of_many_tiles(machine: str) -> tuple[Any, Any]:
    """Operands of more tiles than there are workers: there are few on the simulator of these tests."""
    return operands("hopper_f16", *((328, 264, 72) if machine == "cpu" else (1544, 1032, 136)))


@pytest.fixture
def few() -> Iterator[None]:
    with sim.options(sms=8):
        yield


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("cluster", CLUSTERS, ids=str)
def test_dynamic_schedule_with_more_tiles_than_workers(cluster: tuple[int, int], machine: str, few: None) -> None:
    a, b = of_many_tiles(machine)
    report = dynamic(a, b, sized((64, 64), cluster=cluster), machine)
    np.testing.assert_array_equal(report.d, product(a, b))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("size", [(40, 16, 64), (136, 200, 200)], ids=str)
@pytest.mark.parametrize("cluster", CLUSTERS, ids=str)
def test_exact_for_integers(cluster: tuple[int, int], size: tuple[int, int, int], machine: str) -> None:
    """One tile, and fewer tiles than workers."""
    a, b = operands("hopper_f16", *size)
    report = dynamic(a, b, sized((64, 64), cluster=cluster), machine)
    np.testing.assert_array_equal(report.d, product(a, b))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    "entry",
    [F16, sized((128, 320)), sized((64, 32), transposed=True), sized((192, 64), raster="hilbert")],
    ids=lambda e: str(e.config.tile),
)
def test_other_sizes(entry: KernelEntry, machine: str) -> None:
    a, b = operands("hopper_f16", 264, 328, 72)
    np.testing.assert_array_equal(dynamic(a, b, entry, machine).d, product(a, b))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("tiles", ["many", "one"])
@pytest.mark.parametrize("cluster", [(1, 1), (2, 1)], ids=str)
def test_warpgroups_that_take_turns(cluster: tuple[int, int], tiles: str, machine: str, few: None) -> None:
    a, b = of_many_tiles(machine) if tiles == "many" else operands("hopper_f16", 40, 16, 64)
    entry = sized((64, 64), consumers=(2, 1), pingpong=True, cluster=cluster)
    np.testing.assert_array_equal(dynamic(a, b, entry, machine).d, product(a, b))


@pytest.mark.parametrize("machine", MACHINES)
def test_batches(machine: str) -> None:
    rng = np.random.default_rng(3)
    a, b = (integers(rng, s, np.float16) for s in ((3, 200, 64), (3, 64, 136)))
    report = dynamic(a, b, sized((64, 64)), machine)
    np.testing.assert_array_equal(report.d, (a.astype(np.float64) @ b).astype(np.float16))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("cluster", [(1, 1), (2, 1)], ids=str)
def test_dynamic_schedule_restarts_at_each_launch(cluster: tuple[int, int], machine: str, few: None) -> None:
    m, n, k = 264, 200, 72
    a, b = operands("hopper_f16", m, n, k)
    expected = product(a, b)
    out: Any = np.zeros((m, n), np.float16)
    if machine == "gpu":
        torch = pytest.importorskip("torch")
        a, b, out = torch.from_numpy(a).cuda(), torch.from_numpy(b.T.copy()).cuda().t(), torch.from_numpy(out).cuda()
    launch = launcher(a, b, out, kernel=sized((64, 64), cluster=cluster), decomposition="dynamic")
    for _ in range(3):
        out[:] = 77
        launch()
        np.testing.assert_array_equal(out if machine == "cpu" else out.cpu().numpy(), expected)


@dataclass(frozen=True)
class WhoWroteIt:
    """Replaces the sums by the number of the block."""

    @cute.jit
    def __call__(self, acc: cute.Tensor, tile: Any) -> None:
        acc.fill(cute.arch.block_idx()[0])


def launched(workers: int, seed: int, function: Any, m: int, n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """D, and the counter after the launch, with so many workers on the simulator."""
    config = sized((64, 64)).config
    config = replace(config, b=replace(config.b, major=Major.K))
    a, b = operands("hopper_f16", m, n, k)
    d, counter = np.full((m, n), 77, np.float16), np.zeros(1, np.int32)
    matrices = ((a, config.a), (b.T, config.b), (d, config.c), (d, config.c))
    tensors = [Matrix.of("operand", array).tensor(operand) for array, operand in matrices]
    how = DynamicTiles(Int32(workers), from_dlpack(counter).mark_layout_dynamic())
    with sim.options(seed=seed):
        kernel_of(config)(*tensors, function, how)
    return d, counter


@pytest.mark.parametrize("workers", [1, 5, 12, 20])
def test_the_last_draw_resets_the_counter(workers: int) -> None:
    one = LinearCombination(F16.config.acc_dtype(1), F16.config.acc_dtype(0))
    d, counter = launched(workers, 0, one, 256, 192, 64)
    np.testing.assert_array_equal(d, product(*operands("hopper_f16", 256, 192, 64)))
    assert counter[0] == 0


def test_blocks_take_what_is_left() -> None:
    """Who makes a tile follows from who asks first, and differs with the order in which blocks run."""
    found = [launched(3, seed, WhoWroteIt(), 256, 192, 64)[0][::64, ::64] for seed in range(4)]
    shares = {tuple(np.bincount(tiles.astype(int).ravel(), minlength=3)) for tiles in found}
    assert all(sum(share) == 12 for share in shares)
    assert len({tiles.tobytes() for tiles in found}) > 1


@pytest.mark.parametrize("changes", [{}, {"cluster": (2, 1)}, {"consumers": (2, 1), "pingpong": True}], ids=str)
def test_dynamic_schedule_has_no_races(changes: dict[str, Any], few: None) -> None:
    a, b = operands("hopper_f16", 264, 200, 136)
    with sim.options(check="all"):
        report = dynamic(a, b, sized((64, 64), **changes), "cpu")
    np.testing.assert_array_equal(report.d, product(a, b))


def test_kernels_that_cannot_draw_say_so() -> None:
    a, b = operands("hopper_f16", 72, 72, 64)
    for kernel in ("tensorop_f16", kernels()["tensorop_f16"], sized((128, 64), roles="one")):
        with pytest.raises(ArgumentError, match="no warp that could draw tiles"):
            gemm(a, b, kernel=kernel, decomposition="dynamic")
    with pytest.raises(ArgumentError, match="no warp that could draw tiles"):
        gemm(a.astype(np.float64), b.astype(np.float64), decomposition="dynamic")
    with pytest.raises(ArgumentError, match="only warp-specialised Hopper kernels"):
        cross_compile(kernels()["tensorop_f16"].config, "sm_90a", "dynamic")


@pytest.mark.parametrize(("raster", "cluster"), [("hilbert", (1, 1)), ("m", (2, 1))], ids=str)
def test_compiled(raster: str, cluster: tuple[int, int]) -> None:
    artifact = cross_compile(replace(F16.config, raster=raster, cluster=cluster), "sm_90a", "dynamic")
    assert artifact.spills == 0 and "setmaxnreg" not in artifact.log and "serializ" not in artifact.log
    assert "atom." in artifact.ptx and artifact.stack == 0
