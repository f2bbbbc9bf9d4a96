"""Mistakes are answered with what is wrong, the operands in CuTe notation, and where it helps, the way out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tilewright.errors import LayoutError, ParseError
from tilewright.layout import (
    E,
    Layout,
    Swizzle,
    SymbolicInt,
    append,
    blocked_product,
    ceil_div,
    complement,
    composition,
    cosize,
    design_swizzle,
    domain_distribute,
    downcast,
    elem_less,
    explain,
    get,
    group_modes,
    idx2crd,
    left_inverse,
    local_tile,
    logical_divide,
    logical_product,
    make_composed_layout,
    make_identity_layout,
    make_layout,
    make_layout_right,
    make_ordered_layout,
    make_smem_atom,
    max_common_layout,
    nullspace,
    offsets,
    parse,
    recast_layout,
    repeat_as_tuple,
    right_inverse,
    shape_div,
    slice_,
    solve_swizzle,
    stride,
    tile_to_shape,
    transform_leaf,
    unflatten,
    upcast,
    zipped_divide,
)

A = Layout((4, (2, 3)), (1, (4, 8)))

MISTAKES: list[tuple[Callable[..., Any], tuple[Any, ...], str]] = [
    (A, (1, 2, 3), r"coordinate \(1,2,3\) does not fit the shape \(4,\(2,3\)\)"),
    (A, ((1, (2, 3, 4)),), "does not fit"),
    (Layout, (-1,), "Layout: -1 in the shape -1 is not a positive extent"),
    (Layout, (4.5,), "Layout: 4.5 in the shape 4.5 is not a positive extent"),
    (Layout, (4, 1.5), "Layout: 1.5 in the stride 1.5 is not a whole number"),
    (Layout, ((4, 2), (1, "2")), "Layout: '2' in the stride"),
    (make_layout, ((4, 0),), r"make_layout: 0 in the shape \(4,0\) is not a positive extent"),
    (slice_, ((None, 1), A), r"slice_\(\(_,1\), \(4.*the layout comes first: slice_\(layout, coord\)"),
    (get, (A, 2), r"mode \[2\] is out of range in \(4,\(2,3\)\):\(1,\(4,8\)\)"),
    (group_modes, (A, 1, 5), r"\[1, 5\) is not a range of the 2 modes"),
    (append, (A, None, 1), "already has more than 1 modes"),
    (make_layout, ("ab",), "neither an int nor a tuple"),
    (make_layout, (((), 4),), "empty tuple"),
    (make_layout, ((4, -1),), "-1 in the shape"),
    (make_ordered_layout, ((4, 8), (0, 1, 2)), "does not have the profile"),
    (shape_div, (12, 5), "neither divides the other"),
    (shape_div, ((2, 3), (2,)), "ranks differ"),
    (ceil_div, ((4, 4), (1, 2, 3)), "more modes than the input"),
    (ceil_div, (4, 0), "division by zero"),
    (unflatten, ((1, 2), (0, (0, 0))), "fewer leaves"),
    (unflatten, ((1, 2, 3), (0, 0)), "more leaves"),
    (transform_leaf, (lambda a, b: a, (1, 2), (1, (2, 3), 4)), "does not have the profile"),
    (repeat_as_tuple, (1, 0), "at least 1"),
    (composition, (A, (1, 1, 1)), "more modes than the layout"),
    (composition, (A, "x"), "a tiler is a layout, an int"),
    (logical_divide, (A, (1, 1, 1)), "more modes than the layout"),
    (logical_divide, (A, "x"), "a tiler is a layout, an int"),
    (zipped_divide, (Layout((4, 8, 2)), (2, None)), "is not a .tile, rest. pair"),
    (local_tile, (Layout((4, 8)), (2, 2), (0, 0, 0)), "more entries"),
    (blocked_product, (A, 4), "the tiler must be a layout"),
    (tile_to_shape, (Layout((4, 8)), (6, 8)), "6 is not divisible by 4"),
    (tile_to_shape, (Layout((4, 8)), (8,)), "more modes than the shape"),
    (idx2crd, (3, Layout((2, 2), (1, 0))), "no unique coordinate"),
    (idx2crd, ((3, 1, 0), ((2, 2), 4)), "does not fit the shape"),
    (Layout.get_hier_coord, (Layout((4, (2, 2))), (1, 3)), "take an offset, one integer"),
    (make_smem_atom, ("K", "SW256", 16), "is not one of"),
    (domain_distribute, ((SymbolicInt("m"), 4), 4), "needs static extents"),
    (offsets, (Layout((SymbolicInt("m"), 4)),), "only a static layout"),
    (offsets, (make_identity_layout((2, 2)),), "gives coordinates"),
    (composition, (Layout((2, 2)), Layout((2, 2), (E(0), 1))), "an offset among basis strides"),
    (composition, (Layout((2, 2)), Layout((2, 2), (E(0), E(2)))), "1@2 points to a mode that"),
    (Layout((2, 2), (E(0), 3)), (1, 1), "cannot be added"),
    # made of impossible parts
    (make_layout, (A, 5), "5 is not a layout; the other arguments are"),
    (make_layout, ((4, 8), (8, 1)), r"the stride is given by its name: make_layout\(\(4,8\), stride=\(8,1\)\)"),
    (Layout, ((4, 8), (1, 2, 3)), r"Layout: the stride \(1,2,3\) does not have the profile of the shape \(4,8\)"),
    (Layout, ((4, 8), 8), r"Layout: the stride 8 does not have the profile of the shape \(4,8\)"),
    (make_layout, (4.5,), "4.5 is neither an int"),
    (make_layout, ((4, None),), "_ is neither an int"),
    (make_layout, (0,), "0 in the shape 0 is not a positive extent"),
    (make_ordered_layout, ((4, 0), (0, 1)), "make_ordered_layout: 0 in the shape"),
    (make_layout_right, ((4, -2),), "make_layout_right: -2 in the shape"),
    (make_identity_layout, ((0, 4),), "make_identity_layout: 0 in the shape"),
    (make_composed_layout, (3, 0, A), "must be a function of an offset, not 3"),
    (make_composed_layout, (Swizzle(1, 0, 1), 0, (4, 8)), "outer part must be a layout"),
    (Swizzle, (3, 4, 2), r"Sw<3,4,2>: needs B >= 0, M >= 0 and \|S\| >= B"),
    (Swizzle, (1.5, 4, 2), "B, M and S are ints"),
    # operands that do not fit
    (composition, (A, {}), "a tiler is a layout, an int"),
    (composition, ((4, 8), A), r"\(4,8\) is not a layout"),
    (composition, (Layout((4, 6), (1, 10)), 5), "5 is not divisible by 4 .shape divisibility"),
    (composition, (Layout((4, 6), (1, 10)), Layout(2, 6)), "stride 6 is not divisible by 4 .stride divisibility"),
    (composition, (Swizzle(1, 0, 1), Swizzle(1, 0, 2)), "only swizzles of the same shift merge"),
    (composition, (Layout((4, 6)), (0, 2)), r"composition\(4:1, 0\): a tile of extent 0 is empty"),
    (complement, (Layout((4, 4), (1, 2)), 64), "the layout is not one-to-one"),
    (complement, (Layout(4, -1), 64), "one with negative strides"),
    (complement, (Layout(4), 0), r"complement\(4:1, 0\): what is to be filled must be positive"),
    (complement, (make_identity_layout((4, 4)), 16), "a basis stride has no place"),
    (left_inverse, (make_identity_layout((4, 4)),), "a basis stride has no place"),
    (left_inverse, (Layout(4, -1),), "the stride -1 is negative"),
    (left_inverse, (Layout((2, 2), (2, 3)),), "stride 3 is not divisible by the smaller 2"),
    (right_inverse, ("4:1",), "'4:1' is not a layout"),
    (nullspace, ((4, 8),), r"\(4,8\) is not a layout"),
    (max_common_layout, ((4, 8), A), r"\(4,8\) is not a layout"),
    (stride, ((4, 8),), r"stride: \(4,8\) is not a layout"),
    (cosize, ((4, 8),), r"\(4,8\) is not a layout"),
    (append, (A, 5), r"5 is not a layout, as \(4,\(2,3\)\)"),
    (logical_divide, (Layout(8), 0), r"logical_divide\(8:1, 0\): a tile of extent 0 is empty"),
    (logical_divide, (Layout(8), -2), "a tile of extent -2 is empty"),
    (logical_divide, (Layout(16), Layout((2, 2), (1, 1))), "not one-to-one"),
    (logical_product, (Layout(8), 0), "a tile of extent 0 is empty"),
    (tile_to_shape, (Layout((8, 4)), (16, 16), (0, 0)), "two modes have one rank: copies would alias"),
    (upcast, (Layout(8), 0), "upcast: 0 is not a positive number"),
    (upcast, (Layout((6, 4), (1, 6)), 4), "the extent 6 is not divisible by 4"),
    (downcast, (Layout(8, 2), 2), "needs a mode of stride 1"),
    (recast_layout, (0, 8, Layout(8)), "both must be positive"),
    (shape_div, (12, 0), "division by zero"),
    (elem_less, ((0, 9), 5), r"coordinate \(0,9\) has more modes than its bound 5: take"),
    (elem_less, ((0, 9, 1), (4, 4)), r"coordinate \(0,9,1\) has more modes than its bound \(4,4\)"),
    (elem_less, ((0, (1, 9)), (4, 4)), r"coordinate \(1,9\) has more modes than its bound 4"),
    (A, ("x",), "'x' is not a coordinate"),
    (design_swizzle, (0, 8, 64), "an element of 0 bytes"),
    (design_swizzle, (2, 3, 64), "vector = 3 is not a power of two"),
    (solve_swizzle, (A, [], 16), "no access"),
    (parse, (5,), "5 is not text"),
    (explain, ("foo", A), "no explanation of foo"),
    (explain, ("composition", A), "these are not the operands of composition"),
    (explain, ("coalesce", (4, 8)), "works on plain layouts"),
    (explain, ("coalesce", Layout((SymbolicInt("m"), 4))), "without run-time ints"),
]


@pytest.mark.parametrize("operation,operands,message", MISTAKES)
def test_the_message(operation: Callable[..., Any], operands: tuple[Any, ...], message: str) -> None:
    with pytest.raises(LayoutError, match=message):
        operation(*operands)


@pytest.mark.parametrize(
    "text,position",
    [
        ("", 0),
        ("(4,8", 4),
        ("(4,8):(1,)", 9),
        ("(4,8):4", 6),
        ("4:1 x", 3),
        ("Sw<1,2>", 6),
        ("4:1 o 0", 7),
        ("(4,-8):(1,4)", 0),
        ("4:_", 2),
        ("(4:1,2):(1,2)", 0),
        ("4:1 o 0 o Sw<3,1,2>", 10),
        ("4 8", 1),
        ("4@:1", 2),
        ("Sw<1,0,1> o 0 o Sw<1,0,1>", 16),
        ("foo", 0),
        ("()", 1),
        ("( 4, 0):(1,4)", 0),
        ("Sw<x,0,1>", 3),
        ("4:1:1", 3),
    ],
)
def test_text_that_is_not_cute_notation(text: str, position: int) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert caught.value.position == position and caught.value.text == text


def test_numpy_ints_and_lists_are_taken() -> None:
    layout = make_layout([np.int64(4), [True, np.int32(3)]], stride=(np.uint8(3), (0, 1)))
    assert str(layout) == "(4,(1,3)):(3,(0,1))"
    assert all(type(x) is int for x in (layout.shape[0], layout.shape[1][0], layout.stride[0]))
