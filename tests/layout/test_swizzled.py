"""Composed layouts: the domain operations, slices, inverses and recasts of swizzled layouts."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from hypothesis import assume as suppose
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.layout.strategies import compact_layouts, injective_layouts
from tests.layout.test_laws import SWIZZLES, values
from tilewright.errors import LayoutError
from tilewright.layout import (
    ComposedLayout,
    Layout,
    Swizzle,
    SymbolicInt,
    coalesce,
    composition,
    domain_offset,
    downcast,
    flat_divide,
    get,
    group_modes,
    left_inverse,
    local_tile,
    logical_divide,
    make_composed_layout,
    max_alignment,
    max_common_layout,
    max_common_vector,
    parse,
    recast_layout,
    right_inverse,
    select,
    size,
    slice_and_offset,
    swizzle_of_masks,
    tile_to_shape,
    upcast,
    with_shape,
    zipped_divide,
)

POWERS = st.sampled_from([1, 2, 4, 8])
OFFSETS = st.sampled_from([0, 0, 3, 16, 64, 200])


def composed(outer: Layout, swizzle: Swizzle, offset: int) -> ComposedLayout:
    return make_composed_layout(swizzle, offset, outer)


@given(st.one_of(compact_layouts(POWERS), compact_layouts()), SWIZZLES, OFFSETS, st.data())
@settings(max_examples=100)
def test_every_slice_gives_the_elements(outer: Layout, swizzle: Swizzle, offset: int, data: Any) -> None:
    suppose(isinstance(outer.shape, tuple) and size(outer) <= 256)
    layout = composed(outer, swizzle, offset)
    coord = tuple(data.draw(st.one_of(st.none(), st.integers(0, size(m) - 1))) for m in outer)
    suppose(any(c is None for c in coord))
    part, outside = slice_and_offset(coord, layout)
    for i in range(size(part)):
        at = iter(Layout(tuple(size(outer[k]) for k, c in enumerate(coord) if c is None)).get_hier_coord(i))
        assert part(i) + outside == layout(tuple(next(at) if c is None else c for c in coord))


def test_a_slice_that_misses_one_end_of_the_xor_is_an_ordinary_layout() -> None:
    layout = parse("Sw<3,3,3> o 0 o (64,32):(1,64)")
    assert str(slice_and_offset((None, 30), layout)) == "(((16,4)):((1,-16)), 1968)"
    assert isinstance(slice_and_offset((0, None), layout)[0], Layout)
    assert slice_and_offset((None, None), layout) == (layout, 0)
    both = slice_and_offset(((None, 0), (None, 1)), parse("Sw<1,0,2> o 0 o ((2,2),(2,4)):((1,2),(4,8))"))
    assert str(both) == "(Sw<1,0,2> o 0 o (2,2):(1,4), 8)"  # bit 3 is never touched and moves outside


def test_a_run_time_coordinate_stays_inside() -> None:
    i = SymbolicInt("i")
    layout = parse("Sw<3,3,3> o 0 o (64,32):(1,64)")
    part, outside = slice_and_offset((None, i), layout)
    assert outside == 0 and str(part) == "Sw<3,3,3> o ?{div=64} o (64):(1)"
    assert part(9).substitute({"i": 5}) == layout(9, 5)


@given(compact_layouts(POWERS), SWIZZLES, OFFSETS)
def test_operations_act_on_the_domain(outer: Layout, swizzle: Swizzle, offset: int) -> None:
    suppose(isinstance(outer.shape, tuple) and size(outer) <= 512)
    layout = composed(outer, swizzle, offset)
    assert values(coalesce(layout)) == values(layout)
    assert sorted(values(logical_divide(layout, (1,)))) == sorted(values(layout))
    assert values(group_modes(layout, 0, -1)) == values(layout)
    assert values(with_shape(layout, size(layout))) == values(layout)
    assert values(get(layout, 0)) == [swizzle(offset + x) for x in values(outer[0])]
    assert values(select(layout, [0])) == values(get(layout, 0))
    moved, outside = domain_offset((0,) * len(outer), layout)
    assert outside == 0 and values(moved) == values(layout)


@given(compact_layouts(POWERS), SWIZZLES)
@settings(max_examples=100)
def test_inverses_of_swizzled_bijections(outer: Layout, swizzle: Swizzle) -> None:
    suppose(size(outer) <= 1024)
    layout = composed(outer, swizzle, 0)
    for inverse_of in (right_inverse, left_inverse):
        try:
            inverse = inverse_of(layout)
        except LayoutError:
            continue  # the bits of the XOR are not neighbours in the domain
        assert [layout(inverse(i)) for i in range(size(layout))] == list(range(size(layout)))


@pytest.mark.parametrize("n", [2, 4, 8])
def test_recasting_moves_the_same_bytes(n: int) -> None:
    layout = parse("Sw<3,4,3> o 0 o (8,128):(128,1)")
    wide = upcast(layout, n)
    assert wide == recast_layout(8 * n, 8, layout)
    assert downcast(wide, n) == layout
    for row in range(8):
        for column in range(0, 128, n):
            assert wide(row, column // n) * n == layout(row, column)
    assert max_alignment(layout) == 16 and max_alignment(wide) == 16 // n


def test_recasts_of_plain_layouts() -> None:
    layout = parse("(8,4):(1,16)")
    assert [upcast(layout, 4)(i) for i in range(8)] == [layout(i) // 4 for i in range(0, 32, 4)]
    assert recast_layout(12, 8, parse("6:1")) == parse("4:1")
    for text, n, why in (
        ("(8,4):(1,6)", 4, "neither of 4 and the stride 6 divides"),
        ("6:1", 4, "extent 6 is not divisible by 4"),
        ("Sw<1,2,1> o 2 o 8:1", 4, "offset 2 is not divisible"),
        ("Sw<1,2,1> o 0 o 12:1", 3, "power of two"),
        ("4:1@0", 2, "basis stride"),
    ):
        with pytest.raises(LayoutError, match=why):
            upcast(parse(text), n)
    with pytest.raises(LayoutError, match="needs a mode of stride 1"):
        downcast(parse("4:2"), 2)
    assert upcast(Swizzle(3, 1, 3), 8) == Swizzle(1, 0, 3)


def test_vectors_stop_at_the_swizzle() -> None:
    plain = parse("(8,64):(64,1)")
    swizzled = parse("Sw<3,3,3> o 0 o (8,64):(64,1)")
    assert max_common_vector(swizzled, plain) == 8
    assert max_common_vector(swizzled, swizzled) == 512
    assert max_common_vector(swizzled, parse("Sw<3,2,3> o 0 o (8,64):(64,1)")) == 4


def test_composition_of_swizzles_and_layouts() -> None:
    swizzle = Swizzle(2, 2, 3)
    layout = parse("(8,32):(32,1)")
    assert composition(swizzle, layout) == composed(layout, swizzle, 0)
    assert composition(Swizzle(0, 4, 3), layout) == layout
    through = composition(composed(layout, swizzle, 0), parse("(2,4):(1,8)"))
    assert values(through) == [swizzle(layout(i)) for i in values(parse("(2,4):(1,8)"))]
    passed = composition(Layout(256), composed(layout, swizzle, 0))
    assert values(passed) == values(composed(layout, swizzle, 0))
    with pytest.raises(LayoutError, match="same shift"):
        composition(Swizzle(1, 4, 3), Swizzle(1, 4, 2))
    with pytest.raises(LayoutError, match="must have offset 0"):
        composition(Layout(256), composed(layout, swizzle, 4))
    with pytest.raises(LayoutError, match="no swizzle has the source bits"):
        swizzle_of_masks(0b1010, 0b0101)


def test_invalid_swizzles_and_composed_layouts_are_refused() -> None:
    for arguments in ((2, 0, 1), (-1, 0, 0), (1, -1, 1)):
        with pytest.raises(LayoutError, match="needs B >= 0"):
            Swizzle(*arguments)
    with pytest.raises(LayoutError, match="gives coordinates"):
        make_composed_layout(Swizzle(1, 0, 1), 0, parse("(2,2):(1@0,1@1)"))
    with pytest.raises(LayoutError, match="must be a layout"):
        make_composed_layout(Swizzle(1, 0, 1), 0, 4)
    with pytest.raises(LayoutError, match="function of an offset"):
        make_composed_layout(7, 0, Layout(4))
    with pytest.raises(LayoutError, match="has no stride"):
        _ = parse("Sw<1,0,1> o 0 o 4:1").stride
    with pytest.raises(AttributeError, match="immutable"):
        parse("Sw<1,0,1> o 0 o 4:1").offset = 1
    with pytest.raises(AttributeError, match="immutable"):
        Layout(4).shape = 5


def test_copies_of_objects() -> None:
    for text in ("(2,(3,4)):(1,(2,6))", "Sw<3,3,3> o 0 o (8,64):(64,1)", "(4,4):(1@0,1@1)"):
        layout = parse(text)
        assert pickle.loads(pickle.dumps(layout)) == layout == copy.deepcopy(layout)


@pytest.mark.parametrize("operation", [coalesce, right_inverse, left_inverse])
def test_a_shape_is_no_layout(operation: Any) -> None:
    with pytest.raises(LayoutError, match=r"\(8,16\) is not a layout"):
        operation((8, 16))


@pytest.mark.parametrize("operation", [composition, logical_divide, zipped_divide, flat_divide])
def test_a_shape_is_no_layout_to_divide(operation: Any) -> None:
    with pytest.raises(LayoutError, match=r"\(8,16\) is not a layout"):
        operation((8, 16), (4, 4))
    assert operation(Layout((8, 16)), [4, [4]]) == operation(Layout((8, 16)), (4, (4,)))


def test_tiles_of_a_swizzled_layout() -> None:
    layout = parse("Sw<3,3,3> o 0 o (64,64):(64,1)")
    tile, offset = local_tile(layout, (16, 8), (2, 3))
    assert [tile(i, j) + offset for j in range(8) for i in range(16)] == [
        layout(32 + i, 24 + j) for j in range(8) for i in range(16)
    ]
    assert values(zipped_divide(layout, (16, 8))) == values(with_shape(flat_divide(layout, (16, 8)), 4096))
    grown = tile_to_shape(parse("Sw<3,3,3> o 0 o (8,64):(64,1)"), (16, 128), (0, 1))
    assert sorted(values(grown)) == list(range(2048))


def test_any_function_may_stand_inside() -> None:
    doubled = make_composed_layout(lambda x: 2 * x, 1, Layout((2, 2)))
    assert values(doubled) == [2, 4, 6, 8]
    table = make_composed_layout(Layout((4, 4), (4, 1)), 0, Layout(16))
    assert values(table) == values(Layout((4, 4), (4, 1)))


@given(st.one_of(compact_layouts(POWERS), injective_layouts()), SWIZZLES)
@settings(max_examples=120)
def test_left_inverse_of_any_swizzled_layout(outer: Layout, swizzle: Swizzle) -> None:
    layout = composed(outer, swizzle, 0)
    try:
        inverse = left_inverse(layout)
    except LayoutError:
        return
    assert [inverse(layout(i)) for i in range(size(layout))] == list(range(size(layout)))


def test_a_gap_of_three_does_not_move_bits_as_one() -> None:
    with pytest.raises(LayoutError, match="does not move the bits of the swizzle as one"):
        left_inverse(parse("Sw<1,0,-1> o 0 o 8:3"))


@given(compact_layouts(POWERS), compact_layouts(POWERS), SWIZZLES)
@settings(max_examples=100)
def test_composition_with_a_swizzled_layout_on_the_right(a: Layout, outer: Layout, swizzle: Swizzle) -> None:
    right = composed(outer, swizzle, 0)
    try:
        result = composition(a, right)
    except LayoutError:
        return
    assert values(result) == [a(right(i)) for i in range(size(right))]


def test_a_swizzle_does_not_step_past_the_left_layout() -> None:
    with pytest.raises(LayoutError, match="reaches 8 elements, the left one has 2"):
        composition(parse("2:1"), parse("Sw<2,2,-5> o 0 o 8:1"))


@given(compact_layouts(POWERS), compact_layouts(POWERS), SWIZZLES, OFFSETS)
@settings(max_examples=100)
def test_common_vectors_count_the_offset_before_the_swizzle(
    a: Layout, b: Layout, swizzle: Swizzle, offset: int
) -> None:
    layout = composed(a, swizzle, offset)
    common = max_common_layout(layout, b)
    steps = list(range(size(common)))
    assert [layout(common(i)) - layout(0) for i in steps] == [b(common(i)) for i in steps] == steps or steps == [0]
    assert max_common_vector(layout, b) == size(common)


def test_common_vectors_of_swizzled_layouts_that_are_odd() -> None:
    assert max_common_vector(parse("Sw<2,1,3> o 59 o 8:1"), parse("8:1")) == 1
    assert max_common_vector(parse("Sw<2,1,3> o 0 o 64:1"), parse("Sw<2,1,3> o 8 o 64:1")) == 2
    assert max_common_vector(parse("Sw<2,1,3> o 8 o 64:1"), parse("Sw<2,1,3> o 8 o 64:1")) == 64
    # 16 elements stay together, but no layout holds 16 of (10,6)
    swizzled = parse("Sw<1,4,2> o 0 o (6,10):(10,1)")
    assert str(max_common_layout(swizzled, parse("(6,10):(10,1)"))) == "8:6"


@given(st.one_of(compact_layouts(POWERS), injective_layouts()), SWIZZLES, st.booleans(), st.sampled_from([2, 4, 8, 16]))
@settings(max_examples=150)
def test_a_recast_covers_the_same_bits(outer: Layout, swizzle: Swizzle, swizzled: bool, n: int) -> None:
    layout = composed(outer, swizzle, 0) if swizzled else outer
    suppose(size(layout) <= 256)
    for old, new in ((1, n), (n, 1)):
        try:
            result = recast_layout(new, old, layout)
        except LayoutError:
            continue
        if size(result) * new == size(layout) * old:  # else a mode of fewer elements than one unit was rounded up
            assert bits_of(result, new) == bits_of(layout, old)


def bits_of(layout: Any, width: int) -> list[int]:
    return sorted({x * width + k for x in values(layout) for k in range(width)})


def test_modes_of_one_element_are_not_split_twice() -> None:
    assert str(downcast(parse("(4,1,8):(1,1,4)"), 2)) == "(8,1,8):(1,2,8)"
    assert str(downcast(parse("(1,1):(1,1)"), 8)) == "(8,1):(1,8)"
    assert str(downcast(parse("(8,1):(5,-1)"), 3)) == "(8,3):(15,1)"
    with pytest.raises(LayoutError, match="two modes step by one element"):
        downcast(parse("(2,2):(1,1)"), 2)
    with pytest.raises(LayoutError, match="places within 8 elements decide where they go"):
        upcast(parse("Sw<3,2,-6>"), 8)


@given(SWIZZLES, st.integers(1, 700))
def test_reach_holds_every_swizzled_offset(swizzle: Swizzle, count: int) -> None:
    reach = swizzle.reach(count)
    assert max(map(swizzle, range(count))) < reach and sorted(map(swizzle, range(reach))) == list(range(reach))
