# Made by `python tools/stubs.py` from tilewright/experimental/task_scheduling/memory.py; do not edit.
# ruff: noqa: E501, F401, F403, I001, UP
"""``task_scheduling.memory``: regions of shared and tensor memory, which are not here yet."""

from typing import Any

class SmemAllocation(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class SmemAllocator(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class TmemAllocation(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class TmemAllocator(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""
