"""Partial sums of one output tile between thread blocks: those that do not finish the tile hand theirs to the one that
does, through a workspace in global memory.

Each block hands over at most once in a launch, so block b owns slot b of the workspace and flag b. The finishing block
adds the slots in the order of the blocks: sums do not depend on who is faster. It also lowers the flags it waited for,
so the next launch finds them as this one did.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import gcd
from typing import Any

import tilewright as cutlass
from tilewright import cute
from tilewright.gemm.schedule.decomposition import SharedTiles

READ_AT_ONCE = 32  # accumulators of one thread that are fetched before the first is needed
IN_FLIGHT = 64  # of the next blocks' accumulators, where tiles are so small that one block's are fewer


@dataclass(frozen=True)
class Fixup:
    """``threads`` of a block hold ``accumulators`` of type ``dtype`` each; ``sync`` is their barrier."""

    threads: int
    accumulators: int
    dtype: Any
    sync: Callable[[], None] = cute.arch.sync_threads

    def slot(self, workspace: Any, block: Any, tidx: Any) -> Any:
        """This thread's accumulators in ``block``'s slot, as (vector, vectors): neighbours in a warp write neighbouring
        vectors."""
        width = 128 // self.dtype.width
        vectors = self.accumulators // width
        layout = cute.make_layout((width, vectors), stride=(1, width * self.threads))
        offset = block * (self.accumulators * self.threads) + tidx * width
        return cute.make_tensor((workspace.iterator + offset).align(16), layout)

    @cute.jit
    def give(self, shared: SharedTiles, tidx: Any, acc: cute.Tensor) -> None:
        """Hand this block's sums to the block that finishes the tile."""
        block, _, _ = cute.arch.block_idx()
        slot = self.slot(shared.workspace, block, tidx)
        cute.autovec_copy(cute.make_tensor(acc.iterator, cute.make_layout(slot.shape)), slot)
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
        for block in cutlass.range(first + tidx, this, self.threads, unroll=1):
            flag = shared.flags.iterator + block
            while cute.arch.load(flag, sem="acquire", scope="gpu") == 0:
                pass
            cute.arch.store(flag, cutlass.Int32(0))
        self.sync()
        for block in cutlass.range(first, this, unroll=max(1, IN_FLIGHT // self.accumulators)):
            theirs = self.slot(shared.workspace, block, tidx)
            ours = cute.make_tensor(acc.iterator, cute.make_layout(theirs.shape))
            vector, vectors = theirs.shape
            at_once = (vector, gcd(READ_AT_ONCE // vector, vectors))
            for part in cutlass.range_constexpr(vectors // at_once[1]):
                fetched = cute.make_rmem_tensor(at_once, self.dtype)  # (vector, vectors at once)
                cute.autovec_copy(cute.local_tile(theirs, at_once, (0, part)), fetched)
                sums = cute.local_tile(ours, at_once, (0, part))
                sums.store(sums.load() + fetched.load())
