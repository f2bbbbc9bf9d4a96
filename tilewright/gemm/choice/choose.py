"""Choosing tile and decomposition for a product."""

from __future__ import annotations

from functools import lru_cache

from tilewright.errors import ArgumentError
from tilewright.gemm.choice.cost import estimate
from tilewright.gemm.choice.hopper_cost import hopper_estimate, k_tile
from tilewright.gemm.choice.registry import KernelEntry
from tilewright.gemm.config import AnyConfig, HopperConfig
from tilewright.gemm.schedule.streamk import StreamK

DECOMPOSITIONS = ("auto", "data_parallel", "dynamic", "stream_k")
MOST_PLANS = 12
Problem = tuple[int, int, int, int]  # M, N, K, L
Limits = tuple[int, int]  # multiprocessors of the GPU, shared memory of each in bytes
Option = tuple[KernelEntry, StreamK | None]


def best(entry: KernelEntry, decomposition: str | StreamK, problem: Problem, limits: Limits) -> Option:
    """The entry with the tile that suits the problem on such a GPU, and its Stream-K plan; None where every
    block makes a tile of its own."""
    entry.config.check()
    if isinstance(decomposition, StreamK):
        return fitting([entry, *with_tiles(entry, limits, *sharing(entry))], decomposition, problem)
    if not isinstance(decomposition, str) or decomposition not in DECOMPOSITIONS:
        known = ", ".join(DECOMPOSITIONS)
        raise ArgumentError(f"there is no decomposition {decomposition!r}: it is a StreamK or one of {known}")
    return fastest(entry, decomposition, problem, limits)


@lru_cache(maxsize=1024)
def fastest(entry: KernelEntry, decomposition: str, problem: Problem, limits: Limits) -> Option:
    whole: list[Option] = [(e, None) for e in (entry, *with_tiles(entry, limits, entry.large, *entry.small))]
    sharers = with_tiles(entry, limits, *sharing(entry))
    if len(sharers) > MOST_PLANS:
        # A plan takes longer than an estimate: make those of the sizes that do best with all multiprocessors busy.
        sharers = sorted(sharers, key=lambda e: evenly(e.config, problem, limits))[:MOST_PLANS]
    plans = [(e, plan_of(e.config, problem, limits)) for e in sharers]
    shared: list[Option] = [(e, plan) for e, plan in plans if plan is not None]
    options = {"auto": whole + shared, "stream_k": shared or whole}
    return min(options.get(decomposition, whole), key=lambda option: time_of(option, problem, limits))


def time_of(option: Option, problem: Problem, limits: Limits) -> float:
    """Microseconds, as the models have it."""
    entry, plan = option
    seen = oriented(entry.config, problem)
    if isinstance(entry.config, HopperConfig):
        return hopper_estimate(entry.config, plan, seen, limits)
    return estimate(entry.config, plan, seen, limits)


def evenly(config: AnyConfig, problem: Problem, limits: Limits) -> float:
    """Microseconds if the work could be dealt out evenly."""
    m, n, k, batch = oriented(config, problem)
    (bM, bN, bK), multiprocessors = config.tile, limits[0]
    tiles = -(-m // bM) * -(-n // bN) * batch
    if not isinstance(config, HopperConfig):
        return tiles * bM * bN
    return tiles / multiprocessors * -(-k // bK) * k_tile(config, k, 1.0)


def sharing(entry: KernelEntry) -> tuple[AnyConfig | None, ...]:
    """The sizes of a kernel for blocks that share tiles."""
    return (entry.shared or entry.config, entry.large, *entry.small)


def with_tiles(entry: KernelEntry, limits: Limits, *configs: AnyConfig | None) -> list[KernelEntry]:
    """The entry with each of these configurations that the GPU has the shared memory for."""
    return [entry.only(c) for c in configs if c is not None and c.smem_bytes <= limits[1]]


def plan_of(config: AnyConfig, problem: Problem, limits: Limits) -> StreamK | None:
    """The Stream-K plan, or None where its own model finds that no tile should be shared."""
    m, n, k, batch = oriented(config, problem)
    if batch != 1 or 0 in (m, n, k):
        return None
    if isinstance(config, HopperConfig) and config.cluster_size > 1:
        return None  # sums are exchanged between single blocks
    if isinstance(config, HopperConfig) and config.pingpong:
        return None  # warpgroups that take turns skip whole tiles of the ring
    multiprocessors, smem = limits
    occupancy = config.blocks_at_once(smem)
    plan = StreamK.of((m, n, k), config.tile, multiprocessors=multiprocessors, occupancy=occupancy, fragments=1)
    return plan if plan.sk_tiles else None


def oriented(config: AnyConfig, problem: Problem) -> Problem:
    """The problem as the kernel sees it."""
    m, n, k, batch = problem
    return (n, m, k, batch) if config.transposed else problem


def fitting(entries: list[KernelEntry], plan: StreamK, problem: Problem) -> Option:
    """The entry whose tile cuts the problem as ``plan`` has it."""
    found = (*plan.tiled_shape, plan.iters_per_tile)
    wanted = []
    for entry in entries:
        (m, n, k, batch), (bM, bN, bK) = oriented(entry.config, problem), entry.config.tile
        wanted.append((-(-m // bM), -(-n // bN), batch, -(-k // bK)))
        if wanted[-1] == found and batch == 1:
            plan.check()
            if isinstance(entry.config, HopperConfig) and entry.config.cluster_size > 1 and plan.sk_tiles:
                raise ArgumentError(
                    f"a cluster of {entry.config.cluster} blocks works on one tile after another; blocks that share "
                    "tiles exchange their sums one by one: take a cluster of (1, 1)"
                )
            if isinstance(entry.config, HopperConfig) and entry.config.pingpong and plan.sk_tiles:
                raise ArgumentError(
                    "warpgroups that take turns (pingpong) work on whole tiles, and blocks that share tiles on parts "
                    "of them: take pingpong=False, or decomposition='data_parallel'"
                )
            return entry, plan if plan.sk_tiles else None
    tilings = " or ".join(dict.fromkeys(map(_tiles, wanted)))
    raise ArgumentError(
        f"the decomposition is for {_tiles(found)}; the problem has {tilings}, and only a single product can share "
        "tiles"
    )


def _tiles(numbers: tuple[int, ...]) -> str:
    m, n, batch, k = numbers
    return f"{m} x {n}{f' x {batch}' if batch != 1 else ''} tiles of {k} k tiles"
