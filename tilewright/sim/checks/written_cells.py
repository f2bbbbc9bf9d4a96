"""The part of shared memory that is known to be written, so that accesses to it need not be looked at.

Invariant: a cell that is not ``dirty`` is written in every one of some blocks. Cells only become defined until
:meth:`WrittenCells.forget` says that an undefined value may have been stored; then all are dirty again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.ir.lanes import Array

CLEAN = -1
MOST = 16  # sets of blocks, as groups part and meet


class _Known:
    """What is known of some blocks: ``rows`` of the wave's. ``dirty``: their cells; ``looked``: for stretches of cells
    how many writes there had been before the last look; CLEAN: nothing is dirty there."""

    def __init__(self, rows: Any, cells: int) -> None:
        self.rows, self.dirty = rows, np.ones(cells, bool)
        self.looked: dict[tuple[int, int], int] = {}


class WrittenCells:
    """Which places of a block's shared memory are written in all of some blocks of a wave; found when it is asked
    for. Blocks are given as bits."""

    def __init__(self, memory: Array, cells: int, blocks: int) -> None:
        self.memory = memory[: blocks * cells].reshape(blocks, cells)
        self.known_of: dict[int, _Known] = {}
        self.writes = 0  # that may have made places clean
        self.forgets = 0

    def _known(self, blocks: int) -> _Known:
        found = self.known_of.get(blocks)
        if found is None:
            if len(self.known_of) == MOST:
                self.known_of.clear()
            rows: Any = [row for row in range(len(self.memory)) if blocks >> row & 1]
            if rows[-1] - rows[0] + 1 == len(rows):  # NumPy takes a slice without a copy
                rows = slice(rows[0], rows[-1] + 1)
            found = self.known_of[blocks] = _Known(rows, self.memory.shape[1])
        return found

    def has(self, blocks: int, start: int, stop: int) -> bool:
        """Whether the cells from ``start`` to ``stop`` are."""
        known = self._known(blocks)
        looked = known.looked.get((start, stop))
        if looked == CLEAN or looked == self.writes:
            return looked == CLEAN
        here = known.dirty[start:stop]
        if here.any():
            # The greatest number of a place: NumPy's any() of numbers takes ten times as long.
            here[:] = np.maximum.reduce(self.memory[known.rows, start:stop], axis=0) != 0
        found = not here.any()
        known.looked[start, stop] = CLEAN if found else self.writes
        return found

    def known(self, blocks: int, start: int, stop: int) -> bool:
        """Whether the cells are known to be, without a look at them."""
        known = self._known(blocks)
        return known.looked.get((start, stop)) == CLEAN or not known.dirty[start:stop].any()

    def forget(self) -> None:
        """Something undefined may have been stored anywhere."""
        self.known_of.clear()
        self.writes += 1
        self.forgets += 1
