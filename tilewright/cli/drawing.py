"""Writing pictures into the files that ``--svg`` and ``--tex`` name."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from tilewright.errors import ArgumentError
from tilewright.viz import Figure

PICTURES, LATEX = (".svg", ".png", ".pdf"), (".tex",)


def check_names(svg: Path | None, tex: Path | None) -> None:
    """Refuse a name with another ending, or in a folder that does not exist, before any work is done."""
    for path, endings in ((svg, PICTURES), (tex, LATEX)):
        if path is None:
            continue
        if path.suffix.lower() not in endings:
            raise ArgumentError(f"cannot draw into {path}: the name must end in {' or '.join(endings)}")
        if not path.parent.is_dir():
            raise ArgumentError(f"cannot write {path}: there is no folder {path.parent}")


def draw(figure: Figure, svg: Path | None, tex: Path | None, console: Console) -> None:
    """Write ``figure`` into the files asked for, and say so."""
    for path in filter(None, (svg, tex)):
        figure.save(path)
        console.print(f"drawn into {path}", markup=False, highlight=False)
