"""Figures as LaTeX: a filled rectangle and a node of text for each cell on an integer grid, like CuTe's print_latex.

pdfTeX keeps a page in a memory of five million words, of which a cell takes some hundred: larger figures are refused
with a word on what to use in TeX's place.
"""

from __future__ import annotations

from tilewright.errors import ArgumentError
from tilewright.viz.canvas import LINES
from tilewright.viz.colour import text_colour
from tilewright.viz.figure import Border, Figure, Panel
from tilewright.viz.windows import positions

GLYPH, LINE = 0.14, 0.3  # width and height in centimetres of a character in \ttfamily\scriptsize
TITLE_CELL = 7  # characters of a title that go on the width of a cell
MOST_CELLS = 4096  # with a rectangle and a text each
SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "_": r"\_", "^": r"\^{}", "&": r"\&", "%": r"\%", "#": r"\#",
    "$": r"\$", "~": r"\~{}", "·": r"$\cdot$", "→": r"$\to$", "×": r"$\times$", "⊕": r"$\oplus$",
    "⋯": r"$\cdots$", "⋮": r"$\vdots$", "∘": r"$\circ$", "…": r"\dots{}",
}  # fmt: skip


def figure_to_tikz(figure: Figure) -> str:
    """Write ``figure`` as a LaTeX document that pdflatex compiles by itself.

    Raises:
        ArgumentError: more cells than TeX's memory takes.
    """
    refuse(figure.title, sum(len(panel.cells) for panel in figure.panels), MOST_CELLS)
    fills = {cell.fill for panel in figure.panels for cell in panel.cells}
    strips = [(colour,) if isinstance(colour, str) else colour for colour, _ in figure.legend]
    shown = {colour for strip in strips for colour in strip} | {style.colour for style in LINES.values()}
    colours = sorted(fills | shown)
    width, height = _cell_size(figure)
    lines = [
        r"\documentclass{standalone}",
        r"\usepackage{tikz}",
        *(rf"\definecolor{{{_name(colour)}}}{{HTML}}{{{colour[1:].upper()}}}" for colour in colours),
        r"\begin{document}",
        rf"\begin{{tikzpicture}}[x={{(0cm,-{height:g}cm)}},y={{({width:g}cm,0cm)}},",
        r"  every node/.style={inner sep=0pt,align=center,font=\ttfamily\scriptsize}]",
    ]
    bottom = 0.0
    for panel, (top, left) in zip(figure.panels, _corners(figure), strict=True):
        lines += _panel(panel, top, left)
        bottom = max(bottom, top + _extent(panel)[0])
    if figure.title:
        lines.append(rf"\node[anchor=west,font=\ttfamily] at (-3,-0.5) {{{escape(figure.title)}}};")
    for text in figure.all_notes():
        bottom += 1
        lines.append(rf"\node[anchor=west,font=\ttfamily] at ({bottom:g},0) {{{escape(text)}}};")
    for number, (strip, (_, text)) in enumerate(zip(strips, figure.legend, strict=True)):
        row, column = bottom + 1 + number // 3, number % 3 * 6.0
        for place, colour in enumerate(strip):
            lines.append(rf"\fill[{_name(colour)}] ({row - 0.3:g},{column + place / len(strip):.3f}) rectangle "
                         rf"++(0.6,{1 / len(strip):.3f});")  # fmt: skip
        lines.append(rf"\node[anchor=west] at ({row:g},{column + 1.2:g}) {{{escape(text)}}};")
    return "\n".join([*lines, r"\end{tikzpicture}", r"\end{document}", ""])


def refuse(title: str, drawn: int, most: int) -> None:
    """An error for a picture that TeX would end with "TeX capacity exceeded"."""
    if drawn > most:
        raise ArgumentError(
            f"{title or 'the picture'} has {drawn} cells, and TeX's memory takes about {most}: save it as .pdf and "
            "include that with \\includegraphics, or draw a part of it"
        )


def _cell_size(figure: Figure) -> tuple[float, float]:
    """Width and height in centimetres that hold the longest text of a cell, and a centimetre at least."""
    cells = [cell for panel in figure.panels for cell in panel.cells]
    longest = max((len(line) for cell in cells for line in cell.lines), default=0)
    most_lines = max((len(cell.lines) for cell in cells), default=0)
    return max(1.0, GLYPH * longest + 0.2), max(1.0, LINE * most_lines + 0.2)


