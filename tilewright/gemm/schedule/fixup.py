"""Partial sums of one output tile between thread blocks: those that do not finish the tile hand theirs to the one that
does, through a workspace in global memory.

Each block hands over at most once in a launch, so block b owns slot b of the workspace and flag b. The finishing block
adds the slots in the order of the blocks: sums do not depend on who is faster. It also lowers the flags it waited for,
so the next launch finds them as this one did.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tilewright as cutlass
from tilewright import cute
from tilewright.gemm.schedule.decomposition import SharedTiles
from tilewright.gemm.schedule.partials import Partials

IN_FLIGHT = 64  # of the next blocks' accumulators, where tiles are so small that one block's are fewer


@dataclass(frozen=True)
class Fixup:
    """``sync`` is the barrier of the threads of a block that hold ``partials``."""

    partials: Partials
    sync: Callable[[], None] = cute.arch.sync_threads

    @cute.jit
    def give(self, shared: SharedTiles, tidx: Any, acc: cute.Tensor) -> None:
        """Hand this block's sums to the block that finishes the tile."""
        block, _, _ = cute.arch.block_idx()
        self.partials.store(shared.workspace.iterator, tidx, acc, block)
        self.sync()
        if tidx == 0:
            cute.arch.store(shared.flags.iterator + block, cutlass.Int32(1), sem="release", scope="gpu")

    @cute.jit
    def take(self, shared: SharedTiles, tile: Any, tidx: Any, acc: cute.Tensor) -> None:
        """Add the sums of all other blocks that work on ``tile``, waiting for all at once.

        Each flag has a thread that waits for it, and the sums of several blocks are on their way at a time: a tile of
        many blocks costs little more than the latency of a tile of two. They are added in the order of the blocks.
        """
        this, _, _ = cute.arch.block_idx()
        first = shared.first_block(tile)
        for block in cutlass.range(first + tidx, this, self.partials.threads, unroll=1):
            flag = shared.flags.iterator + block
            while cute.arch.load(flag, sem="acquire", scope="gpu") == 0:
                pass
            cute.arch.store(flag, cutlass.Int32(0))
        self.sync()
        for block in cutlass.range(first, this, unroll=max(1, IN_FLIGHT // self.partials.accumulators)):
            self.partials.add_to(acc, shared.workspace.iterator, tidx, block)
