"""Partial sums of one output tile between thread blocks: those that do not finish the tile hand theirs over through a
workspace in global memory.

    mixed     each block has a slot of the workspace and a flag. The block that finishes the tile adds the slots in the
              order of the blocks: sums do not depend on who is faster
    separate  as mixed, where the plan has reduction blocks: all blocks of the tile hand over, and each of its reduction
              blocks adds up, and writes, a part of it
    atomic    the first block of the tile puts its sums into its slot, the others add theirs atomically, as they come;
              the block that finishes the tile adds that one slot to its own

Whoever waits for a flag lowers it, so the next launch finds all flags as this one did. Blocks wait for blocks that the
plan numbers lower, which started earlier: nothing blocks for ever.

Where clusters share tiles, the plan numbers clusters, and each block of a cluster exchanges sums with the blocks at its
place in the others: slots and flags are numbered cluster by cluster.

A block hands over at most one tile that it does not finish, so slot and flag have the block's number. Where tiles are
added up separately it also hands over the one that it finishes: then it has two slots, the first for the tile that it
started, and the flags are the reduction blocks'.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tilewright as cutlass
from tilewright import Int32, cute
from tilewright.gemm.schedule.partials import Partials
from tilewright.gemm.schedule.shared import SharedTiles

IN_FLIGHT = 64  # of the next blocks' accumulators, where tiles are so small that one block's are fewer


@dataclass(frozen=True)
class Fixup:
    """``sync`` is the barrier of the threads of a block that hold ``partials``; ``cluster`` blocks work in step."""

    partials: Partials
    sync: Callable[[], None] = cute.arch.sync_threads
    cluster: int = 1

    def number(self, shared: SharedTiles) -> Any:
        """The plan's number of this block, or of its cluster."""
        block = cute.arch.block_idx()[0]
        return shared.number(block if self.cluster == 1 else block // self.cluster)

    def place(self, number: Any) -> Any:
        """The slot, and the flag, of the block at this one's place in cluster ``number``."""
        if self.cluster == 1:
            return number
        return number * self.cluster + cute.arch.block_idx()[0] % self.cluster

    @cute.jit
    def give(self, shared: SharedTiles, tile: Any, k_begin: Any, tidx: Any, acc: cute.Tensor) -> None:
        """Hand this block's sums to whoever adds up the tile."""
        block = self.place(self.number(shared))
        if cutlass.const_expr(shared.separate):
            self.partials.store(shared.workspace.iterator, tidx, acc, 2 * block + cute.where(k_begin == 0, 0, 1))
            self.sync()
            parts = self.parts(shared)
            for part in cutlass.range(tidx, parts, self.partials.threads, unroll=1):
                arrive(shared.flags.iterator + (tile * parts + part))
        elif cutlass.const_expr(shared.reduction == "atomic"):
            first = self.place(shared.first_block(tile))
            flag = shared.flags.iterator + first
            if k_begin == 0:
                self.partials.store(shared.workspace.iterator, tidx, acc, first)
            else:
                self.wait_until(flag, tidx, 1)
                self.partials.add_atomically(shared.workspace.iterator, tidx, acc, first)
            self.sync()
            if tidx == 0:
                arrive(flag)
        else:
            self.partials.store(shared.workspace.iterator, tidx, acc, block)
            self.sync()
            if tidx == 0:
                cute.arch.store(shared.flags.iterator + block, Int32(1), sem="release", scope="gpu")

    @cute.jit
    def take(self, shared: SharedTiles, tile: Any, tidx: Any, acc: cute.Tensor) -> None:
        """Add the sums of all other blocks that work on ``tile`` to those of the block that finishes it.

        Each flag has a thread that waits for it, and the sums of several blocks are on their way at a time: a tile of
        many blocks costs little more than the latency of a tile of two. They are added in the order of the blocks.
        """
        this = self.number(shared)
        first = shared.first_block(tile)
        if cutlass.const_expr(shared.reduction == "atomic"):
            slot = self.place(first)
            flag = shared.flags.iterator + slot
            self.wait_until(flag, tidx, (this - first) // shared.apart)
            if tidx == 0:
                cute.arch.store(flag, Int32(0))
            self.partials.add_to(acc, shared.workspace.iterator, tidx, slot)
        else:
            apart = shared.apart
            for block in cutlass.range(first + tidx * apart, this, self.partials.threads * apart, unroll=1):
                flag = shared.flags.iterator + self.place(block)
                while cute.arch.load(flag, sem="acquire", scope="gpu") == 0:
                    pass
                cute.arch.store(flag, Int32(0))
            self.sync()
            at_once = max(1, IN_FLIGHT // self.partials.accumulators)
            for block in cutlass.range(first, this, apart, unroll=at_once):
                self.partials.add_to(acc, shared.workspace.iterator, tidx, self.place(block))

    @cute.jit
    def reduce(
        self, shared: SharedTiles, tidx: Any, parts: int, run: int, apart: int, write: Callable[..., None]
    ) -> None:
        """What a reduction block does: wait for the blocks of its tile, and ``write(tile, part, sums)`` its share of
        the tile's ``parts``, each ``run`` of every ``apart`` accumulators. Blocks of other kinds do nothing."""
        number = self.number(shared) - shared.reduce_start
        if (number >= 0) & (number < shared.plan.reduction_blocks):
            each = self.parts(shared)
            tile = number // each
            first, last = shared.first_block(tile), shared.last_block(tile)
            flag = shared.flags.iterator + number
            self.wait_until(flag, tidx, last - first + 1)
            if tidx == 0:
                cute.arch.store(flag, Int32(0))
            for part in cutlass.range(number % each, parts, each, unroll=1):
                sums = self.partials.fetch(shared.workspace.iterator, tidx, part, run, apart, 2 * first)
                for block in cutlass.range(first + 1, last + 1, unroll=4):
                    theirs = self.partials.fetch(shared.workspace.iterator, tidx, part, run, apart, 2 * block + 1)
                    sums.store(sums.load() + theirs.load())
                write(tile, part, sums)

    def parts(self, shared: SharedTiles) -> Any:
        """Reduction blocks of a tile."""
        return shared.plan.reduction_blocks // cute.max(shared.plan.sk_tiles, 1)

    @cute.jit
    def wait_until(self, flag: Any, tidx: Any, count: Any) -> None:
        """All threads: until ``count`` blocks or more have arrived."""
        if tidx == 0:
            while cute.arch.load(flag, sem="acquire", scope="gpu") < count:
                pass
        self.sync()


@cute.jit
def arrive(flag: Any) -> None:
    """Count this block at ``flag``; what its threads wrote before a barrier is seen by those who wait for it."""
    cute.arch.atomic_add(flag, Int32(1), sem="release", scope="gpu")
