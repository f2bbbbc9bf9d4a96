"""Who multiplies what: the ways to share the k tiles of all output tiles among thread blocks.

A decomposition counts the blocks of a launch and, inside the kernel, calls ``piece(tile, k_begin, k_end)`` for each part
of its block's share. A piece that does not span all of K is a partial sum; ``partial`` says whether there are any.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import tilewright as cutlass
from tilewright import cute


@dataclass(frozen=True)
class DataParallel:
    """One block for each output tile."""

    partial = False

    def blocks(self, tiles: Any) -> Any:
        return tiles

    def run(self, block: Any, k_tiles: Any, piece: Callable[[Any, Any, Any], None]) -> None:
        piece(block, 0, k_tiles)


class StreamKArguments(NamedTuple):
    """What a Stream-K launch passes to its kernel: the workspace (accumulators of one tile for each Stream-K block), one
    Int32 flag for each of these blocks, zero between launches, and the members of :class:`StreamK` that its maps need."""

    workspace: cute.Tensor
    flags: cute.Tensor
    sk_tiles: cutlass.Int32
    sk_blocks: cutlass.Int32
    sk_blocks_per_region: cutlass.Int32
    sk_iters_per_region: cutlass.Int32
    sk_iters_per_normal_block: cutlass.Int32
    sk_big_blocks_per_region: cutlass.Int32


@dataclass(frozen=True)
class SharedTiles:
    """Stream-K inside the kernel: the k tiles of the first ``sk_tiles`` tiles, laid end to end, are dealt to
    ``sk_blocks`` blocks in even, contiguous shares; every other tile has a block of its own.

    A share may begin and end inside a tile. A block works through its share from the end, so that what others wait for,
    the beginning of a tile that the next block finishes, comes first.
    """

    arguments: StreamKArguments

    partial = True

    def blocks(self, tiles: Any) -> Any:
        return self.arguments.sk_blocks + tiles - self.arguments.sk_tiles

    @cute.jit
    def run(self, block: Any, k_tiles: Any, piece: Any) -> None:
        begin, end = self.share(block, k_tiles)
        while end > begin:
            tile = (end - 1) // k_tiles
            start = tile * k_tiles
            first = cute.max(begin, start)
            piece(tile, first - start, end - start)
            end = first

    @cute.jit
    def share(self, block: Any, k_tiles: Any) -> tuple[Any, Any]:
        """The k tiles [begin, end) of a block, counted through all tiles."""
        sk = self.arguments
        begin = (sk.sk_tiles + block - sk.sk_blocks) * k_tiles
        end = begin + k_tiles
        if block < sk.sk_blocks:
            region = block // sk.sk_blocks_per_region
            inside = block - region * sk.sk_blocks_per_region
            big = sk.sk_big_blocks_per_region
            begin = region * sk.sk_iters_per_region + inside * sk.sk_iters_per_normal_block + cute.min(inside, big)
            end = begin + sk.sk_iters_per_normal_block
            if inside < big:
                end += 1
        return begin, end

    @cute.jit
    def first_block(self, tile: Any, k_tiles: Any) -> Any:
        """The block that begins a tile which several share."""
        sk = self.arguments
        region = tile * k_tiles // sk.sk_iters_per_region
        inside = tile * k_tiles - region * sk.sk_iters_per_region
        in_big = sk.sk_big_blocks_per_region * (sk.sk_iters_per_normal_block + 1)
        block = inside // (sk.sk_iters_per_normal_block + 1)
        if inside >= in_big:
            block = sk.sk_big_blocks_per_region + (inside - in_big) // sk.sk_iters_per_normal_block
        return region * sk.sk_blocks_per_region + block


def decomposition_of(stream_k: StreamKArguments | None) -> DataParallel | SharedTiles:
    return DataParallel() if stream_k is None else SharedTiles(stream_k)
