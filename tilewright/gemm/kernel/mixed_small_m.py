"""Products with few rows and a weight of numbers of 4 or 8 bits: the time is that of reading the weight once.

The kernel computes the transposed product: the weight is the operand of mma.sync with 16 rows, and the rows of A are
its 8 columns, so that one instruction takes twice as much of the weight. The weight was arranged once
(``prepared_weight``): a lane's 16 bytes are what it multiplies in four steps, or in two of 8 bits. Loads of the next
tiles of K are in flight while one is multiplied, ``config.stages`` of them: memory answers in some 700 ns,
in which a multiprocessor of an H200 could have read 25 KB.

The numbers, and rows of 8-bit floats, become floats of 16 bits exactly, the products of a group of K are summed on
their own in float32, and these sums are multiplied by the group's scales: two scales for 16 rows of the weight, where
scaling the weight would take 64 multiplications of each lane.

Some warps of a block have columns of their own, the others share the K of these and add up their sums in the end. Every
block reads all rows of A, so that the rows come from the L2 once for each block: for 32 rows and more that takes longer
than the weight does, unless a block has many columns. Warps with other columns find the rows in the L1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright import Float32, Int32, cute, range, range_constexpr, utils
from tilewright.gemm.addressing import aligned_pointer
from tilewright.gemm.epilogue.fragment import FragmentEpilogue
from tilewright.gemm.epilogue.functions import EpilogueFunction
from tilewright.gemm.kernel.overlap import wait_then_let_next_begin
from tilewright.gemm.kernel.small_m import GROUP, STEP, VECTOR, SmallMGemm
from tilewright.gemm.mainloop.math import tensor_core_op
from tilewright.gemm.mainloop.prepared_weight import LOW_BITS, widened
from tilewright.gemm.mixed_config import COLUMNS, DEPTH, LANES, WORDS
from tilewright.gemm.small_m_config import MixedSmallMConfig
from tilewright.gemm.tiles import aligned

ROWS, HALVES = 16, 2
"""Rows of the weight of one instruction, and the tiles of ``COLUMNS`` that make them."""

AT_ONCE = 2
"""Groups of 8 rows of A that are loaded for 128 elements of K at once; of more, for 32."""


@dataclass(frozen=True)
class PreparedOperand:
    """The weight as the kernel's argument."""

    words: cute.Tensor  # (4, 32, K / 128, N / 8) of Int32; of numbers of 8 bits K / 64
    scales: cute.Tensor  # (N, K / depth), contiguous along N
    zeros: Any = None  # (N, K / depth) of Uint8, contiguous along N, where the numbers have zero points


@dataclass(frozen=True)
class WeightTile:
    """128 elements of K of a block's rows of the weight, in the registers of a lane: ``words`` (4, loads,
    half, 16 rows), ``scales`` and ``zeros`` (half, 16 rows, group of K)."""

    words: cute.Tensor
    scales: cute.Tensor
    zeros: Any


