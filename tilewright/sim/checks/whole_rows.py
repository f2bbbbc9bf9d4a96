"""Stores to an array of which each warp's fill a row of their own: kept warp by warp, not cell by cell.

The kernels that write whole arrays mostly do it so: each warp 32 vectors side by side, and no byte twice. Of a row it
is enough to know the entry of the warp that wrote it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tilewright.ir.lanes import Array
from tilewright.ir.target import WARP

if TYPE_CHECKING:
    from tilewright.sim.checks.shadow import Shadow


class WholeRows:
    """``size``: bytes of a row; ``phase``: where the first one begins; ``end``: the bytes of the array. Invariant: all
    accesses to the array that the race checker compares are stores of rows kept here, no row was stored twice, and
    :meth:`move_to_cells` leaves in the shadow's cells what they had left there one by one."""

    def __init__(self, size: int, phase: int, end: int) -> None:
        self.size, self.phase, self.end = size, phase, end
        self.written = np.zeros(end // size + 1, np.int64)  # by row the entry of lane 0 of the warp; 0: not stored

    def add(self, start: Array, first: int, entries: Array) -> bool:
        """Keep stores by warps to the rows ``start`` after that at byte ``first``; False, and nothing is kept, if one
        of these has been stored already or is stored by two of them, or is not one of the array's."""
        rows = start + first // self.size
        if int(rows.min()) < 0 or (int(rows.max()) + 1) * self.size + self.phase > self.end:
            return False
        if self.written[rows].any():
            return False
        self.written[rows] = entries
        if (self.written[rows] != entries).any():
            self.written[rows] = 0
            return False
        return True

    def move_to_cells(self, shadow: Shadow) -> None:
        """Write all rows to the cells of ``shadow``, which were not used before."""
        rows = np.flatnonzero(self.written)
        cells, lanes = np.arange(self.size >> shadow.shift), np.arange(WARP)
        at = (rows * self.size + self.phase >> shadow.shift)[:, None] + cells
        shadow.written[at] = self.written[rows][:, None] | np.repeat(lanes, cells.size // WARP)
