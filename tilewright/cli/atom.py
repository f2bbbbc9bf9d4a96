"""``tilewright atom``: an instruction by its CuTe name, its thread-value layouts, and its picture."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from tilewright.atoms.copy import CopyInstruction
from tilewright.atoms.mma import Mma
from tilewright.cli.drawing import check_names, draw
from tilewright.errors import ArgumentError
from tilewright.explorer.instructions import find, groups, layouts, names, summary
from tilewright.viz import Figure, copy_atom_figure, mma_atom_figure, scale_factors_figure, tensor_memory_figure


def run(
    name: str | None, value_bits: int, svg: Path | None, tex: Path | None, load: str | None, factors: str | None
) -> None:
    """Print the layouts of the instruction called ``name`` and draw it if asked; without a name, list the names.
    ``load``, ``factors``: of a tcgen05.mma, draw who loads the accumulators, or an operand's scale factors, instead.
    """
    check_names(svg, tex)
    if (load or factors) and not (svg or tex):
        raise ArgumentError("--load and --factors say what is drawn: name a file with --svg or --tex")
    if load and factors:
        raise ArgumentError("--load and --factors are two pictures: ask for one of them")
    console = Console(highlight=False)
    if name is None:
        for title, group in groups().items():
            console.print(f"{title} ({len(group)})", style="bold", markup=False)
            for atom_name in group:
                console.print(f"  {atom_name}", markup=False)
        console.print(
            "`tilewright atom SM80` lists the names that begin so with a line each", style="dim", markup=False
        )
        return
    matches = [atom_name for atom_name in names() if atom_name.startswith(name)]
    if name not in matches and len(matches) > 1:
        for atom_name in matches:
            console.print(f"{atom_name:<48} {summary(find(atom_name))}", markup=False, soft_wrap=True)
        return
    atom = find(name)
    for title, layout in layouts(atom, value_bits):
        console.print(f"{title + ':':<12}{layout}", markup=False, soft_wrap=True)
    if svg or tex:
        draw(_figure(atom, value_bits, load, factors), svg, tex, console)


def _figure(atom: Mma | CopyInstruction, value_bits: int, load: str | None, factors: str | None) -> Figure:
    if load:
        return tensor_memory_figure(atom, find(load))
    if factors:
        return scale_factors_figure(atom, factors)
    return mma_atom_figure(atom) if isinstance(atom, Mma) else copy_atom_figure(atom, value_bits)
