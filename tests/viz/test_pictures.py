"""The pictures of the documentation are what the program draws today, and the pages show all of them."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_pictures_are_up_to_date() -> None:
    assert runpy.run_path(str(ROOT / "tools" / "pictures.py"))["outdated"]() == []


def test_the_pages_show_them() -> None:
    pages = "".join((ROOT / "docs" / name).read_text() for name in ("layouts.md", "models.md"))
    shown = re.findall(r"!\[.+\]\(pictures/(\w+\.svg)\)", pages)
    assert sorted(shown) == sorted(runpy.run_path(str(ROOT / "tools" / "pictures.py"))["figures"]())
