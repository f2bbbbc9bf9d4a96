"""The laws of the algebra, on random layouts: each operation is checked as the function it claims to be."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume as suppose
from hypothesis import given
from hypothesis import strategies as st

from tests.layout.strategies import EXTENTS, any_layouts, compact_layouts, injective_layouts, shapes
from tilewright.errors import LayoutError
from tilewright.layout import (
    Layout,
    Swizzle,
    blocked_product,
    coalesce,
    complement,
    composition,
    cosize,
    depth,
    filter,
    flat_divide,
    flatten_to_tuple,
    format_tree,
    idx2crd,
    is_congruent,
    is_weakly_congruent,
    left_inverse,
    logical_divide,
    logical_product,
    make_identity_layout,
    make_ordered_layout,
    max_common_layout,
    max_common_vector,
    nullspace,
    parse,
    raked_product,
    right_inverse,
    size,
    slice_and_offset,
    tile_to_shape,
    tiled_divide,
    with_shape,
    zipped_divide,
)


def values(layout: Any) -> list[int]:
    return [layout(i) for i in range(size(layout))]


@given(any_layouts())
def test_text_round_trip(a: Layout) -> None:
    assert parse(str(a)) == a
    assert hash(parse(str(a))) == hash(a)


@pytest.mark.parametrize(
    "text",
    [
        "(4,(2,3)):(1@0,(1@0@1,-4@1@1))",
        "Sw<3,3,3> o 0 o (8,64):(64,1)",
        "Sw<1,0,-1> o 16 o ((8,2),4):((1,64),8)",
        "(4,8):(8,1) o 3 o (2,2):(1,2)",
        "Sw<1,4,3> o 0 o Sw<2,0,2> o 4 o 8:1",
        "(8):(1)",
        "(4,_,(2:1,3))",
        "Sw<2,1,2>",
    ],
)
def test_notation_is_read_as_it_is_written(text: str) -> None:
    value = parse(text)
    assert format_tree(value) == text
    if ":" in text and not isinstance(value, tuple):
        assert Layout.parse(text) == value and str(Layout.parse(text)) == text


@given(any_layouts())
def test_every_coordinate_of_an_element_has_its_offset(a: Layout) -> None:
    natural = Layout(a.shape)
    for i in range(size(a)):
        coord = natural.get_hier_coord(i)
        expected = sum(c * d for c, d in zip(flatten_to_tuple(coord), flatten_to_tuple(a.stride), strict=True))
        assert a(i) == a(coord) == expected


@given(shapes())
def test_the_identity_layout_gives_every_coordinate_itself(shape: Any) -> None:
    """Of a shape with one mode, too: a coordinate is not a basis step."""
    identity, natural = make_identity_layout(shape), Layout(shape)
    for i in range(size(natural)):
        coord = idx2crd(i, shape)
        assert identity(i) == identity(coord) == coord
    assert slice_and_offset(0, identity)[1] == idx2crd(0, shape)


@given(shapes())
def test_an_index_for_each_mode_is_resolved_in_its_mode(shape: Any) -> None:
    layout = Layout(shape)
    for i in range(size(layout)):
        flat = layout.get_flat_coord(i)
        assert idx2crd(flat, shape) == idx2crd(i, shape) == layout.get_hier_coord(i)


@given(any_layouts())
def test_coalesce_keeps_the_function(a: Layout) -> None:
    result = coalesce(a)
    assert values(result) == values(a)
    assert depth(result) <= 1
    assert coalesce(result) == result


@given(any_layouts())
def test_coalesce_by_mode_keeps_the_modes(a: Layout) -> None:
    suppose(isinstance(a.shape, tuple))
    result = coalesce(a, target_profile=(1,) * len(a))
    assert [values(m) for m in result] == [values(m) for m in a]


@given(any_layouts())
def test_filter_keeps_the_set_of_offsets(a: Layout) -> None:
    assert set(values(filter(a))) == set(values(a))


@given(any_layouts(), any_layouts())
def test_composition_is_composition_or_refused(a: Layout, b: Layout) -> None:
    try:
        r = composition(a, b)
    except LayoutError as error:
        assert str(a) in str(error) and str(b) in str(error)
        return
    assert is_weakly_congruent(b, r) and size(r) == size(b)
    # A is read past its end with its last stride, as its function of an index does.
    assert values(r) == [a(b(i)) for i in range(size(b))]


@pytest.mark.parametrize(
    "a,b,why",
    [
        ("(4,6):(1,10)", "4:3", "steps past the extent 4"),
        ("(4,6):(1,10)", "5:1", "shape divisibility"),
        ("(6,4):(1,10)", "4:8", "stride divisibility"),
        ("(3,4):(1,10)", "4:2", "steps past the extent 3"),
        ("(4,4):(1,10)", "(4,2):(1,1)", "steps past the extent 4"),
        ("(4,4):(1,10)", "(2,2):(-1,4)", "forward and backward"),
        ("(4,4):(1,10)", "(2,2,2):(1,2,3)", "steps past the extent 4"),
    ],
)
def test_compositions_that_do_not_exist(a: str, b: str, why: str) -> None:
    with pytest.raises(LayoutError, match=why):
        composition(parse(a), parse(b))


@given(any_layouts(), st.integers(1, 3), st.sampled_from([1, 2, 4]))
def test_layouts_are_odd_functions(a: Layout, n: int, d: int) -> None:
    """A negative index gives the negative offset, so composition with backward steps keeps its law."""
    assert [a(-i) for i in range(2 * size(a))] == [-a(i) for i in range(2 * size(a))]
    try:
        r = composition(a, Layout(n, -d))
    except LayoutError:
        return
    assert values(r) == [a(-d * i) for i in range(n)]


@given(compact_layouts(), st.data())
def test_with_shape_keeps_the_order(a: Layout, data: Any) -> None:
    total = size(a)
    first = data.draw(st.sampled_from([n for n in range(1, total + 1) if total % n == 0]))
    second = data.draw(st.sampled_from([n for n in range(1, first + 1) if first % n == 0]))
    shape = ((second, first // second), total // first)
    try:
        result = with_shape(a, shape)
    except LayoutError:
        return
    assert values(result) == values(a)


@pytest.mark.parametrize(
    "a,why",
    [
        ("(2,2):(1,1)", "one-to-one"),
        ("(4,2):(1,2)", "one-to-one"),
        ("4:-1", "negative"),
        ("(3,2):(2,3)", "one-to-one, its modes nested: the mode 2:3 begins below 6"),
    ],
)
def test_complements_that_do_not_exist(a: str, why: str) -> None:
    with pytest.raises(LayoutError, match=why):
        complement(parse(a), 64)


@given(injective_layouts(), st.integers(1, 200))
def test_complement_is_disjoint_ordered_and_fills(a: Layout, target: int) -> None:
    result = complement(a, target)
    copies = values(result)
    assert copies == sorted(set(copies))
    both = [x + y for x in set(values(a)) for y in copies]
    assert len(both) == len(set(both))
    assert size(result) * len(set(values(a))) >= target
    assert cosize(result) >= target // cosize(a)


@given(compact_layouts())
def test_complement_of_a_compact_layout_completes_it(a: Layout) -> None:
    whole = Layout((a.shape, complement(a, 5 * size(a)).shape), (a.stride, complement(a, 5 * size(a)).stride))
    assert sorted(values(whole)) == list(range(5 * size(a)))


@given(any_layouts())
def test_right_inverse(a: Layout) -> None:
    inverse = right_inverse(a)
    assert [a(inverse(i)) for i in range(size(inverse))] == list(range(size(inverse)))


@given(compact_layouts())
def test_right_inverse_of_a_bijection_is_total(a: Layout) -> None:
    assert size(right_inverse(a)) == size(a)


@given(injective_layouts())
def test_left_inverse(a: Layout) -> None:
    inverse = left_inverse(a)
    assert [inverse(a(i)) for i in range(size(a))] == list(range(size(a)))


@given(any_layouts())
def test_left_inverse_is_right_or_refused(a: Layout) -> None:
    try:
        inverse = left_inverse(a)
    except LayoutError:
        return
    assert [a(inverse(a(i))) for i in range(size(a))] == values(a)


def test_left_inverse_where_coordinates_share_offsets() -> None:
    assert str(left_inverse(parse("(1,4,8):(0,4,12)"))) == "(4,3,8):(0,1,4)"
    assert str(left_inverse(parse("(4,2):(0,1)"))) == "2:4"
    for text, why in (("(6,6):(24,6)", "no layout undoes"), ("(2,2):(2,3)", "not divisible"), ("4:-1", "negative")):
        with pytest.raises(LayoutError, match=why):
            left_inverse(parse(text))


@given(any_layouts())
def test_nullspace(a: Layout) -> None:
    kernel = nullspace(a)
    assert all(a(kernel(i)) == 0 for i in range(size(kernel)))
    assert size(kernel) * size(filter(a)) >= size(a)


@given(compact_layouts(), st.data())
def test_common_layout_is_contiguous_in_both(a: Layout, data: Any) -> None:
    leaves = flatten_to_tuple(a.shape)
    b = make_ordered_layout(leaves, tuple(data.draw(st.permutations(range(len(leaves))))))
    common = max_common_layout(a, b)
    assert [a(common(i)) for i in range(size(common))] == list(range(size(common)))
    assert [b(common(i)) for i in range(size(common))] == list(range(size(common)))
    assert max_common_vector(a, b) == size(common)
    coords = [right_inverse(b)(i) for i in range(size(a))]
    run = next((i for i in range(size(a)) if a(coords[i]) != i), size(a))
    assert size(common) <= run and 2 * size(common) > min(run, 3)  # never longer than the truth, nor empty beside it


@pytest.mark.parametrize(
    ("a", "b", "count"),
    [
        (Layout((6, 4), (1, 3)), Layout((8, 3), (1, 1)), 4),  # six elements are common, and four divide b's eight
        (Layout((4, 3), (1, 2)), Layout((6, 2), (1, 1)), 3),
        (Layout((3, 4, 2), (1, 6, 3)), Layout((8, 3), (1, 1)), 2),
        (Layout((4, 6), (1, 5)), Layout((8, 3), (1, 1)), 4),
        (Layout((8, 3), (1, 1)), Layout((8, 3), (1, 1)), 8),
        (Layout((8, 3), (2, 1)), Layout((8, 3), (1, 1)), 1),
    ],
)
def test_as_many_elements_are_common_as_divide_the_mode(a: Layout, b: Layout, count: int) -> None:
    assert max_common_vector(a, b) == count == size(max_common_layout(a, b))


@st.composite
def divided(draw: Any) -> tuple[Layout, tuple[int, ...]]:
    a = draw(compact_layouts())
    suppose(isinstance(a.shape, tuple))
    tiler = []
    for mode in a:
        first = flatten_to_tuple(mode.shape)[0]
        tiler.append(draw(st.sampled_from([t for t in range(1, first + 1) if first % t == 0])))
    return a, tuple(tiler)


@given(divided())
def test_divides_are_permutations_of_the_elements(case: tuple[Layout, tuple[int, ...]]) -> None:
    a, tiler = case
    everything = sorted(values(a))
    for divide in (logical_divide, zipped_divide, tiled_divide, flat_divide):
        assert sorted(values(divide(a, tiler))) == everything
    zipped = zipped_divide(a, tiler)
    assert size(zipped, mode=[0]) == size(tiler)
    # Element (t, r) of the zipped form is the element t + tile * r of every mode.
    for r in range(size(zipped, mode=[1])):
        corner = Layout(tuple(size(m) // t for m, t in zip(a, tiler, strict=True))).get_hier_coord(r)
        for t in range(size(tiler)):
            inside = Layout(tiler).get_hier_coord(t)
            at = tuple(i + n * c for i, n, c in zip(inside, tiler, corner, strict=True))
            assert zipped(t, r) == a(at)


@given(compact_layouts(), compact_layouts())
def test_products_repeat_the_block(block: Layout, tiler: Layout) -> None:
    suppose(size(block) * size(tiler) <= 2000)
    result = logical_product(block, tiler)
    assert values(result[0]) == values(block)
    assert sorted(values(result)) == list(range(size(block) * size(tiler)))
    assert [x // size(block) for x in values(result[1])] == values(tiler)


@given(st.tuples(EXTENTS, EXTENTS), st.tuples(EXTENTS, EXTENTS), st.booleans(), st.booleans())
def test_blocked_and_raked_products_place_the_block(
    block_shape: tuple[int, int], tiler_shape: tuple[int, int], row: bool, tile_row: bool
) -> None:
    block = Layout(block_shape, (block_shape[1], 1) if row else (1, block_shape[0]))
    tiler = Layout(tiler_shape, (tiler_shape[1], 1) if tile_row else (1, tiler_shape[0]))
    blocked, raked = blocked_product(block, tiler), raked_product(block, tiler)
    (m, n), (p, q) = block_shape, tiler_shape
    for i in range(m):
        for j in range(n):
            for k in range(p):
                for h in range(q):
                    expected = block(i, j) + size(block) * tiler(k, h)
                    assert blocked(i + m * k, j + n * h) == raked(k + p * i, h + q * j) == expected


@given(st.tuples(EXTENTS, EXTENTS), st.tuples(st.integers(1, 4), st.integers(1, 4)), st.permutations([0, 1]))
def test_tile_to_shape_has_the_shape(atom: tuple[int, int], times: tuple[int, int], order: list[int]) -> None:
    target = (atom[0] * times[0], atom[1] * times[1])
    result = tile_to_shape(Layout(atom), target, tuple(order))
    assert tuple(size(m) for m in result) == target
    assert sorted(values(result)) == list(range(size(target)))
    inner = tuple(m[0] for m in result)
    assert tuple(m.shape for m in inner) == atom


@given(any_layouts(), st.data())
def test_a_slice_and_its_offset_give_the_elements(a: Layout, data: Any) -> None:
    suppose(isinstance(a.shape, tuple))
    coord = tuple(data.draw(st.one_of(st.none(), st.integers(0, size(m) - 1))) for m in a)
    suppose(any(c is None for c in coord))
    part, offset = slice_and_offset(coord, a)
    kept = [i for i, c in enumerate(coord) if c is None]
    assert [size(m) for m in part] == [size(a[i]) for i in kept]
    for i in range(size(part)):
        at = iter(Layout(tuple(size(m) for m in part)).get_hier_coord(i))
        full = tuple(next(at) if c is None else c for c in coord)
        assert part(i) + offset == a(full)


SWIZZLES = st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(0, 2), st.booleans()).map(
    lambda t: Swizzle(t[0], t[1], (t[0] + t[2]) * (-1 if t[3] else 1))
)


@given(SWIZZLES, st.integers(0, 1 << 14))
def test_a_swizzle_is_its_own_inverse_and_keeps_the_low_bits(swizzle: Swizzle, offset: int) -> None:
    assert swizzle(swizzle(offset)) == offset
    low = (1 << swizzle.base) - 1
    assert swizzle(offset) & low == offset & low
    assert swizzle(offset) & swizzle.yyy_mask == offset & swizzle.yyy_mask


@given(SWIZZLES)
def test_a_swizzle_permutes_its_period(swizzle: Swizzle) -> None:
    period = 1 << (swizzle.base + swizzle.bits + abs(swizzle.shift))
    assert sorted(map(swizzle, range(period))) == list(range(period))


def test_congruence_is_kept_by_the_constructor_of_users() -> None:
    from tilewright.layout import make_layout

    with pytest.raises(LayoutError, match="does not have the profile"):
        make_layout((4, (2, 3)), stride=(1, 4))
    with pytest.raises(LayoutError, match="not a positive extent"):
        make_layout((4, 0))
    assert is_congruent(make_layout((4, (2, 3))).stride, (4, (2, 3)))


def test_products_of_scalars_and_one_tuples_keep_one_mode() -> None:
    one, two = parse("(4):(1)"), parse("2:1")
    assert str(blocked_product(parse("4:1"), two)) == "((4,2)):((1,4))"
    assert str(blocked_product(one, two)) == "((4,2)):((1,4))"
    assert str(blocked_product(two, one)) == "((2,(4))):((1,(2)))"
    assert str(raked_product(one, two)) == "((2,(4))):((4,(1)))"
    assert str(raked_product(two, one)) == "((4,2)):((2,1))"
    assert str(raked_product(one, one)) == "((4,4)):((4,1))"
