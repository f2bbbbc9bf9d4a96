# Made by `python tools/stubs.py` from tilewright/utils/mixed_input_helpers.py; do not edit.
# ruff: noqa: E501, F401, F403, I001, UP
"""``cutlass.utils.mixed_input_helpers``: parts of sm_100 kernels that convert operand A, not here yet."""

from enum import Enum
from enum import auto
from typing import Any

class compute_smem_layout(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class contiguous_group_search(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class create_initial_contiguous_group_search_state(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class cvt_tensor_a(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class epilog_gmem_copy_and_partition(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class epilog_smem_copy_and_partition(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class epilog_tmem_copy_and_partition(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class get_copy_atom_a_transform(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class get_divisibility(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class get_gmem_layout_scale(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class get_smem_layout_scale(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class get_tma_atom_kind(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class get_transform_a_source(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class is_shuffle_a(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class is_valid_mma_tiler_and_cluster_shape(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class is_valid_scale_granularity(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class is_valid_tensor_alignment(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class make_contiguous_group_work_tile_info(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class scale_partition(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class scale_tma_partition(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class store_transformed_a(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class transform_partition(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class TransformMode(Enum):
    """What happens to operand A before the MMA: it is converted, or converted and scaled."""
    ConvertOnly = auto()
    ConvertScale = auto()
