"""The instructions of ``tcgen05`` by their names: CuTe's, with shape, types and majors written out for MMAs."""

from __future__ import annotations

import re
from typing import Any

from tilewright.atoms.copy import CopyInstruction
from tilewright.atoms.tcgen05_described import UNSCALED
from tilewright.atoms.tcgen05_mma import Tcgen05Mma
from tilewright.atoms.tcgen05_scaled import Tcgen05ScaledMma
from tilewright.atoms.tcgen05_sparse import Tcgen05SparseScaledMma
from tilewright.atoms.tensor_memory_copy import COPIED_SHAPES, MOVED_SHAPES
from tilewright.atoms.tensor_memory_cp import SmemToTmem
from tilewright.atoms.tensor_memory_move import TmemLoad, TmemStore
from tilewright.atoms.value_types import BY_NAME
from tilewright.errors import ConstraintError

PREFIX = "SM100_"
EXAMPLES = (
    "SM100_128x64x16_F32BF16BF16_SS<K,K>",
    "SM100_128x64x16_F32BF16BF16_TS<K,K>",
    "SM100_256x64x16_F32BF16BF16_2x1SM_SS<K,K>",
    "SM100_128x64x32_F32E4M3E4M3_SS<K,K>_UE8M0x32",
    "SM100_128x64x64_F32E2M1E2M1_SS<K,K>_E4M3x16",
    "SM100_128x64x32_F32BF16BF16_SS_SPARSE<K,K>",
    "SM100_32x128x16_F32BF16BF16_WS_SS<K,K>",
)
"""Names of MMAs: of one block, with A in tensor memory, of a pair, with block scales, with a sparse A, weight
stationary. There are too many to list."""
_TYPE = "(" + "|".join(sorted((name for name in BY_NAME if name), key=len, reverse=True)) + ")"
_MMA = re.compile(
    rf"SM100_(\d+)x(\d+)x(\d+)_(F16|F32|S32){_TYPE}{_TYPE}_(2x1SM_)?(WS_)?(SS|TS)(_SPARSE)?<(K|MN),(K|MN)>(_SATURATE)?(?:_{_TYPE}x(\d+))?"
)
_MOVE = re.compile(rf"SM100_TMEM_(LOAD|STORE)_({'|'.join(map(re.escape, MOVED_SHAPES))})(\d+)x(_16b)?")
_KINDS = ("f16", "tf32", "f8f6f4", "i8")
_SCALED = ("mxf8f6f4", "mxf4", "mxf4nvf4")


def parse_tcgen05(name: str) -> Tcgen05Mma | None:
    """The MMA of this name, or None for an unknown name.

    >>> parse_tcgen05("SM100_256x64x16_F32BF16BF16_2x1SM_SS<K,K>").ctas
    2
    """
    match: Any = _MMA.fullmatch(name)
    if match is None:
        return None
    m, n, k, d, a, b, pair, stationary, source, sparse, major_a, major_b, saturate, scale, vec = match.groups()
    types: tuple[Any, ...] = (BY_NAME[d], BY_NAME[a], BY_NAME[b])
    rest: tuple[Any, ...] = (source, (major_a, major_b), bool(saturate), 2 if pair else 1)
    scaled: Any = Tcgen05SparseScaledMma if sparse else Tcgen05ScaledMma
    made: Any = scaled if scale else UNSCALED[bool(sparse), bool(stationary)]
    for kind in _SCALED if scale else _KINDS:
        scales: tuple[Any, ...] = (BY_NAME[scale], int(vec)) if scale else ()
        try:
            atom: Tcgen05Mma = made(kind, (int(m), int(n), int(k)), *types, *rest, *scales)
        except ConstraintError:
            continue
        if atom.cute_name == name:
            return atom
    return None


def parse_tmem_copy(name: str) -> CopyInstruction | None:
    """The ``tcgen05.ld``, ``st`` or ``cp`` of CuTe's name, or None for an unknown name.

    >>> parse_tmem_copy("SM100_TMEM_LOAD_16x32bx28x").mnemonic(), parse_tmem_copy("SM100_TMEM_LOAD_16x32bx23x")
    ('tcgen05.ld.16x32bx2.x8', None)
    """
    if match := _MOVE.fullmatch(name):
        try:
            kind = TmemLoad if match[1] == "LOAD" else TmemStore
            return kind(match[2], int(match[3]), bool(match[4]))
        except ConstraintError:
            return None
    return next((copy for copy in unit_copies() if copy.cute_name == name), None)


def unit_copies() -> list[SmemToTmem]:
    """Every ``tcgen05.cp`` that unpacks nothing, of one block and of pairs."""
    return [SmemToTmem(shape, ctas) for ctas in (1, 2) for shape in COPIED_SHAPES]
