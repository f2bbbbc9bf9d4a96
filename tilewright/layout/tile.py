"""Tiles and partitions of a layout, as (layout, offset) pairs.

A tensor is a pointer and a layout; these functions do the layout's half and return the offset for the pointer.

* *inner* partition (:func:`local_tile`): divide by the tile, keep the tile, pick which one: blocks of a grid.
* *outer* partition (:func:`local_partition`): divide by the tile, pick an element of it, keep the tiles: threads that
  each own every n-th element.
"""

from __future__ import annotations

from typing import Any

from tilewright.errors import LayoutError
from tilewright.layout.divides import zipped_divide
from tilewright.layout.layout import Layout
from tilewright.layout.modes import dice, rank
from tilewright.layout.slicing import slice_and_offset
from tilewright.layout.text import format_tree
from tilewright.layout.tuples import as_tiler, product_each, repeat


def _projected(proj: Any, x: Any) -> Any:
    """The entries of ``x`` where the projection has no None, and those behind it: a batch, say, that no projection
    of (M, N, K) names."""
    if proj is None:
        return x
    proj = tuple(proj) if isinstance(proj, list) else proj
    if not isinstance(proj, tuple):
        return x
    if isinstance(x, tuple) and len(x) > len(proj):
        return (*dice(x[: len(proj)], proj), *x[len(proj) :])
    return dice(x, proj)


def inner_partition(input: Any, tiler: Any, coord: Any) -> tuple[Any, Any]:
    """The tile at ``coord`` among the tiles; None in ``coord`` keeps all tiles along that mode.

    >>> inner_partition(Layout((8, 16), (16, 1)), (4, 8), (1, 0))
    ((4,8):(16,1), 64)
    """
    tiler = as_tiler(tiler)
    tiled = zipped_divide(input, tiler)
    return slice_and_offset((_whole(tiled, 0), _padded(coord, tiled, 1)), tiled)


def _whole(tiled: Any, mode: int) -> Any:
    """The coordinate that keeps a part: None for every mode of a rank > 1 part, so that slicing dissolves it.

    CuTe keeps a tile of rank 1 as a nested mode, ((4),3,8). Of a layout of one mode, ((16),(4)), neither part stays
    nested: its tiles are (16,4), whether the tiler is 16 or (16,).
    """
    ranks = rank(tiled, mode=0), rank(tiled, mode=1)
    if ranks == (1, 1) and isinstance(tiled.shape[mode], tuple):
        return (None,)
    return repeat(None, ranks[mode])


def _padded(coord: Any, tiled: Any, mode: int) -> Any:
    if not isinstance(coord, tuple | list):
        return coord
    n = rank(tiled, mode=mode)
    if len(coord) > n:
        raise LayoutError(f"the coordinate {format_tree(coord)} has more entries than {format_tree(tiled.shape[mode])}")
    return tuple(coord) + (None,) * (n - len(coord))


def outer_partition(input: Any, tiler: Any, coord: Any) -> tuple[Any, Any]:
    """Element ``coord`` of every tile.

    >>> outer_partition(Layout((8, 16), (16, 1)), (4, 8), (1, 3))
    ((2,2):(64,8), 19)
    """
    tiler = as_tiler(tiler)
    tiled = zipped_divide(input, tiler)
    return slice_and_offset((_padded(coord, tiled, 0), _whole(tiled, 1)), tiled)


def local_tile(input: Any, tiler: Any, coord: Any, proj: Any = None) -> tuple[Any, Any]:
    """Tile ``coord`` of the layout: the tile, then the modes along which ``coord`` has None, and its offset.

    ``proj`` (1 or None per mode) picks from a tiler and a coordinate over (M, N, K) the modes that this operand has;
    a coordinate may go on behind them, with a batch.

    >>> local_tile(Layout((32, 16), (16, 1)), (16, 8, 4), (0, 1, None), proj=(None, 1, 1))
    ((8,4,4):(16,1,4), 128)
    >>> local_tile(Layout((32, 16, 2), (16, 1, 512)), (16, 8, 4), (0, 1, None, 1), proj=(None, 1, 1))
    ((8,4,4):(16,1,4), 640)
    >>> local_tile(Layout(64), (16,), (None,))
    ((16,4):(1,16), 0)
    """
    if proj is not None:
        return inner_partition(input, _projected(proj, as_tiler(tiler)), _projected(proj, as_tiler(coord)))
    return inner_partition(input, tiler, as_tiler(coord))


def tiles_at(input: Any, tiler: Any, coord: Any, proj: Any = None) -> tuple[Any, Any, Any]:
    """The coordinate of a tile in the modes that this operand has, the number of tiles along each of them, and the
    tiler of these modes.

    >>> tiles_at(Layout((32, 16), (16, 1)), (16, 8, 4), (0, 1, None), proj=(None, 1, 1))
    ((1, None), (4, 4), (8, 4))
    """
    tiler, coord = as_tiler(tiler), as_tiler(coord)
    if proj is not None:
        tiler, coord = _projected(proj, tiler), _projected(proj, coord)
    return coord, zipped_divide(input, tiler).shape[1], tiler


def local_partition(target: Any, tiler: Any, index: Any, proj: Any = 1) -> tuple[Any, Any]:
    """The elements of thread ``index`` when threads laid out as ``tiler`` are repeated over the layout.

    ``index`` becomes a coordinate through the inverse of the thread layout, so the strides of ``tiler`` matter.

    >>> local_partition(Layout((8, 16), (16, 1)), Layout((4, 8), (8, 1)), 11)
    ((2,2):(64,8), 19)
    """
    threads = tiler if isinstance(tiler, Layout) else Layout(as_tiler(tiler))
    threads = _projected(proj, threads)
    return outer_partition(target, product_each(threads.shape), threads.get_flat_coord(index))
