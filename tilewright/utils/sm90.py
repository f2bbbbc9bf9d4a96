"""Choices for SM90 kernels: tiled MMAs, shared-memory layouts of operands and epilogue, epilogue tiles and stores.

The rules are those of CUTLASS' collective builders (include/cutlass/gemm/collective/builders/sm90_common.inl,
include/cutlass/epilogue/collective/builders/sm90_builder.inl).
"""

from __future__ import annotations

import math
from typing import Any

from tilewright.cute.nvgpu.common import CopyUniversalOp, OperandMajorMode
from tilewright.cute.nvgpu.warp import LdMatrix8x8x16bOp, StMatrix8x8x16bOp
from tilewright.cute.nvgpu.warpgroup import (
    MmaF8Op,
    MmaF16BF16Op,
    MmaI8Op,
    MmaTF32Op,
    OperandSource,
    SmemLayoutAtomKind,
    make_smem_layout_atom,
)
from tilewright.errors import ConstraintError
from tilewright.ir.types import BF16, E4M3, E5M2, F16, I8, TF32, U8, scalar_of
from tilewright.layout import size, tile_to_shape, widest_smem_atom
from tilewright.tiled.atom import CopyAtom, make_copy_atom
from tilewright.tiled.tiled_mma import TiledMma, make_tiled_mma
from tilewright.utils.layout_enum import LayoutEnum


