"""The offsets of a pointer that differ between lanes, with what is found out about them once.

Most pointers of a kernel are another one plus a constant: the elements of a thread's part of a tile, the stages of a
ring. They share one array of offsets, so the array's range, alignment and item indices are computed once for all of
them, and an access costs a gather and little else.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tilewright.ir.lanes import Array
from tilewright.ir.target import WARP
from tilewright.sim.access import VectorAccess


class WarpRows(NamedTuple):
    """Accesses of which each warp's are side by side, lane after lane: rows of ``size`` bytes, those of ``numbers``
    from byte ``first`` on."""

    size: int
    dtype: Any
    first: int
    numbers: Array


class SharedRows:
    """How lanes of a warp share offsets: ``lanes [R]`` one of those that have the same, ``row [32]`` which of them each
    lane shares with. There is one object of a kind, which a register for all lanes may hold (``ndim``)."""

    __slots__ = ("lanes", "row")
    ndim = 0

    def __init__(self, lanes: Array, row: Array) -> None:
        self.lanes, self.row = lanes, row

    @property
    def count(self) -> int:
        return len(self.lanes)


_shared_rows: dict[bytes, SharedRows] = {}


class Offsets:
    """``array [L]`` int64, never written to. ``low``, ``high``, ``bits``: its least and greatest element, and all
    elements or-ed together (a low bit that is 0 there is 0 in each)."""

    __slots__ = (
        "array",
        "_range",
        "_items",
        "_gap",
        "_by_warp",
        "_rows",
        "_moved",
        "_arranged",
        "_shared",
        "costs",
        "reached",
    )

    def __init__(self, array: Array) -> None:
        self.array = array
        self._range: tuple[int, int, int] | None = None
        self._items: dict[tuple[int, int], tuple[Any, Array]] = {}
        self._gap = -1
        self._by_warp: tuple[Array, Array] | None = None
        self._arranged: dict[Any, tuple[Any, Array, Any]] = {}
        self._moved: tuple[Array, Offsets] | None = None
        self._rows: dict[int, WarpRows | None] = {}
        self._shared: list[SharedRows | None] = []  # once it is known
        self.costs: dict[Any, tuple[int, int]] = {}  # what a profile has counted: see profiling.py
        self.reached: dict[Any, Any] = {}  # what the check for data races has found out: see checks/reach.py

    @property
    def range(self) -> tuple[int, int, int]:
        """(low, high, bits)."""
        range_ = self._range
        if range_ is None:
            array = self.array
            low, high = int(np.minimum.reduce(array)), int(np.maximum.reduce(array))
            range_ = self._range = low, high, int(np.bitwise_or.reduce(array))
        return range_

    @property
    def by_warp(self) -> tuple[Array, Array]:
        """The least and the greatest offset of each warp."""
        bounds = self._by_warp
        if bounds is None:
            lanes = self.array.reshape(-1, WARP)
            bounds = self._by_warp = np.minimum.reduce(lanes, axis=1), np.maximum.reduce(lanes, axis=1)
        return bounds

    def arranged(self, access: VectorAccess, base: Any, moves: tuple[int, ...], order: Any) -> Array:
        """``[warps, n]``: the items at these offsets plus each of ``moves``, in the ``order`` of
        :class:`.moves.Arrangement`."""
        key = access.shift, moves, id(order)
        remembered = self._arranged.get(key)
        if remembered is not None and (remembered[0] is base or type(base) is type(remembered[0]) is int):
            return remembered[1]
        far = np.array(moves) >> access.shift
        # In the order in which it is read: an array that is taken by columns would be copied at each access.
        index = np.ascontiguousarray(self.items(access, base).reshape(-1, WARP)[:, order.lane] + far[order.pointer])
        self._arranged[key] = base, index, order
        return index

    @property
    def shared(self) -> SharedRows | None:
        """How the lanes of each warp share offsets; None where warps differ in that."""
        if not self._shared:
            lanes = self.array.reshape(-1, WARP)
            _, first, row = np.unique(lanes[0], return_index=True, return_inverse=True)
            alike = bool((lanes == lanes[:, first[row]]).all())
            self._shared = [_shared_rows.setdefault(row.tobytes(), SharedRows(first, row)) if alike else None]
        return self._shared[0]

    def plus(self, move: Array) -> Offsets:
        """These offsets plus ``move [L]``: one object for one array, by which pointers to several tensors are moved."""
        moved = self._moved
        if moved is None or moved[0] is not move:
            moved = self._moved = move, Offsets(self.array + move)
        return moved[1]

    def rows(self, nbytes: int) -> WarpRows | None:
        """The offsets as rows of warps, if accesses of ``nbytes`` there are such; none of them is negative."""
        if nbytes not in self._rows:
            self._rows[nbytes] = self._find_rows(nbytes)
        return self._rows[nbytes]

    def _find_rows(self, nbytes: int) -> WarpRows | None:
        lanes, size = self.array.reshape(-1, WARP), WARP * nbytes
        starts = lanes[:, 0]
        first = int(starts[0]) % size
        if self.range[0] < 0 or ((starts - first) % size).any():
            return None
        if (lanes != starts[:, None] + np.arange(0, size, nbytes)).any():
            return None
        return WarpRows(size, np.dtype((np.void, size)), first, starts // size)

    def gap(self, group: Any) -> int:
        """The least distance between two lanes, in memory that each block has for itself."""
        if self._gap < 0:
            base = group.smem_base
            # Blocks of the wave have memory of their own: their offsets are set apart beyond any size of shared memory.
            there = np.sort(self.array if type(base) is int else self.array + (base << 24))
            self._gap = int(np.minimum.reduce(there[1:] - there[:-1])) if there.size > 1 else 1 << 62
        return self._gap

    def items(self, access: VectorAccess, base: Any) -> Array:
        """``[L]`` or ``[L, parts]``: the items of the access's width at these offsets, plus ``base`` where that differs
        between lanes (an int is left to the caller)."""
        key = access.shift, access.parts
        remembered = self._items.get(key)
        if remembered is not None and (remembered[0] is base or type(base) is type(remembered[0]) is int):
            return remembered[1]
        index = self.array if type(base) is int else self.array + base
        if access.shift:
            index = index >> access.shift
        if access.parts > 1:
            index = index[:, None] + access.steps
        self._items[key] = base, index
        return index
