# Made by `python tools/stubs.py` from tilewright/cute/arch/sm100_only.py; do not edit.
"""Tensor memory: how much there is; its instructions are not here yet."""

from typing import Any

class alloc_tmem(Any):
    """Not here yet: using it is an error that says why."""

class dealloc_tmem(Any):
    """Not here yet: using it is an error that says why."""

class fence_view_async_tmem_load(Any):
    """Not here yet: using it is an error that says why."""

class fence_view_async_tmem_store(Any):
    """Not here yet: using it is an error that says why."""

class relinquish_tmem_alloc_permit(Any):
    """Not here yet: using it is an error that says why."""

class retrieve_tmem_ptr(Any):
    """Not here yet: using it is an error that says why."""

def get_max_tmem_alloc_cols(compute_capability: str) -> int:
    """How many columns of tensor memory (of 128 words) a multiprocessor of ``"sm_100"`` and its like has: 512.

    ArgumentError for others.
    """
    ...

def get_min_tmem_alloc_cols(compute_capability: str) -> int:
    """The fewest columns that can be allocated: 32; more are powers of two."""
    ...

def _columns(function: str, compute_capability: str, count: int) -> int:
    ...
