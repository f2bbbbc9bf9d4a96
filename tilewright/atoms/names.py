"""Instructions by the names that CuTe C++ gives them."""

from __future__ import annotations

from tilewright.atoms.copy import CopyInstruction
from tilewright.atoms.fma import FMA
from tilewright.atoms.mma import Mma
from tilewright.atoms.mma_sync_table import MMA_SYNC, SPARSE_MMA_SYNC
from tilewright.atoms.wgmma_names import parse_wgmma
from tilewright.errors import ConstraintError


def mma_by_name(name: str) -> Mma:
    """The matrix instruction of CuTe's name.

    >>> mma_by_name("SM80_16x8x16_F32F16F16F32_TN").shape_mnk
    (16, 8, 16)
    """
    atom = MMA_SYNC.get(name) or SPARSE_MMA_SYNC.get(name) or FMA.get(name) or parse_wgmma(name)
    if atom is None and name.startswith("SM100_"):
        from tilewright.atoms.tcgen05_names import parse_tcgen05  # loaded for those who ask

        atom = parse_tcgen05(name)
    if atom is None:
        raise ConstraintError(f"there is no matrix instruction named {name!r}")
    return atom


def copy_by_name(name: str) -> CopyInstruction:
    """The copy instruction of CuTe's name.

    >>> copy_by_name("SM75_U32x4_LDSM_N").dst_bits
    (32,(32,4)):(32,(1,1024))
    """
    from tilewright.atoms.copy_table import COPIES

    atom = COPIES.get(name)
    if atom is None and name.startswith("SM100_"):
        from tilewright.atoms.tcgen05_names import parse_tmem_copy

        atom = parse_tmem_copy(name)
    if atom is None:
        raise ConstraintError(f"there is no copy instruction named {name!r}")
    return atom
