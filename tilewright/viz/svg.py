"""Figures as SVG. Cells are as wide as their longest text needs, so that every number can be read."""

from __future__ import annotations

from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

from tilewright.viz.colour import text_colour
from tilewright.viz.figure import Figure, Panel

FONT = 11.0  # of the cells, in pixels
GLYPH = 0.61  # width of a monospace glyph, in ems
BOLD = 0.64  # and of a bold one: renderers round it up to whole pixels
LINE = 1.2  # line distance, in ems
PADDING = 4.0
LABEL = 10.0  # font of the row and column numbers
GAP = 26.0  # between panels
MARGIN = 16.0
TITLE = 14.0
CAPTION = 12.0  # font of panel titles, legend and notes

STYLE = (
    "text{font-family:'DejaVu Sans Mono',Menlo,Consolas,monospace}"
    f".c text{{font-size:{FONT:g}px;text-anchor:middle}}"
    ".c rect{stroke:#55606b;stroke-width:.6}"
    f".l{{font-size:{LABEL:g}px;fill:#55606b}}.r{{text-anchor:end}}.m{{text-anchor:middle}}"
    f".t{{font-size:{TITLE:g}px;font-weight:bold;fill:#10161c}}.p{{font-size:{CAPTION:g}px;fill:#10161c}}"
    ".b{stroke:#10161c;stroke-width:1.8}"
)


