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
from tilewright.ir.target import WARP

POISON = 0xCDCDCDCD
NEVER, FREED = 0, -1


class TensorMemory:
    """The tensor memory of one block.

    ``owner``: by column, the number of its allocation, ``NEVER`` or ``FREED``; ``allocated``: the stretches (first
    column, count) that are not freed yet, each with its op and its number; ``stores``, ``loads``,
    ``products``: by cell, how many ``tcgen05.st``, ``ld`` and ``mma`` into it are on their way; ``operands``: how many
    ``mma`` that read it are; ``written``: whether anything has arrived there since the cell was allocated. ``asked``:
    the columns that a warp waits for (0: none), ``granted``: the first one that it gets. ``collectors``: by buffer of
    the tensor core, the operand that an MMA has filled it with."""

    __slots__ = (
        "words",
        "owner",
        "allocated",
        "stores",
        "loads",
        "products",
        "operands",
        "written",
        "permit",
        "count",
        "asked",
        "granted",
        "collectors",
    )

    def __init__(self) -> None:
        self.words = np.full((LANES, COLUMNS), POISON, np.uint32)
        self.owner = np.full(COLUMNS, NEVER)
        self.allocated: dict[tuple[int, int], tuple[Op, int]] = {}
        self.stores, self.loads, self.products, self.operands = np.zeros((4, LANES, COLUMNS), np.int32)
        self.written = np.zeros((LANES, COLUMNS), bool)
        self.permit = True
        self.count = 0
        self.asked = 0
        self.granted: int | None = None
        self.collectors: dict[str, Array] = {}

    def allocate(self, first: int, columns: int, op: Op) -> None:
        """A new stretch."""
        self.count += 1
        self.owner[first : first + columns] = self.count
        self.allocated[first, columns] = op, self.count

    def free(self, first: int, columns: int) -> bool:
        """Free a stretch; False where it is not one that was allocated."""
        if (first, columns) not in self.allocated:
            return False
        del self.allocated[first, columns]
        self.owner[first : first + columns] = FREED
        self.words[:, first : first + columns] = POISON
        self.written[:, first : first + columns] = False
        return True

    def was_freed(self, first: int, columns: int) -> bool:
        """Whether nothing has been allocated in this stretch since it was freed."""
        return bool((self.owner[first : first + columns] == FREED).all())

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
            f"touches column {at} of tensor memory, which is not allocated ({self.known()})",
            "allocate as many columns as the tensor reaches (alloc_tmem), let the warps meet, and use the address "
            "that retrieve_tmem_ptr reads",
        )

    def known(self) -> str:
        """The columns that are allocated, in words."""
        stretches = [f"columns {first} to {first + count - 1}" for first, count in self.allocated]
        return f"allocated: {', '.join(stretches)}" if stretches else "nothing is allocated"

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

    def wanted(self, lanes: Array, columns: Array) -> tuple[str, str] | None:
        """What is wrong with a store to these cells while an MMA has still to read them; None where none has."""
        if not self.operands[lanes, columns].any():
            return None
        return (
            "overwrites an operand of a tcgen05.mma that is not done",
            "tcgen05.commit(mbarrier) behind the MMAs, and mbarrier_wait before their operands in tensor memory are "
            "written again",
        )

    def in_use(self, columns: slice) -> tuple[str, str] | None:
        """What is wrong with freeing columns that something asynchronous still works on."""
        if self.products[:, columns].any():
            return (
                "frees accumulators of a tcgen05.mma that is not done",
                "tcgen05.commit(mbarrier) behind the MMAs, and mbarrier_wait before the columns are freed",
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


def allocate_in_all(memories: list[TensorMemory], columns: int, op: Op) -> int | None:
    """Allocate the same stretch in all of these; its first column, None where none is free."""
    for first in range(0, COLUMNS, columns):
        if all((memory.owner[first : first + columns] <= 0).all() for memory in memories):
            for memory in memories:
                memory.allocate(first, columns, op)
            return first
    return None


class TensorMemories:
    """The memories of all resident blocks. ``ctas``: the cta_group of the kernel's ``tcgen05``, 0 before the first."""

    def __init__(self) -> None:
        self.blocks: dict[int, TensorMemory] = {}
        self.ctas = 0

    def agree(self, lanes: Lanes, what: str, ctas: int) -> None:
        """All ``tcgen05`` of a kernel have one ``cta_group`` (PTX ISA, "tcgen05 instructions: CTA pair")."""
        if self.ctas not in (0, ctas):
            raise lanes.fault(
                f"{what} in a kernel that has used cta_group::{self.ctas}: all tcgen05 of a kernel have one cta_group",
                None,
                "take CtaGroup.TWO (is_two_cta=True) for all of them, or for none",
            )
        self.ctas = ctas

    def of(self, lanes: Lanes) -> list[tuple[int, int, TensorMemory]]:
        """(row, warp of the block, the block's tensor memory) of each active warp of the lanes."""
        numbers, ids = lanes.warp_numbers(), np.asarray(lanes.sreg("warpid"))[::32]
        rows = range(lanes.warps) if lanes.mask is None else np.flatnonzero(lanes.mask.reshape(-1, 32).any(1)).tolist()
        memories = []
        for row in rows:
            within = int(ids[row])
            memories.append((row, within, self.at(int(numbers[row]) - within)))
        return memories

    def sides(
        self, lanes: Lanes, what: str, ctas: int, leads: bool = False
    ) -> list[tuple[int, list[tuple[int, TensorMemory]]]]:
        """For each active warp its row, and the blocks that take part, each by the number of its first warp and its
        memory: the warp's own block, or both of its pair, the one of even rank in the cluster first. ``leads``: only
        warps of that one may be here."""
        ranks, count = lanes.sreg("cluster_ctarank"), lanes.sreg("cluster_nctarank")
        sides = []
        for row, within, memory in self.of(lanes):
            first = int(lanes.warp_numbers()[row]) - within
            if ctas == 1:
                sides.append((row, [(first, memory)]))
                continue
            rank, blocks = int(ranks[WARP * row]), int(count[WARP * row])
            chosen = np.arange(WARP * lanes.warps) // WARP == row
            if blocks % 2:
                raise lanes.fault(
                    f"{what} is the work of a pair of blocks, but the cluster has {blocks}",
                    chosen,
                    "launch with a cluster of an even number of blocks: cluster=(2, 1, 1)",
                )
            if leads and rank % 2:
                raise lanes.fault(
                    f"{what} is issued by block {rank} of the cluster, which is the second of its pair",
                    chosen,
                    "let the block of even rank issue for both: if cute.arch.block_idx_in_cluster() % 2 == 0",
                )
            warps = -(-int(np.prod([lanes.sreg(f"ntid.{axis}")[0] for axis in "xyz"])) // WARP)
            other = first + (warps if rank % 2 == 0 else -warps)
            pair = sorted([(first, memory), (other, self.at(other))], key=lambda side: side[0])
            sides.append((row, pair))
        return sides

    def at(self, first: int) -> TensorMemory:
        """The memory of the block whose first warp has this number."""
        if first not in self.blocks:
            self.blocks[first] = TensorMemory()
        return self.blocks[first]

    def finish(self) -> None:
        """All warps have ended."""
        for memory in self.blocks.values():
            for (first, columns), (op, _) in memory.allocated.items():
                raise SimulationError(
                    f"tensor memory: the {columns} columns from {first} on are never freed; allocated at {op.loc}\n"
                    "  to fix: dealloc_tmem (free of a TmemAllocator) by one warp, after the last access of the block; "
                    "blocks that come later wait for the columns"
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
