"""The common part of the drawings: extents of modes, names and thick lines of nested modes."""

from __future__ import annotations

from typing import Any

from tilewright.errors import ArgumentError
from tilewright.layout import ComposedLayout, Layout, format_tree, idx2crd, is_static, product
from tilewright.viz.panels import Axis

AnyLayout = Layout | ComposedLayout


def require_static(layout: Any) -> AnyLayout:
    """``layout`` itself, if it is one and all of it is known now; else an error."""
    if not isinstance(layout, Layout | ComposedLayout):
        raise ArgumentError(f"cannot draw {layout!r}: it is not a layout")
    if not layout.is_static():
        raise ArgumentError(f"cannot draw {layout}: it has run-time integers; draw it with numbers in their place")
    return layout


def without_swizzle(layout: ComposedLayout) -> AnyLayout:
    """A composed layout without its inner function.

    >>> without_swizzle(ComposedLayout(int, 0, Layout((2, 2))))
    (2,2):(1,2)
    """
    if isinstance(layout.offset, int) and layout.offset == 0:
        return layout.outer  # type: ignore[no-any-return]  # a layout, where nothing is added
    return ComposedLayout(_unchanged, layout.offset, layout.outer)


def extents_of_tile(tile: Any) -> tuple[int, ...]:
    """The extent of each mode of a tile given as a shape, or as a tiler whose modes are ints, shapes or layouts."""
    modes = tile if isinstance(tile, tuple) else (tile,)
    shapes = [mode.shape if isinstance(mode, Layout) else mode for mode in modes]
    if not all(is_static(shape) and _of_integers(shape) for shape in shapes):
        raise ArgumentError(f"cannot draw the tile {tile}: its extents must be known")
    extents = tuple(int(product(shape)) for shape in shapes)
    if min(extents, default=1) < 1:
        raise ArgumentError(f"cannot draw the tile {tile}: its extents must be positive")
    return extents


def axis(mode_shape: Any) -> Axis:
    """The names of a mode's coordinates: those of a nested mode are the number within its innermost tile, and outside
    of them that of the tile.

    >>> axis((2, (2, 2))).names, axis((2, (2, 2))).groups[1], axis(8).names
    (('0', '1', '0', '1', '0', '1', '0', '1'), (2, 4, '(1,0)'), ())
    """
    if not isinstance(mode_shape, tuple):
        return Axis()
    if len(mode_shape) == 1:
        return axis(mode_shape[0])
    if mode_shape[0] == 1:
        return axis(mode_shape[1:])
    inside, extent = int(product(mode_shape[0])), int(product(mode_shape))
    rest = mode_shape[1:] if len(mode_shape) > 2 else mode_shape[1]
    groups = tuple(
        (inside * tile, inside * (tile + 1), format_tree(idx2crd(tile, rest))) for tile in range(extent // inside)
    )
    return Axis(tuple(str(index % inside) for index in range(extent)), groups)


def breaks(mode_shape: Any) -> tuple[int, ...]:
    """Where the innermost tile of a nested mode ends.

    >>> breaks((2, (2, 2))), breaks(8)
    ((2, 4, 6), ())
    """
    if not isinstance(mode_shape, tuple) or len(mode_shape) == 1:
        return breaks(mode_shape[0]) if isinstance(mode_shape, tuple) else ()
    step = int(product(mode_shape[0]))
    return tuple(range(step, int(product(mode_shape)), step)) if step > 1 else ()


def _of_integers(shape: Any) -> bool:
    return all(map(_of_integers, shape)) if isinstance(shape, tuple) else hasattr(shape, "__index__")


def _unchanged(offset: Any) -> Any:
    return offset
