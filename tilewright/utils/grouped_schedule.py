"""Tiles of a grouped GEMM: one launch computes many products of different shapes.

The tile scheduler hands out clusters of tiles by a linear number z that counts through all groups; a search finds the
group that z falls into and the tile within it. Shapes are rows (M, N, K, L) of a tensor in global memory, so that the
host need not know them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.errors import ConstraintError
from tilewright.ir.core import Value
from tilewright.lang.launch.jit import jit
from tilewright.lang.numbers.numeric import Boolean, Int32, wrap
from tilewright.lang.tensors.select import select
from tilewright.lang.tensors.tensor import Tensor
from tilewright.utils.tile_scheduler import PersistentTileSchedulerParams, StaticPersistentTileScheduler


@dataclass(frozen=True)
class GroupSearchResult:
    """A tile of a group: the group's number, the tile's place along M and N, the group's (M, N, K), and how many tiles
    it has along K."""

    group_idx: Any
    cta_tile_idx_m: Any
    cta_tile_idx_n: Any
    problem_shape_m: Any
    problem_shape_n: Any
    problem_shape_k: Any
    cta_tile_count_k: Any


@dataclass
class GroupedGemmGroupSearchState:
    """Where the search goes on: at ``start_group_idx``, after ``tile_count_prev_group`` clusters of tiles of earlier
    groups. ``tile_count_searched`` counts those up to and with the group that was found."""

    start_group_idx: Any
    tile_count_prev_group: Any
    tile_count_searched: Any
    found: Any = False


def create_initial_search_state(*, loc: Any = None, ip: Any = None) -> GroupedGemmGroupSearchState:
    """The state before the first search."""
    return GroupedGemmGroupSearchState(Int32(0), Int32(0), Int32(0), Boolean(False))


class GroupedGemmTileSchedulerHelper:
    """Finds the group and the tile of a linear index that a ``StaticPersistentTileScheduler`` assigns.

    The scheduler's problem is one cluster along M and N and the total of clusters along L:
    ``PersistentTileSchedulerParams((cluster_m, cluster_n, total), (cluster_m, cluster_n, 1))``.
    ``cluster_tile_shape_mnk`` are the elements that a cluster computes at once. Searches go on where the last one
    ended; the helper is carried through run-time loops.
    """

    def __init__(
        self,
        group_count: Any,
        tile_sched_params: PersistentTileSchedulerParams,
        cluster_tile_shape_mnk: tuple[int, int, int],
        search_state: GroupedGemmGroupSearchState,
    ) -> None:
        if len(cluster_tile_shape_mnk) != 3:
            raise ConstraintError(f"the tile of a cluster is (M, N, K), not {cluster_tile_shape_mnk}")
        self.group_count, self.tile_sched_params = group_count, tile_sched_params
        self.cluster_tile_shape_mnk = tuple(cluster_tile_shape_mnk)
        self.search_state = search_state

    def delinearize_z(
        self, cta_tile_coord: Any, problem_shape_mnkl: Tensor, *, loc: Any = None, ip: Any = None
    ) -> GroupSearchResult:
        """The group and the tile of ``cta_tile_coord``, a ``tile_idx`` of the tile scheduler.

        ``problem_shape_mnkl``: (groups, 4) in global memory. A number past the last group gives the last group.
        """
        x, y, z = cta_tile_coord
        self._search(z, problem_shape_mnkl)
        group, within = self.search_state.start_group_idx, z - self.search_state.tile_count_prev_group
        m, n, k = (Int32(problem_shape_mnkl[group, i]) for i in range(3))
        tile_m, _, tile_k = self.cluster_tile_shape_mnk
        clusters_m = (m + (tile_m - 1)) // tile_m
        a, b = self.tile_sched_params.cluster_shape_mn
        along_m, along_n = within % clusters_m * a + x, within // clusters_m * b + y
        return GroupSearchResult(group, Int32(along_m), Int32(along_n), m, n, k, (k + (tile_k - 1)) // tile_k)

    def search_cluster_tile_count_k(
        self, cta_tile_coord: Any, problem_shape_mnkl: Tensor, *, loc: Any = None, ip: Any = None
    ) -> tuple[Any, Any]:
        """(tiles along K, group) of ``cta_tile_coord``, for warps that need no more."""
        self._search(cta_tile_coord[2], problem_shape_mnkl)
        group, tile_k = self.search_state.start_group_idx, self.cluster_tile_shape_mnk[2]
        return (Int32(problem_shape_mnkl[group, 2]) + (tile_k - 1)) // tile_k, group

    def _search(self, linear: Any, problems: Tensor) -> None:
        state = self.search_state
        ahead = Boolean(linear >= state.tile_count_prev_group)  # else the search begins again
        first, before = select(ahead, state.start_group_idx, 0), select(ahead, state.tile_count_prev_group, 0)
        tile = self.cluster_tile_shape_mnk[:2]
        group, before, count = _group_of(Int32(linear), Int32(first), Int32(before), self.group_count, problems, tile)
        self.search_state = GroupedGemmGroupSearchState(group, before, before + count, linear < before + count)

    def __extract_mlir_values__(self) -> list[Value]:
        state = self.search_state
        numbers = (state.start_group_idx, state.tile_count_prev_group, state.tile_count_searched)
        return [*(Int32(n).ir_value() for n in numbers), Boolean(state.found).ir_value()]

    def __new_from_mlir_values__(self, values: list[Value]) -> GroupedGemmTileSchedulerHelper:
        state = GroupedGemmGroupSearchState(*map(wrap, values))
        m, n, k = self.cluster_tile_shape_mnk
        return GroupedGemmTileSchedulerHelper(self.group_count, self.tile_sched_params, (m, n, k), state)


@jit
def _group_of(linear: Any, group: Any, before: Any, groups: Any, problems: Any, tile: Any) -> Any:
    """(group, clusters before it, clusters in it) of cluster ``linear``, from ``group`` on; the last group for numbers
    past the end."""
    count = _clusters(problems, group, tile)
    while linear >= before + count and group + 1 < groups:
        before += count
        group += 1
        count = _clusters(problems, group, tile)
    return group, before, count


def _clusters(problems: Any, group: Any, tile: Any) -> Any:
    m, n = Int32(problems[group, 0]), Int32(problems[group, 1])
    return ((m + (tile[0] - 1)) // tile[0]) * ((n + (tile[1] - 1)) // tile[1])


@dataclass(frozen=True)
class GroupedWorkTileInfo:
    """A tile of a group (``group_search_result``); ``is_valid_tile`` is false once all groups' tiles are handed out."""

    tile_idx: Any
    is_valid_tile: Any
    group_search_result: GroupSearchResult


