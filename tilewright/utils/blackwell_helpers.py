"""``cutlass.utils.blackwell_helpers``: choices for sm_100 kernels: atoms and layouts of operands, tiled MMAs of one
block, tiles of the epilogue.

The rules are those of CUTLASS' collective builders (include/cutlass/epilogue/collective/builders/sm100_builder.inl,
include/cutlass/gemm/collective/builders/sm100_common.inl).
"""

from __future__ import annotations

import math
from typing import Any

from tilewright._names import attach
from tilewright.atoms.tensor_memory_move import TmemMove
from tilewright.cute.nvgpu.common import CopyUniversalOp, OperandMajorMode
from tilewright.cute.nvgpu.tcgen05 import (
    CtaGroup,
    Ld16x32bx2Op,
    Ld16x64bOp,
    Ld16x128bOp,
    Ld16x256bOp,
    Ld32x32bOp,
    MmaF8F6F4Op,
    MmaF16BF16Op,
    MmaI8Op,
    MmaTF32Op,
    OperandSource,
    Pack,
    Repetition,
    SmemLayoutAtomKind,
    get_tmem_copy_properties,
    make_smem_layout_atom,
    tile_to_mma_shape,
)
from tilewright.cute.nvgpu.tcgen05.block_scaled_ops import block_scaled_op
from tilewright.cute.nvgpu.tcgen05.mma_ops import SMALL_FLOATS
from tilewright.cute.nvgpu.warp import StMatrix8x8x16bOp
from tilewright.errors import ConstraintError
from tilewright.ir.types import BF16, F16, F32, I8, I32, TF32, U8, scalar_of
from tilewright.lang.numbers.numeric import class_of
from tilewright.layout import (
    ComposedLayout,
    Layout,
    coalesce,
    make_layout,
    right_inverse,
    size,
    tile_to_shape,
    widest_smem_atom,
)
from tilewright.tiled.atom import CopyAtom, make_copy_atom
from tilewright.tiled.tiled_mma import TiledMma, make_tiled_mma
from tilewright.utils.cluster_loads import (
    cluster_shape_to_tma_atom_A,
    cluster_shape_to_tma_atom_B,
    cluster_shape_to_tma_atom_SFB,
)
from tilewright.utils.epilogue_copies import TmemLoad, matrix_store, tmem_load
from tilewright.utils.layout_enum import LayoutEnum
from tilewright.utils.one_type import takes_one_type
from tilewright.utils.tma_alignment import check_gemm_tma_alignment
from tilewright.utils.warp_scales import (
    get_layoutSFA_TV,
    get_layoutSFB_TV,
    get_permutation_mnk,
    partition_fragment_SFA,
    partition_fragment_SFB,
    sm120_get_smem_store_op,
    thrfrg_SFA,
    thrfrg_SFB,
)

__all__ = [
    "check_gemm_tma_alignment",
    "cluster_shape_to_tma_atom_A",
    "cluster_shape_to_tma_atom_B",
    "cluster_shape_to_tma_atom_SFB",
    "compute_acc_tmem_cols_per_stage",
    "compute_epilogue_tile_shape",
    "compute_epilogue_tile_size",
    "get_layoutSFA_TV",
    "get_layoutSFB_TV",
    "get_permutation_mnk",
    "get_smem_layout_atom_ab",
    "get_smem_layout_atom_epi",
    "get_smem_store_op",
    "get_tmem_copy_properties",
    "get_tmem_load_op",
    "make_blockscaled_trivial_tiled_mma",
    "make_smem_layout",
    "make_smem_layout_a",
    "make_smem_layout_atom",
    "make_smem_layout_b",
    "make_smem_layout_epi",
    "make_trivial_tiled_mma",
    "partition_fragment_SFA",
    "partition_fragment_SFB",
    "sm120_get_smem_store_op",
    "thrfrg_SFA",
    "thrfrg_SFB",
]

DATAPATHS = 32
"""Rows of tensor memory that one warp reads."""


