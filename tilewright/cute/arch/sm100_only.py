"""Tensor memory: how much there is; its instructions are not here yet."""

from tilewright import stand_ins
from tilewright.errors import ArgumentError

_MULTIPROCESSORS = ("sm_100", "sm_101", "sm_103", "sm_110")


def get_max_tmem_alloc_cols(compute_capability: str) -> int:
    """How many columns of tensor memory (of 128 words) a multiprocessor of ``"sm_100"`` and its like has: 512.

    ArgumentError for others.
    """
    return _columns("get_max_tmem_alloc_cols", compute_capability, 512)


def get_min_tmem_alloc_cols(compute_capability: str) -> int:
    """The fewest columns that can be allocated: 32; more are powers of two."""
    return _columns("get_min_tmem_alloc_cols", compute_capability, 32)


def _columns(function: str, compute_capability: str, count: int) -> int:
    if str(compute_capability).rstrip("af") not in _MULTIPROCESSORS:
        known = ", ".join(_MULTIPROCESSORS)
        raise ArgumentError(f"{function}: {compute_capability!r} has no tensor memory: {known} have")
    return count


__getattr__, __all__ = stand_ins.names(
    __name__,
    "alloc_tmem dealloc_tmem fence_view_async_tmem_load fence_view_async_tmem_store "
    "relinquish_tmem_alloc_permit retrieve_tmem_ptr",
    ("get_max_tmem_alloc_cols", "get_min_tmem_alloc_cols"),
    public="cute.arch",
)
