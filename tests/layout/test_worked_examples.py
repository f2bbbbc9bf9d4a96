"""Worked examples of published introductions to CuTe, number for number."""

from __future__ import annotations

import pytest

from tilewright.layout import (
    Layout,
    Swizzle,
    blocked_product,
    coalesce,
    complement,
    composition,
    design_swizzle,
    flat_divide,
    inner_partition,
    left_inverse,
    local_partition,
    logical_divide,
    make_composed_layout,
    make_identity_layout,
    make_layout,
    make_layout_tv,
    make_swizzle,
    outer_partition,
    parse,
    raked_product,
    rank,
    shape,
    size,
    slice_and_offset,
    tiled_divide,
    with_shape,
    zipped_divide,
)


def row(layout: object) -> list[object]:
    return [layout(i) for i in range(size(layout))]


def test_layouts_are_functions() -> None:
    assert make_layout(4, stride=8)(2) == 16
    layout = parse("(3,2):(2,1)")
    assert layout(2, 0) == layout((2, 0)) == 4
    assert row(layout) == [0, 2, 4, 1, 3, 5]
    nested = parse("(2,(2,2)):(4,(2,1))")
    assert [nested(i, (j, k)) for k in range(2) for j in range(2) for i in range(2)] == row(nested)
    assert [nested(i, j) for j in range(4) for i in range(2)] == row(nested)


@pytest.mark.parametrize(
    "before,after", [("(2,(3,1)):(1,(2,6))", "6:1"), ("(2,4):(2,4)", "8:2"), ("(4,2):(4,2)", "(4,2):(4,2)")]
)
def test_coalesce(before: str, after: str) -> None:
    assert str(coalesce(parse(before))) == after


def test_composition_of_one_mode() -> None:
    a, b = parse("(4,8):(13,1)"), parse("8:2")
    assert str(composition(a, b)) == "(2,4):(26,1)"
    assert row(b) == [0, 2, 4, 6, 8, 10, 12, 14]
    assert row(composition(a, b)) == [0, 26, 1, 27, 2, 28, 3, 29]


def test_complement_covers() -> None:
    a = parse("(2,2):(1,6)")
    rest = complement(a, 24)
    assert str(rest) == "(3,2):(2,12)"
    assert sorted(row(make_layout(a, rest))) == list(range(24))


def test_division_step_by_step() -> None:
    a, b = parse("(4,2,3):(2,1,8)"), parse("4:2")
    rest = complement(b, size(a))
    assert str(rest) == "(2,3):(1,8)"
    assert str(make_layout(b, rest)) == "(4,(2,3)):(2,(1,8))"
    assert str(logical_divide(a, b)) == "((2,2),(2,3)):((4,1),(2,8))"


def test_shapes_of_the_divides() -> None:
    layout, tiler = make_layout((12, 32, 5)), (4, 8)
    assert shape(logical_divide(layout, tiler)) == ((4, 3), (8, 4), 5)
    assert shape(zipped_divide(layout, tiler)) == ((4, 8), (3, 4, 5))
    assert shape(tiled_divide(layout, tiler)) == ((4, 8), 3, 4, 5)
    assert shape(flat_divide(layout, tiler)) == (4, 8, 3, 4, 5)


def test_identity_layouts() -> None:
    assert row(make_identity_layout(6)) == [0, 1, 2, 3, 4, 5]
    assert row(make_identity_layout((3, 2))) == [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)]
    assert row(make_identity_layout(((2, 1), 3))) == [
        ((0, 0), 0),
        ((1, 0), 0),
        ((0, 0), 1),
        ((1, 0), 1),
        ((0, 0), 2),
        ((1, 0), 2),
    ]


def test_slice_across_nested_modes() -> None:
    layout = parse("((3,2),((2,3),2)):((4,1),((2,15),100))")
    part, offset = slice_and_offset(((None, 1), ((0, None), 1)), layout)
    assert (str(part), offset) == ("(3,3):(4,15)", 101)


def test_inner_and_outer_partition() -> None:
    a = make_layout((8, 24))
    tile, offset = inner_partition(a, (4, 8), (1, 2))
    assert (tile.shape, offset) == ((4, 8), a(4, 16))
    thread, offset = outer_partition(a, (4, 8), 5)
    assert (thread.shape, offset) == ((2, 3), a(1, 1))
    # The stride of the thread layout decides which element a thread owns: 5 is (0,5) of a row-major 4x8.
    thread, offset = local_partition(a, make_layout((4, 8), stride=(8, 1)), 5)
    assert (thread.shape, offset) == ((2, 3), a(0, 5))


