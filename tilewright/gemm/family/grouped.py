"""Kernels for groups of products of different sizes: the same main loops, with tiles of all products in one launch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from tilewright import Int32
from tilewright.gemm.arrays import operand_of
from tilewright.gemm.blackwell_config import BlackwellConfig
from tilewright.gemm.block_scaled_config import BlockScaledConfig, BlockScaledSm120Config
from tilewright.gemm.config import AnyConfig, Major
from tilewright.gemm.family.accesses import ProductOperands
from tilewright.gemm.family.ampere_cost import blocks_at_once, k_tile_us
from tilewright.gemm.family.ampere_cost import ends_us as multistage_ends_us
from tilewright.gemm.family.blackwell_cost import k_tile_us as tcgen05_k_tile_us
from tilewright.gemm.family.blackwell_cost import store_us
from tilewright.gemm.family.entry import KernelEntry
from tilewright.gemm.family.hopper_cost import CROWD, MEMORY_PER_US, ends_us, loads_us, loop_us
from tilewright.gemm.family.plan_options import MIN_K_TILES, Limits, Vector
from tilewright.gemm.family.sm120_cost import loop_us as sm120_loop_us
from tilewright.gemm.family.suited import suited_entry, with_operands
from tilewright.gemm.kernel.gathered_hopper import MOST_GATHERED_ROWS, GatheredHopperGemm
from tilewright.gemm.kernel.gathered_tma import GatheredSm120Gemm, GatheredTensorMemoryGemm
from tilewright.gemm.kernel.group_table import blocks_of_tile, whole_tile
from tilewright.gemm.kernel.grouped import GroupedGemm
from tilewright.gemm.kernel.grouped_factors import GroupedBlockScaledGemm, GroupedBlockScaledSm120Gemm
from tilewright.gemm.kernel.grouped_hopper import GroupedHopperGemm
from tilewright.gemm.kernel.grouped_sm120 import GroupedSm120Gemm
from tilewright.gemm.kernel.grouped_tensor_memory import GroupedTensorMemoryGemm
from tilewright.gemm.sm120_config import MOST_SUMS

NEAR = 1.02
"""Times of the model that differ by less are equal."""


class GroupedFamily(ABC):
    """The form of a family's kernels that takes groups of products."""

    takes_rows: ClassVar[bool] = True
    """Whether some size reads rows of A by index."""

    @abstractmethod
    def kernel(self, config: Any, gathered: bool = False) -> Any:
        """The kernel, called with :meth:`arguments`; ``gathered``: rows of A are found by index."""

    def gathers(self, config: AnyConfig) -> bool:
        """Whether this size reads rows of A by index."""
        return True

    def shares(self, config: AnyConfig) -> bool:
        """Whether blocks of this size have registers to share tiles."""
        return True

    def arguments(self, launch: Any, table: Any, blocks: Int32) -> tuple[Any, ...]:
        """The kernel's arguments: the table of the products, and what is in the launch
        (``operators.group_launch``)."""
        return table, blocks, launch.groups, launch.function, launch.shares

    def refusal(self, sizes: Sequence[AnyConfig]) -> str | None:
        """Why no size of a kernel can take tiles of several products; None where one can."""
        return None

    @abstractmethod
    def sizes(self, entry: KernelEntry, products: Sequence[ProductOperands]) -> list[AnyConfig]:
        """The sizes of a kernel for operands with the layouts of these."""

    @abstractmethod
    def times_us(self, config: Any, busy: float, limits: Limits) -> tuple[float, float]:
        """Microseconds of a k tile, and of the ends of a tile, where a part ``busy`` of the multiprocessors works."""

    def time_us(self, config: AnyConfig, extents: Vector, limits: Limits) -> float:
        """Microseconds of a group of (products, M N K): all multiprocessors share its tiles evenly, and one has the
        longest tile."""
        (bM, bN, bK), workers = whole_tile(config), limits[0] / blocks_of_tile(config)
        m, n, k = extents.T[[1, 0, 2]] if config.transposed else extents.T
        tiles, k_tiles = np.ceil(m / bM) * np.ceil(n / bN), np.ceil(k / bK)
        k_tile, ends = self.times_us(config, min(1.0, float(tiles.sum()) / workers), limits)
        time = k_tiles * k_tile + ends
        return max(float((tiles * time).sum()) / workers, float(time.max()))

    def shared_us(self, config: AnyConfig, extents: Vector, limits: Limits) -> float:
        """The same where blocks share the k tiles of all tiles evenly: the longest tile does not matter. A share has a
        tile cut at either end, whose sums are exchanged."""
        bM, bN, bK = config.tile
        m, n, k = extents.T[[1, 0, 2]] if config.transposed else extents.T
        tiles, k_tiles = np.ceil(m / bM) * np.ceil(n / bN), np.maximum(np.ceil(k / bK), 1)
        work, whole = float((tiles * k_tiles).sum()), float(tiles.sum())
        k_tile, ends = self.times_us(config, min(1.0, work / MIN_K_TILES / limits[0]), limits)
        return max(work / limits[0], MIN_K_TILES) * k_tile + (whole / limits[0] + 2) * ends

    def memory_us(self, moved: int) -> float:
        """Microseconds in which memory moves as many bytes; 0 where other bounds decide."""
        return 0.0

    def run_bytes(self, config: Any) -> int:
        """Bytes of a row of D that one store writes."""
        return 0

    def fastest_cut(
        self,
        sizes: Sequence[AnyConfig],
        extents: tuple[int, int, int],
        mode: int,
        groups: int,
        read: int,
        written: int,
        limits: Limits,
        sharing: bool = False,
    ) -> AnyConfig:
        """The size for ``groups`` groups that cut ``mode`` of (M, N, K), where only the device knows how: a good one
        for groups of equal size and for those of a router that prefers some, of sizes as 1, 1 / 2, 1 / 3.

        Memory has ``read`` and ``written`` bytes to move: what is faster than that is not better. Of the sizes that are
        as good within the model's error it is the first one, or, where most bytes are results, the one that writes the
        longest rows. ``sharing``: blocks share the tiles."""
        time_us = self.shared_us if sharing else self.time_us
        least = self.memory_us(read + written)
        cases = np.tile(np.array(extents, float), (2, groups, 1))
        cases[0, :, mode] = np.ceil(extents[mode] / groups)
        cases[1, :, mode] = skewed(extents[mode], groups)
        times = [sum(max(least, time_us(size, case, limits)) for case in cases) for size in sizes]
        near = [size for size, time in zip(sizes, times, strict=True) if time <= NEAR * min(times)]
        return max(near, key=self.run_bytes) if written > read else near[0]


