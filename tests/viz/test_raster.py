"""Raster orders visit every tile once; the L2 figure counts what a wave shares."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.viz.reading import read_svg
from tilewright.errors import ArgumentError
from tilewright.viz import ORDERS, l2_reuse, raster_figure, raster_order

sides = st.integers(1, 20)


@given(st.sampled_from(ORDERS), sides, sides, st.integers(1, 9))
def test_every_tile_is_visited_once(order: str, m: int, n: int, group: int) -> None:
    assert sorted(raster_order(order, (m, n), group)) == [(i, j) for i in range(m) for j in range(n)]


@pytest.mark.parametrize("side", [1, 2, 4, 8, 16])
def test_hilbert_steps_to_a_neighbour(side: int) -> None:
    order = raster_order("hilbert", (side, side))
    for (m, n), (next_m, next_n) in zip(order, order[1:], strict=False):
        assert abs(m - next_m) + abs(n - next_n) == 1


@given(sides, sides, st.integers(0, 3))
def test_grouped_n_is_the_identity_thread_block_swizzle(m: int, n: int, log_tile: int) -> None:
    # The grid is (m << log, ceil(n >> log)); block (x, y) takes tile (x >> log, (y << log) + (x mod 2**log)).
    width = 1 << log_tile
    blocks = [(x >> log_tile, (y << log_tile) + x % width) for y in range(-(-n // width)) for x in range(m * width)]
    assert raster_order("grouped_n", (m, n), width) == [tile for tile in blocks if tile[1] < n]


def test_one_block_at_a_time_reuses_nothing_and_all_at_once_everything() -> None:
    order = raster_order("along_m", (6, 4))
    assert l2_reuse(order, 1).factor == 1.0
    everything = l2_reuse(order, 24)
    assert (everything.asked, everything.fetched) == (48, 10)


@given(st.sampled_from(ORDERS), sides, sides, st.integers(1, 40))
def test_the_picture_numbers_tiles_in_order_and_colours_waves(order: str, m: int, n: int, concurrent: int) -> None:
    drawing = read_svg(raster_figure(order, (m, n), group=3, concurrent=concurrent).svg())
    (panel,) = drawing.panels
    sequence = raster_order(order, (m, n), 3)
    assert panel.numbers() == {tile: number for number, tile in enumerate(sequence)}
    first, last = panel.cells[sequence[0]].fill, panel.cells[sequence[-1]].fill
    waves = -(-m * n // concurrent)
    named = {}  # every wave is in the legend, with the others that have its colour
    for text, fill in drawing.legend.items():
        listed = [int(number) for number in re.findall(r"wave (\d+)", text)]
        steps = range(listed[1], listed[-1] + 1, 32) if "steps of 32" in text else ()
        named |= {wave: fill for wave in (*listed, *steps)}
    assert set(named) == set(range(waves)) and (named[0], named[waves - 1]) == (first, last)
    assert any(f"{l2_reuse(sequence, concurrent).factor:.2f} times" in caption for caption in drawing.captions)


def test_an_order_that_is_given_is_drawn_like_one_with_a_name() -> None:
    named, given_tiles = (raster_figure(o, (4, 6), concurrent=5) for o in ("along_m", raster_order("along_m", (4, 6))))
    assert given_tiles.panels == named.panels and given_tiles.notes[0] == named.notes[0]
    for order, wrong in (([(0, 0), (4, 0)], "(4, 0) is not among the 24 tiles"), ([], "order is empty")):
        with pytest.raises(ArgumentError, match=re.escape(wrong)):
            raster_figure(order, (4, 6))


def test_unknown_orders_and_empty_grids() -> None:
    with pytest.raises(ArgumentError, match="unknown raster order 'spiral'; there are along_m"):
        raster_order("spiral", (2, 2))
    with pytest.raises(ArgumentError, match="0 x 2 tiles"):
        raster_order("along_m", (0, 2))
    with pytest.raises(ArgumentError, match="0 blocks"):
        l2_reuse([(0, 0)], 0)


def test_arrows_lead_from_tile_to_tile() -> None:
    figure = raster_figure("hilbert", (4, 4), concurrent=4)
    assert [panel.path for panel in figure.panels] == [tuple(raster_order("hilbert", (4, 4)))]
    svg = figure.svg()
    steps = [tuple(map(float, found)) for found in re.findall(r'class="arrow" d="M(\S+) (\S+)L(\S+) (\S+)"', svg)]
    assert len(steps) == 15 and all((x1 == x2) != (y1 == y2) for x1, y1, x2, y2 in steps), "Hilbert steps to neighbours"
    assert len({(x2 - x1, y2 - y1) for x1, y1, x2, y2 in steps}) <= 8, "a short arrow across each border"
    assert "tiles along M" in svg and "tiles along N" in svg
    shortened = raster_figure("along_n", (400, 400), concurrent=4)
    assert 0 < shortened.svg().count('class="arrow"') < 400 * 400 - 1, "only between tiles that are drawn"
