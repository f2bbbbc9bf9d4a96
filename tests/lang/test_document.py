"""docs/language.md is true: its programs run and print what stands behind them."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "language.md"


def test_the_programs_print_what_the_page_says(tmp_path: Path) -> None:
    source = tmp_path / "page.py"  # a file, because staging reads the source of kernels
    source.write_text("\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)))
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(source.read_text(), str(source), "exec"), {"__name__": "page", "__file__": str(source)})
    expected = re.findall(r"^print\(.*\)\s+# (.*)$", source.read_text(), re.MULTILINE)
    assert printed.getvalue().splitlines() == expected and len(expected) == 9
