"""Layouts as NumPy index tables: what turns a thread-value layout into one gather."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from tilewright import layout as _layout
from tilewright.layout import Layout
from tilewright.layout.tuples import product

offsets = lru_cache(maxsize=4096)(_layout.offsets)
"""``layout.offsets``, remembered: the offsets of a static layout in colexicographic (1-D index) order."""


def size(layout: Layout) -> int:
    return int(product(layout.shape))


@lru_cache(maxsize=4096)
def owners(tv_layout: Layout, rows: int, columns: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Thread and value that hold each element of a ``rows x columns`` tile.

    ``tv_layout`` maps (thread, value) to ``row + rows * column``. Where several threads hold an element, one is given.
    """
    threads = size(tv_layout[0])
    where = offsets(tv_layout)
    position = np.zeros(rows * columns, dtype=np.intp)
    position[where] = np.arange(where.size, dtype=np.intp)
    grid = position.reshape(columns, rows).T
    return grid % threads, grid // threads


@lru_cache(maxsize=1024)
def lanes_of(thr_id: Layout) -> np.ndarray[Any, Any]:
    """``[groups, threads]``: which lanes of a warp execute one instruction together.

    Most atoms take a warp (one group of 32), the universal ones a thread (32 groups of one), and SM70's quad pairs
    take lanes 0-3 with 16-19, 4-7 with 20-23, and so on.

    >>> from tilewright.layout import Layout
    >>> lanes_of(Layout((4, 2), (1, 16)))[1].tolist()
    [4, 5, 6, 7, 20, 21, 22, 23]
    """
    base = offsets(thr_id)
    taken = np.zeros(32, dtype=bool)
    groups = []
    for lane in range(32):
        if not taken[lane]:
            groups.append(base + lane)
            taken[groups[-1]] = True
    return np.array(groups)
