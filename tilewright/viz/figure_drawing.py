"""Figures on a canvas. Cells are as wide as their longest text needs, so that every number can be read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import ceil

from tilewright.viz.canvas import BASE, GAP, LINE, MARGIN, PADDING, TEXTS, Canvas, Segment
from tilewright.viz.colour import text_colour
from tilewright.viz.panels import Axis, Border, Legend, Panel
from tilewright.viz.windows import Window, positions

CELL, COLUMN, CAPTION, TITLE = (TEXTS[kind].size for kind in ("cell", "column", "caption", "title"))
LEAST = 24.0  # width and height of a cell
SMALL = 8.0  # of a cell without text
STRIP = 128.0  # width of a swatch of many colours
WIDEST = 1400.0  # pixels; panels are stacked where they would be wider side by side
WRAP = 960.0  # width from which notes and legends begin a new line


@dataclass(frozen=True)
class PanelMetrics:
    """Sizes common to all panels of a figure, so that rows and columns of neighbours line up."""

    cell_width: float
    cell_height: float
    row_labels: float  # width of the labels to the left of the rows
    column_labels: float  # and height of those above the columns

    @classmethod
    def of(cls, panels: tuple[Panel, ...]) -> PanelMetrics:
        width = max((_cell_width(panel) for panel in panels), default=LEAST)
        most_lines = max((len(cell.lines) for panel in panels for cell in panel.cells), default=1)
        small = all(panel.small for panel in panels) and bool(panels)
        height = SMALL if small else max(most_lines * CELL * LINE + 2 * PADDING, LEAST)
        rows = max((_row_labels(panel) for panel in panels), default=0.0)
        grouped = any(panel.column_axis.groups for panel in panels)
        # Whole pixels: lines stay sharp, and numbers in files short.
        return cls(ceil(width), ceil(height), ceil(rows), ceil(COLUMN * LINE) * (2 if grouped else 1))

    def panel_size(self, panel: Panel) -> tuple[float, float]:
        """Width and height with labels and title."""
        width = self.row_labels + _extent(panel.drawn_columns) * self.cell_width
        height = self.head(panel) + self.column_labels + _extent(panel.drawn_rows) * self.cell_height
        return max(width, TEXTS["caption"].width(panel.title)), height

    def head(self, panel: Panel) -> float:
        return float(ceil(CAPTION * LINE + PADDING)) if panel.title else 0.0


def panel_width(panel: Panel) -> float:
    """How wide a panel becomes, where no other makes its cells wider."""
    return _row_labels(panel) + _extent(panel.drawn_columns) * _cell_width(panel)


def stacked_if_wide(panels: tuple[Panel, ...]) -> tuple[Panel, ...]:
    """Panels in one row; below each other where that would be wider than a screen."""
    if len({panel.at[0] for panel in panels}) > 1 or sum(map(panel_width, panels)) <= WIDEST:
        return panels
    return tuple(replace(panel, at=(panel.at[1], 0)) for panel in panels)


def draw_panels(canvas: Canvas, title: str, panels: tuple[Panel, ...], legend: Legend, notes: tuple[str, ...]) -> None:
    """Title, panels, legend and notes from top to bottom."""
    metrics = PanelMetrics.of(panels)
    y = MARGIN
    widths = [metrics.panel_size(panel)[0] for panel in panels]
    wide = max([WRAP, *widths])
    if title:
        for line in wrapped(title, wide, "title"):
            y += TITLE
            canvas.write(MARGIN, y, line, "title")
            y += TITLE * (LINE - 1)
        y += GAP - TITLE / 2 - TITLE * (LINE - 1)
    bottom = _draw_grids(canvas, panels, metrics, y)
    bottom = draw_legend(canvas, legend, bottom + CAPTION)
    draw_notes(canvas, notes, bottom)


def draw_notes(canvas: Canvas, notes: Iterable[str], top: float) -> None:
    """Sentences below a picture, in lines of about its width."""
    for note in notes:
        for line in wrapped(note, max(WRAP, canvas.width - MARGIN), "caption"):
            top += CAPTION * LINE
            canvas.write(MARGIN, top, line, "caption")
    canvas.reach(0, top)


def wrapped(sentence: str, width: float, kind: str) -> list[str]:
    """The sentence in lines of at most ``width``; a longer word has a line of its own.

    >>> wrapped("one two three", 60.0, "caption")
    ['one two', 'three']
    """
    lines = [""]
    for word in sentence.split(" "):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if lines[-1] and TEXTS[kind].width(longer) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def _draw_grids(canvas: Canvas, panels: tuple[Panel, ...], metrics: PanelMetrics, top: float) -> float:
    """Put the panels on a table whose columns and rows are as large as their largest panel."""
    widths: dict[int, float] = {}
    heights: dict[int, float] = {}
    for panel in panels:
        width, height = metrics.panel_size(panel)
        row, column = panel.at
        widths[column] = max(widths.get(column, 0.0), width)
        heights[row] = max(heights.get(row, 0.0), height)
    for panel in panels:
        row, column = panel.at
        x = MARGIN + sum(widths[c] + GAP for c in widths if c < column)
        y = top + sum(heights[r] + GAP for r in heights if r < row)
        _draw_panel(canvas, panel, metrics, x, y + heights[row] - metrics.panel_size(panel)[1])
    return top + sum(heights.values()) + GAP * max(len(heights) - 1, 0)


def _draw_panel(canvas: Canvas, panel: Panel, metrics: PanelMetrics, x: float, y: float) -> None:
    width, height = metrics.cell_width, metrics.cell_height
    canvas.open_group("panel")
    if panel.title:
        canvas.write(x, y + CAPTION, panel.title, "caption")
    left, top = x + metrics.row_labels, y + metrics.head(panel) + metrics.column_labels
    rows = {row: top + at * height for row, at in positions(panel.drawn_rows).items()}
    columns = {column: left + at * width for column, at in positions(panel.drawn_columns).items()}
    _draw_axes(canvas, panel, rows, columns, metrics, (left, top))
    for cell in panel.cells:
        if cell.row not in rows or cell.column not in columns:
            continue
        cx, cy = columns[cell.column], rows[cell.row]
        canvas.open_group("c", (cell.row, cell.column), cell.remark)
        canvas.rect(cx, cy, width, height, cell.fill)
        first = cy + height / 2 - (len(cell.lines) - 1) * CELL * LINE / 2 + CELL * BASE
        ink = text_colour(cell.fill)
        for number, line in enumerate(cell.lines):
            canvas.text(cx + width / 2, first + number * CELL * LINE, line, "cell", ink)
        canvas.close_group()
    canvas.lines(_breaks(panel, rows, columns, width, height), "tile")
    for border in panel.borders:
        canvas.lines(_edges(border, rows, columns, width, height), border.kind)
    for step in _steps(panel, rows, columns, width, height):
        canvas.arrow(step)
    canvas.close_group()


def _steps(
    panel: Panel,
    rows: dict[int, float],
    columns: dict[int, float],
    width: float,
    height: float,
) -> list[Segment]:
    """The steps of the panel's path between cells that are drawn. They leave out what is written in the middle."""
    seen = [
        (columns[column] + width / 2, rows[row] + height / 2) if row in rows and column in columns else None
        for row, column in panel.path
    ]
    arrows = []
    for here, there in zip(seen, seen[1:], strict=False):
        if here is not None and there is not None:
            dx, dy = (there[i] - here[i] for i in (0, 1))
            steps = max(abs(dx) / width, abs(dy) / height)
            off = 0.34 / steps  # of the way: a third of a cell
            arrows.append((here[0] + off * dx, here[1] + off * dy, there[0] - off * dx, there[1] - off * dy))
    return arrows


