# Made by `python tools/stubs.py` from tilewright/experimental/task_scheduling/memory.py; do not edit.
"""``task_scheduling.memory``: regions of shared and tensor memory, which are not here yet."""

from typing import Any

class SmemAllocation(Any):
    """Not here yet: using it is an error that says why."""

class SmemAllocator(Any):
    """Not here yet: using it is an error that says why."""

class TmemAllocation(Any):
    """Not here yet: using it is an error that says why."""

class TmemAllocator(Any):
    """Not here yet: using it is an error that says why."""
