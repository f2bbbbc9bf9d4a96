# Made by `python tools/stubs.py` from tilewright/utils/gemm/sm100.py; do not edit.
"""``cutlass.utils.gemm.sm100``: epilogues from tensor memory, which are not here yet."""

from typing import Any

class epilogue(Any):
    """Not here yet: using it is an error that says why."""

class epilogue_smem_copy_and_partition(Any):
    """Not here yet: using it is an error that says why."""

class epilogue_tma_store(Any):
    """Not here yet: using it is an error that says why."""

class epilogue_tmem_copy_and_partition(Any):
    """Not here yet: using it is an error that says why."""

class transform_partitioned_tensor_layout(Any):
    """Not here yet: using it is an error that says why."""
