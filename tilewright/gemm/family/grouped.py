"""Kernels for groups of products of different sizes: the same main loops, with tiles of all products in one launch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, ClassVar

from tilewright import Int32
from tilewright.gemm.arrays import operand_of
from tilewright.gemm.blackwell_config import BlackwellConfig
from tilewright.gemm.block_scaled_config import BlockScaledConfig, BlockScaledSm120Config
from tilewright.gemm.config import AnyConfig, Major, Operand
from tilewright.gemm.family.accesses import ProductOperands
from tilewright.gemm.family.ampere_cost import blocks_at_once, k_tile_us
from tilewright.gemm.family.ampere_cost import ends_us as multistage_ends_us
from tilewright.gemm.family.blackwell_cost import k_tile_us as tcgen05_k_tile_us
from tilewright.gemm.family.blackwell_cost import store_us
from tilewright.gemm.family.entry import KernelEntry
from tilewright.gemm.family.hopper_cost import MEMORY_PER_US, ends_us, loads_us, loop_us, powered_us
from tilewright.gemm.family.plan_options import Limits
from tilewright.gemm.family.sm120_cost import loop_us as sm120_loop_us
from tilewright.gemm.family.suited import limited, of_operands, reading, suited_entry
from tilewright.gemm.kernel.gathered_hopper import MOST_GATHERED_ROWS, GatheredHopperGemm
from tilewright.gemm.kernel.gathered_tma import GatheredSm120Gemm, GatheredTensorMemoryGemm
from tilewright.gemm.kernel.grouped import GroupedGemm
from tilewright.gemm.kernel.grouped_factors import GroupedBlockScaledGemm, GroupedBlockScaledSm120Gemm
from tilewright.gemm.kernel.grouped_hopper import GroupedHopperGemm
from tilewright.gemm.kernel.grouped_sm120 import GroupedSm120Gemm
from tilewright.gemm.kernel.grouped_tensor_memory import GroupedTensorMemoryGemm
from tilewright.gemm.sm120_config import MOST_SUMS

ANY_TILE = {Major.K: 0, Major.MN: 0}
"""Extents of a tile that every access divides."""


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
    def layouts(self, entry: KernelEntry, products: Sequence[ProductOperands]) -> Any:
        """The properties of the operands that decide the sizes of a kernel, as a key."""

    @abstractmethod
    def sizes(self, entry: KernelEntry, layouts: Any) -> list[AnyConfig]:
        """The sizes of a kernel for operands of these layouts."""

    @abstractmethod
    def rates_us(self, config: Any, limits: Limits) -> tuple[float, float, float]:
        """Microseconds of a k tile where loads do not hold it up, of its loads where all multiprocessors load, and of
        the ends of a tile."""

    def powered_us(self, config: Any) -> float:
        """Microseconds of a k tile where power holds it up; 0 where that is not known."""
        return 0.0

    def memory_us(self, moved: int) -> float:
        """Microseconds in which memory moves as many bytes; 0 where other bounds decide."""
        return 0.0

    def run_bytes(self, config: Any) -> int:
        """Bytes of a row of D that one store writes."""
        return 0


class MultistageGroups(GroupedFamily):
    """With the widest accesses that all products allow."""

    def kernel(self, config: Any, gathered: bool = False) -> GroupedGemm:
        return GroupedGemm(config)

    def shares(self, config: Any) -> bool:
        """A thread with 128 sums has no registers left for the addresses of exchanged sums."""
        bM, bN, _ = config.tile
        return bool(bM * bN * config.acc_dtype.width < 128 * 32 * config.threads)

    def layouts(self, entry: KernelEntry, products: Sequence[ProductOperands]) -> Any:
        """Whether accesses are narrow; the operands with the widest accesses to all, whatever the tile."""
        narrow, dtype = any(suited_entry(entry, product) is not entry for product in products), entry.config.a.dtype
        A = tuple(one.A.read_as(dtype) for one in products)
        B = tuple(one.B.read_as(dtype).transposed() for one in products)
        results = tuple(matrix for one in products for matrix in (one.D, one.C))
        return narrow, tuple(operand_of(matrices, ANY_TILE) for matrices in (A, B, results))

    def sizes(self, entry: KernelEntry, layouts: Any) -> list[AnyConfig]:
        narrow, operands = layouts
        if narrow:
            entry = entry.for_narrow
        listed = (config for config in (entry.config, entry.large, *entry.small) if config is not None)
        return [self.with_operands(config, *operands) for config in listed]

    def with_operands(self, config: Any, a: Operand, b: Operand, c: Operand) -> AnyConfig:
        bM, bN, bK = config.tile
        a, b = (limited(x, bK if x.major is Major.K else extent) for x, extent in ((a, bM), (b, bN)))
        c = limited(c, bN if c.major is Major.K else bM)
        result: AnyConfig = replace(config, a=config.loadable(a), b=config.loadable(b), c=c)
        result.check()
        return result

    def rates_us(self, config: Any, limits: Limits) -> tuple[float, float, float]:
        return k_tile_us(config, limits[1])[0] / blocks_at_once(config, limits[1]), 0.0, multistage_ends_us(config)


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

    def layouts(self, entry: KernelEntry, products: Sequence[ProductOperands]) -> Any:
        """The operands of the first product, as it is and transposed: all have the same layouts."""
        return tuple(products[0].operands(*how) for how in readings(entry))

    def sizes(self, entry: KernelEntry, layouts: Any) -> list[AnyConfig]:
        """Without tiles whose warpgroups share the columns, where there are others: 4 to 6 % slower here (measured)."""
        fitting: list[Any] = [config for config in entry.sizes if self.fits(config)]
        taken = [config for config in fitting if config.consumers[1] == 1] or fitting
        operands = dict(zip(readings(entry), layouts, strict=True))
        return [of_operands(entry.only(config), *operands[reading(config)]) for config in taken]

    def rates_us(self, config: Any, limits: Limits) -> tuple[float, float, float]:
        return self.loop_us(config), loads_us(config), ends_us(config, partial=False)

    def powered_us(self, config: Any) -> float:
        return powered_us(config)

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

    def powered_us(self, config: Any) -> float:
        return 0.0

    def shares(self, config: Any) -> bool:
        """Pairs have no memory for sums."""
        return bool(config.cluster_size == 1)

    def rates_us(self, config: Any, limits: Limits) -> tuple[float, float, float]:
        return tcgen05_k_tile_us(config), 0.0, store_us(config)


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

    def powered_us(self, config: Any) -> float:
        return 0.0

    def loop_us(self, config: Any) -> float:
        return sm120_loop_us(config)


@lru_cache(maxsize=256)
def readings(entry: KernelEntry) -> tuple[Any, ...]:
    """The ways in which the sizes of a kernel see a product's operands, each once."""
    return tuple(dict.fromkeys(map(reading, entry.sizes)))
