"""Writing pictures into the files that ``--svg`` and ``--tex`` name."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from tilewright.errors import ArgumentError
from tilewright.viz import Figure


def check_names(svg: Path | None, tex: Path | None) -> None:
    """Refuse a name whose suffix does not fit before any work is done."""
    for path, suffix, kind in ((svg, ".svg", "an SVG"), (tex, ".tex", "a LaTeX")):
        if path is not None and path.suffix != suffix:
            raise ArgumentError(f"{path}: the name of {kind} file must end in {suffix}")


def draw(figure: Figure, svg: Path | None, tex: Path | None, console: Console) -> None:
    """Write ``figure`` into the files asked for, and say so."""
    for path in filter(None, (svg, tex)):
        figure.save(path)
        console.print(f"drawn into {path}", markup=False, highlight=False)
