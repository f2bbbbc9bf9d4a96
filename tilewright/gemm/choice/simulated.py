"""The kernel, and its size, that the simulator finishes first; and a warning where that takes long.

The simulator's time grows with the elements that tiles cover, and with the number of tiles: a tile costs as much as so
many of its elements. How many multiprocessors a GPU has, and what waits for what there, does not matter.
"""

from __future__ import annotations

import math
import warnings

from tilewright.gemm.choice.choose import with_tiles
from tilewright.gemm.config import AnyConfig
from tilewright.gemm.family.base import family_of
from tilewright.gemm.family.entry import KernelEntry
from tilewright.gemm.family.plan_options import Limits, Problem, kernel_extents

LONG = 20.0  # seconds that a user should know of before they have passed
PER_TILE = 1 << 14  # measured on 512^3 (Hopper) and 1024^3 (mma.sync) with the smallest and the largest tiles


def in_order_of_simulation(entries: list[KernelEntry]) -> list[KernelEntry]:
    """``entries``, which have the kernel that is fastest on a GPU first, for the simulator: where that is a kernel of
    wgmma, the one of mma.sync with the same types comes before it. It is simulated in about half of the time,
    because no warp waits for another one that loads."""
    first = entries[0].config
    if not first.persistent:
        return entries
    types = first.acc_dtype, first.c.dtype
    others = (e for e in entries if not e.config.persistent)
    simple = next((e for e in others if (e.config.acc_dtype, e.config.c.dtype) == types), None)
    return entries if simple is None else [simple, *(e for e in entries if e is not simple)]


def for_simulator(entry: KernelEntry, problem: Problem, limits: Limits) -> KernelEntry:
    """The entry in the size that takes least time on the simulator; without clusters, where there is a choice."""
    entries = with_tiles(entry, limits, entry.config, entry.large, *entry.small)
    single = [e for e in entries if e.config.cluster_size == 1]
    return min(single or entries or [entry], key=lambda e: simulated_work(e.config, problem))


def simulated_work(config: AnyConfig, problem: Problem) -> int:
    """Elements that the tiles of a product cover, and what they cost besides."""
    m, n, _, batch = kernel_extents(config, problem)
    bM, bN, _ = config.tile
    return -(-m // bM) * -(-n // bN) * batch * (bM * bN + PER_TILE)


def multiply_adds(config: AnyConfig, problem: Problem) -> int:
    """The multiply-adds of a product, whose tiles are computed as a whole, also at the edges."""
    m, n, k, batch = kernel_extents(config, problem)
    whole = (-(-extent // tile) * tile for extent, tile in zip((m, n, k), config.tile, strict=True))
    return math.prod(whole) * batch


class SlowSimulationWarning(UserWarning):
    """The simulator will take longer than 20 seconds for a product."""


def warn_if_slow(name: str, config: AnyConfig, problem: Problem) -> None:
    """Say how long the simulator will take, if that is long."""
    seconds = multiply_adds(config, problem) / family_of(config).simulated_rate(config)
    if seconds < LONG:
        return
    time = f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
    warnings.warn(
        f"the simulator will take about {time} for a product of {' x '.join(map(str, problem[:3]))} by {name}: a "
        "smaller one shows the same, and arrays on a GPU run there",
        SlowSimulationWarning,
        stacklevel=2,
    )
