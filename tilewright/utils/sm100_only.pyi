# Made by `python tools/stubs.py` from tilewright/utils/sm100_only.py; do not edit.
# ruff: noqa: E501, F401, F403, I001, UP
"""Tensor memory and cluster launch control, which are not here yet."""

from typing import Any

class ClcDynamicPersistentTileScheduler(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class ClcDynamicPersistentTileSchedulerParams(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class TmemAllocator(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class get_num_tmem_alloc_cols(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""
