"""PNG and PDF have what the SVG has; files and notebooks are bounded in size."""

from __future__ import annotations

import io
import re
import sys
import xml.etree.ElementTree as ET
import zlib

import numpy as np
import pytest

from tests.viz.kinds import PICTURES, picture, svg
from tests.viz.reading import NS, read_svg
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ArgumentError
from tilewright.layout import ComposedLayout, Layout, Swizzle
from tilewright.sim import Trace
from tilewright.sim.tracing import LaunchRecord, Span
from tilewright.viz import layout_figure, raster_figure, swizzle_figure, timeline
from tilewright.viz.canvas import FONTS, INK, rgb
from tilewright.viz.windows import MOST_BYTES

Image = pytest.importorskip("PIL.Image")
SMALL = [name for name in PICTURES if name not in ("large layout", "repeated mma", "tiled mma", "ldmatrix", "wgmma")]


def pixels(data: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


@pytest.mark.parametrize("name", SMALL)
def test_a_png_has_the_colours_and_the_ink_of_the_svg(name: str) -> None:
    drawn, image = svg(name), pixels(picture(name).png())
    root = ET.fromstring(drawn)
    scale = image.shape[1] / float(root.get("width") or 1)
    assert scale == pytest.approx(2.0, rel=0.01)
    assert image.shape[0] == pytest.approx(2.0 * float(root.get("height") or 1), abs=1.5)
    red, green, blue = np.moveaxis(image.astype(np.int32), 2, 0)  # each (rows, columns)
    colours = red << 16 | green << 8 | blue
    ink = sum(abs(one - wanted) for one, wanted in zip((red, green, blue), rgb(INK), strict=True)) < 120
    for panel in read_svg(drawn).panels:
        for cell in panel.cells.values():
            x, y, width, height = (round(2 * v) for v in cell.box)
            # Most of the cell: text and arrows are over it.
            inside, counts = np.unique(colours[y + 4 : y + height - 4, x + 4 : x + width - 4], return_counts=True)
            assert inside[counts.argmax()] == np.dot(rgb(cell.fill), (1 << 16, 1 << 8, 1))
            written = ink[y + 4 : y + height - 3, x + 4 : x + width - 3].sum()
            assert (written > 8) == bool(cell.lines), (cell, written)


def test_a_large_png_is_smaller_than_a_screen_of_pixels_allows() -> None:
    layout = ComposedLayout(Swizzle(3, 3, 3), 0, Layout((128, 128), (128, 1)))
    image = Image.open(io.BytesIO(swizzle_figure(layout).png()))
    assert image.mode == "P" and 20_000_000 < image.size[0] * image.size[1] <= 36_100_000


def strings(data: bytes) -> list[str]:
    """The texts of a PDF's page, by its own encoding."""
    page = zlib.decompress(re.search(rb"stream\n(.*?)\nendstream", data, re.DOTALL).group(1)).decode()
    differences = re.search(rb"/Differences \[128 ([^\]]*)\]", data)
    names = differences.group(1).decode().split() if differences else []
    found = []
    for codes in re.findall(r"<([0-9a-f]*)> Tj", page):
        code = bytes.fromhex(codes)
        found.append("".join(chr(int(names[c - 128][4:], 16)) if c >= 128 else chr(c) for c in code))
    return found


@pytest.mark.parametrize("name", SMALL)
def test_a_pdf_has_every_label_of_the_svg(name: str) -> None:
    data = picture(name).pdf()
    labels = [text.text or "" for text in ET.fromstring(svg(name)).iter(f"{NS}text")]
    assert sorted(strings(data)) == sorted(labels)


def test_the_font_of_the_package_has_every_character_that_pictures_use() -> None:
    font = pytest.importorskip("PIL.ImageFont").truetype(str(FONTS / "DejaVuSansMono.ttf"), 20)
    missing = bytes(font.getmask("\uffff"))
    used = {"⋯"} | {c for name in SMALL for text in strings(picture(name).pdf()) for c in text} - {" "}
    assert len(used) > 60 and [c for c in sorted(used) if bytes(font.getmask(c)) == missing] == []


def test_a_pdf_is_well_formed() -> None:
    data = picture("slices").pdf()
    assert data.startswith(b"%PDF-1.4") and data.endswith(b"%%EOF\n")
    table = int(re.search(rb"startxref\n(\d+)", data).group(1))
    assert data[table:].startswith(b"xref\n")
    starts = re.findall(rb"(\d{10}) 00000 n", data[table:])
    for number, start in enumerate(starts, 1):
        assert data[int(start) :].startswith(f"{number} 0 obj".encode())
    for length, content in re.findall(rb"/Length (\d+)[^\n]*>>\nstream\n(.*?)\nendstream", data, re.DOTALL):
        assert int(length) == len(content)
    for font in (b"DejaVuSansMono", b"DejaVuSansMono-Bold"):
        assert b"/BaseFont /" + font + b" " in data
    assert b"Kids [3 0 R]" in data


def test_without_pillow_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL.ImageFont", None)
    with pytest.raises(ArgumentError, match="PNG needs the package pillow: pip install pillow"):
        picture("layout").png()
    assert picture("layout").pdf()


@pytest.mark.parametrize(
    "thing",
    [
        Layout((1024, 1024)),
        Layout((1, 100_000)),
        Layout((32, 32, 16)),
        from_dlpack(np.zeros((90, 90), np.float32)),
    ],
)
def test_a_notebook_embeds_a_megabyte_at_most_and_says_what_is_left_out(thing: object) -> None:
    svg = thing._repr_svg_()
    assert 60_000 < len(svg) <= MOST_BYTES
    captions = read_svg(svg).captions
    assert any(caption.startswith("left out") for caption in captions)
    note = "shortened for the notebook; a file, such as .save('picture.svg'), shows more"
    assert (note in captions) == (thing != Layout((1, 100_000)))  # of which a file has 256 cells, too


def test_corners_are_what_is_shown_of_a_large_layout() -> None:
    layout = Layout((1024, 2048), (2048, 1))
    drawing = read_svg(layout._repr_svg_() or "")
    (panel,) = drawing.panels
    rows, columns = ({place[axis] for place in panel.cells} for axis in (0, 1))
    assert {0, 1, 1022, 1023} <= rows and {0, 1, 2046, 2047} <= columns
    assert panel.numbers() == {(i, j): layout((i, j)) for i in rows for j in columns}
    (sentence,) = [caption for caption in drawing.captions if caption.startswith("left out")]
    for what, drawn, extent in (("rows", rows, 1024), ("columns", columns, 2048)):
        first, last = map(int, re.search(rf"{what} (\d+) to (\d+) of {extent}", sentence).groups())
        assert set(range(extent)) - drawn == set(range(first, last + 1))


def test_small_pictures_are_embedded_whole() -> None:
    for name in ("layout", "mma atom", "timeline"):
        assert picture(name)._repr_svg_() == svg(name)


def test_a_long_trace_is_shortened_in_a_notebook() -> None:
    spans = [Span("run", 0, 0, warp, 10 * n, 10 * n + 9) for warp in range(4) for n in range(8000)]
    shown = timeline(Trace([LaunchRecord("kernel", (1, 1, 1), (128, 1, 1), 0, 80_000)], spans, [], {}))
    everything = shown.svg()
    svg = shown._repr_svg_()
    assert len(everything) > MOST_BYTES >= len(svg)
    assert "shortened for the notebook: bars less than" in svg and "a file shows all" in svg
    bars = [g for g in ET.fromstring(svg).iter(f"{NS}g") if g.get("class") == "c"]
    many = [re.fullmatch(r"(\d+) bars", bar.findtext(f"{NS}title") or "") for bar in bars]
    assert sum(int(found.group(1)) if found else 1 for found in many) == 8000  # of the first of the warps


def test_tex_refuses_what_its_memory_cannot_hold() -> None:
    assert raster_figure("along_m", (64, 64)).tex()
    with pytest.raises(ArgumentError, match=r"takes 6.8 million words of TeX's memory of 5 million: save it as .pdf"):
        layout_figure(Layout((1024, 1024))).tex()


def test_tex_refuses_what_is_longer_than_its_longest_length() -> None:
    with pytest.raises(ArgumentError, match=r"is 6.4 m long, and TeX knows no length above 5.7 m: save it as .pdf"):
        layout_figure(Layout((1, 256), (1, 10**10))).tex()
