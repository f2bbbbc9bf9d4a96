"""Which output tile a thread block computes: an order in which blocks that run together share operands in L2.

A raster maps a linear index to a tile, ``tile(index, tiles_m, tiles_n) -> (tile_m, tile_n)``, for Python ints (a
picture, a test) and for run-time integers (a kernel). Each of the ``tiles_m * tiles_n`` tiles has one index.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from tilewright import Int32, cute
from tilewright.gemm.config import AnyConfig
from tilewright.gemm.schedule.identity import LEAST_COLUMNS
from tilewright.lang.numbers.fast_divmod import FastDivmodDivisor
from tilewright.lang.tensors.select import select


class Raster(Protocol):
    """An order of tiles."""

    def tile(self, index: Any, tiles_m: Any, tiles_n: Any) -> tuple[Any, Any]:
        """(tile_m, tile_n) of linear block ``index`` among ``tiles_m * tiles_n``."""
        ...

    def prepared(self, tiles_m: Any, tiles_n: Any) -> Raster:
        """The same order of ``tiles_m * tiles_n`` tiles, with what the host can compute once for all blocks."""
        ...


@dataclass(frozen=True)
class GroupedRaster:
    """The tiles in bands of ``group`` along M, column by column inside a band; or, with ``along`` = "n", in bands
    of ``group`` along N, row by row.

    The last band may be thinner. With ``group`` = 1 a band along M is a row of tiles.

    >>> [GroupedRaster(2).tile(index, 3, 2) for index in range(6)]
    [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (2, 1)]
    >>> [GroupedRaster(2, "n").tile(index, 2, 3) for index in range(6)]
    [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (1, 2)]
    """

    group: int
    along: str = "m"

    def tile(self, index: Any, tiles_m: Any, tiles_n: Any) -> tuple[Any, Any]:
        """(tile_m, tile_n) of linear block ``index`` among ``tiles_m * tiles_n``."""
        if self.along == "n":
            n, m = self._tile(index, tiles_n, tiles_m)
            return m, n
        return self._tile(index, tiles_m, tiles_n)

    def _tile(self, index: Any, grouped: Any, crossed: Any) -> tuple[Any, Any]:
        """(tile along the grouped mode, tile along the other)"""
        per_band = self.group * crossed
        band = index // per_band
        first = band * self.group
        # Tiles of a band have ids that go down its columns: blocks of one column share B, those of one row A.
        height = cute.min(grouped - first, self.group)
        inside = index - band * per_band
        return first + inside % height, inside // height

    def prepared(self, tiles_m: Any, tiles_n: Any) -> Raster:
        grouped, crossed = (tiles_n, tiles_m) if self.along == "n" else (tiles_m, tiles_n)
        last = cute.max(grouped % self.group, 1)
        return PreparedRaster(self, FastDivmodDivisor(self.group * crossed), FastDivmodDivisor(last))


@dataclass(frozen=True)
class PreparedRaster:
    """A :class:`GroupedRaster` of one problem, in a kernel without divisions: a division of integers takes about 100
    cycles, and a block of a small product begins with three of them, one after the other. A band is ``group`` tiles
    high, the last one as many as are left over."""

    raster: GroupedRaster
    per_band: FastDivmodDivisor
    last: FastDivmodDivisor

    def tile(self, index: Any, tiles_m: Any, tiles_n: Any) -> tuple[Any, Any]:
        """As :meth:`GroupedRaster.tile` of the numbers of tiles that it was prepared for."""
        if self.raster.along == "n":
            n, m = self._tile(index, tiles_n)
            return m, n
        return self._tile(index, tiles_m)

    def _tile(self, index: Any, grouped: Any) -> tuple[Any, Any]:
        band, inside = divmod(index, self.per_band)
        first = band * self.raster.group
        # Two fixed divisors in place of one that the band decides about.
        whole = first + self.raster.group <= grouped
        height = select(whole, self.raster.group, self.last.divisor)
        across = select(whole, inside // self.raster.group, inside // self.last)
        return first + inside - across * height, across

    def prepared(self, tiles_m: Any, tiles_n: Any) -> Raster:
        return self


@dataclass(frozen=True)
class HilbertRaster:
    """Follow the Hilbert curve through the smallest square of a power of two that holds the matrix, and leave out the
    tiles beyond it: any run of tiles is compact, whatever the number of blocks that run at once.

    The tile is found from the top down. The curve visits the four quadrants of a square one after the other, and how
    many tiles of the matrix a quadrant has is a product of two extents, so the index says which quadrant it is in and
    which number it has there. This takes about 40 integer instructions for each doubling of the matrix, in a loop: less
    than a k tile takes, and as much time as it would take to read a table from memory, which the host would have to
    compute, copy and keep for each number of tiles.

    >>> [HilbertRaster().tile(index, 2, 3) for index in range(6)]
    [(0, 0), (1, 0), (1, 1), (0, 1), (0, 2), (1, 2)]
    """

    def tile(self, index: Any, tiles_m: Any, tiles_n: Any) -> tuple[Any, Any]:
        """(tile_m, tile_n) of linear block ``index`` among ``tiles_m * tiles_n``."""
        if all(isinstance(number, int) for number in (index, tiles_m, tiles_n)):
            half, at = half_square(tiles_m, tiles_n), (index, 0, 0, 0, 0)
            while half:
                at = quadrant(half, tiles_m, tiles_n, *at)
                half //= 2
            return at[1], at[2]
        return self._tile(index, tiles_m, tiles_n)

    def prepared(self, tiles_m: Any, tiles_n: Any) -> Raster:
        return self

    @cute.jit
    def _tile(self, index: Any, tiles_m: Any, tiles_n: Any) -> tuple[Any, Any]:
        half = Int32(1)
        longest = cute.max(tiles_m, tiles_n)
        while half < longest:
            half = half * 2
        half = half // 2
        index = Int32(index)
        m, n, turned, flipped = Int32(0), Int32(0), Int32(0), Int32(0)
        while half > 0:
            index, m, n, turned, flipped = quadrant(half, tiles_m, tiles_n, index, m, n, turned, flipped)
            half = half // 2
        return m, n


def half_square(tiles_m: int, tiles_n: int) -> int:
    """Half the side of the smallest square of a power of two that holds the tiles; 0 for a single tile."""
    return (1 << (max(tiles_m, tiles_n) - 1).bit_length()) // 2


def quadrant(
    half: Any, tiles_m: Any, tiles_n: Any, index: Any, m: Any, n: Any, turned: Any, flipped: Any
) -> tuple[Any, Any, Any, Any, Any]:
    """From the square with corner (m, n) and side 2 * ``half`` to the quadrant that has its tile number ``index``.

    The curve goes through quadrants (0, 0), (0, 1), (1, 1), (1, 0) of a square; where it is ``turned``, rows and
    columns change places; where it is ``flipped``, both are counted from the other end. Inside the first quadrant it
    is turned once more, inside the last turned and flipped. Tiles outside of the matrix are skipped.
    """
    upper, left = cute.min(tiles_m - m, half), cute.min(tiles_n - n, half)
    lower, right = cute.min(tiles_m - m, 2 * half) - upper, cute.min(tiles_n - n, 2 * half) - left
    is_turned, is_flipped = turned != 0, flipped != 0
    near_m, far_m = select(is_flipped, lower, upper), select(is_flipped, upper, lower)
    near_n, far_n = select(is_flipped, right, left), select(is_flipped, left, right)
    # Where the second, third and fourth quadrant begin.
    second = near_m * near_n
    third = second + select(is_turned, far_m * near_n, near_m * far_n)
    fourth = third + far_m * far_n
    in_second, in_third, in_fourth = (select(index >= begin, 1, 0) for begin in (second, third, fourth))
    row, column = in_third, in_second - in_fourth
    begin = select(index >= fourth, fourth, select(index >= third, third, select(index >= second, second, 0)))
    down, across = select(is_turned, column, row) ^ flipped, select(is_turned, row, column) ^ flipped
    return index - begin, m + down * half, n + across * half, turned ^ column ^ 1, flipped ^ in_fourth


@dataclass(frozen=True)
class IdentityRaster:
    """The order of ``GemmIdentityThreadblockSwizzle`` (``identity.py``), without the blocks that find no tile: groups
    of ``2 ** log_tile`` columns, as many as the problem has columns for, at most ``n``.

    >>> [IdentityRaster(4).tile(index, 2, 3) for index in range(6)]
    [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    """

    n: int = 8

    def tile(self, index: Any, tiles_m: Any, tiles_n: Any) -> tuple[Any, Any]:
        """(tile_m, tile_n) of linear block ``index`` among ``tiles_m * tiles_n``."""
        width: Any = 1
        for log, least in reversed(LEAST_COLUMNS):
            if 1 << log <= self.n:
                width = select(tiles_n >= least, 1 << log, width)
        return GroupedRaster(width, "n").tile(index, tiles_m, tiles_n)

    def prepared(self, tiles_m: Any, tiles_n: Any) -> Raster:
        return self


def raster_of(config: AnyConfig) -> Raster:
    """The raster that a kernel's configuration names."""
    if config.raster == "identity":
        return IdentityRaster(config.group)
    return HilbertRaster() if config.raster == "hilbert" else GroupedRaster(config.group, config.raster)
