"""Launches in clusters of a preferred shape, and of another one where a GPU finds no room for it."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright import Int32, cute
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ArgumentError, StagingError
from tilewright.ir.runtime import LaunchConfig
from tilewright.lang.device.smem import SmemAllocator


@cute.kernel
def neighbours(out: cute.Tensor):
    """Row b of out: the cluster of block b, the block's rank in it, its size, and the sum of its blocks' numbers."""
    tidx, _, _ = cute.arch.thread_idx()
    bx, by, _ = cute.arch.block_idx()
    block = bx + by * cute.arch.grid_dim()[0]
    mine = SmemAllocator().allocate_tensor(Int32, 1)
    x, y, z = cute.arch.block_in_cluster_dim()
    if tidx == 0:
        mine[0] = block
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()
    if tidx == 0:
        total = Int32(0)
        for peer in range(x * y * z):
            total += cute.arch.load(cute.arch.map_dsmem_ptr(mine.iterator, peer))
        cx, cy, _ = cute.arch.cluster_idx()
        out[block, 0], out[block, 1] = cx, cy
        out[block, 2] = cute.arch.block_idx_in_cluster()
        out[block, 3], out[block, 4] = x * 10 + y, total
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()


def launched(grid, cluster, fallback):
    @cute.jit
    def host(out: cute.Tensor):
        neighbours(out).launch(grid=grid, block=(32, 1, 1), cluster=cluster, fallback_cluster=fallback)

    out = np.full((grid[0] * grid[1], 5), -1, np.int32)
    compiled = cute.compile(host, from_dlpack(out))
    compiled(from_dlpack(out))
    return out, compiled


@pytest.mark.parametrize(
    "grid, cluster, fallback", [((8, 2, 1), (4, 1, 1), (2, 1, 1)), ((2, 8, 1), (2, 2, 1), (1, 2, 1))]
)
def test_both_kinds_of_clusters_run_each_in_its_own_order(grid, cluster, fallback) -> None:
    out, compiled = launched(grid, cluster, fallback)
    sizes = {cluster[0] * 10 + cluster[1]: cluster, fallback[0] * 10 + fallback[1]: fallback}
    assert set(out[:, 3]) == set(sizes), "the simulator runs a part of the grid in either"
    for block, (cx, cy, rank, shape, total) in enumerate(out.tolist()):
        w, h, _ = sizes[shape]
        x, y = block % grid[0], block // grid[0]
        assert (cx, cy) == (x // w, y // h) and rank == x % w + y % h * w
        assert total == sum(cx * w + i + (cy * h + j) * grid[0] for i in range(w) for j in range(h))
    assert "__cluster_dims__" not in compiled.__cuda__, "its clusters are those of the launch"


def test_one_cluster_is_the_preferred_one() -> None:
    assert set(launched((4, 1, 1), (4, 1, 1), (2, 1, 1))[0][:, 3]) == {41}
    config = LaunchConfig((4, 1, 1), (32, 1, 1), (4, 1, 1))
    assert config.in_both_clusters() == [config]


@pytest.mark.parametrize(
    "cluster, fallback, match",
    [
        ((4, 1, 1), (3, 1, 1), r"clusters of \(4, 1, 1\) are preferred to \(3, 1, 1\), of which they are no whole"),
        (None, (2, 1, 1), r"clusters of \(1, 1, 1\) are preferred to \(2, 1, 1\)"),
        ((4, 1, 1), (0, 1, 1), "an extent of 0"),
        ((4, 1, 1), (Int32(2), "2", 1), "'2' is not an integer"),
    ],
)
def test_what_is_no_fallback_is_refused(cluster, fallback, match) -> None:
    with pytest.raises(StagingError, match=match):
        launched((8, 1, 1), cluster, fallback)


def test_c_code_has_no_fallback(tmp_path) -> None:
    _, compiled = launched((8, 1, 1), (4, 1, 1), (2, 1, 1))
    with pytest.raises(ArgumentError, match="fallback_cluster= is not exported"):
        compiled.export_to_c(str(tmp_path), "neighbours")
