"""docs/wgmma.md is true: its program runs and prints what it says; without the wait it computes something else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.page_programs import run_program

PAGE = (Path(__file__).parents[2] / "docs" / "wgmma.md").read_text()
(PROGRAM,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def run(program: str, folder: Path) -> list[str]:
    printed, _ = run_program(program, folder)
    return printed.splitlines()


def test_the_program_prints_what_the_page_says(tmp_path: Path) -> None:
    expected = re.findall(r"^print\(.*\)\s+# (.*)$", PROGRAM, re.MULTILINE)
    assert run(PROGRAM, tmp_path) == expected and expected


@pytest.mark.tilewright_check("none")  # a wait is missing on purpose
def test_accumulators_read_without_a_wait_are_refused(tmp_path: Path) -> None:
    assert PROGRAM.count("warpgroup.wait_group(0)") == 1
    assert run(PROGRAM.replace("warpgroup.wait_group(0)", "pass"), tmp_path) == ["False"]
