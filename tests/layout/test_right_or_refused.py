"""Every operation gives the function that its law names, element by element, or is refused: on arbitrary operands."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import assume as suppose
from hypothesis import example, given
from hypothesis import strategies as st

from tests.golden import product_values
from tests.layout.strategies import any_layouts, injective_layouts, shapes
from tilewright.errors import LayoutError
from tilewright.layout import (
    Layout,
    coalesce,
    complement,
    composition,
    cosize,
    downcast,
    filter,
    flatten_to_tuple,
    idx2crd,
    is_injective,
    logical_divide,
    logical_product,
    make_identity_layout,
    make_ordered_layout,
    parse,
    product_each,
    size,
    tile_to_shape,
    upcast,
)
from tilewright.layout.basis import add_coords

LAYOUTS = st.one_of(any_layouts(), injective_layouts())


def values(layout: Any) -> list[Any]:
    return [layout(i) for i in range(size(layout))]


def digits(value: int, count: int) -> tuple[int, ...]:
    """The coordinate that a layout with strides 1, BASE, BASE**2, ... has written into its offset."""
    return tuple(value // BASE**k % BASE for k in range(count))


BASE = 1 << 20


@given(shapes(), LAYOUTS)
@example((6, 6, 2), Layout(6, 4))
@example((4, (6, 2)), parse("((2,8),3):((24,3),1)"))
def test_a_composition_with_coordinates_names_the_index_of_each_element(shape: Any, b: Layout) -> None:
    """The coordinate may lie past its extent, as (7,0) in (6,6), but it is the index that B has there."""
    suppose(isinstance(shape, tuple))
    try:
        r = composition(make_identity_layout(shape), b)
    except LayoutError:
        return
    origin, extents = idx2crd(0, shape), flatten_to_tuple(shape)
    for i in range(size(b)):
        index, step = 0, 1
        for c, s in zip(flatten_to_tuple(add_coords(origin, r(i))), extents, strict=True):
            index, step = index + c * step, step * s
        assert index == b(i)


def test_a_coordinate_past_its_extent_is_let_through_only_where_it_names_the_index() -> None:
    assert str(composition(make_identity_layout((4, 4)), parse("(4,2):(1,2)"))) == "(4,2):(1@0,2@0)"
    assert str(composition(parse("(4,4):(1@1,1@0)"), parse("(4,2):(1,2)"))) == "(4,2):(1@1,2@1)"
    with pytest.raises(LayoutError, match="steps past the extent 2"):
        composition(parse("(2,3):(1@0,4@0)"), parse("(2,2):(1,1)"))


@given(LAYOUTS, st.integers(1, 200))
@example(parse("(4,8,2):(0,3,32)"), 54)
@example(parse("(8,2):(1,20)"), 40)
def test_the_copies_of_a_complement_cover_the_target_once(a: Layout, target: int) -> None:
    try:
        copies = values(complement(a, target))
    except LayoutError:
        return
    assert copies == sorted(copies)
    reached = Counter(x + y for x in set(values(a)) for y in copies)
    assert set(reached.values()) == {1}
    assert set(range(target)) <= set(reached) or cosize(a) > target


def test_a_complement_that_would_leave_offsets_out() -> None:
    with pytest.raises(LayoutError, match="no copy reaches the last 8 offsets below the mode 2:32"):
        complement(parse("(4,8,2):(0,3,32)"))
    with pytest.raises(LayoutError, match=r"logical_divide\(40:1, \(8,2\):\(1,20\)\): .*no copy reaches the last 4"):
        logical_divide(Layout(40), parse("(8,2):(1,20)"))
    # A product needs no cover: the copies of a block with padded rows stand side by side.
    assert str(logical_product(parse("(8,2):(1,20)"), Layout(2))) == "((8,2),2):((1,20),8)"


@given(LAYOUTS, LAYOUTS)
@example(parse("((4,3),5):((15,5),1)"), parse("6:8"))
@example(parse("(3,8,2):(1,100,1000)"), parse("(2,2):(1,12)"))
@example(parse("(6,6):(1,10)"), parse("4:1"))
def test_a_divide_has_the_tile_asked_for_and_every_element_once(a: Layout, tiler: Layout) -> None:
    """What hangs over lies past an extent: the coordinates of the divided layout tell, and the caller predicates it."""
    try:
        result = logical_divide(a, tiler)
    except LayoutError:
        return
    assert values(result[0]) == [a(tiler(i)) for i in range(size(tiler))]
    extents = flatten_to_tuple(coalesce(a).shape)
    suppose(len(extents) > 1)
    coordinates = Layout(extents, tuple(BASE**k for k in range(len(extents))))
    try:
        reached = Counter(digits(x, len(extents)) for x in values(logical_divide(coordinates, tiler)))
    except LayoutError:  # a itself reads past its end with the stride of a last mode of size 1
        return
    assert len(set(reached.values())) == 1  # once for each time that the tiler names an element
    inside = [c for c in reached if all(x < s for x, s in zip(c, extents, strict=True))]
    assert len(inside) == size(a)


@given(LAYOUTS, LAYOUTS)
@example(parse("2:3"), parse("8:2"))
@example(parse("8:6"), parse("(4,4):(1,4)"))
@example(parse("(5,5):(4,32)"), Layout(8))
@example(parse("(4,8,2,2):(7,32,1,2)"), Layout(2))
@example(parse("(4,2):(2,24)"), parse("(4,4):(1,4)"))
def test_a_product_holds_the_copies_that_the_tiler_names(block: Layout, tiler: Layout) -> None:
    suppose(size(block) * size(tiler) <= 2000)
    try:
        result = logical_product(block, tiler)
    except LayoutError:
        return
    assert values(result[0]) == values(block)
    assert values(result) == product_values(block, tiler)
    if is_injective(filter(block)) and is_injective(tiler):
        assert is_injective(filter(result))


@given(injective_layouts(), st.lists(st.integers(1, 3), min_size=5, max_size=5), st.permutations(range(5)))
@example(parse("(2,6):(4,8)"), [3, 2, 1, 1, 1], [0, 1, 2, 3, 4])
def test_tile_to_shape_holds_the_copies_in_order(atom: Layout, times: list[int], order: list[int]) -> None:
    target = tuple(e * n for e, n in zip(product_each(atom.shape), times, strict=False))
    ranks = tuple(order[: len(target)])
    suppose(size(target) <= 2000)
    try:
        result = tile_to_shape(atom, target, ranks)
    except LayoutError:
        return
    copies = make_ordered_layout(tuple(times[: len(target)]), ranks)
    assert sorted(values(result)) == sorted(product_values(atom, copies))


@given(LAYOUTS, st.integers(1, 12))
@example(parse("(2,16,2):(1,16,1)"), 2)
@example(parse("4:-1"), 2)
def test_an_upcast_keeps_every_unit(a: Layout, n: int) -> None:
    try:
        result = upcast(a, n)
    except LayoutError:
        return
    assert set(values(result)) == {x // n for x in values(a)}


@given(LAYOUTS, st.integers(1, 12))
@example(parse("4:-1"), 2)
def test_a_downcast_splits_every_element_and_can_be_undone(a: Layout, n: int) -> None:
    try:
        result = downcast(a, n)
    except LayoutError:
        return
    assert Counter(values(result)) == Counter(x * n + k for x in values(a) for k in range(n))
    assert values(upcast(result, n)) == values(a)
