"""Figures as LaTeX: one TikZ node per cell on an integer grid, as CuTe's print_latex draws."""

from __future__ import annotations

from tilewright.viz.colour import text_colour
from tilewright.viz.figure import Figure, Panel

SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "_": r"\_", "^": r"\^{}", "&": r"\&", "%": r"\%", "#": r"\#",
    "$": r"\$", "~": r"\~{}", "·": r"$\cdot$", "→": r"$\to$", "×": r"$\times$", "⊕": r"$\oplus$",
}  # fmt: skip


def figure_to_tikz(figure: Figure) -> str:
    """Write ``figure`` as a LaTeX document that pdflatex compiles by itself."""
    colours = sorted({cell.fill for panel in figure.panels for cell in panel.cells} | {c for c, _ in figure.legend})
    lines = [
        r"\documentclass{standalone}",
        r"\usepackage{tikz}",
        *(rf"\definecolor{{{_name(colour)}}}{{HTML}}{{{colour[1:].upper()}}}" for colour in colours),
        r"\begin{document}",
        r"\begin{tikzpicture}[x={(0cm,-1cm)},y={(1cm,0cm)},",
        r"  box/.style={rectangle,draw=black,thin,minimum size=1cm,inner sep=1pt,align=center,",
        r"  font=\ttfamily\scriptsize}]",
    ]
    bottom = 0
    for panel, (top, left) in zip(figure.panels, _corners(figure), strict=True):
        lines += _panel(panel, top, left)
        bottom = max(bottom, top + panel.rows)
    for text in filter(None, (figure.title, *figure.notes)):
        bottom += 1
        lines.append(rf"\node[anchor=west,font=\ttfamily] at ({bottom},0) {{{_escape(text)}}};")
    for number, (colour, text) in enumerate(figure.legend):
        at = f"({bottom + 1 + number // 4},{number % 4 * 4})"
        lines.append(rf"\node[box,fill={_name(colour)},minimum size=4mm,label=right:{{{_escape(text)}}}] at {at} {{}};")
    return "\n".join([*lines, r"\end{tikzpicture}", r"\end{document}", ""])


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
        lines.append(rf"\node[anchor=west,font=\ttfamily] at ({top - 2},{left - 0.5:g}) {{{_escape(panel.title)}}};")
    for row in range(panel.rows):
        lines.append(rf"\node[font=\ttfamily\scriptsize] at ({top + row},{left - 1}) {{{row}}};")
    for column in range(panel.columns):
        lines.append(rf"\node[font=\ttfamily\scriptsize] at ({top - 1},{left + column}) {{{column}}};")
    for cell in panel.cells:
        content = r" \\ ".join(_escape(line) for line in cell.lines)
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


def _escape(text: str) -> str:
    return "".join(SPECIAL.get(character, character) for character in text)
