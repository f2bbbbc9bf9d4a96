"""The part of shared memory that is known to be written, so that accesses to it need not be looked at.

Invariant: a cell that is not ``dirty`` is written in every block of the wave. Cells only become defined until
:meth:`WrittenCells.forget` says that an undefined value may have been stored; then all are dirty again.
"""

from __future__ import annotations

import numpy as np

from tilewright.ir.lanes import Array

CLEAN = -1


class WrittenCells:
    """Which places of a block's shared memory are written in all blocks of a wave; found when it is asked for."""

    def __init__(self, memory: Array, cells: int, blocks: int) -> None:
        self.memory = memory[: blocks * cells].reshape(blocks, cells)
        self.dirty = np.ones(cells, bool)
        self.writes = 0  # that may have made places clean
        self.forgets = 0
        self.looked: dict[tuple[int, int], int] = {}  # the writes before the last look, CLEAN: nothing is dirty there

    def has(self, start: int, stop: int) -> bool:
        """Whether the cells from ``start`` to ``stop`` are."""
        looked = self.looked.get((start, stop))
        if looked == CLEAN or looked == self.writes:
            return looked == CLEAN
        here = self.dirty[start:stop]
        if here.any():
            # The greatest number of a place: NumPy's any() of numbers takes ten times as long.
            here[:] = np.maximum.reduce(self.memory[:, start:stop], axis=0) != 0
        found = not here.any()
        self.looked[start, stop] = CLEAN if found else self.writes
        return found

    def known(self, start: int, stop: int) -> bool:
        """Whether the cells are known to be, without a look at them."""
        return self.looked.get((start, stop)) == CLEAN or not self.dirty[start:stop].any()

    def forget(self) -> None:
        """Something undefined may have been stored anywhere."""
        self.dirty[:] = True
        self.looked.clear()
        self.forgets += 1
        self.writes += 1
