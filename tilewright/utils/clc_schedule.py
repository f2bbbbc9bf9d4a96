"""The tile schedule of CUTLASS for sm_100 (``PersistentTileSchedulerSm100``), number for number; knows no GPU.

The grid has one block for each tile. A cluster that is done cancels another one that has not begun (cluster launch
control) and takes its tile; which one runs when is up to the device. Here is which tile belongs to which block.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tilewright.utils.persistent_schedule import ClusteredTiles, check_problem

GRID_Y = 65535
"""The largest grid along y."""


@dataclass(frozen=True)
class PersistentScheduleSm100(ClusteredTiles):
    """``tiles_mnl``: tiles of a block, in whole clusters. ``along_n``: grid.x goes along N, else along M.
    ``swizzle``: clusters are taken in strips of this number; 0: no strips.

    >>> schedule = PersistentScheduleSm100.create((379, 1280, 2), (128, 256), (2, 1), 2, "AlongN")
    >>> schedule.tiles_mnl, schedule.grid_shape()
    ((4, 5, 2), (10, 2, 2))
    >>> [schedule.tile((x, 0, 0)) for x in (0, 1, 2, 4)]
    [(0, 0, 0), (1, 0, 0), (2, 0, 0), (0, 1, 0)]
    """

    swizzle: int
    along_n: bool

    @staticmethod
    def create(
        problem_mnl: tuple[int, int, int],
        cta_tile_mn: tuple[int, int],
        cluster_mn: tuple[int, int] = (1, 1),
        max_swizzle_size: int = 1,
        raster_order: str = "Heuristic",
    ) -> PersistentScheduleSm100:
        """``cta_tile_mn``: the tile of one block, half of the MMA's M where two blocks work on it.

        ``raster_order``: ``AlongM``, ``AlongN``, or ``Heuristic``: along M where the problem has more clusters along N,
        or where a grid along N would be too large.
        """
        check_problem(problem_mnl, cta_tile_mn, cluster_mn, raster_order)
        m, n = (-(-p // (t * c)) for p, t, c in zip(problem_mnl[:2], cta_tile_mn, cluster_mn, strict=True))  # clusters
        along_n = raster_order == "AlongN" or raster_order == "Heuristic" and n <= m and m * cluster_mn[1] <= GRID_Y
        tiles = (m * cluster_mn[0], n * cluster_mn[1], problem_mnl[2])
        return PersistentScheduleSm100(tiles, cluster_mn, max_swizzle_size if max_swizzle_size > 1 else 0, along_n)

    def grid_shape(self) -> tuple[int, int, int]:
        """The grid to launch: a block for each tile; along N, clusters along N are along x."""
        (m, n, batch), (a, b) = self.clusters_mnl, self.cluster_mn
        return (n * a, m * b, batch) if self.along_n else (m * a, n * b, batch)

    def tile(self, block_idx: tuple[int, int, int]) -> tuple[int, int, int]:
        """(m, n, l) of the tile of a block (x, y, z)."""
        x, y, batch = block_idx
        a, b = self.cluster_mn
        i, j = self._swizzled(x // a, y // b)
        if self.along_n:
            i, j = j, i
        return i * a + x % a, j * b + y % b, batch

    def blocks(self) -> Iterator[tuple[int, int, int]]:
        """The tiles of all blocks in order of their numbers, x fastest."""
        gx, gy, gz = self.grid_shape()
        for z in range(gz):
            for y in range(gy):
                for x in range(gx):
                    yield self.tile((x, y, z))

    def _swizzled(self, x: int, y: int) -> tuple[int, int]:
        """Strips of ``swizzle`` rows of clusters are walked by columns, in the part of the grid that divides."""
        if not self.swizzle:
            return x, y
        s, (m, n, _) = self.swizzle, self.clusters_mnl
        columns, rows = (n, m) if self.along_n else (m, n)
        width = columns // s * s
        if x >= width or y >= rows // s * s:
            return x, y
        at = x + width * (y % s)
        return at // s, y // s * s + at % s