class StaticPersistentGroupTileScheduler(StaticPersistentTileScheduler):
    """A ``StaticPersistentTileScheduler`` over the tiles of a grouped GEMM, whose work tiles name their group.

    The total of clusters in ``params`` may be a bound from above: numbers past the last tile are not valid tiles.
    """

    __slots__ = ("helper", "problem_shape_mnkl")

    def __init__(
        self,
        params: PersistentTileSchedulerParams,
        num_persistent_clusters: Any,
        current_work_linear_idx: Any,
        cta_id_in_cluster: Any,
        num_tiles_executed: Any,
        helper: GroupedGemmTileSchedulerHelper,
        problem_shape_mnkl: Tensor,
    ) -> None:
        super().__init__(
            params, num_persistent_clusters, current_work_linear_idx, cta_id_in_cluster, num_tiles_executed
        )
        self.helper, self.problem_shape_mnkl = helper, problem_shape_mnkl

    @staticmethod
    def create(  # type: ignore[override]  # other parameters, as documented
        params: PersistentTileSchedulerParams,
        block_idx: Any,
        grid_dim: Any,
        cluster_tile_shape_mnk: tuple[int, int, int],
        initial_search_state: GroupedGemmGroupSearchState,
        group_count: Any,
        problem_shape_mnkl: Tensor,
        *,
        loc: Any = None,
        ip: Any = None,
    ) -> StaticPersistentGroupTileScheduler:
        """The scheduler of this block, in a grid of ``get_grid_shape``; the last arguments are those of
        :class:`GroupedGemmTileSchedulerHelper`."""
        helper = GroupedGemmTileSchedulerHelper(group_count, params, cluster_tile_shape_mnk, initial_search_state)
        a, b = params.cluster_shape_mn
        x, y, z = block_idx
        return StaticPersistentGroupTileScheduler(
            params, grid_dim[2], z, (x % a, y % b, 0), 0, helper, problem_shape_mnkl
        )

    def get_current_work(  # type: ignore[override]  # another kind of tile, as documented
        self, *, loc: Any = None, ip: Any = None
    ) -> GroupedWorkTileInfo:
        """The tile that is this block's turn."""
        plain = super().get_current_work()
        work = self.helper.delinearize_z((*self.cta_id_in_cluster[:2], plain.tile_idx[2]), self.problem_shape_mnkl)
        valid: Any = Boolean(plain.is_valid_tile)
        valid = valid & self.helper.search_state.found
        return GroupedWorkTileInfo(plain.tile_idx, valid, work)

    def initial_work_tile_info(  # type: ignore[override]  # another kind of tile, as documented
        self, *, loc: Any = None, ip: Any = None
    ) -> GroupedWorkTileInfo:
        """The first tile of this block."""
        return self.get_current_work()

    def __extract_mlir_values__(self) -> list[Value]:
        return [*super().__extract_mlir_values__(), *self.helper.__extract_mlir_values__()]

    def __new_from_mlir_values__(self, values: list[Value]) -> StaticPersistentGroupTileScheduler:
        plain = super().__new_from_mlir_values__(values[:2])
        return StaticPersistentGroupTileScheduler(
            self.params,
            self.num_persistent_clusters,
            plain._linear,
            self.cta_id_in_cluster,
            plain._executed,
            self.helper.__new_from_mlir_values__(values[2:]),
            self.problem_shape_mnkl,
        )


class StaticPersistentRuntimeTileScheduler(StaticPersistentTileScheduler):
    """A ``StaticPersistentTileScheduler`` whose grid is always full: ``create`` is given the tiles at run time, in
    ``params``, and blocks without one get no valid tile. ``inner_mode``: the mode (0: M, 1: N) along which neighbours
    in number are neighbours."""

    @staticmethod
    def create(
        params: PersistentTileSchedulerParams,
        block_idx: Any,
        grid_dim: Any,
        inner_mode: int = 1,
        *,
        loc: Any = None,
        ip: Any = None,
    ) -> StaticPersistentTileScheduler:
        if inner_mode not in (0, 1):
            raise ConstraintError(f"inner_mode={inner_mode!r}; 0 is along M, 1 along N")
        ordered = PersistentTileSchedulerParams(
            params.problem_shape_ntile_mnl, params.cluster_shape_mnk, params.swizzle_size, inner_mode == 0
        )
        return StaticPersistentTileScheduler.create(ordered, block_idx, grid_dim)