def _draw_axes(
    canvas: Canvas,
    panel: Panel,
    rows: dict[int, float],
    columns: dict[int, float],
    metrics: PanelMetrics,
    corner: tuple[float, float],
) -> None:
    left, top = corner
    width, height = metrics.cell_width, metrics.cell_height
    for column, x in _every(columns, _names(panel.column_axis, panel.drawn_columns) + PADDING, width):
        canvas.text(x + width / 2, top - PADDING, panel.column_axis.name(column), "column")
    for row, y in _every(rows, COLUMN, height):
        canvas.text(left - PADDING, y + height / 2 + COLUMN * BASE, panel.row_axis.name(row), "row")
    for first, last, name in panel.column_axis.groups:
        if all(column in columns for column in (first, last - 1)):
            middle = (columns[first] + columns[last - 1] + width) / 2
            canvas.text(middle, top - PADDING - COLUMN * LINE, name, "group")
    beside = left - PADDING - _names(panel.row_axis, panel.drawn_rows) - 2 * PADDING
    for first, last, name in panel.row_axis.groups:
        if all(row in rows for row in (first, last - 1)):
            middle = (rows[first] + rows[last - 1] + height) / 2
            canvas.text(beside, middle + COLUMN * BASE, name, "row-group")
    for x in _gaps(columns, width):
        canvas.text(x, top - PADDING, "⋯", "column")
        for y in rows.values():
            canvas.text(x, y + height / 2 + COLUMN * BASE, "⋯", "column")
    for y in _gaps(rows, height):
        canvas.text(left - PADDING, y + COLUMN * BASE, ":", "row")
        for x in columns.values():
            canvas.text(x + width / 2, y + COLUMN * BASE, ":", "column")


