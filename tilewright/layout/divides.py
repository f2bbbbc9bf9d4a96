"""Divides: cutting a layout into tiles.

``logical_divide(A, T) = A o (T, complement(T, size(A)))``: first the elements that the tiler T picks (one tile), then
the layout of the tiles. The other divides only regroup::

    layout (M, N, L), tiler <TileM, TileN>
    logical_divide   ((TileM,RestM), (TileN,RestN), L)
    zipped_divide    ((TileM,TileN), (RestM,RestN,L))
    tiled_divide     ((TileM,TileN), RestM, RestN, L)
    flat_divide      (TileM, TileN, RestM, RestN, L)

A tiler is a layout, an int ``n`` (for ``n:1``), None (leave the mode), or a tuple of tilers for the leading modes. A
tile that does not divide the extent gets a last copy that hangs over; the caller predicates it.
"""

from __future__ import annotations

from typing import Any

from tilewright.errors import LayoutError
from tilewright.layout.cache import remembered
from tilewright.layout.compose import compose_tiles
from tilewright.layout.composed import ComposedLayout, lifted
from tilewright.layout.drawable import LayoutOrTensor
from tilewright.layout.inverse import complement, complement_of
from tilewright.layout.layout import Layout
from tilewright.layout.simplify import by_mode, merged
from tilewright.layout.text import format_tree
from tilewright.layout.tuples import as_tiler, extent_of_tiler, tiles_along


@remembered
def _logical_divide(static: bool, layout: Any, tiler: Any) -> Any:
    if layout.__class__ is not Layout:
        return lifted(layout, "logical_divide", lambda outer: _logical_divide(outer, tiler))
    return _divide_mode(layout, tiler, static)


def _divide_mode(layout: Layout, tiler: Any, static: bool) -> Layout:
    if tiler.__class__ is not Layout:
        if tiler is None:
            return layout
        if tiler.__class__ is tuple:
            return by_mode(lambda mode, t: _divide_mode(mode, t, static), layout, tiler, "logical_divide")
        tiler = Layout(extent_of_tiler(tiler, f"logical_divide({layout}, {tiler!r})"))
    shapes, _ = merged(layout.shape, layout.stride)
    target = tuple(shapes) if len(shapes) > 1 else shapes[0]
    try:
        rest, gaps = complement_of(tiler, target)
        return compose_tiles(layout, tiler, rest, gaps, static)
    except LayoutError as error:
        raise LayoutError(f"logical_divide({layout}, {tiler}): {error}") from None


def zip_by(t: Any, guide: Any) -> Any:
    """Gather the first and the second halves that sit at the leaves of ``guide`` into one tuple each."""
    if not isinstance(guide, tuple):
        if not isinstance(t, tuple) or len(t) != 2:
            raise LayoutError(
                f"{format_tree(t)} is not a (tile, rest) pair: a None tiler fits only a mode of rank 2 here"
            )
        return t
    if not isinstance(t, tuple) or len(t) < len(guide):
        raise LayoutError(f"the tiler {format_tree(guide)} does not fit {format_tree(t)}")
    pairs = [zip_by(x, g) for x, g in zip(t, guide, strict=False)]
    return tuple([p[0] for p in pairs]), tuple([p[1] for p in pairs]) + t[len(guide) :]


def zipped(layout: Any, tiler: Any) -> Any:
    if isinstance(layout, ComposedLayout):
        return layout.on_outer(lambda outer: zipped(outer, tiler))
    return Layout(zip_by(layout.shape, tiler), zip_by(layout.stride, tiler))


def unpacked(layout: Any, *which: int) -> Any:
    """The given modes of a rank-2 layout dissolved into the top level (a mode of rank 1 stays as it is)."""
    if isinstance(layout, ComposedLayout):
        return layout.on_outer(lambda outer: unpacked(outer, *which))
    shape: tuple[Any, ...] = ()
    stride: tuple[Any, ...] = ()
    for i in (0, 1):
        s, d = layout.shape[i], layout.stride[i]
        dissolve = i in which and isinstance(s, tuple) and len(s) > 1
        shape += s if dissolve else (s,)
        stride += d if dissolve else (d,)
    return Layout(shape, stride)


def logical_divide(target: LayoutOrTensor, tiler: Any, *, loc: Any = None, ip: Any = None) -> LayoutOrTensor:
    """``target`` as (tile, rest), mode by mode for a tuple tiler.

    >>> logical_divide(Layout((4, 2, 3), (2, 1, 8)), Layout(4, 2))
    ((2,2),(2,3)):((4,1),(2,8))
    >>> logical_divide(Layout((9, (4, 8)), (59, (13, 1))), (Layout(3, 3), Layout((2, 4), (1, 8))))
    ((3,3),((2,4),(2,2))):((177,59),((13,2),(26,1)))
    """
    return _logical_divide(target, as_tiler(tiler))


def zipped_divide(target: LayoutOrTensor, tiler: Any, *, loc: Any = None, ip: Any = None) -> LayoutOrTensor:
    """``((tile...), (rest..., untouched modes...))``: one index picks within the tile, the other picks the tile.

    >>> zipped_divide(Layout((9, (4, 8)), (59, (13, 1))), (Layout(3, 3), Layout((2, 4), (1, 8))))
    ((3,(2,4)),(3,(2,2))):((177,(13,2)),(59,(26,1)))
    """
    tiler = as_tiler(tiler)
    return zipped(_logical_divide(target, tiler), tiler)


def tiled_divide(target: LayoutOrTensor, tiler: Any, *, loc: Any = None, ip: Any = None) -> LayoutOrTensor:
    """``((tile...), rest0, rest1, ...)``.

    >>> tiled_divide(Layout((16, 8)), (4, 2))
    ((4,2),4,4):((1,16),4,32)
    """
    return unpacked(zipped_divide(target, tiler), 1)


def flat_divide(target: LayoutOrTensor, tiler: Any, *, loc: Any = None, ip: Any = None) -> LayoutOrTensor:
    """``(tile0, tile1, ..., rest0, rest1, ...)``.

    >>> flat_divide(Layout((16, 8)), (4, 2))
    (4,2,4,4):(1,16,4,32)
    """
    return unpacked(zipped_divide(target, tiler), 0, 1)


def ceil_div(input: Any, tiler: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """How many tiles cover ``input``: element by element, a scalar divisor folded over a tuple, or a tiler layout.

    >>> ceil_div((100, 64), (32, 16)), ceil_div((5, 6), 10), ceil_div(29, 8)
    ((4, 4), (1, 3), 4)
    """
    if hasattr(tiler, "shape") and not isinstance(tiler, tuple | int):
        return complement(tiler, input).shape  # the rest mode of a divide by a layout
    return tiles_along(input, tiler)
