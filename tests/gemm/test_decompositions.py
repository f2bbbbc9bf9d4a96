"""The schedules that know no GPU: golden lines number for number, every tile and every k tile once."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import golden, golden_decompositions  # noqa: F401 - the second registers its handlers
from tilewright.errors import ArgumentError, ConstraintError
from tilewright.gemm.schedule import sm90_streamk
from tilewright.gemm.schedule.identity import GemmIdentityThreadblockSwizzle, gemm_k_size
from tilewright.gemm.schedule.raster import IdentityRaster
from tilewright.gemm.schedule.shared_units import SharedUnits
from tilewright.gemm.schedule.sm90_streamk import StreamKScheduleSm90
from tilewright.utils import persistent_schedule

OTHERS = [line for line in golden.read(golden.DATA / "streamk.jsonl") if line["op"] != "ThreadblockSwizzleStreamK"]


def wrong_lines() -> list[str]:
    return [problem for problem in map(golden.check, OTHERS) if problem]


def test_golden() -> None:
    assert wrong_lines() == []
    assert Counter(line["op"] for line in OTHERS) == {
        "GemmIdentityThreadblockSwizzle": 25,
        "PersistentTileSchedulerSm90Params": 80,
        "PersistentTileSchedulerSm90StreamKParams": 80,
    }


@pytest.mark.parametrize(
    ("module", "name", "value"),
    [
        (sm90_streamk, "MIN_ITERS_PER_SK_UNIT", 4),
        (sm90_streamk, "MAX_SK_GROUPS", 4),
        (persistent_schedule, "SM_PER_GPC", 16),
    ],
)
def test_the_golden_lines_see_every_constant(
    module: Any, name: str, value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, name, value)
    assert wrong_lines()


def tiles_in_order(m: int, n: int, width: int) -> tuple[int, int, list[tuple[int, int]]]:
    """The tiles along M and N, and those of the swizzle's blocks in order, without the blocks that find no tile."""
    swizzle = GemmIdentityThreadblockSwizzle.of((m, n, 64), (64, 32, 32), n=width)
    tiles_m, tiles_n, _ = swizzle.tiled_shape
    found = [swizzle.get_tile_offset(x, y) for y in range(swizzle.grid[1]) for x in range(swizzle.grid[0])]
    return tiles_m, tiles_n, [(m, n) for m, n in found if m < tiles_m and n < tiles_n]


@settings(max_examples=60)
@given(st.integers(1, 900), st.integers(1, 900), st.sampled_from([1, 2, 4, 8]))
def test_the_identity_swizzle_makes_every_tile_once(m: int, n: int, width: int) -> None:
    tiles_m, tiles_n, inside = tiles_in_order(m, n, width)
    assert sorted(inside) == [(m, n) for m in range(tiles_m) for n in range(tiles_n)]


@settings(max_examples=60)
@given(st.integers(1, 900), st.integers(1, 900), st.sampled_from([1, 2, 4, 8]))
def test_the_raster_is_the_swizzles_order(m: int, n: int, width: int) -> None:
    tiles_m, tiles_n, inside = tiles_in_order(m, n, width)
    assert [IdentityRaster(width).tile(i, tiles_m, tiles_n) for i in range(tiles_m * tiles_n)] == inside


@settings(max_examples=60)
@given(st.integers(1, 4000), st.integers(1, 20), st.booleans())
def test_parts_of_a_split_k_cover_it(k: int, slices: int, k_majors: bool) -> None:
    size = gemm_k_size(k, slices, (16, 16), k_majors)
    assert size % 8 == 0 and size * slices >= k
    assert size % 64 == 0 or not (k_majors and k % 64 == 0)


UNITS = st.builds(SharedUnits, st.integers(1, 40), st.integers(1, 6), st.integers(1, 50), st.integers(1, 5)).map(
    lambda u: SharedUnits(max(u.sk_tiles, u.groups), u.sk_blocks * u.groups, u.iters_per_tile, u.groups)
)


@settings(max_examples=150)
@given(UNITS)
def test_units_own_their_iterations(units: SharedUnits) -> None:
    owner = {i: unit for unit in range(units.sk_blocks) for i in range(*units.get_iter_extents(unit))}
    assert sorted(owner) == list(range(units.sk_tiles * units.iters_per_tile))
    assert all(units.get_sk_block_idx(i) == unit for i, unit in owner.items())
    assert sorted(map(units.get_tile, range(units.sk_tiles))) == list(range(units.sk_tiles))
    # Who finishes a tile waits for units of smaller numbers only.
    for place in range(units.sk_tiles):
        peers = [owner[i] for i in range(place * units.iters_per_tile, (place + 1) * units.iters_per_tile)]
        assert peers == sorted(peers)


@settings(max_examples=100)
@given(
    st.integers(1, 5000),
    st.integers(1, 5000),
    st.integers(1, 9000),
    st.integers(1, 144),
    st.sampled_from([(1, 1), (2, 1), (1, 2), (2, 2)]),
)
def test_stream_k_on_hopper_shares_what_there_is(m: int, n: int, k: int, sms: int, cluster: tuple[int, int]) -> None:
    """The numbers of the schedule and the maps of its units are of one mind."""
    made = StreamKScheduleSm90.of(
        (m, n, k, 1), (128, 128, 64), cluster, sm_count=max(sms, 4), decomposition_mode="StreamK"
    )
    assert made.sk_tiles <= made.output_tiles and made.sk_units <= made.wave
    if made.sk_units and made.sk_groups == 1:
        units = made.units  # of clusters
        lengths = [end - begin for begin, end in map(units.get_iter_extents, range(units.sk_blocks))]
        assert min(lengths) == made.k_tiles_per_sk_unit and sum(lengths) == units.sk_tiles * made.tiles_per_output_tile
        assert units.sk_tiles * made.cluster_size == made.sk_tiles
        assert lengths.count(made.k_tiles_per_sk_unit + 1) == made.big_units


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: GemmIdentityThreadblockSwizzle.of((0, 1, 1), (1, 1, 1)), ArgumentError, r"problem\[0\] must be"),
        (lambda: GemmIdentityThreadblockSwizzle.of((1, 1, 1), (1, 1, 1), n=3), ArgumentError, "1, 2, 4 or 8 columns"),
        (lambda: StreamKScheduleSm90.of((1, 1, 0, 1), (1, 1, 1), sm_count=4), ArgumentError, "K must be a positive"),
        (
            lambda: StreamKScheduleSm90.of((1, 1, 1, 1), (1, 1, 1), sm_count=4, decomposition_mode="stream"),
            ConstraintError,
            "decomposition_mode is 'stream'; it is one of Heuristic",
        ),
    ],
)
def test_bad_input(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()
