"""``cutlass.utils.mixed_input_helpers``: parts of sm_100 kernels that convert operand A, not here yet."""

from enum import Enum, auto

from tilewright import stand_ins


class TransformMode(Enum):
    """What happens to operand A before the MMA: it is converted, or converted and scaled."""

    ConvertOnly = auto()
    ConvertScale = auto()


__getattr__, __all__ = stand_ins.names(
    __name__,
    "compute_smem_layout contiguous_group_search create_initial_contiguous_group_search_state cvt_tensor_a "
    "epilog_gmem_copy_and_partition epilog_smem_copy_and_partition epilog_tmem_copy_and_partition "
    "get_copy_atom_a_transform get_divisibility get_gmem_layout_scale get_smem_layout_scale get_tma_atom_kind "
    "get_transform_a_source is_shuffle_a is_valid_mma_tiler_and_cluster_shape is_valid_scale_granularity "
    "is_valid_tensor_alignment make_contiguous_group_work_tile_info scale_partition scale_tma_partition "
    "store_transformed_a transform_partition",
    ("TransformMode",),
)
