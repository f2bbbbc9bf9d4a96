"""What a block of a persistent kernel has to do, as the roles of its warps need it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilewright import cute
from tilewright.gemm.mainloop.staged_mma import StagedMma
from tilewright.gemm.schedule.decomposition import Caller, Piece


@dataclass(frozen=True)
class BlockWork:
    """The share of a block, and the parts of the kernel that its roles are made of.

    ``decomposition`` deals out the ``k_tiles`` of each of ``tiles`` output tiles; the block is (or belongs to)
    ``worker``, and ``feed`` tells it of its tiles where they are dealt at run time. ``ring`` is the ring of stages;
    ``order`` whose turn it is among warpgroups that take turns, or None.
    """

    decomposition: Any
    worker: Any
    tiles: Any
    k_tiles: Any
    feed: Any
    ring: Any
    order: Any
    tiled_mma: cute.TiledMma
    where: Callable[[Any], tuple]
    """(m, n, batch) of the block's part of a tile, by the tile's number."""
    operands: Callable[[], tuple]
    """What is loaded, as the warp that loads needs it."""
    fragments: Callable[[tuple], tuple[Any, Any]]
    """The stages of A and B as a part of the tile multiplies them, by the part's (m, n)."""
    ahead: Callable[..., Any]
    """What a part of a tile wants of the epilogue before its sums are complete: scales of blocks, vectors to load."""
    finish: Callable[..., Any]
    """What follows the sums of a tile: the epilogue, or sums for other blocks."""
    reduce: Callable[[Any], None]
    """What a warpgroup does for the plan's reduction blocks when it has no tile left."""
    loaded: Callable[[], None]
    """What the warp that loads does when nothing is left to load."""

    def staged_mma(self, part: tuple) -> StagedMma:
        """What multiplies a part of the tile."""
        return StagedMma(self.tiled_mma, *self.fragments(part), self.ring)

    def walk(self, piece: Piece, state: Any, turn: Any = 0, turns: int = 1, draws: bool = False) -> Any:
        """``piece`` for each part of the worker's share (:class:`.Caller` says what the others are)."""
        caller = Caller(turn, turns, self.feed, draws)
        return self.decomposition.run(self.worker, self.tiles, self.k_tiles, piece, state, caller)
