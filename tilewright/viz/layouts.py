"""Pictures of layouts: offsets, indices or coordinates on a grid of modes 0 and 1; swizzles before and after."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from tilewright.errors import ArgumentError
from tilewright.layout import ComposedLayout, Swizzle, cosize, crd2idx, format_tree, idx2crd, product
from tilewright.viz.colour import BLANK, DISTINCT, HUES, distinct, heat
from tilewright.viz.colouring import ColorBy, ElementColours, ElementDescription, element_colours
from tilewright.viz.figure import Figure
from tilewright.viz.figure_drawing import panel_width
from tilewright.viz.grids import AnyLayout, axis, breaks, require_static, without_swizzle
from tilewright.viz.panels import Axis, Cell, Panel
from tilewright.viz.windows import MOST_CELLS, cut

SHOWN = ("offset", "index", "coordinate")
HEAT = "colour"
MOST_PANELS = 16
PANELS_IN_A_ROW = 4
WIDEST = 1000.0  # pixels; a swizzle's two grids are stacked where they would be wider side by side

Colouring = Callable[[ElementDescription], str]


def layout_figure(
    layout: AnyLayout,
    *,
    show: str | Sequence[str] = "offset",
    title: str | None = None,
    color_by: ColorBy = "offset",
    element_bits: int | None = None,
    flatten_hierarchical: bool = False,
) -> Figure:
    """Draw a layout of any rank: mode 0 down, mode 1 across, a panel for each index of the modes after them.

    Args:
        layout: a static layout, composed or not; one of rank 1 becomes a row.
        show: what a cell shows: ``"offset"``, ``"index"`` (1-D, colexicographic), ``"coordinate"`` (natural), or
            several of them, a line each; ``"colour"``: nothing, and cells are small, so that a large layout fits a
            screen (a heat map; hovering says coordinate, index and offset).
        title: instead of the layout in CuTe notation.
        color_by: what colours stand for: "offset", "index", "row", "column", "bank", or a function of the offset that
            gives a number.
        element_bits: the width of an element, for ``color_by="bank"``.
        flatten_hierarchical: number the rows and columns of nested modes through. Otherwise thick lines
            separate the innermost tiles: their coordinates are outside, those inside a tile on its elements.

    Raises:
        ArgumentError: not a layout, run-time integers in it, an unknown ``show`` or ``color_by``.

    >>> from tilewright.layout import Layout
    >>> print(layout_figure(Layout((2, 3), (3, 1))).text())
    (2,3):(3,1)
       0  1  2
    0  0  1  2
    1  3  4  5
    colour: offset modulo 8
    """
    layout = require_static(layout)
    colours = element_colours(color_by, element_bits)
    if show == HEAT:
        colours = heat_colours(layout) if color_by == "offset" else colours
        drawn, notes = panels_of(layout, (), colours.of, flatten_hierarchical)
        return Figure(str(layout) if title is None else title, drawn, notes=(*notes, colours.meaning)).small()
    words = words_of(show, SHOWN)
    panels, notes = panels_of(layout, words, colours.of, flatten_hierarchical)
    if words != ("offset",):
        notes = (*notes, f"in a cell: {', '.join(words)}")
    return Figure(str(layout) if title is None else title, panels, notes=(*notes, colours.meaning))


def heat_colours(layout: AnyLayout) -> ElementColours:
    """A scale of colours for the offsets of a layout."""
    last = max(1, cosize(layout) - 1)
    return ElementColours(lambda at: heat(at.offset / last), f"colour: offset, from 0 (light) to {last} (dark)")


def layout_slice_figure(layout: AnyLayout, slice_spec: Any, *, flatten_hierarchical: bool = True) -> Figure:
    """Draw a layout in which only the elements of a slice have colour.

    Args:
        slice_spec: a coordinate of the layout with None or ``:`` where all indices are taken, and with ints or Python
            slices; one that is not a tuple is for the 1-D index.

    Raises:
        ArgumentError: it does not fit the layout's shape, or selects nothing.

    >>> from tilewright.layout import Layout
    >>> figure = layout_slice_figure(Layout((2, 4)), (1, slice(1, 3)))
    >>> [cell.lines[0] for cell in figure.panels[0].cells if cell.fill != "#ffffff"]
    ['3', '5']
    """
    layout = require_static(layout)
    taken = {i for i in range(int(product(layout.shape))) if _within(i, slice_spec, layout)}
    if not taken:
        raise ArgumentError(f"the slice {slice_spec!r} selects nothing of {layout}")
    colours = element_colours("offset")

    def colour(at: ElementDescription) -> str:
        return colours.of(at) if at.index in taken else BLANK

    panels, notes = panels_of(layout, ("offset",), colour, flatten_hierarchical)
    what = f"{len(taken)} elements of the slice have colour: offset modulo {len(HUES)}"
    return Figure(f"{layout} [{_spoken(slice_spec)}]", panels, notes=(*notes, what))


def _within(index: int, spec: Any, layout: AnyLayout) -> bool:
    """Whether the element of a 1-D index belongs to a slice."""
    return _fits(idx2crd(index, layout.shape) if isinstance(spec, tuple) else index, spec, layout.shape, layout)


def _fits(coordinate: Any, spec: Any, shape: Any, layout: AnyLayout) -> bool:
    if spec is None:
        return True
    if isinstance(spec, tuple):
        if not isinstance(shape, tuple) or len(spec) != len(shape):
            raise ArgumentError(f"the slice {spec!r} does not fit the shape {format_tree(shape)} of {layout}")
        return all(_fits(c, s, n, layout) for c, s, n in zip(coordinate, spec, shape, strict=True))
    extent = int(product(shape))
    number = crd2idx(coordinate, shape) if isinstance(coordinate, tuple) else coordinate
    if isinstance(spec, slice):
        return int(number) in range(*spec.indices(extent))
    if not isinstance(spec, int) or not -extent <= spec < extent:
        raise ArgumentError(f"the slice takes index {spec!r} of a mode of extent {extent} in {layout}")
    return int(number) == spec % extent


def _spoken(spec: Any) -> str:
    if isinstance(spec, tuple):
        return ", ".join(f"({_spoken(s)})" if isinstance(s, tuple) else _spoken(s) for s in spec)
    if isinstance(spec, slice):
        parts = [spec.start, spec.stop] + ([spec.step] if spec.step is not None else [])
        return ":".join("" if part is None else str(part) for part in parts)
    return ":" if spec is None else str(spec)


def swizzle_figure(layout: ComposedLayout, *, show: str | Sequence[str] = "offset") -> Figure:
    """Draw a swizzled layout twice: as it would be without the swizzle, and as it is.

    An offset is coloured by the bits that the swizzle changes: where the left grid has columns of one colour, the right
    one shows how each row is permuted.

    Raises:
        ArgumentError: the layout is not a swizzle over a layout.

    >>> from tilewright.layout import Layout
    >>> print(swizzle_figure(ComposedLayout(Swizzle(1, 0, 1), 0, Layout((2, 2), (2, 1)))).text())
    Sw<1,0,1> o 0 o (2,2):(2,1)
    before
       0  1
    0  0  1
    1  2  3
    after
       0  1
    0  0  1
    1  3  2
    colour: the bits of the offset that Sw<1,0,1> changes (offset modulo 2)
    """
    require_static(layout)
    if not isinstance(layout, ComposedLayout) or not isinstance(layout.inner, Swizzle):
        raise ArgumentError(f"{layout} is not a swizzled layout; draw it with render_layout_svg")
    swizzle = layout.inner
    words, colour = words_of(show, SHOWN), swizzle_colouring(swizzle)
    before, notes = panels_of(without_swizzle(layout), words, colour, most=MOST_CELLS // 2)
    after, _ = panels_of(layout, words, colour, most=MOST_CELLS // 2)
    beside = len(before) == 1 and panel_width(before[0]) + panel_width(after[0]) <= WIDEST
    below = 0 if beside else max(panel.at[0] for panel in before) + 1
    panels = [replace(panel, title=f"before {panel.title}".strip()) for panel in before]
    for panel in after:
        row, column = panel.at
        at = (row + below, column + int(beside))
        panels.append(replace(panel, title=f"after {panel.title}".strip(), at=at))
    return Figure(str(layout), tuple(panels), notes=(*notes, _swizzle_meaning(swizzle)))


def swizzle_colouring(swizzle: Swizzle) -> Colouring:
    """The colour of an offset by the bits of it that ``swizzle`` changes."""
    low, count = _lowest_changed_bit(swizzle), 1 << swizzle.num_bits
    return lambda at: distinct((at.offset >> low) % count)


def _swizzle_meaning(swizzle: Swizzle) -> str:
    low, count = _lowest_changed_bit(swizzle), 1 << swizzle.num_bits
    bits = f"offset{f' / {1 << low}' if low else ''} modulo {count}"
    again = f"; colours repeat after {DISTINCT}" if count > DISTINCT else ""
    return f"colour: the bits of the offset that {swizzle} changes ({bits}{again})"


def grid_shape(layout: AnyLayout) -> tuple[Any, Any]:
    """The shapes of what goes down and what goes across: modes 0 and 1, or one row for a layout of rank 1."""
    if layout.shape == ():
        raise ArgumentError(f"cannot draw {layout}: it has no modes")
    if len(layout) > 1:
        return layout.shape[0], layout.shape[1]
    return 1, layout.shape[0] if isinstance(layout.shape, tuple) else layout.shape


def panels_of(
    layout: AnyLayout,
    show: tuple[str, ...],
    colour: Colouring,
    flat: bool = False,
    most: int = MOST_CELLS,
    word: Callable[[int], str] | None = None,
) -> tuple[tuple[Panel, ...], tuple[str, ...]]:
    """The panels of a layout, and a note on what is not drawn; ``word`` gives the "value" of an index."""
    down, across = grid_shape(layout)
    extents = int(product(down)), int(product(across))
    places = list(_slices(layout))
    rows, columns = cut(*extents, most // min(len(places), MOST_PANELS))
    drawn = places[:MOST_PANELS]
    notes = (f"left out: slices {len(drawn)} to {len(places) - 1} of {len(places)}",) if drawn != places else ()
    lines = ((), ()) if flat else (breaks(down), breaks(across))
    axes = (Axis(), Axis()) if flat else (axis(down), axis(across))
    panels = []
    for number, rest in enumerate(drawn):
        cells = tuple(_cell(layout, i, j, rest, show, colour, word) for i in rows for j in columns)
        at = divmod(number, PANELS_IN_A_ROW)
        title = format_tree((None, None, *rest)) if rest else ""
        panels.append(Panel(title, *extents, cells, at, *lines, (), *axes, rows, columns))
    return tuple(panels), notes


def shown_indices(layout: AnyLayout) -> list[int]:
    """The 1-D indices of the elements that ``panels_of`` draws."""
    places = list(_slices(layout))
    down, across = grid_shape(layout)
    rows, columns = cut(int(product(down)), int(product(across)), MOST_CELLS // min(len(places), MOST_PANELS))
    return [_index(layout, i, j, rest) for rest in places[:MOST_PANELS] for i in rows for j in columns]


def _slices(layout: AnyLayout) -> Iterator[tuple[int, ...]]:
    """The coordinates of the modes after the second."""
    behind = layout.shape[2:] if len(layout) > 2 else ()
    extents = tuple(int(product(mode)) for mode in behind)
    return (idx2crd(number, extents) if behind else () for number in range(int(product(behind)) if behind else 1))


def _index(layout: AnyLayout, row: int, column: int, rest: tuple[int, ...]) -> int:
    place = (row, column, *rest) if len(layout) > 1 else (column,)
    extents = [int(product(mode)) for mode in layout.shape] if isinstance(layout.shape, tuple) else [layout.shape]
    index = 0
    for coordinate, extent in zip(reversed(place), reversed(extents), strict=True):
        index = index * extent + coordinate
    return index


def _cell(
    layout: AnyLayout,
    row: int,
    column: int,
    rest: tuple[int, ...],
    show: tuple[str, ...],
    colour: Colouring,
    word: Callable[[int], str] | None,
) -> Cell:
    index = _index(layout, row, column, rest)
    offset = layout(index)
    natural = format_tree(idx2crd(index, layout.shape))
    words = {"offset": format_tree(offset), "index": str(index), "coordinate": natural}
    remark = f"coordinate {natural}, index {index}, offset {words['offset']}"
    if word is not None:
        words["value"] = word(index)
        remark += f": {words['value']}"
    fill = colour(ElementDescription(row, column, index, _sum(offset)))
    return Cell(row, column, tuple(words[name] for name in show), fill, remark)


def words_of(show: str | Sequence[str], choices: tuple[str, ...]) -> tuple[str, ...]:
    """The texts that a cell shows."""
    words = (show,) if isinstance(show, str) else tuple(show)
    if not words or not set(words) <= set(choices):
        raise ArgumentError(f"a cell can show {', '.join(choices)}; not {show!r}")
    return words


def _sum(offset: Any) -> int:
    """Offsets of basis strides are coordinates: their sum stands for them."""
    return sum(map(_sum, offset)) if isinstance(offset, tuple) else int(offset)


def _lowest_changed_bit(swizzle: Swizzle) -> int:
    return int(swizzle.num_base) + max(-int(swizzle.num_shift), 0)
