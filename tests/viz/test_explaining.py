"""Pictures that explain a rule: the bits of a swizzle, a cluster's multicast, the plans of Stream-K."""

from __future__ import annotations

import pytest

from tests.viz.reading import read_svg
from tilewright.errors import ArgumentError
from tilewright.gemm.schedule.streamk_blocks import get_blocks
from tilewright.layout import Swizzle
from tilewright.viz import cluster_figure, streamk_plan_figure, swizzle_bits_figure


@pytest.mark.parametrize("swizzle", [Swizzle(3, 3, 3), Swizzle(2, 0, 3), Swizzle(2, 1, -4), Swizzle(0, 4, 3)])
def test_the_bits_of_every_offset_are_those_of_the_swizzle(swizzle: Swizzle) -> None:
    for offset in (0, 1, 9, 346, 511, 1000):
        (panel,) = read_svg(swizzle_bits_figure(swizzle, offset).svg()).panels
        bits = panel.numbers()
        columns = max(column for _, column in bits) + 1
        rows = {row: int("".join(str(bits.get((row, j), 0)) for j in range(columns)), 2) for row in range(3)}
        assert (rows[0], rows[2]) == (offset, swizzle(offset))
        assert rows[0] ^ rows[1] == rows[2]
        moved = {column for row, column in bits if row == 1}
        assert moved == {columns - 1 - bit for bit in range(columns) if swizzle.zzz_mask >> bit & 1}


@pytest.mark.parametrize("cluster", [(1, 1), (2, 1), (2, 4), (4, 4), (1, 16)])
def test_a_cluster_shows_masks_senders_and_arrivals(cluster: tuple[int, int]) -> None:
    rows, columns = cluster
    for block in {(0, 0), (rows - 1, columns - 1)}:
        figure = cluster_figure(cluster, block, consumer_warps=8)
        a, b, sent, arrivals = (panel.words() for panel in read_svg(figure.svg()).panels)
        for m in range(rows):
            for n in range(columns):
                assert a[m, n] == [
                    f"rank {m + rows * n}",
                    f"0b{sum(1 << m + rows * i for i in range(columns)):0{rows * columns}b}",
                ]
                assert int(b[m, n][1], 2) == sum(1 << i + rows * n for i in range(rows))
                shared = [name for name, same in (("A", m == block[0]), ("B", n == block[1])) if same]
                assert sent[m, n][1] == (" and ".join(shared) or "-")
                assert arrivals[m, n][1] == ("8 warps" if shared else "-")
        assert f"expects {8 * (rows + columns - 1)} arrivals" in figure.notes[-1]


@pytest.mark.parametrize(
    ("tiles", "k_tiles", "sms", "occupancy"),
    [
        (9, 64, 8, 1),
        (150, 32, 108, 2),
        (20, 16, 8, 2),
        (16, 64, 8, 1),
        (3, 1, 8, 1),
        (30, 7, 8, 3),
        (23, 40, 8, 3),
    ],
)
def test_the_plan_in_colour_is_the_one_that_is_chosen(tiles: int, k_tiles: int, sms: int, occupancy: int) -> None:
    (panel,) = streamk_plan_figure(tiles, k_tiles, sms, occupancy).panels
    coloured = [cell for cell in panel.cells if cell.fill != "#ffffff"]
    dp_tiles, blocks = get_blocks(tiles, k_tiles, sms, occupancy)
    chosen = [int(cell.lines[0]) for cell in coloured[:2]]
    assert chosen == ([tiles - dp_tiles, blocks] if blocks else [])
    assert len({cell.row for cell in coloured}) == (1 if blocks else 0)
    rows: dict[int, list[int]] = {}
    for cell in panel.cells:
        rows.setdefault(cell.row, []).append(int(cell.lines[0]))
    assert all(alone - shared == saved for _, _, alone, shared, saved in rows.values())
    if blocks:  # no other number of blocks for these tiles saves more
        alike = [row for row in rows.values() if row[0] == chosen[0]]
        assert max((row[4], row[1]) for row in alike)[1] == blocks


def test_explaining_figures_refuse_wrong_arguments() -> None:
    with pytest.raises(ArgumentError, match="not a swizzle"):
        swizzle_bits_figure((3, 3, 3), 5)
    with pytest.raises(ArgumentError, match="non-negative"):
        swizzle_bits_figure(Swizzle(3, 3, 3), -1)
    for cluster, block, complaint in (
        ((4, 8), (0, 0), "at most 16"),
        ((2, 2), (2, 0), "outside"),
        ((0, 2), (0, 0), "positive"),
    ):
        with pytest.raises(ArgumentError, match=complaint):
            cluster_figure(cluster, block)
    with pytest.raises(ArgumentError, match="positive"):
        streamk_plan_figure(0, 4, 8)
