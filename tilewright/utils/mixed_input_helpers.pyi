# Made by `python tools/stubs.py` from tilewright/utils/mixed_input_helpers.py; do not edit.
"""``cutlass.utils.mixed_input_helpers``: parts of sm_100 kernels that convert operand A, not here yet."""

from enum import Enum
from enum import auto
from typing import Any

class compute_smem_layout(Any):
    """Not here yet: using it is an error that says why."""

class contiguous_group_search(Any):
    """Not here yet: using it is an error that says why."""

class create_initial_contiguous_group_search_state(Any):
    """Not here yet: using it is an error that says why."""

class cvt_tensor_a(Any):
    """Not here yet: using it is an error that says why."""

class epilog_gmem_copy_and_partition(Any):
    """Not here yet: using it is an error that says why."""

class epilog_smem_copy_and_partition(Any):
    """Not here yet: using it is an error that says why."""

class epilog_tmem_copy_and_partition(Any):
    """Not here yet: using it is an error that says why."""

class get_copy_atom_a_transform(Any):
    """Not here yet: using it is an error that says why."""

class get_divisibility(Any):
    """Not here yet: using it is an error that says why."""

class get_gmem_layout_scale(Any):
    """Not here yet: using it is an error that says why."""

class get_smem_layout_scale(Any):
    """Not here yet: using it is an error that says why."""

class get_tma_atom_kind(Any):
    """Not here yet: using it is an error that says why."""

class get_transform_a_source(Any):
    """Not here yet: using it is an error that says why."""

class is_shuffle_a(Any):
    """Not here yet: using it is an error that says why."""

class is_valid_mma_tiler_and_cluster_shape(Any):
    """Not here yet: using it is an error that says why."""

class is_valid_scale_granularity(Any):
    """Not here yet: using it is an error that says why."""

class is_valid_tensor_alignment(Any):
    """Not here yet: using it is an error that says why."""

class make_contiguous_group_work_tile_info(Any):
    """Not here yet: using it is an error that says why."""

class scale_partition(Any):
    """Not here yet: using it is an error that says why."""

class scale_tma_partition(Any):
    """Not here yet: using it is an error that says why."""

class store_transformed_a(Any):
    """Not here yet: using it is an error that says why."""

class transform_partition(Any):
    """Not here yet: using it is an error that says why."""

class TransformMode(Enum):
    """What happens to operand A before the MMA: it is converted, or converted and scaled."""
    ConvertOnly = auto()
    ConvertScale = auto()
