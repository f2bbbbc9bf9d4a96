"""Shadow memory: for each cell of memory who wrote it last, and two of those who have read it since.

An entry (*epoch*) is 64 bits: unit (26), lane (5), site (12), clock (20). Of the reads since the last write a cell
keeps the first and the newest: with two, a write is seen to race with one of several readers in all but rare cases, and
never wrongly.
"""

from __future__ import annotations

from typing import Any

import numpy as np

CLOCK, SITE = 20, 12
MOST_UNITS = 1 << 26
WHO = CLOCK + SITE  # the bits above are unit * 32 + lane
Array = np.ndarray[Any, Any]


class Shadow:
    """The cells of one buffer, ``1 << shift`` bytes each. ``reads`` are kept only where somebody also writes."""

    def __init__(self, size: int, granule: int) -> None:
        self.shift = granule.bit_length() - 1
        cells = (size >> self.shift) + 1
        self.written = np.zeros(cells, np.int64)
        self.newest: Array | None = None
        self.oldest: Array | None = None
        self.cells = cells

    def readers(self) -> tuple[Array, Array]:
        if self.newest is None or self.oldest is None:
            self.newest, self.oldest = np.zeros(self.cells, np.int64), np.zeros(self.cells, np.int64)
        return self.newest, self.oldest


def epoch(who: Array, site: int, clock: Array) -> Array:
    """Entries of the lanes ``who`` (unit * 32 + lane)."""
    packed: Array = (who << WHO) | (np.int64(site) << CLOCK) | clock
    return packed


def who_of(entry: Any) -> Any:
    return entry >> WHO


def site_of(entry: Any) -> Any:
    return entry >> CLOCK & ((1 << SITE) - 1)


def clock_of(entry: Any) -> Any:
    return entry & ((1 << CLOCK) - 1)
