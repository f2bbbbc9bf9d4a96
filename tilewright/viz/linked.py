"""Pictures of operations: operands and result side by side; equal colours mark the same element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.layout import (
    Layout,
    composition,
    elem_less,
    format_tree,
    make_identity_layout,
    product,
    size,
    zipped_divide,
)
from tilewright.viz.colour import BLANK, colours_of, distinct
from tilewright.viz.figure import Cell, Figure, Panel
from tilewright.viz.grids import AnyLayout, axis, breaks, require_static
from tilewright.viz.thread_values import stacked_if_wide
from tilewright.viz.windows import MOST_CELLS, cut

Colour = Callable[[int], str]  # of a 1-D index


def composition_figure(a: AnyLayout, b: Any) -> Figure:
    """Draw A, B and A o B: B picks elements of A by their 1-D index, and a picked one has its colour everywhere.

    A tiler on the right is shown as the indices that it picks.

    Raises:
        ArgumentError: ``a`` is not a layout, or has run-time integers in it.
        LayoutError: the composition does not exist.

    >>> from tilewright.layout import Layout
    >>> print(composition_figure(Layout((2, 4), (4, 1)), Layout(4, 2)).text())
    (2,4):(4,1) o 4:2 = 4:1
    A = (2,4):(4,1)
       0  1  2  3
    0  0  1  2  3
    1  4  5  6  7
    B = 4:2, indices into A
       0  1  2  3
    0  0  2  4  6
    A o B = 4:1
       0  1  2  3
    0  0  1  2  3
    colour: the element of A that B picks
    """
    result = composition(require_static(a), b)
    given, b = b, b if isinstance(b, Layout) else composition(Layout(a.shape), b)
    picked: dict[Any, int] = {}
    for i in range(size(b)):
        picked.setdefault(b(i), i)

    def linked(index: Any) -> str:
        return distinct(picked[index]) if index in picked else BLANK

    shown = [
        (f"A = {a}", a, a, linked),
        (f"B = {b}, indices into A", b, b, lambda i: linked(b(i))),
        (f"A o B = {result}", b, result, lambda i: linked(b(i))),  # its shape refines that of B
    ]
    meaning = colours_of("the element of A that B picks", size(b))
    return _figure(f"{a} o {format_tree(given)} = {result}", shown, meaning)


def divide_figure(layout: AnyLayout, tiler: Any, *, names: tuple[str, str] = ("place in the tile", "tile")) -> Figure:
    """Draw a layout cut into tiles, and its ``zipped_divide``: down within a tile, across from tile to tile.

    ``names`` is what the two modes of the result are called in the picture.

    Raises:
        ArgumentError: not a layout, or one with run-time integers.
        LayoutError: the tiler does not fit.

    >>> from tilewright.layout import Layout
    >>> print(divide_figure(Layout((2, 4)), (2, 2)).text())
    zipped_divide((2,4):(1,2), (2,2)) = ((2,2),(1,2)):((1,2),(0,4))
    (2,4):(1,2)
       0  1  2  3
    0  0  2  4  6
    1  1  3  5  7
    ((2,2),(1,2)):((1,2),(0,4)): place in the tile x tile
       0  1
    0  0  4
    1  1  5
    2  2  6
    3  3  7
    colour: the tile
    """
    divided = zipped_divide(require_static(layout), tiler)
    # Dividing the numbering of the elements in the same way tells which element went where.
    by_mode = isinstance(tiler, tuple | list)
    where = zipped_divide(make_identity_layout(layout.shape) if by_mode else Layout(size(layout)), tiler)
    inside = size(where, mode=[0])
    index = Layout(layout.shape)
    tiles = size(where) // inside
    tile_of: dict[int, int] = {}
    for i in range(size(where)):
        place = where(i)
        if elem_less(place, layout.shape if by_mode else size(layout)):  # the last tile may hang over
            tile_of[index(place)] = i // inside

    def linked(i: int) -> str:
        within = elem_less(where(i), layout.shape if by_mode else size(layout))
        return distinct(i // inside) if within else BLANK

    shown = [
        (str(layout), layout, layout, lambda i: distinct(tile_of[i])),
        (f"{divided}: {names[0]} x {names[1]}", divided, divided, linked),
    ]
    title = f"zipped_divide({layout}, {format_tree(tiler)}) = {divided}"
    hangs_over = size(where) > len(tile_of)
    meaning = colours_of(f"the {names[1]}", tiles) + "; white: past the end of the layout" * hangs_over
    return _figure(title, shown, meaning)


def _figure(title: str, shown: list[tuple[str, Any, Any, Colour]], meaning: str) -> Figure:
    """Grids of (title, shape, values, colour): mode 0 down, the others across; below each other where one is wide."""
    panels = []
    for number, (name, shape, values, colour) in enumerate(shown):
        extents = _extents(shape)
        rows, columns = cut(*extents, MOST_CELLS // 2)
        cells = []
        for i in rows:
            for j in columns:
                index = i + extents[0] * j
                value = format_tree(values(index))
                cells.append(Cell(i, j, (value,), colour(index), f"index {index}, value {value}"))
        down, across = _modes(shape)
        lines, names = (breaks(down), breaks(across)), (axis(down), axis(across))
        panels.append(Panel(name, *extents, tuple(cells), (0, number), *lines, (), *names, rows, columns))
    return Figure(title, stacked_if_wide(tuple(panels)), notes=(meaning,))


def _modes(layout: Any) -> tuple[Any, Any]:
    modes = layout.shape if isinstance(layout.shape, tuple) else (layout.shape,)
    if len(modes) == 1:
        return 1, modes[0]
    return modes[0], modes[1] if len(modes) == 2 else modes[1:]


def _extents(layout: Any) -> tuple[int, int]:
    down, across = _modes(layout)
    return int(product(down)), int(product(across))
