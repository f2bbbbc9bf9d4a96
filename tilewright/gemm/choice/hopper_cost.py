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
from itertools import product
from math import log2

import numpy as np
from numpy import add, ceil, divide, equal, floor, maximum, minimum, multiply, rint, subtract

from tilewright.gemm.choice.estimate import LESS, Model, Scratch, cut, near, single
from tilewright.gemm.choice.ways import NEVER, Limits, Problem, Vector, Way, along, rows
from tilewright.gemm.config import HopperConfig
from tilewright.lang.tools.hardware import clusters_at_once

FLOPS_PER_US = 7.73e6  # of one multiprocessor at its full clock, 16-bit operands
INSTRUCTION = 36.5  # columns that one wgmma costs beside its own
TURNS = 1.11  # what a k tile costs warpgroups that take turns, beside its FLOPs: one issues while the other waits
ALONE = 1.08  # one warpgroup does not keep the tensor cores busy between its groups of wgmma
BYTES_PER_US = 6.84e4  # from L2 to one multiprocessor when all of them load
CROWD = 1.96  # how much faster one alone is
MISALIGNED = 1.27  # how much slower rows are that do not begin at multiples of 128 bytes
SHARERS = 0.609  # n blocks that share an operand load it as if each had 1 / n^0.6 of it
MEMORY_PER_US = 4.46e6  # bytes from memory
L2_BYTES = 2.4e7  # of an operand that stays in L2 beside the other
LATENCY, FURTHER = 0.596, 0.632  # of a load; more for each doubling of a cluster whose blocks wait for each other
PART, STORE = 0.0526, 8.62e-5  # the end of a tile: for each part and for each element of it
PARTIAL, SECTOR = 1.27e-3, 32  # for each sector of 32 bytes that two stores write: one at each end of a row of a part
TURN = 0.2  # from one turn to the next
TURN_STORE = 1.03  # how much slower the end of a tile is beside the other warpgroup's loop
LAST_PART = 0.708  # the end of the last tile, which nothing hides: a part
SHARED = 1.16  # how much slower the shared loop is
SHARING, PEER_ELEMENT = 3.96, 6.95e-5  # exchanging sums: once, and for each element of each block of a tile
JOINING, JOIN_ELEMENT = 2.27, 4.58e-4  # where all blocks of a tile add up: once, and for each element of a tile
SLICING, SLICE_ELEMENT = 0.02, 2.79e-4  # the same inside of a cluster
CLUSTER = 0.0805  # the start of a cluster, for each doubling
HALF_FREE = 0.132  # saved where the next launch finds room for all of its blocks beside this one's
SOME_FREE = 0.716  # lost where it finds room for some, for each part of a wave that is free: those begin early, next to
# each other, and have more than their share of the way to L2
FIXED_US = 2.1  # launch, first loads, last stores: the same for all sizes, and so not in the model's times

NONE, HALF = np.array(0.0, np.float32), np.array(0.5, np.float32)
"""Arrays without dimensions: NumPy takes twice as long with Python's numbers."""


