"""The work of a block of a persistent kernel, in the form in which the roles of its warps need it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilewright import cute
from tilewright.gemm.mainloop.staged_mma import StagedMma
from tilewright.gemm.schedule.decomposition import Caller, Piece


@dataclass(frozen=True)
class BlockWork:
    """The share of a block, and the functions of the kernel that its roles call.

    ``decomposition`` distributes the ``k_tiles`` of each of ``tiles`` output tiles among workers. The block is (or
    belongs to) ``worker``; ``feed`` gives it its tiles if they are drawn at run time. ``ring`` is the pipeline of
    stages; ``order`` the order of warpgroups that take turns, or None.
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
    """The operands as the producer needs them."""
    fragments: Callable[[tuple], tuple[Any, Any]]
    """The fragments of the stages of A and B for the part (m, n) of the tile."""
    ahead: Callable[..., Any]
    """What the epilogue needs in or during the main loop of a part of a tile: block scales, vectors to load early."""
    finish: Callable[..., Any]
    """Called with the sums of a tile: runs the epilogue, or passes the sums to other blocks."""
    reduce: Callable[[Any], None]
    """Called when a warpgroup has no tile left: its part of the plan's reduction."""
    loaded: Callable[[], None]
    """Called when the producer has nothing left to load."""
    scaled: bool = False
    """Whether the sums of each k tile are multiplied by scales of blocks."""
    fill_scales: Callable[..., Any] | None = None
    """Copies the scales of a tile into the stages, from its first row and column, its k tiles and the state of the
    pipeline; None if stages have none."""

    def tile_scales(self, tile: Any, at: tuple, k_begin: Any, k_end: Any) -> Any:
        """The scales of blocks of a tile; None if it has none."""
        scales, _ = self.ahead((0, 0), at, k_begin, k_end)
        return scales

    def staged_mma(self, part: tuple) -> StagedMma:
        """The tiled MMA with the stages of a part of the tile."""
        return StagedMma(self.tiled_mma, *self.fragments(part), self.ring)

    def walk(self, piece: Piece, state: Any, turn: Any = 0, turns: int = 1, draws: bool = False) -> Any:
        """Call ``piece`` for each part of the worker's share; :class:`.Caller` explains the other arguments."""
        caller = Caller(turn, turns, self.feed, draws)
        return self.decomposition.run(self.worker, self.tiles, self.k_tiles, piece, state, caller)
