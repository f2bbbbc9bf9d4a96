"""The persistent schedule of CUTLASS for Hopper (``PersistentTileSchedulerSm90``), number for number; knows no GPU.

The grid has as many blocks as run at once. Each block works on one tile after another; consecutive clusters take
consecutive clusters of tiles, in strips of ``2 ** log_swizzle_size`` along one mode of the problem, which lets them
share operands in the L2 cache. Extents are rounded up to whole strips of clusters, so that tiles outside the problem
are handed out, too; predicates leave their elements out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tilewright.errors import ConstraintError

SM_PER_GPC = 18  # the most multiprocessors of one GPU processing cluster, to which a cluster of blocks is bound
SWIZZLES = ((3, 8, 6), (2, 4, 3), (1, 2, 2))  # (log2, least max_swizzle_size, least CTA tiles along both modes)


def check_problem(
    problem_mnl: tuple[int, int, int], cta_tile_mn: tuple[int, int], cluster_mn: tuple[int, int], raster_order: str
) -> None:
    """ConstraintError for extents that are not positive, and for an order that CUTLASS does not have."""
    if raster_order not in ("Heuristic", "AlongM", "AlongN"):
        raise ConstraintError(f"raster_order is {raster_order!r}; it is Heuristic, AlongM or AlongN")
    for what, values in (("problem", problem_mnl), ("CTA tile", cta_tile_mn), ("cluster", cluster_mn)):
        if any(not isinstance(v, int) or v < 1 for v in values):
            raise ConstraintError(f"the {what} {values} must have Python ints of at least 1")


@dataclass(frozen=True)
class ClusteredTiles:
    """A problem of ``tiles_mnl`` tiles of a block, in whole clusters of ``cluster_mn`` blocks."""

    tiles_mnl: tuple[int, int, int]
    cluster_mn: tuple[int, int]

    @property
    def clusters_mnl(self) -> tuple[int, int, int]:
        """The problem in clusters of tiles."""
        (m, n, batch), (a, b) = self.tiles_mnl, self.cluster_mn
        return m // a, n // b, batch


@dataclass(frozen=True)
class PersistentScheduleSm90(ClusteredTiles):
    """``tiles_mnl``: CTA tiles of the problem, rounded up. ``along_n``: consecutive clusters go along N, else along M.

    >>> schedule = PersistentScheduleSm90.create((1024, 512, 1), (128, 128), (2, 1), max_swizzle_size=2)
    >>> schedule.tiles_mnl, schedule.along_n, schedule.log_swizzle_size
    ((8, 4, 1), True, 1)
    >>> grid = schedule.grid_shape(sm_count=8)
    >>> grid, list(schedule.work((1, 2), grid))[:3]
    ((2, 4, 1), [(1, 1, 0), (1, 3, 0), (5, 1, 0)])
    """

    log_swizzle_size: int
    along_n: bool

    @staticmethod
    def create(
        problem_mnl: tuple[int, int, int],
        cta_tile_mn: tuple[int, int],
        cluster_mn: tuple[int, int] = (1, 1),
        max_swizzle_size: int = 1,
        raster_order: str = "Heuristic",
    ) -> PersistentScheduleSm90:
        """``raster_order``: ``AlongM``, ``AlongN``, or ``Heuristic``: along M where the problem is wider than high."""
        check_problem(problem_mnl, cta_tile_mn, cluster_mn, raster_order)
        tiles = [
            _round_up(_ceil_div(p, t), c) for p, t, c in zip(problem_mnl[:2], cta_tile_mn, cluster_mn, strict=True)
        ]
        log = next((n for n, most, least in SWIZZLES if max_swizzle_size >= most and min(tiles) >= least), 0)
        m, n = (_round_up(t, c << log) for t, c in zip(tiles, cluster_mn, strict=True))
        along_n = raster_order == "AlongN" or (raster_order == "Heuristic" and n <= m)
        return PersistentScheduleSm90((m, n, problem_mnl[2]), cluster_mn, log, along_n)

    @property
    def blocks_per_problem(self) -> int:
        """CTA tiles that are handed out."""
        m, n, batch = self.tiles_mnl
        return m * n * batch

    def grid_shape(
        self, sm_count: int, max_active_clusters: int = 0, truncate_by_problem_size: bool = True
    ) -> tuple[int, int, int]:
        """The grid to launch: as many clusters as run at once, and no more than have work.

        ``max_active_clusters``: how many clusters of several blocks do (the driver's answer); 0: derived from
        ``sm_count``. ``truncate_by_problem_size`` off: as many as run at once, whatever work there is.
        """
        a, b = self.cluster_mn
        size = a * b
        if size == 1:
            ctas = sm_count
        elif 0 < max_active_clusters * size <= sm_count:
            ctas = max_active_clusters * size
        else:
            ctas = most_resident(sm_count, size)
        if truncate_by_problem_size:
            ctas = min(ctas, self.blocks_per_problem)
        return (a, ctas // a, 1) if self.along_n else (ctas // b, b, 1)

    def tile(self, linear: Any, cta_in_cluster: Any) -> tuple[Any, Any, Any]:
        """(m, n, l) of the ``linear``-th tile in the order of handing out, for the block at ``cta_in_cluster`` (m, n)
        of its cluster. Python ints, or a kernel's integers."""
        (a, b), (m, n, _), log = self.cluster_mn, self.tiles_mnl, self.log_swizzle_size
        major, minor = (b, a) if self.along_n else (a, b)
        rows = (n if self.along_n else m) // major
        batch, rest = linear // (m * n), linear % (m * n)
        block = rest // minor
        cluster, within = block // major, block % major
        strip, place = cluster >> log, cluster & ((1 << log) - 1)
        i = ((strip // rows << log) + place) * minor + cta_in_cluster[0 if self.along_n else 1]
        j = strip % rows * major + within
        return (i, j, batch) if self.along_n else (j, i, batch)

    def work(self, block_idx: tuple[int, int], grid: tuple[int, int, int]) -> Iterator[tuple[int, int, int]]:
        """The tiles (m, n, l) that the block (x, y) of ``grid`` works on, in order."""
        (x, y), (gx, gy, _) = block_idx, grid
        a, b = self.cluster_mn
        first = x + y * gx if self.along_n else x * gy + y
        for linear in range(first, self.blocks_per_problem, gx * gy):
            yield self.tile(linear, (x % a, y % b))


def most_resident(sm_count: int, cluster_size: int) -> int:
    """Blocks in clusters of ``cluster_size`` that run at once, one a multiprocessor, as far as ``sm_count`` tells.

    >>> most_resident(132, 2), most_resident(132, 4), most_resident(10, 4)
    (132, 116, 10)
    """
    groups, rest = (1, 0) if sm_count < SM_PER_GPC else divmod(sm_count, SM_PER_GPC)
    clusters = groups * (SM_PER_GPC - SM_PER_GPC % cluster_size) + rest - rest % cluster_size
    return min(clusters, sm_count)


def _ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def _round_up(a: int, b: int) -> int:
    return _ceil_div(a, b) * b