def test_swizzle_of_rows() -> None:
    layout = make_layout((8, 32), stride=(32, 1))
    swizzled = make_composed_layout(make_swizzle(3, 2, 3), 0, layout)
    for i in range(8):
        for j in range(32):
            assert swizzled(i, j) == 32 * i + 4 * ((j // 4) ^ i) + j % 4


@pytest.mark.parametrize("swizzle,fixed", [((4, 0, 4), [0, 16]), ((3, 0, 4), [0, 8, 16, 24]), ((4, 0, 5), [0, 1])])
def test_rows_that_a_swizzle_leaves_alone(swizzle: tuple[int, int, int], fixed: list[int]) -> None:
    layout = make_layout((32, 16), stride=(16, 1))
    swizzled = make_composed_layout(make_swizzle(*swizzle), 0, layout)
    alone = [i for i in range(32) if all(swizzled(i, j) == layout(i, j) for j in range(16))]
    assert alone == fixed


def test_a_shift_within_the_row_repeats_every_fourth_row() -> None:
    """An article on swizzles reads a period of eight off the picture of the left half."""
    layout = make_layout((32, 16), stride=(16, 1))
    swizzled = make_composed_layout(make_swizzle(3, 0, 3), 0, layout)
    for columns, alone in ((range(8), list(range(0, 32, 4))), (range(8, 16), [])):
        assert [i for i in range(32) if all(swizzled(i, j) == layout(i, j) for j in columns)] == alone


def test_a_shift_beyond_the_row_pairs_rows() -> None:
    swizzle = Swizzle(4, 0, 5)
    for i in range(0, 64, 2):
        assert [swizzle(16 * i + j) - 16 * i for j in range(16)] == [
            swizzle(16 * (i + 1) + j) - 16 * (i + 1) for j in range(16)
        ]


def test_design_rule() -> None:
    assert design_swizzle(element_bytes=2, vector=8, row=64) == Swizzle(3, 3, 3)


def test_thread_value_layout_by_product_and_inverse() -> None:
    mn2tid, mn2vid = make_layout((8, 4), stride=(4, 1)), make_layout((1, 2), stride=(0, 1))
    mn2tv = raked_product(mn2tid, mn2vid)
    assert str(mn2tv) == "((1,8),(2,4)):((0,4),(32,1))"
    tv2mn = left_inverse(mn2tv).with_shape(32, 2)
    assert str(tv2mn) == "((4,8),2):((16,1),8)"
    assert make_layout_tv(mn2tid, mn2vid) == ((8, 8), tv2mn)
    repeated = left_inverse(blocked_product(mn2tv, make_layout((2, 2)))).with_shape(32, 8)
    assert str(repeated) == "((4,8),(2,2,2)):((32,1),(16,8,128))"


def test_thread_value_layout_by_divide_and_composition() -> None:
    atom = parse("((4,8),2):((16,1),8)")
    tiled = zipped_divide(make_layout((16, 16)), (8, 8))
    tv = composition(tiled, (atom, None))
    assert str(tv) == "(((4,8),2),(2,2)):(((32,1),16),(8,128))"
    by_product = parse("((4,8),(2,2,2)):((32,1),(16,8,128))")
    assert [tv((t, v), r) for r in range(4) for v in range(2) for t in range(32)] == row(by_product)


def test_retile_through_inverse_and_composition() -> None:
    """Registers filled through partition A, read in the order of partition C of the same elements."""
    ga, ra = parse("((2,2),4):((1,64),8)"), parse("((2,2),4):((1,2),4)")
    gc = parse("(2,(4,2)):(1,(8,64))")
    rc = composition(ra, composition(left_inverse(ga), gc))
    assert rc.shape == gc.shape and str(rc) == "(2,(4,2)):(1,(4,2))"
    for i in range(size(gc)):
        at_a = next(j for j in range(size(ga)) if ga(j) == gc(i))
        assert rc(i) == ra(at_a)
    assert rc != make_layout(gc.shape)  # the first wrong way: the natural layout of the shape


def test_reshape_one_mode_by_composition() -> None:
    layout = make_layout((32, 8))
    assert str(composition(layout, (make_layout((4, 8)), None))) == "((4,8),8):((1,4),32)"
    assert rank(with_shape(layout, (4, 8, 8))) == 3
    assert isinstance(layout, Layout)
