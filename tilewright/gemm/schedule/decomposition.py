"""The ways to share the k tiles of all output tiles among thread blocks.

A decomposition is an argument of the kernel. It counts the workers of a launch (blocks, or clusters of blocks that
share operands) and, inside the kernel, its ``run`` calls ``state = piece(tile, k_begin, k_end, state)`` for each part
of its worker's share; ``state`` is what the caller carries from piece to piece, say the state of a pipeline. Where
``sums`` is not "alone" a piece may have some of the k tiles only, and ``sums`` says what becomes D:

    alone      a piece has all k tiles of its tile
    exchanged  pieces hand their sums to the block that finishes the tile (schedule/fixup.py)
    in_turn    a tile's pieces add themselves to D, one after the other (schedule/semaphore.py)
    kept       each piece is an output of its own, which another kernel adds up (kernel/reduce.py)
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from tilewright import Int32, const_expr, cute, range
from tilewright.gemm.config import HopperConfig
from tilewright.gemm.schedule.feed import LaunchFeed, TileFeed, first_place
from tilewright.gemm.schedule.raster import Raster
from tilewright.lang.tensors.select import select

Piece = Callable[[Any, Any, Any, Any], Any]


@dataclass(frozen=True)
class Caller:
    """Which warps of a worker call a decomposition's ``run``.

    ``turn`` of ``turns``: the caller takes every ``turns``-th of the worker's tiles, other warps those between.
    ``feed``: what the decomposition's own ``feed`` made at the start of the kernel; None, unless the warps of a worker
    learn of their tiles as they go. Then ``draws`` says that the caller is the warp that gets them for the others.
    """

    turn: Any = 0
    turns: int = 1
    feed: Any = None
    draws: bool = False


ONLY = Caller()
"""All warps of a worker together, whose tiles are known before the launch."""


class StaticSchedule:
    """Which worker makes which tiles is decided before the launch: its warps compute the numbers themselves."""

    sums: ClassVar[str] = "alone"
    across_batches: ClassVar[bool] = False
    """Whether a worker's tiles may be those of several products of a batch, where others find their batch in z."""

    @property
    def cooperative(self) -> bool:
        """Whether blocks wait for blocks that come after them: then all must run at once."""
        return False

    def feed(self, config: HopperConfig, rank: Any) -> Any:
        return None

    def blocks(self, tiles: Any) -> Any:
        """Workers of a launch with this many output tiles."""
        return tiles

    def fills(self, tiles: Any) -> Any:
        """Whether a launch with this many output tiles has about as many workers as the GPU holds."""
        return True

    def grid(self, tiles: Any, batch: Any) -> tuple[Any, Any, Any]:
        """The grid of a kernel whose blocks each find their batch in z, for the output tiles of one batch."""
        return self.blocks(tiles), 1, batch

    def k_tiles(self, K: Any, bK: int) -> Any:
        """The k tiles of an output tile."""
        return cute.ceil_div(K, bK)

    def first(self, k_tiles: Any) -> tuple[Any, Any] | None:
        """[begin, end) of the k tiles of the first piece of every worker, where that is of the tile that has the
        worker's number; None: workers begin with other tiles, or it takes longer to know."""
        return None

    def place(self, raster: Raster, tile: Any, tiles_m: Any, tiles_n: Any) -> tuple[Any, Any]:
        """(tile_m, tile_n) of a tile's number: the kernel's raster says, unless the decomposition has its own."""
        return raster.tile(tile, tiles_m, tiles_n)


@dataclass(frozen=True)
class DataParallel(StaticSchedule):
    """One block for each output tile."""

    def first(self, k_tiles: Any) -> tuple[Any, Any] | None:
        return 0, k_tiles

    @cute.jit
    def run(self, block: Any, tiles: Any, k_tiles: Any, piece: Piece, state: Any = None, caller: Caller = ONLY) -> Any:
        """Where callers take turns the first one takes the tile, the others none."""
        if const_expr(caller.turns == 1):
            state = piece(block, 0, k_tiles, state)
        elif caller.turn == 0:
            state = piece(block, 0, k_tiles, state)
        return state


