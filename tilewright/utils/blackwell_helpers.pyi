# Made by `python tools/stubs.py` from tilewright/utils/blackwell_helpers.py; do not edit.
"""``cutlass.utils.blackwell_helpers``: choices for sm_100 kernels. What is plain arithmetic and layouts works; what
makes an operation of tcgen05 is not here yet.

The rules are those of CUTLASS' collective builders (include/cutlass/epilogue/collective/builders/sm100_builder.inl,
include/cutlass/gemm/collective/builders/sm100_common.inl).
"""

from typing import Any
from tilewright.cute.nvgpu.common import OperandMajorMode
from tilewright.cute.nvgpu.cpasync import CopyBulkTensorTileG2SOp
from tilewright.cute.nvgpu.warpgroup import SmemLayoutAtomKind
from tilewright.utils.layout_enum import LayoutEnum

class check_gemm_tma_alignment(Any):
    """Not here yet: using it is an error that says why."""

class cluster_shape_to_tma_atom_SFB(Any):
    """Not here yet: using it is an error that says why."""

class get_layoutSFA_TV(Any):
    """Not here yet: using it is an error that says why."""

class get_layoutSFB_TV(Any):
    """Not here yet: using it is an error that says why."""

class get_permutation_mnk(Any):
    """Not here yet: using it is an error that says why."""

class get_smem_store_op(Any):
    """Not here yet: using it is an error that says why."""

class get_tmem_load_op(Any):
    """Not here yet: using it is an error that says why."""

class make_blockscaled_trivial_tiled_mma(Any):
    """Not here yet: using it is an error that says why."""

class make_smem_layout(Any):
    """Not here yet: using it is an error that says why."""

class make_smem_layout_a(Any):
    """Not here yet: using it is an error that says why."""

class make_smem_layout_atom(Any):
    """Not here yet: using it is an error that says why."""

class make_smem_layout_b(Any):
    """Not here yet: using it is an error that says why."""

class make_trivial_tiled_mma(Any):
    """Not here yet: using it is an error that says why."""

class partition_fragment_SFA(Any):
    """Not here yet: using it is an error that says why."""

class partition_fragment_SFB(Any):
    """Not here yet: using it is an error that says why."""

class sm120_get_smem_store_op(Any):
    """Not here yet: using it is an error that says why."""

class thrfrg_SFA(Any):
    """Not here yet: using it is an error that says why."""

class thrfrg_SFB(Any):
    """Not here yet: using it is an error that says why."""

DATAPATHS: int

def compute_epilogue_tile_size(
    cta_tile_m: int, cta_tile_n: int, use_2cta: bool, elem_width_d: int, elem_width_c: int | None = None,
    d_is_m_major: bool = True, c_is_m_major: bool = True,
) -> tuple[int, int]:  # fmt: skip
    """The part (M, N) of a block's tile that the epilogue stores at a time. Widths are in bits; no C: None.

    ConstraintError where the tile is smaller than what four warps store at a time.

    >>> compute_epilogue_tile_size(128, 256, False, 16)
    (128, 32)
    """
    ...

def _warps(cta_tile_m: int, use_2cta: bool) -> tuple[int, int]:
    """How the four warps of an epilogue divide rows and columns of the accumulator."""
    ...

def _least(width: int, m_major: bool) -> int:
    """The fewest columns: a store of TMA writes 16 bytes of a row; of 6-bit numbers it writes 128 numbers."""
    ...

def _columns(m: int, cta_m: int, cta_n: int, d: int, c: int | None) -> int:
    """The columns of a part that C++ kernels were found to be fast with."""
    ...

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
    ...

def get_smem_layout_atom_ab(
    major_mode: OperandMajorMode, element_type: Any, smem_shape_mn_k: Any, *, loc: Any = None, ip: Any = None
) -> SmemLayoutAtomKind:
    """The widest atom whose rows divide an operand's tile (M or N, K) along its contiguous mode.

    >>> from tilewright.cute import Float16
    >>> get_smem_layout_atom_ab(OperandMajorMode.K, Float16, (128, 64)).name
    'K_SW128'
    """
    ...

def get_smem_layout_atom_epi(
    layout: LayoutEnum, element_type: Any, epi_tile: Any, *, loc: Any = None, ip: Any = None
) -> SmemLayoutAtomKind:
    """The widest atom for the epilogue's tile (M, N), of which TMA moves what is contiguous along each mode."""
    ...

def _widest(major: str, extent: int, element_type: Any) -> SmemLayoutAtomKind:
    ...

def make_smem_layout_epi(
    epi_dtype: Any, epi_layout: LayoutEnum, epi_tile: Any, epi_stage: int, *, loc: Any = None, ip: Any = None
) -> Any:
    """The shared-memory layout of the epilogue's tiles (M, N, stages); ``epi_layout`` is the order of D (M, N).

    >>> from tilewright.cute import Float16
    >>> make_smem_layout_epi(Float16, LayoutEnum.ROW_MAJOR, (128, 32), 2)
    Sw<2,4,3> o 0 o ((8,16),(32,1),(1,2)):((32,256),(1,0),(0,4096))
    """
    ...

def cluster_shape_to_tma_atom_A(
    cluster_shape_mnk: Any, atom_thr_id: Any, *, loc: Any = None, ip: Any = None
) -> CopyBulkTensorTileG2SOp:
    """The TMA operation that loads A: multicast where blocks lie side by side along N. ``atom_thr_id``: how many
    blocks work on one MMA; two need sm_100 (ConstraintError)."""
    ...

def cluster_shape_to_tma_atom_B(
    cluster_shape_mnk: Any, atom_thr_id: Any, *, loc: Any = None, ip: Any = None
) -> CopyBulkTensorTileG2SOp:
    """The TMA operation that loads B: multicast where MMAs of other blocks lie side by side along M."""
    ...

def _load(cluster_shape_mnk: Any, across: int, atom_thr_id: Any) -> CopyBulkTensorTileG2SOp:
    ...
