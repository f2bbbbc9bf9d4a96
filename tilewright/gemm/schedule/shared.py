"""Stream-K as an argument of a kernel: blocks that take even shares of the k tiles of some output tiles."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import tilewright as cutlass
from tilewright import Int32, const_expr, cute, range
from tilewright.gemm.counts import known_count
from tilewright.gemm.schedule.decomposition import ONLY, Caller, Piece, StaticSchedule
from tilewright.gemm.schedule.raster import Raster
from tilewright.gemm.schedule.shared_units import SharedUnits
from tilewright.lang.tensors.select import select

REDUCTIONS = ("mixed", "atomic", "shared")
"""How the sums of a tile's blocks come together: the names of CUTLASS's ReductionStrategy, and ``shared``, where all
blocks of a tile add up a part of it each. ``none``: no tile is shared."""


@dataclass(frozen=True)
class SharedTiles(StaticSchedule):
    """Stream-K as CUTLASS 2.x has it: the k tiles of the first tiles, laid end to end, are dealt out in even shares to
    as many blocks as the GPU holds; the other tiles have a block each. ``plan`` has the numbers, and blocks and tiles
    are numbered as it says: regions interleaved, first waves remapped, tiles in cohorts.

    ``workspace`` holds accumulators, ``flags`` Int32, zero between launches (``fixup.py``, which says what
    ``reduction`` may be: "mixed", "atomic", "separate" or "shared").

    A block works through its share from the end, so that what others wait for, the beginning of a tile that the next
    block finishes, comes first.
    """

    workspace: cute.Tensor
    flags: cute.Tensor
    plan: Any  # StreamK; for persistent workers also SharedUnits
    reduction: cutlass.Constexpr = "mixed"

    sums: ClassVar[str] = "exchanged"

    @property
    def separate(self) -> bool:
        """Whether the plan's reduction blocks add up, a part of a tile each."""
        return self.reduction == "separate"

    @property
    def handed_over(self) -> bool:
        """Whether all blocks of a shared tile hand their sums over, those of the block that finishes it, too."""
        return self.reduction in ("separate", "shared")

    @property
    def cooperative(self) -> bool:
        return self.reduction == "shared"

    def blocks(self, tiles: Any) -> Any:
        return self.plan.num_blocks

    def k_tiles(self, K: Any, bK: int) -> Any:
        # As an argument of the kernel the number costs no register where it is not needed.
        return self.plan.iters_per_tile

    def place(self, raster: Raster, tile: Any, tiles_m: Any, tiles_n: Any) -> tuple[Any, Any]:
        offset: tuple[Any, Any] = self.plan.get_tile_offset(tile)
        return offset

    def number(self, block: Any) -> Any:
        """The place in the plan's order of the block that the hardware numbers ``block``."""
        return self.plan.get_block_idx(block)

    @cute.jit
    def run(self, block: Any, tiles: Any, k_tiles: Any, piece: Piece, state: Any = None, caller: Caller = ONLY) -> Any:
        return self.pieces(*self.share(self.number(block), k_tiles), k_tiles, piece, state)

    @cute.jit
    def pieces(self, begin: Any, end: Any, last: Any, k_tiles: Any, piece: Piece, state: Any = None) -> Any:
        """``piece`` of each tile of a share, as :meth:`share` gives it, from its end."""
        while end > begin:
            tile = self.plan.get_sk_tile_idx(end - 1)
            start = tile * k_tiles
            state = piece(tile, cute.max(begin - start, 0), end - start, state)
            end = cute.max(begin, start)
            if const_expr(last is not None):
                if (end == begin) & (begin < last):  # the next of a semi-persistent block's tiles
                    begin += self.plan.avail_sms * k_tiles
                    end = begin + k_tiles
        return state

    @cute.jit
    def share(self, block: Any, k_tiles: Any) -> tuple[Any, Any, Any]:
        """[begin, end) of the k tiles of a block, counted through all tiles, and None; where it may have several tiles
        apart from each other, those of the first, and where the last one begins."""
        plan = self.plan
        begin, end, last = Int32(0), Int32(0), Int32(0)
        if block < plan.sk_blocks:
            begin, end = plan.get_iter_extents(block)
        elif (block >= plan.dp_start_block_idx) & (block < plan.reduce_start_block_idx):
            tile, count = plan.dp_tiles(block - plan.dp_start_block_idx)
            begin = tile * k_tiles
            end = begin + select(plan.is_dp_tile(tile), k_tiles, 0)
            last = begin + (count - 1) * plan.avail_sms * k_tiles
        return begin, end, last

    @property
    def reduce_start(self) -> Any:
        """The number of the first reduction block."""
        return self.plan.reduce_start_block_idx

    @property
    def block_stride(self) -> Any:
        """From the number of one of a tile's blocks to that of the next."""
        return 1

    def first_block(self, tile: Any) -> Any:
        """The block that starts a tile which several share."""
        return self.plan.get_sk_block_idx(tile * self.plan.iters_per_tile)

    def last_block(self, tile: Any) -> Any:
        """The block that finishes it."""
        return self.plan.get_sk_block_idx((tile + 1) * self.plan.iters_per_tile - 1)


