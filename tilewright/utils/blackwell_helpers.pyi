# Made by `python tools/stubs.py` from tilewright/utils/blackwell_helpers.py; do not edit.
# ruff: noqa: E501, F401, F403, I001, UP
"""``cutlass.utils.blackwell_helpers``: choices for sm_100 kernels, whose instructions are not here yet."""

from typing import Any

class check_gemm_tma_alignment(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class cluster_shape_to_tma_atom_A(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class cluster_shape_to_tma_atom_B(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class cluster_shape_to_tma_atom_SFB(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class compute_epilogue_tile_shape(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class compute_epilogue_tile_size(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class get_layoutSFA_TV(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class get_layoutSFB_TV(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class get_permutation_mnk(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class get_smem_layout_atom_ab(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class get_smem_layout_atom_epi(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class get_smem_store_op(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class get_tmem_load_op(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class make_blockscaled_trivial_tiled_mma(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class make_smem_layout(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class make_smem_layout_a(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class make_smem_layout_atom(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class make_smem_layout_b(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class make_smem_layout_epi(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class make_trivial_tiled_mma(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class partition_fragment_SFA(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class partition_fragment_SFB(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class sm120_get_smem_store_op(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class thrfrg_SFA(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class thrfrg_SFB(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""
