"""Pictures of operations: operands and result side by side; equal colours mark the same element."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tilewright.layout import (
    Layout,
    complement,
    composition,
    elem_less,
    filter,
    format_tree,
    logical_product,
    make_identity_layout,
    make_layout,
    product,
    right_inverse,
    size,
    zipped_divide,
)
from tilewright.viz.colour import BLANK, colours_of, distinct
from tilewright.viz.figure import Figure
from tilewright.viz.figure_drawing import stacked_if_wide
from tilewright.viz.grids import AnyLayout, axis, breaks, require_static
from tilewright.viz.panels import Cell, Panel
from tilewright.viz.windows import MOST_CELLS, cut

Colour = Callable[[int], str]  # of a 1-D index
LINE_OF_MEMORY = 8  # offsets in a line of memory


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
    inner, b = b, b if isinstance(b, Layout) else composition(Layout(a.shape), b)
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
    return _figure(f"{a} o {format_tree(inner)} = {result}", shown, meaning)


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


def complement_figure(layout: Layout, cotarget: Any = None) -> Figure:
    """Draw a layout, its complement, and the memory that both fill: each cell says (copy, element of the layout).

    Raises:
        ArgumentError: not a layout, or one with run-time integers.
        LayoutError: the layout has no complement.

    >>> from tilewright.layout import Layout
    >>> print(complement_figure(Layout(4, 2), 16).text())
    complement(4:2, 16) = (2,2):(1,8)
    A = 4:2
       0  1  2  3
    0  0  2  4  6
    complement = (2,2):(1,8): where copies of A begin
       0  1
    0  0  8
    1  1  9
    memory, offsets 0 to 15: (copy, element of A)
           0      1      2      3      4      5      6      7
    0  (0,0)  (1,0)  (0,1)  (1,1)  (0,2)  (1,2)  (0,3)  (1,3)
    1  (2,0)  (3,0)  (2,1)  (3,1)  (2,2)  (3,2)  (2,3)  (3,3)
    colour: the copy
    """
    require_static(layout)
    copies = complement(layout, cotarget)
    places = make_layout(filter(layout), copies)  # without the modes of stride 0, to fill memory element by element
    each, total = size(places, mode=[0]), size(places)
    element = right_inverse(places)  # of an offset: all below the total are filled
    width = min(total, LINE_OF_MEMORY)
    memory = Layout((-(-total // width), width), (width, 1))

    def owner(index: int) -> Any:
        """(copy, element) at an index into the lines of memory; () past the end of the last line."""
        return divmod(int(element(memory(index))), each) if memory(index) < total else ()

    shown = [
        (f"A = {layout}", layout, layout, lambda i: distinct(0)),
        (f"complement = {copies}: where copies of A begin", copies, copies, distinct),
        (
            f"memory, offsets 0 to {total - 1}: (copy, element of A)",
            memory,
            owner,
            lambda i: distinct(owner(i)[0]) if owner(i) else BLANK,
        ),
    ]
    meaning = colours_of("the copy", size(copies)) + "; white: past the end of memory" * (total % width > 0)
    argument = "" if cotarget is None else f", {format_tree(cotarget)}"
    figure = _figure(f"complement({layout}{argument}) = {copies}", shown, meaning)
    return replace(figure, panels=tuple(replace(panel, at=(n, 0)) for n, panel in enumerate(figure.panels)))


def product_figure(block: Layout, tiler: Layout, product_of: Callable[..., Any] = logical_product) -> Figure:
    """Draw a block, a layout of copies of it, and their product, in which a copy has one colour.

    Args:
        block, tiler: static layouts.
        product_of: logical_product, zipped_product, tiled_product, flat_product, blocked_product or raked_product.

    Raises:
        ArgumentError: not a layout, or one with run-time integers.
        LayoutError: there is no such product.

    >>> from tilewright.layout import Layout, raked_product
    >>> print(product_figure(Layout((1, 2), (2, 1)), Layout((1, 3)), raked_product).text())
    raked_product((1,2):(2,1), (1,3):(0,1)) = ((1,1),(3,2)):((0,2),(2,1))
    block = (1,2):(2,1)
       0  1
    0  0  1
    copies = (1,3):(0,1)
       0  1  2
    0  0  1  2
    product = ((1,1),(3,2)):((0,2),(2,1))
       0  1  2  3  4  5
    0  0  2  4  1  3  5
    colour: the copy
    """
    require_static(block)
    require_static(tiler)
    result = product_of(block, tiler)
    copies = logical_product(block, tiler)  # element of the block x copy: the other products reorder these
    each = size(block)
    copy_of: dict[Any, int] = {}
    for i in range(size(copies)):
        copy_of.setdefault(copies(i), i // each)
    shown = [
        (f"block = {block}", block, block, lambda i: distinct(0)),
        (f"copies = {tiler}", tiler, tiler, distinct),
        (f"product = {result}", result, result, lambda i: distinct(copy_of[result(i)])),
    ]
    name = getattr(product_of, "__name__", "product")
    return _figure(f"{name}({block}, {tiler}) = {result}", shown, colours_of("the copy", size(tiler)))


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