def compute_epilogue_tile_size(
    cta_tile_m: int,
    cta_tile_n: int,
    use_2cta: bool,
    elem_width_d: int,
    elem_width_c: int | None = None,
    d_is_m_major: bool = True,
    c_is_m_major: bool = True,
    tmem_warp_shape_mn: tuple[int, int] | None = None,
) -> tuple[int, int]:
    """The part (M, N) of a block's tile that the epilogue stores at a time. Widths are in bits; no C: None.
    ``tmem_warp_shape_mn``: how four warps divide rows and columns, (4, 1) or (2, 2), where the tile does not say it.

    ConstraintError where the tile is smaller than what four warps store at a time.

    >>> compute_epilogue_tile_size(128, 256, False, 16)
    (128, 32)
    """
    warp_m, warp_n = _warps(cta_tile_m, use_2cta, tmem_warp_shape_mn)
    m = min(cta_tile_m, DATAPATHS * warp_m)
    least = [_least(elem_width_d, d_is_m_major) * warp_n]
    if elem_width_c is not None:
        least.append(_least(elem_width_c, c_is_m_major) * warp_n)
    if cta_tile_n < max(least):
        raise ConstraintError(
            f"compute_epilogue_tile_size: a tile of {cta_tile_m}x{cta_tile_n} is too small: the epilogue stores "
            f"{max(least)} columns at a time"
        )
    columns = _columns(m, cta_tile_m, cta_tile_n, elem_width_d, elem_width_c)
    return m, math.gcd(cta_tile_n, min(cta_tile_n, max(columns, *least)))


def _warps(cta_tile_m: int, use_2cta: bool, given: tuple[int, int] | None = None) -> tuple[int, int]:
    """How the four warps of an epilogue divide rows and columns of the accumulator; ``given``: as the caller says."""
    if given is None:
        return (2, 2) if use_2cta and cta_tile_m == 64 else (4, 1)
    if tuple(given) not in ((4, 1), (2, 2)):
        raise ConstraintError(f"tmem_warp_shape_mn is {given}; four warps divide an accumulator as (4, 1) or (2, 2)")
    rows, columns = given
    return rows, columns


def _least(width: int, m_major: bool) -> int:
    """The fewest columns: a store of TMA writes 16 bytes of a row; of 6-bit numbers it writes 128 numbers."""
    return 8 if m_major else 128 if width == 6 else 128 // width


def _columns(m: int, cta_m: int, cta_n: int, d: int, c: int | None) -> int:
    """The columns of a part of the epilogue, as CUTLASS' builder chooses them for speed; its minimum is ``_least``."""
    if c is None:
        return (8192 if d == 4 else 4096) // m
    match max(c, d):
        case 32:
            return 16 if cta_m > 64 and cta_n <= 128 else 32
        case 16:
            return 32 if cta_n <= 128 else 64
    return 64


