"""What type checkers read: the programs of the documents, and the examples."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def document(page: Path) -> str:
    """The Python of a page, at its lines; everything else is blank. Of doctests, what is typed in."""
    lines, inside = [], False
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("```"):
            inside = line == "```python"
            lines.append("")
        else:
            lines.append(line if inside else "")
    if any(line.startswith(">>> ") for line in lines):
        lines = [line[4:] if re.match(r"(>>>|\.\.\.)( |$)", line) else "" for line in lines]
    return "\n".join(lines) + "\n"


def documents() -> dict[str, str]:
    """The pages with programs: a file's name, and its text."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    texts = {f"page_{page.stem}.py": document(page) for page in pages}
    return {name: text for name, text in texts.items() if re.search(r"^(import|from) ", text, re.MULTILINE)}


def examples() -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in sorted((ROOT / "examples").glob("*.py"))}
