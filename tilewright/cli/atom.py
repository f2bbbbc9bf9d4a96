"""``tilewright atom``: an instruction by its CuTe name, its thread-value layouts, and its picture."""

from __future__ import annotations

import difflib
from pathlib import Path

from rich.console import Console

from tilewright.atoms.copy import CopyInstruction
from tilewright.atoms.copy_table import COPIES
from tilewright.atoms.fma import FMA
from tilewright.atoms.mma import Mma
from tilewright.atoms.mma_sync_table import MMA_SYNC
from tilewright.atoms.names import copy_by_name, mma_by_name
from tilewright.cli.drawing import check_names, draw
from tilewright.errors import ArgumentError, ConstraintError
from tilewright.viz import copy_atom_figure, mma_atom_figure
from tilewright.viz.thread_values import in_values

WGMMA = "SM90_64x64x16_F32F16F16_SS<K,K>"  # wgmma atoms have too many names to list; this one shows how they look


def run(name: str | None, value_bits: int, svg: Path | None, tex: Path | None) -> None:
    """Print the layouts of the instruction called ``name`` and draw it if asked; without a name, list the names."""
    check_names(svg, tex)
    console = Console(highlight=False)
    if name is None:
        for known in (*FMA, *MMA_SYNC, WGMMA, *COPIES):
            console.print(known, markup=False)
        return
    atom = find(name)
    for title, layout in layouts(atom, value_bits):
        console.print(f"{title + ':':<12}{layout}", markup=False, soft_wrap=True)
    if svg or tex:
        draw(mma_atom_figure(atom) if isinstance(atom, Mma) else copy_atom_figure(atom, value_bits), svg, tex, console)


def find(name: str) -> Mma | CopyInstruction:
    """The instruction called ``name``; the error of an unknown one names the nearest known."""
    for lookup in (mma_by_name, copy_by_name):
        try:
            return lookup(name)
        except ConstraintError:
            continue
    known = (*FMA, *MMA_SYNC, WGMMA, *COPIES)
    near = [k for k in known if k.startswith(name)] or difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]}?" if near else "`tilewright atom` lists them"
    raise ArgumentError(f"there is no atom {name!r}; {hint}")


def layouts(atom: Mma | CopyInstruction, value_bits: int) -> list[tuple[str, object]]:
    """What an atom consists of, by title; the layouts of a copy count values of ``value_bits`` bits."""
    if isinstance(atom, Mma):
        m, n, k = atom.shape_mnk
        shape = ("Shape MNK", f"({m},{n},{k})")
        return [("ThrID", atom.thr_id), shape, ("A", atom.layout_a), ("B", atom.layout_b), ("C", atom.layout_c)]
    source, destination = in_values(atom, value_bits)
    return [("ThrID", atom.thr_id), ("Value bits", value_bits), ("Source", source), ("Destination", destination)]
