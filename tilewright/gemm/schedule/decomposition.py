"""Who multiplies what: the ways to share the k tiles of all output tiles among thread blocks.

A decomposition is an argument of the kernel. It counts the blocks of a launch and, inside the kernel, calls
``piece(tile, k_begin, k_end)`` for each part of its block's share. Where ``partial`` is true a piece may have some of
the k tiles only: its sums then go to the block that finishes the tile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from tilewright import Int32, cute
from tilewright.cute.runtime import from_dlpack
from tilewright.gemm.config import GemmConfig
from tilewright.gemm.schedule.streamk import StreamK


@dataclass(frozen=True)
class DataParallel:
    """One block for each output tile."""

    partial: ClassVar[bool] = False

    def blocks(self, tiles: Any) -> Any:
        return tiles

    def k_tiles(self, K: Any, bK: int) -> Any:
        return cute.ceil_div(K, bK)

    def run(self, block: Any, k_tiles: Any, piece: Callable[[Any, Any, Any], None]) -> None:
        piece(block, 0, k_tiles)


@dataclass(frozen=True)
class SharedTiles:
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
    def run(self, block: Any, k_tiles: Any, piece: Any) -> None:
        begin, end = self.share(block, k_tiles)
        while end > begin:
            tile = self.plan.get_sk_tile_idx(end - 1)
            start = tile * k_tiles
            piece(tile, cute.max(begin - start, 0), end - start)
            end = cute.max(begin, start)

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


def decomposition_of(
    plan: StreamK | None, config: GemmConfig, zeros: Callable[[int, Any], Any]
) -> DataParallel | SharedTiles:  # fmt: skip
    """The kernel's argument; ``zeros(n, dtype)`` makes an array on the machine that runs it."""
    if plan is None:
        return DataParallel()
    bM, bN, _ = config.tile
    workspace, flags = (
        from_dlpack(array, assumed_align=16).mark_layout_dynamic()
        for array in (zeros(plan.sk_blocks * bM * bN, config.acc_dtype), zeros(plan.sk_blocks, Int32))
    )
    return SharedTiles(workspace, flags, plan)
