"""Coordinates that a kernel computes, and the extents that they are to stay below: noted at the access for checkers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tilewright.ir.core import Op, Value
from tilewright.lang.numbers.numeric import Integer, unwrap
from tilewright.layout.layout import Layout
from tilewright.layout.tuples import flatten_to_tuple, is_static, product

Pair = tuple[int | Value, int | Value, int]

WITHIN = "within"
"""The attribute of a ``load`` or ``store``, or of the op that made the address of a slice: triples (coordinate, extent,
step), the first two an int or a value each, where coordinate * step is not known to be below the extent. Nothing but
the checks of the simulator reads it, and that of a slice where its address is used."""


def note(op: Op, coord: Any, layout: Any) -> None:
    """Note at an access of one element what its coordinate must stay below."""
    if isinstance(layout, Layout):
        pairs = tuple(_pairs(coord, layout.shape))
        if pairs:
            op.attrs[WITHIN] = pairs


def note_slice(moved: Any, tensor: Any, coord: Any) -> Any:
    """``moved``, the iterator of a slice, with a note of what the coordinates that it fixes must stay below."""
    layout = tensor.linear
    if not isinstance(layout, Layout):
        return moved
    return _noted(moved, tensor.engine, _pairs(_moving(coord, layout.stride), layout.shape))


def note_tile(moved: Any, tensor: Any, coord: Any, tiles: Any, tiler: Any) -> Any:
    """The same of the tile at ``coord`` of ``tensor``, of which there are ``tiles`` along each mode. Where the kernel
    does not compute their number the tile's first element must be below the extent."""
    layout = tensor.linear
    pairs: list[Pair] = []
    modes = zip(*map(_modes, (coord, tiles, tiler, layout.shape, layout.stride)), strict=False)
    for c, count, tile, extent, stride in modes:
        c, extent = _moving(c, stride), unwrap(extent)
        whole = isinstance(extent, Integer) and isinstance(tile, int)
        pairs += _pairs(c, extent, tile) if whole else _pairs(c, count)
    return _noted(moved, tensor.engine, pairs)


def _modes(x: Any) -> tuple[Any, ...]:
    return x if isinstance(x, tuple) else (x,)


def _noted(moved: Any, before: Any, pairs: list[Pair]) -> Any:
    """Note ``pairs`` at the op that moved the iterator ``before``; with the iterator where a swizzle holds it back."""
    if not pairs:
        return moved
    made = moved.run_time_part
    if made is None or before.run_time_part is None:
        return moved
    if made is before.run_time_part:
        return moved._with_notes(pairs) if hasattr(moved, "_with_notes") else moved
    attach(made, pairs)
    return moved


def attach(made: Value, pairs: Iterable[Pair]) -> None:
    """Note ``pairs`` at the op that has just made an address."""
    assert made.op is not None
    made.op.attrs[WITHIN] = (*made.op.attrs.get(WITHIN, ()), *pairs)


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


def _pairs(coord: Any, shape: Any, step: int = 1) -> list[Pair]:
    coord = unwrap(coord)
    if isinstance(coord, tuple):
        if not isinstance(shape, tuple) or len(coord) != len(shape):
            return []
        return [pair for c, s in zip(coord, shape, strict=True) for pair in _pairs(c, s, step)]
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
        if coord.nonneg and bound is not None and (bound - 1) * step < extent:
            return []
    return [(_value(coord), _value(extent), step)]


def run_time_value(number: Any) -> Value | None:
    """The value of a run-time integer; None of a static one."""
    number = unwrap(number)
    return number.ir_value() if isinstance(number, Integer) else None


def _value(x: int | Integer) -> int | Value:
    return x if isinstance(x, int) else x.ir_value()
