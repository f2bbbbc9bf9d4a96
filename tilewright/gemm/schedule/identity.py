"""The identity threadblock swizzle of CUTLASS 2.x, number for number: a grid of tiles, and of parts of K.

The grid is three-dimensional: x and y say which output tile a block makes, z which part of K. Groups of ``2 **
log_tile`` columns of tiles are folded into x, so that blocks that start one after the other are close together in both
modes of the output, and share rows of A and columns of B in the L2 cache.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright import cute
from tilewright.errors import ArgumentError
from tilewright.gemm.schedule.streamk_blocks import ceil_div, positive, triple

WIDTHS = (1, 2, 4, 8)
LEAST_COLUMNS = ((3, 6), (2, 3), (1, 2))
"""(log_tile, columns of tiles from which on it is used)"""

CACHE_LINE = 128


@dataclass(frozen=True)
class GemmIdentityThreadblockSwizzle:
    """The tiles of a problem, ``tiled_shape`` (along M, along N, parts of K), and the grid of blocks that make them.

    ``n`` is the widest group of columns (CUTLASS's template argument N); it is 8 or less, and few columns take less.

    >>> swizzle = GemmIdentityThreadblockSwizzle.of((445, 398, 512), (256, 128, 64), n=4)
    >>> swizzle.tiled_shape, swizzle.log_tile, swizzle.grid
    ((2, 4, 1), 2, (8, 1, 1))
    >>> [swizzle.get_tile_offset(x, 0) for x in range(8)]
    [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (1, 2), (1, 3)]
    """

    tiled_shape: tuple[int, int, int]
    n: int = 1

    def __post_init__(self) -> None:
        if self.n not in WIDTHS:
            raise ArgumentError(f"n must be 1, 2, 4 or 8 columns of tiles, got {self.n!r}")

    @classmethod
    def of(
        cls, problem: tuple[int, int, int], tile: tuple[int, int, int], *, n: int = 1, split_k_slices: int = 1
    ) -> GemmIdentityThreadblockSwizzle:
        """The swizzle of an (M, N, K) problem in (bM, bN, bK) tiles; ArgumentError for what is not positive."""
        M, N, _ = triple("problem", problem, "(M, N, K)")
        bM, bN, _ = triple("tile", tile, "(bM, bN, bK)")
        return cls((ceil_div(M, bM), ceil_div(N, bN), positive("split_k_slices", split_k_slices)), n)

    @property
    def log_tile(self) -> int:
        """Log2 of the columns that are folded into the grid's x."""
        columns = self.tiled_shape[1]
        return next((log for log, least in LEAST_COLUMNS if self.n >= 1 << log and columns >= least), 0)

    @property
    def grid(self) -> tuple[int, int, int]:
        m, n, slices = self.tiled_shape
        return m << self.log_tile, ceil_div(n, 1 << self.log_tile), slices

    def get_tile_offset(self, x: Any, y: Any) -> tuple[Any, Any]:
        """(tile_m, tile_n) of block (x, y), for Python ints or run-time integers. Where the columns are not a multiple
        of the group, the last blocks have tiles beyond the matrix, and nothing to do."""
        return folded(x, y, 1 << self.log_tile)

    def get_tile_offset_from_shape(self, x: Any, y: Any) -> tuple[Any, Any]:
        """The same for kernels that fold all of ``n`` columns where the problem has as many tiles in both modes, and
        none otherwise."""
        m, n, _ = self.tiled_shape
        return folded(x, y, self.n) if min(m, n) >= self.n else (x, y)


def folded(x: Any, y: Any, width: Any) -> tuple[Any, Any]:
    """(tile_m, tile_n) of block (x, y) where ``width`` columns are folded into x."""
    return x // width, y * width + x % width


def gemm_k_size(k: int, slices: int, bits: tuple[int, int], k_majors: bool) -> int:
    """K elements of each part of a split K: in whole vectors of 128 bits, or in whole cache lines where both operands
    (of ``bits`` each) are contiguous along K (``k_majors``) and K itself is a multiple of them.

    >>> gemm_k_size(1000, 3, (16, 16), True), gemm_k_size(1024, 3, (16, 16), True)
    (336, 384)
    """
    lines = [8 * CACHE_LINE // width for width in bits]
    align = max(128 // width for width in bits)
    if k_majors and all(k % line == 0 for line in lines):
        align = max(align, *lines)
    return cute.ceil_div(cute.ceil_div(k, slices), align) * align
