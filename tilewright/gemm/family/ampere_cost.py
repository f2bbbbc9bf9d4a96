"""How long an Ampere kernel (mma.sync or FMA units) will take on a problem, in all its sizes at once.

Times are in microseconds for 16-bit tensor-core kernels on an H200, where the constants were fitted (products from
16 x 4096 x 4096 to 8192^3, mostly within a fifth). The rates of other operands and of FMA units are nominal, not
fitted. Only ratios matter for the choice; on other GPUs they were not measured.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.gemm.config import GemmConfig
from tilewright.gemm.family.estimate import CostModel, can_share
from tilewright.gemm.family.plan_options import Limits, PlanOption, Problem, Vector

FLOPS_PER_US = 4.2e6  # of one multiprocessor with its tensor pipes full, 16-bit operands
RATES = {8: 2.0, 16: 1.0, 32: 0.5, 64: 0.1}  # of tensor cores by the width of their operands
SIMT_RATE = 0.1
BYTES_PER_US = 6.0e4  # of operands from L2 to one multiprocessor when all of them load
FOUR_WARPS = 0.74  # how much of either a block of four warps reaches when it has a multiprocessor to itself
LARGEST = 128 * 256  # elements of the largest tile
ENDS, ENDS_AREA = 2.0, 2.5  # microseconds of the prologue and epilogue of a tile: fixed, and of the largest tile's area
PEER, PEER_AREA = 0.5, 0.7  # microseconds of handing the sums of a tile over: fixed, and of the largest tile's area
SHARING = 2.0  # microseconds that the loop over shares costs once
NARROW = {
    64: 1.45,
    32: 2.1,
    16: 4.4,
    8: 8.0,
}  # a k tile whose operands come in accesses of this many bits instead of 128
GRANULAR, GRANULES = 1.08, 2.6  # a k tile of granules: how much slower than of 16 bytes, and microseconds at least


class AmpereModel(CostModel):
    """The ``options`` of one kernel on a GPU of ``limits``."""

    def __init__(self, options: Sequence[PlanOption], limits: Limits) -> None:
        super().__init__(options, limits)
        smem = limits[1]
        self.depth = self.of_each(lambda config: config.tile[2])  # k elements of a k tile
        self.parts = np.array([max(1, option.parts) for option in options], float)  # blocks of a tile
        self.at_once = self.of_each(lambda config: blocks_at_once(config, smem))  # blocks of a multiprocessor
        self.resident_blocks = self.at_once * self.sms  # blocks that the GPU holds at once
        self.full, self.alone_us = self.of_each(lambda config: k_tile_us(config, smem)).T.copy()
        self.ends, self.peer = self.of_each(ends_us), self.of_each(peer_us)
        self.once = np.array([option.parts != 1 for option in options]) * (SHARING + self.peer * self.parts)

    def times(self, problem: Problem, sharing: bool = True) -> Vector:
        m, n, k, batch = problem
        blocks = np.ceil(m / self.rows) * np.ceil(n / self.columns) * (self.parts * batch)
        k_tiles = np.ceil(k / (self.depth * self.parts))
        # The blocks of a wave run at once, on all multiprocessors, and hide each other's ends but for
        # the last. The blocks of the last wave may be alone on their multiprocessors, and then take less.
        waves = np.floor(blocks / self.resident_blocks)
        rest = blocks - waves * self.resident_blocks
        last_wave = np.where(rest > self.sms, self.full, (rest > 0) * self.alone_us)
        loops = (waves * self.full + last_wave) * k_tiles
        time: Vector = loops + (waves / self.at_once + (rest > 0)) * self.ends + self.once
        if not can_share(problem, sharing):
            return time[: self.unshared]
        time[self.even_shares] = self.even_us(blocks[self.even_shares], k_tiles[self.even_shares])
        return time

    def even_us(self, tiles: Vector, k_tiles: Vector) -> Vector:
        """Stream-K: whole tiles in all waves but the last two, of one block a multiprocessor; what follows is dealt out
        evenly. A share mostly has a tile cut at either end, and starts the pipeline for each of its tiles."""
        own, sms = self.even_shares, self.sms
        waves_before = np.maximum(np.floor(tiles / sms) - 1, 0)
        shared_tiles = tiles - waves_before * sms
        share = shared_tiles / sms  # tiles of one block
        loops = (waves_before * self.full[own] / self.at_once[own] + share * self.alone_us[own]) * k_tiles
        blocks_of_a_tile = np.ceil(sms / np.minimum(shared_tiles, sms))
        ends = self.ends[own] * (waves_before + share + 1)
        time: Vector = loops + ends + self.once[own] + self.peer[own] * (1 + blocks_of_a_tile)
        return time


def blocks_at_once(config: GemmConfig, smem: int) -> int:
    """Blocks that work on one multiprocessor at once: more than two do not make it faster."""
    return min(2, config.blocks_at_once(smem))


def ends_us(config: GemmConfig) -> float:
    """Microseconds of a tile without its k tiles: the first loads and the epilogue."""
    return ENDS + ENDS_AREA * config.tile[0] * config.tile[1] / LARGEST


def peer_us(config: GemmConfig) -> float:
    """Microseconds in which a block hands over the sums of a tile to another one."""
    return PEER + PEER_AREA * config.tile[0] * config.tile[1] / LARGEST


def k_tile_us(config: GemmConfig, smem: int) -> tuple[float, float]:
    """Microseconds of a k tile on a multiprocessor that holds as many blocks as it can, and one."""
    bM, bN, bK = config.tile
    width = config.a.dtype.width
    rate = RATES[width] if config.tensor_cores else SIMT_RATE
    flops = 2 * bM * bN * bK / (FLOPS_PER_US * rate)
    loads = (bM + bN) * bK * width / 8 / BYTES_PER_US
    at_once = blocks_at_once(config, smem)
    if config.granular(config.a) or config.granular(config.b):
        flops *= GRANULAR
        return max(flops * at_once, GRANULES), max(flops / FOUR_WARPS if at_once > 1 else flops, GRANULES)
    slower = NARROW.get(min(config.a.copy_bits, config.b.copy_bits), 1.0)
    full = max(flops, loads) * slower * at_once
    return full, max(flops / FOUR_WARPS, 0.9 * loads) * slower if at_once > 1 else full
