"""Drawings as PDF, with lines and characters that stay sharp at any size: one page, its font inside, no other package.

The format is that of ISO 32000-1; what is used of it fits here, where a general library would be a dependency.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable

from tilewright.viz.canvas import FONTS, FRAME, GLYPH, LINES, MARGIN, TEXTS, Canvas, Segment, arrow_head, rgb

POINTS = 0.75  # a pixel of the drawing in points of 1/72 inch
FILES = ("DejaVuSansMono.ttf", "DejaVuSansMono-Bold.ttf")
FIRST_CODE = 128  # of characters that are not ASCII, in the order in which they come


class PdfCanvas(Canvas):
    """Collects the operators of the page."""

    def __init__(self) -> None:
        super().__init__()
        self._back: list[str] = []  # ticks
        self._fills: list[str] = []
        self._front: list[str] = []
        self._codes: dict[str, int] = {}

    def rect(self, x: float, y: float, width: float, height: float, fill: str, frame: bool = True) -> None:
        self._fills.append(f"{_colour(fill)} rg {x:.2f} {y:.2f} {width:.2f} {height:.2f} re {'B' if frame else 'f'}")
        self.reach(x + width, y + height)

    def text(self, x: float, y: float, content: str, kind: str, ink: str = "") -> None:
        style = TEXTS[kind]
        shift = {"start": 0.0, "middle": 0.5, "end": 1.0}[style.anchor] * style.width(content)
        codes = bytes(self._code(character) for character in content).hex()
        self._front.append(
            f"{_colour(ink or style.colour)} rg BT /F{int(style.bold)} {style.size:g} Tf "
            f"1 0 0 -1 {x - shift:.2f} {y:.2f} Tm <{codes}> Tj ET"
        )

    def lines(self, segments: Iterable[Segment], kind: str) -> None:
        style = LINES[kind]
        path = " ".join(f"{x1:.2f} {y1:.2f} m {x2:.2f} {y2:.2f} l" for x1, y1, x2, y2 in segments)
        if path:
            to = self._back if kind == "tick" else self._front
            to.append(f"q 2 J {style.width:g} w {_colour(style.colour)} RG {path} S Q")

    def arrow(self, segment: Segment) -> None:
        style = LINES["arrow"]
        x1, y1, x2, y2 = segment
        (ax, ay), (bx, by), (cx, cy) = arrow_head(segment)
        self._front.append(
            f"q {style.width:g} w {_colour(style.colour)} RG {_colour(style.colour)} rg "
            f"{x1:.2f} {y1:.2f} m {x2:.2f} {y2:.2f} l S {ax:.2f} {ay:.2f} m {bx:.2f} {by:.2f} l {cx:.2f} {cy:.2f} l f Q"
        )

    def document(self, title: str) -> bytes:
        """The PDF file."""
        width, height = (self.width + MARGIN) * POINTS, (self.height + MARGIN) * POINTS
        # The drawing's y runs down, the page's up.
        start = f"{POINTS} 0 0 {-POINTS} 0 {height:.2f} cm 0.6 w {_colour(FRAME)} RG"
        page = "\n".join([start, *self._back, *self._fills, *self._front]).encode("ascii")
        names = " ".join(f"/uni{ord(character):04X}" for character in self._codes)
        differences = f" /Differences [{FIRST_CODE} {names}]" if names else ""
        last = 255 if names else 126
        widths = " ".join([f"{GLYPH * 1000:g}"] * (last - 31))
        objects: list[bytes] = [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {width:.2f} {height:.2f}] /Contents 4 0 R "
            "/Resources << /Font << /F0 6 0 R /F1 9 0 R >> >> >>".encode(),
            _stream(page),
            f"<< /Title <FEFF{title.encode('utf-16-be').hex()}> /Producer (tilewright) >>".encode(),
        ]
        for number, file in enumerate(FILES):
            first = 6 + 3 * number
            name = file.removesuffix(".ttf")
            data = (FONTS / file).read_bytes()
            objects += [
                f"<< /Type /Font /Subtype /TrueType /BaseFont /{name} /FirstChar 32 /LastChar {last} "
                f"/Widths [{widths}] /FontDescriptor {first + 1} 0 R "
                f"/Encoding << /Type /Encoding /BaseEncoding /WinAnsiEncoding{differences} >> >>".encode(),
                f"<< /Type /FontDescriptor /FontName /{name} /Flags 33 /FontBBox [-558 -375 718 1042] /ItalicAngle 0 "
                f"/Ascent 928 /Descent -236 /CapHeight 729 /StemV 80 /FontFile2 {first + 2} 0 R >>".encode(),
                _stream(data, f" /Length1 {len(data)}"),
            ]
        return _file(objects)

    def _code(self, character: str) -> int:
        if " " <= character <= "~":
            return ord(character)
        if character not in self._codes:
            if FIRST_CODE + len(self._codes) > 255:
                return ord("?")
            self._codes[character] = FIRST_CODE + len(self._codes)
        return self._codes[character]


def _colour(colour: str) -> str:
    return " ".join(f"{part / 255:.3g}" for part in rgb(colour))


def _stream(data: bytes, more: str = "") -> bytes:
    packed = zlib.compress(data, 9 if len(data) < 1_000_000 else 6)
    return f"<< /Length {len(packed)} /Filter /FlateDecode{more} >>\nstream\n".encode() + packed + b"\nendstream"


def _file(objects: list[bytes]) -> bytes:
    """Objects numbered from 1, the table of where they begin, and the trailer; the fifth describes the document."""
    out = bytearray(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
    starts = []
    for number, content in enumerate(objects, 1):
        starts.append(len(out))
        out += f"{number} 0 obj\n".encode() + content + b"\nendobj\n"
    table = len(out)
    out += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    out += b"".join(f"{start:010d} 00000 n \n".encode() for start in starts)
    out += f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R /Info 5 0 R >>\nstartxref\n{table}\n%%EOF\n".encode()
    return bytes(out)
