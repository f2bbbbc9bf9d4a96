"""Tile orders: every tile once, the same on the host and in kernels, and products that do not depend on them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.gemm.test_gemm import MACHINES, integers
from tests.gemm.test_hopper import operands, product, sized
from tilewright import Int32, cute
from tilewright.errors import ConstraintError
from tilewright.gemm import KernelEntry, gemm, kernels
from tilewright.gemm.config import RASTERS
from tilewright.gemm.schedule.raster import GroupedRaster, HilbertRaster, IdentityRaster, Raster, raster_of
from tilewright.testing import per_thread

pytestmark = pytest.mark.unchecked

AMPERE = kernels()["tensorop_f16"]
EVERY = (GroupedRaster(1), GroupedRaster(3), GroupedRaster(8), GroupedRaster(3, "n"), HilbertRaster())
sides = st.integers(1, 24)  # Hilbert curves of up to five levels


def order(raster: Raster, m: int, n: int) -> list[tuple[int, int]]:
    return [raster.tile(index, m, n) for index in range(m * n)]


@given(st.sampled_from(EVERY), sides, sides)
def test_every_tile_has_one_index(raster: Raster, m: int, n: int) -> None:
    assert sorted(order(raster, m, n)) == [(i, j) for i in range(m) for j in range(n)]


@given(sides, sides, st.integers(1, 9))
def test_groups_along_n_are_groups_along_m_of_the_transposed_matrix(m: int, n: int, group: int) -> None:
    assert order(GroupedRaster(group, "n"), m, n) == [(i, j) for j, i in order(GroupedRaster(group), n, m)]


@given(st.sampled_from((*EVERY, IdentityRaster(4))), sides, sides)
def test_a_prepared_raster_has_the_same_order(raster: Raster, m: int, n: int) -> None:
    assert order(raster.prepared(m, n), m, n) == order(raster, m, n)


@given(st.integers(0, 5), st.integers(1, 31), st.integers(1, 31))
def test_the_hilbert_curve_leaves_out_what_lies_beyond_the_matrix(log_side: int, m: int, n: int) -> None:
    side = 1 << log_side
    m, n = min(m, side), min(n, side)
    whole = order(HilbertRaster(), side, side)
    assert all(abs(i - row) + abs(j - column) == 1 for (i, j), (row, column) in zip(whole, whole[1:], strict=False))
    if 2 * max(m, n) > side:
        assert order(HilbertRaster(), m, n) == [(i, j) for i, j in whole if i < m and j < n]


@pytest.mark.parametrize("extent", [(1, 1), (4, 8), (5, 6), (1, 32), (3, 10)], ids=str)
@pytest.mark.parametrize("raster", EVERY, ids=str)
def test_kernels_compute_the_same_tiles(raster: Raster, extent: tuple[int, int]) -> None:
    m, n = extent

    @cute.jit
    def place(t: Int32) -> Int32:
        row, column = raster.tile(cute.min(t, m * n - 1), Int32(m), Int32(n))
        return row * 1000 + column

    expected = [row * 1000 + column for row, column in order(raster, m, n)]
    assert per_thread(place, 32)[: m * n] == expected


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("raster", RASTERS)
@pytest.mark.parametrize(
    ("entry", "size"),
    [
        (sized((128, 64), group=2), (392, 200, 64)),
        (sized((64, 64), group=2, cluster=(2, 1)), (392, 200, 64)),
        (sized((64, 32), transposed=True), (200, 72, 64)),
        (sized((128, 64), roles="one"), (264, 200, 64)),
        (AMPERE.only(replace(AMPERE.config, group=2)), (392, 328, 40)),
    ],
    ids=["specialized", "cluster", "transposed", "one", "ampere"],
)
def test_products_do_not_depend_on_the_order(
    entry: KernelEntry, size: tuple[int, int, int], raster: str, machine: str
) -> None:
    entry = entry.only(replace(entry.config, raster=raster))
    a, b = operands("hopper_f16", *size)
    report = gemm(a, b, kernel=entry, machine=machine, decomposition="data_parallel")
    np.testing.assert_array_equal(report.d, product(a, b))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("raster", RASTERS)
def test_each_product_of_a_batch_is_walked_by_itself(raster: str, machine: str) -> None:
    entry = sized((64, 64), raster=raster, group=2)
    rng = np.random.default_rng(3)
    a, b = (integers(rng, s, np.float16) for s in ((3, 200, 64), (3, 64, 136)))
    report = gemm(a, b, kernel=entry, machine=machine)
    np.testing.assert_array_equal(report.d, (a.astype(np.float64) @ b).astype(np.float16))


def test_configurations_name_a_raster() -> None:
    for entry in (sized((128, 64)), AMPERE):
        for name in RASTERS:
            others = {"hilbert": HilbertRaster(), "identity": IdentityRaster(5)}
            assert raster_of(replace(entry.config, raster=name, group=5)) == others.get(name, GroupedRaster(5, name))
        with pytest.raises(ConstraintError, match="raster.* m, n, hilbert.*'spiral'"):
            replace(entry.config, raster="spiral").check()
