"""The dynamic persistent tile scheduler of sm_100: a cluster that is done takes over one that has not begun.

The grid has a cluster for each cluster of tiles. As many as fit begin; each of them asks for the next tiles with
``clusterlaunchcontrol``, until none is left. So blocks that are late take fewer tiles, without a counter in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.errors import ConstraintError
from tilewright.ir.core import Value
from tilewright.lang.device.barriers import fence_proxy
from tilewright.lang.device.cluster_launch import clc_response, issue_clc_query
from tilewright.lang.device.warps import elect_one
from tilewright.lang.numbers.numeric import Int32, wrap
from tilewright.lang.staging.with_block import inside
from tilewright.utils.tile_scheduler import WorkTileInfo


@dataclass(frozen=True)
class ClcDynamicPersistentTileSchedulerParams:
    """The problem: ``problem_shape_ntile_mnl`` tiles, in clusters of ``cluster_shape_mnk`` blocks (k is 1)."""

    problem_shape_ntile_mnl: Any
    cluster_shape_mnk: Any = (1, 1, 1)

    def __post_init__(self) -> None:
        problem, cluster = tuple(self.problem_shape_ntile_mnl), tuple(self.cluster_shape_mnk)
        cluster += (1,) * (3 - len(cluster))
        if len(problem) != 3 or len(cluster) != 3 or cluster[2] != 1 or not all(isinstance(c, int) for c in cluster):
            raise ConstraintError(
                f"ClcDynamicPersistentTileSchedulerParams: {problem} and {cluster} are not tiles (m, n, l) and a "
                "cluster of Python ints (m, n, 1)"
            )
        object.__setattr__(self, "problem_shape_ntile_mnl", problem)
        object.__setattr__(self, "cluster_shape_mnk", cluster)

    def get_grid_shape(self, *, loc: Any = None, ip: Any = None) -> tuple[Any, Any, Any]:
        """The grid to launch: a block for each tile, in whole clusters.

        >>> ClcDynamicPersistentTileSchedulerParams((5, 3, 2), (2, 1, 1)).get_grid_shape()
        (6, 3, 2)
        """
        m, n, batch = self.problem_shape_ntile_mnl
        a, b, _ = self.cluster_shape_mnk
        return (m + (a - 1)) // a * a, (n + (b - 1)) // b * b, batch


class ClcDynamicPersistentTileScheduler:
    """Hands out tiles: first the block's own, then those of clusters that it takes over. One warp of a cluster asks
    (:meth:`advance_to_next_work`), all threads read the answer (:meth:`get_current_work`) once its mbarrier has it.

    >>> import tilewright as cutlass
    >>> from tilewright import sim, utils
    >>> from tilewright.cute.runtime import from_dlpack
    >>> @cute.kernel
    ... def count(y: cute.Tensor, params: cutlass.Constexpr[Any]):
    ...     smem = utils.SmemAllocator()
    ...     answer, full = smem.allocate_array(cutlass.Int32, 4, 16), smem.allocate_array(cutlass.Int64, 1)
    ...     thread = cute.arch.thread_idx()[0]
    ...     if thread == 0:
    ...         cute.arch.mbarrier_init(full, 1)
    ...     cute.arch.mbarrier_init_fence()
    ...     cute.arch.sync_threads()
    ...     tiles = utils.ClcDynamicPersistentTileScheduler.create(
    ...         params, cute.arch.block_idx(), cute.arch.grid_dim(), answer
    ...     )
    ...     work, phase = tiles.initial_work_tile_info(), cutlass.Int32(0)
    ...     while work.is_valid_tile:
    ...         if thread == 0:
    ...             cute.arch.mbarrier_arrive_and_expect_tx(full, 16)
    ...         tiles.advance_to_next_work(full)  # while the tile is worked on
    ...         if thread == 0:
    ...             y[work.tile_idx[0], work.tile_idx[1]] += 1
    ...         cute.arch.mbarrier_wait(full, phase)
    ...         work, phase = tiles.get_current_work(), phase ^ 1
    ...         cute.arch.sync_threads()
    >>> @cute.jit
    ... def run(y: cute.Tensor):
    ...     params = utils.ClcDynamicPersistentTileSchedulerParams((3, 2, 1))
    ...     count(y, params).launch(grid=params.get_grid_shape(), block=(32, 1, 1))
    >>> y = np.zeros((3, 2), np.int32)
    >>> run(from_dlpack(y))
    >>> y.tolist()
    [[1, 1], [1, 1], [1, 1]]
    """

    __slots__ = ("_executed", "_first", "_insert_fence", "clc_response_ptr", "cta_id_in_cluster", "params")

    def __init__(
        self,
        params: ClcDynamicPersistentTileSchedulerParams,
        cta_id_in_cluster: Any,
        num_tiles_executed: Any,
        clc_response_ptr: Any,
        block_idx: Any,
        insert_fence: bool = True,
    ) -> None:
        self._insert_fence = insert_fence
        self.params, self.cta_id_in_cluster, self.clc_response_ptr = params, cta_id_in_cluster, clc_response_ptr
        self._executed: Any = Int32(num_tiles_executed)
        self._first = tuple(map(Int32, block_idx))

    @staticmethod
    def create(
        params: ClcDynamicPersistentTileSchedulerParams,
        block_idx: Any,
        grid_dim: Any,
        clc_response_ptr: Any,
        insert_fence: bool = True,
        *,
        loc: Any = None,
        ip: Any = None,
    ) -> ClcDynamicPersistentTileScheduler:
        """The scheduler of this block, in a grid of :meth:`get_grid_shape`. ``clc_response_ptr``: where answers are
        written, 16 bytes of shared memory. ``insert_fence``: a proxy fence behind each read of an answer, which the
        asynchronous proxy overwrites with the next one; without it the program has a fence before it says that it has
        read."""
        a, b, _ = params.cluster_shape_mnk
        x, y, _ = block_idx
        return ClcDynamicPersistentTileScheduler(
            params, (x % a, y % b, 0), 0, clc_response_ptr, block_idx, insert_fence
        )

    @staticmethod
    def get_grid_shape(
        params: ClcDynamicPersistentTileSchedulerParams, *, loc: Any = None, ip: Any = None
    ) -> tuple[Any, Any, Any]:
        """The grid to launch."""
        return params.get_grid_shape()

    def initial_work_tile_info(self, *, loc: Any = None, ip: Any = None) -> WorkTileInfo:
        """The block's own tile."""
        return WorkTileInfo(self._first, Int32(1) > 0)

    def get_current_work(self, *, loc: Any = None, ip: Any = None) -> WorkTileInfo:
        """The tile of the last answer, which is there: its mbarrier has been waited for."""
        x, y, z, valid = clc_response(self.clc_response_ptr)
        if self._insert_fence:
            fence_proxy("async.shared", space="cta")
        i, j, _ = self.cta_id_in_cluster
        return WorkTileInfo((x + i, y + j, z), valid != 0)

    def advance_to_next_work(self, mclc_barrier_addr: Any, *, loc: Any = None, ip: Any = None) -> None:
        """Ask for another cluster's tiles, by one thread of the first warp that is here; the answer counts 16 bytes at
        ``mclc_barrier_addr`` in all blocks of the cluster. Called by one warp of the cluster."""
        if inside("elect_one block"):
            issue_clc_query(mclc_barrier_addr, self.clc_response_ptr)
        else:
            with elect_one():
                issue_clc_query(mclc_barrier_addr, self.clc_response_ptr)
        self._executed = self._executed + 1

    @property
    def num_tiles_executed(self) -> Any:
        """Calls of :meth:`advance_to_next_work`."""
        return self._executed

    def __extract_mlir_values__(self) -> list[Value]:
        return [self._executed.ir_value(), *(x.ir_value() for x in self._first)]

    def __new_from_mlir_values__(self, values: list[Value]) -> ClcDynamicPersistentTileScheduler:
        executed, *first = map(wrap, values)
        return ClcDynamicPersistentTileScheduler(
            self.params, self.cta_id_in_cluster, executed, self.clc_response_ptr, tuple(first), self._insert_fence
        )
