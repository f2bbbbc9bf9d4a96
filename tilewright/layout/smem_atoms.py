"""Shared-memory layout atoms that wgmma and TMA understand.

An atom is 8 rows of 16, 32, 64 or 128 bytes; the swizzle ``Sw<B,4,3>`` acts on *byte* addresses, exchanging 16-byte
chunks within a row. In elements of ``b`` bits the same function is ``Sw<B, 4 - log2(b/8), 3>``.
Source: the canonical layouts in the PTX ISA (asynchronous warpgroup matrix operand layouts).
"""

from __future__ import annotations

from typing import Any

from tilewright.errors import LayoutError
from tilewright.layout.composed import ComposedLayout
from tilewright.layout.layout import Layout
from tilewright.layout.recast import recast_layout
from tilewright.layout.swizzle import Swizzle

SWIZZLE_BITS = {"INTER": 0, "SW32": 1, "SW64": 2, "SW128": 3}


def widest_smem_atom(major: str, extent: int, element_bits: int, registers: bool = False) -> str:
    """The kind of the widest atom whose rows divide ``extent`` elements along the contiguous mode.

    ``registers``: of an operand A that goes on to registers; the 32-bit MN-major ones know only SW32 and INTER.
    Source: ``ss_smem_selector`` and ``rs_smem_selector`` (cutlass/gemm/collective/builders/sm90_common.inl).

    >>> [widest_smem_atom("K", extent, 16) for extent in (64, 96, 48, 24)]
    ['SW128', 'SW64', 'SW32', 'INTER']
    """
    kinds = list(SWIZZLE_BITS)[:2] if registers and major == "MN" and element_bits == 32 else list(SWIZZLE_BITS)
    for kind in reversed(kinds):
        if extent > 0 and extent * element_bits % (128 << SWIZZLE_BITS[kind]) == 0:
            return kind
    raise LayoutError(
        f"widest_smem_atom: {extent} elements of {element_bits} bits along the contiguous mode of a {major}-major tile "
        f"are not multiples of 16 bytes: choose a multiple of {128 // element_bits}"
    )


def make_smem_atom(major: str, kind: str, element_bits: int) -> Any:
    """The atom whose contiguous direction is ``major`` ("K" or "MN"), for elements of ``element_bits``.

    Shape (M or N, K). ``kind`` is INTER (no swizzle), SW32, SW64 or SW128: the bytes of a row.

    >>> make_smem_atom("K", "SW128", 16), make_smem_atom("MN", "INTER", 16)
    (Sw<3,3,3> o 0 o (8,64):(64,1), (8,8):(1,8))
    """
    if kind not in SWIZZLE_BITS or major not in ("K", "MN"):
        raise LayoutError(f"make_smem_atom: {major}/{kind} is not one of K, MN / {', '.join(SWIZZLE_BITS)}")
    bits = SWIZZLE_BITS[kind]
    row = 128 << bits
    if row % element_bits:
        raise LayoutError(f"make_smem_atom: a row of {row} bits holds no whole number of {element_bits}-bit elements")
    n = row // element_bits
    outer = Layout((8, n), (n, 1)) if major == "K" else Layout((n, 8), (1, n))
    if not bits:
        return outer
    return ComposedLayout(recast_layout(element_bits, 8, Swizzle(bits, 4, 3)), 0, outer)
