"""Coordinates that a kernel computes, and the extents that they are to stay below: noted at the access for checkers."""

from __future__ import annotations

from typing import Any

from tilewright.ir.core import Op, Value
from tilewright.lang.numbers.numeric import Integer, unwrap
from tilewright.layout.layout import Layout
from tilewright.layout.tuples import flatten_to_tuple, is_static, product

WITHIN = "within"
"""The attribute of a ``load`` or ``store``, or of the ``ptr.add`` of a slice: pairs (coordinate, extent), each an int
or a value, that are not known to be in order. Nothing but the checks of the simulator reads it, and that of a slice
where its pointer is used."""


def note(op: Op, coord: Any, layout: Any) -> None:
    """Note at an access of one element what its coordinate must stay below."""
    if isinstance(layout, Layout):
        pairs = tuple(_pairs(coord, layout.shape))
        if pairs:
            op.attrs[WITHIN] = pairs


def note_slice(moved: Any, tensor: Any, coord: Any) -> None:
    """Note at the pointer ``moved`` of a slice what the coordinates that it fixes must stay below. Where all of the
    offset waits for a swizzle, no op has made the pointer yet, and nothing is noted."""
    base, layout = getattr(moved, "base", None), tensor.linear
    if not isinstance(base, Value) or base is tensor.engine.base or not isinstance(layout, Layout):
        return
    pairs = tuple(_pairs(_moving(coord, layout.stride), layout.shape))
    if pairs and base.op is not None and base.op.opcode == "ptr.add":
        base.op.attrs[WITHIN] = pairs


def _moving(coord: Any, stride: Any) -> Any:
    """``coord`` without the parts that do not move the pointer, as of a mode that repeats its elements."""
    if isinstance(coord, tuple) and isinstance(stride, tuple) and len(coord) == len(stride):
        return tuple(map(_moving, coord, stride))
    strides = flatten_to_tuple(stride)
    return None if all(isinstance(d, int) and d == 0 for d in strides) else coord


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