@dataclass(frozen=True)
class PersistentTiles(StaticSchedule):
    """As many workers as the GPU holds, or as there are tiles: worker w takes tiles w, w + workers, ..."""

    workers: Int32

    def blocks(self, tiles: Any) -> Any:
        return cute.min(self.workers, tiles)

    def fills(self, tiles: Any) -> Any:
        return tiles >= self.workers - self.workers // 8

    def first(self, k_tiles: Any) -> tuple[Any, Any] | None:
        return 0, k_tiles

    @cute.jit
    def run(self, worker: Any, tiles: Any, k_tiles: Any, piece: Piece, state: Any = None, caller: Caller = ONLY) -> Any:
        workers = self.blocks(tiles)
        tile = worker + caller.turn * workers
        while tile < tiles:  # a range with this step would divide, to count its iterations
            state = piece(tile, 0, k_tiles, state)
            tile += caller.turns * workers
        return state


@dataclass(frozen=True)
class DynamicTiles(PersistentTiles):
    """As many workers as the GPU holds, or as there are tiles: each draws its next tile when it can load it.

    ``counter`` (Int32, one element, zero between launches) is the number of the next tile. A worker that starts late,
    because its multiprocessor is busy with other work, finds fewer tiles left; no tile waits for it. Every worker draws
    once more than it has tiles, so the number of draws is known, and the last one sets the counter back. Which worker
    makes a tile does not change its sums.
    """

    counter: cute.Tensor

    def first(self, k_tiles: Any) -> tuple[Any, Any] | None:
        return None

    def feed(self, config: HopperConfig, rank: Any) -> Any:
        return TileFeed.create(rank, config.cluster_size, config.consumer_warps)

    @cute.jit
    def run(self, worker: Any, tiles: Any, k_tiles: Any, piece: Piece, state: Any = None, caller: Caller = ONLY) -> Any:
        place = first_place()
        tile = self.next(caller, tiles, place)
        place.advance()
        while tile < tiles:
            if const_expr(caller.turns == 1):
                state = piece(tile, 0, k_tiles, state)
            else:
                # A loop of one pass or none, not a branch: what a piece changes inside of ``state`` passes through it.
                for _ in range(0, select((place.count - 1) % caller.turns == caller.turn, 1, 0), unroll=1):
                    state = piece(tile, 0, k_tiles, state)
            tile = self.next(caller, tiles, place)
            place.advance()
        if const_expr(caller.draws):
            caller.feed.tail(place)
        return state

    def next(self, caller: Caller, tiles: Any, place: Any) -> Any:
        """The worker's next tile; ``tiles`` or more when no tile is left."""
        if caller.draws:
            return caller.feed.hand_out(functools.partial(self.draw, tiles), place)
        return caller.feed.take(place)

    @cute.jit
    def draw(self, tiles: Any) -> Any:
        tile = cute.arch.atomic_add(self.counter.iterator, Int32(1))
        if tile == tiles + self.blocks(tiles) - 1:
            cute.arch.store(self.counter.iterator, Int32(0))
        return tile


@dataclass(frozen=True)
class LaunchedTiles(StaticSchedule):
    """The grid has a worker for each tile, and the hardware begins as many as it holds (sm_100). Each takes over
    workers that have not begun until none is left: one that starts late finds fewer, and there is no counter.
    """

    def fills(self, tiles: Any) -> Any:
        return False  # the hardware may give multiprocessors to the next kernel meanwhile

    def feed(self, config: HopperConfig, rank: Any) -> Any:
        return LaunchFeed.create(rank, config.cluster_size, config.consumer_warps)

    @cute.jit
    def run(self, worker: Any, tiles: Any, k_tiles: Any, piece: Piece, state: Any = None, caller: Caller = ONLY) -> Any:
        """Callers do not take turns: those of tcgen05's kernels have one tile at a time each."""
        place, tile, valid = first_place(), Int32(worker), Int32(1)
        while valid != 0:
            state = piece(tile, 0, k_tiles, state)
            tile, valid = caller.feed.hand_out(place) if const_expr(caller.draws) else caller.feed.take(place)
            place.advance()
        if const_expr(caller.draws):
            caller.feed.tail(place)
        return state
