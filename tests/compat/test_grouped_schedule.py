"""Tiles of grouped GEMMs: every tile of every group is handed out once, to one cluster."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute, utils
from tilewright.cute.runtime import from_dlpack

TILE = (64, 32, 16)  # of a block
GROUPS = [(130, 70, 40, 1), (64, 32, 16, 1), (1, 1, 1, 1), (65, 200, 33, 1), (300, 31, 100, 1)]


class Visit:
    """Each block writes down (group, m, n, tiles along K, block) of each of its tiles."""

    def __init__(self, cluster: tuple[int, int], helper: bool) -> None:
        self.cluster, self.helper = cluster, helper
        self.cluster_tile = (TILE[0] * cluster[0], TILE[1] * cluster[1], TILE[2])

    @cute.jit
    def __call__(
        self,
        shapes: cute.Tensor,
        seen: cute.Tensor,
        count: cute.Tensor,
        total: cutlass.Int32,
        groups: cutlass.Constexpr,
        most: cutlass.Constexpr,
    ):
        params = utils.PersistentTileSchedulerParams((*self.cluster, total), (*self.cluster, 1))
        grid = utils.StaticPersistentGroupTileScheduler.get_grid_shape(params, most)
        self.kernel(shapes, seen, count, params, groups).launch(grid=grid, block=(32, 1, 1), cluster=(*self.cluster, 1))

    @cute.kernel
    def kernel(
        self,
        shapes: cute.Tensor,
        seen: cute.Tensor,
        count: cute.Tensor,
        params: utils.PersistentTileSchedulerParams,
        groups: cutlass.Constexpr,
    ):
        t, _, _ = cute.arch.thread_idx()
        bid, grid = cute.arch.block_idx(), cute.arch.grid_dim()
        if cutlass.const_expr(self.helper):
            sched = utils.StaticPersistentTileScheduler.create(params, bid, grid)
            helper = utils.GroupedGemmTileSchedulerHelper(
                groups, params, self.cluster_tile, utils.create_initial_search_state()
            )
            k_helper = utils.GroupedGemmTileSchedulerHelper(
                groups, params, self.cluster_tile, utils.create_initial_search_state()
            )
            last = cutlass.Int32(-1)
            work = sched.initial_work_tile_info()
            while work.is_valid_tile:
                found = helper.delinearize_z(work.tile_idx, shapes)
                tiles_k, group = k_helper.search_cluster_tile_count_k(work.tile_idx, shapes)
                if t == 0:
                    self.note(seen, count, found, tiles_k + 1000 * (group - found.group_idx), found.group_idx < last)
                last = found.group_idx
                sched.advance_to_next_work()
                work = sched.get_current_work()
        else:
            grouped = utils.StaticPersistentGroupTileScheduler.create(
                params, bid, grid, self.cluster_tile, utils.create_initial_search_state(), groups, shapes
            )
            tile = grouped.initial_work_tile_info()
            while tile.is_valid_tile:
                result = tile.group_search_result
                if t == 0:
                    self.note(seen, count, result, result.cta_tile_count_k, False)
                grouped.advance_to_next_work()
                tile = grouped.get_current_work()

    @cute.jit
    def note(self, seen: cute.Tensor, count: cute.Tensor, found: utils.GroupSearchResult, tiles_k, wrong):
        i = cute.arch.atomic_add(count.iterator, cutlass.Int32(1))
        seen[i, 0], seen[i, 1], seen[i, 2] = found.group_idx, found.cta_tile_idx_m, found.cta_tile_idx_n
        seen[i, 3], seen[i, 4] = tiles_k, found.problem_shape_m * 10000 + found.problem_shape_n
        seen[i, 5] = cutlass.Int32(wrong)


def expected(cluster: tuple[int, int]) -> list[tuple[int, ...]]:
    """All tiles, in whole clusters."""
    found = []
    for g, (m, n, k, _) in enumerate(GROUPS):
        along_m = -(-m // (TILE[0] * cluster[0])) * cluster[0]
        along_n = -(-n // (TILE[1] * cluster[1])) * cluster[1]
        found += [(g, i, j, -(-k // TILE[2]), m * 10000 + n, 0) for i in range(along_m) for j in range(along_n)]
    return found


@pytest.mark.parametrize("cluster", [(1, 1), (2, 1), (1, 2)])
@pytest.mark.parametrize("helper", [True, False])
@pytest.mark.parametrize("most", [1, 3, 200])
def test_each_tile_is_handed_out_once(cluster: tuple[int, int], helper: bool, most: int) -> None:
    wanted = expected(cluster)
    total = len(wanted) // (cluster[0] * cluster[1])
    shapes, seen = np.array(GROUPS, np.int32), np.full((2 * len(wanted) + 8, 6), -1, np.int32)
    count = np.zeros(1, np.int32)
    spare = 0 if helper else 5  # the group scheduler takes a bound from above
    Visit(cluster, helper)(*map(from_dlpack, (shapes, seen, count)), total + spare, len(GROUPS), most)
    assert count[0] == len(wanted)
    assert sorted(map(tuple, seen[: count[0]].tolist())) == sorted(wanted)


def test_a_full_grid_with_tiles_of_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    @cute.kernel
    def kernel(m: cutlass.Int32, n: cutlass.Int32):
        params = utils.PersistentTileSchedulerParams((m, n, 1), (1, 1, 1))
        sched = utils.StaticPersistentRuntimeTileScheduler.create(
            params, cute.arch.block_idx(), cute.arch.grid_dim(), inner_mode=1
        )
        work = sched.initial_work_tile_info()
        while work.is_valid_tile:
            cute.printf("{}: {} {}", cute.arch.block_idx()[2], work.tile_idx[0], work.tile_idx[1])
            sched.advance_to_next_work()
            work = sched.get_current_work()

    @cute.jit
    def host(m: cutlass.Int32, n: cutlass.Int32):
        kernel(m, n).launch(grid=(1, 1, 6), block=(1, 1, 1))

    host(2, 2)
    assert sorted(capsys.readouterr().out.split("\n")) == ["", "0: 0 0", "1: 0 1", "2: 1 0", "3: 1 1"]
