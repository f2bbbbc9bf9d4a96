"""The choice of a kernel's size and decomposition for a product: the option that takes least time by a model.

    sizes of the kernel that the GPU has the shared memory for   KernelEntry: config, large, small, shared
    x ways to give tiles to blocks                               PlanOption: whole tiles, split-K, Stream-K
    -> microseconds of every option at once                      CostModel.times; the physics is in family/*_cost.py
    -> the least of those that ``decomposition`` allows          KernelOptions.best

Read on in :func:`best`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from tilewright.errors import ArgumentError
from tilewright.gemm.config import AnyConfig
from tilewright.gemm.family.entry import KernelEntry
from tilewright.gemm.family.estimate import can_share
from tilewright.gemm.family.plan_options import Limits, PlanOption, Problem, Vector, kernel_extents, plan_options
from tilewright.gemm.schedule.streamk import StreamK

DECOMPOSITIONS = ("auto", "data_parallel", "dynamic", "stream_k")
Option = tuple[KernelEntry, StreamK | None]
"""The entry in the size that is chosen, and its Stream-K plan; None where each block makes whole tiles."""


# -- the decision ------------------------------------------------------------------------------------------------------


def best(
    entry: KernelEntry, decomposition: str | StreamK, problem: Problem, limits: Limits, reduction: str | None = None
) -> Option:
    """The entry in the best size for the problem on a GPU with these ``limits``, and its plan. ``decomposition`` may be
    a user's plan, which fixes the tile. With a ``reduction``, blocks share tiles and add up in this way, if any size
    can. ArgumentError for a decomposition that does not exist, or a plan that fits no size."""
    if isinstance(decomposition, StreamK):
        entry.config.check()
        return entry_for_plan([entry, *with_tiles(entry, limits, *sizes_for_sharing(entry))], decomposition, problem)
    if not isinstance(decomposition, str) or decomposition not in DECOMPOSITIONS:
        choices = ", ".join(DECOMPOSITIONS)
        raise ArgumentError(
            f"there is no decomposition {decomposition!r}: it is a StreamK, a SplitK or one of {choices}"
        )
    return fastest(entry, decomposition, problem, limits, reduction)


@lru_cache(maxsize=4096)
def fastest(
    entry: KernelEntry, decomposition: str, problem: Problem, limits: Limits, reduction: str | None = None
) -> Option:
    """The option that takes least time by the model, for the name of a decomposition. "stream_k" gives blocks even
    shares if any size gains by them, even if another size is faster with whole tiles, or with tiles cut into equal
    parts."""
    options = KernelOptions.of(entry, limits)
    if reduction in (None, "none"):
        return options.fastest(problem, decomposition)
    return options.sharing(problem, reduction)


class KernelOptions:
    """All options of a kernel on one kind of GPU: its sizes, each with all ways to give tiles to blocks.
    ``plan_options`` has them in the order that :func:`plan_options` states; ``entries`` has the entry in each size, by
    the id of its configuration."""

    def __init__(self, entry: KernelEntry, limits: Limits) -> None:
        self.limits, family = limits, entry.family
        own = [entry, *with_tiles(entry, limits, entry.large, *entry.small)]
        # A kernel may have a size only for blocks that share tiles; for these it replaces the first size.
        only_shared = with_tiles(entry, limits, entry.shared)
        sizes = [*own, *only_shared]
        configs = [size.config for size in sizes]
        for config in configs:
            config.check()
        replaced = entry.config if entry.shared is not None else None
        whole = [True] * len(own) + [False] * len(only_shared)
        shares = [family.may_share(config) and config is not replaced for config in configs]
        # Sizes in which every block adds up a part of each tile. A kernel that was given one size keeps it.
        added_up = with_tiles(entry, limits, *(joined for config in configs for joined in family.joined_sizes(config)))
        if len(sizes) == 1 and added_up:
            added_up = [entry]
        self.entries = {id(size.config): size for size in (*sizes, *added_up)}
        self.plan_options = plan_options(configs, whole, shares, family.parts, [size.config for size in added_up])
        self.model = family.model(self.plan_options, limits)

    @classmethod
    @lru_cache(maxsize=128)
    def of(cls, entry: KernelEntry, limits: Limits) -> KernelOptions:
        """The options of a kernel on a kind of GPU, kept for later calls."""
        return cls(entry, limits)

    def fastest(self, problem: Problem, decomposition: str) -> Option:
        """The option of least time that the decomposition allows."""
        return self.option(self.best(problem, decomposition), problem)

    def best(self, problem: Problem, decomposition: str, last: int | None = None) -> PlanOption:
        """As :meth:`fastest`, among the options before number ``last``."""
        times, first = self.times(problem, decomposition)
        among = times if last is None else times[: last - first]
        return self.plan_options[first + int(among.argmin())]

    def times(self, problem: Problem, decomposition: Any) -> tuple[Vector, int]:
        """Microseconds of the options that a decomposition allows, which are neighbours in ``plan_options``, and the
        index of the first of them:

        - "data_parallel", "dynamic": whole tiles, each by one block
        - "stream_k": even shares, if this problem's tiles can be shared; else all
        - "auto": all; for a batch only whole tiles (no gain by shared tiles was measured)
        """
        sharing = decomposition == "stream_k" or decomposition == "auto" and problem[3] == 1
        times = self.model.times(problem, sharing)
        if not sharing:
            return times[: self.model.one_block or None], 0
        first = self.model.even_shares.start if decomposition == "stream_k" else 0
        return (times[first:], first) if first < len(times) else (times, 0)

    def least_us(self, problem: Problem, decomposition: Any) -> float:
        """Microseconds of the best option by the model; for "stream_k" of the best among all options."""
        if decomposition == "stream_k":
            return float(self.model.times(problem).min())
        return float(self.times(problem, decomposition)[0].min())

    def sharing(self, problem: Problem, reduction: str) -> Option:
        """The option of least time whose blocks share tiles and can add up as ``reduction`` says. If no plan cuts a
        tile: the best one of whole tiles."""
        if can_share(problem, True):
            model, times = self.model, self.model.times(problem)
            groups = [model.shared_reduction, model.even_shares] if reduction == "shared" else [model.even_shares]
            for these in groups:
                for index in times[these].argsort(kind="stable").tolist():
                    option = self.option(self.plan_options[these.start + index], problem)
                    if option[1] is not None and option[1].cuts_tiles:
                        return option
        return self.fastest(problem, "data_parallel")

    def option(self, chosen: PlanOption, problem: Problem) -> Option:
        """The entry in the size of an option, and the option's plan for this problem."""
        return self.entries[id(chosen.config)], chosen.plan(problem, self.limits)