class HopperModel(Model):
    """The options ``ways`` of one kernel, whose operands have the same types, on a GPU of ``limits``."""

    def __init__(self, ways: Sequence[Way], limits: Limits) -> None:
        super().__init__(ways)
        configs: list[HopperConfig] = [way.config for way in ways]  # type: ignore[misc]  # of one kernel
        self.bytes_in, self.bytes_out = configs[0].a.dtype.width / 8, configs[0].c.dtype.width / 8
        counts, wave = _parts_of_a_problem(ways, configs, limits[0])
        loop, loads, crowd = self._times_of_k_tiles(ways, configs)
        # Where blocks add up together, the end of a tile is part of that.
        ends = {partial: np.array([0.0 if way.together else ends_us(config, partial)
                                   for config, way in zip(configs, ways, strict=True)])
                for partial in (False, True)}  # fmt: skip
        peer = np.array([0.0 if way.together else PEER_ELEMENT * way.config.tile[0] * way.config.tile[1]
                         for way in ways])  # fmt: skip
        begin = self._times_once(ways, configs, peer)
        self._keep_for_fill_and_join(counts, wave, loop, loads, crowd, ends, begin)
        self._keep_for_turns(configs, loop)
        self._keep_for_shares(configs, ends, begin, peer, limits[0])
        self.all_work = (1 / (np.prod(counts[:2], axis=0) * wave)).max()  # elements of D of a wave of any option

    def _times_of_k_tiles(self, ways: Sequence[Way], configs: list[HopperConfig]) -> tuple[Vector, Vector, Vector]:
        """Microseconds of a k tile: the loop, the loads of a block alone, what all blocks together add to these."""
        slower = np.array([SHARED if way.parts > 1 else 1.0 for way in ways])
        crowded = slower * [loads_us(config) for config in configs]
        loads, crowd = crowded / CROWD, crowded * (CROWD - 1) / CROWD
        even = slice(self.even, None)
        loads[even], crowd[even] = crowded[even], 0.0  # all multiprocessors work
        return slower * [loop_us(config) for config in configs], loads, crowd

    def _times_once(self, ways: Sequence[Way], configs: list[HopperConfig], peer: Vector) -> Vector:
        """Microseconds of a launch beside its waves. For Stream-K's options a lower bound, as everything in fill: a
        tile has at least one block."""
        sharing = np.array([way.parts != 1 for way in ways])
        peers = np.array([max(1, way.parts) for way in ways])
        begin = sharing * (SHARING + peer * peers) + [begin_us(config) for config in configs]
        begin[self.together :] = [joining_us(config) for config in configs[self.together :]]
        return begin

    def _keep_for_fill_and_join(
        self, counts: Vector, wave: Vector, loop: Vector, loads: Vector, crowd: Vector, ends: dict[bool, Vector],
        begin: Vector,
    ) -> None:  # fmt: skip
        """By whether options may share tiles, whether rows of operands are misaligned, and rows of D: what a call needs
        of each option. To cut and to scale vectors in each call would take as long as the arithmetic."""
        self.vectors: dict[tuple[bool, bool, bool], tuple[Vector, ...]] = {}
        self.joining: dict[bool, tuple[Vector, ...]] = {}
        joint, ones = slice(self.together, None), np.ones(self.options)
        saving = np.where(np.arange(self.options) < self.single, begin - HALF_FREE, begin)
        for misaligned in (False, True):
            rate = MISALIGNED if misaligned else 1.0
            most = np.maximum((loads + crowd) * rate, loop)
            self.joining[misaligned] = tuple(single(vector[joint]) for vector in (most, begin, ones))
            for shares, partial in product((False, True), repeat=2):
                vectors = *counts, wave, crowd * rate, loads * rate, loop, most, ends[partial], begin, saving, ones
                last = self.options if shares else self.single
                self.vectors[shares, misaligned, partial] = tuple(single(vector[:last]) for vector in vectors)
        self.room = np.array(-SOME_FREE, np.float32), np.array(HALF_FREE + SOME_FREE, np.float32)

    def _keep_for_turns(self, configs: list[HopperConfig], loop: Vector) -> None:
        """What a call needs of the options whose warpgroups take turns."""
        self.turns = slice(self.alone - sum(config.pingpong for config in configs), self.alone)
        own = configs[self.turns]
        self.turn_stores = {
            partial: single([TURN_STORE * store_us(config, partial) / 2 - TURN for config in own])
            for partial in (False, True)
        }
        # From so many k elements on, no end of a tile takes as long as half of the loop.
        in_turns = zip(self.turn_stores[True], loop[self.turns], own, strict=True)
        self.long_turns = max((c.tile[2] * (2.02 * store / us + 1) for store, us, c in in_turns), default=0)

    def _keep_for_shares(
        self, configs: list[HopperConfig], ends: dict[bool, Vector], begin: Vector, peer: Vector, multiprocessors: int
    ) -> None:  # fmt: skip
        """What a call needs of Stream-K's options."""
        own, self.slower = slice(self.even, self.together), np.array(SHARED - 1.0, np.float32)
        ones = np.ones(self.options)
        self.exchange = {
            partial: tuple(single(vector[own]) for vector in (ends[partial], begin, begin - peer, peer, ones))
            for partial in (False, True)
        }
        # Microseconds that a wave takes to read one k element of the tiles' rows of A, and of their columns of B, from
        # memory.
        each = self.bytes_in * multiprocessors / MEMORY_PER_US
        of_a, of_b = single(rows([along(c, c.tile[:2]) for c in configs[own]] or np.empty((0, 2))) * each)
        self.anew = {(True, False): of_a, (False, True): of_b, (True, True): of_a + of_b}

    def fill(self, problem: Problem, shares: bool, scratch: Scratch) -> None:
        m, n, k, batch = problem
        by_m, by_n, by_k, wave, crowd, loads, loop, crowded, ends, begin, saving, ones = self.vectors[
            shares, k * self.bytes_in % 128 != 0, n * self.bytes_out % SECTOR != 0
        ]
        cut(problem, by_m, by_n, by_k, scratch)
        waves, time = scratch.waves, scratch.time
        multiply(scratch.lines, scratch.columns, waves)
        multiply(waves, wave, waves)
        if batch != 1:
            waves *= batch
        several = m * n > self.all_work  # full waves, in all sizes
        if several:
            multiply(crowded, scratch.k_tiles, time)
        else:
            minimum(waves, ones, out=time)  # of the multiprocessors that work
            beside = self.beside(*scratch.whole)
            multiply(time, crowd, time)
            add(time, loads, time)
            maximum(time, loop, out=time)
            multiply(time, scratch.k_tiles, time)
        # Where warpgroups take turns, one writes while the other multiplies: two tiles take at least as long as the
        # loop and the end of one. (What follows adds the turn.)
        if k < self.long_turns:
            in_turns, least = scratch.in_turns
            multiply(in_turns, HALF, least)
            add(least, self.turn_stores[n * self.bytes_out % SECTOR != 0], least)
            maximum(in_turns, least, out=in_turns)
        each = add(time, ends, scratch.each)  # of the waves
        ceil(scratch.whole_waves, scratch.whole_waves)
        multiply(each, waves, time)
        if several:
            add(time, begin, time)
            if shares:  # none of a tile's blocks would share it
                scratch.joint[0].fill(NEVER)
        else:
            add(time, saving, time)
            add(scratch.whole[0], beside, scratch.whole[0])

    def beside(self, busy: Vector, late: Vector, over: Vector) -> Vector:
        """What options of whole tiles lose of what is saved where half of the multiprocessors stay free, and beside it,
        by the part of a wave that is ``busy``."""
        slope, most = self.room
        multiply(busy, slope, late)
        add(late, most, late)
        return multiply(late, rint(busy, over), late)  # a half counts as none

    def share(self, problem: Problem, scratch: Scratch) -> None:
        m, n, k, _ = problem
        ends, least_once, begin, peer, ones = self.exchange[n * self.bytes_out % SECTOR != 0]
        time, waves, _ = scratch.shared
        once, slower, late = scratch.spare
        several = m * n > self.all_work  # full waves, in all sizes
        # What follows the last full wave but one is dealt out evenly.
        floor(waves, late)
        subtract(late, ones, late)
        if not several:
            maximum(late, NONE, out=late)
        in_shares = subtract(waves, late, late)
        multiply(in_shares, self.slower, slower)
        add(slower, waves, slower)
        multiply(scratch.each_shared, slower, time)
        if several:
            once = least_once  # a tile has one block, or the end of one and the beginning of another
        else:
            minimum(waves, ones, out=once)
            divide(peer, once, once)
            add(once, begin, once)
            # So far there are as many ends as waves; but no block has less than one.
            subtract(ones, slower, slower)
            maximum(slower, NONE, out=slower)
            multiply(slower, ends, slower)
            add(time, slower, time)
        # Shares that begin anywhere in K do not read the same slices of an operand at the same time: what L2 does not
        # hold comes from memory for each tile anew.
        held = L2_BYTES / (k * self.bytes_in)
        if m > held or n > held:
            multiply(self.anew[m > held, n > held], in_shares, slower)
            multiply(slower, scratch.k, slower)
            maximum(time, slower, out=time)
        add(time, once, time)

    def join(self, problem: Problem, scratch: Scratch) -> None:
        """The time of options whose blocks add up together: the k tiles of one of as many parts of a tile as there are
        workers for each tile."""
        m, n, k, _ = problem
        k_tile, begin, ones = self.joining[k * self.bytes_in % 128 != 0]
        time, waves, k_tiles, parts = scratch.joint
        divide(ones, waves, parts)
        floor(parts, parts)
        maximum(parts, ones, out=parts)
        divide(k_tiles, parts, k_tiles)
        ceil(k_tiles, k_tiles)
        multiply(k_tiles, k_tile, time)
        scratch.number[...] = (m + n) * k * self.bytes_in / MEMORY_PER_US  # sums come after what memory needs
        maximum(time, scratch.number, out=time)
        add(time, begin, time)
        time[equal(parts, ones, scratch.alone)] = NEVER