class MixedSmallMGemm:
    """D = f(A @ (scales * B), C) for A (M, K, 1), a :class:`PreparedOperand` B, C and D (M, N, 1); K in 128s, N in 8s.

    ``config.tile`` is (rows of A, columns, 128), ``config.warps`` (warps that share the columns, warps that share K),
    ``config.stages`` the tiles of K whose loads are in flight.
    """

    ACCESS = SmallMGemm.ACCESS

    def __init__(self, config: MixedSmallMConfig) -> None:
        config.check()
        self.config = config
        self.epilogue = FragmentEpilogue(config)
        rows, columns, _ = config.tile
        self.sides, self.warps = config.warps
        self.groups, self.blocks = rows // GROUP, columns // (ROWS * self.sides)
        self.parts = DEPTH // config.depth
        self.pieces = config.b.dtype.width // 4  # loads of 16 bytes for 128 elements of K
        self.loaded = VECTOR * config.a.dtype.width // 8  # bytes of a lane's load of a row

    @cute.jit
    def __call__(
        self,
        mA: cute.Tensor,
        mB: PreparedOperand,
        mC: cute.Tensor,
        mD: cute.Tensor,
        function: EpilogueFunction,
        decomposition: Any = None,
        stream: Any = None,
    ) -> None:
        """Launch the product."""
        config = self.config
        mA, mC, mD = (aligned(tensor, operand) for tensor, operand in ((mA, config.a), (mC, config.c), (mD, config.c)))
        op = tensor_core_op(config.math_dtype, config.acc_dtype)
        rows, columns, _ = config.tile
        m, n = cute.size(mD, mode=[0]), cute.size(mD, mode=[1])
        tiled_mma = cute.make_tiled_mma(op, cute.make_layout((1, 1, 1)))
        self.kernel(mA, mB, mC, mD, function, tiled_mma, Int32(LOW_BITS)).launch(
            grid=(cute.ceil_div(n, columns), cute.ceil_div(m, rows), 1),
            block=(config.threads, 1, 1),
            stream=stream,
            min_blocks_per_mp=config.blocks,
            use_pdl=True,
        )

    @cute.kernel
    def kernel(
        self,
        mA: cute.Tensor,
        mB: PreparedOperand,
        mC: cute.Tensor,
        mD: cute.Tensor,
        function: EpilogueFunction,
        tiled_mma: cute.TiledMma,
        mask: Int32,
    ) -> None:
        column, row, _ = cute.arch.block_idx()
        lane, (warp, side) = cute.arch.lane_idx(), self.role(cute.arch.warp_idx())
        rows, columns, _ = self.config.tile
        tokens = [self.row(mA, row * rows + GROUP * j + lane // 4, lane) for j in range_constexpr(self.groups)]
        acc = cute.make_rmem_tensor(((2, 2), self.blocks, self.groups), Float32)  # (MMA, MMA_M, MMA_N)
        acc.fill(0)
        tiles = cute.size(mB.words, mode=[2]) // self.pieces
        stages, step = self.config.stages, self.config.stages * self.warps
        held = [self.registers(mB) for _ in range_constexpr(stages)]
        places = self.places(mB, column * self.sides + side, lane)
        wait_then_let_next_begin()
        for stage in range_constexpr(stages):
            if warp + stage * self.warps < tiles:
                self.load(mB, held[stage], places, warp + stage * self.warps)
        for first in range(warp, tiles, step, unroll=1):
            for stage in range_constexpr(stages):
                tile = first + stage * self.warps
                if tile < tiles:
                    self.multiply(tiled_mma, acc, held[stage], tokens, tile, mask)
                    if tile + step < tiles:
                        self.load(mB, held[stage], places, tile + step)
        at = row, column * self.sides + side
        self.finish(tiled_mma, acc, mC[None, None, 0], mD[None, None, 0], function, at, side, warp, lane)

    def role(self, warp: Any) -> tuple[Any, Any]:
        """Which of the warps that share K a warp is, and which of those that share the columns."""
        if self.sides == 1:
            return warp, 0
        warp = cute.arch.make_warp_uniform(warp)
        return warp // self.sides, warp % self.sides

    def row(self, mA: cute.Tensor, index: Any, lane: Any) -> Any:
        """A pointer to the lane's first vector of a row of A; rows beyond read the last one: what comes of them is not
        stored."""
        at = cute.min(index, cute.size(mA, mode=[0]) - 1)
        return aligned_pointer(mA.iterator + (at * mA.stride[0] + lane % 4 * VECTOR), self.loaded)

    def registers(self, mB: PreparedOperand) -> WeightTile:
        words = cute.make_rmem_tensor(cute.make_layout((WORDS, self.pieces, HALVES, self.blocks)), Int32)
        groups = cute.make_layout((HALVES, self.blocks, self.parts))
        scales = cute.make_rmem_tensor(groups, mB.scales.element_type)
        return WeightTile(words, scales, None if mB.zeros is None else cute.make_rmem_tensor(groups, Int32))

    def places(self, mB: PreparedOperand, column: Any, lane: Any) -> list:
        """Where the lane's words, scale and zero point of the first tile of K are, for each 8 rows of the warp's. What
        comes of rows beyond is not stored: they read the last ones."""
        tiles, last = cute.size(mB.words, mode=[2]), cute.size(mB.words, mode=[3]) - 1
        found = []
        for i in range_constexpr(self.blocks * HALVES):
            at = cute.min(column * (self.blocks * HALVES) + i, last)
            words = mB.words.iterator + (at * tiles * LANES + lane % 4 * COLUMNS + lane // 4) * WORDS
            row = at * COLUMNS + lane // 4
            found.append((words, mB.scales.iterator + row, None if mB.zeros is None else mB.zeros.iterator + row))
        return found

    def load(self, mB: PreparedOperand, held: WeightTile, places: list, tile: Any) -> None:
        """Tile ``tile`` of K of the block's rows of the weight: 16 bytes a lane for each 8 rows."""
        step, columns = tile * (LANES * WORDS * self.pieces), cute.size(mB.scales, mode=[0])
        for i, (words, scales, zeros) in enumerate(places):
            half, block = i % HALVES, i // HALVES
            for piece in range_constexpr(self.pieces):
                at = aligned_pointer(words + step + piece * LANES * WORDS, 16)
                target = held.words[None, piece, half, block]
                cute.autovec_copy(cute.make_tensor(at, cute.make_layout(WORDS)), target)
            for part in range_constexpr(self.parts):
                group = (tile * self.parts + part) * columns
                held.scales[half, block, part] = (scales + group).load()
                if zeros is not None:
                    held.zeros[half, block, part] = (zeros + group).load().to(Int32)

    @cute.jit
    def multiply(
        self, tiled_mma: cute.TiledMma, acc: cute.Tensor, held: WeightTile, tokens: list, tile: Any, mask: Int32
    ) -> None:
        """Add the products of one tile of K. A step of each row is widened where it is needed: all at once would take
        64 registers."""
        few, steps = self.groups <= AT_ONCE, WORDS // self.parts
        loaded = [self.load_rows(tokens, tile * DEPTH, WORDS)] if few else []  # (MMA, MMA_N, 2, WORDS)
        # Of one step of each row: pairs of neighbours, the two halves of the rows, and of 16 elements of K.
        layout = cute.make_layout(((2, 2, 2), self.blocks, 2), stride=((1, VECTOR, 2), HALVES * VECTOR, 4))
        for part in range_constexpr(self.parts):
            sums = cute.make_rmem_tensor(acc.shape, Float32)
            sums.fill(0)
            for step in range_constexpr(part * steps, (part + 1) * steps):
                zeros = None if held.zeros is None else held.zeros[None, None, part]
                numbers = self.widened(held.words, step, mask, zeros)
                rA = cute.make_tensor(numbers.iterator, layout)  # (MMA, MMA_M, MMA_K)
                here = loaded[0] if few else self.load_rows(tokens, tile * DEPTH + step * STEP, 1)
                rB = here[None, None, None, step if few else 0]
                cute.gemm(tiled_mma, sums, rA, rB, sums)
            for i in range_constexpr(self.blocks):
                for upper in range_constexpr(HALVES):
                    scale = held.scales[upper, i, part].to(Float32)
                    for j in range_constexpr(self.groups):
                        for pair in range_constexpr(2):
                            at = (pair, upper), i, j
                            acc[at] = acc[at] + sums[at] * scale

    def widened(self, held: cute.Tensor, step: int, mask: Any, zeros: Any) -> Any:
        """The numbers of 32 elements of K, (8, half, 16 rows): of each word of a load one pair."""
        (piece, chunk), each = divmod(step, WORDS // self.pieces), WORDS * self.pieces
        layout = cute.make_layout((WORDS, HALVES, self.blocks), stride=(1, each, each * HALVES))
        words = cute.make_tensor(held.iterator + piece * WORDS, layout)
        if zeros is not None:
            zeros = cute.make_tensor(zeros.iterator, cute.make_layout(layout.shape, stride=(0, 1, HALVES)))
        return widened(self.config.b.dtype, words, chunk, self.config.math_dtype, mask, zeros)

    def load_rows(self, tokens: list, k: Any, words: int) -> cute.Tensor:
        """``words`` times 32 elements of K of the rows of A, (MMA, MMA_N, 2, words): 8 elements a lane for each."""
        shape, stride = ((2, 2), self.groups, 2, words), ((1, 2), words * VECTOR, 4, VECTOR)
        found = cute.make_rmem_tensor(cute.make_layout(shape, stride=stride), self.config.math_dtype)
        for j in range_constexpr(self.groups):
            for word in range_constexpr(words):
                source = aligned_pointer(tokens[j] + (k + word * STEP), self.loaded)
                target = cute.make_tensor(found.iterator + (j * words + word) * VECTOR, cute.make_layout(VECTOR))
                if self.config.a.dtype is self.config.math_dtype:
                    cute.autovec_copy(cute.make_tensor(source, cute.make_layout(VECTOR)), target)
                else:
                    eight = cute.make_rmem_tensor(VECTOR, self.config.a.dtype)
                    cute.autovec_copy(cute.make_tensor(source, cute.make_layout(VECTOR)), eight)
                    target.store(eight.load().to(self.config.math_dtype))
        return found

    @cute.jit
    def finish(
        self,
        tiled_mma: cute.TiledMma,
        acc: cute.Tensor,
        mC: cute.Tensor,
        mD: cute.Tensor,
        function: EpilogueFunction,
        place: tuple[Any, Any],
        side: Any,
        warp: Any,
        lane: Any,
    ) -> None:
        """Add up the sums of the warps that share K, in their order, and write them at ``place``, counted in rows of a
        block and columns of a warp: each warp units of 16 columns and 8 rows."""
        units, count = self.blocks * self.groups, 4
        # (accumulators of a unit, lanes, units, warps): the lanes of a warp touch 32 neighbouring words, a bank each.
        shape = (count, 32, units, self.warps, self.sides)
        layout = cute.make_ordered_layout(shape, order=(1, 0, 2, 3, 4))
        smem = utils.SmemAllocator().allocate_tensor(Float32, layout, 16)[None, None, None, None, side]
        flat = cute.make_tensor(acc.iterator, cute.make_layout((count, units)))
        for unit in range_constexpr(units):
            for i in range_constexpr(count):
                smem[i, lane, unit, warp] = flat[i, unit]
        cute.arch.sync_threads()
        extent = cute.size(mD, mode=[1]), cute.size(mD, mode=[0])
        for unit in range_constexpr(units):
            if warp == unit % self.warps:
                total = cute.make_rmem_tensor(((2, 2), 1), Float32)  # (MMA, MMA_M)
                for i in range_constexpr(count):
                    total[i] = smem[i, lane, unit, 0]
                for other in range_constexpr(1, self.warps):
                    for i in range_constexpr(count):
                        total[i] = total[i] + smem[i, lane, unit, other]
                block, group = unit % self.blocks, unit // self.blocks
                at = place[1] * self.blocks + block, place[0] * self.groups + group
                gC, gD, cD = (
                    cute.local_tile(tensor, (ROWS, GROUP), at)
                    for tensor in (transposed(mC), transposed(mD), cute.make_identity_tensor(extent))
                )
                self.epilogue.run(tiled_mma, lane, total, 0, gC, gD, cD, extent, function)


def transposed(matrix: cute.Tensor) -> cute.Tensor:
    return cute.make_tensor(matrix.iterator, cute.select(matrix.layout, mode=[1, 0]))
