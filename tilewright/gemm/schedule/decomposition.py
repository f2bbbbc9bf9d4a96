"""Who multiplies what: the ways to share the k tiles of all output tiles among thread blocks.

A decomposition is an argument of the kernel. It counts the workers of a launch (blocks, or clusters of blocks that
share operands) and, inside the kernel, calls ``state = piece(tile, k_begin, k_end, state)`` for each part of its
worker's share; ``state`` is what the caller carries from piece to piece, say the state of a pipeline. ``feed`` is what
its own ``feed`` made at the start of the kernel: None, unless the warps of a worker learn of their tiles as they go;
then ``draws`` says that the caller is the warp that gets them for the others. Where ``partial``
is true a piece may have some of the k tiles only: its sums then go to the worker that finishes the tile.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from tilewright import Int32, const_expr, cute, range
from tilewright.gemm.config import HopperConfig
from tilewright.gemm.schedule.feed import TileFeed, first_place
from tilewright.gemm.schedule.streamk import StreamK
from tilewright.lang.tensors.choose import select

Piece = Callable[[Any, Any, Any, Any], Any]


class Decided:
    """Which worker makes which tiles is decided before the launch: its warps compute the numbers themselves."""

    def feed(self, config: HopperConfig, rank: Any) -> Any:
        return None


@dataclass(frozen=True)
class DataParallel(Decided):
    """One block for each output tile."""

    partial: ClassVar[bool] = False

    def blocks(self, tiles: Any) -> Any:
        return tiles

    def k_tiles(self, K: Any, bK: int) -> Any:
        return cute.ceil_div(K, bK)

    @cute.jit
    def run(
        self, block: Any, tiles: Any, k_tiles: Any, piece: Piece, state: Any = None, turn: Any = 0, turns: int = 1,
        feed: None = None, draws: bool = False,
    ) -> Any:  # fmt: skip
        """``turn`` of ``turns``: the first caller takes the tile, the others none."""
        if const_expr(turns == 1):
            state = piece(block, 0, k_tiles, state)
        elif turn == 0:
            state = piece(block, 0, k_tiles, state)
        return state


@dataclass(frozen=True)
class PersistentTiles(Decided):
    """As many workers as the GPU holds, or as there are tiles: worker w takes tiles w, w + workers, ..."""

    workers: Int32

    partial: ClassVar[bool] = False

    def blocks(self, tiles: Any) -> Any:
        return cute.min(self.workers, tiles)

    def k_tiles(self, K: Any, bK: int) -> Any:
        return cute.ceil_div(K, bK)

    @cute.jit
    def run(
        self, worker: Any, tiles: Any, k_tiles: Any, piece: Piece, state: Any = None, turn: Any = 0, turns: int = 1,
        feed: Any = None, draws: bool = False,
    ) -> Any:  # fmt: skip
        """``turn`` of ``turns``: this caller takes only every so many of the worker's tiles."""
        workers = self.blocks(tiles)
        for tile in range(worker + turn * workers, tiles, turns * workers, unroll=1):
            state = piece(tile, 0, k_tiles, state)
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

    def feed(self, config: HopperConfig, rank: Any) -> Any:
        return TileFeed.create(rank, config.cluster_size, 4 * config.warpgroups)

    @cute.jit
    def run(
        self, worker: Any, tiles: Any, k_tiles: Any, piece: Piece, state: Any = None, turn: Any = 0, turns: int = 1,
        feed: Any = None, draws: bool = False,
    ) -> Any:  # fmt: skip
        place = first_place()
        tile = self.next(feed, draws, tiles, place)
        place.advance()
        while tile < tiles:
            if const_expr(turns == 1):
                state = piece(tile, 0, k_tiles, state)
            else:
                # A loop of one pass or none, not a branch: what a piece changes inside of ``state`` passes through it.
                for _ in range(0, select((place.count - 1) % turns == turn, 1, 0), unroll=1):
                    state = piece(tile, 0, k_tiles, state)
            tile = self.next(feed, draws, tiles, place)
            place.advance()
        if const_expr(draws):
            feed.tail(place)
        return state

    def next(self, feed: TileFeed, draws: bool, tiles: Any, place: Any) -> Any:
        """The worker's next tile; ``tiles`` or more: there is none left."""
        return feed.hand_out(functools.partial(self.draw, tiles), place) if draws else feed.take(place)

    @cute.jit
    def draw(self, tiles: Any) -> Any:
        tile = cute.arch.atomic_add(self.counter.iterator, Int32(1))
        if tile == tiles + self.blocks(tiles) - 1:
            cute.arch.store(self.counter.iterator, Int32(0))
        return tile


