"""Serial split-K: the blocks of a tile add themselves to D one after the other, by turns that a semaphore counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from tilewright import Int32, cute
from tilewright.gemm.schedule.decomposition import ONLY, Caller, Piece, StaticSchedule
from tilewright.gemm.schedule.splitk import slice_of


@dataclass(frozen=True)
class SerialSplitK(StaticSchedule):
    """``slices`` blocks for each output tile, along the grid's y.

    The first adds C as the epilogue says, every other one what D has by then: beta is 1 for it (CUTLASS's
    ``set_k_partition``). ``semaphores`` has an Int32 for each tile, zero between launches: whose turn it is. A block
    waits for one that the grid numbers lower. D is rounded ``slices`` times.
    """

    slices: Int32
    semaphores: cute.Tensor

    sums: ClassVar[str] = "in_turn"

    def grid(self, tiles: Any, batch: Any) -> tuple[Any, Any, Any]:
        return tiles, self.slices, batch

    @cute.jit
    def run(self, block: Any, tiles: Any, k_tiles: Any, piece: Piece, state: Any = None, caller: Caller = ONLY) -> Any:
        begin, end = self.first(k_tiles)
        return piece(block, begin, end, state)

    def first(self, k_tiles: Any) -> tuple[Any, Any]:
        return slice_of(k_tiles, self.slices, self.turn())

    def turn(self) -> Any:
        """Which of the tile's blocks this is."""
        return cute.arch.block_idx()[1]

    @cute.jit
    def wait(self, tile: Any, tidx: Any, sync: Callable[[], None]) -> None:
        """The threads whose barrier is ``sync``: until the block before has written D."""
        # The acquire of one thread, then the barrier: what the block before wrote is visible to all threads here.
        if tidx == 0:
            while cute.arch.load(self.semaphores.iterator + tile, sem="acquire", scope="gpu") != self.turn():
                pass
        sync()

    @cute.jit
    def release(self, tile: Any, tidx: Any, sync: Callable[[], None]) -> None:
        """They have written D. The last block of a tile sets its semaphore back for the next launch."""
        # All threads have written before the one that releases: its release at gpu scope covers their writes, which the
        # barrier orders before it.
        sync()
        if tidx == 0:
            following = self.turn() + 1
            value = cute.where(following == self.slices, 0, following)
            cute.arch.store(self.semaphores.iterator + tile, Int32(value), sem="release", scope="gpu")


@dataclass(frozen=True)
class KeptSlices(StaticSchedule):
    """Parallel split-K: ``slices`` blocks for each output tile, along the grid's y, each with an output of its own:
    D is a stack of as many matrices, which another kernel adds up."""

    slices: Int32

    sums: ClassVar[str] = "kept"

    def grid(self, tiles: Any, batch: Any) -> tuple[Any, Any, Any]:
        return tiles, self.slices, 1

    @cute.jit
    def run(self, block: Any, tiles: Any, k_tiles: Any, piece: Piece, state: Any = None, caller: Caller = ONLY) -> Any:
        begin, end = self.first(k_tiles)
        return piece(block, begin, end, state)

    def first(self, k_tiles: Any) -> tuple[Any, Any]:
        return slice_of(k_tiles, self.slices, cute.arch.block_idx()[1])
