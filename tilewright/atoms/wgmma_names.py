"""The wgmma atoms by CuTe's names, ``SM90_64x128x16_F32F16F16_SS<K,K>`` say."""

from __future__ import annotations

import re

from tilewright.atoms.value_types import BY_NAME
from tilewright.atoms.wgmma import WgmmaAtom, is_known
from tilewright.atoms.wgmma_sparse import SparseWgmmaAtom

_PATTERN = re.compile(
    r"SM90_(SPARSE_)?64x(\d+)x(\d+)_(F16|F32|S32)(BF16|TF32|F16|E4M3|E5M2|S8|U8)(BF16|TF32|F16|E4M3|E5M2|S8|U8)"
    r"_(SS|RS)(?:_TN|<(K|MN),(K|MN)>)(_SATURATE)?"
)


def atom_class(sparse: bool) -> type[WgmmaAtom]:
    """The class of the instruction whose A is dense, or 2:4 ``sparse``."""
    return SparseWgmmaAtom if sparse else WgmmaAtom


def parse_wgmma(name: str) -> WgmmaAtom | None:
    """The atom of CuTe's name, or None for an unknown name."""
    match = _PATTERN.fullmatch(name)
    if match is None:
        return None
    sparse, n, k, d, a, b, source, major_a, major_b, saturate = match.groups()
    types = (BY_NAME[d], BY_NAME[a], BY_NAME[b])
    atom = atom_class(bool(sparse))(
        (64, int(n), int(k)), *types, source, (major_a or "K", major_b or "K"), bool(saturate)
    )
    return atom if atom.cute_name == name and is_known(atom) else None
