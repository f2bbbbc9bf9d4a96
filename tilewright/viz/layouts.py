"""Pictures of layouts: offsets, indices or coordinates on a grid of modes 0 and 1; swizzles before and after."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tilewright.errors import ArgumentError
from tilewright.layout import ComposedLayout, Swizzle, format_tree, idx2crd, product
from tilewright.viz.colour import light_colour
from tilewright.viz.figure import Cell, Figure, Panel, cut
from tilewright.viz.grids import AnyLayout, breaks, require_static, without_swizzle

SHOWN = ("offset", "index", "coordinate")
MOST_PANELS = 16
PANELS_IN_A_ROW = 4
WIDE = 16  # columns above which a swizzle's two grids stand below each other

Colouring = Callable[[Any], str]


def layout_figure(layout: AnyLayout, *, show: str | Sequence[str] = "offset", title: str | None = None) -> Figure:
    """Draw a layout of any rank: mode 0 down, mode 1 across, a panel for each index of the modes after them.

    Args:
        layout: a static layout, composed or not; one of rank 1 becomes a row.
        show: what stands in a cell: ``"offset"``, ``"index"`` (1-D, colexicographic), ``"coordinate"`` (natural), or
            several of them, a line each.
        title: instead of the layout in CuTe notation.

    Raises:
        ArgumentError: not a layout, run-time integers in it, or an unknown ``show``.

    >>> from tilewright.layout import Layout
    >>> print(layout_figure(Layout((2, 3), (3, 1))).text())
    (2,3):(3,1)
       0  1  2
    0  0  1  2
    1  3  4  5
    colour: offset modulo 8
    """
    layout = require_static(layout)
    wanted = _wanted(show)
    panels, notes = _panels(layout, wanted, _low_bits)
    if wanted != ("offset",):
        notes = (*notes, f"in a cell: {', '.join(wanted)}")
    return Figure(str(layout) if title is None else title, panels, notes=(*notes, "colour: offset modulo 8"))


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
    before, notes = _panels(without_swizzle(layout), _wanted(show), swizzle_colouring(swizzle))
    after, _ = _panels(layout, _wanted(show), swizzle_colouring(swizzle))
    beside = len(before) == 1 and before[0].columns <= WIDE
    below = 0 if beside else max(panel.at[0] for panel in before) + 1
    panels = [replace(panel, title=f"before {panel.title}".strip()) for panel in before]
    for panel in after:
        row, column = panel.at
        at = (row + below, column + int(beside))
        panels.append(replace(panel, title=f"after {panel.title}".strip(), at=at))
    lowest = _lowest_changed_bit(swizzle)
    meaning = f"offset{f' / {1 << lowest}' if lowest else ''} modulo {1 << swizzle.num_bits}"
    colours = f"colour: the bits of the offset that {swizzle} changes ({meaning})"
    return Figure(str(layout), tuple(panels), notes=(*notes, colours))


def swizzle_colouring(swizzle: Swizzle) -> Colouring:
    """The colour of an offset by the bits of it that ``swizzle`` changes."""
    low, mask = _lowest_changed_bit(swizzle), (1 << swizzle.num_bits) - 1
    return lambda offset: light_colour((offset >> low) & mask)


def grid_shape(layout: AnyLayout) -> tuple[Any, Any]:
    """The shapes of what goes down and what goes across: modes 0 and 1, or one row for a layout of rank 1."""
    if len(layout) > 1:
        return layout.shape[0], layout.shape[1]
    return 1, layout.shape[0] if isinstance(layout.shape, tuple) else layout.shape


def _panels(layout: AnyLayout, show: tuple[str, ...], colour: Colouring) -> tuple[tuple[Panel, ...], tuple[str, ...]]:
    down, across = grid_shape(layout)
    extents = int(product(down)), int(product(across))
    rows, columns, notes = cut(*extents)
    behind = layout.shape[2:] if len(layout) > 2 else ()
    count = int(product(behind)) if behind else 1
    if count > MOST_PANELS:
        notes = (*notes, f"cut: {MOST_PANELS} of {count} slices are drawn")
    panels = []
    for number in range(min(count, MOST_PANELS)):
        rest = idx2crd(number, tuple(int(product(mode)) for mode in behind)) if behind else ()
        cells = tuple(_cell(layout, i, j, rest, show, colour) for i in range(rows) for j in range(columns))
        at = divmod(number, PANELS_IN_A_ROW)
        title = format_tree((None, None, *rest)) if behind else ""
        panels.append(Panel(title, rows, columns, cells, at, breaks(down, rows), breaks(across, columns)))
    return tuple(panels), notes


def _cell(
    layout: AnyLayout, row: int, column: int, rest: tuple[int, ...], show: tuple[str, ...], colour: Colouring
) -> Cell:
    place = (row, column, *rest) if len(layout) > 1 else (column,)
    extents = [int(product(mode)) for mode in layout.shape] if isinstance(layout.shape, tuple) else [layout.shape]
    index = 0
    for coordinate, extent in zip(reversed(place), reversed(extents), strict=True):
        index = index * extent + coordinate
    offset = layout(index)
    natural = format_tree(idx2crd(index, layout.shape))
    words = {"offset": format_tree(offset), "index": str(index), "coordinate": natural}
    remark = f"coordinate {natural}, index {index}, offset {words['offset']}"
    return Cell(row, column, tuple(words[name] for name in show), colour(offset), remark)


def _wanted(show: str | Sequence[str]) -> tuple[str, ...]:
    wanted = (show,) if isinstance(show, str) else tuple(show)
    if not wanted or not set(wanted) <= set(SHOWN):
        raise ArgumentError(f"a cell can show {', '.join(SHOWN)}; not {show!r}")
    return wanted


def _low_bits(offset: Any) -> str:
    return light_colour(_sum(offset))


def _sum(offset: Any) -> int:
    """Offsets of basis strides are coordinates: their sum stands for them."""
    return sum(map(_sum, offset)) if isinstance(offset, tuple) else int(offset)


def _lowest_changed_bit(swizzle: Swizzle) -> int:
    return int(swizzle.num_base) + max(-int(swizzle.num_shift), 0)
