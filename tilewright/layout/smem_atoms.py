"""Shared-memory layout atoms that wgmma, tcgen05 and TMA understand.

An atom is 8 rows of 16, 32, 64 or 128 bytes; the swizzle ``Sw<B,4,3>`` acts on *byte* addresses, exchanging 16-byte
chunks within a row. In elements of ``b`` bits the same function is ``Sw<B, 4 - log2(b/8), 3>``. One more, of 4 rows of
128 bytes, exchanges chunks of 32 bytes: tcgen05 reads MN-major numbers of 32 bits from it.
Source: the canonical layouts in the PTX ISA (asynchronous warpgroup matrix operand layouts; tcgen05 shared memory
layouts).
"""

from __future__ import annotations

from typing import Any

from tilewright.errors import LayoutError
from tilewright.layout.composed import ComposedLayout
from tilewright.layout.layout import Layout
from tilewright.layout.recast import recast_layout
from tilewright.layout.swizzle import Swizzle

BYTE_SWIZZLES = {
    "INTER": Swizzle(0, 4, 3),
    "SW32": Swizzle(1, 4, 3),
    "SW64": Swizzle(2, 4, 3),
    "SW128": Swizzle(3, 4, 3),
    "SW128_32B": Swizzle(2, 5, 2),
}
"""The swizzle of byte addresses of each kind of atom."""
_BY_WIDTH = ("SW128", "SW64", "SW32", "INTER")


def row_bytes(kind: str) -> int:
    """The bytes of a row of an atom of this kind.

    >>> [row_bytes(kind) for kind in BYTE_SWIZZLES]
    [16, 32, 64, 128, 128]
    """
    swizzle = BYTE_SWIZZLES[kind]
    return 1 << swizzle.bits + swizzle.base


def widest_smem_atom(major: str, extent: int, element_bits: int, registers: bool = False) -> str:
    """The kind of the widest atom whose rows divide ``extent`` elements along the contiguous mode.

    ``registers``: of an operand A that goes on to registers; the 32-bit MN-major ones know only SW32 and INTER.
    Source: ``ss_smem_selector`` and ``rs_smem_selector`` (cutlass/gemm/collective/builders/sm90_common.inl).

    >>> [widest_smem_atom("K", extent, 16) for extent in (64, 96, 48, 24)]
    ['SW128', 'SW64', 'SW32', 'INTER']
    """
    kinds = _BY_WIDTH[2:] if registers and major == "MN" and element_bits == 32 else _BY_WIDTH
    for kind in kinds:
        if extent > 0 and extent * element_bits % (8 * row_bytes(kind)) == 0:
            return kind
    raise LayoutError(
        f"widest_smem_atom: {extent} elements of {element_bits} bits along the contiguous mode of a {major}-major tile "
        f"are not multiples of 16 bytes: choose a multiple of {128 // element_bits}"
    )


def make_smem_atom(major: str, kind: str, element_bits: int) -> Any:
    """The atom whose contiguous direction is ``major`` ("K" or "MN"), for elements of ``element_bits``.

    Shape (M or N, K). ``kind`` is INTER (no swizzle), SW32, SW64 or SW128: the bytes of a row; or SW128_32B, which is
    for MN-major elements of 32 bits.

    >>> make_smem_atom("K", "SW128", 16), make_smem_atom("MN", "INTER", 16), make_smem_atom("MN", "SW128_32B", 32)
    (Sw<3,3,3> o 0 o (8,64):(64,1), (8,8):(1,8), Sw<2,3,2> o 0 o (32,4):(1,32))
    """
    if kind not in BYTE_SWIZZLES or major not in ("K", "MN"):
        raise LayoutError(f"make_smem_atom: {major}/{kind} is not one of K, MN / {', '.join(BYTE_SWIZZLES)}")
    if kind == "SW128_32B" and (major, element_bits) != ("MN", 32):
        raise LayoutError(
            f"make_smem_atom: SW128_32B is for MN-major elements of 32 bits, not {major}-major ones of {element_bits}; "
            "take SW128"
        )
    swizzle, row = BYTE_SWIZZLES[kind], 8 * row_bytes(kind)
    if row % element_bits:
        raise LayoutError(f"make_smem_atom: a row of {row} bits holds no whole number of {element_bits}-bit elements")
    n, rows = row // element_bits, 1 << swizzle.shift
    outer = Layout((rows, n), (n, 1)) if major == "K" else Layout((n, rows), (1, n))
    if not swizzle.bits:
        return outer
    return ComposedLayout(recast_layout(element_bits, 8, swizzle), 0, outer)
