"""Pictures of the built pages: inline, so that hovering says what a cell is and the page's dark form is theirs, too.

Markdown names a picture's file, which is what GitHub shows. In the site the file's drawing takes the place of the
``img``; ``assets/pictures.js`` enlarges it on a click, ``assets/site.css`` has its dark form.
"""

from __future__ import annotations

import re
from html import escape, unescape
from itertools import count
from pathlib import Path
from urllib.parse import unquote

OWN = 'class="tilewright"'  # of the drawings of tilewright.viz; others stay files
IMAGE = re.compile(r'<p><img alt="([^"]*)" src="([^"]+\.svg)" ?/?></p>|<img alt="([^"]*)" src="([^"]+\.svg)" ?/?>')
LABEL = re.compile(r'aria-label="[^"]*"')


def inline(text: str, page: Path) -> str:
    """The text of an HTML page with the drawings that its images name.

    A drawing's label is the image's text. Arrow heads are named apart, because an identifier occurs once in a page.
    """
    numbers = count()

    def drawing(match: re.Match[str]) -> str:
        said, name = match[1] or match[3] or "", match[2] or match[4]
        if "://" in name or not (file := page.parent / unquote(name)).is_file():
            return match[0]
        svg = file.read_text(encoding="utf-8")
        if OWN not in svg[:400]:
            return match[0]
        svg = LABEL.sub(f'aria-label="{escape(unescape(said))}"', svg, count=1) if said else svg
        svg = svg.replace("tilewright-head", f"tilewright-head-{next(numbers)}").replace("\n", " ").strip()
        return f'<figure class="picture">{svg}</figure>'

    return IMAGE.sub(drawing, text)
