"""How long an Ampere kernel (mma.sync or FMA units) will take on a problem: all its sizes at once, as vectors.

Times are in microseconds for 16-bit tensor-core kernels on an H200, where the constants were fitted (products from
16 x 4096 x 4096 to 8192^3, mostly within a fifth). The rates of other operands and of FMA units are nominal, not
fitted. Only ratios matter for the choice; on other GPUs they were not measured.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy import add, ceil, divide, floor, maximum, minimum, multiply, subtract

from tilewright.gemm.choice.estimate import LESS, MORE, Model, Scratch, cut, near, single
from tilewright.gemm.choice.ways import Limits, Problem, Way, rows
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


class AmpereModel(Model):
    """The options ``ways`` of one kernel on a GPU of ``limits``."""

    def __init__(self, ways: Sequence[Way], limits: Limits) -> None:
        super().__init__(ways)
        configs: list[GemmConfig] = [way.config for way in ways]  # type: ignore[misc]  # of one kernel
        parts = np.array([max(1, way.parts) for way in ways])
        counts = LESS / rows([config.tile for config in configs])  # (M N K, options)
        counts[2] /= parts
        at_once = np.array([min(2, config.blocks_at_once(limits[1])) for config in configs])
        wave = parts / limits[0]  # of a tile; one block on each multiprocessor is a wave
        full, alone = rows([k_tile_us(config, limits[1]) for config in configs])
        area = np.array([config.tile[0] * config.tile[1] / LARGEST for config in configs])
        ends, peer = 2.0 + 2.5 * area, 0.5 + 0.7 * area
        once = np.array([way.parts != 1 for way in ways]) * (SHARING + peer) + peer * (parts - 1.0)
        # A turn is as many waves as fit on the multiprocessors at once. The blocks of a turn hide each other's ends
        # but for the last; the last turn's blocks may be alone.
        saved = full - alone
        vectors = (
            *counts, near(ways) * wave, LESS * wave / at_once, MORE * wave / at_once, saved, full - 2.0 * saved,
            ends * (1.0 - 1.0 / at_once), ends, once,
        )  # fmt: skip
        self.vectors = {shares: tuple(single(vector[: None if shares else self.single]) for vector in vectors)
                        for shares in (False, True)}  # fmt: skip
        even = slice(self.even, None)
        self.shared = tuple(single(vector[even]) for vector in (
            full / at_once, ends, alone, once + ends + peer, peer, once + ends + 2.0 * peer, np.ones(self.options)
        ))  # fmt: skip

    def fill(self, problem: Problem, shares: bool, scratch: Scratch) -> None:
        by_m, by_n, by_k, wave, turn, done, saved, rate, hidden, ends, once = self.vectors[shares]
        cut(problem, by_m, by_n, by_k, scratch)
        waves, time, turns, spare = scratch.waves, scratch.time, scratch.columns, scratch.more
        tiles = multiply(scratch.lines, scratch.columns, scratch.lines)
        if problem[3] != 1:
            tiles *= problem[3]
        multiply(tiles, wave, waves)
        ceil(multiply(tiles, turn, turns), turns)
        floor(multiply(tiles, done, tiles), tiles)
        multiply(turns, rate, time)
        add(time, multiply(ceil(waves, spare), saved, spare), time)
        multiply(time, scratch.k_tiles, time)
        add(time, multiply(turns, ends, turns), time)
        subtract(time, multiply(tiles, hidden, tiles), time)
        add(time, once, time)
        if shares:
            scratch.shared[0][:] = self.shared[-2]

    def share(self, problem: Problem, scratch: Scratch) -> None:
        full, ends, alone, once, peer, _, ones = self.shared
        time, tiles, k_tiles = scratch.shared
        before, share, spare = scratch.spare
        # Stream-K: one block on each multiprocessor for the last wave, and the one before it. A share mostly
        # has a tile cut at either end, and starts the pipeline for each of its tiles.
        maximum(tiles, ones, out=before)
        subtract(floor(before, before), ones, before)
        subtract(tiles, before, share)
        multiply(before, full, time)
        add(time, multiply(share, alone, spare), time)
        multiply(time, k_tiles, time)
        add(time, multiply(add(before, share, spare), ends, spare), time)
        minimum(share, ones, out=share)
        multiply(ceil(divide(ones, share, share), share), peer, share)
        add(time, share, time)
        add(time, once, time)

    def join(self, problem: Problem, scratch: Scratch) -> None:
        """There are none: blocks of these kernels need not run at once."""


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
