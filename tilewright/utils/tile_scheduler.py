"""Persistent tile schedulers: a grid that fills the GPU once, whose clusters take one tile after another.

The tiles of a problem are an (m, n, l) box. Clusters of blocks take boxes of tiles of the cluster's shape; the blocks
of a cluster always work together, so where the cluster's shape does not divide the problem's, some blocks are given
tiles outside it, whose elements the kernel's predicates leave out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.errors import ConstraintError
from tilewright.ir.core import Value
from tilewright.lang.numbers.facts import Facts
from tilewright.lang.numbers.numeric import Int32, wrap
from tilewright.lang.tensors.select import min as least


@dataclass(frozen=True)
class WorkTileInfo:
    """``tile_idx``: (m, n, l) of a tile, in blocks. ``is_valid_tile``: false once all tiles have been handed out."""

    tile_idx: Any
    is_valid_tile: Any


@dataclass(frozen=True)
class PersistentTileSchedulerParams:
    """The problem to schedule: ``problem_shape_ntile_mnl`` tiles, in clusters of ``cluster_shape_mnk`` blocks (k is 1).

    Clusters go along M first; with ``raster_along_m`` off, along N first. ``swizzle_size``: how many
    neighbouring columns (rows, when along N) of clusters are taken together, so that they share operands in the L2
    cache.
    """

    problem_shape_ntile_mnl: Any
    cluster_shape_mnk: Any = (1, 1, 1)
    swizzle_size: int = 1
    raster_along_m: bool = True

    def __post_init__(self) -> None:
        problem, cluster = tuple(self.problem_shape_ntile_mnl), tuple(self.cluster_shape_mnk)
        if len(problem) != 3:
            raise ConstraintError(f"PersistentTileSchedulerParams: {problem} is not a shape (m, n, l) of tiles")
        cluster += (1,) * (3 - len(cluster))
        if not all(isinstance(c, int) and c > 0 for c in cluster) or len(cluster) != 3 or cluster[2] != 1:
            raise ConstraintError(
                f"PersistentTileSchedulerParams: {cluster} is not a cluster shape of Python ints (m, n, 1)"
            )
        if not isinstance(self.swizzle_size, int) or self.swizzle_size < 1:
            raise ConstraintError(f"PersistentTileSchedulerParams: swizzle_size={self.swizzle_size!r}; at least 1")
        object.__setattr__(self, "problem_shape_ntile_mnl", problem)
        object.__setattr__(self, "cluster_shape_mnk", cluster)

    @property
    def cluster_shape_mn(self) -> tuple[int, int]:
        return self.cluster_shape_mnk[0], self.cluster_shape_mnk[1]

    @property
    def problem_shape_ncluster_mnl(self) -> tuple[Any, Any, Any]:
        """The problem in clusters."""
        m, n, batch = self.problem_shape_ntile_mnl
        a, b = self.cluster_shape_mn
        return (m + (a - 1)) // a, (n + (b - 1)) // b, batch

    def get_grid_shape(self, max_active_clusters: Any, *, loc: Any = None, ip: Any = None) -> tuple[Any, Any, Any]:
        """The grid of a persistent kernel: (cluster m, cluster n, clusters), as many as run at once and have work."""
        m, n, batch = self.problem_shape_ncluster_mnl
        return (*self.cluster_shape_mn, least(m * n * batch, max_active_clusters))

    def cluster_coord(self, linear: Any) -> tuple[Any, Any, Any]:
        """(m, n, l) of the ``linear``-th cluster of tiles."""
        m, n, _ = self.problem_shape_ncluster_mnl
        fast, slow = (m, n) if self.raster_along_m else (n, m)
        batch, within = linear // (m * n), linear % (m * n)
        if self.swizzle_size == 1:
            a, b = within % fast, within // fast
        else:  # bands of swizzle_size; the last one holds what is left
            band, rest = within // (fast * self.swizzle_size), within % (fast * self.swizzle_size)
            width = least(slow - band * self.swizzle_size, self.swizzle_size)
            a, b = rest // width, band * self.swizzle_size + rest % width
        return (a, b, batch) if self.raster_along_m else (b, a, batch)


class StaticPersistentTileScheduler:
    """Cluster c of P takes the clusters of tiles c, c + P, c + 2 P, ... Passes through run-time loops:

    scheduler = StaticPersistentTileScheduler.create(params, cute.arch.block_idx(), cute.arch.grid_dim())
    work = scheduler.initial_work_tile_info()
    while work.is_valid_tile:
        ...
        scheduler.advance_to_next_work()
        work = scheduler.get_current_work()

    >>> import tilewright as cutlass
    >>> from tilewright import utils
    >>> @cute.jit
    ... def tiles_of_block(t):
    ...     params = utils.PersistentTileSchedulerParams((3, 3, 1), (1, 1, 1))  # 3 x 3 tiles, no clusters
    ...     scheduler = utils.StaticPersistentTileScheduler.create(params, (0, 0, cute.arch.block_idx()[0]), (1, 1, 4))
    ...     work = scheduler.initial_work_tile_info()
    ...     count = cutlass.Int32(0)
    ...     while work.is_valid_tile:
    ...         count += 1
    ...         scheduler.advance_to_next_work()
    ...         work = scheduler.get_current_work()
    ...     return count
    >>> per_thread(tiles_of_block, 1, blocks=4)
    [3, 2, 2, 2]
    """

    __slots__ = ("_executed", "_linear", "cta_id_in_cluster", "num_persistent_clusters", "params")

    def __init__(
        self,
        params: PersistentTileSchedulerParams,
        num_persistent_clusters: Any,
        current_work_linear_idx: Any,
        cta_id_in_cluster: Any,
        num_tiles_executed: Any = 0,
    ) -> None:
        self.params, self.num_persistent_clusters = params, num_persistent_clusters
        self.cta_id_in_cluster = cta_id_in_cluster
        self._linear: Any = Int32(current_work_linear_idx)
        self._executed: Any = Int32(num_tiles_executed)

    @staticmethod
    def create(
        params: PersistentTileSchedulerParams, block_idx: Any, grid_dim: Any, *, loc: Any = None, ip: Any = None
    ) -> StaticPersistentTileScheduler:
        """The scheduler of this block, in a grid of :meth:`get_grid_shape`."""
        a, b = params.cluster_shape_mn
        x, y, z = block_idx
        return StaticPersistentTileScheduler(params, grid_dim[2], z, (x % a, y % b, 0))

    @staticmethod
    def get_grid_shape(
        params: PersistentTileSchedulerParams, max_active_clusters: Any, *, loc: Any = None, ip: Any = None
    ) -> tuple[Any, ...]:
        """The grid to launch. ``max_active_clusters``: how many clusters run at once on the GPU."""
        return params.get_grid_shape(max_active_clusters)

    def get_current_work(self, *, loc: Any = None, ip: Any = None) -> WorkTileInfo:
        """The tile that is this block's turn."""
        m, n, batch = self.params.problem_shape_ncluster_mnl
        x, y, z = self.params.cluster_coord(self._linear)
        (a, b), (i, j, _) = self.params.cluster_shape_mn, self.cta_id_in_cluster
        return WorkTileInfo((Int32(x * a + i), Int32(y * b + j), Int32(z)), self._linear < m * n * batch)

    def initial_work_tile_info(self, *, loc: Any = None, ip: Any = None) -> WorkTileInfo:
        """The first tile of this block."""
        return self.get_current_work()

    def advance_to_next_work(self, *, advance_count: int = 1, loc: Any = None, ip: Any = None) -> None:
        """Go to the next tile of this block, or to the ``advance_count``-th."""
        self._linear = self._linear + advance_count * self.num_persistent_clusters
        self._executed = self._executed + 1

    @property
    def num_tiles_executed(self) -> Any:
        """Calls of :meth:`advance_to_next_work`."""
        return self._executed

    def __extract_mlir_values__(self) -> list[Value]:
        return [self._linear.ir_value(), self._executed.ir_value()]

    def __new_from_mlir_values__(self, values: list[Value]) -> StaticPersistentTileScheduler:
        linear, executed = (wrap(v, Facts(True)) for v in values)
        return StaticPersistentTileScheduler(
            self.params, self.num_persistent_clusters, linear, self.cta_id_in_cluster, executed
        )
