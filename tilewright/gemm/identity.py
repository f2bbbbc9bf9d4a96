"""The identity threadblock swizzle: a two-dimensional grid of tiles, folded so that neighbours in the launch order
share operands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.errors import ArgumentError
from tilewright.gemm.streamk_blocks import ceil_div, positive, triple

WIDTHS = (1, 2, 4, 8)


@dataclass(frozen=True)
class IdentitySwizzle:
    """CUTLASS 2.x's ``GemmIdentityThreadblockSwizzle<width>``: strips of ``2**log_tile`` tiles along N are walked row
    by row, each strip as one row of the grid.

    >>> swizzle = IdentitySwizzle.of((512, 640, 64), (128, 128, 32), width=4)
    >>> swizzle.tiled_shape, swizzle.log_tile, swizzle.grid
    ((4, 5, 1), 2, (16, 2, 1))
    >>> [swizzle.get_tile_offset(x, 0) for x in range(6)]
    [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1)]

    The last strip may overhang: a block whose tile lies outside ``tiled_shape`` has nothing to do.
    """

    width: int  # the widest strip allowed
    tiled_shape: tuple[int, int, int]  # tiles along M and N; slices of K

    @classmethod
    def of(
        cls, problem: tuple[int, int, int], tile: tuple[int, int, int], *, width: int = 1, split_k_slices: int = 1
    ) -> IdentitySwizzle:
        """The swizzle of an (M, N, K) problem in (bM, bN, bK) tiles. Raises ArgumentError for a width that is not 1,
        2, 4 or 8, and for numbers that are not positive."""
        if width not in WIDTHS:
            raise ArgumentError(f"width must be one of {', '.join(map(str, WIDTHS))}, got {width!r}")
        m, n, _ = triple("problem", problem, "(M, N, K)")
        bM, bN, _ = triple("tile", tile, "(bM, bN, bK)")
        return cls(width, (ceil_div(m, bM), ceil_div(n, bN), positive("split_k_slices", split_k_slices)))

    @property
    def log_tile(self) -> int:
        """log2 of the strip's tiles: fewer than ``width`` where most of a strip would overhang."""
        tiles_n = self.tiled_shape[1]
        if self.width >= 8 and tiles_n >= 6:
            return 3
        if self.width >= 4 and tiles_n >= 3:
            return 2
        return 1 if self.width >= 2 and tiles_n >= 2 else 0

    @property
    def grid(self) -> tuple[int, int, int]:
        """Blocks along x, y and z."""
        tiles_m, tiles_n, slices = self.tiled_shape
        strip = 1 << self.log_tile
        return tiles_m * strip, ceil_div(tiles_n, strip), slices

    def get_tile_offset(self, x: Any, y: Any) -> tuple[Any, Any]:
        """(tile_m, tile_n) of the block at (x, y) of the grid; Python ints or run-time integers."""
        return _fold(x, y, 1 << self.log_tile)

    def get_tile_offset_from_shape(self, x: Any, y: Any) -> tuple[Any, Any]:
        """The older of upstream's two maps: strips of ``width`` tiles, or none in a small matrix. It agrees with
        ``grid`` where ``2**log_tile`` is that number."""
        small = min(self.tiled_shape[:2]) < self.width
        return _fold(x, y, 1 if small else self.width)


def _fold(x: Any, y: Any, strip: int) -> tuple[Any, Any]:
    return x // strip, y * strip + x % strip
