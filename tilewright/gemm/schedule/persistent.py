"""Persistent blocks: a grid that fills the GPU once, whose clusters take one output tile after another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import tilewright as cutlass
from tilewright import cute


@dataclass(frozen=True)
class PersistentTiles:
    """Cluster w of ``workers`` takes tiles w, w + workers, ...: dealt out before the launch.

    ``workers`` is a run-time number; the producer and the consumers of a block walk the same tiles, each at its own
    pace.
    """

    workers: cutlass.Int32

    partial: ClassVar[bool] = False

    def clusters(self, tiles: Any) -> Any:
        """Clusters of the grid."""
        return cute.min(self.workers, tiles)

    @cute.jit
    def run(
        self, cluster: Any, clusters: Any, tiles: Any, k_tiles: Any,
        piece: Callable[[Any, Any, Any, Any], Any], state: Any, first: Any = 0, step: int = 1,
    ) -> Any:  # fmt: skip
        """Call ``state = piece(tile, 0, k_tiles, state)`` for each tile of ``cluster``; gives the last state.

        ``first`` and ``step`` leave tiles out: warpgroup i of two that take turns has ``first=i, step=2``.
        """
        for tile in cutlass.range(cluster + first * clusters, tiles, step * clusters, unroll=1):
            state = piece(tile, 0, k_tiles, state)
        return state
