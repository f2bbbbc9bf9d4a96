"""What colours, lines, remarks and legends say is true: checked against the layouts by brute force."""

from __future__ import annotations

import re
from collections import defaultdict

import numpy as np
import pytest

from tests.viz.kinds import PICTURES, hopper_mma, picture, tiled_copy, tiled_mma
from tests.viz.reading import CellPosition, DrawnPanel, read_svg
from tilewright.errors import ArgumentError
from tilewright.layout import ComposedLayout, Layout, Swizzle, parse, product
from tilewright.viz import (
    bank_figure,
    composition_figure,
    copy_figure,
    divide_figure,
    layout_figure,
    layout_slice_figure,
    swizzle_figure,
    tensor_figure,
    tiled_copy_figure,
    tiled_mma_figure,
    tv_figure,
)
from tilewright.viz.colour import distinct, lane_colour

Owners = dict[CellPosition, set[tuple[int, int]]]


def owners(layout: Layout, extents: tuple[int, int], shown: tuple[int, int], flip: bool = False) -> Owners:
    """All (thread, value) pairs of each element, by evaluating the layout at every coordinate."""
    found: Owners = defaultdict(set)
    threads, values = (product(mode) for mode in layout.shape)
    for t in range(threads):
        for v in range(values):
            index = layout((t, v))
            i, j = index % extents[0], index // extents[0]
            for row in range(i, shown[0], extents[0]):
                for column in range(j, shown[1], extents[1]):
                    found[(column, row) if flip else (row, column)].add((t, v))
    return found


def named(remark: str) -> set[tuple[int, int]]:
    """The (thread, value) pairs that a remark names, ranges written out."""
    found = set()
    for part in remark.partition(": ")[2].split(", "):
        first, last, value = re.fullmatch(r"T(\d+)(?: to T(\d+))? V(\d+)", part).groups()
        found |= {(t, int(value)) for t in range(int(first), int(last or first) + 1)}
    return found


def drawn_borders(panel: DrawnPanel, kind: str) -> tuple[set[CellPosition], set[CellPosition]]:
    """The cells that have a line of this kind to their right, and below them."""
    right, below = set(), set()
    for place, cell in panel.cells.items():
        x, y, width, height = cell.box
        for x1, y1, x2, y2 in panel.lines.get(kind, ()):
            if x1 == x2 == pytest.approx(x + width, abs=0.02) and y1 <= y + 1 and y2 >= y + height - 1:
                right.add(place)
            if y1 == y2 == pytest.approx(y + height, abs=0.02) and x1 <= x + 1 and x2 >= x + width - 1:
                below.add(place)
    return right, below


MMAS = {"mma.sync": (tiled_mma, (32, 32, 16)), "wgmma": (hopper_mma, (128, 16, 8))}


