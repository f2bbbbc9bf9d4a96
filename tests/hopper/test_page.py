"""docs/hopper.md is true: its programs run, print what it says, and draw its pictures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.hopper_pictures import FOLDER, PAGE, content, run


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], Path]:
    folder = tmp_path_factory.mktemp("page")
    return run(folder), folder


def test_the_programs_print_what_the_page_says(drawn: tuple[list[str], Path]) -> None:
    program = "\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL))
    expected = re.findall(r"^print\(.*\)\s+# (.*)$", program, re.MULTILINE)
    printed = [line for line in drawn[0] if not line.startswith("tensor<")]
    assert printed == expected and len(expected) == 8
    assert drawn[0][0] in PAGE.read_text()


def test_the_pictures_are_current(drawn: tuple[list[str], Path]) -> None:
    """Every row with its bars in order; a model time that has moved a little makes no picture wrong."""
    named = set(re.findall(r"\]\(pictures/(\w+\.svg)\)", PAGE.read_text()))
    assert named == {path.name for path in drawn[1].glob("*.svg")} and len(named) == 6
    stale = [name for name in sorted(named) if content(FOLDER / name) != content(drawn[1] / name)]
    assert stale == [], "draw them anew: python -m tools.hopper_pictures"
