"""``cutlass.utils.blackwell_helpers``: choices for sm_100 kernels. What is plain arithmetic and layouts works; what
makes an operation of tcgen05 is not here yet.

The rules are those of CUTLASS' collective builders (include/cutlass/epilogue/collective/builders/sm100_builder.inl,
include/cutlass/gemm/collective/builders/sm100_common.inl).
"""

from __future__ import annotations

import math
from typing import Any

from tilewright._names import attach
from tilewright.cute.nvgpu.common import OperandMajorMode
from tilewright.cute.nvgpu.cpasync import CopyBulkTensorTileG2SMulticastOp, CopyBulkTensorTileG2SOp
from tilewright.cute.nvgpu.tcgen05 import SmemLayoutAtomKind, make_smem_layout_atom
from tilewright.errors import ConstraintError
from tilewright.ir.types import scalar_of
from tilewright.layout import Layout, coalesce, make_layout, right_inverse, size, tile_to_shape, widest_smem_atom
from tilewright.utils.layout_enum import LayoutEnum

__all__ = [
    "cluster_shape_to_tma_atom_A",
    "cluster_shape_to_tma_atom_B",
    "compute_epilogue_tile_shape",
    "compute_epilogue_tile_size",
    "get_smem_layout_atom_ab",
    "get_smem_layout_atom_epi",
    "make_smem_layout_epi",
]

DATAPATHS = 32
"""Rows of tensor memory that one warp reads."""


def compute_epilogue_tile_size(
    cta_tile_m: int, cta_tile_n: int, use_2cta: bool, elem_width_d: int, elem_width_c: int | None = None,
    d_is_m_major: bool = True, c_is_m_major: bool = True,
) -> tuple[int, int]:  # fmt: skip
    """The part (M, N) of a block's tile that the epilogue stores at a time. Widths are in bits; no C: None.

    ConstraintError where the tile is smaller than what four warps store at a time.

    >>> compute_epilogue_tile_size(128, 256, False, 16)
    (128, 32)
    """
    warp_m, warp_n = _warps(cta_tile_m, use_2cta)
    m = min(cta_tile_m, DATAPATHS * warp_m)
    least = [_least(elem_width_d, d_is_m_major) * warp_n]
    if elem_width_c is not None:
        least.append(_least(elem_width_c, c_is_m_major) * warp_n)
    if cta_tile_n < max(least):
        raise ConstraintError(
            f"compute_epilogue_tile_size: a tile of {cta_tile_m}x{cta_tile_n} is too small: the epilogue stores "
            f"{max(least)} columns at a time"
        )
    wanted = _columns(m, cta_tile_m, cta_tile_n, elem_width_d, elem_width_c)
    return m, math.gcd(cta_tile_n, min(cta_tile_n, max(wanted, *least)))


def _warps(cta_tile_m: int, use_2cta: bool) -> tuple[int, int]:
    """How the four warps of an epilogue divide rows and columns of the accumulator."""
    return (2, 2) if use_2cta and cta_tile_m == 64 else (4, 1)


def _least(width: int, m_major: bool) -> int:
    """The fewest columns: a store of TMA writes 16 bytes of a row; of 6-bit numbers it writes 128 numbers."""
    return 8 if m_major else 128 if width == 6 else 128 // width


def _columns(m: int, cta_m: int, cta_n: int, d: int, c: int | None) -> int:
    """The columns of a part that C++ kernels were found to be fast with."""
    if c is None:
        return (8192 if d == 4 else 4096) // m
    match max(c, d):
        case 32:
            return 16 if cta_m > 64 and cta_n <= 128 else 32
        case 16:
            return 32 if cta_n <= 128 else 64
    return 64


