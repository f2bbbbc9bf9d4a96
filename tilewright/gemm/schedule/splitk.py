"""Split-K: every output tile's k tiles are dealt out to as many workers, and their sums added up.

:func:`slice_of` is the rule, for Python ints (a picture, a test, a model of time) and for run-time integers alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import tilewright as cutlass
from tilewright import cute
from tilewright.gemm.schedule.decomposition import Decided, Piece


def slice_of(k_tiles: Any, slices: Any, index: Any) -> tuple[Any, Any]:
    """[begin, end) of the k tiles of slice ``index``: almost equally many for each, the first ones with one more.

    >>> [slice_of(10, 4, index) for index in range(4)]
    [(0, 3), (3, 6), (6, 8), (8, 10)]
    """
    each, more = k_tiles // slices, k_tiles % slices
    begin = index * each + cute.min(index, more)
    return begin, (index + 1) * each + cute.min(index + 1, more)


@dataclass(frozen=True)
class ClusterSlices(Decided):
    """A cluster for each output tile, a slice of its k tiles for each of the ``slices`` blocks.

    Their sums meet in the shared memory of the cluster: no workspace, no flags, and a fixed order. The tile has at
    least as many k tiles as there are slices.
    """

    slices: cutlass.Constexpr

    partial: ClassVar[bool] = False

    def blocks(self, tiles: Any) -> Any:
        return tiles

    def k_tiles(self, K: Any, bK: int) -> Any:
        return cute.ceil_div(K, bK)

    @cute.jit
    def run(
        self, cluster: Any, tiles: Any, k_tiles: Any, piece: Piece, state: Any = None, feed: None = None,
        draws: bool = False,
    ) -> Any:  # fmt: skip
        rank = cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster())
        begin, end = slice_of(k_tiles, self.slices, rank)
        return piece(cluster, begin, end, state)
