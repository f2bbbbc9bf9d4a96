"""Drawings as SVG. Remarks are shown by browsers and notebooks while the pointer is over a cell."""

from __future__ import annotations

from collections.abc import Iterable
from xml.sax.saxutils import escape, quoteattr

from tilewright.viz.canvas import FRAME, LINES, MARGIN, TEXTS, Canvas, Segment, TextStyle, short


def _css(kind: str, style: TextStyle) -> str:
    anchor = "" if style.anchor == "start" else f";text-anchor:{style.anchor}"
    weight = ";font-weight:bold" if style.bold else ""
    # Text of cells needs no class of its own, which saves a tenth of a large file.
    name = ".tilewright .c text" if kind == "cell" else f".tilewright text.{kind}"
    return f"{name}{{font-size:{style.size:g}px;fill:{style.colour}{anchor}{weight}}}"


# A page that holds the picture must keep its own style: every rule is for elements inside this class only.
STYLE = (
    ".tilewright text{font-family:'DejaVu Sans Mono',Menlo,Consolas,monospace}"
    f".tilewright rect{{stroke:{FRAME};stroke-width:.6}}.tilewright rect.n{{stroke:none}}"
    + "".join(_css(kind, style) for kind, style in TEXTS.items())
    + "".join(
        f".tilewright path.{kind}{{fill:none;stroke:{style.colour};stroke-width:{style.width:g};stroke-linecap:square"
        + (f";stroke-opacity:{style.opacity:g}" if style.opacity < 1 else "")
        + "}"
        for kind, style in LINES.items()
    )
)
ARROW = LINES["arrow"].colour
MARKER = (
    '<defs><marker id="tilewright-head" viewBox="0 0 6 6" refX="6" refY="3" markerWidth="6" markerHeight="6" '
    'orient="auto">'
    f'<path d="M0 0L6 3L0 6z" fill="{ARROW}"/></marker></defs>'
)


class SvgCanvas(Canvas):
    """Collects elements; each cell is a group of class ``c`` that carries its row and column."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[str] = []
        self._arrows = False

    def rect(self, x: float, y: float, width: float, height: float, fill: str, frame: bool = True) -> None:
        kind = "" if frame else ' class="n"'
        self._parts.append(
            f'<rect x="{short(x)}" y="{short(y)}" width="{short(width)}" height="{short(height)}" fill="{fill}"{kind}/>'
        )
        self.reach(x + width, y + height)

    def text(self, x: float, y: float, content: str, kind: str, ink: str = "") -> None:
        # A style sheet is stronger than an attribute, so other colours have to be a style.
        colour = f' style="fill:{ink}"' if ink and ink != TEXTS[kind].colour else ""
        which = "" if kind == "cell" else f' class="{kind}"'
        self._parts.append(f'<text x="{short(x)}" y="{short(y)}"{which}{colour}>{escape(content)}</text>')

    def lines(self, segments: Iterable[Segment], kind: str) -> None:
        path = "".join(f"M{short(x1)} {short(y1)}L{short(x2)} {short(y2)}" for x1, y1, x2, y2 in segments)
        if path:
            self._parts.append(f'<path class="{kind}" d="{path}"/>')

    def arrow(self, segment: Segment) -> None:
        self._arrows = True
        x1, y1, x2, y2 = map(short, segment)
        self._parts.append(f'<path class="arrow" d="M{x1} {y1}L{x2} {y2}" marker-end="url(#tilewright-head)"/>')

    def open_group(self, kind: str, at: tuple[int, int] | None = None, remark: str = "") -> None:
        where = f' data-row="{at[0]}" data-column="{at[1]}"' if at else ""
        self._parts.append(f'<g class="{kind}"{where}>' + (f"<title>{escape(remark)}</title>" if remark else ""))

    def close_group(self) -> None:
        self._parts.append("</g>")

    def document(self, title: str) -> str:
        """The whole file, on a white sheet with a margin to the right and below."""
        width, height = short(self.width + MARGIN), short(self.height + MARGIN)
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" class="tilewright" width="{width}" height="{height}" '
                f'viewBox="0 0 {width} {height}" role="img" aria-label={quoteattr(title)}>',
                f"<style>{STYLE}</style>",
                f'<rect width="{width}" height="{height}" fill="#ffffff" class="n"/>',
                *([MARKER] if self._arrows else []),
                *self._parts,
                "</svg>\n",
            ]
        )
