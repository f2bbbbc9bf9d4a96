"""Figures as LaTeX: one TikZ node per cell on an integer grid, as CuTe's print_latex draws."""

from __future__ import annotations

from tilewright.viz.colour import text_colour
from tilewright.viz.figure import Figure, Panel

GLYPH, LINE = 0.14, 0.3  # width and height in centimetres of a character in \ttfamily\scriptsize
SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "_": r"\_", "^": r"\^{}", "&": r"\&", "%": r"\%", "#": r"\#",
    "$": r"\$", "~": r"\~{}", "·": r"$\cdot$", "→": r"$\to$", "×": r"$\times$", "⊕": r"$\oplus$",
}  # fmt: skip


def figure_to_tikz(figure: Figure) -> str:
    """Write ``figure`` as a LaTeX document that pdflatex compiles by itself."""
    colours = sorted({cell.fill for panel in figure.panels for cell in panel.cells} | {c for c, _ in figure.legend})
    width, height = _cell_size(figure)
    lines = [
        r"\documentclass{standalone}",
        r"\usepackage{tikz}",
        *(rf"\definecolor{{{_name(colour)}}}{{HTML}}{{{colour[1:].upper()}}}" for colour in colours),
        r"\begin{document}",
        rf"\begin{{tikzpicture}}[x={{(0cm,-{height:g}cm)}},y={{({width:g}cm,0cm)}},",
        rf"  box/.style={{rectangle,draw=black,thin,minimum width={width:g}cm,minimum height={height:g}cm,",
        r"  inner sep=1pt,align=center,font=\ttfamily\scriptsize},",
        r"  swatch/.style={rectangle,draw=black,thin,minimum size=4mm}]",
    ]
    bottom = 0
    for panel, (top, left) in zip(figure.panels, _corners(figure), strict=True):
        lines += _panel(panel, top, left)
        bottom = max(bottom, top + panel.rows)
    if figure.title:
        lines.append(rf"\node[anchor=west,font=\ttfamily] at (-3,-0.5) {{{escape(figure.title)}}};")
    for text in figure.notes:
        bottom += 1
        lines.append(rf"\node[anchor=west,font=\ttfamily] at ({bottom},0) {{{escape(text)}}};")
    for number, (colour, text) in enumerate(figure.legend):
        at = f"({bottom + 1 + number // 4},{number % 4 * 4})"
        lines.append(rf"\node[swatch,fill={_name(colour)},label=right:{{{escape(text)}}}] at {at} {{}};")
    return "\n".join([*lines, r"\end{tikzpicture}", r"\end{document}", ""])


def _cell_size(figure: Figure) -> tuple[float, float]:
    """Width and height in centimetres that hold the longest text of a cell, and a centimetre at least."""
    cells = [cell for panel in figure.panels for cell in panel.cells]
    longest = max((len(line) for cell in cells for line in cell.lines), default=0)
    most_lines = max((len(cell.lines) for cell in cells), default=0)
    return max(1.0, GLYPH * longest + 0.2), max(1.0, LINE * most_lines + 0.2)


def _corners(figure: Figure) -> list[tuple[int, int]]:
    """The (row, column) of each panel's first cell on the common grid: panels of a table column share a left edge, ends
    of a table row a bottom edge."""
    widths: dict[int, int] = {}
    heights: dict[int, int] = {}
    for panel in figure.panels:
        row, column = panel.at
        # Titles are wider than narrow panels: about seven characters go on a cell.
        widths[column] = max(widths.get(column, 0), panel.columns, len(panel.title) // 7)
        heights[row] = max(heights.get(row, 0), panel.rows)
    corners = []
    for panel in figure.panels:
        row, column = panel.at
        top = sum(heights[r] + 3 for r in heights if r < row) + heights[row] - panel.rows
        corners.append((top, sum(widths[c] + 2 for c in widths if c < column)))
    return corners


def _panel(panel: Panel, top: int, left: int) -> list[str]:
    lines = []
    if panel.title:
        lines.append(rf"\node[anchor=west,font=\ttfamily] at ({top - 2},{left - 0.5:g}) {{{escape(panel.title)}}};")
    for row in range(panel.rows):
        lines.append(rf"\node[font=\ttfamily\scriptsize] at ({top + row},{left - 1}) {{{row}}};")
    for column in range(panel.columns):
        lines.append(rf"\node[font=\ttfamily\scriptsize] at ({top - 1},{left + column}) {{{column}}};")
    for cell in panel.cells:
        content = r" \\ ".join(escape(line) for line in cell.lines)
        ink = "white" if text_colour(cell.fill) == "#ffffff" else "black"
        at = f"({top + cell.row},{left + cell.column})"
        lines.append(rf"\node[box,fill={_name(cell.fill)},text={ink}] at {at} {{{content}}};")
    for row in panel.row_breaks:
        y, ends = top + row - 0.5, (left - 0.5, left + panel.columns - 0.5)
        lines.append(rf"\draw[very thick] ({y:g},{ends[0]:g}) -- ({y:g},{ends[1]:g});")
    for column in panel.column_breaks:
        x, ends = left + column - 0.5, (top - 0.5, top + panel.rows - 0.5)
        lines.append(rf"\draw[very thick] ({ends[0]:g},{x:g}) -- ({ends[1]:g},{x:g});")
    return lines


def _name(colour: str) -> str:
    return f"c{colour[1:].lower()}"


def escape(text: str) -> str:
    return "".join(SPECIAL.get(character, character) for character in text)
