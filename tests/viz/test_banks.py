"""Bank maps."""

from __future__ import annotations

import re

import pytest

from tests.viz.reading import read_svg
from tilewright.errors import ArgumentError
from tilewright.layout import ComposedLayout, Layout, Swizzle, bank_conflicts, size
from tilewright.viz import bank_figure

TILE = Layout((8, 64), (64, 1))


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_each_element_shows_the_bank_of_its_first_byte(bits: int) -> None:
    (panel,) = read_svg(bank_figure(TILE, bits).svg()).panels
    assert panel.numbers() == {(i, j): TILE((i, j)) * bits // 32 % 32 for i in range(8) for j in range(64)}


def test_a_swizzle_spreads_each_column_of_vectors_over_all_banks() -> None:
    without, with_it = read_svg(bank_figure(ComposedLayout(Swizzle(3, 3, 3), 0, TILE), 16, vector=8).svg()).panels
    for column in range(8):
        assert len({without.numbers()[row, column] for row in range(8)}) == 1
        assert {with_it.numbers()[row, column] for row in range(8)} == set(range(0, 32, 4))
        assert len({with_it.cells[row, column].fill for row in range(8)}) == 8


def test_an_access_is_counted_without_and_with_the_swizzle() -> None:
    column = Layout((8, 8), (1, 8))
    swizzled = ComposedLayout(Swizzle(3, 3, 3), 0, TILE)
    captions = read_svg(bank_figure(swizzled, 16, vector=8, access=column).svg()).captions
    start = "access (8,8):(1,8)"
    assert f"{start} without the swizzle: wavefronts 8, ideal 1" in captions
    assert f"{start} with it: wavefronts 1, ideal 1" in captions
    plain = read_svg(bank_figure(TILE, 16, vector=8, access=column).svg()).captions
    assert f"{start}: wavefronts 8, ideal 1" in plain


def test_vectors_must_be_rows_of_neighbours() -> None:
    with pytest.raises(ArgumentError, match="vectors of 7 do not divide a row of 64"):
        bank_figure(TILE, 16, vector=7)
    with pytest.raises(ArgumentError, match="elements 0 to 1 of row 0 are not neighbours"):
        bank_figure(Layout((8, 64)), 16, vector=2)


@pytest.mark.parametrize(
    ("bits", "vector", "access"),
    [
        (16, 8, Layout((8, 8), (1, 8))),  # a column of vectors by a quarter of a warp
        (16, 8, Layout(((8, 4), 16), ((1, 64), 8))),  # four phases of threads, two vectors each
        (16, 2, Layout((32, 4), (0, 8))),  # all lanes the same: served together
        (32, 1, Layout((32, 2), (8, 1))),
        (64, 1, Layout((8, 8), (8, 1))),
        (8, 1, Layout((32, 1), (1, 0))),
    ],
)
@pytest.mark.parametrize("swizzled", [False, True])
def test_accessed_cells_have_their_phase_and_their_conflict(
    bits: int, vector: int, access: Layout, swizzled: bool
) -> None:
    layout = ComposedLayout(Swizzle(3, 3, 3), 0, TILE) if swizzled else TILE
    panel = read_svg(bank_figure(layout, bits, vector=vector, access=access).svg()).panels[-1]
    report = bank_conflicts(layout, access, bits, vector)
    together = 32 if vector * bits <= 32 else 1024 // (vector * bits)
    threads = size(access[0])
    expected: dict[tuple[int, int], set[int]] = {}
    for thread in range(threads):
        for value in range(0, size(access[1]), vector):
            column, row = divmod(access((thread, value)), 8)
            phase = value // vector * -(-threads // together) + thread // together
            expected.setdefault((row, column // vector), set()).add(phase)
    worst: dict[int, int] = {}
    for place, cell in panel.cells.items():
        assert (cell.fill == "#ffffff") == (place not in expected)
        marks = re.findall(r"p(\d+)(?: x(\d+))?", " ".join(cell.lines[1:]))
        if len(report.phases) == 1:
            marks = [("0", " ".join(cell.lines[1:]).removeprefix("x"))] if place in expected else []
        assert {int(phase) for phase, _ in marks} == set(sorted(expected.get(place, ()))[:2])
        for phase, degree in marks:
            worst[int(phase)] = max(worst.get(int(phase), 1), int(degree or 1))
    assert worst == {number: phase[2] for number, phase in enumerate(report.phases) if number in worst}
    assert worst
