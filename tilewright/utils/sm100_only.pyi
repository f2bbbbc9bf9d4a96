# Made by `python tools/stubs.py` from tilewright/utils/sm100_only.py; do not edit.
"""Tensor memory and cluster launch control, which are not here yet."""

from typing import Any

class ClcDynamicPersistentTileScheduler(Any):
    """Not here yet: using it is an error that says why."""

class ClcDynamicPersistentTileSchedulerParams(Any):
    """Not here yet: using it is an error that says why."""

class TmemAllocator(Any):
    """Not here yet: using it is an error that says why."""

class get_num_tmem_alloc_cols(Any):
    """Not here yet: using it is an error that says why."""