@lru_cache(maxsize=64)
def skewed(extent: int, groups: int) -> Vector:
    """Sizes of groups that fall as 1 / (1 + i), of ``extent`` in all.

    >>> skewed(11, 3).tolist()
    [6.0, 3.0, 2.0]
    """
    shares = (1 / np.arange(1, groups + 1)).cumsum()
    ends: Vector = (shares / shares[-1] * extent).round()
    return np.diff(ends, prepend=0)


class MultistageGroups(GroupedFamily):
    """With the widest accesses that all products allow."""

    def kernel(self, config: Any, gathered: bool = False) -> GroupedGemm:
        return GroupedGemm(config)

    def sizes(self, entry: KernelEntry, products: Sequence[ProductOperands]) -> list[AnyConfig]:
        if any(suited_entry(entry, product) is not entry for product in products):
            entry = entry.for_narrow
        listed = (config for config in (entry.config, entry.large, *entry.small) if config is not None)
        return [self.with_operands(config, products) for config in listed]

    def with_operands(self, config: Any, products: Sequence[ProductOperands]) -> AnyConfig:
        bM, bN, bK = config.tile
        A = tuple(one.A.read_as(config.a.dtype) for one in products)
        B = tuple(one.B.read_as(config.a.dtype).transposed() for one in products)
        results = tuple(matrix for one in products for matrix in (one.D, one.C))
        a, b = (operand_of(x, {Major.K: bK, Major.MN: extent}) for x, extent in ((A, bM), (B, bN)))
        c = operand_of(results, {Major.K: bN, Major.MN: bM})
        found: AnyConfig = replace(config, a=config.loadable(a), b=config.loadable(b), c=c)
        found.check()
        return found

    def times_us(self, config: Any, busy: float, limits: Limits) -> tuple[float, float]:
        return k_tile_us(config, limits[1])[0] / blocks_at_once(config, limits[1]), multistage_ends_us(config)


