"""Shrinking: the smallest part of a failing schedule that still fails (delta debugging: Zeller, Hildebrandt, 2002)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

Step = TypeVar("Step")


def shrink(parts: Sequence[Step], fails: Callable[[Sequence[Step]], bool], tries: int = 200) -> list[Step]:
    """A part of ``parts``, in their order, for which ``fails`` holds, and of which nothing more can be left out (as far
    as ``tries`` calls tell).

    >>> shrink(range(100), lambda kept: 13 in kept and 70 in kept)
    [13, 70]
    """
    # Leave out one of ``pieces`` parts at a time; when none can go, halve them, down to single elements.
    kept, pieces, tries_left = list(parts), 2, tries
    if kept and tries_left and fails([]):
        return []
    while len(kept) >= 2 and tries_left > 0:
        size = -(-len(kept) // pieces)
        for start in range(0, len(kept), size):
            rest = kept[:start] + kept[start + size :]
            tries_left -= 1
            if rest and fails(rest):
                kept, pieces = rest, max(pieces - 1, 2)
                break
            if tries_left <= 0:
                return kept
        else:
            if size == 1:
                break
            pieces = min(len(kept), 2 * pieces)
    return kept
