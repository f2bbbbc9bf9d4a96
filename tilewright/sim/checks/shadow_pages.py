"""Shadow memory of large arrays: only of the pages of cells that are touched.

A launch on an array of gigabytes touches little of it in a simulator, and eight bytes for each of its cells may be more
than the machine has. The cells of touched pages are kept one page after another, in the order in which they were
touched. Invariant: ``local`` and ``cell`` are each other's inverse on cells that were touched, and a new page is empty.
"""

from __future__ import annotations

import numpy as np

from tilewright.ir.lanes import Array
from tilewright.sim.checks.shadow import Shadow

PAGE = 12  # the bits of a cell's number in its page
LARGE = 1 << 26  # cells from which on an array has pages
MOST = 1 << 28  # cells that are kept; some arrays of 2 GiB


class PagedShadow(Shadow):
    """As :class:`Shadow`, with cells by their local numbers. More than ``MOST`` are a MemoryError."""

    def __init__(self, size: int, granule: int) -> None:
        super().__init__(0, granule)
        self.slots = np.zeros(((size >> self.shift) >> PAGE) + 2, np.int32)  # by page: its place + 1, 0: not touched
        self.pages = np.zeros(0, np.int64)

    def local(self, cells: Array) -> Array:
        pages = cells >> PAGE
        slots = self.slots[pages]
        if not slots.all():
            new = np.unique(pages[slots == 0])
            first, self.pages = self.pages.size, np.append(self.pages, new)
            self._grow(self.pages.size << PAGE)
            self.slots[new] = np.arange(first + 1, self.pages.size + 1)
            slots = self.slots[pages]
        found: Array = (slots.astype(np.int64) - 1 << PAGE) | (cells & ((1 << PAGE) - 1))
        return found

    def cell(self, local: int) -> int:
        return (int(self.pages[local >> PAGE]) << PAGE) | (local & ((1 << PAGE) - 1))

    def _grow(self, count: int) -> None:
        """Make room for ``count`` cells, doubled so that growing cell by cell stays linear."""
        if count > MOST:
            raise MemoryError(f"{count} cells of memory")
        if count <= self.cells:
            return
        self.cells = 2 * count

        def grown(memory: Array) -> Array:
            made = np.zeros(self.cells, memory.dtype)
            made[: memory.size] = memory
            return made

        self.written = grown(self.written)
        if self.newest is not None and self.oldest is not None:
            self.newest, self.oldest = grown(self.newest), grown(self.oldest)
        if self.observer is not None:
            self.observer = grown(self.observer)
        self.strong = {slot: grown(memory) for slot, memory in self.strong.items()}
        self.weak = [grown(memory) for memory in self.weak]


def shadow_of(size: int, granule: int) -> Shadow:
    """The shadow of an array of ``size`` bytes."""
    return (PagedShadow if has_pages(size, granule) else Shadow)(size, granule)


def has_pages(size: int, granule: int) -> bool:
    return size // granule > LARGE
