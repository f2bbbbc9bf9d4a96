"""The model's times of groups of products in all sizes of a kernel at once, and the choice among these.

What a size contributes does not depend on the products, so it is kept in arrays, with an element for each size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from tilewright.errors import ArgumentError
from tilewright.gemm.config import AnyConfig
from tilewright.gemm.family.hopper_cost import CROWD
from tilewright.gemm.family.plan_options import MIN_K_TILES, Limits, Vector
from tilewright.gemm.kernel.group_table import blocks_of_tile, whole_tile

LARGE_FLOPS = 1e11
"""From so many on power sets the clock: then what counts is how many elements of tiles are outside of products."""
NEAR = 1.02
"""Times of the model that differ by less are equal."""


@dataclass(frozen=True, eq=False)
class GroupTimes:
    """``sizes`` with what the model says of each: the extents along the products' M, N and K of a block's tile and of
    what is counted as one tile (3, sizes); how many of these are worked on at a time; microseconds of a k tile where
    loads do not hold it up, of its loads where all multiprocessors load, and of the ends of a tile; of a k tile where
    power holds it up, as it does in ``LARGE_FLOPS``."""

    family: Any
    sizes: tuple[AnyConfig, ...]
    multiprocessors: int
    block: Vector
    whole: Vector
    workers: Vector
    loop: Vector
    loads: Vector
    ends: Vector
    powered: Vector

    @classmethod
    def of(cls, family: Any, sizes: Sequence[AnyConfig], limits: Limits) -> GroupTimes:
        """``family``: a :class:`~tilewright.gemm.family.grouped.GroupedFamily`."""

        def along(config: AnyConfig, tile: tuple[int, int, int]) -> tuple[int, int, int]:
            bM, bN, bK = tile
            return (bN, bM, bK) if config.transposed else (bM, bN, bK)

        block = np.array([along(config, config.tile) for config in sizes], float).T
        whole = np.array([along(config, whole_tile(config)) for config in sizes], float).T
        workers = np.array([limits[0] / blocks_of_tile(config) for config in sizes])
        loop, loads, ends = np.array([family.rates_us(config, limits) for config in sizes]).T
        powered = np.array([family.powered_us(config) for config in sizes])
        return cls(family, tuple(sizes), limits[0], block, whole, workers, loop, loads, ends, powered)

    def us(self, extents: Vector, least: float = 0.0, powered: bool = True) -> Vector:
        """Microseconds of a group of (products, M N K), for each size, where memory takes ``least``: all
        multiprocessors share its tiles evenly, but half of them, on average, have no tile among the last ones; and one
        has the longest tile. ``powered``: large products are held up by power."""
        m, n, k = (np.ceil(extent / size[:, None]) for extent, size in zip(extents.T, self.whole, strict=True))
        tiles = m * n
        count = tiles.sum(axis=1)
        k_tile = self.k_tile_us(count / self.workers)
        if powered and 2 * extents.prod(axis=1).sum() >= LARGE_FLOPS:
            k_tile = np.maximum(k_tile, self.powered)
        time = k * k_tile[:, None] + self.ends[:, None]
        work = (tiles * time).sum(axis=1)
        evenly = np.maximum(least, work / self.workers) + work / np.maximum(count, 1) / 2
        found: Vector = np.maximum(evenly, time.max(axis=1))
        return found

    def shared_us(self, extents: Vector, least: float = 0.0, powered: bool = True) -> Vector:
        """The same where blocks share the k tiles of all tiles evenly: the longest tile does not matter. A share has a
        tile cut at either end, whose sums are exchanged."""
        m, n, k = (np.ceil(extent / size[:, None]) for extent, size in zip(extents.T, self.block, strict=True))
        tiles, sms = m * n, self.multiprocessors
        work, whole = (tiles * np.maximum(k, 1)).sum(axis=1), tiles.sum(axis=1)
        k_tile = self.k_tile_us(work / MIN_K_TILES / sms)
        times: Vector = np.maximum(work / sms, MIN_K_TILES) * k_tile + (whole / sms + 2) * self.ends
        return np.maximum(least, times)

    def k_tile_us(self, busy: Vector) -> Vector:
        """Microseconds of a k tile where a part ``busy`` of the multiprocessors works, at most all."""
        loads = self.loads * (1 + (CROWD - 1) * np.minimum(busy, 1)) / CROWD
        times: Vector = np.maximum(self.loop, loads)
        return times

    def fastest(self, extents: Vector, sharing: bool = False) -> AnyConfig:
        """The size that takes least time for a group of (products, M N K); ``sharing``: blocks share the tiles."""
        return self.sizes[int((self.shared_us if sharing else self.us)(extents).argmin())]

    def fastest_cut(
        self,
        extents: tuple[int, int, int],
        mode: int,
        groups: int,
        read: int,
        written: int,
        sharing: bool = False,
    ) -> AnyConfig:
        """The size for ``groups`` groups that cut ``mode`` of (M, N, K), where only the device knows how: a good one
        for groups of equal size and for those of a router that prefers some, of sizes as 1, 1 / 2, 1 / 3.

        Memory has ``read`` and ``written`` bytes to move; a size that is faster than memory is no better. Among sizes
        that are equal within the model's error the first one is taken, or, where most bytes are results, the one that
        writes the longest rows. ``sharing``: blocks share the tiles."""
        us, least = self.shared_us if sharing else self.us, self.family.memory_us(read + written)
        even = np.tile(np.array(extents, float), (groups, 1))
        uneven = even.copy()
        even[:, mode], uneven[:, mode] = np.ceil(extents[mode] / groups), skewed(extents[mode], groups)
        long = mode != 2  # where K is cut, main loops are short, and power was not measured
        times = us(even, least, long) + us(uneven, least, long)
        near = np.flatnonzero(times <= NEAR * times.min())
        if written > read:
            return max((self.sizes[i] for i in near), key=self.family.run_bytes)
        return self.sizes[int(near[0])]


@lru_cache(maxsize=64)
def skewed(extent: int, groups: int) -> Vector:
    """Sizes of groups that fall as 1 / (1 + i), of ``extent`` in all.

    >>> skewed(11, 3).tolist()
    [6.0, 3.0, 2.0]
    """
    shares = (1 / np.arange(1, groups + 1)).cumsum()
    ends: Vector = (shares / shares[-1] * extent).round()
    return np.diff(ends, prepend=0)


@lru_cache(maxsize=256)
def usable(family: Any, entry: Any, layouts: Any, limits: Limits, sharing: bool) -> GroupTimes:
    """The sizes of ``entry`` for operands of ``layouts`` (``family.layouts``) that the GPU has the shared memory for;
    those that have registers for ``sharing`` tiles, if any do. Made once for each of these arguments, of which every
    one may change the sizes: there are some hundred."""
    fitting = [size for size in family.sizes(entry, layouts) if size.smem_bytes <= limits[1]]
    if not fitting:
        raise ArgumentError(f"kernel {entry.name}: no size of it has room in the {limits[1]} bytes of shared memory")
    return GroupTimes.of(family, sharing and [size for size in fitting if family.shares(size)] or fitting, limits)