def _extent(panel: Panel) -> tuple[float, float]:
    """Rows and columns on paper, with the gaps of what is left out."""
    down, across = positions(panel.drawn_rows), positions(panel.drawn_columns)
    return max(down.values(), default=-1.0) + 1, max(across.values(), default=-1.0) + 1


def _corners(figure: Figure) -> list[tuple[float, float]]:
    """The (row, column) of each panel's first cell on the common grid: panels of a table column share a left edge, ends
    of a table row a bottom edge."""
    widths: dict[int, float] = {}
    heights: dict[int, float] = {}
    for panel in figure.panels:
        row, column = panel.at
        down, across = _extent(panel)
        widths[column] = max(widths.get(column, 0), across + _beside(panel), len(panel.title) // TITLE_CELL)
        heights[row] = max(heights.get(row, 0), down)
    corners = []
    for panel in figure.panels:
        row, column = panel.at
        top = sum(heights[r] + 4 for r in heights if r < row) + heights[row] - _extent(panel)[0]
        corners.append((top, sum(widths[c] + 2 for c in widths if c < column) + _beside(panel)))
    return corners


def _beside(panel: Panel) -> int:
    """Columns that the names of groups of rows take."""
    return int(bool(panel.row_axis.groups))


def _panel(panel: Panel, top: float, left: float) -> list[str]:
    rows = {row: top + at for row, at in positions(panel.drawn_rows).items()}
    columns = {column: left + at for column, at in positions(panel.drawn_columns).items()}
    grouped = bool(panel.column_axis.groups)
    lines = []
    if panel.title:
        at = f"({top - 2 - grouped:g},{left - 0.5:g})"
        lines.append(rf"\node[anchor=west,font=\ttfamily] at {at} {{{escape(panel.title)}}};")
    lines += [_text(row, left - 1, panel.row_axis.name(index)) for index, row in rows.items()]
    lines += [_text(top - 1, column, panel.column_axis.name(index)) for index, column in columns.items()]
    for first, last, name in panel.row_axis.groups:
        if first in rows and last - 1 in rows:
            lines.append(_text((rows[first] + rows[last - 1]) / 2, left - 2, name))
    for first, last, name in panel.column_axis.groups:
        if first in columns and last - 1 in columns:
            lines.append(_text(top - 2, (columns[first] + columns[last - 1]) / 2, name))
    for cell in panel.cells:
        row, column = rows[cell.row], columns[cell.column]
        lines.append(rf"\filldraw[draw=black,thin,fill={_name(cell.fill)}] ({row - 0.5:g},{column - 0.5:g}) "
                     r"rectangle ++(1,1);")  # fmt: skip
        if cell.lines:
            ink = ",text=white" if text_colour(cell.fill) == "#ffffff" else ""
            lines.append(_text(row, column, r" \\ ".join(escape(line) for line in cell.lines), ink, escaped=True))
    for index in panel.row_breaks:
        if index in rows and index - 1 in rows:
            lines += [_line("tile", rows[index] - 0.5, column - 0.5, 0, 1) for column in columns.values()]
    for index in panel.column_breaks:
        if index in columns and index - 1 in columns:
            lines += [_line("tile", row - 0.5, columns[index] - 0.5, 1, 0) for row in rows.values()]
    for border in panel.borders:
        lines += _border(border, rows, columns)
    return lines


def _border(border: Border, rows: dict[int, float], columns: dict[int, float]) -> list[str]:
    right = [(i, j) for i, j in sorted(border.right) if i in rows and j in columns and j + 1 in columns]
    below = [(i, j) for i, j in sorted(border.below) if i in rows and i + 1 in rows and j in columns]
    lines = [_line(border.kind, rows[i] - 0.5, columns[j] + 0.5, 1, 0) for i, j in right]
    return lines + [_line(border.kind, rows[i] + 0.5, columns[j] - 0.5, 0, 1) for i, j in below]


def _line(kind: str, row: float, column: float, down: int, across: int) -> str:
    style = LINES[kind]
    return (rf"\draw[{_name(style.colour)},line width={style.width * 0.75:g}pt] ({row:g},{column:g}) "
            f"-- ++({down},{across});")  # fmt: skip


def _text(row: float, column: float, text: str, style: str = "", *, escaped: bool = False) -> str:
    option = f"[{style[1:]}]" if style else ""
    return rf"\node{option} at ({row:g},{column:g}) {{{text if escaped else escape(text)}}};"


def _name(colour: str) -> str:
    return f"c{colour[1:].lower()}"


def escape(text: str) -> str:
    return "".join(SPECIAL.get(character, character) for character in text)
