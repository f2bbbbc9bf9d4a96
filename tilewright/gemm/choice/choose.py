"""Choosing tile and decomposition for a product."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from tilewright.errors import ArgumentError
from tilewright.gemm.config import AnyConfig
from tilewright.gemm.family.entry import KernelEntry
from tilewright.gemm.family.estimate import can_share
from tilewright.gemm.family.plan_options import Limits, PlanOption, Problem, Vector, plan_options
from tilewright.gemm.schedule.streamk import StreamK

DECOMPOSITIONS = ("auto", "data_parallel", "dynamic", "stream_k")
Option = tuple[KernelEntry, StreamK | None]


def best(
    entry: KernelEntry, decomposition: str | StreamK, problem: Problem, limits: Limits, reduction: str | None = None
) -> Option:
    """The entry with the tile that suits the problem on such a GPU, and its Stream-K plan; None where every
    block makes a tile of its own. With a ``reduction`` blocks share tiles, where any size can, and add up so."""
    if isinstance(decomposition, StreamK):
        entry.config.check()
        return entry_for_plan([entry, *with_tiles(entry, limits, *sizes_for_sharing(entry))], decomposition, problem)
    if not isinstance(decomposition, str) or decomposition not in DECOMPOSITIONS:
        known = ", ".join(DECOMPOSITIONS)
        raise ArgumentError(f"there is no decomposition {decomposition!r}: it is a StreamK, a SplitK or one of {known}")
    return fastest(entry, decomposition, problem, limits, reduction)


@lru_cache(maxsize=4096)
def fastest(
    entry: KernelEntry, decomposition: str, problem: Problem, limits: Limits, reduction: str | None = None
) -> Option:
    """The size that takes least time by the model. "stream_k" deals tiles out evenly where any size can win by it, even
    if another wins more without, or with tiles cut into equal parts."""
    options = KernelOptions.of(entry, limits)
    if reduction in (None, "none"):
        return options.fastest(problem, decomposition)
    return options.sharing(problem, reduction)


def size_to_share(entry: KernelEntry, problem: Problem, limits: Limits) -> KernelEntry:
    """The entry in the size for a plan of Stream-K that is made otherwise than by the model: in single blocks, if it
    has one."""
    options = KernelOptions.of(entry, limits)
    return options.entries[id(options.best(problem, "stream_k", options.model.shared_reduction.start).config)]


class KernelOptions:
    """A kernel in all its sizes, with all ways to share tiles, on one kind of GPU."""

    def __init__(self, entry: KernelEntry, limits: Limits) -> None:
        self.limits, family = limits, entry.family
        entries = [entry, *with_tiles(entry, limits, entry.large, *entry.small)]
        whole = [True] * len(entries)
        if entry.shared is not None:
            entries += with_tiles(entry, limits, entry.shared)
            whole += [False] * (len(entries) - len(whole))
        configs = [e.config for e in entries]
        for config in configs:
            config.check()
        self.entries = {id(config): e for config, e in zip(configs, entries, strict=True)}
        shares = [
            family.may_share(config) and not (entry.shared is not None and config is entry.config) for config in configs
        ]
        together = with_tiles(entry, limits, *(c for config in configs for c in family.joined_sizes(config)))
        if len(configs) == 1:  # a kernel in one size stays in it
            together = [entry] if together else []
        self.entries.update((id(e.config), e) for e in together)
        self.plan_options = plan_options(configs, whole, shares, family.parts, [e.config for e in together])
        self.model = family.model(self.plan_options, limits)

    @classmethod
    @lru_cache(maxsize=128)
    def of(cls, entry: KernelEntry, limits: Limits) -> KernelOptions:
        return cls(entry, limits)

    def best(self, problem: Problem, decomposition: str, last: int | None = None) -> PlanOption:
        """The option of least time, of those before ``last``."""
        times, first = self.times(problem, decomposition)
        return self.plan_options[first + int(times[: None if last is None else last - first].argmin())]

    def least_us(self, problem: Problem, decomposition: Any) -> float:
        """Microseconds of the best option, as far as the model counts them; for "stream_k", too, of all."""
        return float(self.times(problem, "auto" if decomposition == "stream_k" else decomposition)[0].min())

    def times(self, problem: Problem, decomposition: Any) -> tuple[Vector, int]:
        """Microseconds of the options of a decomposition, and the number of the first of them. Stream-K's are those
        that share tiles, where any can."""
        sharing = decomposition in ("auto", "stream_k")
        times = self.model.times(problem, sharing)
        if not sharing:
            return times[: self.model.one_block or None], 0
        first = self.model.even_shares.start if decomposition == "stream_k" else 0
        return (times[first:], first) if first < len(times) else (times, 0)

    def fastest(self, problem: Problem, decomposition: str) -> Option:
        return self.option(self.best(problem, decomposition), problem)

    def option(self, chosen: PlanOption, problem: Problem) -> Option:
        return self.entries[id(chosen.config)], chosen.plan(problem, self.limits)

    def sharing(self, problem: Problem, reduction: str) -> Option:
        """The option of least time whose blocks share tiles, and may add up as ``reduction`` says; without a plan
        where there is none."""
        if not can_share(problem, True):
            return self.fastest(problem, "data_parallel")
        model, times = self.model, self.model.times(problem)
        for these in (model.shared_reduction, model.even_shares) if reduction == "shared" else (model.even_shares,):
            for index in times[these].argsort(kind="stable").tolist():
                found = self.option(self.plan_options[these.start + index], problem)
                if found[1] is not None and found[1].cuts_tiles:
                    return found
        return self.fastest(problem, "data_parallel")


def sizes_for_sharing(entry: KernelEntry) -> tuple[AnyConfig | None, ...]:
    """The sizes of a kernel for blocks that share tiles."""
    return (entry.shared or entry.config, entry.large, *entry.small)


def with_tiles(entry: KernelEntry, limits: Limits, *configs: AnyConfig | None) -> list[KernelEntry]:
    """The entry with each of these configurations that the GPU has the shared memory for."""
    return [entry.only(c) for c in configs if c is not None and c.smem_bytes <= limits[1]]


def oriented(config: AnyConfig, problem: Problem) -> Problem:
    """The problem as the kernel sees it."""
    m, n, k, batch = problem
    return (n, m, k, batch) if config.transposed else problem


def entry_for_plan(entries: list[KernelEntry], plan: StreamK, problem: Problem) -> Option:
    """The entry whose tile cuts the problem as ``plan`` has it."""
    found = (*plan.tiled_shape, plan.iters_per_tile)
    wanted = []
    for entry in entries:
        (m, n, k, batch), (bM, bN, bK) = oriented(entry.config, problem), entry.config.cluster_tile
        wanted.append((-(-m // bM), -(-n // bN), batch, -(-k // bK)))
        if wanted[-1] == found and batch == 1:
            plan.check()
            if entry.config.cluster_k > 1 and plan.sk_tiles:
                raise ArgumentError(
                    f"the {entry.config.cluster_k} blocks of a cluster (cluster_k) share the k tiles of one tile, and "
                    "shares of several tiles go to others: take cluster_k=1"
                )
            if entry.config.pingpong and plan.sk_tiles:
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
