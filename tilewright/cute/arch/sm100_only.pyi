# Made by `python tools/stubs.py` from tilewright/cute/arch/sm100_only.py; do not edit.
# ruff: noqa: E501, F401, F403, I001, UP
"""Tensor memory, which is not here yet."""

from typing import Any

class alloc_tmem(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class dealloc_tmem(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class fence_view_async_tmem_load(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class fence_view_async_tmem_store(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class get_max_tmem_alloc_cols(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class get_min_tmem_alloc_cols(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class relinquish_tmem_alloc_permit(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class retrieve_tmem_ptr(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""
