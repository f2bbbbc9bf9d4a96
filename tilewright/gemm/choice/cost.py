"""How long an Ampere kernel (mma.sync or FMA units) will take on a problem: all its sizes at once, as vectors.

Times are in microseconds for 16-bit tensor-core kernels on an H200, where the constants were fitted (products from
16 x 4096 x 4096 to 8192^3, mostly within a fifth). The rates of other operands and of FMA units are nominal, not
fitted. Only ratios matter for the choice; on other GPUs they were not measured.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.gemm.choice.ways import EVEN, Limits, Problem, Vector, Way, rows
from tilewright.gemm.config import GemmConfig

FLOPS_PER_US = 4.2e6  # of one multiprocessor with its tensor pipes full, 16-bit operands
RATES = {8: 2.0, 16: 1.0, 32: 0.5, 64: 0.1}  # of tensor cores by the width of their operands
SIMT_RATE = 0.1
BYTES_PER_US = 6.0e4  # of operands from L2 to one multiprocessor when all of them load
FOUR_WARPS = 0.74  # how much of either a block of four warps reaches when it has a multiprocessor to itself
LARGEST = 128 * 256
SHARING = 2.0  # what the shared loop costs once
NARROW = {64: 1.45, 32: 2.1, 16: 4.4, 8: 8.0}  # a k tile whose operands come in accesses of so many bits, not of 128


GRANULAR, GRANULES = 1.08, 2.6  # a k tile of granules: how much slower than of 16 bytes, and microseconds at least


class AmpereModel:
    """The options ``ways`` of one kernel on a GPU of ``limits``."""

    def __init__(self, ways: Sequence[Way], limits: Limits) -> None:
        self.even = sum(way.parts != EVEN for way in ways)  # where Stream-K's options begin
        self.single = sum(way.parts == 1 for way in ways)  # how many give each tile to one block
        configs: list[GemmConfig] = [way.config for way in ways]  # type: ignore[misc]
        parts = np.array([max(1, way.parts) for way in ways])
        self.extents = rows([config.tile for config in configs])  # (M N K, options)
        self.extents[2] *= parts
        self.parts, self.multiprocessors = parts.astype(float), float(limits[0])
        at_once = np.array([min(2, config.blocks_at_once(limits[1])) for config in configs])
        self.at_once, self.capacity = at_once, at_once * self.multiprocessors
        self.full, self.alone = rows([k_tile_us(config, limits[1]) for config in configs])
        area = np.array([config.tile[0] * config.tile[1] / LARGEST for config in configs])
        self.ends, peer = 2.0 + 2.5 * area, 0.5 + 0.7 * area
        self.once = np.array([way.parts != 1 for way in ways]) * (SHARING + peer)
        self.once += peer * (self.parts - 1.0)
        self.peer = peer[self.even :]

    def times(self, problem: Problem, sharing: bool = True) -> Vector:
        """As :meth:`HopperModel.times`."""
        m, n, k, batch = problem
        last = None if sharing and batch == 1 and m and n and k else self.single
        lines, columns, k_tiles = np.ceil(np.array(((m,), (n,), (k,)), float) / self.extents[:, :last])
        blocks = lines * columns * (self.parts[:last] * batch)
        waves = np.floor(blocks / self.capacity[:last])
        rest = blocks - waves * self.capacity[:last]
        part = np.where(rest > self.multiprocessors, self.full[:last], self.alone[:last]) * (rest > 0.0)
        # Blocks that share a multiprocessor hide each other's ends but for the last.
        time = (waves * self.full[:last] + part) * k_tiles
        time += self.ends[:last] * (waves / self.at_once[:last] + (rest > 0.0))
        if last is not None:
            return time
        time += self.once
        even = slice(self.even, None)
        # Stream-K: one block on each multiprocessor for the last wave, and the one before it. A share mostly
        # has a tile cut at either end, and starts the pipeline for each of its tiles.
        tiles = blocks[even] / self.multiprocessors
        before = np.maximum(np.floor(tiles) - 1.0, 0.0)
        share = tiles - before
        time[even] = before * self.full[even] / self.at_once[even] * k_tiles[even] + self.ends[even] * before
        time[even] += share * k_tiles[even] * self.alone[even] + self.ends[even] * (share + 1.0)
        time[even] += self.once[even] + self.peer * (1.0 + np.ceil(1.0 / np.minimum(share, 1.0)))
        return time

    def least(self, problem: Problem, sharing: bool, first: int = 0) -> int:
        """As :meth:`HopperModel.least`."""
        time = self.times(problem, sharing)
        first = first if first < len(time) else 0
        return int(time[first:].argmin()) + first


def k_tile_us(config: GemmConfig, smem: int) -> tuple[float, float]:
    """Microseconds of a k tile on a multiprocessor that holds as many blocks as it can, and one."""
    bM, bN, bK = config.tile
    width = config.a.dtype.width
    rate = SIMT_RATE if config.math == "simt" else RATES[width]
    flops = 2 * bM * bN * bK / (FLOPS_PER_US * rate)
    loads = (bM + bN) * bK * width / 8 / BYTES_PER_US
    at_once = min(2, config.blocks_at_once(smem))
    if config.granular(config.a) or config.granular(config.b):
        flops *= GRANULAR
        return max(flops * at_once, GRANULES), max(flops / FOUR_WARPS if at_once > 1 else flops, GRANULES)
    slower = NARROW.get(min(config.a.copy_bits, config.b.copy_bits), 1.0)
    full = max(flops, loads) * slower * at_once
    return full, max(flops / FOUR_WARPS, 0.9 * loads) * slower if at_once > 1 else full
