# Made by `python tools/stubs.py` from tilewright/utils/gemm/sm100.py; do not edit.
# ruff: noqa: E501, F401, F403, I001, UP
"""``cutlass.utils.gemm.sm100``: epilogues from tensor memory, which are not here yet."""

from typing import Any

class epilogue(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class epilogue_smem_copy_and_partition(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class epilogue_tma_store(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class epilogue_tmem_copy_and_partition(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class transform_partitioned_tensor_layout(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""
