"""``tilewright demo``: products, tables and the picture of the README."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.viz.reading import read_svg
from tilewright.cli.demo import draw

PICTURES = Path(__file__).resolve().parents[2] / "docs/pictures"


def test_the_picture_in_the_repository_is_the_one_drawn_today(tmp_path: Path) -> None:
    drawn = draw(tmp_path)
    assert drawn[0].read_text() == (PICTURES / drawn[0].name).read_text()


def test_the_picture_shows_conflicts_gone(tmp_path: Path) -> None:
    without, with_it = read_svg(draw(tmp_path)[0].read_text()).panels
    column = [(row, 3) for row in range(8)]
    assert len({without.numbers()[place] for place in column}) == 1
    assert len({with_it.numbers()[place] for place in column}) == 8


def test_without_pillow_the_svg_is_drawn_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "PIL.ImageFont", None)
    assert [path.suffix for path in draw(tmp_path)] == [".svg"]
