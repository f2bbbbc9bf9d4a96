"""How long a Hopper kernel will take on a problem: all its sizes, with and without shared tiles, at once.

A wave is one tile on each multiprocessor. Its time is the main loop's, the greatest of the tensor cores', the loads'
and the latency that the stages leave uncovered, plus the ends of a tile. What all options have in common, the launch
and the bounds that memory and power set to the whole product, is left out: it does not change the choice. Times are in
microseconds for 16-bit operands on an H200, where bench/fit.py fitted the constants to 10,800 timings of 310 products
from 2 to 1200 microseconds, launches in a row; 8-bit operands count at twice the rate. Only ratios matter for the
choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log2
from typing import Any, NamedTuple

import numpy as np

from tilewright.gemm.config import HopperConfig
from tilewright.gemm.family.estimate import CostModel, can_share
from tilewright.gemm.family.plan_options import INFEASIBLE_US, Limits, PlanOption, Problem, Vector
from tilewright.lang.tools.hardware import clusters_at_once

FLOPS_PER_US = 7.73e6  # of one multiprocessor at its full clock, 16-bit operands
POWERED_LAST, LARGE = 0.1, 1024  # in large products, where power sets the clock: the end of the last tile, a part; the
# least rows and columns of such products
INSTRUCTION = 36.5  # cost of issuing one wgmma, in columns
TURNS = 1.11  # factor on the FLOPs of a k tile where warpgroups take turns: one issues while the other waits
ALONE = 1.08  # one warpgroup does not keep the tensor cores busy between its groups of wgmma
SPARSE_RATE = 1.5  # of the dense rate, where A is 2:4 sparse: 2 but for power and B's bytes from shared memory
BYTES_PER_US = 6.84e4  # from L2 to one multiprocessor when all of them load
CROWD = 1.96  # how much faster one alone is
PROMOTED = 0.19  # a k tile whose sums are added to others: the instructions of a warp between two groups of wgmma
MISALIGNED = 1.27  # how much slower rows are that do not begin at multiples of 128 bytes
SHARERS = 0.609  # n blocks that share an operand load it as if each had 1 / n^0.6 of it
MEMORY_PER_US = 4.46e6  # bytes from memory
L2_BYTES = 2.4e7  # of an operand that stays in L2 together with the other
AGAIN, STREAMED = 0.2, 8e6  # of an operand of more bytes than that, what it costs that clusters read it apart from each
# other, as a part of its time from memory: it is still on its way from there when the second asks
LATENCY, FURTHER = 0.596, 0.632  # of a load; more for each doubling of a cluster whose blocks wait for each other
PART, STORE = 0.0526, 8.62e-5  # the end of a tile: for each part and for each element of it
PARTIAL, SECTOR = 1.27e-3, 32  # for each sector of 32 bytes that two stores write: one at each end of a row of a part
TURN = 0.2  # from one turn to the next
TURN_STORE = 1.03  # how much slower the end of a tile is during the other warpgroup's loop
LAST_PART = 0.708  # the end of the last tile, which nothing hides: a part
SHARED = 1.16  # how much slower the shared loop is
SHARING, PEER_ELEMENT = 3.96, 6.95e-5  # exchanging sums: once, and for each element of each block of a tile
JOINING, JOIN_ELEMENT = 2.27, 4.58e-4  # where all blocks of a tile add up: once, and for each element of a tile
SLICING, SLICE_ELEMENT = 0.02, 2.79e-4  # the same inside of a cluster
CLUSTER = 0.0805  # the start of a cluster, for each doubling
HALF_FREE = 0.132  # saved where the next launch finds room for all of its blocks next to this one's
SOME_FREE = 0.716  # lost where it finds room for some, for each part of a wave that is free: those begin early, next to
# each other, and have more than their share of the way to L2
FIXED_US = 2.1  # launch, first loads, last stores: the same for all sizes, and so not in the model's times


class Power(NamedTuple):
    """What power leaves of the tensor cores in large products: FLOPs a microsecond of one multiprocessor, the cost of
    issuing one wgmma, in columns; without turns, the factor, and the part of the ends of tiles after which the clock is
    faster; the least FLOPs of such a product; bytes a microsecond from L2 to one multiprocessor when all load."""

    rate: float
    columns: float
    together: float
    ends: float
    least: float
    loaded: float


POWER = {8: Power(11.7e6, 10, 0.99, 0.3, 0.0, 8.5e4), 16: Power(6.2e6, 0, 1.02, 0.5, 1e11, BYTES_PER_US)}
"""By the bits of floats: from 77 timings of 10 products on two GPUs; from those of 19, and 18 of 3 on a GPU that is
slower, where every size multiplies at 5.3e6 to 5.5e6, so that what counts is how full the waves are."""

PROMOTED_POWER = Power(11.7e6, 5, 1.0, 0.3, 0.0, BYTES_PER_US)
SCALE_GROUP = 0.01
"""The same where sums of 8-bit floats are promoted, and microseconds of a k tile for each further group of columns that
have other scales: from 40 timings of 6 products."""


class HopperModel(CostModel):
    """The ``options`` of one kernel, whose operands have the same types, on a GPU of ``limits``."""

    def __init__(self, options: Sequence[PlanOption], limits: Limits) -> None:
        super().__init__(options, limits)
        of_each = self.of_each
        self.bytes_in, self.bytes_out = (x.dtype.width / 8 for x in (options[0].config.b, options[0].config.c))
        self.depth = of_each(lambda config: config.tile[2] * config.cluster_k)  # k elements of a k tile of a cluster
        self.workers = of_each(lambda config: clusters_at_once(self.sms, config.cluster_size))
        self.loop, self.loads, self.begin = of_each(loop_us), of_each(loads_us), of_each(begin_us)
        self.powered, self.hidden, self.hidden_ends = map(of_each, (powered_us, hidden_us, hidden_ends_us))
        self.is_powered = bool(self.powered.any())
        config: Any = options[0].config
        power = power_of(config)
        self.least_powered, self.loaded = (power.least, power.loaded) if power else (0.0, BYTES_PER_US)
        self.ends = {False: of_each(lambda c: ends_us(c, False)), True: of_each(lambda c: ends_us(c, True))}
        self.store = {False: of_each(lambda c: store_us(c, False)), True: of_each(lambda c: store_us(c, True))}
        elements = of_each(lambda config: config.tile[0] * config.tile[1])  # of D in a tile of one block
        self.peer = PEER_ELEMENT * elements
        self.joining = JOINING + JOIN_ELEMENT * elements
        pingpong = sum(option.parts == 1 and option.config.pingpong for option in options)
        self.turns = slice(self.one_block - pingpong, self.one_block)

    def times(self, problem: Problem, sharing: bool = True) -> Vector:
        m, n, k, batch = problem
        waves = np.ceil(m / self.rows) * np.ceil(n / self.columns) / self.workers
        if batch != 1:
            waves *= batch
        k_tiles = np.ceil(k / self.depth)
        working = np.minimum(waves, self.ones)  # the part of the multiprocessors that works
        working[self.unshared :] = 1.0  # all of them where tiles are shared
        misaligned = MISALIGNED if k * self.bytes_in % 128 else 1.0
        loads = self.loads * (misaligned / CROWD + misaligned * (CROWD - 1) / CROWD * working)
        powered = self.is_powered and m >= LARGE and n >= LARGE and 2 * m * n * k * batch >= self.least_powered
        if powered:
            k_tile = np.maximum(np.maximum(loads * (BYTES_PER_US / self.loaded), self.loop), self.powered * working)
        else:
            k_tile = np.maximum(loads, self.loop)
        loop = k_tile * k_tiles  # of a tile
        partial = n * self.bytes_out % SECTOR != 0
        own = slice(0, self.unshared)
        time = [self.whole_us(loop[own], waves[own], working[own], partial)]
        if powered:
            time[0] -= self.hidden[own] + np.ceil(waves[own]) * self.hidden_ends[own]
        if can_share(problem, sharing):
            own = self.even_shares
            time.append(self.even_us(problem, loop[own], waves[own], partial))
            own = self.shared_reduction
            time.append(self.shared_reduction_us(problem, k_tile[own], k_tiles[own], waves[own]))
        result = np.concatenate(time)
        for extent, other, reach in ((m, n, self.columns), (n, m, self.rows)):
            if (read := extent * k * self.bytes_in) > STREAMED:
                result += (reach[: result.size] < other) * (AGAIN * read / MEMORY_PER_US)
        return result

    def whole_us(self, loop: Vector, waves: Vector, working: Vector, partial: bool) -> Vector:
        """Each tile is one block's or cluster's, and a wave takes as long as a tile, of whose k tiles ``loop`` is the
        time."""
        tile = loop + self.ends[partial][: self.unshared]
        # Where warpgroups take turns, one writes while the other multiplies: two tiles take at least as long as the
        # loop and the end of one.
        turns = self.turns
        tile[turns] = np.maximum(tile[turns], (loop[turns] + TURN_STORE * self.store[partial][turns]) / 2)
        some_free = (waves > 0.5) * (SOME_FREE + HALF_FREE - SOME_FREE * working)
        time: Vector = np.ceil(waves) * tile + some_free + (self.begin[: self.unshared] - HALF_FREE)
        return time

    def even_us(self, problem: Problem, loop: Vector, waves: Vector, partial: bool) -> Vector:
        """Stream-K: what follows the last full wave but one is dealt out evenly, ``in_shares`` tiles to each block."""
        m, n, k, _ = problem
        own, ones = self.even_shares, self.ones[self.even_shares]
        in_shares = waves - np.maximum(np.floor(waves), ones) + 1
        tiles = waves + in_shares * (SHARED - 1)  # as many would take as long if none were shared
        time = loop * tiles + self.ends[partial][own] * np.maximum(tiles, ones)
        # Shares that begin anywhere in K do not read the same slices of an operand at the same time: what L2 does not
        # hold comes from memory for each tile again.
        row_bytes = k * self.bytes_in
        if max(m, n) * row_bytes > L2_BYTES:
            rereads = (m * row_bytes > L2_BYTES) * self.rows[own] + (n * row_bytes > L2_BYTES) * self.columns[own]
            time = np.maximum(time, rereads * in_shares * (row_bytes * self.sms / MEMORY_PER_US))
        blocks_of_a_tile = np.maximum(1 / waves, ones)
        time += self.begin[own] + SHARING + self.peer[own] * blocks_of_a_tile
        return time

    def shared_reduction_us(self, problem: Problem, k_tile: Vector, k_tiles: Vector, waves: Vector) -> Vector:
        """Each tile is cut into as many equal parts as there are workers for it. All blocks of a tile write their sums,
        wait for each other's, and read and write a part of the tile each, after memory has been read."""
        m, n, k, _ = problem
        own = self.shared_reduction
        parts = np.floor(1 / waves + 1e-4)  # workers by tiles, without rounding
        read = (m + n) * k * self.bytes_in / MEMORY_PER_US
        time = np.maximum(k_tile * np.ceil(k_tiles / np.maximum(parts, self.ones[own])), read)
        time += self.begin[own] + self.joining[own]
        return np.where(parts < 2, INFEASIBLE_US, time)


