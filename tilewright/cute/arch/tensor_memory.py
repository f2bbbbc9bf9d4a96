"""How much tensor memory a multiprocessor has."""

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
        choices = ", ".join(_MULTIPROCESSORS)
        raise ArgumentError(f"{function}: {compute_capability!r} has no tensor memory: {choices} have")
    return count