def compute_epilogue_tile_shape(
    cta_tile_shape: Any,
    use_2cta_instrs: bool,
    layout_d: LayoutEnum,
    elem_ty_d: Any,
    *,
    layout_c: LayoutEnum | None = None,
    elem_ty_c: Any = None,
    tmem_warp_shape_mn: tuple[int, int] | None = None,
    loc: Any = None,
    ip: Any = None,
) -> tuple[Any, Any]:
    """The tiler (M, N) of the epilogue's parts of a block's tile ``(M, N, ...)``; see
    :func:`compute_epilogue_tile_size`. Where two warps share the columns, N is not contiguous.

    >>> from tilewright.cute import Float16, Float32
    >>> print(*compute_epilogue_tile_shape((64, 256, 64), True, LayoutEnum.ROW_MAJOR, Float32))
    64:1 (32,2):(1,128)
    """
    m, n = (int(size(x)) for x in cta_tile_shape[:2])
    c = None if elem_ty_c is None else scalar_of(elem_ty_c).width
    c_is_m_major = layout_c is None or layout_c.is_m_major_c()
    majors = layout_d.is_m_major_c(), c_is_m_major
    width = scalar_of(elem_ty_d).width
    part_m, part_n = compute_epilogue_tile_size(m, n, use_2cta_instrs, width, c, *majors, tmem_warp_shape_mn)
    warp_n = _warps(m, use_2cta_instrs, tmem_warp_shape_mn)[1]
    columns = make_layout((part_n // warp_n, warp_n), stride=(1, n // warp_n))
    return make_layout(part_m), coalesce(columns)


def compute_acc_tmem_cols_per_stage(
    cta_tile_m: int, cta_tile_n: int, use_2cta: bool, mma_n: int, transform_a_source_is_tmem: bool
) -> int:
    """The columns of tensor memory of one stage of accumulators. Rows of a pair that leave lanes of a block free hold
    several columns side by side; so do two MMAs of 64 rows of one block, unless A is in tensor memory, whose lanes are
    those of the result.

    >>> compute_acc_tmem_cols_per_stage(64, 256, True, 256, False)
    128
    >>> [compute_acc_tmem_cols_per_stage(64, 256, False, 64, a_in_tmem) for a_in_tmem in (False, True)]
    [128, 256]
    """
    if use_2cta:
        return cta_tile_n // (4 * DATAPATHS // cta_tile_m)
    if cta_tile_m == 64 and not transform_a_source_is_tmem:
        return -(-cta_tile_n // (2 * mma_n)) * mma_n
    return cta_tile_n


_LOADS = {
    "32x32b": Ld32x32bOp,
    "16x64b": Ld16x64bOp,
    "16x128b": Ld16x128bOp,
    "16x256b": Ld16x256bOp,
    "16x32bx2": Ld16x32bx2Op,
}


def get_tmem_load_op(
    cta_tile_shape: Any,
    layout_d: LayoutEnum,
    elem_ty_d: Any,
    elem_ty_acc: Any,
    epi_tile: Any,
    use_2cta_instrs: bool,
    *,
    tmem_warp_shape_mn: tuple[int, int] | None = None,
    loc: Any = None,
    ip: Any = None,
) -> CopyAtom:
    """The atom of the ``tcgen05.ld`` with which four warps load the epilogue's part ``epi_tile`` of an accumulator: its
    registers are what the widest store to shared memory takes. ``tmem_warp_shape_mn`` is that of
    :func:`compute_epilogue_tile_shape`.

    ConstraintError for parts and types that no load fits.

    >>> from tilewright.cute import Float16, Float32
    >>> get_tmem_load_op((128, 128, 64), LayoutEnum.ROW_MAJOR, Float16, Float32, (128, 32), False).instruction
    SM100_TMEM_LOAD_32x32b32x
    >>> get_tmem_load_op((128, 128, 64), LayoutEnum.COL_MAJOR, Float16, Float32, (128, 32), False).instruction
    SM100_TMEM_LOAD_16x256b4x
    """
    acc, d = scalar_of(elem_ty_acc), scalar_of(elem_ty_d)
    warps = _warps(int(size(cta_tile_shape[0])), use_2cta_instrs, tmem_warp_shape_mn)
    lanes, columns = (int(size(extent)) // count for extent, count in zip(epi_tile, warps, strict=True))
    shape, repeat, packed = tmem_load(lanes, columns, acc.width, d.width, layout_d.is_m_major_c())
    pack = Pack.PACK_16b_IN_32b if packed else Pack.NONE
    return make_copy_atom(_LOADS[shape](Repetition(repeat), pack), elem_ty_acc)


def get_smem_store_op(
    layout_d: LayoutEnum, elem_ty_d: Any, elem_ty_acc: Any, tiled_tmem_load: Any, *, loc: Any = None, ip: Any = None
) -> CopyAtom:
    """The atom that stores to shared memory what ``tiled_tmem_load`` has loaded, as numbers of ``elem_ty_d``:
    ``stmatrix`` where its matrices are those registers, else vectors. Matrices of 8-bit numbers are stored as vectors.

    >>> from tilewright.cute import Float16, Float32
    >>> load = get_tmem_load_op((128, 128, 64), LayoutEnum.COL_MAJOR, Float16, Float32, (128, 32), False)
    >>> get_smem_store_op(LayoutEnum.COL_MAJOR, Float16, Float32, load).instruction
    SM90_U16x8_STSM_T
    """
    load = tiled_tmem_load.instruction
    if not isinstance(load, TmemMove):
        raise ConstraintError(f"get_smem_store_op takes a copy of tcgen05.ld, not {load}")
    widths = scalar_of(elem_ty_acc).width, scalar_of(elem_ty_d).width
    store = matrix_store(TmemLoad(load.shape, load.repeat, load.pack), *widths, layout_d.is_m_major_c())
    if store is None or store.width != 16:
        return make_copy_atom(CopyUniversalOp(), elem_ty_d)
    return make_copy_atom(StMatrix8x8x16bOp(store.transpose, store.matrices), elem_ty_d)


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


def make_smem_layout(
    leading_mode: OperandMajorMode,
    smem_tile_shape: Any,
    a_dtype: Any,
    num_stages: int,
    *,
    loc: Any = None,
    ip: Any = None,
) -> Any:
    """The shared memory of ``num_stages`` tiles (M or N, K) of an operand, of the widest atom: a mode each for rows,
    columns and stages, as TMA and threads see them.

    >>> from tilewright.cute import Float16
    >>> make_smem_layout(OperandMajorMode.K, (128, 64), Float16, 3)
    Sw<3,4,3> o 0 o (128,64,3):(64,1,8192)
    """
    tile = tuple(int(size(extent)) for extent in smem_tile_shape)
    atom = make_smem_layout_atom(get_smem_layout_atom_ab(leading_mode, a_dtype, tile), a_dtype)
    order = (0, 1, 2) if leading_mode is OperandMajorMode.K else (1, 0, 2)
    return coalesce(tile_to_shape(atom, (*tile, num_stages), order), target_profile=(1, 1, 1))


def make_smem_layout_a(
    tiled_mma: TiledMma,
    mma_tiler_mnk: tuple[int, int, int],
    a_dtype: Any,
    num_stages: int,
    *,
    is_k_major: bool | None = None,
    loc: Any = None,
    ip: Any = None,
) -> Any:
    """The shared memory of operand A for ``num_stages`` tiles: ``(MMA, MMA_M, MMA_K, STAGE)``, of the widest atom,
    in the instruction's order of the operand, or in the one that ``is_k_major`` says.

    >>> from tilewright.cute import Float16, Float32
    >>> K = OperandMajorMode.K
    >>> mma = make_trivial_tiled_mma(Float16, Float16, K, K, Float32, CtaGroup.ONE, (128, 64))
    >>> make_smem_layout_a(mma, (128, 64, 64), Float16, 3)
    Sw<3,4,3> o 0 o ((128,16),1,4,3):((64,1),0,16,8192)
    """
    return _smem_layout(tiled_mma, "A", (mma_tiler_mnk[0], mma_tiler_mnk[2]), a_dtype, num_stages, is_k_major)


def make_smem_layout_b(
    tiled_mma: TiledMma,
    mma_tiler_mnk: tuple[int, int, int],
    b_dtype: Any,
    num_stages: int,
    *,
    is_k_major: bool | None = None,
    loc: Any = None,
    ip: Any = None,
) -> Any:
    """The shared memory of operand B for ``num_stages`` tiles: ``(MMA, MMA_N, MMA_K, STAGE)``, of the widest atom;
    ``is_k_major`` as for A.

    >>> from tilewright.cute import Float16, Float32
    >>> K = OperandMajorMode.K
    >>> mma = make_trivial_tiled_mma(Float16, Float16, K, K, Float32, CtaGroup.ONE, (128, 64))
    >>> make_smem_layout_b(mma, (128, 64, 32), Float16, 1)
    Sw<2,4,3> o 0 o ((64,16),1,2,1):((32,1),0,16,0)
    """
    return _smem_layout(tiled_mma, "B", (mma_tiler_mnk[1], mma_tiler_mnk[2]), b_dtype, num_stages, is_k_major)


def _smem_layout(
    tiled_mma: TiledMma, which: str, tile: tuple[int, int], dtype: Any, stages: int, is_k_major: bool | None
) -> Any:
    if is_k_major is None:
        is_k_major = tiled_mma.instruction.major_of(which) == "K"
    instruction = tiled_mma.instruction
    if scalar_of(dtype) == (instruction.type_a if which == "A" else instruction.type_b):
        dtype = class_of(instruction.stored_type(which))  # bytes, where 16 narrow numbers take 16
    major = OperandMajorMode.K if is_k_major else OperandMajorMode.MN
    shape = tiled_mma.partition_shape(which, tile)
    # The atom must divide what one block holds: of a pair, half of the tile's rows or columns.
    held_tile = size(shape[0][0]) * size(shape[1]), size(shape[0][1]) * size(shape[2])
    atom = make_smem_layout_atom(get_smem_layout_atom_ab(major, dtype, held_tile), dtype)
    # The contiguous mode is filled last where it is MN: its atoms are repeated along K first.
    order = (0, 1, 2) if major is OperandMajorMode.K else (1, 0, 2)
    tiled = tile_to_mma_shape(atom, (*shape, stages), order)
    outer = tiled.outer if isinstance(tiled, ComposedLayout) else tiled
    plain = Layout((*outer.shape[:3], coalesce(outer[3]).shape), (*outer.stride[:3], coalesce(outer[3]).stride))
    return ComposedLayout(tiled.inner, tiled.offset, plain) if isinstance(tiled, ComposedLayout) else plain


@takes_one_type
def make_trivial_tiled_mma(
    a_dtype: Any,
    b_dtype: Any,
    a_leading_mode: Any,
    b_leading_mode: Any,
    acc_dtype: Any,
    cta_group: CtaGroup | Any,
    mma_tiler_mn: Any,
    a_source: OperandSource = OperandSource.SMEM,
    *,
    loc: Any = None,
    ip: Any = None,
) -> TiledMma:
    """The tiled MMA of one instruction for these types, of M x N ``mma_tiler_mn``, which may be the whole tiler (M, N,
    K) of the kernel. ConstraintError for types that
    tcgen05 does not multiply, and shapes that it does not have. One type of A and B may be given once, with the majors
    behind it, or as ``ab_dtype=``.

    >>> from tilewright.cute import Float8E4M3FN, Float32
    >>> K = OperandMajorMode.K
    >>> make_trivial_tiled_mma(Float8E4M3FN, Float8E4M3FN, K, K, Float32, CtaGroup.ONE, (64, 32)).op.instruction()
    SM100_64x32x32_F32E4M3E4M3_SS<K,K>
    >>> make_trivial_tiled_mma(Float8E4M3FN, K, K, Float32, CtaGroup.ONE, (64, 32)).op.instruction()
    SM100_64x32x32_F32E4M3E4M3_SS<K,K>
    """
    kind, rest = scalar_of(a_dtype), (tuple(mma_tiler_mn)[:2], cta_group, a_source, a_leading_mode, b_leading_mode)
    if kind in (F16, BF16) and scalar_of(b_dtype) == kind:
        return make_tiled_mma(MmaF16BF16Op(a_dtype, acc_dtype, *rest))
    if kind in (F32, TF32) and scalar_of(b_dtype) == kind and scalar_of(acc_dtype) == F32:
        return make_tiled_mma(MmaTF32Op(*rest))
    if kind in (I8, U8) and scalar_of(b_dtype) == kind and scalar_of(acc_dtype) == I32:
        return make_tiled_mma(MmaI8Op(a_dtype, *rest))
    if {kind, scalar_of(b_dtype)} <= {*SMALL_FLOATS}:
        return make_tiled_mma(MmaF8F6F4Op(a_dtype, b_dtype, acc_dtype, *rest))
    raise ConstraintError(f"make_trivial_tiled_mma: tcgen05 has no MMA of {a_dtype} and {b_dtype} into {acc_dtype}")


@takes_one_type
def make_blockscaled_trivial_tiled_mma(
    a_dtype: Any,
    b_dtype: Any,
    a_leading_mode: Any,
    b_leading_mode: Any,
    sf_dtype: Any,
    sf_vec_size: Any,
    cta_group: Any,
    mma_tiler_mn: Any,
    a_source: OperandSource = OperandSource.SMEM,
    *,
    loc: Any = None,
    ip: Any = None,
) -> TiledMma:
    """The tiled MMA of one instruction with block scales, accumulating in Float32. ConstraintError for types, vectors
    and shapes that tcgen05 does not have. One type of A and B may be given once, with the majors behind it, or as
    ``ab_dtype=``.

    >>> from tilewright.cute import Float4E2M1FN, Float8E4M3FN, Float8E8M0FNU
    >>> K = OperandMajorMode.K
    >>> mma = make_blockscaled_trivial_tiled_mma(
    ...     Float8E4M3FN, Float4E2M1FN, K, K, Float8E8M0FNU, 32, CtaGroup.ONE, (128, 64)
    ... )
    >>> mma.op.instruction()
    SM100_128x64x32_F32E4M3E2M1_SS<K,K>_UE8M0x32
    >>> mma = make_blockscaled_trivial_tiled_mma(Float4E2M1FN, K, K, Float8E4M3FN, 16, CtaGroup.ONE, (128, 64))
    >>> mma.op.instruction()
    SM100_128x64x64_F32E2M1E2M1_SS<K,K>_E4M3x16
    """
    types, majors, shape = (a_dtype, b_dtype), (a_leading_mode, b_leading_mode), tuple(mma_tiler_mn)[:2]
    return make_tiled_mma(block_scaled_op(types, majors, sf_dtype, sf_vec_size, shape, cta_group, a_source))


def get_smem_layout_atom_epi(
    layout: LayoutEnum, element_type: Any, epi_tile: Any, *, loc: Any = None, ip: Any = None
) -> SmemLayoutAtomKind:
    """The widest atom for the epilogue's tile (M, N), of which TMA moves what is contiguous along each mode.

    >>> from tilewright.cute import Float16
    >>> get_smem_layout_atom_epi(LayoutEnum.ROW_MAJOR, Float16, (128, 32)).name
    'K_SW64'
    """
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


attach(__name__)
