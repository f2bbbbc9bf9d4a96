"""Drawings as PNG: NumPy sets the pixels, Pillow draws the characters once each and packs the file.

A picture of a swizzled 128 x 128 tile has 32,768 cells and 160,000 characters. Renderers of SVG lay each text out by
itself and take a minute for it; here equal characters are set together, by one NumPy operation for all of them. The
font comes with the package, so pictures are the same on all machines, those without fonts too.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np

from tilewright.errors import ArgumentError
from tilewright.viz.canvas import FONTS, FRAME, GLYPH, LINES, MARGIN, TEXTS, Canvas, Segment, arrow_head, rgb

SCALE = 2.0  # pixels of a PNG for one of the drawing, where that gives no more than
MOST_PIXELS = 36_000_000
SHADES = 8  # between a character and its ground: fewer colours make a smaller file
WHITE = 0xFFFFFF

Pixels = np.ndarray[Any, Any]


class PngCanvas(Canvas):
    """Collects what is drawn; ``document`` sets the pixels, once the size of the sheet is known.

    Raises:
        ArgumentError: Pillow is not installed.
    """

    def __init__(self) -> None:
        super().__init__()
        _pillow()
        self._rects: list[tuple[float, float, float, float, str, bool]] = []
        self._texts: list[tuple[float, float, str, str, str]] = []
        self._lines: list[tuple[Segment, str]] = []
        self._arrows: list[Segment] = []

    def rect(self, x: float, y: float, width: float, height: float, fill: str, frame: bool = True) -> None:
        self._rects.append((x, y, x + width, y + height, fill, frame))
        self.reach(x + width, y + height)

    def text(self, x: float, y: float, content: str, kind: str, ink: str = "") -> None:
        self._texts.append((x, y, content, kind, ink))

    def lines(self, segments: Iterable[Segment], kind: str) -> None:
        self._lines += [(segment, kind) for segment in segments]

    def arrow(self, segment: Segment) -> None:
        self._arrows.append(segment)

    def document(self) -> bytes:
        """The PNG file."""
        width, height = self.width + MARGIN, self.height + MARGIN
        scale = min(SCALE, (MOST_PIXELS / (width * height)) ** 0.5)
        sheet = _Sheet(round(width * scale), round(height * scale), scale)
        ticks = [(segment, kind) for segment, kind in self._lines if kind == "tick"]  # these are below the bars
        for segment, kind in ticks:
            sheet.line(segment, kind)
        for rect in self._rects:
            sheet.rect(*rect)
        for segment, kind in self._lines:
            if kind != "tick":
                sheet.line(segment, kind)
        sheet.texts(self._texts)
        for segment in self._arrows:
            sheet.arrow(segment)
        return sheet.png()


class _Sheet:
    """Pixels 0xrrggbb, ``scale`` of them for a unit of the drawing."""

    def __init__(self, width: int, height: int, scale: float) -> None:
        self.pixels: Pixels = np.full((height, width), WHITE, np.uint32)
        self.scale = scale

    def rect(self, x1: float, y1: float, x2: float, y2: float, fill: str, frame: bool) -> None:
        left, top, right, bottom = (round(v * self.scale) for v in (x1, y1, x2, y2))
        right, bottom = max(right, left + 1), max(bottom, top + 1)
        inside = int(frame)
        if frame:  # neighbours share the line between them
            self.pixels[top : bottom + 1, left : right + 1] = _packed(FRAME)
        if right - left > 2 * inside and bottom - top > 2 * inside:
            self.pixels[top + inside : bottom, left + inside : right] = _packed(fill)

    def line(self, segment: Segment, kind: str) -> None:
        """A line along an axis."""
        x1, y1, x2, y2 = (v * self.scale for v in segment)
        thick = max(1, round(LINES[kind].width * self.scale))
        left, top = round(min(x1, x2) - thick / 2 + 0.5), round(min(y1, y2) - thick / 2 + 0.5)
        right, bottom = round(max(x1, x2) + thick / 2 + 0.5), round(max(y1, y2) + thick / 2 + 0.5)
        if x1 == x2:
            right = left + thick
        else:
            bottom = top + thick
        self.pixels[max(top, 0) : bottom, max(left, 0) : right] = _packed(LINES[kind].colour)

    def texts(self, texts: list[tuple[float, float, str, str, str]]) -> None:
        places: dict[tuple[str, str, str], list[tuple[int, int]]] = {}
        for x, y, content, kind, ink in texts:
            style = TEXTS[kind]
            advance = style.size * GLYPH * self.scale
            shift = {"start": 0.0, "middle": 0.5, "end": 1.0}[style.anchor] * len(content) * advance
            left, base = x * self.scale - shift, round(y * self.scale)
            for number, character in enumerate(content):
                if character != " ":
                    at = (base, round(left + number * advance))
                    places.setdefault((character, kind, ink), []).append(at)
        for (character, kind, ink), glyphs in places.items():
            self._characters(character, kind, ink or TEXTS[kind].colour, np.array(glyphs))

    def _characters(self, character: str, kind: str, ink: str, at: Pixels) -> None:
        """Blend one character into the ground at many places: ``at`` has their baselines and left edges."""
        style = TEXTS[kind]
        mask, dx, dy = _glyph(character, style.size * self.scale, style.bold)
        rows, columns = np.nonzero(mask)
        y, x = at[:, :1] + rows + dy, at[:, 1:] + columns + dx
        inside = (y >= 0) & (y < self.pixels.shape[0]) & (x >= 0) & (x < self.pixels.shape[1])
        cover = np.broadcast_to(mask[rows, columns], y.shape)[inside]
        where = (y * self.pixels.shape[1] + x)[inside]
        flat = self.pixels.reshape(-1)
        flat[where] = _blend(flat[where], ink, cover)

    def arrow(self, segment: Segment) -> None:
        """A smooth slanted line: drawn four times as large in a small picture of its own, then reduced."""
        from PIL import Image, ImageDraw

        style, fine = LINES["arrow"], 4
        head = arrow_head(segment)
        points = [(segment[0], segment[1]), (segment[2], segment[3]), *head]
        left = max(0, int(min(p[0] for p in points) * self.scale) - 3)
        top = max(0, int(min(p[1] for p in points) * self.scale) - 3)
        right = min(self.pixels.shape[1], int(max(p[0] for p in points) * self.scale) + 4)
        bottom = min(self.pixels.shape[0], int(max(p[1] for p in points) * self.scale) + 4)
        if right <= left or bottom <= top:
            return
        mask = Image.new("L", ((right - left) * fine, (bottom - top) * fine))
        draw = ImageDraw.Draw(mask)
        moved = [((x * self.scale - left) * fine, (y * self.scale - top) * fine) for x, y in points]
        level = round(255 * style.opacity)
        draw.line(moved[:2], fill=level, width=max(1, round(style.width * self.scale * fine)))
        draw.polygon(moved[2:], fill=255)
        cover = np.asarray(mask.reduce(fine), np.uint32) * SHADES // 255
        area = self.pixels[top:bottom, left:right]
        area[...] = _blend(area, style.colour, cover)

    def png(self) -> bytes:
        """With a palette where 256 colours are enough: a third of the size, and quicker to pack."""
        from PIL import Image

        used = np.zeros(1 << 24, bool)
        used[self.pixels.reshape(-1)] = True
        colours = np.flatnonzero(used).astype(np.uint32)
        channels = np.stack([colours >> 16 & 255, colours >> 8 & 255, colours & 255], axis=1).astype(np.uint8)
        if len(colours) <= 256:
            number = np.zeros(1 << 24, np.uint8)
            number[colours] = np.arange(len(colours))
            image = Image.fromarray(number[self.pixels], "P")
            image.putpalette(channels.tobytes())
        else:
            parts = [self.pixels >> shift & 255 for shift in (16, 8, 0)]
            image = Image.fromarray(np.stack(parts, axis=2).astype(np.uint8), "RGB")
        file = io.BytesIO()
        dpi = 96 * self.scale
        image.save(file, "PNG", compress_level=6 if self.pixels.size < 4_000_000 else 1, dpi=(dpi, dpi))
        return file.getvalue()


def _blend(ground: Pixels, ink: str, cover: Pixels) -> Pixels:
    """``cover`` of SHADES parts of ink on pixels of the ground."""
    mixed = np.zeros_like(ground)
    for shift, part in zip((16, 8, 0), rgb(ink), strict=True):
        channel = ground >> shift & 255
        mixed |= (channel * (SHADES - cover) + part * cover + SHADES // 2) // SHADES << shift
    return mixed


@cache
def _glyph(character: str, size: float, bold: bool) -> tuple[Pixels, int, int]:
    """The cover of a character in SHADES parts, and where its corner is from the baseline's start."""
    from PIL import ImageFont

    name = "DejaVuSansMono-Bold.ttf" if bold else "DejaVuSansMono.ttf"
    font = ImageFont.truetype(str(FONTS / name), size, layout_engine=ImageFont.Layout.BASIC)
    mask, (dx, dy) = font.getmask2(character, "L", anchor="ls")
    levels = np.array(mask, np.uint32).reshape(mask.size[1], mask.size[0])
    return (levels * SHADES + 127) // 255, dx, dy


def _packed(colour: str) -> int:
    return int(colour[1:], 16)


def _pillow() -> None:
    try:
        import PIL.ImageFont  # noqa: F401 - is it there?
    except ImportError as error:
        raise ArgumentError(
            "PNG needs the package pillow: pip install pillow (SVG, PDF, TeX and text need nothing)"
        ) from error
