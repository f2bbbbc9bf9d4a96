"""The gallery: docs/gallery.md, with the picture of every block beside it.

The blocks of the page are one program. Where a block ends in an expression that is a figure, it is drawn; what a block
prints is shown as text.
"""

from __future__ import annotations

import ast
import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

PAGE = Path(__file__).parents[2] / "docs" / "gallery.md"
BLOCK = re.compile(r"```python\n(.*?)```\n", re.DOTALL)


class Shown(NamedTuple):
    """A block of the page: its text, the SVG of what it ends in ("" if it is not a figure), and what it prints."""

    code: str
    svg: str
    printed: str


def blocks() -> Iterator[Shown]:
    """Run the page's blocks, one after another."""
    names: dict[str, Any] = {"__name__": "gallery"}
    for code in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        tree = ast.parse(code)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(tree, str(PAGE), "exec"), names)
            value = eval(compile(ast.Expression(last.value), str(PAGE), "eval"), names) if last else None
        yield Shown(code, value.svg() if hasattr(value, "svg") else "", printed.getvalue().rstrip())


def write(folder: Path) -> None:
    """Draw the pictures into ``folder``/gallery, and put them into the page there."""
    pictures = folder / "gallery"
    pictures.mkdir(parents=True, exist_ok=True)
    page = folder / PAGE.name
    text = page.read_text(encoding="utf-8")
    for number, shown in enumerate(blocks()):
        block = f"```python\n{shown.code}```\n"
        after = ""
        if shown.svg:
            (pictures / f"{number}.svg").write_text(shown.svg, encoding="utf-8")
            what = shown.code.rstrip().splitlines()[-1].split("(")[0].replace("_", " ")
            said = text.split(block)[0].rstrip().rsplit("\n\n", 1)[-1]  # the paragraph above the block
            what = what if said.startswith(("```", "#", "</div>")) else " ".join(said.split()).replace("`", "")
            after = f"\n![{what}](gallery/{number}.svg)\n"
        elif shown.printed:
            after = f"\n``` {{ .text .output }}\n{shown.printed}\n```\n"
        if after:
            text = text.replace(block, f'<div class="beside" markdown>\n\n{block}{after}\n</div>\n', 1)
    page.write_text(text, encoding="utf-8")
