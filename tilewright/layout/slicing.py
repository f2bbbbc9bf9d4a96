"""Slicing layouts, composed ones too.

Fixing some coordinates of ``Sw o offset o L`` fixes some bits of the offset. When what remains of L does not reach both
a source bit Y and the target bit Z that it flips, the swizzle has become a fixed change of strides, and the slice is an
ordinary layout again: where the fixed Y bit is set, stepping along Z steps *back*. Otherwise the swizzle stays, and the
bits it never touches move out into the returned offset.
"""

from __future__ import annotations

from typing import Any

from tilewright.errors import LayoutError
from tilewright.layout.basis import add_coords
from tilewright.layout.compose import composition
from tilewright.layout.composed import ComposedLayout
from tilewright.layout.layout import Layout, has_underscore
from tilewright.layout.modes import modes_at, on_both, zeros_for_none
from tilewright.layout.swizzle import Swizzle, reachable_bits
from tilewright.layout.text import format_tree
from tilewright.layout.tuples import Coord, is_static


def slice_(src: Any, coord: Coord) -> Any:
    """The modes of ``src`` where ``coord`` has None; the other entries choose which slice and only move the offset.

    >>> slice_(Layout((4, (2, 3)), (1, (4, 8))), (None, (0, None)))
    (4,3):(1,8)
    """
    if isinstance(coord, Layout | ComposedLayout):
        raise LayoutError(f"slice_({format_tree(src)}, {coord}): the layout comes first: slice_(layout, coord)")
    if isinstance(src, ComposedLayout):
        return slice_and_offset(coord, src)[0]
    return on_both(src, lambda t: modes_at(coord, t, True))


def slice_composed(coord: Any, layout: ComposedLayout) -> tuple[Any, Any]:
    """The slice of a composed layout at ``coord``, and the offset outside of it."""
    outer = layout.outer
    if not has_underscore(coord):
        return Layout(1, 0), layout(coord)
    rest = slice_(outer, coord)
    if _all_none(coord):
        return layout.on_outer(lambda _: rest), 0
    moved = outer(zeros_for_none(coord))
    swizzle = layout.inner
    inside = ComposedLayout(swizzle, add_coords(layout.offset, moved), rest), 0
    if not isinstance(swizzle, Swizzle) or not is_static((layout.offset, moved, rest)):
        return inside
    active = reachable_bits(rest)
    if active is None:
        return inside
    mask = swizzle.yyy_mask | swizzle.zzz_mask
    touched, untouched = layout.offset ^ (moved & mask), moved & ~mask
    if layout.offset & moved or (layout.offset | moved) & active:
        return inside  # an addition would carry: only the whole sum is right
    if active & mask & ~swizzle(active & mask):
        return ComposedLayout(swizzle, touched, rest), untouched
    try:
        return composition(_unrolled(swizzle, touched), rest), swizzle(touched) + untouched
    except LayoutError:
        return inside


def _all_none(coord: Any) -> bool:
    return all(map(_all_none, coord)) if isinstance(coord, tuple) else coord is None


def _unrolled(swizzle: Swizzle, offset: int) -> Layout:
    """``i -> Sw(offset + i) - Sw(offset)`` bit by bit, for steps ``i`` along free bits."""
    b, m, gap = swizzle.bits, swizzle.base, abs(swizzle.shift) - swizzle.bits
    z, y = swizzle.zzz_mask & -swizzle.zzz_mask, swizzle.yyy_mask & -swizzle.yyy_mask

    def along_z(i: int) -> int:
        return (-z if offset & (y << i) else z) << i

    def along_y(i: int) -> int:
        return (y - z if offset & (z << i) else y + z) << i

    low, high = (along_z, along_y) if z < y else (along_y, along_z)
    shape = (1 << m, *[2] * b, 1 << gap, *[2] * b, 1)
    top = m + b + abs(swizzle.shift)
    stride = (1, *map(low, range(b)), 1 << (m + b), *map(high, range(b)), 1 << top)
    return Layout(shape, stride)


def slice_and_offset(coord: Coord, src: Any, *, loc: Any = None, ip: Any = None) -> tuple[Any, Any]:
    """The slice of ``src`` at ``coord`` and the offset where it starts.

    A swizzled layout becomes an ordinary one where the slice allows it; see :mod:`tilewright.layout.swizzle`.

    >>> slice_and_offset((None, 3), Layout((4, 8), (1, 10)))
    ((4):(1), 30)
    """
    if isinstance(src, ComposedLayout):
        return slice_composed(coord, src)
    if not has_underscore(coord):
        return Layout(1, 0), src(coord)
    return slice_(src, coord), src(zeros_for_none(coord))
