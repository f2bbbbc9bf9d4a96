"""Split-K: every output tile's k tiles are dealt out to as many workers, and their sums added up.

:func:`slice_of` is the rule, for Python ints (a picture, a test, a model of time) and for run-time integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tilewright as cutlass
from tilewright import cute
from tilewright.errors import ArgumentError
from tilewright.gemm.schedule.decomposition import ONLY, Caller, Piece, StaticSchedule
from tilewright.gemm.schedule.streamk_blocks import positive

MODES = ("serial", "parallel", "cluster")


@dataclass(frozen=True)
class SplitK:
    """Each output tile's k tiles in ``slices`` parts, for as many blocks.

    ``mode`` says how their sums become D:

    ==========  ====================================================================================================
    serial      blocks add themselves to D one after the other, by turns (a semaphore for each tile in the workspace)
    parallel    each has an output of its own in the workspace, which another kernel adds up
    cluster     the blocks are a cluster, and add up through each other's shared memory (Hopper, at most 8)
    ==========  ====================================================================================================

    Raises ArgumentError for another mode, or fewer than one part.

    >>> from tilewright.gemm import gemm
    >>> a = np.ones((32, 256), np.float16)
    >>> report = gemm(a, a.T, decomposition=SplitK(2))
    >>> float(report.d[0, 0]), report.decomposition
    (256.0, 'split_k')
    """

    slices: int
    mode: str = "serial"

    def __post_init__(self) -> None:
        positive("slices", self.slices)
        if self.mode not in MODES:
            raise ArgumentError(f"mode must be one of {', '.join(MODES)}, got {self.mode!r}")


def slice_of(k_tiles: Any, slices: Any, index: Any) -> tuple[Any, Any]:
    """[begin, end) of the k tiles of slice ``index``: almost equally many for each, the first ones with one more.

    >>> [slice_of(10, 4, index) for index in range(4)]
    [(0, 3), (3, 6), (6, 8), (8, 10)]
    """
    each, more = k_tiles // slices, k_tiles % slices
    begin = index * each + cute.min(index, more)
    return begin, (index + 1) * each + cute.min(index + 1, more)


@dataclass(frozen=True)
class ClusterSlices(StaticSchedule):
    """A cluster for each output tile, a slice of its k tiles for each of the ``slices`` blocks.

    Their sums meet in the shared memory of the cluster: no workspace, no flags, and a fixed order. The tile has at
    least as many k tiles as there are slices.
    """

    slices: cutlass.Constexpr

    def first(self, k_tiles: Any) -> tuple[Any, Any]:
        rank = cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster())
        return slice_of(k_tiles, self.slices, rank)

    @cute.jit
    def run(
        self, cluster: Any, tiles: Any, k_tiles: Any, piece: Piece, state: Any = None, caller: Caller = ONLY
    ) -> Any:
        begin, end = self.first(k_tiles)
        return piece(cluster, begin, end, state)
