"""The parts of a figure as data: panels of cells, their axes and borders, and the legend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from tilewright.viz.windows import Window, left_out, narrower

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


def swatches(colours: Sequence[tuple[str, str]]) -> Legend:
    """A legend of single colours.

    >>> swatches([("#ffffff", "nothing")])
    (('#ffffff', 'nothing'),)
    """
    return tuple((colour, meaning) for colour, meaning in colours)
