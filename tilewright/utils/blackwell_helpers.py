"""``cutlass.utils.blackwell_helpers``: choices for sm_100 kernels, whose instructions are not here yet."""

from tilewright import sm100

__getattr__, __all__ = sm100.names(
    __name__,
    "check_gemm_tma_alignment cluster_shape_to_tma_atom_A cluster_shape_to_tma_atom_B cluster_shape_to_tma_atom_SFB "
    "compute_epilogue_tile_shape compute_epilogue_tile_size get_layoutSFA_TV get_layoutSFB_TV get_permutation_mnk "
    "get_smem_layout_atom_ab get_smem_layout_atom_epi get_smem_store_op get_tmem_load_op "
    "make_blockscaled_trivial_tiled_mma make_smem_layout make_smem_layout_a make_smem_layout_atom make_smem_layout_b "
    "make_smem_layout_epi make_trivial_tiled_mma partition_fragment_SFA partition_fragment_SFB "
    "sm120_get_smem_store_op thrfrg_SFA thrfrg_SFB",
)
