"""The simulator's tensor memory: 128 lanes of 512 columns for each resident block, and who has allocated which columns.

PTX ISA, "Tensor Memory" and "tcgen05.alloc": columns are allocated as a stretch of 32, 64, 128, 256 or 512, and must
be freed before the block ends. Blocks that share a multiprocessor share its columns; here each block has 512 of its
own, at the lowest free columns that are a multiple of the count.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.atoms.tensor_memory import COLUMNS, LANES
from tilewright.errors import SimulationError
from tilewright.ir.core import Op
from tilewright.ir.instruction import Lanes
from tilewright.ir.lanes import Array

POISON = 0xCDCDCDCD
NEVER, FREED = 0, -1


class TensorMemory:
    """That of one block. ``owner``: by column, the number of its allocation, ``NEVER`` or ``FREED``; ``allocated``: the
    stretches (first column, count) that are not freed yet, each with its op and its number; ``stores``, ``loads``,
    ``products``: by cell, how many ``tcgen05.st``, ``ld`` and ``mma`` into it are on their way; ``written``: whether
    anything has arrived there since the cell was allocated."""

    __slots__ = ("words", "owner", "allocated", "stores", "loads", "products", "written", "permit", "count")

    def __init__(self) -> None:
        self.words = np.full((LANES, COLUMNS), POISON, np.uint32)
        self.owner = np.full(COLUMNS, NEVER)
        self.allocated: dict[tuple[int, int], tuple[Op, int]] = {}
        self.stores, self.loads, self.products = np.zeros((3, LANES, COLUMNS), np.int32)
        self.written = np.zeros((LANES, COLUMNS), bool)
        self.permit = True
        self.count = 0

    def allocate(self, columns: int, op: Op) -> int | None:
        """The first column of a new stretch; None where none is free."""
        for first in range(0, COLUMNS, columns):
            if (self.owner[first : first + columns] <= 0).all():
                self.count += 1
                self.owner[first : first + columns] = self.count
                self.allocated[first, columns] = op, self.count
                return first
        return None

    def free(self, first: int, columns: int) -> bool:
        """Free a stretch; False where it is not one that was allocated."""
        if (first, columns) not in self.allocated:
            return False
        del self.allocated[first, columns]
        self.owner[first : first + columns] = FREED
        self.words[:, first : first + columns] = POISON
        self.written[:, first : first + columns] = False
        return True

    def write(self, lanes: Any, columns: Any, words: Array) -> None:
        """Words arrive at cells."""
        self.words[lanes, columns] = words
        self.written[lanes, columns] = True

    def wrong(self, columns: Array) -> tuple[str, str] | None:
        """What is wrong with an access to these columns, and the repair; None where nothing is."""
        low, high = int(columns.min()), int(columns.max())
        if low < 0 or high >= COLUMNS:
            return (
                f"reaches column {high} of tensor memory, which has columns 0 to {COLUMNS - 1}",
                "check the tensor's layout and the base address against the columns that were allocated",
            )
        owners = self.owner[low : high + 1]
        if (owners > 0).all():
            return None
        at = low + int(np.argmax(owners <= 0))
        if owners[at - low] == FREED:
            return (
                f"touches column {at} of tensor memory after it was freed",
                "dealloc_tmem after the last access of all warps: they meet at a barrier first",
            )
        return (
            f"touches column {at} of tensor memory, which is not allocated",
            "allocate as many columns as the tensor reaches (alloc_tmem), let the warps meet, and use the address "
            "that retrieve_tmem_ptr reads",
        )

    def busy(self, lanes: Any, columns: Any) -> tuple[str, str] | None:
        """What an MMA must not be issued into, or read: what a thread has not waited for; None where nothing is."""
        if self.stores[lanes, columns].any():
            return (
                "uses tensor memory to which a tcgen05.st is still on its way",
                "cute.arch.fence_view_async_tmem_store() (tcgen05.wait::st) after the store, and let the threads meet",
            )
        if self.loads[lanes, columns].any():
            return (
                "overwrites tensor memory that a tcgen05.ld still reads",
                "cute.arch.fence_view_async_tmem_load() (tcgen05.wait::ld) after the load, and let the threads meet",
            )
        return None

    def unfinished(self, lanes: Array, columns: Array) -> tuple[str, str] | None:
        """What is wrong with a thread's access to these cells while an MMA is in flight; None where none is."""
        if not self.products[lanes, columns].any():
            return None
        return (
            "touches accumulators of a tcgen05.mma that is not done",
            "tcgen05.commit(mbarrier) behind the MMAs, and mbarrier_wait before the accumulators are touched",
        )


class TensorMemories:
    """Those of all resident blocks."""

    def __init__(self) -> None:
        self.blocks: dict[int, TensorMemory] = {}

    def of(self, lanes: Lanes) -> list[tuple[int, int, TensorMemory]]:
        """(row, warp of the block, the block's tensor memory) of each active warp of the lanes."""
        numbers, ids = lanes.warp_numbers(), np.asarray(lanes.sreg("warpid"))[::32]
        rows = range(lanes.warps) if lanes.mask is None else np.flatnonzero(lanes.mask.reshape(-1, 32).any(1)).tolist()
        found = []
        for row in rows:
            within = int(ids[row])
            block = int(numbers[row]) - within
            if block not in self.blocks:
                self.blocks[block] = TensorMemory()
            found.append((row, within, self.blocks[block]))
        return found

    def finish(self) -> None:
        """All warps have ended."""
        for memory in self.blocks.values():
            for (first, columns), (op, _) in memory.allocated.items():
                raise SimulationError(
                    f"tensor memory: the {columns} columns from {first} on are never freed; allocated at {op.loc}\n"
                    "  to fix: dealloc_tmem by one warp, after the last access of the block; blocks that come later "
                    "wait for the columns"
                )


def uniform(lanes: Lanes, what: str, value: Any) -> Array:
    """``[warps]``: an operand on which all lanes of a warp must agree."""
    by_lane = lanes.spread(value).reshape(lanes.warps, 32)
    wrong = (by_lane != by_lane[:, :1]).any(1)
    if lanes.mask is not None:
        wrong &= lanes.mask.reshape(-1, 32).any(1)
    if wrong.any():
        raise lanes.fault(
            f"{what} differs among the threads of a warp",
            np.repeat(wrong, 32),
            "compute it from numbers that are equal in all threads of a warp (make_warp_uniform)",
        )
    return by_lane[:, 0]