@pytest.mark.parametrize("name", MMAS)
def test_every_thread_that_shares_an_element_is_named_and_borders_part_warps(name: str) -> None:
    make, (m, n, k) = MMAS[name]
    mma = make()
    b, a, c = read_svg(tiled_mma_figure(mma).svg()).panels
    expected = [
        (a, owners(mma.tv_layout_A_tiled, (m, k), (m, k))),
        (b, owners(mma.tv_layout_B_tiled, (n, k), (n, k), flip=True)),
        (c, owners(mma.tv_layout_C_tiled, (m, n), (m, n))),
    ]
    parted = 0
    for panel, who in expected:
        assert {place: named(cell.remark) for place, cell in panel.cells.items()} == dict(who)
        warps = {place: frozenset(t // 32 for t, _ in pairs) for place, pairs in who.items()}
        right = {(i, j) for (i, j), own in warps.items() if warps.get((i, j + 1), own) != own}
        below = {(i, j) for (i, j), own in warps.items() if warps.get((i + 1, j), own) != own}
        assert drawn_borders(panel, "warp") == (right, below)
        parted += len(right) + len(below)
        groups = {frozenset(t for t, _ in pairs) for pairs in who.values()}
        if "every thread" not in panel.title:
            for place, cell in panel.cells.items():
                thread, _ = min(who[place])
                assert cell.fill == lane_colour(thread // 32, thread % 32)
        elif len(groups) > 1:  # two warpgroups, each with its own rows of A
            assert groups == {frozenset(range(128)), frozenset(range(128, 256))}
            for (row, column), cell in panel.cells.items():
                assert cell.lines == [f"V{row % 64 + 64 * column}"] and cell.fill == lane_colour(row // 64 * 4, 0)
    assert parted


def test_atoms_of_a_tiled_copy_are_parted() -> None:
    source, _ = read_svg(tiled_copy_figure(tiled_copy()).svg()).panels
    right, below = drawn_borders(source, "atom")
    assert right == {(i, j) for i in range(16) for j in range(3, 31, 4)}  # 128 bits: four values in a row
    warp_right, warp_below = drawn_borders(source, "warp")
    assert not warp_right and warp_below == {(i, j) for i in (3, 7, 11) for j in range(32)}  # eight threads to a row
    assert below == {(i, j) for i in range(15) for j in range(32)} - warp_below


@pytest.mark.parametrize("bits", [1, 3, 4, 5, 6])
def test_the_legend_of_a_swizzle_is_true(bits: int) -> None:
    """As many colours as the legend says, and equal colours exactly where the residues are equal."""
    swizzle = Swizzle(bits, 1, bits)
    layout = ComposedLayout(swizzle, 0, Layout((1 << bits, 2 << bits), (2 << bits, 1)))
    drawing = read_svg(swizzle_figure(layout).svg())
    (sentence,) = [caption for caption in drawing.captions if caption.startswith("colour:")]
    divisor, modulus, again = re.search(
        r"\(offset / (\d+) modulo (\d+)(?:; colours repeat after (\d+))?\)", sentence
    ).groups()
    assert int(modulus) == 1 << bits
    for panel in drawing.panels:
        by_residue = defaultdict(set)
        for place, number in panel.numbers().items():
            by_residue[number // int(divisor) % int(modulus) % int(again or modulus)].add(panel.cells[place].fill)
        assert all(len(fills) == 1 for fills in by_residue.values())
        assert len({fill for fills in by_residue.values() for fill in fills}) == len(by_residue)
        assert len(by_residue) == min(1 << bits, 32)


def colour_is(panel: DrawnPanel, key: dict[CellPosition, int]) -> bool:
    """Whether cells have one colour exactly where ``key`` is the same."""
    pairs = {(key[place], cell.fill) for place, cell in panel.cells.items()}
    return len(pairs) == len({k for k, _ in pairs}) == len({fill for _, fill in pairs})


LAYOUT = Layout((8, 16), (16, 1))


@pytest.mark.parametrize(
    ("color_by", "key", "sentence"),
    [
        ("offset", lambda i, j: LAYOUT((i, j)) % 8, "colour: offset modulo 8"),
        ("index", lambda i, j: (i + 8 * j) % 8, "colour: index modulo 8"),
        ("row", lambda i, j: i % 8, "colour: row modulo 8"),
        ("column", lambda i, j: j % 8, "colour: column modulo 8"),
        ("bank", lambda i, j: LAYOUT((i, j)) // 2 % 32, "colour: bank of the first byte, of 32 banks; elements of 16"),
        (lambda offset: offset // 40, lambda i, j: LAYOUT((i, j)) // 40, "colour: lambda, modulo 32"),
    ],
)
def test_a_layout_is_coloured_by_what_is_asked(color_by, key, sentence: str) -> None:
    drawing = read_svg(layout_figure(LAYOUT, color_by=color_by, element_bits=16).svg())
    (panel,) = drawing.panels
    assert colour_is(panel, {place: key(*place) for place in panel.cells})
    assert any(caption.startswith(sentence) for caption in drawing.captions)


TV = parse("((4,8,4),(2,2,2)):((128,1,16),(64,8,512))")


@pytest.mark.parametrize(
    ("color_by", "key"),
    [
        ("thread", lambda t, v: t),
        ("warp", lambda t, v: t // 32),
        ("lane", lambda t, v: t % 32),
        ("value", lambda t, v: v),
        (lambda t, v: v // 4, lambda t, v: v // 4),
    ],
)
def test_a_thread_value_map_is_coloured_by_what_is_asked(color_by, key) -> None:
    drawing = read_svg(tv_figure(TV, (64, 16), color_by=color_by).svg())
    (panel,) = drawing.panels
    who = {place: min(pairs) for place, pairs in owners(TV, (64, 16), (64, 16)).items()}
    assert colour_is(panel, {place: key(*pair) for place, pair in who.items()})
    fills = {cell.fill for cell in panel.cells.values()}
    if isinstance(color_by, str):
        assert set(drawing.legend.values()) <= fills  # no swatch of what is not there
        count = {"thread": 4, "warp": 4, "lane": 8, "value": 8}[color_by]
        assert len(drawing.legend) == count


@pytest.mark.parametrize("name", [name for name in PICTURES if name not in ("timeline", "stalls", "schedules")])
def test_no_legend_has_a_colour_that_is_not_in_the_picture(name: str) -> None:
    figure = picture(name)
    fills = {cell.fill for panel in figure.panels for cell in panel.cells}
    for colours, meaning in figure.legend:
        assert fills & {*((colours,) if isinstance(colours, str) else colours)}, meaning


def test_numbers_that_share_a_colour_share_a_swatch() -> None:
    """40 values: the first eight colours stand for two each."""
    drawing = read_svg(tv_figure(Layout((2, 40), (40, 1)), (8, 10), color_by="value").svg())
    assert len(drawing.legend) == 32 and drawing.legend["V1, V33"] == distinct(1)
    sentences = divide_figure(Layout((40, 2)), Layout(2)).notes
    assert sentences[-1] == "colour: the tile, modulo 32"
    assert composition_figure(Layout(64), Layout(40)).notes == ("colour: the element of A that B picks, modulo 32",)


def test_vectors_that_are_not_aligned_keep_their_banks_apart() -> None:
    """Rows of 66 halves: vectors of four words begin at every bank, not only at every fourth."""
    (panel,) = read_svg(bank_figure(Layout((8, 64), (66, 1)), 16, vector=8).svg()).panels
    assert colour_is(panel, panel.numbers())
    assert panel.numbers()[1, 0] == 1 and "banks 1 to 4" in panel.cells[1, 0].remark
    with pytest.raises(ArgumentError, match="slice it first"):
        bank_figure(Layout((4, 4, 2)), 16)


def test_source_and_destination_stand_below_each_other_where_they_are_too_wide() -> None:
    narrow, wide = Layout((32, 4), (4, 1)), Layout((32, 8), (8, 1))
    beside = read_svg(copy_figure(narrow, narrow, (8, 16)).svg()).panels
    assert beside[0].cells[0, 0].box[1] == beside[1].cells[0, 0].box[1]
    drawing = read_svg(copy_figure(wide, wide, (4, 64)).svg())
    one, two = (panel.cells[0, 0].box for panel in drawing.panels)
    assert one[0] == two[0] and one[1] < two[1] and drawing.width < 2400


def test_a_slice_is_what_has_colour() -> None:
    layout = parse("((2,2),8):((1,4),8)")
    for spec, taken in [
        ((None, slice(2, 5)), lambda i, j: 2 <= j < 5),
        ((3, None), lambda i, j: i == 3),
        (((1, None), -1), lambda i, j: i % 2 == 1 and j == 7),
        (slice(0, 6), lambda i, j: i + 4 * j < 6),
    ]:
        (panel,) = read_svg(layout_slice_figure(layout, spec).svg()).panels
        coloured = {place for place, cell in panel.cells.items() if cell.fill != "#ffffff"}
        assert coloured == {(i, j) for i in range(4) for j in range(8) if taken(i, j)}
    for spec in ((4, None), (None, None, None), ((0, 0, 0), 1), "x"):
        with pytest.raises(ArgumentError, match="slice"):
            layout_slice_figure(layout, spec)


def test_a_tensor_has_its_numbers_and_shades_by_size() -> None:
    array = np.array([[1.5, -2.0, 3.0], [1e-5, 123456.0, np.nan]], np.float32)
    drawing = read_svg(tensor_figure(array).svg())
    (panel,) = drawing.panels
    assert panel.words() == {
        (0, 0): ["1.5"],
        (0, 1): ["-2"],
        (0, 2): ["3"],
        (1, 0): ["1e-05"],
        (1, 1): ["1.235e+05"],
        (1, 2): ["nan"],
    }
    assert panel.cells[1, 1].fill != panel.cells[0, 1].fill and "red: not finite" in drawing.captions
    assert "-2 to 1.235e+05" in drawing.legend
    assert "offset 4: 1.235e+05" in panel.cells[1, 1].remark
    by_bank = tensor_figure(array, color_by="bank", show=("value", "offset"))
    assert by_bank.panels[0].cells[4].lines == ("1.235e+05", "4") and "elements of 32 bits" in by_bank.notes[-1]


def test_tensors_that_cannot_be_drawn_say_why() -> None:
    with pytest.raises(ArgumentError, match="an array with __dlpack__"):
        tensor_figure([1, 2])
    with pytest.raises(ArgumentError, match="color_by is one of offset, index, row, column, bank"):
        tensor_figure(np.zeros((2, 2), np.float32), color_by="size")
    with pytest.raises(ArgumentError, match="needs element_bits"):
        layout_figure(Layout(4), color_by="bank")
    with pytest.raises(ArgumentError, match="color_by is one of thread, warp, lane, value"):
        tv_figure(TV, (64, 16), color_by="atom")
    with pytest.raises(ArgumentError, match="must give whole numbers"):
        layout_figure(Layout(4), color_by=lambda offset: "red")
