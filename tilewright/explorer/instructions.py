"""Instructions by their CuTe names: what there is, how one is found, what it consists of."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from tilewright.atoms.copy import CopyInstruction
from tilewright.atoms.copy_table import COPIES
from tilewright.atoms.fma import FMA
from tilewright.atoms.mma import Mma
from tilewright.atoms.mma_sync_table import MMA_SYNC
from tilewright.atoms.names import copy_by_name, mma_by_name
from tilewright.atoms.wgmma_sparse import SparseWgmmaAtom
from tilewright.errors import ArgumentError, ConstraintError
from tilewright.layout import size
from tilewright.viz.thread_values import in_values

WGMMA = "SM90_64x64x16_F32F16F16_SS<K,K>"  # wgmma atoms have too many names to list; this one shows how they look


def groups() -> dict[str, list[str]]:
    """The names by what the instructions do."""
    mma: dict[str, Iterable[str]] = {"Multiply and add, one thread": FMA, "Tensor cores, one warp (mma.sync)": MMA_SYNC}
    copies: dict[str, list[str]] = {}
    for name in COPIES:
        family = {
            "LDSM": "Load matrices from shared memory (ldmatrix)",
            "STSM": "Store matrices to it (stmatrix)",
            "CP_ASYNC": "Asynchronous copies to shared memory (cp.async)",
        }
        title = next((title for part, title in family.items() if part in name), "Other copies")
        copies.setdefault(title, []).append(name)
    wgmma = {"Tensor cores, four warps (wgmma; an example of their names)": [WGMMA]}
    return {title: list(names) for title, names in mma.items()} | wgmma | copies


def names() -> list[str]:
    """All names that :func:`groups` lists."""
    return [name for names in groups().values() for name in names]


def summary(atom: Mma | CopyInstruction) -> str:
    """One line about an instruction.

    >>> summary(find("SM80_16x8x16_F32F16F16F32_TN")), summary(find("SM75_U32x4_LDSM_N"))
    ('16 x 8 x 16 by 32 threads', 'copy by 32 threads')
    """
    threads = size(atom.thr_id)
    by = "1 thread" if threads == 1 else f"{threads} threads"
    return f"{' x '.join(map(str, atom.shape_mnk))} by {by}" if isinstance(atom, Mma) else f"copy by {by}"


def find(name: str) -> Mma | CopyInstruction:
    """The instruction called ``name``; the error of an unknown one names the nearest known."""
    for lookup in (mma_by_name, copy_by_name):
        try:
            return lookup(name)
        except ConstraintError:
            continue
    known = names()
    near = [k for k in known if k.startswith(name)] or difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]}?" if near else "`tilewright atom` lists them"
    raise ArgumentError(f"there is no atom {name!r}; {hint}")


def layouts(atom: Mma | CopyInstruction, value_bits: int) -> list[tuple[str, object]]:
    """What an atom consists of, by title; the layouts of a copy count values of ``value_bits`` bits."""
    if isinstance(atom, Mma):
        m, n, k = atom.shape_mnk
        shape = ("Shape MNK", f"({m},{n},{k})")
        sparse = [("E (bits)", atom.layout_e)] if isinstance(atom, SparseWgmmaAtom) else []
        return [
            ("ThrID", atom.thr_id),
            shape,
            ("A", atom.layout_a),
            ("B", atom.layout_b),
            ("C", atom.layout_c),
            *sparse,
        ]
    source, destination = in_values(atom, value_bits)
    return [("ThrID", atom.thr_id), ("Value bits", value_bits), ("Source", source), ("Destination", destination)]