def loop_us(config: HopperConfig) -> float:
    """Microseconds of a k tile where loads do not hold it up."""
    (bM, bN, bK), columns = config.tile, config.part[1]
    flops = 2 * bM * bN * bK / FLOPS_PER_US * 16 * config.sparsity / config.instruction_k
    flops /= SPARSE_RATE if config.sparsity > 1 else 1.0
    flops *= TURNS if config.pingpong else (columns + INSTRUCTION) / columns
    flops *= ALONE if config.warpgroups == 1 else 1.0
    flops += scale_groups_us(config)
    latency = LATENCY * (1 + FURTHER * doublings(config)) / (config.stages - 1)
    return max(flops, latency, PROMOTED if config.promote else 0.0)


def powered_us(config: HopperConfig) -> float:
    """Microseconds of a k tile where power holds it up."""
    power = power_of(config)
    if power is None:
        return 0.0
    (bM, bN, bK), columns = config.tile, config.part[1]
    flops = 2 * bM * bN * bK / power.rate * (columns + power.columns) / columns
    return (flops if config.pingpong else flops * power.together) + scale_groups_us(config)


def scale_groups_us(config: HopperConfig) -> float:
    """Microseconds of a k tile for more than one scale of columns. Columns with a scale each cost the same for a FLOP
    in all sizes."""
    group = 1 if config.block_scales is None else config.scale_group(1)
    return 0.0 if group == 1 else SCALE_GROUP * (config.tile[1] // group - 1)


def hidden_us(config: HopperConfig) -> float:
    """Microseconds of the end of the last tiles that are not seen where power holds the others up."""
    return (LAST_PART - POWERED_LAST) * config.parts if config.pingpong and power_of(config) else 0.0


def hidden_ends_us(config: HopperConfig) -> float:
    """Microseconds of the end of each tile that are won back there, by a faster clock, where no turns hide it. Sectors
    that are merged wait for L2, whose clock is another."""
    power = power_of(config)
    return 0.0 if config.pingpong or power is None else power.ends * written_us(config)


def power_of(config: HopperConfig) -> Power | None:
    """None where the tensor cores are not busy enough for power to hold them up: they are with floats of 8 and 16
    bits."""
    if not config.a.dtype.is_float or config.sparsity > 1:
        return None
    return PROMOTED_POWER if config.promote else POWER.get(config.a.dtype.width)


def doublings(config: HopperConfig) -> float:
    """How often the number of blocks that share operands doubles from one block."""
    return log2(config.cluster[0] * config.cluster[1])


def loads_us(config: HopperConfig) -> float:
    """Microseconds of the bytes of a k tile where all multiprocessors load."""
    (bM, bN, _), (cM, cN) = config.tile, config.cluster
    bits = bM * config.depth(0) * config.a.dtype.width / cN**SHARERS
    bits += bN * config.depth(1) * config.b.dtype.width / cM**SHARERS
    return bits / 8 / BYTES_PER_US


def ends_us(config: HopperConfig, partial: bool) -> float:
    """Microseconds from a tile's last k tile to the next one's first: where warpgroups take turns, one writes its tile
    while the other multiplies. ``partial``: rows of D begin between sectors."""
    return TURN if config.pingpong else store_us(config, partial)


def written_us(config: HopperConfig) -> float:
    """Microseconds in which a tile of whole sectors is written, part by part. Blocks that share k tiles share the
    parts, too."""
    elements = config.tile[0] * config.tile[1]
    return (STORE * elements + PART * config.parts) / config.cluster_k


def store_us(config: HopperConfig, partial: bool) -> float:
    """Microseconds in which a tile is written. A sector of which a part has only some bytes is written twice, and
    merged: all of them where a part's rows are shorter than a sector."""
    elements = config.tile[0] * config.tile[1]
    row = config.part[0] if config.transposed else config.epilogue_columns  # of a part, in D
    sectors = elements / row if partial or row * config.c.dtype.width < 8 * SECTOR else 0.0
    return written_us(config) + PARTIAL * sectors / config.cluster_k


def begin_us(config: HopperConfig) -> float:
    """Microseconds of a launch in addition to its waves: the start of clusters, the exchange of the sums of k slices,
    and the last tiles of warpgroups that take turns."""
    start = CLUSTER * log2(config.cluster_size)
    if config.pingpong:
        return start + LAST_PART * config.parts
    return start if config.cluster_k == 1 else start + SLICING + SLICE_ELEMENT * config.tile[0] * config.tile[1]