def _parts_of_a_problem(
    ways: Sequence[Way], configs: list[HopperConfig], multiprocessors: int
) -> tuple[Vector, Vector]:  # fmt: skip
    """What the extents (M, N, K) are multiplied by to get the tiles of each option along them, (3, options), and tiles
    to get waves."""
    # What the launch makes at a time, along the problem's M, N and K: a cluster's tile, a part of the k tiles.
    extents = [(c.tile[0] * c.cluster[0], c.tile[1] * c.cluster[1], c.tile[2] * c.cluster_k * max(1, way.parts))
               for c, way in zip(configs, ways, strict=True)]  # fmt: skip
    counts = LESS / rows([along(c, e) for c, e in zip(configs, extents, strict=True)])
    wave = near(ways) * [max(1, way.parts) / clusters_at_once(multiprocessors, c.cluster_size)
                         for c, way in zip(configs, ways, strict=True)]  # fmt: skip
    return counts, wave


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


def ends_us(config: HopperConfig, partial: bool) -> float:
    """Microseconds from a tile's last k tile to the next one's first: where warpgroups take turns, one writes its tile
    while the other multiplies. ``partial``: rows of D begin between sectors."""
    return TURN if config.pingpong else store_us(config, partial)


def store_us(config: HopperConfig, partial: bool) -> float:
    """Microseconds in which a tile is written, part by part. A sector of which a part has only some bytes is written
    twice, and merged: all of them where a part's rows are shorter than a sector. Blocks that share k tiles share the
    parts, too."""
    elements = config.tile[0] * config.tile[1]
    row = config.part[0] if config.transposed else config.epilogue_columns  # of a part, in D
    sectors = elements / row if partial or row * config.c.dtype.width < 8 * SECTOR else 0.0
    return (STORE * elements + PART * config.parts + PARTIAL * sectors) / config.cluster_k


def begin_us(config: HopperConfig) -> float:
    """Microseconds that a launch takes beside its waves: the start of clusters, the exchange of the sums of k slices,
    and the last tiles of warpgroups that take turns."""
    start = CLUSTER * log2(config.cluster_size)
    if config.pingpong:
        return start + LAST_PART * config.parts
    return start if config.cluster_k == 1 else start + SLICING + SLICE_ELEMENT * config.tile[0] * config.tile[1]


def joining_us(config: HopperConfig) -> float:
    """Microseconds that a launch takes beside its waves where all blocks of a tile add up together: they write their
    sums, wait for all others', and read and write a part of the tile each."""
    return begin_us(config) + JOINING + JOIN_ELEMENT * config.tile[0] * config.tile[1]
