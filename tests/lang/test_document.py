"""docs/language.md is true: its programs run and print what their comments say."""

from __future__ import annotations

import re
from pathlib import Path

from tests.page_programs import run_program

PAGE = Path(__file__).parents[2] / "docs" / "language.md"


def test_the_programs_print_what_the_page_says(tmp_path: Path) -> None:
    program = "\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL))
    printed, _ = run_program(program, tmp_path)
    expected = re.findall(r"^print\(.*\)\s+# (.*)$", program, re.MULTILINE)
    assert printed.splitlines() == expected and len(expected) == 9