def _every(at: dict[int, float], label: float, size: float) -> list[tuple[int, float]]:
    """The rows or columns that have labels: each one where labels fit, else every fourth, every eighth and so on."""
    step = 1
    while step * size < label:
        step = max(4, 2 * step)
    return [(index, place) for index, place in at.items() if index % step == 0]


def _gaps(at: dict[int, float], size: float) -> list[float]:
    """The middles of the gaps."""
    drawn = list(at)
    return [at[b] - size / 2 for a, b in zip(drawn, drawn[1:], strict=False) if b != a + 1]


def _breaks(
    panel: Panel,
    rows: dict[int, float],
    columns: dict[int, float],
    width: float,
    height: float,
) -> list[Segment]:
    segments: list[Segment] = []
    for y in (rows[row] for row in panel.row_breaks if row in rows and row - 1 in rows):
        segments += [(x1, y, x2, y) for x1, x2 in _stretches(columns, width)]
    for x in (columns[column] for column in panel.column_breaks if column in columns and column - 1 in columns):
        segments += [(x, y1, x, y2) for y1, y2 in _stretches(rows, height)]
    return segments


def _stretches(at: dict[int, float], size: float) -> list[tuple[float, float]]:
    """From where to where cells are side by side."""
    stretches: list[tuple[float, float]] = []
    for start in at.values():
        if stretches and abs(stretches[-1][1] - start) < size / 2:
            stretches[-1] = (stretches[-1][0], start + size)
        else:
            stretches.append((start, start + size))
    return stretches


def _edges(
    border: Border,
    rows: dict[int, float],
    columns: dict[int, float],
    width: float,
    height: float,
) -> list[Segment]:
    """The lines of a border, neighbours in one line put together."""
    segments: list[Segment] = []
    for column, x in columns.items():
        if column + 1 in columns:
            own = {row: y for row, y in rows.items() if (row, column) in border.right}
            segments += [(x + width, y1, x + width, y2) for y1, y2 in _stretches(own, height)]
    for row, y in rows.items():
        if row + 1 in rows:
            own = {column: x for column, x in columns.items() if (row, column) in border.below}
            segments += [(x1, y + height, x2, y + height) for x1, x2 in _stretches(own, width)]
    return segments


def draw_legend(canvas: Canvas, legend: Legend, top: float) -> float:
    """Swatches with their meaning, in rows of about the width of the panels; the height that they end at."""
    if not legend:
        return top
    swatch = CAPTION + PADDING
    wide = max(_swatch_width(colour) for colour, _ in legend)
    entry = wide + 2 * PADDING + max(TEXTS["caption"].width(text) for _, text in legend) + GAP / 2
    per_row = max(1, int(max(canvas.width - MARGIN, 480.0) // entry))
    for number, (colour, text) in enumerate(legend):
        x = MARGIN + number % per_row * entry
        y = top + number // per_row * (swatch + PADDING)
        colours = (colour,) if isinstance(colour, str) else colour
        canvas.open_group("legend")
        each = _swatch_width(colour) / len(colours)
        for place, one in enumerate(colours):
            canvas.rect(x + place * each, y, each, swatch, one, frame=len(colours) <= 8)
        canvas.text(x + wide + PADDING, y + swatch / 2 + CAPTION * BASE, text, "caption")
        canvas.close_group()
        canvas.reach(x + entry - GAP / 2, y + swatch)
    rows = -(-len(legend) // per_row)
    return top + rows * (swatch + PADDING) + PADDING


def _swatch_width(colour: str | tuple[str, ...]) -> float:
    swatch = CAPTION + PADDING
    return swatch if isinstance(colour, str) else min(STRIP, len(colour) * swatch * 0.75)


def _cell_width(panel: Panel) -> float:
    """The width of a cell that holds its longest text, and the names above it."""
    if panel.small:
        return SMALL
    texts = [TEXTS["cell"].width(line) for cell in panel.cells for line in cell.lines]
    names = [TEXTS["column"].width(panel.column_axis.name(column)) for column in panel.drawn_columns[-1:]]
    names += [TEXTS["column"].width(name) for name in panel.column_axis.names]
    groups = [TEXTS["group"].width(f"{name} ") / (last - first) for first, last, name in panel.column_axis.groups]
    return max([LEAST, *(width + 2 * PADDING for width in (*texts, *names)), *groups])


def _row_labels(panel: Panel) -> float:
    groups = [TEXTS["row-group"].width(name) + 2 * PADDING for _, _, name in panel.row_axis.groups]
    return _names(panel.row_axis, panel.drawn_rows) + PADDING + max(groups, default=0.0)


def _names(axis: Axis, window: Window) -> float:
    names = axis.names or [str(index) for index in window[-1:]]
    return max((TEXTS["row"].width(name) for name in names), default=0.0)


def _extent(window: Window) -> float:
    return max(positions(window).values(), default=-1.0) + 1.0
