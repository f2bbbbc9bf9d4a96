"""Programs with clusters of blocks that the simulator's and the GPU's tests share."""

from __future__ import annotations

from typing import Any

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import utils

#: Cluster shapes of 1, 2, 4 and 8 blocks.
SHAPES = [(1, 1, 1), (2, 1, 1), (2, 2, 1), (1, 4, 1), (4, 2, 1), (2, 2, 2)]


class Indices:
    """out[block, k]: what the special registers of clusters say. The grid is two clusters along each mode."""

    def __init__(self, cluster: tuple[int, int, int]) -> None:
        self.cluster = cluster

    @cute.jit
    def __call__(self, out: cute.Tensor):
        self.kernel(out).launch(grid=[2 * c for c in self.cluster], block=(32, 1, 1), cluster=self.cluster)

    @cute.kernel
    def kernel(self, out: cute.Tensor):
        (x, y, z), (gx, gy, _) = cute.arch.block_idx(), cute.arch.grid_dim()
        block = x + gx * (y + gy * z)
        values = (
            *cute.arch.cluster_idx(),
            *cute.arch.cluster_dim(),
            *cute.arch.block_in_cluster_idx(),
            *cute.arch.block_in_cluster_dim(),
            cute.arch.block_idx_in_cluster(),
            cute.arch.cluster_size(),
        )
        if cute.arch.thread_idx()[0] == 0:
            for k in cutlass.range_constexpr(len(values)):
                out[block, k] = values[k]


class Exchange:
    """Each block reads, adds to and writes the shared memory of the others of its cluster.

    out[block, r, t] = what thread t of the block read from the buffer of rank r, 1000 * (r's block number) + t;
    sums[block] = how often others added 1 to its counter; last[block, t] = what its left neighbour wrote there.
    """

    def __init__(self, cluster: tuple[int, int, int], threads: int = 64) -> None:
        self.cluster, self.threads = cluster, threads
        self.size = cluster[0] * cluster[1] * cluster[2]

    @cute.jit
    def __call__(self, out: cute.Tensor, sums: cute.Tensor, last: cute.Tensor):
        grid = (3 * self.cluster[0], *self.cluster[1:])
        self.kernel(out, sums, last).launch(grid=grid, block=(self.threads, 1, 1), cluster=self.cluster)

    @cute.kernel
    def kernel(self, out: cute.Tensor, sums: cute.Tensor, last: cute.Tensor):
        tidx, _, _ = cute.arch.thread_idx()
        (x, y, z), (gx, gy, _) = cute.arch.block_idx(), cute.arch.grid_dim()
        block, rank = x + gx * (y + gy * z), cute.arch.block_idx_in_cluster()
        smem = utils.SmemAllocator()
        numbers = smem.allocate_tensor(cutlass.Int32, cute.make_layout(self.threads), 16)
        target = smem.allocate_tensor(cutlass.Int32, cute.make_layout(self.threads), 16)
        counter = smem.allocate_tensor(cutlass.Int32, cute.make_layout(1))
        numbers[tidx] = 1000 * block + tidx
        if tidx == 0:
            counter[0] = 0
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
        for other in cutlass.range_constexpr(self.size):
            theirs = cute.make_tensor(cute.arch.mapa(numbers.iterator, other), numbers.layout)
            out[block, other, tidx] = theirs[tidx]
            cute.arch.atomic_add(cute.arch.mapa(counter.iterator, other), 1, scope="cluster")
        right = (rank + 1) % self.size
        theirs = cute.make_tensor(cute.arch.map_dsmem_ptr(target, right), target.layout)
        theirs[tidx] = 7 * block + tidx
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
        last[block, tidx] = target[tidx]
        if tidx == 0:
            sums[block] = counter[0]


class Signals:
    """A ring of blocks: each waits for its left neighbour's arrival and bytes, then signals the right one.

    out[block, t]: the sum that thread t got from the left (rank 0 starts with t), plus its rank.
    """

    def __init__(self, cluster: tuple[int, int, int]) -> None:
        self.cluster = cluster
        self.size = cluster[0] * cluster[1] * cluster[2]

    @cute.jit
    def __call__(self, out: cute.Tensor):
        grid = (2 * self.cluster[0], *self.cluster[1:])
        self.kernel(out).launch(grid=grid, block=(32, 1, 1), cluster=self.cluster)

    @cute.kernel
    def kernel(self, out: cute.Tensor):
        tidx, _, _ = cute.arch.thread_idx()
        (x, y, z), (gx, gy, _) = cute.arch.block_idx(), cute.arch.grid_dim()
        block, rank = x + gx * (y + gy * z), cute.arch.block_idx_in_cluster()
        smem = utils.SmemAllocator()
        bar = smem.allocate_array(cutlass.Int64, 2)
        inbox = smem.allocate_tensor(cutlass.Int32, cute.make_layout(32), 16)
        if tidx == 0:
            cute.arch.mbarrier_init(bar, 1)
            cute.arch.mbarrier_init(bar + 1, 32)
            cute.arch.mbarrier_init_fence()
        cute.arch.cluster_arrive_relaxed()
        cute.arch.cluster_wait()
        with cute.arch.elect_one():
            cute.arch.mbarrier_arrive_and_expect_tx(bar, 128)
        total = tidx + 0
        if rank > 0:
            cute.arch.mbarrier_wait(bar, 0)
            cute.arch.mbarrier_wait(bar + 1, 0)
            total = inbox[tidx] + rank
        if rank + 1 < self.size:
            cute.arch.store_shared_remote(total, inbox.iterator + tidx, bar, rank + 1)
            cute.arch.mbarrier_arrive(bar + 1, rank + 1)
        out[block, tidx] = total
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()


def run(program: Any, *arrays: Any) -> None:
    from tilewright.cute.runtime import from_dlpack

    program(*(from_dlpack(a) for a in arrays))
