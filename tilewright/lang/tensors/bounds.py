"""Coordinates that a kernel computes, and the extents that they are to stay below: noted at the access for checkers."""

from __future__ import annotations

from typing import Any

from tilewright.ir.core import Op, Value
from tilewright.lang.numbers.numeric import Integer, unwrap
from tilewright.layout.layout import Layout
from tilewright.layout.tuples import is_static, product

WITHIN = "within"
"""The attribute of a ``load`` or ``store``: pairs (coordinate, extent), each an int or a value, that are not known to
be in order. Nothing but the checks of the simulator reads it."""


def note(op: Op, coord: Any, layout: Any) -> None:
    """Note at an access of one element what its coordinate must stay below."""
    if isinstance(layout, Layout):
        pairs = tuple(_pairs(coord, layout.shape))
        if pairs:
            op.attrs[WITHIN] = pairs


def inside(coord: Any, shape: Any) -> bool:
    """False where a static index is provably outside its static extent."""
    if isinstance(coord, tuple):
        return not isinstance(shape, tuple) or all(map(inside, coord, shape))
    extent = product(shape)
    return not isinstance(coord, int) or not isinstance(extent, int) or 0 <= coord < extent


def _pairs(coord: Any, shape: Any) -> list[tuple[int | Value, int | Value]]:
    coord = unwrap(coord)
    if isinstance(coord, tuple):
        if not isinstance(shape, tuple) or len(coord) != len(shape):
            return []
        return [pair for c, s in zip(coord, shape, strict=True) for pair in _pairs(c, s)]
    if isinstance(shape, tuple):
        if not is_static(shape):
            return []
        shape = product(shape)
    extent = unwrap(shape)
    if not isinstance(coord, (int, Integer)) or not isinstance(extent, (int, Integer)):
        return []
    if isinstance(coord, int) and isinstance(extent, int):
        return []  # checked while staging
    if isinstance(coord, Integer) and isinstance(extent, int):
        bound = coord.facts.bound
        if coord.nonneg and bound is not None and bound <= extent:
            return []
    return [(_value(coord), _value(extent))]


def _value(x: int | Integer) -> int | Value:
    return x if isinstance(x, int) else x.ir_value()
