"""Kernels of wgmma and TMA: persistent blocks, clusters, warps that only load."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, ClassVar

from tilewright.gemm.config import AnyConfig, HopperConfig, Major
from tilewright.gemm.epilogue.scales import fits_block_scales
from tilewright.gemm.epilogue.tma_store import TmaStoreEpilogue
from tilewright.gemm.family import hopper_cost
from tilewright.gemm.family.accesses import OperandAccess, ProductOperands, operand_accesses
from tilewright.gemm.family.base import KernelFamily
from tilewright.gemm.family.estimate import CostModel
from tilewright.gemm.family.grouped import HopperGroups
from tilewright.gemm.family.hopper_cost import HopperModel
from tilewright.gemm.family.plan_options import Limits, Problem
from tilewright.gemm.kernel.dense import DenseGemm
from tilewright.gemm.kernel.warp_specialized import WarpSpecializedGemm
from tilewright.gemm.mainloop.tma import TmaMainloop
from tilewright.gemm.schedule.streamk import StreamK

JOINING_CLUSTERS = ((1, 1), (2, 1), (1, 2), (4, 1), (1, 4))
JOINING_COLUMNS = (64, 96, 128, 144, 160, 192, 224, 256)
LEAST_JOINED = 64 * 128
"""Clusters, columns and elements of a tile, for the sizes whose blocks add up together."""

SPARED = 5
"""Stages of which one may go to the epilogue: products of 2 to 127 k tiles were as fast or faster with one less."""

LEAST_PROMOTED = 3
"""Stages that are enough where sums are promoted, which takes longer than to load a k tile; then nothing hides the
epilogue, so memory for its buffers is worth more (measured for 8 to 128 k tiles)."""

HIDING_COLUMNS, SHORT_K = 128, 2048
"""Columns of a tile that leave registers for a long epilogue beside the other warpgroup's main loop, and the most K at
which the time of one shows (measured)."""


class Hopper(KernelFamily):
    """It takes what TMA reads: rows that begin at multiples of 16 bytes, on sm_90 alone."""

    model: ClassVar[type[CostModel]] = HopperModel
    mainloop: ClassVar[type[TmaMainloop]] = TmaMainloop
    whole_rows = TmaMainloop.ACCESS.whole
    packs = True  # a copy and this kernel are faster than another kernel on unaligned rows
    mixes_types = True
    splits_in_clusters = True
    grouped: ClassVar[Any] = HopperGroups()

    def kernel(self, config: Any) -> WarpSpecializedGemm:
        return WarpSpecializedGemm(config) if config.producers else DenseGemm(config)

    def with_block_scales(
        self, config: AnyConfig, rows: int | None, columns: int | None, smem: int
    ) -> AnyConfig | None:
        if not isinstance(config, HopperConfig) or not fits_block_scales(config, rows, columns):
            return None
        if rows is None or columns is None:  # those of one operand are loaded by the threads that multiply
            return config
        config = replace(config, block_scales=(rows, columns))
        while config.smem_bytes > smem and config.stages > LEAST_PROMOTED:
            config = replace(config, stages=config.stages - 1)
        return config.with_operands(config.a, config.b, config.c, smem)

    def writes(self, config: AnyConfig) -> bool:
        # TMA stores rows in multiples of 16 bytes, so no rows of 8 columns of 8 bits.
        assert isinstance(config, HopperConfig)
        extent = config.epilogue_columns if config.c.major is Major.K else config.tile[0]
        return extent * config.c.dtype.width % 128 == 0

    def epilogue_shows(self, problem: Problem, limits: Limits) -> bool:
        # The model of time knows no function's cost: gelu at 8192 x 8192 x 1024 takes 232 us by sizes that hide it and
        # 256 by the one that is best without it (196 and 199 without gelu).
        m, n, k, batch = problem
        return k <= SHORT_K and m * n * batch >= 4 * limits[0] * HIDING_COLUMNS**2  # four tiles a multiprocessor

    def hides_epilogue(self, config: AnyConfig) -> bool:
        return bool(config.pingpong and config.tile[1] <= HIDING_COLUMNS)

    def buffered(self, config: AnyConfig, smem: int) -> AnyConfig:
        """A buffer for each part of the epilogue, or as many as there is memory for: a part need not wait then until
        TMA has read the one before it, 0.05 us for each at the end of a small product. One of at least ``SPARED``
        stages is given up where that brings a buffer for all. Where warpgroups take turns, the other one multiplies
        meanwhile."""
        assert isinstance(config, HopperConfig)
        if config.pingpong or config.cluster_k > 1 or config.parts <= config.epilogue_buffers:
            return config
        whole = replace(config, epilogue_buffers=config.parts)
        fewer = replace(whole, stages=config.stages - 1)
        spared = config.stages > LEAST_PROMOTED if config.promote else config.stages >= SPARED
        if whole.smem_bytes > smem and spared and fewer.smem_bytes <= smem:
            return fewer
        while whole.smem_bytes > smem and whole.epilogue_buffers > config.epilogue_buffers:
            whole = replace(whole, epilogue_buffers=whole.epilogue_buffers - 1)
        return whole if whole.smem_bytes <= smem else config

    def simulated_rate(self, config: AnyConfig) -> float:
        return 2e9

    def piece_costs(self, config: AnyConfig, smem: int, several: bool) -> tuple[float, float, float]:
        assert isinstance(config, HopperConfig)
        k_tile = max(hopper_cost.loop_us(config), hopper_cost.loads_us(config))
        exchange = hopper_cost.PEER_ELEMENT * config.tile[0] * config.tile[1]
        return k_tile, exchange, hopper_cost.ends_us(config, False)

    def min_arch(self, config: AnyConfig) -> int:
        return 90

    def arch_refusal(self, config: AnyConfig, version: int) -> str | None:
        return None if version == 90 else f"it needs wgmma, which sm_90 has and sm_{version} does not"

    def accesses(self, config: AnyConfig, product: ProductOperands) -> list[OperandAccess]:
        return operand_accesses(product, self.mainloop.access(config.a.dtype), TmaStoreEpilogue.ACCESS)

    def product_refusal(self, config: AnyConfig, product: ProductOperands, decomposition: Any) -> str | None:
        if product.indirect is not None:
            return "TMA reads matrices whose rows and batches follow each other at strides, not by index or pointer"
        if product.shape[2] == 0:
            return "K is 0: there is nothing to load"
        if config.cluster_k > 1 and decomposition == "dynamic":
            return "blocks of a cluster that share the k tiles (cluster_k) make one tile, and draw none"
        k_tiles = -(-product.shape[2] // config.tile[2])
        if config.cluster_k > k_tiles:
            return f"the {config.cluster_k} blocks of a cluster (cluster_k) cannot share {k_tiles} k tiles"
        if isinstance(decomposition, StreamK) and decomposition.tiled_shape[2] != 1:
            return "a plan of shared tiles is for a single product"
        return None

    def may_share(self, config: AnyConfig) -> bool:
        """Sums are exchanged between single blocks, and warpgroups that take turns skip whole tiles of the ring."""
        return config.cluster_size == 1 and not config.pingpong

    def joined_sizes(self, config: AnyConfig) -> Iterator[HopperConfig]:
        """In narrow parts, so that there is one for each of many blocks. Tiles are large, as operands are read once for
        each; a few widths will do."""
        assert isinstance(config, HopperConfig)
        (bM, bN, _), columns = config.tile, config.part[1]
        if config.cluster not in JOINING_CLUSTERS or config.pingpong or config.cluster_k > 1:
            return
        if bM * bN >= LEAST_JOINED and columns in JOINING_COLUMNS:
            yield replace(config, epilogue_columns=8 if columns <= 144 else 16)

    def in_clusters(self, config: Any, slices: int) -> HopperConfig:
        """In parts of the epilogue that the blocks can share evenly, where there are such."""
        for columns in (64, 32, 16, 8):
            if columns <= config.epilogue_columns and config.part[1] % (columns * slices) == 0:
                config = replace(config, epilogue_columns=columns)
                break
        return replace(config, cluster_k=slices, cluster=(1, 1))

    def sharing_refusal(self, sizes: Iterable[AnyConfig]) -> str | None:
        sizes = list(sizes)
        if any(self.may_share(size) or any(self.joined_sizes(size)) for size in sizes):
            return None
        if any(size.pingpong for size in sizes):
            return "its warpgroups take turns (pingpong) on whole tiles, which blocks cannot share"
        if any(size.cluster_k > 1 for size in sizes):
            return "the blocks of its clusters (cluster_k) share the k tiles of one tile already"
        return "blocks of its clusters do not exchange sums: take a cluster of (1, 1), or give a StreamK"
