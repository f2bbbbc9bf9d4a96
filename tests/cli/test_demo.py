"""``tilewright demo``: the product, the race, and the pictures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from rich.console import Console

from tests.viz.reading import read_svg
from tilewright.cli.demo import draw, multiply, run

PICTURES = Path(__file__).resolve().parents[2] / "docs/pictures"


def test_the_picture_in_the_repository_is_the_one_drawn_today(tmp_path: Path) -> None:
    drawn = draw(tmp_path)
    assert drawn[0].read_text() == (PICTURES / drawn[0].name).read_text()


def test_the_picture_shows_conflicts_gone(tmp_path: Path) -> None:
    without, with_it = read_svg(draw(tmp_path)[0].read_text()).panels
    accessed = [place for place, cell in without.cells.items() if cell.fill != "#ffffff"]
    assert len(accessed) == 8
    assert {tuple(without.cells[place].lines) for place in accessed} == {("0", "x8")}
    assert len({tuple(with_it.cells[place].lines) for place in accessed} & {(str(bank),) for bank in range(32)}) == 8


def test_without_pillow_the_svg_is_drawn_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "PIL.ImageFont", None)
    assert [path.suffix for path in draw(tmp_path)] == [".svg"]


def test_the_demo_finds_the_race_and_says_both_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("cpu", tmp_path)
    out = capsys.readouterr().out
    assert re.search(r"write by .*tile\[t\] = x\[t\]\n.*read by .*y\[t\] = tile\[THREADS - 1 - t\]", out), out
    assert "1 finding" in out and "ldmatrix" not in out
    shown = "data-race" + out.partition("data-race")[2].partition("1 finding")[0]
    for page in ("README.md", "docs/index.md"):
        assert shown in (PICTURES.parents[1] / page).read_text(encoding="utf-8"), page
    assert "TMA" in (tmp_path / "hopper_timeline.svg").read_text()


def test_verbose_shows_the_instructions(capsys: pytest.CaptureFixture[str]) -> None:
    multiply(Console(), "cpu", verbose=True)
    assert "ldmatrix.x4" in capsys.readouterr().out