class HopperGroups(GroupedFamily):
    """With a tensor map for each operand of each product, which the kernel makes."""

    def kernel(self, config: Any, gathered: bool = False) -> GroupedHopperGemm:
        return GatheredHopperGemm(config) if gathered else GroupedHopperGemm(config)

    def arguments(self, launch: Any, table: Any, blocks: Int32) -> tuple[Any, ...]:
        return *launch.representatives(), table, launch.maps(), blocks, launch.groups, launch.function, launch.shares

    def gathers(self, config: AnyConfig) -> bool:
        """Registers of the threads that load have room for eight rows each."""
        return self.takes_rows and self.fits(config) and config.tile[0] <= MOST_GATHERED_ROWS

    def fits(self, config: AnyConfig) -> bool:
        return config.cluster_size == 1 and not config.pingpong and bool(config.producers)

    def memory_us(self, moved: int) -> float:
        return moved / MEMORY_PER_US

    def run_bytes(self, config: Any) -> int:
        elements = config.part[0] if config.transposed else config.epilogue_columns
        return int(elements * config.c.dtype.width // 8)

    def refusal(self, sizes: Sequence[AnyConfig]) -> str | None:
        if any(map(self.fits, sizes)):
            return None
        return "it takes no groups of problems: they want single blocks (cluster (1, 1)) without turns (pingpong)"

    def sizes(self, entry: KernelEntry, products: Sequence[ProductOperands]) -> list[AnyConfig]:
        """Without tiles whose warpgroups share the columns, where there are others: 4 to 6 % slower here (measured)."""
        fitting: list[Any] = [config for config in entry.sizes if self.fits(config)]
        taken = [config for config in fitting if config.consumers[1] == 1] or fitting
        return [with_operands(entry.only(config), products[0]) for config in taken]

    def times_us(self, config: Any, busy: float, limits: Limits) -> tuple[float, float]:
        loads = loads_us(config) * (1 + (CROWD - 1) * busy) / CROWD
        return max(self.loop_us(config), loads), ends_us(config, partial=False)

    def loop_us(self, config: Any) -> float:
        """Microseconds of a k tile where loads do not hold it up."""
        return loop_us(config)


class TensorMemoryGroups(HopperGroups):
    """The same on sm_100a and its like."""

    def kernel(self, config: Any, gathered: bool = False) -> GroupedHopperGemm:
        if isinstance(config, BlockScaledConfig):
            return GroupedBlockScaledGemm(config)
        return (GatheredTensorMemoryGemm if gathered else GroupedTensorMemoryGemm)(config)

    def fits(self, config: AnyConfig) -> bool:
        """Single blocks, and pairs of dense products: of block-scaled ones each group's factors would have to begin at
        the place of a pair."""
        if isinstance(config, BlackwellConfig) and not isinstance(config, BlockScaledConfig):
            return config.cluster_size == config.ctas
        return super().fits(config)

    def gathers(self, config: AnyConfig) -> bool:
        return super().fits(config)

    def shares(self, config: Any) -> bool:
        """Pairs have no memory for sums."""
        return bool(config.cluster_size == 1)

    def times_us(self, config: Any, busy: float, limits: Limits) -> tuple[float, float]:
        return tcgen05_k_tile_us(config), store_us(config)


class Sm120Groups(HopperGroups):
    """The same on sm_120a and its like."""

    def kernel(self, config: Any, gathered: bool = False) -> GroupedHopperGemm:
        if isinstance(config, BlockScaledSm120Config):
            return GroupedBlockScaledSm120Gemm(config)
        return (GatheredSm120Gemm if gathered else GroupedSm120Gemm)(config)

    def gathers(self, config: AnyConfig) -> bool:
        return self.fits(config)

    def shares(self, config: Any) -> bool:
        """Whether a thread has room beside its sums: what blocks exchange takes some 8 registers of addresses."""
        return bool(config.apart < MOST_SUMS[config.warpgroups])

    def loop_us(self, config: Any) -> float:
        return sm120_loop_us(config)
