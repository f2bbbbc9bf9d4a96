"""``tilewright atom``: an instruction by its CuTe name, its thread-value layouts, and its picture."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from tilewright.atoms.mma import Mma
from tilewright.cli.drawing import check_names, draw
from tilewright.explorer.instructions import find, groups, layouts, names, summary
from tilewright.viz import copy_atom_figure, mma_atom_figure


def run(name: str | None, value_bits: int, svg: Path | None, tex: Path | None) -> None:
    """Print the layouts of the instruction called ``name`` and draw it if asked; without a name, list the names."""
    check_names(svg, tex)
    console = Console(highlight=False)
    if name is None:
        for title, group in groups().items():
            console.print(f"{title} ({len(group)})", style="bold", markup=False)
            for known in group:
                console.print(f"  {known}", markup=False)
        console.print(
            "`tilewright atom SM80` lists the names that begin so with a line each", style="dim", markup=False
        )
        return
    matches = [known for known in names() if known.startswith(name)]
    if name not in matches and len(matches) > 1:
        for known in matches:
            console.print(f"{known:<48} {summary(find(known))}", markup=False, soft_wrap=True)
        return
    atom = find(name)
    for title, layout in layouts(atom, value_bits):
        console.print(f"{title + ':':<12}{layout}", markup=False, soft_wrap=True)
    if svg or tex:
        draw(mma_atom_figure(atom) if isinstance(atom, Mma) else copy_atom_figure(atom, value_bits), svg, tex, console)