def compute_epilogue_tile_shape(
    cta_tile_shape: Any, use_2cta_instrs: bool, layout_d: LayoutEnum, elem_ty_d: Any, *,
    layout_c: LayoutEnum | None = None, elem_ty_c: Any = None, loc: Any = None, ip: Any = None,
) -> tuple[Any, Any]:  # fmt: skip
    """The tiler (M, N) of the epilogue's parts of a block's tile ``(M, N, ...)``; see
    :func:`compute_epilogue_tile_size`. Where two warps share the columns, N is not contiguous.

    >>> from tilewright.cute import Float16, Float32
    >>> print(*compute_epilogue_tile_shape((64, 256, 64), True, LayoutEnum.ROW_MAJOR, Float32))
    64:1 (32,2):(1,128)
    """
    m, n = (int(size(x)) for x in cta_tile_shape[:2])
    c = None if elem_ty_c is None else scalar_of(elem_ty_c).width
    c_is_m_major = layout_c is None or layout_c.is_m_major_c()
    part_m, part_n = compute_epilogue_tile_size(
        m, n, use_2cta_instrs, scalar_of(elem_ty_d).width, c, layout_d.is_m_major_c(), c_is_m_major
    )
    warp_n = _warps(m, use_2cta_instrs)[1]
    columns = make_layout((part_n // warp_n, warp_n), stride=(1, n // warp_n))
    return make_layout(part_m), coalesce(columns)


def get_smem_layout_atom_ab(
    major_mode: OperandMajorMode, element_type: Any, smem_shape_mn_k: Any, *, loc: Any = None, ip: Any = None
) -> SmemLayoutAtomKind:
    """The widest atom whose rows divide an operand's tile (M or N, K) along its contiguous mode. MN-major elements of
    32 bits have one atom, whose rows are 32 elements.

    >>> from tilewright.cute import Float16
    >>> get_smem_layout_atom_ab(OperandMajorMode.K, Float16, (128, 64)).name
    'K_SW128'
    """
    major = "K" if major_mode is OperandMajorMode.K else "MN"
    return _widest(major, int(size(smem_shape_mn_k[1 if major == "K" else 0])), element_type)


def get_smem_layout_atom_epi(
    layout: LayoutEnum, element_type: Any, epi_tile: Any, *, loc: Any = None, ip: Any = None
) -> SmemLayoutAtomKind:
    """The widest atom for the epilogue's tile (M, N), of which TMA moves what is contiguous along each mode."""
    major, mode = ("K", 1) if layout is LayoutEnum.ROW_MAJOR else ("MN", 0)
    tile = epi_tile[mode]
    inverse = coalesce(right_inverse(tile if isinstance(tile, Layout) else make_layout(tile)))
    return _widest(major, int(size(inverse[0])), element_type)


def _widest(major: str, extent: int, element_type: Any) -> SmemLayoutAtomKind:
    width = scalar_of(element_type).width
    if (major, width) == ("MN", 32):
        if extent % 32:
            raise ConstraintError(
                "tcgen05 reads MN-major elements of 32 bits in one atom only, MN_SW128_32B, whose rows are 32 "
                f"elements; {extent} is not a multiple of 32"
            )
        return SmemLayoutAtomKind.MN_SW128_32B
    return SmemLayoutAtomKind(f"{major}_{widest_smem_atom(major, extent, width)}")


def make_smem_layout_epi(
    epi_dtype: Any, epi_layout: LayoutEnum, epi_tile: Any, epi_stage: int, *, loc: Any = None, ip: Any = None
) -> Any:
    """The shared-memory layout of the epilogue's tiles (M, N, stages); ``epi_layout`` is the order of D (M, N).

    >>> from tilewright.cute import Float16
    >>> make_smem_layout_epi(Float16, LayoutEnum.ROW_MAJOR, (128, 32), 2)
    Sw<2,4,3> o 0 o ((8,16),(32,1),(1,2)):((32,256),(1,0),(0,4096))
    """
    kind = get_smem_layout_atom_epi(epi_layout, epi_dtype, epi_tile)
    shape = (*(int(size(x)) for x in epi_tile), int(epi_stage))
    order = (1, 0, 2) if epi_layout is LayoutEnum.COL_MAJOR else (0, 1, 2)
    return tile_to_shape(make_smem_layout_atom(kind, epi_dtype), shape, order)


def cluster_shape_to_tma_atom_A(
    cluster_shape_mnk: Any, atom_thr_id: Any, *, loc: Any = None, ip: Any = None
) -> CopyBulkTensorTileG2SOp:
    """The TMA operation that loads A: multicast where blocks are side by side along N. ``atom_thr_id``: how many
    blocks work on one MMA; two need sm_100 (ConstraintError)."""
    return _load(cluster_shape_mnk, 1, atom_thr_id)


def cluster_shape_to_tma_atom_B(
    cluster_shape_mnk: Any, atom_thr_id: Any, *, loc: Any = None, ip: Any = None
) -> CopyBulkTensorTileG2SOp:
    """The TMA operation that loads B: multicast where MMAs of other blocks are side by side along M."""
    return _load(cluster_shape_mnk, 0, atom_thr_id)


def _load(cluster_shape_mnk: Any, across: int, atom_thr_id: Any) -> CopyBulkTensorTileG2SOp:
    blocks = int(size(cluster_shape_mnk[across]))
    shared = int(size(atom_thr_id))
    if across == 0:
        blocks //= shared
    return (CopyBulkTensorTileG2SMulticastOp if blocks > 1 else CopyBulkTensorTileG2SOp)(shared)


attach(__name__)
