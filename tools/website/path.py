"""The steps of docs/path: their programs run, and their pages with the pictures that they draw."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
from pathlib import Path

from tools.website.kept import ROOT, kept

STEPS = sorted((ROOT / "docs" / "path").glob("[0-9]*.md"))
BLOCK = re.compile(r"```python\n(.*?)```\n", re.DOTALL)


def blocks(step: Path) -> list[str]:
    """The blocks of the page; the last one asks the exercise."""
    return BLOCK.findall(step.read_text(encoding="utf-8"))


def program(step: Path) -> str:
    return "\n".join(blocks(step))


def executed(step: Path) -> tuple[list[str], Path]:
    """The lines that the program of the page prints, and the folder with the program and what it draws."""
    folder = kept("path", step)
    if not folder.exists():
        part = folder.with_suffix(f".{os.getpid()}")
        part.mkdir()
        source = part / f"{step.stem}.py"  # a file, because staging reads the source of kernels
        source.write_text(program(step), encoding="utf-8")
        names = {"__name__": step.stem, "__file__": str(source)}
        with contextlib.chdir(part), contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(source.read_text(encoding="utf-8"), str(source), "exec"), names)
        (part / "printed.txt").write_text(printed.getvalue(), encoding="utf-8")
        with contextlib.suppress(OSError):  # another process was quicker
            part.rename(folder)
    return (folder / "printed.txt").read_text(encoding="utf-8").splitlines(), folder


def write(folder: Path) -> None:
    """Put the programs and their pictures into ``folder``, and the pictures into the pages there."""
    for step in STEPS:
        _, made = executed(step)
        shutil.copy(made / f"{step.stem}.py", folder)
        pictures = sorted(made.glob("*.svg"))
        page = folder / step.name
        title, _, text = page.read_text(encoding="utf-8").partition("\n")
        for block in BLOCK.finditer(text):
            if ".save(" in block[1]:
                text = text.replace(block[0], block[0] + _shown(pictures, step.stem), 1)
        for picture in pictures:
            shutil.copy(picture, folder / f"{step.stem}_{picture.name}")
        page.write_text(f"{title}\n\n[Download the program]({step.stem}.py){{ download }}\n{text}", encoding="utf-8")


def _shown(pictures: list[Path], step: str) -> str:
    links = (f"![{picture.stem.replace('_', ' ')}]({step}_{picture.name})" for picture in pictures)
    return "\n" + "\n\n".join(links) + "\n"
