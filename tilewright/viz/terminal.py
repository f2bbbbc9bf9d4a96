"""Figures as text: aligned columns, in colour where the terminal has colour."""

from __future__ import annotations

from collections.abc import Callable

from rich.text import Text

from tilewright.viz.colour import text_colour
from tilewright.viz.panels import Axis, Cell, Legend, Panel
from tilewright.viz.windows import Window


def panels_to_text(title: str, panels: tuple[Panel, ...], legend: Legend, notes: tuple[str, ...]) -> Text:
    """A figure as rich text, panel under panel; ``.plain`` of it has the same characters without colour."""
    out = Text(no_wrap=True)
    if title:
        out.append(title + "\n", style="bold")
    for panel in panels:
        if panel.title:
            out.append(panel.title + "\n")
        _append_panel(out, panel)
    for colour, meaning in legend:
        colours = (colour,) if isinstance(colour, str) else colour
        shown = colours * 2 if len(colours) == 1 else colours
        for one in shown[:: max(1, len(shown) // 2)][:2]:
            out.append(" ", style=f"on {one}")
        out.append(f" {meaning}\n")
    for note in notes:
        out.append(note + "\n")
    return out


def _append_panel(out: Text, panel: Panel) -> None:
    at = {(cell.row, cell.column): cell for cell in panel.cells}
    words = {place: "/".join(filter(None, cell.lines)) for place, cell in at.items()}
    rows, columns = panel.drawn_rows, panel.drawn_columns
    row_name, column_name = _namer(panel.row_axis), _namer(panel.column_axis)
    width = max([*(len(column_name(column)) for column in columns), *map(len, words.values())])
    margin = max(len(row_name(row)) for row in rows)
    out.append(" " * margin)
    for column in _with_gaps(columns):
        out.append(f"  {'…' if column is None else column_name(column):>{width}}", style="dim")
    out.append("\n")
    for row in _with_gaps(rows):
        out.append(f"{'…' if row is None else row_name(row):>{margin}}", style="dim")
        if row is None:
            out.append("\n")
            continue
        for column in _with_gaps(columns):
            out.append(" ")
            if column is None:
                out.append(f" {'…':>{width}}", style="dim")
            else:
                _append_cell(out, at.get((row, column)), f" {words.get((row, column), ''):>{width}}")
        out.append("\n")


def _namer(axis: Axis) -> Callable[[int], str]:
    """The label beside a row or above a column; those of nested modes have their number, as groups have no line."""
    return str if axis.groups else axis.name


def _with_gaps(window: Window) -> list[int | None]:
    """The rows or columns that are drawn, None where some are left out."""
    drawn: list[int | None] = []
    for index in window:
        if drawn and drawn[-1] is not None and index != drawn[-1] + 1:
            drawn.append(None)
        drawn.append(index)
    return drawn


def _append_cell(out: Text, cell: Cell | None, word: str) -> None:
    out.append(word, style="" if cell is None else f"{text_colour(cell.fill)} on {cell.fill}")
