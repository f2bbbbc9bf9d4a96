"""A picture as data: panels of cells, a legend, notes. The writers of the file formats decide how it looks.

What draws grids builds a :class:`Figure`; :mod:`~tilewright.viz.figure_drawing` draws any figure on a canvas, and
:mod:`~tilewright.viz.terminal` writes it as text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from tilewright.viz.canvas import Canvas
from tilewright.viz.picture import Picture
from tilewright.viz.windows import MOST_BYTES, Window, left_out, narrower

Legend: TypeAlias = tuple[tuple[str | tuple[str, ...], str], ...]
"""Swatches with their meaning: of one colour ``#rrggbb``, or of several side by side."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One square: what is written in it, line by line, its colour ``#rrggbb``, and a remark shown on hovering."""

    row: int
    column: int
    lines: tuple[str, ...]
    fill: str
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Border:
    """Lines of one kind, "atom" or "warp", between neighbours: the cells that have one to their right, or below."""

    kind: str
    right: frozenset[tuple[int, int]]
    below: frozenset[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Axis:
    """The labels next to the rows, or above the columns: a name for each, and names for groups of neighbours, each
    (first, the one after the last, name). Without names the numbers are shown."""

    names: tuple[str, ...] = ()
    groups: tuple[tuple[int, int, str], ...] = ()

    def name(self, index: int) -> str:
        return self.names[index] if self.names else str(index)


@dataclass(frozen=True, slots=True)
class Panel:
    """A grid of cells. ``at`` is its (row, column) among the panels of the figure; a heavy line is drawn before
    each row and column of the breaks.

    ``small``: the cells hold no text, only colours; only some rows and columns have their labels.
    ``path`` names cells (row, column); an arrow leads from each to the next.
    ``rows`` and ``columns`` count the whole grid; the windows name those of them that are drawn, all by default.
    """

    title: str
    rows: int
    columns: int
    cells: tuple[Cell, ...]
    at: tuple[int, int] = (0, 0)
    row_breaks: tuple[int, ...] = ()
    column_breaks: tuple[int, ...] = ()
    borders: tuple[Border, ...] = ()
    row_axis: Axis = Axis()
    column_axis: Axis = Axis()
    row_window: Window | None = None
    column_window: Window | None = None
    path: tuple[tuple[int, int], ...] = ()
    small: bool = False

    @property
    def drawn_rows(self) -> Window:
        return tuple(range(self.rows)) if self.row_window is None else self.row_window

    @property
    def drawn_columns(self) -> Window:
        return tuple(range(self.columns)) if self.column_window is None else self.column_window

    def narrower(self, most: int) -> Panel:
        """The same panel with ``most`` cells at the most."""
        rows, columns = narrower(self.drawn_rows, self.drawn_columns, most)
        drawn = frozenset(rows), frozenset(columns)
        cells = tuple(cell for cell in self.cells if cell.row in drawn[0] and cell.column in drawn[1])
        return replace(self, cells=cells, row_window=rows, column_window=columns)

    def left_out(self) -> str:
        """The sentence that says which rows and columns are not drawn."""
        parts = left_out(self.drawn_rows, self.rows, "rows"), left_out(self.drawn_columns, self.columns, "columns")
        return " and ".join(filter(None, parts))


@dataclass(frozen=True, slots=True, repr=False)
class Figure(Picture):
    """Panels, a legend of (colour, meaning), and notes. Shows itself in notebooks and in terminals that know rich.

    >>> figure = Figure("one cell", (Panel("", 1, 1, (Cell(0, 0, ("7",), "#ffffff"),)),))
    >>> print(figure)
    one cell
       0
    0  7
    """

    title: str
    panels: tuple[Panel, ...]
    legend: Legend = ()
    notes: tuple[str, ...] = field(default=())

    def all_notes(self) -> tuple[str, ...]:
        """The notes, and what is left out of the panels."""
        missing: dict[str, list[str]] = {}
        for panel in self.panels:
            if sentence := panel.left_out():
                missing.setdefault(sentence, []).append(panel.title)
        some = [
            f"left out{f' of {names[0]}' if len(missing) > 1 and names[0] else ''}: {sentence}"
            for sentence, names in missing.items()
        ]
        return (*some, *self.notes)

    def shortened(self, most_bytes: int = MOST_BYTES) -> Figure:
        """The figure itself, or with fewer cells, so that its SVG has no more than ``most_bytes``."""
        found, cells = self, sum(len(panel.cells) for panel in self.panels)
        while (long := len(found.svg())) > most_bytes and cells > 16:
            cells = max(16, int(cells * 0.97 * most_bytes / long))
            share = max(4, cells // len(self.panels))
            note = "shortened for the notebook; a file, such as .save('picture.svg'), shows more"
            found = replace(self, panels=tuple(p.narrower(share) for p in self.panels), notes=(*self.notes, note))
        return found

    def small(self) -> Figure:
        """The figure with small cells: colours alone, what is written in a cell is said on hovering.

        >>> panel = Panel("", 1, 1, (Cell(0, 0, ("7",), "#ffffff", "offset 7"),))
        >>> Figure("one cell", (panel,)).small().panels[0].cells[0]
        Cell(row=0, column=0, lines=(), fill='#ffffff', remark='offset 7')
        """
        panels = []
        for panel in self.panels:
            cells = tuple(replace(cell, lines=(), remark=cell.remark or " ".join(cell.lines)) for cell in panel.cells)
            panels.append(replace(panel, cells=cells, row_axis=Axis(), column_axis=Axis(), small=True))
        return replace(self, panels=tuple(panels))

    def draw(self, canvas: Canvas) -> None:
        """Draw the figure on a canvas."""
        from tilewright.viz.figure_drawing import draw_figure

        draw_figure(canvas, self)

    def text(self) -> str:
        """The picture as plain text; ``rich.print(figure)`` shows it in colour."""
        from tilewright.viz.terminal import figure_to_text

        return figure_to_text(self).plain.rstrip()

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        cells = sum(len(panel.cells) for panel in self.panels)
        return f"<Figure {self.title!r}: {cells} cells in {len(self.panels)} panels>"

    def __rich__(self) -> object:
        from tilewright.viz.terminal import figure_to_text

        return figure_to_text(self)


def swatches(colours: Sequence[tuple[str, str]]) -> Legend:
    """A legend of single colours.

    >>> swatches([("#ffffff", "nothing")])
    (('#ffffff', 'nothing'),)
    """
    return tuple((colour, meaning) for colour, meaning in colours)
