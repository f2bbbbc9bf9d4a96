"""Figures as text: aligned columns, in colour where the terminal has colour."""

from __future__ import annotations

from rich.text import Text

from tilewright.viz.colour import text_colour
from tilewright.viz.figure import Cell, Figure, Panel


def figure_to_text(figure: Figure) -> Text:
    """Write ``figure`` as rich text, panel under panel; ``.plain`` of it has the same characters without colour."""
    out = Text(no_wrap=True)
    if figure.title:
        out.append(figure.title + "\n", style="bold")
    for panel in figure.panels:
        if panel.title:
            out.append(panel.title + "\n")
        _append_panel(out, panel)
    for colour, meaning in figure.legend:
        out.append("  ", style=f"on {colour}")
        out.append(f" {meaning}\n")
    for note in figure.notes:
        out.append(note + "\n")
    return out


def _append_panel(out: Text, panel: Panel) -> None:
    at = {(cell.row, cell.column): cell for cell in panel.cells}
    words = {place: "/".join(filter(None, cell.lines)) for place, cell in at.items()}
    width = max([len(str(panel.columns - 1)), *map(len, words.values())])
    margin = len(str(panel.rows - 1))
    out.append(" " * margin)
    for column in range(panel.columns):
        out.append(f"  {column:>{width}}", style="dim")
    out.append("\n")
    for row in range(panel.rows):
        out.append(f"{row:>{margin}}", style="dim")
        for column in range(panel.columns):
            out.append(" ")
            _append_cell(out, at.get((row, column)), f" {words.get((row, column), ''):>{width}}")
        out.append("\n")


def _append_cell(out: Text, cell: Cell | None, word: str) -> None:
    out.append(word, style="" if cell is None else f"{text_colour(cell.fill)} on {cell.fill}")
