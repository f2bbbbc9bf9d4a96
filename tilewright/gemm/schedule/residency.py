"""How many clusters of thread blocks run at once."""

from __future__ import annotations

H100 = 132
MEASURED = {1: 132, 2: 66, 4: 30, 8: 15, 16: 7}
"""Clusters of one block a multiprocessor on an H100 or H200 (``cuOccupancyMaxActiveClusters``): the multiprocessors of
a cluster lie in one GPC, and what is left over in each GPC stays idle."""


def clusters_at_once(multiprocessors: int, size: int) -> int:
    """Clusters of ``size`` blocks, one block a multiprocessor; as measured on GPUs like an H100, else an upper bound.

    A persistent kernel with more clusters than this runs the rest of them as a second wave.

    >>> clusters_at_once(132, 2), clusters_at_once(132, 4)
    (66, 30)
    """
    if multiprocessors == H100 and size in MEASURED:
        return MEASURED[size]
    return max(1, multiprocessors // size)
