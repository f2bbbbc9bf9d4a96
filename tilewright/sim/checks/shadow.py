"""Shadow memory: for each cell of memory who wrote it last, and two of those who have read it since.

An entry (*epoch*) is 63 bits: kind (2), clock (24), site (10), unit (22), lane (5). The clocks of threads (kind
``THREADS``) are ticks of the whole launch, so that ``entry < floor`` with one comparison says that an access is older
than a barrier which all threads of a block have passed. Those of the groups of cp.async (``GROUPS``) and of the rest
(``OTHERS``: other asynchronous units, bytes that count at mbarriers) are numbers of their own.

Reads are kept in a list until a write that may race with them: in most kernels a barrier is between, and they are
never compared. Invariant: the list and the cells together hold what the cells would hold if each read had gone there at
once. Of the reads since the last write a cell keeps the first and the newest: with two, a write is seen to race with
one of several readers in all but rare cases, and never wrongly.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tilewright.ir.lanes import Array
from tilewright.sim.checks.found_once import found_once

UNIT, SITE, CLOCK = 22, 10, 24
WHO = UNIT + 5  # the bits below are unit * 32 + lane
SITE_SHIFT, CLOCK_SHIFT, KIND_SHIFT = WHO, WHO + SITE, WHO + SITE + CLOCK
MOST_UNITS, MOST_TICKS = 1 << UNIT, 1 << CLOCK
THREADS, GROUPS, OTHERS = 0, 1, 2
NEVER = 1 << 62  # later than every floor
SLOTS = 3
KEPT, KEPT_CELLS = 64, 1 << 22  # reads in the list before they are sorted into the cells


def epoch(who: Any, site: int, clock: Any, kind: int = THREADS) -> Any:
    """Entries of the threads or agents ``who`` (unit * 32 + lane)."""
    return (np.int64(clock) << CLOCK_SHIFT) | who | ((kind << KIND_SHIFT) + (site << SITE_SHIFT))


def who_of(entry: Any) -> Any:
    return entry & ((1 << WHO) - 1)


def site_of(entry: Any) -> Any:
    return entry >> SITE_SHIFT & ((1 << SITE) - 1)


def clock_of(entry: Any) -> Any:
    return entry >> CLOCK_SHIFT & ((1 << CLOCK) - 1)


class Cells:
    """The cells of an access, one for each lane (or several)."""

    __slots__ = ("flat", "size")

    def __init__(self, flat: Array) -> None:
        self.flat, self.size = flat, flat.size

    def get(self, memory: Array) -> Array:
        return memory[self.flat]

    def set(self, memory: Array, values: Any) -> None:
        memory[self.flat] = values

    def distinct(self) -> bool:
        """Whether it is plain that no cell comes twice."""
        return bool((self.flat[1:] > self.flat[:-1]).all())


class Read(NamedTuple):
    """A read that is not in the cells yet. ``floor``: see :meth:`Clocks.floors`, of the readers."""

    cells: Cells
    entries: Array
    floor: int


class Shadow:
    """The cells of one buffer, ``1 << shift`` bytes each. ``reads`` are kept only where a thread also writes."""

    def __init__(self, size: int, granule: int) -> None:
        self.shift = granule.bit_length() - 1
        self.cells = (size >> self.shift) + 1
        self.newest: Array | None = None
        self.oldest: Array | None = None
        # By number of the block, modulo SLOTS: an atomic before the last one, which nothing orders with that. One for
        # all blocks would not do: the last but one may be of the block that reads the sum, and knows of its own.
        self.strong: dict[int, Array] = {}
        self.weak: list[Array] = []  # of cells whose last access is strong the last weak write, once there are any
        self.observer: Array | None = None  # of cells with strong writes: which thread has read the last of them
        self.reads: list[Read] = []
        self.kept = 0

    @found_once
    def written(self) -> Array:
        """The last write to each cell. Most launches put no access to shared memory into cells, and pay for none."""
        return np.zeros(self.cells, np.int64)

    def local(self, cells: Array) -> Array:
        """The numbers by which the arrays here know these cells."""
        return cells

    def cell(self, local: int) -> int:
        """The cell that has a local number."""
        return local

    def read(self, read: Read) -> None:
        """Remember a read."""
        self.reads.append(read)
        self.kept += read.cells.size
        if len(self.reads) > KEPT or self.kept > KEPT_CELLS:
            self.merge_reads()

    def keep_strong(self, cells: Array, entries: Array, block: int) -> None:
        """Remember strong accesses that others took the place of; ``block``: units of a block."""
        slots = who_of(entries) // (32 * block) % SLOTS
        for slot in map(int, np.unique(slots)):
            mine = slots == slot
            memory = self.strong.get(slot)
            if memory is None:
                memory = self.strong[slot] = np.zeros(self.cells, np.int64)
            memory[cells[mine]] = entries[mine]

    def keep_weak(self, cells: Array, entries: Array) -> None:
        """Remember weak writes that a strong access takes the place of."""
        if not self.weak:
            self.weak.append(np.zeros(self.cells, np.int64))
        self.weak[0][cells] = entries

    def set_observer(self, where: Cells, entries: Array | None) -> None:
        """A strong access: by a thread that looks at what was there, or (None) by one that does not."""
        if entries is not None and self.observer is None:
            self.observer = np.zeros(self.cells, np.int64)
        if self.observer is not None:
            where.set(self.observer, 0 if entries is None else entries)

    @property
    def was_read(self) -> bool:
        """Whether any read has been remembered."""
        return bool(self.reads) or self.newest is not None

    def merge_reads(self) -> tuple[Array, Array]:
        """(newest, oldest) read of each cell, with those of the list."""
        if self.newest is None or self.oldest is None:
            self.newest, self.oldest = np.zeros(self.cells, np.int64), np.zeros(self.cells, np.int64)
        for cells, entries, floor in self.reads:
            before = cells.get(self.oldest)
            stale = before < max(1, floor << CLOCK_SHIFT)
            cells.set(self.newest, entries)
            if stale.all():
                cells.set(self.oldest, entries)
            elif stale.any():
                first = np.flatnonzero(stale)[::-1]
                self.oldest[cells.flat[first]] = entries[first]
        self.reads, self.kept = [], 0
        return self.newest, self.oldest
