"""The parts of every drawing: framed rectangles, text, lines and arrows, on a sheet that grows with them.

:mod:`~tilewright.viz.svg`, :mod:`~tilewright.viz.png`, :mod:`~tilewright.viz.pdf` and :mod:`~tilewright.viz.tikz` each
are a canvas, so one drawing function serves the four formats. Lengths are in pixels, y runs down.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

FONTS = Path(__file__).parent / "fonts"
GLYPH = 0.6021  # the advance of every character of DejaVu Sans Mono, in ems
BASE = 0.36  # from the middle of a line of capitals down to its baseline, in ems
LINE = 1.2  # line distance, in ems
MARGIN = 16.0
PADDING = 4.0
GAP = 26.0  # between panels
INK, QUIET = "#10161c", "#4d5863"  # of text; of row and column numbers
FRAME = "#7d8791"  # around cells


@dataclass(frozen=True, slots=True)
class TextStyle:
    """``anchor`` is "start", "middle" or "end": which point of the text its x coordinate names."""

    size: float
    colour: str = INK
    anchor: str = "start"
    bold: bool = False

    def width(self, content: str) -> float:
        return len(content) * self.size * GLYPH


@dataclass(frozen=True, slots=True)
class LineStyle:
    width: float
    colour: str
    opacity: float = 1.0


TEXTS = {
    "cell": TextStyle(11.0, INK, "middle"),
    "bar": TextStyle(9.0, INK, "middle"),
    "column": TextStyle(10.0, QUIET, "middle"),
    "row": TextStyle(10.0, QUIET, "end"),
    "group": TextStyle(10.0, "#1f5fa8", "middle"),  # number of a tile, above the numbers within it
    "row-group": TextStyle(10.0, "#1f5fa8", "end"),
    "title": TextStyle(14.0, INK, bold=True),
    "caption": TextStyle(12.0),
    "caption-right": TextStyle(12.0, INK, "end"),
}
LINES = {
    "tick": LineStyle(0.8, "#e4e8ec"),
    "tile": LineStyle(1.8, "#3b4650"),
    "atom": LineStyle(1.6, "#5a6672"),
    "warp": LineStyle(3.0, INK),
    "arrow": LineStyle(0.7, "#a03020", 0.7),
}

Segment = tuple[float, float, float, float]  # from (x, y) to (x, y)


class Canvas:
    """A sheet that keeps the extents of the drawing on it."""

    def __init__(self) -> None:
        self.width = 0.0
        self.height = 0.0

    def reach(self, x: float, y: float) -> None:
        """The drawing extends at least to (x, y)."""
        self.width, self.height = max(self.width, x), max(self.height, y)

    def rect(self, x: float, y: float, width: float, height: float, fill: str, frame: bool = True) -> None:
        """A filled rectangle, with a thin frame unless told otherwise."""
        raise NotImplementedError

    def text(self, x: float, y: float, content: str, kind: str, ink: str = "") -> None:
        """A line of text in a style of ``TEXTS``, with its baseline at ``y``; ``ink`` instead of the style's colour."""
        raise NotImplementedError

    def lines(self, segments: Iterable[Segment], kind: str) -> None:
        """Straight lines in a style of ``LINES``."""
        raise NotImplementedError

    def arrow(self, segment: Segment) -> None:
        """A thin line with a head at its end."""
        raise NotImplementedError

    def open_group(self, kind: str, at: tuple[int, int] | None = None, remark: str = "") -> None:
        """What is drawn from here to ``close_group`` belongs together; SVG shows ``remark`` on hovering."""

    def close_group(self) -> None:
        """The end of a group."""

    def write(self, x: float, y: float, content: str, kind: str) -> None:
        """Text for which the sheet is made large enough, if it starts at ``x``."""
        self.text(x, y, content, kind)
        self.reach(x + TEXTS[kind].width(content), y)


def arrow_head(segment: Segment, size: float = 4.2) -> list[tuple[float, float]]:
    """The three corners of the head of an arrow.

    >>> arrow_head((0.0, 0.0, 10.0, 0.0), 4.0)
    [(10.0, 0.0), (6.0, 2.0), (6.0, -2.0)]
    """
    x1, y1, x2, y2 = segment
    length = max(((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5, 1e-9)
    dx, dy = (x2 - x1) / length * size, (y2 - y1) / length * size
    return [(x2, y2), (x2 - dx - dy / 2, y2 - dy + dx / 2), (x2 - dx + dy / 2, y2 - dy - dx / 2)]


def rgb(colour: str) -> tuple[int, int, int]:
    """Red, green and blue of ``#rrggbb``, 0 to 255 each."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def short(value: float) -> str:
    """A length with two decimals at most, and no more than it needs.

    >>> short(3.0), short(2.504999)
    ('3', '2.5')
    """
    return f"{round(value, 2):g}" if abs(value) < 1e5 else f"{value:.0f}"
