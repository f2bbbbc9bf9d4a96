"""Bring the table of sizes in docs/architecture.md up to date: the lines of Python of each package.

python tools/lines.py
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "architecture.md"


def lines(package: str) -> int:
    files = (ROOT / "tilewright" / package).rglob("*.py")
    return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)


def main() -> None:
    row = re.compile(r"^\| `([\w/]+)` \| ([\d,]+) \| [\d,]+ \|$", re.MULTILINE)
    text = PAGE.read_text(encoding="utf-8")
    text = row.sub(lambda found: f"| `{found[1]}` | {found[2]} | {lines(found[1]):,} |", text)
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
