"""Tile schedulers: every tile once, in the order that the raster says, on grids of any size."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import utils
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ConstraintError


class Visits:
    """Writes when each tile was visited (its number among those of its block, from 1) and by which block."""

    def __init__(self, cluster: tuple[int, int] = (1, 1), swizzle: int = 1, along_m: bool = True) -> None:
        self.cluster, self.swizzle, self.along_m = cluster, swizzle, along_m

    @cute.jit
    def __call__(self, when: cute.Tensor, who: cute.Tensor, active: cutlass.Int32):
        params = utils.PersistentTileSchedulerParams(when.shape, (*self.cluster, 1), self.swizzle, self.along_m)
        grid = utils.StaticPersistentTileScheduler.get_grid_shape(params, active)
        self.kernel(when, who, params).launch(grid=grid, block=(32, 1, 1), cluster=(*self.cluster, 1))

    @cute.kernel
    def kernel(self, when: cute.Tensor, who: cute.Tensor, params: utils.PersistentTileSchedulerParams):
        block = cute.arch.block_idx()
        scheduler = utils.StaticPersistentTileScheduler.create(params, block, cute.arch.grid_dim())
        work = scheduler.initial_work_tile_info()
        while work.is_valid_tile:
            m, n, batch = work.tile_idx
            if cute.elem_less((m, n), (when.shape[0], when.shape[1])) and cute.arch.lane_idx() == 0:
                when[m, n, batch] = when[m, n, batch] + scheduler.num_tiles_executed + 1
                who[m, n, batch] = block[2]
            scheduler.advance_to_next_work()
            work = scheduler.get_current_work()


def visits(shape: tuple[int, int, int], active: int, dynamic: bool, *how) -> tuple[np.ndarray, np.ndarray]:
    when, who = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
    tensors = [from_dlpack(a).mark_layout_dynamic(2) if dynamic else from_dlpack(a) for a in (when, who)]
    Visits(*how)(*tensors, active)
    return when, who


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("swizzle", [1, 2, 4])
@pytest.mark.parametrize("along_m", [True, False])
@pytest.mark.parametrize(("shape", "active"), [((4, 6, 1), 5), ((3, 7, 2), 4), ((5, 1, 3), 100), ((1, 1, 1), 3)])
def test_every_tile_is_visited_once_in_order(shape, active, along_m, swizzle, dynamic) -> None:
    when, who = visits(shape, active, dynamic, (1, 1), swizzle, along_m)
    linear = (when - 1) * min(active, when.size) + who
    assert sorted(linear.reshape(-1)) == list(range(when.size))
    order = [tuple(int(v) for v in t) for t in np.stack(np.unravel_index(np.argsort(linear, axis=None), shape), 1)]
    assert order == expected(shape, swizzle, along_m)


def expected(shape, swizzle: int, along_m: bool) -> list[tuple[int, int, int]]:
    """Batch by batch; band by band of ``swizzle`` columns; row by row in a band."""
    m, n, batches = shape
    fast, slow = (m, n) if along_m else (n, m)
    order = []
    for batch, first in itertools.product(range(batches), range(0, slow, swizzle)):
        for a, b in itertools.product(range(fast), range(first, min(first + swizzle, slow))):
            order.append((a, b, batch) if along_m else (b, a, batch))
    return order


@pytest.mark.parametrize(("shape", "cluster"), [((4, 6, 2), (2, 1)), ((4, 6, 1), (2, 2)), ((5, 3, 2), (2, 2))])
def test_the_blocks_of_a_cluster_work_side_by_side(shape, cluster) -> None:
    when, who = visits(shape, 2, True, cluster)
    assert (when > 0).all()
    for (i, j, batch), turn in np.ndenumerate(when):
        corner = (i - i % cluster[0], j - j % cluster[1], batch)
        assert turn == when[corner] and who[i, j, batch] == who[corner]


def test_the_grid_has_no_more_clusters_than_work() -> None:
    params = utils.PersistentTileSchedulerParams((4, 3, 2), (2, 1, 1))
    assert utils.StaticPersistentTileScheduler.get_grid_shape(params, 66) == (2, 1, 12)
    assert params.get_grid_shape(5) == (2, 1, 5)


def test_tile_scheduler_params_refuse_wrong_shapes() -> None:
    with pytest.raises(ConstraintError, match=r"\(4, 3\) is not a shape \(m, n, l\)"):
        utils.PersistentTileSchedulerParams((4, 3), (1, 1, 1))
    with pytest.raises(ConstraintError, match=r"is not a cluster shape"):
        utils.PersistentTileSchedulerParams((4, 3, 1), (1, 1, 2))
    with pytest.raises(ConstraintError, match="swizzle_size=0"):
        utils.PersistentTileSchedulerParams((4, 3, 1), (1, 1, 1), 0)


@pytest.mark.gpu
@pytest.mark.parametrize(("shape", "cluster"), [((40, 66, 2), (1, 1)), ((41, 30, 1), (2, 1)), ((16, 16, 3), (2, 2))])
def test_tile_schedulers_on_a_gpu(shape, cluster) -> None:
    torch = pytest.importorskip("torch")
    if cluster != (1, 1) and torch.cuda.get_device_capability()[0] < 9:
        pytest.skip("clusters need sm_90")
    when, who = (torch.zeros(shape, dtype=torch.int32, device="cuda") for _ in range(2))
    Visits(cluster, 4, False)(from_dlpack(when).mark_layout_dynamic(), from_dlpack(who).mark_layout_dynamic(), 60)
    assert (when > 0).all()
    padded = [-(-extent // c) * c for extent, c in zip(shape, (*cluster, 1), strict=True)]
    clusters = padded[0] * padded[1] * padded[2] // (cluster[0] * cluster[1])
    corners = ((when - 1) * min(60, clusters) + who)[:: cluster[0], :: cluster[1]]
    assert torch.equal(corners.flatten().sort().values.cpu(), torch.arange(clusters, dtype=torch.int32))


def test_the_golden_lines_of_the_persistent_schedule() -> None:
    import tests.golden_schedule  # noqa: F401 - registers its handler
    from tests.golden import DATA, check, read

    lines = [line for line in read(DATA / "hopper.jsonl") if line["op"] == "sm90_schedule"]
    assert len(lines) == 147
    assert [problem for line in lines if (problem := check(line))] == []


def test_a_kernel_computes_the_same_tiles() -> None:
    """The order of handing out by the device's integers."""
    schedule = utils.PersistentScheduleSm90.create((1000, 700, 2), (128, 64), (2, 1), 4, "AlongM")
    count = schedule.blocks_per_problem

    @cute.kernel
    def kernel(out: cute.Tensor):
        i = cute.arch.block_idx()[0] * 32 + cute.arch.thread_idx()[0]
        if i < count:
            for k, x in enumerate(schedule.tile(i, (i % 2, 0))):
                out[i, k] = x

    @cute.jit
    def run(out: cute.Tensor):
        kernel(out).launch(grid=(-(-count // 32), 1, 1), block=(32, 1, 1))

    out = np.zeros((count, 3), np.int32)
    run(from_dlpack(out))
    assert out.tolist() == [list(schedule.tile(i, (i % 2, 0))) for i in range(count)]


def test_schedule_refuses_unknown_orders_and_tiles() -> None:
    with pytest.raises(ConstraintError, match="it is Heuristic, AlongM or AlongN"):
        utils.PersistentScheduleSm90.create((1, 1, 1), (128, 128), raster_order="Hilbert")
    with pytest.raises(ConstraintError, match="the CTA tile"):
        utils.PersistentScheduleSm90.create((1, 1, 1), (0, 128))
