"""Bring the table of sizes in docs/architecture.md up to date: the lines of Python of each package.

python tools/lines.py
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "architecture.md"


def lines(package: str) -> int:
    return sum(len(file.read_text().splitlines()) for file in (ROOT / "tilewright" / package).rglob("*.py"))


def main() -> None:
    row = re.compile(r"^\| `([\w/]+)` \| ([\d,]+) \| [\d,]+ \|$", re.MULTILINE)
    PAGE.write_text(row.sub(lambda found: f"| `{found[1]}` | {found[2]} | {lines(found[1]):,} |", PAGE.read_text()))


if __name__ == "__main__":
    main()
