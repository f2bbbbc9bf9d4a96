"""Pages with the picture of every block beside it: docs/gallery.md and docs/five_posts.

The blocks of a page are one program. Where a block ends in an expression that is a figure, it is drawn; what a block
prints is shown as text.
"""

from __future__ import annotations

import ast
import contextlib
import io
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from tilewright.errors import TilewrightError
from tilewright.explorer.expression import evaluate
from tilewright.explorer.instructions import find

DOCS = Path(__file__).parents[2] / "docs"
PAGES = (DOCS / "gallery.md", *sorted((DOCS / "five_posts").glob("[0-9]*.md")))
NARROW = 52  # columns of code that take half the width of a page
BLOCK = re.compile(r"```python\n(.*?)```\n", re.DOTALL)


class Shown(NamedTuple):
    """A block of the page: its text, the SVG of what it ends in ("" if it is not a figure) and the state in which the
    explorer draws the same ("" if none does), and what it prints."""

    code: str
    svg: str
    state: str
    printed: str


def blocks(page: Path) -> Iterator[Shown]:
    """Run the page's blocks, one after another."""
    text = page.read_text(encoding="utf-8")
    names: dict[str, Any] = {"__name__": page.stem}
    with tempfile.TemporaryDirectory() as folder:
        for number, code in enumerate(BLOCK.findall(text)):
            source = Path(folder) / f"{page.stem}_{number}.py"  # a file, because staging reads the source of kernels
            source.write_text(code, encoding="utf-8")
            tree = ast.parse(code)
            last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
            with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(compile(tree, str(source), "exec"), names)
                value = eval(compile(ast.Expression(last.value), str(source), "eval"), names) if last else None
            svg = value.svg() if hasattr(value, "svg") else ""
            yield Shown(code, svg, explored(getattr(value, "title", "")), printed.getvalue().rstrip())


def explored(title: str) -> str:
    """The explorer's state for a figure: where its title is an expression of layouts, or the name of an instruction.

    >>> explored("zipped_divide(8:1, 2) = (2,4):(1,2)"), explored("SM75_U32x4_LDSM_N"), explored("a race")
    ('layouts?expression=zipped_divide%288%3A1%2C+2%29', 'threads?atom=SM75_U32x4_LDSM_N', '')
    """
    text = title.split(" = ")[0]
    for tab, name, known in (("layouts", "expression", evaluate), ("threads", "atom", find)):
        try:
            known(text)
        except TilewrightError:
            continue
        return f"{tab}?{urlencode({name: text})}"
    return ""


def write(folder: Path) -> None:
    """Draw the pictures of all pages into folders beside them, and put them into the pages."""
    for page in PAGES:
        write_page(page, folder / page.relative_to(DOCS))


def write_page(source: Path, page: Path) -> None:
    """Draw the pictures of one page into the folder of its name, and put them into ``page``."""
    pictures = page.with_suffix("")
    pictures.mkdir(parents=True, exist_ok=True)
    text = page.read_text(encoding="utf-8")
    for number, shown in enumerate(blocks(source)):
        block = f"```python\n{shown.code}```\n"
        after = ""
        if shown.svg:
            (pictures / f"{number}.svg").write_text(shown.svg, encoding="utf-8")
            what = shown.code.rstrip().splitlines()[-1].split("(")[0].replace("_", " ")
            said = text.split(block)[0].rstrip().rsplit("\n\n", 1)[-1]  # the paragraph above the block
            what = (
                what
                if said.startswith(("```", "#", "</div>", "![", "[In the explorer]"))
                else " ".join(said.split()).replace("`", "")
            )
            after = f"\n![{what}]({page.stem}/{number}.svg)\n"
            if shown.state:
                up = "../" * len(source.relative_to(DOCS).parent.parts)
                after += f"\n[In the explorer]({up}explorer/index.html#{shown.state})\n"
        elif shown.printed:
            after = f"\n``` {{ .text .output }}\n{shown.printed}\n```\n"
        if after:  # narrow code has its picture beside it, other code above it
            beside = max(map(len, block.splitlines())) <= NARROW
            both = f'<div class="beside" markdown>\n\n{block}{after}\n</div>\n' if beside else f"{block}{after}\n"
            text = text.replace(block, both, 1)
    page.write_text(text, encoding="utf-8")
