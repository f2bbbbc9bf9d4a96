"""The indices of a thread: thread, block, warp, lane and cluster.

All are Int32 that are known to be non-negative; what is known of their bounds (1024 threads a block, 32 lanes) removes
divisions and remainders from layouts' arithmetic.
"""

from __future__ import annotations

from typing import Any

from tilewright.ir.builder import Builder
from tilewright.ir.target import MOST_BLOCK, MOST_GRID, WARP
from tilewright.lang.numbers.facts import Facts
from tilewright.lang.numbers.numeric import Int32, wrap

WARP_SIZE = WARP


def _register(name: str, least: int = 0, bound: int | None = None) -> Any:
    return wrap(Builder.current().sreg(name), Facts(True, 1, bound))


def _three(base: str, bounds: tuple[int | None, ...]) -> tuple[Int32, Int32, Int32]:
    x, y, z = (_register(f"{base}.{axis}", bound=bound) for axis, bound in zip("xyz", bounds, strict=True))
    return x, y, z


def block_shape() -> tuple[int, ...] | None:
    """The block's shape, where the launch states it with Python ints."""
    shape = Builder.current().block_shape
    return tuple(shape) if shape is not None and None not in shape else None  # type: ignore[arg-type]  # no None in it


def thread_idx(*, loc: Any = None, ip: Any = None) -> tuple[Int32, Int32, Int32]:
    """The thread's (x, y, z) in its block.

    >>> per_thread(lambda t: arch.thread_idx()[0] * 10, 4)
    [0, 10, 20, 30]
    """
    return _three("tid", block_shape() or MOST_BLOCK)


def block_dim(*, loc: Any = None, ip: Any = None) -> tuple[Int32, Int32, Int32]:
    """Threads of a block as (x, y, z).

    >>> per_thread(lambda t: arch.block_dim()[0], 4)
    [4, 4, 4, 4]
    """
    return _three("ntid", tuple(n + 1 for n in MOST_BLOCK))


def block_idx(*, loc: Any = None, ip: Any = None) -> tuple[Int32, Int32, Int32]:
    """The block's (x, y, z) in the grid.

    >>> per_thread(lambda t: arch.block_idx()[0], 2, blocks=3)
    [0, 0, 1, 1, 2, 2]
    """
    return _three("ctaid", MOST_GRID)


def grid_dim(*, loc: Any = None, ip: Any = None) -> tuple[Int32, Int32, Int32]:
    """Blocks of the grid as (x, y, z).

    >>> per_thread(lambda t: arch.grid_dim()[0], 2, blocks=2)
    [2, 2, 2, 2]
    """
    return _three("nctaid", (None, *(n + 1 for n in MOST_GRID[1:])))


def cluster_idx(*, loc: Any = None, ip: Any = None) -> tuple[Int32, Int32, Int32]:
    """The cluster's (x, y, z) in the grid of clusters.

    >>> per_thread(lambda t: arch.cluster_idx()[0], 1, blocks=4, cluster=2)
    [0, 0, 1, 1]
    """
    return _three("clusterid", MOST_GRID)


def cluster_dim(*, loc: Any = None, ip: Any = None) -> tuple[Int32, Int32, Int32]:
    """Clusters of the grid as (x, y, z).

    >>> per_thread(lambda t: arch.cluster_dim()[0], 1, blocks=6, cluster=2)
    [3, 3, 3, 3, 3, 3]
    """
    return _three("nclusterid", (None, None, None))


def block_in_cluster_idx(*, loc: Any = None, ip: Any = None) -> tuple[Int32, Int32, Int32]:
    """The block's (x, y, z) in its cluster.

    >>> per_thread(lambda t: arch.block_in_cluster_idx()[0], 1, blocks=4, cluster=2)
    [0, 1, 0, 1]
    """
    return _three("cluster_ctaid", (16, 16, 16))


def block_in_cluster_dim(*, loc: Any = None, ip: Any = None) -> tuple[Int32, Int32, Int32]:
    """Blocks of a cluster as (x, y, z).

    >>> per_thread(lambda t: arch.block_in_cluster_dim()[0], 1, blocks=4, cluster=2)
    [2, 2, 2, 2]
    """
    return _three("cluster_nctaid", (17, 17, 17))


def block_idx_in_cluster(*, loc: Any = None, ip: Any = None) -> Int32:
    """The block's linear rank in its cluster.

    >>> per_thread(lambda t: arch.block_idx_in_cluster(), 1, blocks=4, cluster=2)
    [0, 1, 0, 1]
    """
    return _register("cluster_ctarank", bound=16)


def cluster_size(*, loc: Any = None, ip: Any = None) -> Int32:
    """Blocks of a cluster, of all its modes together.

    >>> per_thread(lambda t: arch.cluster_size(), 1, blocks=4, cluster=4)
    [4, 4, 4, 4]
    """
    return _register("cluster_nctarank", bound=17)


def lane_idx(*, loc: Any = None, ip: Any = None) -> Int32:
    """The thread's place in its warp, 0 to 31.

    >>> per_thread(lambda t: arch.lane_idx(), 34)[30:]
    [30, 31, 0, 1]
    """
    return _register("laneid", bound=WARP_SIZE)


def warp_idx(*, loc: Any = None, ip: Any = None) -> Int32:
    """The warp's place in its block: linear thread index over 32.

    >>> per_thread(lambda t: arch.warp_idx(), 96)[::32]
    [0, 1, 2]
    """
    shape = block_shape()
    threads = shape[0] * shape[1] * shape[2] if shape else 1024
    return _register("warpid", bound=-(-threads // WARP_SIZE))
