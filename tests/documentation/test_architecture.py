"""docs/architecture.md against the packages that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools import packages

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_the_picture_follows_the_import_contract() -> None:
    assert packages.PICTURE.read_text(encoding="utf-8") == packages.svg(), "run python -m tools.packages"
    shown = [name for row in packages.layers() for name in row]
    assert sorted(shown) == sorted(packages.SUBJECTS)


@pytest.mark.parametrize("name", [name for row in packages.layers() for name in row if name != "cute_viz"])
def test_the_table_has_each_package(name: str) -> None:
    file = (ROOT / "tilewright" / name).is_dir()
    assert f"`{name}/`" in PAGE if file else f"`{name}.py`" in PAGE


def test_the_files_that_it_names_are_there() -> None:
    named = re.findall(r"`((?:\w+/)+\w+\.py)`", PAGE)
    assert len(named) > 10 and [path for path in named if not (ROOT / "tilewright" / path).exists()] == []


def test_architecture_page_is_read_in_ten_minutes() -> None:
    text = re.sub(r"```python\n.*?```", "", PAGE, flags=re.DOTALL)
    assert sum(any(map(str.isalnum, word)) for word in text.split()) < 2000  # at 200 words a minute
