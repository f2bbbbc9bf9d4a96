"""The layout atoms of operands of tcgen05 in shared memory."""

from __future__ import annotations

from enum import Enum
from typing import Any

from tilewright.cute.nvgpu.warpgroup import smem_layout_atom
from tilewright.errors import ConstraintError


class SmemLayoutAtomKind(Enum):
    """The atoms that tcgen05 and TMA read: the major mode and the bytes of a row (``INTER``: 16, no swizzle).
    ``MN_SW128_32B`` exchanges chunks of 32 bytes; MN-major numbers of 32 bits need it.

    >>> from tilewright import Float16
    >>> print(make_smem_layout_atom(SmemLayoutAtomKind.K_SW128, Float16))
    Sw<3,4,3> o 0 o (8,64):(64,1)
    """

    MN_INTER = "MN_INTER"
    MN_SW32 = "MN_SW32"
    MN_SW64 = "MN_SW64"
    MN_SW128 = "MN_SW128"
    MN_SW128_32B = "MN_SW128_32B"
    K_INTER = "K_INTER"
    K_SW32 = "K_SW32"
    K_SW64 = "K_SW64"
    K_SW128 = "K_SW128"


def make_smem_layout_atom(kind: SmemLayoutAtomKind, element_type: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """The layout atom (M or N, K) for elements of a type; see ``warpgroup.make_smem_layout_atom``.

    >>> from tilewright.cute import Float32
    >>> make_smem_layout_atom(SmemLayoutAtomKind.MN_SW128_32B, Float32)
    Sw<2,5,2> o 0 o (32,4):(1,32)
    """
    if not isinstance(kind, SmemLayoutAtomKind):
        raise ConstraintError(f"make_smem_layout_atom takes a SmemLayoutAtomKind of tcgen05, not {kind!r}")
    return smem_layout_atom(kind.value, element_type)
