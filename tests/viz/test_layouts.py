"""Pictures of layouts and swizzles hold every coordinate with its offset."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.viz.reading import read_svg
from tilewright.errors import ArgumentError
from tilewright.layout import ComposedLayout, Layout, Swizzle, SymbolicInt, make_identity_layout, parse, product, size
from tilewright.viz import layout_figure, swizzle_figure

extents = st.recursive(
    st.integers(1, 4), lambda inner: st.lists(inner, min_size=1, max_size=2).map(tuple), max_leaves=3
)


def strides_for(shape: Any) -> st.SearchStrategy[Any]:
    if isinstance(shape, tuple):
        return st.tuples(*map(strides_for, shape))
    return st.integers(0, 20)


layouts = st.tuples(extents, extents).flatmap(lambda shape: st.builds(Layout, st.just(shape), strides_for(shape)))


@given(layouts)
def test_every_cell_of_a_nested_layout_has_its_offset(layout: Layout) -> None:
    (panel,) = read_svg(layout_figure(layout).svg()).panels
    rows, columns = product(layout.shape[0]), product(layout.shape[1])
    assert panel.numbers() == {(i, j): layout((i, j)) for i in range(rows) for j in range(columns)}


@given(layouts)
def test_index_and_natural_coordinate_name_the_same_element(layout: Layout) -> None:
    (panel,) = read_svg(layout_figure(layout, show=("index", "coordinate", "offset")).svg()).panels
    indices = set()
    for (i, j), (index, coordinate, offset) in panel.words().items():
        assert layout(int(index)) == layout(parse(coordinate)) == layout((i, j)) == int(offset)
        indices.add(int(index))
    assert indices == set(range(size(layout)))


def test_equal_offsets_have_equal_colours_and_neighbours_differ() -> None:
    (panel,) = read_svg(layout_figure(Layout((4, 8), (8, 1))).svg()).panels
    fills = {place: cell.fill for place, cell in panel.cells.items()}
    assert all(fills[i, j] == fills[0, j] for i, j in fills)
    assert len({fills[0, j] for j in range(8)}) == 8


def test_a_rank_1_layout_is_a_row() -> None:
    for layout in (Layout(5, 3), Layout((5,), (3,))):
        (panel,) = read_svg(layout_figure(layout).svg()).panels
        assert panel.numbers() == {(0, j): 3 * j for j in range(5)}


def test_modes_after_the_second_become_panels() -> None:
    layout = Layout((2, 3, (2, 2)), (1, 2, (6, 12)))
    panels = read_svg(layout_figure(layout).svg()).panels
    assert [panel.title for panel in panels] == ["(_,_,0)", "(_,_,1)", "(_,_,2)", "(_,_,3)"]
    for number, panel in enumerate(panels):
        assert panel.numbers() == {(i, j): layout((i, j, number)) for i in range(2) for j in range(3)}


def test_heavy_lines_part_the_inner_tiles() -> None:
    (panel,) = read_svg(layout_figure(parse("((2,2),(4,2)):((1,8),(2,16))")).svg()).panels
    boxes = {place: cell.box for place, cell in panel.cells.items()}
    left, top, width, height = boxes[0, 0]
    assert panel.lines["tile"] == {
        (left, boxes[2, 0][1], left + 8 * width, boxes[2, 0][1]),
        (boxes[0, 4][0], top, boxes[0, 4][0], top + 4 * height),
    }
    assert read_svg(layout_figure(Layout((4, 8))).svg()).panels[0].lines == {}
    flat = layout_figure(parse("((2,2),(4,2)):((1,8),(2,16))"), flatten_hierarchical=True)
    assert read_svg(flat.svg()).panels[0].lines == {}


def test_basis_strides_show_coordinates() -> None:
    (panel,) = read_svg(layout_figure(make_identity_layout((2, (2, 2)))).svg()).panels
    assert panel.words()[1, 3] == ["(1,(1,1))"]


def test_a_huge_layout_is_cut_with_a_note() -> None:
    drawing = read_svg(layout_figure(Layout((1000, 300), (300, 1))).svg())
    rows, columns = [*range(91), *range(910, 1000)], [*range(91), *range(210, 300)]  # 181 x 181 cells, the corners
    assert drawing.panels[0].numbers() == {(i, j): 300 * i + j for i in rows for j in columns}
    assert "left out: rows 91 to 909 of 1000 and columns 91 to 209 of 300" in drawing.captions
    many = read_svg(layout_figure(Layout((1, 1, 100))).svg())
    assert len(many.panels) == 16 and "left out: slices 16 to 99 of 100" in many.captions


@pytest.mark.parametrize("swizzle", [Swizzle(3, 2, 3), Swizzle(2, 0, 3), Swizzle(2, 1, -2), Swizzle(0, 4, 3)])
@pytest.mark.parametrize("shape", [(8, 8), (8, 32), (4, 4, 2)])
def test_a_swizzle_is_drawn_before_and_after(swizzle: Swizzle, shape: tuple[int, ...]) -> None:
    outer = Layout(shape, (shape[1], 1, shape[0] * shape[1])[: len(shape)])
    layout = ComposedLayout(swizzle, 0, outer)
    panels = read_svg(swizzle_figure(layout).svg()).panels
    half = len(panels) // 2
    for number in range(half):
        rest = (number,) * (len(shape) - 2)
        before, after = panels[number], panels[half + number]
        assert before.title.startswith("before") and after.title.startswith("after")
        places = [(i, j) for i in range(shape[0]) for j in range(shape[1])]
        assert before.numbers() == {(i, j): outer((i, j, *rest)) for i, j in places}
        assert after.numbers() == {(i, j): swizzle(outer((i, j, *rest))) for i, j in places}


def test_the_colours_of_a_swizzle_show_each_row_permuted() -> None:
    before, after = read_svg(swizzle_figure(ComposedLayout(Swizzle(3, 2, 3), 0, Layout((8, 32), (32, 1)))).svg()).panels
    for j in range(0, 32, 4):
        assert len({before.cells[i, j].fill for i in range(8)}) == 1
        assert len({after.cells[i, j].fill for i in range(8)}) == 8


def test_layout_figures_refuse_wrong_arguments() -> None:
    with pytest.raises(ArgumentError, match="run-time integers"):
        layout_figure(Layout((4, SymbolicInt("n"))))
    with pytest.raises(ArgumentError, match="not a layout"):
        layout_figure((4, 8))
    with pytest.raises(ArgumentError, match="render_layout_svg"):
        swizzle_figure(Layout((4, 8)))
    with pytest.raises(ArgumentError, match="offset, index, coordinate"):
        layout_figure(Layout(4), show="color")


def test_a_heat_map_is_small_and_says_its_numbers_on_hovering() -> None:
    layout = parse("((8,8),(16,8)):((16,1024),(1,128))")
    plain, small = layout_figure(layout), layout_figure(layout, show="colour")
    (panel,) = small.panels
    assert len(panel.cells) == 64 * 128 and not any(cell.lines for cell in panel.cells)
    corner = panel.cells[-1]
    assert (corner.row, corner.column) == (63, 127) and corner.remark.endswith("offset 8191")
    assert panel.cells[0].fill == "#fff7bc" and corner.fill == "#0c2c84"
    assert len({cell.fill for cell in panel.cells}) == 33
    width, height = (float(found) for found in re.findall(r'(?:width|height)="([\d.]+)"', small.svg())[:2])
    assert width < 1200 and height < 700, "it fits a screen"
    assert len(small.svg()) < len(plain.svg())
    labels = re.findall(r">(\d+)</text>", small.svg())
    assert labels == [str(at) for at in range(0, 128, 4)] + [str(at) for at in range(0, 64, 4)]
    assert "from 0 (light) to 8191 (dark)" in small.svg()
    assert "bank" in str(layout_figure(layout, show="colour", color_by="bank", element_bits=16).notes)