# -- sizes -------------------------------------------------------------------------------------------------------------


def with_tiles(entry: KernelEntry, limits: Limits, *configs: AnyConfig | None) -> list[KernelEntry]:
    """The entry with each of these configurations that the GPU has the shared memory for."""
    return [entry.only(c) for c in configs if c is not None and c.smem_bytes <= limits[1]]


def sizes_for_sharing(entry: KernelEntry) -> tuple[AnyConfig | None, ...]:
    """The sizes of a kernel for blocks that share tiles."""
    return (entry.shared or entry.config, entry.large, *entry.small)


def size_to_share(entry: KernelEntry, problem: Problem, limits: Limits) -> KernelEntry:
    """The entry in the size for a plan of Stream-K that is made otherwise than by the model: in single blocks, if it
    has one."""
    options = KernelOptions.of(entry, limits)
    return options.entries[id(options.best(problem, "stream_k", options.model.shared_reduction.start).config)]


# -- a plan that the user gave -----------------------------------------------------------------------------------------


def entry_for_plan(entries: list[KernelEntry], plan: StreamK, problem: Problem) -> Option:
    """The entry whose tile divides the problem into the plan's numbers of tiles and k tiles."""
    tiling = (*plan.tiled_shape, plan.iters_per_tile)
    tilings = []
    for entry in entries:
        (m, n, k, batch), (bM, bN, bK) = kernel_extents(entry.config, problem), entry.config.cluster_tile
        tilings.append((-(-m // bM), -(-n // bN), batch, -(-k // bK)))
        if tilings[-1] == tiling and batch == 1:
            plan.check()
            need_plan_for_size(entry.config, plan)
            return entry, plan if plan.sk_tiles else None
    shown = " or ".join(dict.fromkeys(map(_tiles, tilings)))
    raise ArgumentError(
        f"the decomposition is for {_tiles(tiling)}; the problem has {shown}, and only a single product can share tiles"
    )


def need_plan_for_size(config: AnyConfig, plan: StreamK) -> None:
    """ArgumentError where blocks of this size cannot share tiles as the plan says."""
    if config.cluster_k > 1 and plan.sk_tiles:
        raise ArgumentError(
            f"the {config.cluster_k} blocks of a cluster (cluster_k) share the k tiles of one tile, and "
            "shares of several tiles go to others: take cluster_k=1"
        )
    if config.pingpong and plan.sk_tiles:
        raise ArgumentError(
            "warpgroups that take turns (pingpong) work on whole tiles, and blocks that share tiles on parts "
            "of them: take pingpong=False, or decomposition='data_parallel'"
        )


def _tiles(numbers: tuple[int, ...]) -> str:
    m, n, batch, k = numbers
    return f"{m} x {n}{f' x {batch}' if batch != 1 else ''} tiles of {k} k tiles"