class SvgWriter:
    """Collects elements and knows how large the drawing has become."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._width = 0.0
        self._height = 0.0

    def reach(self, x: float, y: float) -> None:
        """The drawing extends at least to (x, y)."""
        self._width, self._height = max(self._width, x), max(self._height, y)

    def rect(self, x: float, y: float, width: float, height: float, fill: str) -> None:
        self._parts.append(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" fill="{fill}"/>')
        self.reach(x + width, y + height)

    def text(self, x: float, y: float, content: str, kind: str = "", fill: str = "") -> None:
        attributes = (f" class={quoteattr(kind)}" if kind else "") + (f' fill="{fill}"' if fill else "")
        self._parts.append(f'<text x="{x:g}" y="{y:g}"{attributes}>{escape(content)}</text>')

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str) -> None:
        self._parts.append(f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" class="{kind}"/>')

    def raw(self, element: str) -> None:
        """An element as it is written; it does not count for the size."""
        self._parts.append(element)

    def open_group(self, kind: str, at: tuple[int, int] | None = None, remark: str = "") -> None:
        where = f' data-row="{at[0]}" data-column="{at[1]}"' if at else ""
        self._parts.append(f'<g class="{kind}"{where}>' + (f"<title>{escape(remark)}</title>" if remark else ""))

    def close_group(self) -> None:
        self._parts.append("</g>")

    def document(self, title: str) -> str:
        """The whole file, on a white sheet with a margin to the right and below."""
        width, height = self._width + MARGIN, self._height + MARGIN
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
                f'viewBox="0 0 {width:g} {height:g}" role="img" aria-label={quoteattr(title)}>',
                f"<style>{STYLE}</style>",
                f'<rect width="{width:g}" height="{height:g}" fill="#ffffff"/>',
                *self._parts,
                "</svg>\n",
            ]
        )


@dataclass(frozen=True)
class Metrics:
    """Sizes common to all panels of a figure, so that rows and columns of neighbours line up."""

    cell_width: float
    cell_height: float
    label_width: float

    @classmethod
    def of(cls, figure: Figure) -> Metrics:
        cells = [cell for panel in figure.panels for cell in panel.cells]
        longest = max((len(line) for cell in cells for line in cell.lines), default=1)
        most_lines = max((len(cell.lines) for cell in cells), default=1)
        largest = max((max(panel.rows, panel.columns) for panel in figure.panels), default=1)
        width = max(longest * FONT * GLYPH, len(str(largest - 1)) * LABEL * GLYPH) + 2 * PADDING
        height = most_lines * FONT * LINE + 2 * PADDING
        return cls(max(width, 24.0), max(height, 24.0), len(str(largest - 1)) * LABEL * GLYPH + PADDING)

    def panel_size(self, panel: Panel) -> tuple[float, float]:
        """Width and height with labels and title."""
        width = self.label_width + panel.columns * self.cell_width
        title = len(panel.title) * CAPTION * GLYPH
        return max(width, title), self.head(panel) + LABEL * LINE + panel.rows * self.cell_height

    def head(self, panel: Panel) -> float:
        return CAPTION * LINE + PADDING if panel.title else 0.0


def figure_to_svg(figure: Figure) -> str:
    """Write ``figure`` as one SVG document; each cell is a group of class ``c`` that carries its row and column."""
    metrics = Metrics.of(figure)
    out = SvgWriter()
    y = MARGIN
    if figure.title:
        y += TITLE
        out.text(MARGIN, y, figure.title, "t")
        out.reach(MARGIN + len(figure.title) * TITLE * BOLD, y)
        y += GAP - TITLE / 2
    bottom = _draw_panels(out, figure, metrics, y)
    bottom = draw_legend(out, figure.legend, bottom + CAPTION)
    for note in figure.notes:
        bottom += CAPTION * LINE
        out.text(MARGIN, bottom, note, "p")
        out.reach(MARGIN + len(note) * CAPTION * GLYPH, bottom)
    return out.document(figure.title)


def _draw_panels(out: SvgWriter, figure: Figure, metrics: Metrics, top: float) -> float:
    """Put the panels on a table whose columns and rows are as large as their largest panel."""
    widths: dict[int, float] = {}
    heights: dict[int, float] = {}
    for panel in figure.panels:
        width, height = metrics.panel_size(panel)
        row, column = panel.at
        widths[column] = max(widths.get(column, 0.0), width)
        heights[row] = max(heights.get(row, 0.0), height)
    for panel in figure.panels:
        row, column = panel.at
        x = MARGIN + sum(widths[c] + GAP for c in widths if c < column)
        y = top + sum(heights[r] + GAP for r in heights if r < row)
        _draw_panel(out, panel, metrics, x, y + heights[row] - metrics.panel_size(panel)[1])
    return top + sum(heights.values()) + GAP * max(len(heights) - 1, 0)


def _draw_panel(out: SvgWriter, panel: Panel, metrics: Metrics, x: float, y: float) -> None:
    width, height = metrics.cell_width, metrics.cell_height
    out.open_group("panel")
    if panel.title:
        out.text(x, y + CAPTION, panel.title, "p")
        out.reach(x + len(panel.title) * CAPTION * GLYPH, y)
    left, top = x + metrics.label_width, y + metrics.head(panel) + LABEL * LINE
    for column in range(panel.columns):
        out.text(left + (column + 0.5) * width, top - PADDING, str(column), "l m")
    for row in range(panel.rows):
        out.text(left - PADDING, top + (row + 0.5) * height + LABEL * 0.36, str(row), "l r")
    for cell in panel.cells:
        cx, cy = left + cell.column * width, top + cell.row * height
        out.open_group("c", (cell.row, cell.column), cell.remark)
        out.rect(cx, cy, width, height, cell.fill)
        first = cy + height / 2 - (len(cell.lines) - 1) * FONT * LINE / 2 + FONT * 0.36
        for number, line in enumerate(cell.lines):
            out.text(cx + width / 2, first + number * FONT * LINE, line, fill=text_colour(cell.fill))
        out.close_group()
    right, bottom = left + panel.columns * width, top + panel.rows * height
    for row in panel.row_breaks:
        out.line(left, top + row * height, right, top + row * height, "b")
    for column in panel.column_breaks:
        out.line(left + column * width, top, left + column * width, bottom, "b")
    out.close_group()


def draw_legend(out: SvgWriter, legend: tuple[tuple[str, str], ...], top: float) -> float:
    """Swatches with their meaning, in rows of about the width of the panels."""
    if not legend:
        return top
    swatch = CAPTION + PADDING
    entry = swatch + 2 * PADDING + max(len(text) for _, text in legend) * CAPTION * GLYPH + GAP / 2
    per_row = max(1, int(max(out._width - MARGIN, 480.0) // entry))
    for number, (colour, text) in enumerate(legend):
        x = MARGIN + number % per_row * entry
        y = top + number // per_row * (swatch + PADDING)
        out.open_group("legend")
        out.rect(x, y, swatch, swatch, colour)
        out.text(x + swatch + PADDING, y + swatch / 2 + CAPTION * 0.36, text, "p")
        out.close_group()
        out.reach(x + entry - GAP / 2, y + swatch)
    rows = -(-len(legend) // per_row)
    return top + rows * (swatch + PADDING) + PADDING