@dataclass(frozen=True)
class OrderedSharedTiles(SharedTiles):
    """Stream-K as the library chooses it: blocks keep the hardware's numbers, those that share first, then one for each
    other tile, without padding; tiles keep the kernel's raster, and the block that finishes a tile adds up. It takes
    fewer blocks, registers and divisions than the plan's own numbering."""

    def blocks(self, tiles: Any) -> Any:
        return self.plan.sk_blocks + tiles - self.plan.sk_tiles

    def place(self, raster: Raster, tile: Any, tiles_m: Any, tiles_n: Any) -> tuple[Any, Any]:
        return raster.tile(tile, tiles_m, tiles_n)

    def number(self, block: Any) -> Any:
        return block

    @cute.jit
    def share(self, block: Any, k_tiles: Any) -> tuple[Any, Any, Any]:
        begin = (self.plan.sk_tiles + block - self.plan.sk_blocks) * k_tiles
        end = begin + k_tiles
        if block < self.plan.sk_blocks:
            begin, end = self.plan.get_iter_extents(block)
        return begin, end, None


@dataclass(frozen=True)
class BatchSharedTiles(OrderedSharedTiles):
    """The same of a batch: the tiles of all its products, laid end to end, in a grid of one row."""

    across_batches: ClassVar[bool] = True

    def grid(self, tiles: Any, batch: Any) -> tuple[Any, Any, Any]:
        return self.blocks(tiles * batch), 1, 1

    def place(self, raster: Raster, tile: Any, tiles_m: Any, tiles_n: Any) -> tuple[Any, Any]:
        return raster.tile(tile % (tiles_m * tiles_n), tiles_m, tiles_n)


@dataclass(frozen=True)
class PersistentSharedTiles(SharedTiles):
    """Stream-K on as many workers as the GPU holds: each works through its share of the shared tiles first, and then
    takes one of the other tiles after another. Blocks keep the hardware's numbers, and tiles the kernel's raster."""

    workers: Int32 = field(kw_only=True)

    def blocks(self, tiles: Any) -> Any:
        # Reduction blocks come after the workers: when they run, those that they wait for have begun.
        return self.workers + (self.plan.reduction_blocks if self.separate else 0)

    def place(self, raster: Raster, tile: Any, tiles_m: Any, tiles_n: Any) -> tuple[Any, Any]:
        if isinstance(self.plan, SharedUnits):
            tile = select(tile < self.plan.sk_tiles, self.plan.get_tile(tile), tile)
        return raster.tile(tile, tiles_m, tiles_n)

    def number(self, block: Any) -> Any:
        return block

    @property
    def reduce_start(self) -> Any:
        return self.workers

    @property
    def block_stride(self) -> Any:
        return self.plan.groups if isinstance(self.plan, SharedUnits) else 1

    @cute.jit
    def share(self, block: Any, k_tiles: Any) -> tuple[Any, Any, Any]:
        begin, end = Int32(0), Int32(0)
        if block < self.plan.sk_blocks:
            begin, end = self.plan.get_iter_extents(block)
        return begin, end, None

    @cute.jit
    def run(self, block: Any, tiles: Any, k_tiles: Any, piece: Piece, state: Any = None, caller: Caller = ONLY) -> Any:
        state = self.pieces(*self.share(block, k_tiles), k_tiles, piece, state)
        first = self.plan.sk_tiles + block
        if const_expr(self.separate):
            first = select(block < self.workers, first, tiles)
        for tile in range(known_count(first), known_count(tiles), self.workers, unroll=1):
            state = piece(tile, 0, k_tiles, state)
        return state
