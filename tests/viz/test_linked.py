"""Pictures of operations: the same colour is the same element, whatever number stands in its cell."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.viz.reading import read_svg
from tilewright import Float16, Float32, cute
from tilewright.cute.nvgpu import warp
from tilewright.errors import ArgumentError, LayoutError
from tilewright.layout import (
    Layout,
    blocked_product,
    complement,
    elem_less,
    flat_product,
    logical_product,
    make_identity_layout,
    raked_product,
    size,
    zipped_divide,
)
from tilewright.tiled import make_copy_atom, make_tiled_copy_A, make_tiled_copy_B, make_tiled_copy_C, make_tiled_mma
from tilewright.viz import (
    complement_figure,
    composition_figure,
    divide_figure,
    product_figure,
    retile_figure,
    tiled_copy_figure,
    tiled_mma_figure,
    tv_figure,
)
from tilewright.viz.colour import BLANK, distinct, thread_colour


@pytest.mark.parametrize(
    "a,b",
    [
        (Layout((6, 2), (8, 2)), Layout((4, 3), (3, 1))),
        (Layout((4, 8), (13, 1)), Layout(8, 2)),
        (Layout((6, 8)), (Layout(3, 2), 4)),
    ],
)
def test_composition_links_what_b_picks(a: Layout, b: object) -> None:
    in_a, in_b, in_result = read_svg(composition_figure(a, b).svg()).panels
    picked = {number: in_b.cells[place].fill for place, number in in_b.numbers().items()}
    assert len(set(picked.values())) == min(len(picked), 32)
    assert in_result.numbers() == {place: a(i) for place, i in in_b.numbers().items()}
    assert all(in_result.cells[place].fill == cell.fill for place, cell in in_b.cells.items())
    for (i, j), cell in in_a.cells.items():
        index = i + a.shape[0] * j
        assert cell.fill == picked.get(index, BLANK) and int(cell.lines[0]) == a(i, j)


@pytest.mark.parametrize(
    ("layout", "cotarget"),
    [(Layout(4, 2), 24), (Layout((2, 2), (1, 6)), 24), (Layout((2, 3), (12, 1)), 29), (Layout(3), 7)],
)
def test_a_complement_and_its_layout_fill_memory(layout: Layout, cotarget: int) -> None:
    own, copies, memory = read_svg(complement_figure(layout, cotarget).svg()).panels
    starts = {j: complement(layout, cotarget)(j) for j in range(len(copies.cells))}
    assert sorted(copies.numbers().values()) == sorted(starts.values())
    filled = {starts[j] + layout(i): (j, i) for j in starts for i in range(size(layout))}
    assert sorted(filled) == list(range(len(filled))) and len(filled) >= cotarget
    width = max(column for _, column in memory.cells) + 1
    for (row, column), cell in memory.cells.items():
        offset = row * width + column
        assert cell.lines == ["({},{})".format(*filled[offset])] if offset in filled else cell.fill == BLANK
        if offset in filled:
            assert cell.fill == distinct(filled[offset][0])
    assert len(memory.cells) >= len(filled) and len(own.cells) == size(layout)


@pytest.mark.parametrize("product_of", [logical_product, flat_product, blocked_product, raked_product])
def test_a_product_has_copies_of_its_block(product_of: Callable[..., Layout]) -> None:
    block, tiler = Layout((2, 2), (2, 1)), Layout((2, 3), (3, 1))
    figure = product_figure(block, tiler, product_of)
    cells = figure.panels[2].cells
    offsets = {int(cell.remark.rsplit(" ", 1)[1]): cell.fill for cell in cells}
    assert sorted(offsets) == list(range(24)) and len(cells) == 24
    for copy in range(6):  # copies are compact here, one behind the other in the order of the tiler
        place = tiler(copy)
        assert {offsets[4 * place + element] for element in range(4)} == {distinct(copy)}


@pytest.mark.parametrize(
    "layout,tiler",
    [
        (Layout((9, (4, 8)), (59, (13, 1))), (Layout(3, 3), Layout((2, 4), (1, 8)))),
        (Layout((5, 6)), (2, 4)),
        (Layout((4, 2, 3), (2, 1, 8)), Layout(4, 2)),
        (Layout((4, 6), (6, 1)), 8),
    ],
)
def test_divide_links_tiles(layout: Layout, tiler: object) -> None:
    whole, divided = read_svg(divide_figure(layout, tiler).svg()).panels
    values = zipped_divide(layout, tiler)
    assert divided.numbers() == {
        (i, j): values((i, j)) for i in range(size(values, [0])) for j in range(size(values, [1]))
    }
    filled = {place: cell.fill for place, cell in divided.cells.items() if cell.fill != BLANK}
    assert len(filled) == size(layout) == len(whole.cells)
    assert all(fill == distinct(tile) for (_, tile), fill in filled.items())
    assert {(int(c.lines[0]), c.fill) for c in whole.cells.values()} == {
        (divided.numbers()[place], fill) for place, fill in filled.items()
    }


def test_a_tile_that_hangs_over_is_white_where_nothing_is() -> None:
    where = zipped_divide(make_identity_layout((5, 6)), (2, 4))
    _, divided = read_svg(divide_figure(Layout((5, 6)), (2, 4)).svg()).panels
    for place, cell in divided.cells.items():
        assert (cell.fill == BLANK) == (not elem_less(where(place), (5, 6)))


def test_the_modes_of_a_division_have_the_names_that_the_caller_gives() -> None:
    drawn = read_svg(divide_figure(Layout((8, 9)), 18, names=("step", "multiprocessor")).svg())
    assert drawn.panels[1].title == "(18,4):(1,18): step x multiprocessor"
    assert drawn.captions[-1] == "colour: the multiprocessor"


def test_linked_figures_refuse_undefined_operations() -> None:
    with pytest.raises(LayoutError, match="shape divisibility"):
        composition_figure(Layout((4, 6), (1, 10)), Layout(5))
    with pytest.raises(ArgumentError, match="not a layout"):
        divide_figure("x", 2)


MMA = make_tiled_mma(warp.MmaF16BF16Op(Float16, Float32, (16, 8, 16)), (2, 2, 1), permutation_mnk=(32, 32, 16))
LDMATRIX = make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), Float16)
STORE = make_copy_atom(cute.nvgpu.CopyUniversalOp(), Float32)


@pytest.mark.parametrize(
    "operand,tiled_copy",
    [
        ("A", make_tiled_copy_A(LDMATRIX, MMA)),
        ("B", make_tiled_copy_B(LDMATRIX, MMA)),
        ("C", make_tiled_copy_C(STORE, MMA)),
    ],
)
@pytest.mark.parametrize("thread", [0, 37, 127])
def test_retile_moves_no_register(operand: str, tiled_copy: object, thread: int) -> None:
    mma, copy, before, after = read_svg(retile_figure(tiled_copy, MMA, operand, thread).svg()).panels
    held = {place: cell for place, cell in mma.cells.items() if cell.lines}
    assert len(held) == len(before.cells) == len(after.cells) == 8
    for place, cell in mma.cells.items():
        assert cell.fill == copy.cells[place].fill  # the same register holds the element
    for panel, registers in ((mma, before), (copy, after)):
        for place in held:
            value = int(panel.cells[place].lines[0][1:])
            assert registers.cells[0, value].fill == panel.cells[place].fill
            register = int(registers.cells[0, value].lines[0][1:])
            assert registers.cells[0, value].fill == distinct(register)


def test_retile_over_several_tiles_counts_otherwise() -> None:
    """The MMA counts rows of atoms before columns, the copy the columns of its own tile first."""
    copy = make_tiled_copy_C(STORE, MMA)
    _, _, before, after = read_svg(retile_figure(copy, MMA, "C", 37, tile=(64, 32)).svg()).panels
    order = [cell.lines[0] for _, cell in sorted(after.cells.items())]
    assert [cell.lines[0] for _, cell in sorted(before.cells.items())] == [f"R{i}" for i in range(16)]
    assert order == [f"R{i}" for i in (0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15)]
    with pytest.raises(ArgumentError, match=r"\(48, 32\) is not a multiple of the MMA's tile of C, \(32, 32\)"):
        retile_figure(copy, MMA, "C", 0, tile=(48, 32))


def test_retile_of_a_missing_thread_or_operand() -> None:
    copy = make_tiled_copy_A(LDMATRIX, MMA)
    with pytest.raises(ArgumentError, match="no thread 128 among the 128"):
        retile_figure(copy, MMA, "A", 128)
    with pytest.raises(ArgumentError, match="A, B and C, not 'D'"):
        retile_figure(copy, MMA, "D")


def test_one_thread_of_a_map() -> None:
    copy = make_tiled_copy_A(LDMATRIX, MMA)
    for figure, everyone in (
        (tiled_mma_figure(MMA, thread=37), tiled_mma_figure(MMA)),
        (tiled_copy_figure(copy, thread=37), tiled_copy_figure(copy)),
        (tv_figure(MMA.tv_layout_C_tiled, (32, 32), thread=37), tv_figure(MMA.tv_layout_C_tiled, (32, 32))),
    ):
        drawing = read_svg(figure.svg())
        assert drawing.legend == {"T37": thread_colour(37, 128)}
        for panel, whole in zip(drawing.panels, figure.panels, strict=True):
            names = {cell.lines[0] for cell in panel.cells.values() if cell.lines}
            assert names == {"T37"} and len(panel.cells) == len(whole.cells)
        assert len(figure.panels) == len(everyone.panels)
    with pytest.raises(ArgumentError, match="thread 128: there are 128"):
        tiled_mma_figure(MMA, thread=128)