def make_trivial_tiled_mma(
    a_dtype: Any,
    b_dtype: Any,
    a_leading_mode: OperandMajorMode,
    b_leading_mode: OperandMajorMode,
    acc_dtype: Any,
    atom_layout_mnk: Any,
    tiler_mn: Any,
    a_source: OperandSource = OperandSource.SMEM,
    *,
    loc: Any = None,
    ip: Any = None,
) -> TiledMma:
    """A tiled MMA of wgmma atoms (64, ``tiler_mn[1]``, 32 bytes of K), ``atom_layout_mnk`` warpgroups side by side.

    Args:
        a_dtype: the type of A.
        b_dtype: the type of B.
        a_leading_mode: the major mode of A (M, K).
        b_leading_mode: the major mode of B (N, K).
        acc_dtype: the type of the accumulators.
        atom_layout_mnk: warpgroups along M, N and K.
        tiler_mn: (M, N) of the tile; N is that of the instruction, 8 to 256.
        a_source: shared memory, or registers for A.

    Raises:
        ConstraintError: types and majors that wgmma does not have.

    >>> from tilewright.cute import Float16, Float32
    >>> K = OperandMajorMode.K
    >>> make_trivial_tiled_mma(Float16, Float16, K, K, Float32, (2, 1, 1), (64, 128)).tile_shape_mnk
    (128, 128, 16)
    """
    a, b, n = scalar_of(a_dtype), scalar_of(b_dtype), int(size(tiler_mn[1]))
    shape = (64, n, 256 // a.width)
    majors = (a_source, a_leading_mode, b_leading_mode)
    if a != b and a in (F16, BF16, TF32):
        raise ConstraintError(f"make_trivial_tiled_mma: wgmma takes A and B of one type, not {a_dtype} and {b_dtype}")
    op: Any
    if a in (F16, BF16):
        op = MmaF16BF16Op(a_dtype, acc_dtype, shape, *majors)
    elif a == TF32:
        op = MmaTF32Op(acc_dtype, shape, *majors)
    elif a in (E4M3, E5M2):
        op = MmaF8Op(a_dtype, b_dtype, acc_dtype, shape, *majors)
    elif a in (I8, U8):
        op = MmaI8Op(a_dtype, b_dtype, acc_dtype, shape, *majors)
    else:
        choices = "Float16, BFloat16, TFloat32, Float8E4M3FN, Float8E5M2, Int8 and Uint8"
        raise ConstraintError(f"make_trivial_tiled_mma: wgmma takes {choices}, not {a_dtype}")
    return make_tiled_mma(op, atom_layout_mnk)


def get_smem_layout_atom(
    layout: LayoutEnum, element_type: Any, major_mode_size: int, *, loc: Any = None, ip: Any = None
) -> SmemLayoutAtomKind:
    """The widest atom whose rows divide a tile of ``major_mode_size`` elements along the contiguous mode.

    >>> from tilewright.cute import Float16
    >>> get_smem_layout_atom(LayoutEnum.ROW_MAJOR, Float16, 64).name
    'K_SW128'
    """
    major = "K" if layout is LayoutEnum.ROW_MAJOR else "MN"
    return SmemLayoutAtomKind(f"{major}_{widest_smem_atom(major, int(major_mode_size), scalar_of(element_type).width)}")


def _staged(layout: LayoutEnum, dtype: Any, tile: tuple[int, int], stages: int) -> Any:
    k_major = layout is LayoutEnum.ROW_MAJOR
    kind = get_smem_layout_atom(layout, dtype, tile[1 if k_major else 0])
    order = (0, 1, 2) if k_major else (1, 0, 2)
    return tile_to_shape(make_smem_layout_atom(kind, dtype), (*tile, int(stages)), order)


def make_smem_layout_a(
    a_layout: LayoutEnum, mma_tiler_mnk: Any, a_dtype: Any, num_stages: int, *, loc: Any = None, ip: Any = None
) -> Any:
    """The shared-memory layout (M, K, stages) of A for a tile (M, N, K); ``a_layout`` is the order of A (M, K).

    >>> from tilewright import Float16, utils
    >>> row_major = utils.LayoutEnum.ROW_MAJOR
    >>> layout = make_smem_layout_a(row_major, (128, 256, 64), Float16, 4)  # (M, K, stages)
    >>> layout.inner, layout.outer.shape
    (Sw<3,4,3>, ((8, 16), (64, 1), (1, 4)))
    """
    m, _n, k = (int(size(x)) for x in mma_tiler_mnk)
    return _staged(a_layout, a_dtype, (m, k), num_stages)


def make_smem_layout_b(
    b_layout: LayoutEnum, mma_tiler_mnk: Any, b_dtype: Any, num_stages: int, *, loc: Any = None, ip: Any = None
) -> Any:
    """The shared-memory layout (N, K, stages) of B for a tile (M, N, K); ``b_layout`` is the order of B (N, K).

    >>> from tilewright import Float16, utils
    >>> layout = make_smem_layout_b(utils.LayoutEnum.ROW_MAJOR, (128, 256, 64), Float16, 4)  # (N, K, stages)
    >>> layout.inner, layout.outer.shape
    (Sw<3,4,3>, ((8, 32), (64, 1), (1, 4)))
    """
    _m, n, k = (int(size(x)) for x in mma_tiler_mnk)
    return _staged(b_layout, b_dtype, (n, k), num_stages)


def make_smem_layout_epi(
    epi_dtype: Any,
    epi_layout: LayoutEnum,
    epi_tile: Any,
    epi_stage: int,
    smem_trg_shape: Any = None,
    smem_order: Any = None,
    *,
    loc: Any = None,
    ip: Any = None,
) -> Any:
    """The shared-memory layout of the epilogue's tiles (M, N, stages).

    Args:
        epi_dtype: the type of an element.
        epi_layout: the order of D (M, N).
        epi_tile: (M, N) of a tile.
        epi_stage: how many tiles there is room for.
        smem_trg_shape: the shape, in place of (M, N, stages).
        smem_order: the order of modes in which atoms fill it; by default (0, 1, 2) of a row-major D, (1, 0, 2) else.

    >>> from tilewright import Float16, utils
    >>> layout = make_smem_layout_epi(Float16, utils.LayoutEnum.ROW_MAJOR, (128, 32), 2)
    >>> layout.inner, layout.outer.shape
    (Sw<2,4,3>, ((8, 16), (32, 1), (1, 2)))
    """
    m, n = (int(size(x)) for x in epi_tile)
    row_major = epi_layout is LayoutEnum.ROW_MAJOR
    kind = get_smem_layout_atom(epi_layout, epi_dtype, n if row_major else m)
    shape = (m, n, int(epi_stage)) if smem_trg_shape is None else smem_trg_shape
    order = ((0, 1, 2) if row_major else (1, 0, 2)) if smem_order is None else smem_order
    return tile_to_shape(make_smem_layout_atom(kind, epi_dtype), shape, order)


def compute_tile_shape_or_override(
    tile_shape_mnk: Any,
    element_type: Any,
    is_cooperative: bool = False,
    epi_tile_override: Any = None,
    *,
    loc: Any = None,
    ip: Any = None,
) -> tuple[int, int]:
    """The part (M, N) of a tile that the epilogue stores at a time: ``epi_tile_override`` where it is given.

    >>> from tilewright.cute import Float16
    >>> compute_tile_shape_or_override((128, 256, 64), Float16, is_cooperative=True)
    (128, 32)
    """
    if epi_tile_override is not None:
        return epi_tile_override
    m, n = int(size(tile_shape_mnk[0])), int(size(tile_shape_mnk[1]))
    if is_cooperative:
        return min(128, m), math.gcd(min(32, n), n)
    wide = 64 if scalar_of(element_type).width == 8 and n % 64 == 0 else 32
    return min(64, m), math.gcd(min(wide, n), n)


def matrices_of_epilogue(layout_d: LayoutEnum, elem_ty_d: Any, tile_n: int = 16) -> tuple[bool, int] | None:
    """(transposed, number of matrices) of the stmatrix that stores accumulators as ``elem_ty_d``; None where there is
    none: it moves cells of 16 bits. ``tile_n``: the extent along N of what is stored at a time."""
    if scalar_of(elem_ty_d).width != 16:
        return None
    return layout_d is LayoutEnum.COL_MAJOR, 4 if tile_n % 16 == 0 else 2


def get_smem_store_op(
    layout_d: LayoutEnum, elem_ty_d: Any, elem_ty_acc: Any, *, loc: Any = None, ip: Any = None
) -> CopyAtom:
    """The widest atom that stores accumulators to shared memory as D: stmatrix for 16-bit types, else plain stores.

    >>> from tilewright import Float16, Float32, utils
    >>> get_smem_store_op(utils.LayoutEnum.ROW_MAJOR, Float16, Float32)
    Copy Atom
      ThrID:           32:1
      TV Layout Src:   (32,(2,4)):(2,(1,64))
      TV Layout Dst:   (32,8):(8,1)
      Value type:      f16
    """
    matrices = matrices_of_epilogue(layout_d, elem_ty_d)
    return make_copy_atom(CopyUniversalOp() if matrices is None else StMatrix8x8x16bOp(*matrices), elem_ty_d)


def get_smem_load_op(
    layout_c: LayoutEnum, elem_ty_c: Any, elem_ty_acc: Any, *, loc: Any = None, ip: Any = None
) -> CopyAtom:
    """Its counterpart, which loads C from shared memory to where the accumulators are: ldmatrix or plain loads."""
    matrices = matrices_of_epilogue(layout_c, elem_ty_c)
    return make_copy_atom(CopyUniversalOp() if matrices is None else LdMatrix8x8x16bOp(*matrices), elem_ty_c)


# The same functions as cutlass.utils has them, where functions of sm_100 have the names without a prefix.
sm90_get_smem_layout_atom = get_smem_layout_atom
sm90_make_trivial_tiled_mma = make_trivial_tiled_mma
