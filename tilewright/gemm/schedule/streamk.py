"""Stream-K: which thread block computes which k-iterations of which output tiles (CUTLASS 2.x's decomposition).

The grid of a Stream-K GEMM is one row of blocks. ``get_block_idx`` brings them into this order:

    Stream-K blocks          0 .. sk_blocks
    padding to whole waves     .. dp_start_block_idx        (sk_waves * avail_sms)
    data-parallel blocks       .. reduce_start_block_idx    (+ dp_blocks)
    reduction blocks           .. num_active_blocks         (+ reduction_blocks)
    padding                    .. num_blocks

*Stream-K (SK) tiles* are the first ``sk_tiles`` output tiles. Their k-iterations are numbered through, tile after tile,
and dealt out in runs of almost equal length, one run a block: a run may end in the middle of a tile, whose other part
is then another block's.

A *region* is a part of that line of iterations that is dealt out for itself. There is one, unless there are twice,
three times, ... as many blocks as tiles: then each tile is a region, and Stream-K is split-K.

*Big blocks* are the first ``sk_big_blocks_per_region`` blocks of a region. They take one iteration more than the
normal blocks after them: this is where the remainder of iterations by blocks goes.

*Data-parallel (DP) blocks* compute the other tiles, one each. When the waves of the grid would not come out as a
multiple of what the machine holds at once, the blocks of the first DP wave are *semi-persistent*: each computes
``dp_first_wave_tiles`` tiles, one after the other, and fewer blocks are launched.

A *reduction block* adds the partial sums of one fragment of one SK tile, where many blocks share a tile. Otherwise the
block that finishes a tile does it.

A *cohort* is a rectangle of 8 x 4 tiles. When there is much data-parallel work, tiles are numbered cohort by cohort,
so that blocks that run together read the same rows of A and columns of B from L2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright import cute
from tilewright.errors import ConstraintError
from tilewright.gemm.schedule.streamk_blocks import (
    COHORT_M,
    COHORT_N,
    ceil_div,
    data_parallel,
    get_blocks,
    positive,
    shares,
    triple,
)
from tilewright.lang.tensors.select import select

CACHE_LINE = 128
FLAG_BYTES = 4


@dataclass(frozen=True)
class StreamK:
    """One decomposition; :meth:`of` makes it. Field names are those of CUTLASS's ``ThreadblockSwizzleStreamK``.

    On the host the fields are Python ints. The maps (``get_...``, ``dp_tiles``, ``tile_share``) take Python ints or
    run-time integers, and so may the fields be: a StreamK that is an argument of a kernel has run-time fields, and the
    kernel is compiled once for all problems. The maps never branch; indices must be in the stated ranges.

    Nine tiles of 64 iterations on eight multiprocessors: eight blocks of 72 iterations, each with parts of two tiles.

    >>> sk = StreamK.of((384, 384, 2048), (128, 128, 32), multiprocessors=8, occupancy=1, fragments=8)
    >>> sk.sk_tiles, sk.dp_blocks, sk.sk_blocks, sk.sk_iters_per_normal_block, sk.grid
    (9, 0, 8, 72, (8, 1, 1))
    >>> [sk.get_iter_extents(block) for block in range(3)]
    [(0, 72), (72, 144), (144, 216)]
    >>> [sk.tile_share(tile, 72, 144) for tile in (1, 2)]  # block 1: iterations 8.. of tile 1, ..16 of tile 2
    [(8, 64), (0, 16)]
    """

    tiled_shape: tuple[int, int, int]  # tiles along M and N; batches
    iters_per_tile: int  # k-iterations of one tile
    avail_sms: int  # multiprocessors to balance over: a wave is this many blocks
    sk_tiles: int
    sk_waves: int  # waves that the SK blocks were planned for; the grid holds all their blocks
    sk_regions: int  # a divisor, as are the two below that say so: 1 without SK tiles
    sk_blocks_per_region: int  # a divisor
    sk_big_blocks_per_region: int
    sk_iters_per_normal_block: int  # a divisor
    sk_iters_per_region: int
    dp_blocks: int  # with cohorts: blocks of whole cohorts, of which some find nothing to do
    dp_first_wave_tiles: int  # tiles of each block of the first DP wave
    reduction_blocks: int
    cohort_raster: bool
    remap_block_indices: bool  # deal the blocks of the first two waves out so that both land on all multiprocessors
    shared_reduction: bool = False  # all blocks of an SK tile add up a part of it each, and run at once; not CUTLASS's

    @classmethod
    def of(
        cls,
        problem: tuple[int, int, int],
        tile: tuple[int, int, int],
        *,
        multiprocessors: int,
        occupancy: int,
        fragments: int,
        available: int | None = None,
        split: int = 1,
        batch: int | None = None,
        shared: tuple[int, int] | None = None,
    ) -> StreamK:
        """The decomposition of an (M, N, K) problem into (bM, bN, bK) tiles.

        ``multiprocessors`` of the device hold ``occupancy`` blocks of the kernel each; ``available`` of them are
        balanced over (all of them by default; 1 asks for a data-parallel grid). ``split`` > 1 cuts each tile into so
        many blocks instead of asking the cost model. ``batch`` is the number of products in batched mode, where tiles
        are never shared, not even for a batch of one; None is a single product. ``shared`` = (tiles, blocks) takes so
        many tiles and blocks instead of the cost model's. ``fragments`` is the number of blocks
        that a separate reduction spends on one tile.

        Raises ArgumentError for numbers that are not positive integers, and ConstraintError for numbers that do not
        go together or whose indices would not fit into 32 bits. Trying the splits may take half a millisecond.
        """
        m, n, k = triple("problem", problem, "(M, N, K)")
        bM, bN, bK = triple("tile", tile, "(bM, bN, bK)")
        multiprocessors = positive("multiprocessors", multiprocessors)
        occupancy = positive("occupancy", occupancy)
        fragments = positive("fragments", fragments)
        split = positive("split", split)
        avail_sms = multiprocessors
        if available is not None:
            avail_sms = positive("available", available, "leave it out for the whole device, say 1 for data-parallel")
        batches = 1 if batch is None else positive("batch", batch)
        if batch is not None and split > 1:
            raise ConstraintError(
                f"split = {split} with batch = {batch}: batched mode never shares a tile between blocks. "
                "Leave batch out for a single product, or split at 1"
            )
        if shared is not None and (batch is not None or split > 1):
            other = f"split = {split}" if batch is None else f"batch = {batch}, where none is"
            raise ConstraintError(f"shared = {shared} tiles and blocks and {other}: give one of them")
        tiled_shape = (ceil_div(m, bM), ceil_div(n, bN), batches)
        output_tiles, iters = tiled_shape[0] * tiled_shape[1], ceil_div(k, bK)
        dp_tiles, sk_blocks = output_tiles, 0
        if split > 1:
            dp_tiles, sk_blocks = 0, output_tiles * split
        elif shared is not None:
            dp_tiles, sk_blocks = output_tiles - min(shared[0], output_tiles), shared[1]
        elif batch is None and avail_sms > 1:
            dp_tiles, sk_blocks = get_blocks(output_tiles, iters, avail_sms, occupancy)
        return cls.dealt(
            tiled_shape, iters, multiprocessors, occupancy, fragments, avail_sms, output_tiles - dp_tiles, sk_blocks
        )

    @classmethod
    def dealt(
        cls,
        tiled_shape: tuple[int, int, int],
        iters: int,
        multiprocessors: int,
        occupancy: int,
        fragments: int,
        avail_sms: int,
        sk_tiles: int,
        sk_blocks: int,
        shared_reduction: bool = False,
    ) -> StreamK:
        """The first ``sk_tiles`` tiles of ``iters`` k-iterations for ``sk_blocks`` blocks: what :meth:`of` does with
        numbers that it has checked. Where tiles of a batch are shared, those of all its products are laid end to end
        (not CUTLASS's: the maps of the plan number one product's, the library's own numbering takes them apart).
        Raises ConstraintError where indices would not fit into 32 bits."""
        output_tiles = tiled_shape[0] * tiled_shape[1] * (tiled_shape[2] if sk_tiles else 1)
        dp_tiles = output_tiles - sk_tiles
        fields = shares(sk_tiles, sk_blocks, iters)
        sk_waves = -(-sk_blocks // avail_sms)  # of the blocks asked for, even if there are fewer iterations
        many_peers = fields["sk_regions"] * fields["sk_blocks_per_region"] > 2 * sk_tiles > 0
        reduction_blocks = sk_tiles * fragments if many_peers and sk_waves < occupancy else 0
        remap = sk_tiles > 0 and occupancy > 1 and multiprocessors == avail_sms
        fields |= data_parallel(tiled_shape, dp_tiles, sk_tiles, sk_waves, avail_sms, multiprocessors, occupancy)
        fields |= {
            "tiled_shape": tiled_shape,
            "iters_per_tile": iters,
            "avail_sms": avail_sms,
            "sk_tiles": sk_tiles,
            "sk_waves": sk_waves,
            "reduction_blocks": reduction_blocks,
            "shared_reduction": shared_reduction,
            # Upstream decides this before it knows the data-parallel blocks.
            "remap_block_indices": remap and sk_waves * avail_sms + reduction_blocks > 2 * avail_sms,
        }
        made = object.__new__(cls)
        made.__dict__.update(fields)  # the constructor of a frozen class takes as long as all the above
        largest = max(sk_tiles * iters, output_tiles, sk_waves * avail_sms + fields["dp_blocks"] + reduction_blocks)
        if max(largest, 4 * avail_sms if made.remap_block_indices else 0) >= 2**31:
            raise ConstraintError(
                f"{tiled_shape[0]} x {tiled_shape[1]} tiles of {iters} k tiles count to {largest}, more than 32-bit "
                "indices hold: take larger tiles or multiply in parts"
            )
        return made

    def check(self) -> None:
        """Raise ConstraintError unless the shares are all of the SK tiles' iterations: plans from :meth:`of` are, one
        that was edited may leave blocks waiting for each other. For plans with host ints."""
        normal, big = self.sk_iters_per_normal_block, self.sk_big_blocks_per_region
        dealt = self.sk_regions * (self.sk_blocks_per_region * normal + big)
        wanted = self.sk_tiles * self.iters_per_tile
        fits = self.sk_iters_per_region * self.sk_regions == wanted == dealt and big <= self.sk_blocks_per_region
        if self.sk_tiles and not (fits and normal > 0 and self.sk_tiles <= self.tiled_shape[0] * self.tiled_shape[1]):
            raise ConstraintError(
                f"the plan deals out {dealt} k tiles; its {self.sk_tiles} shared tiles have {wanted}. Make plans with "
                "StreamK.of"
            )

    @property
    def sk_blocks(self) -> Any:
        """Blocks with iterations of SK tiles; 0 for a data-parallel grid."""
        return select(self.sk_tiles > 0, self.sk_regions * self.sk_blocks_per_region, 0)

    @property
    def cuts_tiles(self) -> bool:
        """Whether a block has a part of a tile only, whose sums are added to those of others. On the host."""
        iters, normal = self.iters_per_tile, self.sk_iters_per_normal_block
        return self.sk_tiles > 0 and iters > 1 and (self.sk_big_blocks_per_region > 0 or normal % iters != 0)

    @property
    def dp_start_block_idx(self) -> Any:
        """The first DP block: SK blocks and their padding fill whole waves."""
        return self.sk_waves * self.avail_sms

    @property
    def reduce_start_block_idx(self) -> Any:
        """The first reduction block."""
        return self.dp_start_block_idx + self.dp_blocks

    @property
    def num_active_blocks(self) -> Any:
        """All blocks but the padding at the end."""
        return self.reduce_start_block_idx + self.reduction_blocks

    @property
    def num_blocks(self) -> Any:
        """Blocks of the grid: at least four waves where indices are remapped, or the hardware would not place the
        first two as the remap takes for granted."""
        return select(
            self.remap_block_indices, cute.max(self.num_active_blocks, 4 * self.avail_sms), self.num_active_blocks
        )

    @property
    def grid(self) -> tuple[Any, int, Any]:
        """Blocks along x; batches along z."""
        return self.num_blocks, 1, self.tiled_shape[2]

    @property
    def cohorts_n(self) -> Any:
        """Cohorts along N."""
        return (self.tiled_shape[1] + (COHORT_N - 1)) // COHORT_N

    @property
    def barrier_workspace_size(self) -> int:
        """Bytes of the flags by which blocks wait for each other, zeroed before the launch: one for each SK block or,
        if these are more, each reduction block."""
        return _lines(FLAG_BYTES * max(self.sk_blocks, self.reduction_blocks))

    def partials_workspace_size(self, tile_bytes: int) -> int:
        """Bytes of the partial sums, for accumulators of ``tile_bytes`` a tile: two tiles for each SK block, the one
        that it starts and the one that it does not."""
        return _lines(2 * tile_bytes * self.sk_blocks)

    def get_block_idx(self, block_idx: Any) -> Any:
        """The place in the order above of the block that the hardware numbers ``block_idx``: a permutation.

        Where two blocks or more fit on a multiprocessor, the hardware is taken to put blocks 2i and 2i + 1 on
        multiprocessor i at first: one of them becomes a block of the first wave, the other of the second. And
        neighbours go to different regions: the first blocks of all regions start before the second ones, so that a
        block that waits for the earlier ones of its region finds them nearly done.
        """
        paired = block_idx // 2 + block_idx % 2 * self.avail_sms
        paired = select(block_idx < 2 * self.avail_sms, paired, block_idx)
        block_idx = select(self.remap_block_indices, paired, block_idx)
        dealt = block_idx % self.sk_regions * self.sk_blocks_per_region + block_idx // self.sk_regions
        return select(block_idx < self.sk_blocks, dealt, block_idx)

    def get_iter_extents(self, sk_block_idx: Any) -> tuple[Any, Any]:
        """[begin, end) of the iterations of SK block ``sk_block_idx`` < sk_blocks, counted through all SK tiles."""
        region, block = sk_block_idx // self.sk_blocks_per_region, sk_block_idx % self.sk_blocks_per_region
        normal, big = self.sk_iters_per_normal_block, self.sk_big_blocks_per_region
        first = region * self.sk_iters_per_region
        begin = first + block * normal + cute.min(block, big)
        return begin, first + (block + 1) * normal + cute.min(block + 1, big)

    def get_sk_tile_idx(self, iteration: Any) -> Any:
        """The SK tile of an iteration. A block works on its tiles from the last, that of ``end - 1``, down."""
        return iteration // self.iters_per_tile

    def tile_share(self, tile_idx: Any, begin: Any, end: Any) -> tuple[Any, Any]:
        """[begin, end) of a block's iterations, counted from the tile's first: what of it falls into ``tile_idx``.

        The block that reaches ``iters_per_tile`` finishes the tile; the one that begins at 0 started it.
        """
        first = tile_idx * self.iters_per_tile
        return cute.max(begin - first, 0), cute.min(end - first, self.iters_per_tile)

    def get_sk_block_idx(self, iteration: Any) -> Any:
        """The SK block that does an iteration of SK tiles: the inverse of :meth:`get_iter_extents`."""
        per_region = cute.max(self.sk_iters_per_region, 1)
        region, inside = iteration // per_region, iteration % per_region
        normal, big = self.sk_iters_per_normal_block, self.sk_big_blocks_per_region
        # As if all blocks were big: right among the big ones, too little behind them. As if all were normal, after the
        # big ones' extra iterations: too little among the big ones, right behind them.
        block = cute.max(inside // (normal + 1), cute.max(inside - big, 0) // normal)
        return region * self.sk_blocks_per_region + block

    def get_first_block_idx(self, tile_idx: Any, block_idx: Any) -> Any:
        """The block that starts tile ``tile_idx``, on which ``block_idx`` works: itself for a DP tile."""
        return select(tile_idx < self.sk_tiles, self.get_sk_block_idx(tile_idx * self.iters_per_tile), block_idx)

    def get_last_block_idx(self, tile_idx: Any) -> Any:
        """The block that finishes SK tile ``tile_idx``."""
        return self.get_sk_block_idx((tile_idx + 1) * self.iters_per_tile - 1)

    def dp_tiles(self, dp_block_idx: Any) -> tuple[Any, Any]:
        """(first tile, number of tiles) of DP block ``dp_block_idx``, counted from ``dp_start_block_idx``. The tiles
        of one block are ``avail_sms`` apart. With cohorts ask :meth:`is_dp_tile` before computing one."""
        first_wave = dp_block_idx < self.avail_sms
        skipped = select(first_wave, 0, (self.dp_first_wave_tiles - 1) * self.avail_sms)
        first = select(self.cohort_raster, 0, self.sk_tiles) + dp_block_idx + skipped
        return first, select(first_wave, self.dp_first_wave_tiles, 1)

    def is_dp_tile(self, tile_idx: Any) -> Any:
        """Whether a DP block has to compute ``tile_idx``. Cohorts number places beyond the matrix too, and count the
        SK tiles among theirs; without cohorts it is always true."""
        tile_m, tile_n = self.get_tile_offset(tile_idx)
        return (tile_idx >= self.sk_tiles) & (tile_m < self.tiled_shape[0]) & (tile_n < self.tiled_shape[1])

    def get_tile_offset(self, tile_idx: Any) -> tuple[Any, Any]:
        """(tile_m, tile_n) of tile ``tile_idx``: cohort by cohort, or along the shorter side of the matrix first."""
        tiles_m, tiles_n, _ = self.tiled_shape
        shorter, wide = cute.min(tiles_m, tiles_n), tiles_m < tiles_n
        along, across = tile_idx % shorter, tile_idx // shorter
        cohort, inside = tile_idx // (COHORT_M * COHORT_N), tile_idx % (COHORT_M * COHORT_N)
        cohort_m = cohort // self.cohorts_n * COHORT_M + inside // COHORT_N
        cohort_n = cohort % self.cohorts_n * COHORT_N + inside % COHORT_N
        return (
            select(self.cohort_raster, cohort_m, select(wide, along, across)),
            select(self.cohort_raster, cohort_n, select(wide, across, along)),
        )

    def Print(self) -> None:
        """Print the numbers of the plan in a line, as CUTLASS's ``ThreadblockSwizzleStreamK::Print`` does; what the
        plan does not keep, the problem's size and the occupancy, is left out.

        >>> StreamK.of((384, 384, 2048), (128, 128, 32), multiprocessors=8, occupancy=1, fragments=8).Print()
        ... # doctest: +ELLIPSIS
        tiled_shape: (3,3), tiles: 9, dp_tiles: 0, sk_tiles: 9, iters_per_tile: 64, ..., avail_sms: 8, num_blocks: 8
        """
        m, n, _ = self.tiled_shape
        numbers = {
            "tiled_shape": f"({m},{n})",
            "tiles": m * n,
            "dp_tiles": m * n - self.sk_tiles,
            "sk_tiles": self.sk_tiles,
            "iters_per_tile": self.iters_per_tile,
            "reduction_blocks": self.reduction_blocks,
            "dp_blocks": self.dp_blocks,
            "dp_waves": self.dp_blocks // self.avail_sms,
            "dp_first_wave_tiles": self.dp_first_wave_tiles,
            "sk_blocks_per_region": self.sk_blocks_per_region,
            "sk_regions": self.sk_regions,
            "sk_waves": self.sk_waves,
            "sk_iters_per_normal_block": self.sk_iters_per_normal_block,
            "sk_big_blocks_per_region": self.sk_big_blocks_per_region,
            "remap_block_indices": int(self.remap_block_indices),
            "cohort_raster": int(self.cohort_raster),
            "avail_sms": self.avail_sms,
            "num_blocks": self.num_blocks,
        }
        print(", ".join(f"{name}: {number}" for name, number in numbers.items()))

    def get_tile_offset_row_major(self, tile_idx: Any) -> tuple[Any, Any]:
        """(tile_m, tile_n) of tile ``tile_idx`` where tiles are numbered row by row."""
        return tile_idx // self.tiled_shape[1], tile_idx % self.tiled_shape[1]


def _lines(size: int) -> int:
    """``size`` bytes in whole cache lines."""
    return ceil_div(size, CACHE_LINE) * CACHE_LINE
