"""What other sites show of a page that someone links to: its title, a sentence, and a picture (Open Graph)."""

from __future__ import annotations

import os
import re
from html import escape, unescape
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from tilewright.viz.canvas import FONTS

ADDRESS = "SITE_ADDRESS"
"""The variable with the address at which the site will be. Without it the card's picture has a relative address, which
some readers of Open Graph do not follow."""
PICTURE, SIZE = "assets/card.png", (1200, 630)
SUBJECT = "CuTe in open Python: one kernel, a checking simulator, CUDA C++"
TITLE = re.compile(r"<title>(.*?)</title>")
SENTENCE = re.compile(r'<meta name="description" content="([^"]*)">')


def add(text: str, page: Path, base: str) -> str:
    """The HTML of a page with the properties of its card; ``base`` leads from the page to the site's root."""
    title, sentence = TITLE.search(text), SENTENCE.search(text)
    if title is None:
        return text
    address = os.environ.get(ADDRESS, "").rstrip("/")
    properties = {
        "og:type": "website",
        "og:title": unescape(title[1]),
        "og:description": unescape(sentence[1]) if sentence else "",
        "og:image": f"{address or base}/{PICTURE}",
        "og:image:alt": "A shared-memory tile without and with its swizzle",
    }
    if address:
        properties["og:url"] = f"{address}/{page.as_posix()}"
    tags = [f'<meta property="{name}" content="{escape(said)}">' for name, said in properties.items() if said]
    tags.append('<meta name="twitter:card" content="summary_large_image">')
    return text.replace(title[0], "\n".join([title[0], *tags]), 1)


def draw(pictures: Path, target: Path) -> None:
    """Write the card's picture, 1200 x 630 pixels: the project's name, what it is, and the tile of the first page."""
    sheet = Image.new("RGB", SIZE, "#ffffff")
    pen = ImageDraw.Draw(sheet)
    pen.text((60, 48), "Tilewright", font=ImageFont.truetype(FONTS / "DejaVuSansMono-Bold.ttf", 64), fill="#10161c")
    pen.text((60, 136), SUBJECT, font=ImageFont.truetype(FONTS / "DejaVuSansMono.ttf", 25), fill="#4d5863")
    tile = Image.open(pictures / "swizzled_tile.png").convert("RGB")
    tile.thumbnail((SIZE[0] - 120, SIZE[1] - 220), Image.Resampling.LANCZOS)
    sheet.paste(tile, ((SIZE[0] - tile.width) // 2, 200))
    target.parent.mkdir(parents=True, exist_ok=True)
    sheet.save(target, optimize=True)
