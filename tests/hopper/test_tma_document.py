"""docs/tma.md is true: its program runs and prints what the page says; without the wait it is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.page_programs import run_program
from tilewright.errors import SimulationError

PAGE = (Path(__file__).parents[2] / "docs" / "tma.md").read_text()
(PROGRAM,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def run(program: str, folder: Path) -> str:
    printed, _ = run_program(program, folder)
    return printed.strip()


def test_the_program_prints_what_the_page_says(tmp_path: Path) -> None:
    printed = run(PROGRAM, tmp_path)
    assert printed.startswith("tensor<") and f"program prints `{printed}`" in PAGE


def test_store_without_its_wait_is_refused(tmp_path: Path) -> None:
    assert PROGRAM.count("cute.arch.cp_async_bulk_wait_group(0, read=True)") == 1
    with pytest.raises(SimulationError, match="threads have all ended"):
        run(PROGRAM.replace("cute.arch.cp_async_bulk_wait_group(0, read=True)", "pass"), tmp_path)