@dataclass(frozen=True)
class SharedTiles(Decided):
    """Stream-K: the k tiles of the first tiles, laid end to end, are dealt out in even shares to as many blocks as the
    GPU holds; every other tile has a block of its own. ``plan`` has the numbers.

    ``workspace`` holds a tile of accumulators for each Stream-K block, ``flags`` an Int32, zero between launches. A
    block works through its share from the end, so that what others wait for, the beginning of a tile that the next
    block finishes, comes first. Blocks are numbered without the plan's padding, and each of them after the Stream-K
    blocks makes one tile; where tile i lies is the raster's business, not the plan's.
    """

    workspace: cute.Tensor
    flags: cute.Tensor
    plan: StreamK

    partial: ClassVar[bool] = True

    def blocks(self, tiles: Any) -> Any:
        return self.plan.sk_blocks + tiles - self.plan.sk_tiles

    def k_tiles(self, K: Any, bK: int) -> Any:
        # As an argument of the kernel the number costs no register where it is not needed.
        return self.plan.iters_per_tile

    @cute.jit
    def run(
        self, block: Any, tiles: Any, k_tiles: Any, piece: Piece, state: Any = None, feed: None = None,
        draws: bool = False,
    ) -> Any:  # fmt: skip
        begin, end = self.share(block, k_tiles)
        while end > begin:
            tile = self.plan.get_sk_tile_idx(end - 1)
            start = tile * k_tiles
            state = piece(tile, cute.max(begin - start, 0), end - start, state)
            end = cute.max(begin, start)
        return state

    @cute.jit
    def share(self, block: Any, k_tiles: Any) -> tuple[Any, Any]:
        """The k tiles [begin, end) of a block, counted through all tiles."""
        begin = (self.plan.sk_tiles + block - self.plan.sk_blocks) * k_tiles
        end = begin + k_tiles
        if block < self.plan.sk_blocks:
            begin, end = self.plan.get_iter_extents(block)
        return begin, end

    def first_block(self, tile: Any) -> Any:
        """The block that starts a tile which several share."""
        return self.plan.get_sk_block_idx(tile * self.plan.iters_per_tile)


@dataclass(frozen=True)
class PersistentSharedTiles(SharedTiles):
    """Stream-K on as many workers as the GPU holds: each works through its share of the shared tiles first, and then
    takes one of the other tiles after another."""

    workers: Int32

    def blocks(self, tiles: Any) -> Any:
        return self.workers

    @cute.jit
    def share(self, block: Any, k_tiles: Any) -> tuple[Any, Any]:
        begin, end = Int32(0), Int32(0)
        if block < self.plan.sk_blocks:
            begin, end = self.plan.get_iter_extents(block)
        return begin, end

    @cute.jit
    def run(
        self, block: Any, tiles: Any, k_tiles: Any, piece: Piece, state: Any = None, feed: None = None,
        draws: bool = False,
    ) -> Any:  # fmt: skip
        state = SharedTiles.run(self, block, tiles, k_tiles, piece, state)
        for tile in range(self.plan.sk_tiles + block, tiles, self.workers, unroll=1):
            state = piece(tile, 0, k_tiles, state)
        return state
