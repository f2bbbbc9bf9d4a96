"""The places of threads: the special registers of a group of warps, and the split of a grid into waves of resident
blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tilewright.ir.runtime import LaunchConfig
from tilewright.ir.target import WARP

I32 = np.int32


class Geometry:
    """The static geometry of one launch. Blocks are numbered x first; clusters of blocks stay together in that
    order."""

    def __init__(self, config: LaunchConfig) -> None:
        self.grid, self.block, self.cluster = config.grid, config.block, config.cluster
        self.threads = int(np.prod(self.block))
        self.warps = -(-self.threads // WARP)
        self.origin, self.extent = config.part or ((0, 0, 0), self.grid)
        self.blocks = int(np.prod(self.extent))
        self.cluster_size = int(np.prod(self.cluster))

    def waves(self, lanes: int) -> Iterator[np.ndarray]:
        """Block coordinates ``[B, 3]`` of each wave, whole clusters, about ``lanes`` threads at a time."""
        clusters = max(1, lanes // (self.warps * WARP * self.cluster_size))
        total = self.blocks // self.cluster_size
        for start in range(0, total, clusters):
            yield self._coordinates(np.arange(start, min(total, start + clusters)))

    def _coordinates(self, clusters: np.ndarray) -> np.ndarray:
        """``[B, 3]`` the coordinates of these clusters' blocks. Clusters, and blocks inside of each, count x first."""
        size = self.cluster
        counts = [g // c for g, c in zip(self.extent, size, strict=True)]
        rank = np.arange(self.cluster_size)
        within = np.stack([rank % size[0], rank // size[0] % size[1], rank // (size[0] * size[1])], 1)
        which = np.stack(
            [clusters % counts[0], clusters // counts[0] % counts[1], clusters // (counts[0] * counts[1])], 1
        )
        here = which[:, None, :] * np.array(size) + within[None, :, :] + np.array(self.origin)
        return here.reshape(-1, 3).astype(I32)

    def register(self, name: str, warps: np.ndarray, coords: np.ndarray) -> Any:
        """The value of a special register for the wave's ``warps``: a NumPy scalar if all lanes agree, else ``[L]``."""
        base, _, axis_name = name.partition(".")
        axis = "xyz".index(axis_name) if axis_name else 0
        if base == "tid":
            return self._thread(axis, warps)
        if base == "laneid":
            return np.tile(np.arange(WARP, dtype=I32), warps.size)
        if base == "warpid":
            return _spread((warps % self.warps).astype(I32))
        fixed = {"ntid": self.block, "nctaid": self.grid, "cluster_nctaid": self.cluster}.get(base)
        if fixed:
            return I32(fixed[axis])
        if base == "cluster_nctarank":
            return I32(self.cluster_size)
        if base == "nclusterid":
            return I32(self.grid[axis] // self.cluster[axis])
        here = coords[warps // self.warps]
        if base == "ctaid":
            return _spread(here[:, axis])
        if base == "clusterid":
            return _spread(here[:, axis] // I32(self.cluster[axis]))
        if base == "cluster_ctaid":
            return _spread(here[:, axis] % I32(self.cluster[axis]))
        if base == "cluster_ctarank":
            x, y, z = (here[:, k] % I32(self.cluster[k]) for k in range(3))
            return _spread((x + I32(self.cluster[0]) * (y + I32(self.cluster[1]) * z)).astype(I32))
        return _spread((warps // self.warps).astype(I32))  # smid: every resident block has its own multiprocessor

    def _thread(self, axis: int, warps: np.ndarray) -> np.ndarray:
        firsts = (warps % self.warps).astype(I32) * I32(WARP)
        linear: np.ndarray = (firsts[:, None] + np.arange(WARP, dtype=I32)).reshape(-1)
        if axis == 0:
            return linear if self.threads == self.block[0] == self.warps * WARP else linear % I32(self.block[0])
        if axis == 1:
            return linear // I32(self.block[0]) % I32(self.block[1])
        return linear // I32(self.block[0] * self.block[1])

    def existing(self, warps: np.ndarray) -> np.ndarray | None:
        """bool ``[L]`` of the lanes that are threads, or None when the block has whole warps only."""
        if self.threads % WARP == 0:
            return None
        linear = np.tile(np.arange(WARP), warps.size) + np.repeat(warps % self.warps * WARP, WARP)
        return linear < self.threads

    def thread_of(self, warp: int, lane: int) -> tuple[int, int, int]:
        linear = warp % self.warps * WARP + lane
        return (
            linear % self.block[0],
            linear // self.block[0] % self.block[1],
            linear // (self.block[0] * self.block[1]),
        )


def _spread(per_warp: np.ndarray) -> Any:
    first = per_warp[0]
    return I32(first) if (per_warp == first).all() else np.repeat(per_warp, WARP)
