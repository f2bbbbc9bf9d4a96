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
    SymbolicInt,
    append,
    blocked_product,
    ceil_div,
    composition,
    domain_distribute,
    get,
    group_modes,
    idx2crd,
    local_tile,
    logical_divide,
    make_identity_layout,
    make_layout,
    make_ordered_layout,
    make_smem_atom,
    offsets,
    parse,
    repeat_as_tuple,
    shape_div,
    tile_to_shape,
    transform_leaf,
    unflatten,
    zipped_divide,
)

A = Layout((4, (2, 3)), (1, (4, 8)))

MISTAKES: list[tuple[Callable[..., Any], tuple[Any, ...], str]] = [
    (A, (1, 2, 3), r"coordinate \(1,2,3\) does not fit the shape \(4,\(2,3\)\)"),
    (A, ((1, (2, 3, 4)),), "does not fit"),
    (get, (A, 2), r"mode \[2\] is out of range in \(4,\(2,3\)\):\(1,\(4,8\)\)"),
    (group_modes, (A, 1, 5), r"\[1, 5\) is not a range of the 2 modes"),
    (append, (A, None, 1), "already has more than 1 modes"),
    (make_layout, ("ab",), "neither an int nor a tuple"),
    (make_layout, ((),), "empty tuple"),
    (make_layout, ((4, -1),), "-1 in the shape"),
    (make_ordered_layout, ((4, 8), (0, 1, 2)), "has not the profile"),
    (shape_div, (12, 5), "neither divides the other"),
    (shape_div, ((2, 3), (2,)), "ranks differ"),
    (ceil_div, ((4, 4), (1, 2, 3)), "more modes than the input"),
    (ceil_div, (4, 0), "division by zero"),
    (unflatten, ((1, 2), (0, (0, 0))), "fewer leaves"),
    (unflatten, ((1, 2, 3), (0, 0)), "more leaves"),
    (transform_leaf, (lambda a, b: a, (1, 2), (1, (2, 3), 4)), "has not the profile"),
    (repeat_as_tuple, (1, 0), "at least 1"),
    (composition, (A, (1, 1, 1)), "more modes than the layout"),
    (composition, (A, "x"), "neither a layout nor a tiler"),
    (logical_divide, (A, (1, 1, 1)), "more modes than the layout"),
    (logical_divide, (A, "x"), "a tiler is a layout, an int"),
    (zipped_divide, (Layout((4, 8, 2)), (2, None)), "is no .tile, rest. pair"),
    (local_tile, (Layout((4, 8)), (2, 2), (0, 0, 0)), "more entries"),
    (blocked_product, (A, 4), "the tiler must be a layout"),
    (tile_to_shape, (Layout((4, 8)), (6, 8)), "6 is not divisible by 4"),
    (tile_to_shape, (Layout((4, 8)), (8,)), "more modes than the shape"),
    (idx2crd, (3, Layout((2, 2), (1, 0))), "no unique coordinate"),
    (make_smem_atom, ("K", "SW256", 16), "is not one of"),
    (domain_distribute, ((SymbolicInt("m"), 4), 4), "needs static extents"),
    (offsets, (Layout((SymbolicInt("m"), 4)),), "only a static layout"),
    (offsets, (make_identity_layout((2, 2)),), "gives coordinates"),
    (composition, (Layout((2, 2)), Layout((2, 2), (E(0), 1))), "an offset among basis strides"),
    (composition, (Layout((2, 2)), Layout((2, 2), (E(0), E(2)))), "1@2 points to a mode that"),
    (Layout((2, 2), (E(0), 3)), (1, 1), "cannot be added"),
]


@pytest.mark.parametrize("operation,operands,message", MISTAKES)
def test_the_message(operation: Callable[..., Any], operands: tuple[Any, ...], message: str) -> None:
    with pytest.raises(LayoutError, match=message):
        operation(*operands)


@pytest.mark.parametrize(
    "text,position",
    [("", 0), ("(4,8", 4), ("(4,8):(1,)", 9), ("(4,8):4", 6), ("4:1 x", 3), ("Sw<1,2>", 6), ("4:1 o 0", 7)],
)
def test_text_that_is_not_cute_notation(text: str, position: int) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert caught.value.position == position and caught.value.text == text


def test_numpy_ints_and_lists_are_taken() -> None:
    layout = make_layout([np.int64(4), [True, np.int32(3)]], stride=(np.uint8(3), (0, 1)))
    assert str(layout) == "(4,(1,3)):(3,(0,1))"
    assert all(type(x) is int for x in (layout.shape[0], layout.shape[1][0], layout.stride[0]))
