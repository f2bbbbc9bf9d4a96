"""The thread blocks of a decomposition in the order of the grid: which k tiles of which output tiles each multiplies.

>>> plan = StreamK.of((384, 384, 2048), (128, 128, 32), multiprocessors=8, occupancy=1, fragments=1)
>>> stream_k(plan)[1]
Block(kind='Stream-K', pieces=(Piece(tile=2, begin=0, end=16), Piece(tile=1, begin=8, end=64)))
>>> [len(split_k(9, 64, 2)), split_k(9, 64, 2)[9]]
[18, Block(kind='split-K', pieces=(Piece(tile=0, begin=32, end=64),))]
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.gemm.schedule.splitk import slice_of
from tilewright.gemm.schedule.streamk import StreamK

DATA_PARALLEL, STREAM_K, SPLIT_K, REDUCTION, NOTHING = "data-parallel", "Stream-K", "split-K", "reduction", "padding"


@dataclass(frozen=True)
class Piece:
    """K tiles [begin, end) of one output tile. A reduction block adds up sums instead: its piece has none."""

    tile: int
    begin: int
    end: int


@dataclass(frozen=True)
class Block:
    """The pieces of work of one block, in order. Padding does nothing."""

    kind: str
    pieces: tuple[Piece, ...]


def data_parallel(tiles: int, k_tiles: int) -> list[Block]:
    """A block for each tile."""
    return [Block(DATA_PARALLEL, (Piece(tile, 0, k_tiles),)) for tile in range(tiles)]


def split_k(tiles: int, k_tiles: int, slices: int) -> list[Block]:
    """``slices`` blocks for each tile, those of the first slice before those of the second."""
    parts = [slice_of(k_tiles, slices, index) for index in range(slices)]
    return [Block(SPLIT_K, (Piece(tile, *part),)) for part in parts for tile in range(tiles) if part[0] < part[1]]


def stream_k(plan: StreamK) -> list[Block]:
    """The blocks of a Stream-K plan."""
    return [block_of(plan, plan.get_block_idx(number)) for number in range(plan.num_blocks)]


def block_of(plan: StreamK, index: int) -> Block:
    k_tiles = plan.iters_per_tile
    if index < plan.sk_blocks:
        begin, end = plan.get_iter_extents(index)
        pieces = []
        while end > begin:  # from the last tile down: what others wait for comes first
            tile = plan.get_sk_tile_idx(end - 1)
            pieces.append(Piece(tile, *plan.tile_share(tile, begin, end)))
            end = max(begin, tile * k_tiles)
        return Block(STREAM_K, tuple(pieces))
    if plan.dp_start_block_idx <= index < plan.reduce_start_block_idx:
        first, count = plan.dp_tiles(index - plan.dp_start_block_idx)
        tiles = (first + step * plan.avail_sms for step in range(count))
        return Block(DATA_PARALLEL, tuple(Piece(tile, 0, k_tiles) for tile in tiles if plan.is_dp_tile(tile)))
    if plan.reduce_start_block_idx <= index < plan.num_active_blocks:
        fragments = plan.reduction_blocks // plan.sk_tiles
        return Block(REDUCTION, (Piece((index - plan.reduce_start_block_idx) // fragments, k_tiles, k_tiles),))
    return Block(NOTHING, ())
