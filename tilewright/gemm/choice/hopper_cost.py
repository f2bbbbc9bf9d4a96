"""How long a Hopper kernel will take on a problem: all its sizes, with and without shared tiles, at once.

A wave is one tile on each multiprocessor. Its time is the main loop's, the greatest of the tensor cores', the loads'
and the latency that the stages leave uncovered, plus the ends of a tile. What all options have in common, the launch
and the bounds that memory and power set to the whole product, is left out: it does not change the choice. Times are in
microseconds for 16-bit operands on an H200, where the constants were fitted to 5,200 timings of 260 products from 3 to
6000 microseconds; 8-bit operands count at twice the rate. Only ratios matter for the choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log2

import numpy as np

from tilewright.gemm.choice.ways import EVEN, Limits, Problem, Vector, Way, along, rows
from tilewright.gemm.config import HopperConfig
from tilewright.lang.tools.hardware import clusters_at_once

FLOPS_PER_US = 7.83e6  # of one multiprocessor at its full clock, 16-bit operands
INSTRUCTION = 37.0  # columns that one wgmma costs beside its own
TURNS = 1.07  # what a k tile costs warpgroups that take turns, beside its FLOPs: one issues while the other waits
ALONE = 1.125  # one warpgroup does not keep the tensor cores busy between its groups of wgmma
BYTES_PER_US = 1.09e5  # from L2 to one multiprocessor alone
CROWD = 2.5  # how much slower when all of them load
MISALIGNED = 1.85  # how much slower rows are that do not begin at multiples of 128 bytes
SHARERS = 0.74  # n blocks that share an operand load it as if each had 1 / n^0.74 of it
MEMORY_PER_US = 5.3e6  # bytes from memory
L2_BYTES = 2.4e7  # of an operand that stays in L2 beside the other
LATENCY, FURTHER = 0.55, 0.2  # of a load; more for each doubling of a cluster whose blocks wait for each other
TOGETHER = 0.015  # a k tile costs so much more for each doubling of such a cluster
PART, STORE = 0.053, 7.5e-5  # the end of a tile: for each part and for each element of it
TURN = 0.29  # from one turn to the next
LAST_PART, LAST_COLUMN = 0.33, 0.005  # the end of the last tile, which nothing hides: a part, and a column
SHARED = 1.01  # how much slower the shared loop is
SHARING, PEER_ELEMENT = 3.25, 5.7e-5  # exchanging sums: once, and for each element of each block of a tile
SLICING, SLICE_ELEMENT = 0.1, 2.65e-4  # the same inside of a cluster
LESS = 1 - 1e-12
CLUSTER = 0.15  # the start of a cluster, for each doubling
FIXED_US = 2.1  # launch, first loads, last stores: the same for all sizes, and so not in the model's times


class HopperModel:
    """The options ``ways`` of one kernel, whose operands have the same types, on a GPU of ``limits``."""

    def __init__(self, ways: Sequence[Way], limits: Limits) -> None:
        self.even = sum(way.parts != EVEN for way in ways)  # where Stream-K's options begin
        self.single = sum(way.parts == 1 for way in ways)  # how many give each tile to one block
        configs: list[HopperConfig] = [way.config for way in ways]  # type: ignore[misc]
        self.bytes_in = configs[0].a.dtype.width / 8
        # What the launch makes at a time, along the problem's M, N and K: a cluster's tile, a part of the k tiles.
        extents = [(c.tile[0] * c.cluster[0], c.tile[1] * c.cluster[1], c.tile[2] * c.cluster_k * max(1, way.parts))
                   for c, way in zip(configs, ways, strict=True)]  # fmt: skip
        # Tiles of an element, and waves of a tile: a little less, so that rounding never makes whole ones one more.
        counts = LESS / rows([along(c, e) for c, e in zip(configs, extents, strict=True)])  # (M N K, options)
        wave = LESS * np.array([max(1, way.parts) / clusters_at_once(limits[0], c.cluster_size)
                                for c, way in zip(configs, ways, strict=True)])  # fmt: skip
        sharing = np.array([way.parts != 1 for way in ways])
        slower = np.array([SHARED if way.parts > 1 else 1.0 for way in ways])
        together = TOGETHER * np.array([doublings(config) for config in configs])
        loop = slower * [loop_us(config) for config in configs]
        crowded = slower * [loads_us(config) for config in configs]
        loads, crowd = crowded / CROWD, crowded * (CROWD - 1) / CROWD
        loads[self.even :], crowd[self.even :] = crowded[self.even :], 0.0  # all multiprocessors work
        ends = np.array([ends_us(config) for config in configs])
        peer = [PEER_ELEMENT * config.tile[0] * config.tile[1] for config in configs]
        once = sharing * SHARING + [p * way.parts if way.parts > 1 else 0.0
                                    for p, way in zip(peer, ways, strict=True)]  # fmt: skip
        begin = once + [begin_us(config) for config in configs]
        self.peer = np.array(peer[self.even :])
        # Of Stream-K's options, microseconds that a wave takes to read one k element of the tiles' rows of A, and of
        # their columns of B, from memory.
        each = self.bytes_in * limits[0] / MEMORY_PER_US
        self.anew = rows([along(c, c.tile[:2]) for c in configs[self.even :]] or np.empty((0, 2))) * each

        # By whether options may share tiles, and whether rows begin between multiples of 128 bytes: what a call needs
        # of each option. To cut and to scale vectors in each call would take as long as the arithmetic.
        self.vectors = {
            (shares, slow): tuple(vector[..., : None if shares else self.single] for vector in (
                counts, wave, crowd * rate, loads * rate + together, loop + together, ends, begin, np.ones(len(ways))
            ))
            for shares in (False, True) for slow, rate in ((False, 1.0), (True, MISALIGNED))
        }  # fmt: skip
        self.scratch: dict[bool, list[tuple[Vector, Vector]]] = {False: [], True: []}

    def times(self, problem: Problem, sharing: bool = True) -> Vector:
        """Microseconds for an (M, N, K, L) problem, without what all options have in common: of each option, or
        without ``sharing`` of those that give each tile to one block."""
        scratch, shares = self.scratch_for(problem, sharing)
        return self.fill(problem, shares, *scratch).copy()

    def least(self, problem: Problem, sharing: bool, first: int = 0) -> int:
        """The number of the option of least time, from ``first`` on if there are as many."""
        scratch, shares = self.scratch_for(problem, sharing)
        time = self.fill(problem, shares, *scratch)
        first = first if first < len(time) else 0
        found = int(time[first:].argmin()) + first
        self.scratch[shares].append(scratch)
        return found

    def scratch_for(self, problem: Problem, sharing: bool) -> tuple[tuple[Vector, Vector], bool]:
        """Room for a call's vectors, and whether options that share tiles are among them. New memory would take as long
        as the arithmetic; each thread takes room of its own."""
        m, n, k, batch = problem
        shares = bool(sharing and batch == 1 and m and n and k)
        try:
            return self.scratch[shares].pop(), shares
        except IndexError:
            counts, wave = self.vectors[shares, False][:2]
            return (np.empty_like(counts), np.empty_like(wave)), shares

    def fill(self, problem: Problem, shares: bool, room: Vector, time: Vector) -> Vector:
        """``time``, filled in."""
        m, n, k, batch = problem
        counts, wave, crowd, loads, loop, ends, begin, ones = self.vectors[shares, k * self.bytes_in % 128 != 0]
        np.multiply(counts, np.array(((m,), (n,), (k,)), float), out=room)
        full, lines, k_tiles = np.ceil(room, out=room)
        full *= lines
        full *= wave
        if batch != 1:
            full *= batch
        np.minimum(full, ones, out=time)  # of the multiprocessors that work
        even = slice(self.even, None)
        if shares:
            exchange = self.peer / time[even]
        time *= crowd
        time += loads
        np.maximum(time, loop, out=time)
        time *= k_tiles
        if shares:
            exchange += begin[even]
            shared = self.shared(problem, full[even], time[even], ends[even], exchange)
        time += ends
        time *= np.ceil(full, out=full)
        time += begin
        if shares:
            time[even] = shared
        return time

    def shared(self, problem: Problem, waves: Vector, tile: Vector, ends: Vector, once: Vector) -> Vector:
        """Microseconds of Stream-K's options: ``tile`` of a tile's k tiles, ``ends`` of its end, ``once`` of the rest.
        """
        m, n, k, _ = problem
        late = np.floor(waves)
        late -= 1.0
        np.maximum(late, 0.0, out=late)
        in_shares = waves - late
        slower = in_shares * (SHARED - 1.0)
        slower += waves
        time = tile * slower
        np.maximum(slower, 1.0, out=slower)
        slower *= ends
        time += slower
        time += once
        # Shares that begin anywhere in K do not read the same slices of an operand at the same time: what L2 does not
        # hold comes from memory for each tile anew.
        apart = [one for one, extent in zip(self.anew, (m, n), strict=True) if extent * k * self.bytes_in > L2_BYTES]
        return np.maximum(time, sum(apart) * k * in_shares) if apart else time


def loop_us(config: HopperConfig) -> float:
    """Microseconds of a k tile where loads do not hold it up."""
    (bM, bN, bK), columns = config.tile, config.part[1]
    flops = 2 * bM * bN * bK / FLOPS_PER_US * config.a.dtype.width / 16
    flops *= TURNS if config.pingpong else (columns + INSTRUCTION) / columns
    flops *= ALONE if config.warpgroups == 1 else 1.0
    return max(flops, LATENCY * (1 + FURTHER * doublings(config)) / (config.stages - 1))


def doublings(config: HopperConfig) -> float:
    """Of one block to those that share operands."""
    return log2(config.cluster[0] * config.cluster[1])


def loads_us(config: HopperConfig) -> float:
    """Microseconds of the bytes of a k tile where all multiprocessors load."""
    (bM, bN, bK), (cM, cN) = config.tile, config.cluster
    return (bM / cN**SHARERS + bN / cM**SHARERS) * bK * config.a.dtype.width / 8 / BYTES_PER_US


def ends_us(config: HopperConfig) -> float:
    """Microseconds from a tile's last k tile to the next one's first: where warpgroups take turns, one writes its tile
    while the other multiplies."""
    if config.pingpong:
        return TURN
    return STORE * config.tile[0] * config.tile[1] + PART * config.parts


def begin_us(config: HopperConfig) -> float:
    """Microseconds that a launch takes beside its waves: the start of clusters, the exchange of the sums of k slices,
    and the last tiles of warpgroups that take turns."""
    if config.pingpong:
        return CLUSTER * doublings(config) + LAST_PART * config.parts + LAST_COLUMN * config.tile[1]
    slices = 0.0 if config.cluster_k == 1 else SLICING + SLICE_ELEMENT * config.tile[0] * config.tile[1]
    return CLUSTER * doublings(config) + slices
