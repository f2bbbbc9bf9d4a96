"""Split-K within a cluster: blocks share a tile's k tiles and add up their sums through each other's shared memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.gemm.test_gemm import MACHINES
from tests.gemm.test_hopper import KERNELS, OUT, operands, product, sized
from tilewright import sim
from tilewright.errors import ArgumentError, ConstraintError
from tilewright.gemm import cross_compile, gemm, kernels, launcher
from tilewright.gemm.schedule.splitk import slice_of

pytestmark = pytest.mark.unchecked

SIZES = [
    ((64, 64), {"cluster_k": 4, "epilogue_columns": 16}),
    ((128, 64), {"cluster_k": 8, "epilogue_columns": 8}),
    ((256, 64), {"cluster_k": 2, "epilogue_columns": 8}),
    ((128, 320), {"cluster_k": 5, "epilogue_columns": 32, "stages": 3}),
    ((64, 32), {"cluster_k": 2, "epilogue_columns": 8, "roles": "one"}),
    ((64, 32), {"cluster_k": 4, "epilogue_columns": 8, "transposed": True}),
]


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("tile", "changes"), SIZES, ids=str)
def test_exact_for_integers(tile: tuple[int, int], changes: dict[str, Any], machine: str) -> None:
    """Uneven slices, ragged edges along M, N and K, a C."""
    m, n, k = 136, 200, 64 * 9 + 16
    a, b = operands("hopper_f16", m, n, k)
    c = (np.arange(m * n).reshape(m, n) % 7).astype(np.float16)
    entry = sized(tile, **changes)
    report = gemm(a, b, c, beta=2.0, kernel=entry, machine=machine)
    assert report.decomposition == "split_k"
    np.testing.assert_array_equal(report.d, (product(a, b) + 2 * c).astype(np.float16))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_type(kernel: str, machine: str) -> None:
    entry = sized((64, 64), entry=kernels()[kernel], cluster_k=2, epilogue_columns=16)
    k = 3 * entry.config.tile[2]
    a, b = operands(kernel, 72, 72, k)
    report = gemm(a, b, kernel=entry, machine=machine)
    np.testing.assert_array_equal(report.d.astype(np.float64), product(a, b).astype(OUT[kernel]).astype(np.float64))


def test_batches_have_a_cluster_for_each_tile() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, s).astype(np.float16) for s in ((2, 72, 256), (2, 256, 72)))
    report = gemm(a, b, kernel=sized((64, 64), cluster_k=2, epilogue_columns=32))
    assert report.grid == (2 * 2 * 2 * 2, 1, 1)
    np.testing.assert_array_equal(report.d, (a.astype(np.float64) @ b).astype(np.float16))


@pytest.mark.parametrize(("tile", "changes"), [SIZES[0], SIZES[4]], ids=str)
def test_cluster_k_has_no_races(tile: tuple[int, int], changes: dict[str, Any]) -> None:
    a, b = operands("hopper_f16", 72, 72, 320)
    with sim.options(check="all"):
        report = gemm(a, b, kernel=sized(tile, **changes))
    np.testing.assert_array_equal(report.d, product(a, b))


def test_slices_cover_the_k_tiles() -> None:
    for k_tiles in range(1, 40):
        for slices in range(1, k_tiles + 1):
            found = [slice_of(k_tiles, slices, index) for index in range(slices)]
            assert [begin for begin, _ in found] == [0, *(end for _, end in found[:-1])] and found[-1][1] == k_tiles
            sizes = {end - begin for begin, end in found}
            assert max(sizes) - min(sizes) <= 1 and min(sizes) >= 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cluster_k": 4, "epilogue_columns": 32}, "parts of the epilogue .2 now. that cluster_k = 4"),
        ({"cluster_k": 2, "cluster": (2, 1)}, r"a cluster of \(1, 1\) and no turns"),
        ({"cluster_k": 16, "epilogue_columns": 8}, r"a cluster of 1 to 8 blocks, not \(1, 1\) x 16"),
        ({"cluster_k": 0}, "a cluster of 1 to 8 blocks"),
    ],
)
def test_configurations_that_do_not_fit(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConstraintError, match=message):
        sized((64, 64), **changes).config.check()


def test_a_short_k_is_refused() -> None:
    a, b = operands("hopper_f16", 72, 72, 64 * 3)
    with pytest.raises(ArgumentError, match="4 blocks of a cluster .cluster_k. cannot share 3 k tiles"):
        gemm(a, b, kernel=sized((64, 64), cluster_k=4, epilogue_columns=16))


@pytest.mark.parametrize(("tile", "changes"), SIZES[2:5], ids=str)
def test_compiled(tile: tuple[int, int], changes: dict[str, Any]) -> None:
    artifact = cross_compile(sized(tile, **changes).config, "sm_90a")
    assert artifact.spills == artifact.stack == 0 and "serializ" not in artifact.log
    assert "barrier.cluster.arrive" in artifact.ptx


@pytest.mark.gpu
def test_the_same_bits_each_time() -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    a, b = (torch.randn(s, device="cuda", dtype=torch.float16) for s in ((176, 7424), (7424, 216)))
    out = torch.empty((176, 216), device="cuda", dtype=torch.float16)
    run = launcher(a, b, out, kernel=sized((64, 64), cluster_k=8, epilogue_columns=8))
    run()
    first = out.clone()
    for _ in range(1000):
        out.fill_(float("nan"))
        run()
        assert torch.equal(out, first)
    exact = a.double() @ b.double()
    assert (first.double() - exact).norm() / exact.norm() < 5e-4
