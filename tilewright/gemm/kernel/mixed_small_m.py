"""Products with few rows and a weight of 4-bit numbers: the kernel for few rows with another loader of B.

The weight was arranged once (``prepared_weight``), so a lane's 16 bytes are what it multiplies in four steps. The
numbers become floats of 16 bits exactly, the products of a group of K are summed on their own in float32, and these
sums are multiplied by the group's scales: four multiplications for 8 columns, where scaling the weight would take 32.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright import Float32, Int32, cute, range_constexpr
from tilewright.gemm.config import MixedSmallMConfig
from tilewright.gemm.kernel.small_m import ROWS, STEP, VECTOR, SmallMGemm
from tilewright.gemm.mainloop.prepared_weight import COLUMNS, DEPTH, LANES, WORDS, widened


@dataclass(frozen=True)
class PreparedOperand:
    """The weight as the kernel's argument."""

    words: cute.Tensor  # (4, 32, K / 128, N / 8) of Int32
    scales: cute.Tensor  # (N, K / depth), contiguous along N


class MixedSmallMGemm(SmallMGemm):
    """D = f(A @ (scales * B), C) for A (M, K, 1), a :class:`PreparedOperand` B, C and D (M, N, 1), M at most 16; K in
    128s, N in 8s."""

    LAST = DEPTH

    def __init__(self, config: MixedSmallMConfig) -> None:
        super().__init__(config)
        self.depth = config.depth

    def weight(self, mB: PreparedOperand) -> PreparedOperand:
        return mB

    def rows_of_weight(self, mB: PreparedOperand, batch: Any, column: Any, lane: Any) -> list:
        """Where the lane's words and its two scales of the first tile of K are, and the steps to the next."""
        tiles, groups = cute.size(mB.words, mode=[2]), cute.size(mB.words, mode=[3])
        columns = cute.size(mB.scales, mode=[0])
        found = []
        for g in range_constexpr(self.groups):
            at = cute.min(column * self.groups + g, groups - 1)  # what comes of columns beyond is not stored
            words = mB.words.iterator + (at * tiles * LANES + lane) * WORDS
            scales = mB.scales.iterator + (at * COLUMNS + lane % 4 * 2)
            found.append((words, scales, columns))
        return found

    def multiply(self, tiled_mma: cute.TiledMma, acc: cute.Tensor, rows: list, cols: list, k: Any) -> None:
        self.multiply_tiles(tiled_mma, acc, rows, cols, k, self.steps * STEP // DEPTH)

    @cute.jit
    def multiply_last(
        self, tiled_mma: cute.TiledMma, acc: cute.Tensor, rows: list, cols: list, k: Any, K: Any, lane: Any
    ) -> None:
        """One tile of the weight: none is beyond K."""
        self.multiply_tiles(tiled_mma, acc, rows, cols, k, 1)

    def multiply_tiles(
        self, tiled_mma: cute.TiledMma, acc: cute.Tensor, rows: list, cols: list, k: Any, tiles: int
    ) -> None:
        """``tiles`` of 128 elements from ``k`` on: all loads before the first instruction."""
        steps, groups, parts = tiles * WORDS, self.groups, tiles * DEPTH // self.depth
        rA, _ = self.fragments(steps)
        words = cute.make_rmem_tensor(cute.make_layout((WORDS, groups, tiles)), Int32)
        scales = cute.make_rmem_tensor(cute.make_layout((2, groups, parts)), cols[0][1].dtype)
        for tile in range_constexpr(tiles):
            for g in range_constexpr(groups):
                source = (cols[g][0] + (k // DEPTH + tile) * (LANES * WORDS)).align(16)
                cute.autovec_copy(cute.make_tensor(source, cute.make_layout(WORDS)), words[None, g, tile])
        for part in range_constexpr(parts):
            for g in range_constexpr(groups):
                _, first, columns = cols[g]
                source = (first + (k // self.depth + part) * columns).align(first.dtype.width // 4)
                cute.autovec_copy(cute.make_tensor(source, cute.make_layout(2)), scales[None, g, part])
        self.load_rows(rows, k, rA, steps)
        of_weight = cute.make_layout(
            ((2, 2), groups, (2, WORDS, tiles)), stride=((1, 2), WORDS * VECTOR, (4, VECTOR, groups * WORDS * VECTOR))
        )
        rB = cute.make_tensor(widened(words, self.config.a.dtype).iterator, of_weight)  # (MMA, MMA_N, MMA_K)
        for part in range_constexpr(parts):
            sums = cute.make_rmem_tensor(acc.shape, Float32)  # (MMA, MMA_M, MMA_N)
            sums.fill(0)
            for block in range_constexpr(part * self.depth // ROWS, (part + 1) * self.depth // ROWS):
                cute.gemm(tiled_mma, sums, rA[None, None, block], rB[None, None, block], sums)
            for g in range_constexpr(groups):
                for pair in range_constexpr(2):
                    scale = scales[pair, g, part].to(Float32)
                    for half in range_constexpr(2):
                        at = (pair, half), 0, g
                        acc[at] = acc[at] + sums[at] * scale
