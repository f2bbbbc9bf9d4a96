"""Instructions by their CuTe names: the list, the search, and the parts of one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from tilewright.atoms.copy import CopyInstruction
from tilewright.atoms.copy_table import COPIES
from tilewright.atoms.fma import FMA
from tilewright.atoms.mma import Mma
from tilewright.atoms.mma_sync_table import MMA_SYNC
from tilewright.atoms.names import copy_by_name, mma_by_name
from tilewright.atoms.tcgen05_mma import Tcgen05Mma
from tilewright.atoms.tcgen05_names import EXAMPLES, MOVED_SHAPES, unit_copies
from tilewright.atoms.tensor_memory_cp import SmemToTmem
from tilewright.atoms.tensor_memory_move import TmemLoad, TmemStore
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
    many = {
        "Tensor cores, four warps (wgmma; an example of their names)": [WGMMA],
        "Tensor cores of sm_100 (tcgen05.mma; examples of their names)": [*EXAMPLES],
    }
    copies |= {
        "Tensor memory to registers (tcgen05.ld) and back (st); also _16b, and x1 to x128": [
            kind(shape, 2).cute_name for kind in (TmemLoad, TmemStore) for shape in MOVED_SHAPES
        ],
        "Shared to tensor memory (tcgen05.cp)": [copy.cute_name for copy in unit_copies()],
    }
    return {title: list(names) for title, names in mma.items()} | many | copies


def names() -> list[str]:
    """All names that :func:`groups` lists."""
    return [name for names in groups().values() for name in names]


def summary(atom: Mma | CopyInstruction) -> str:
    """One line about an instruction.

    >>> summary(find("SM80_16x8x16_F32F16F16F32_TN")), summary(find("SM75_U32x4_LDSM_N"))
    ('16 x 8 x 16 by 32 threads', 'copy by 32 threads')
    """
    threads = size(atom.thr_id)
    if isinstance(atom, Tcgen05Mma | SmemToTmem):
        blocks = "a pair of blocks" if atom.ctas == 2 else "a block"
        shape = " x ".join(map(str, atom.shape_mnk)) if isinstance(atom, Mma) else atom.mnemonic()
        return f"{shape} by {blocks}"
    by = "1 thread" if threads == 1 else f"{threads} threads"
    return f"{' x '.join(map(str, atom.shape_mnk))} by {by}" if isinstance(atom, Mma) else f"copy by {by}"


def find(name: str) -> Mma | CopyInstruction:
    """The instruction called ``name``; the error of an unknown one names the nearest known."""
    for lookup in (mma_by_name, copy_by_name):
        try:
            return lookup(name)
        except ConstraintError:
            continue
    choices = names()
    near = [k for k in choices if k.startswith(name)] or difflib.get_close_matches(name, choices, 1)
    hint = f"did you mean {near[0]}?" if near else "`tilewright atom` lists them"
    raise ArgumentError(f"there is no atom {name!r}; {hint}")


def layouts(atom: Mma | CopyInstruction, value_bits: int) -> list[tuple[str, object]]:
    """What an atom consists of, by title; the layouts of a copy count values of ``value_bits`` bits."""
    if isinstance(atom, Mma):
        m, n, k = atom.shape_mnk
        shape = ("Shape MNK", f"({m},{n},{k})")
        if isinstance(atom, Tcgen05Mma):
            return _of_blocks(atom, shape)
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


def _of_blocks(atom: Tcgen05Mma, shape: tuple[str, str]) -> list[tuple[str, object]]:
    """The maps (block, element) of the operands of a ``tcgen05.mma``, and where a block's part is in tensor memory."""
    m, n, k = atom.shape_mnk
    rows = m // atom.ctas
    in_memory = [("C", (rows, n))] + ([("A", (rows, k))] if atom.source == "TS" else [])
    return [
        ("Blocks", atom.thr_id),
        shape,
        ("A", atom.layout_a),
        ("B", atom.layout_b),
        ("C", atom.layout_c),
        *((f"{x} in TMEM", atom.tensor_memory(x, (part, 1, 1))) for x, part in in_memory),
    ]
