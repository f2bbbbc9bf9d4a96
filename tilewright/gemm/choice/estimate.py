"""What the models of time have in common: vectors with an element for each option, and the search for the least.

A call of NumPy takes 0.25 microseconds for a few numbers, and 0.35 for a thousand of float32: a model makes few calls,
on memory that is used again, through views of it that were made before.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from struct import Struct
from typing import Any

import numpy as np
from numpy import ceil, multiply

from tilewright.gemm.choice.ways import EVEN, Problem, Vector, Way

PACK = Struct("3f").pack_into
LESS, MORE = 1 - 2.5e-7, 1 + 2.5e-7
"""Factors of the tiles and waves that one element is: rounding makes whole ones neither one more nor one less."""


class Scratch:
    """Memory for the vectors of one estimate: ``options`` numbers each, of which Stream-K's options have those from
    ``even`` on, and among them those that add up together those from ``together`` on; the first ``single`` give each
    tile to one block or cluster, and ``turns`` are those of them whose warpgroups take turns."""

    def __init__(self, options: int, even: int, together: int, single: int, turns: slice) -> None:
        self.extents: Vector = np.empty(3, np.float32)
        self.m, self.n, self.k = (self.extents[mode, ...] for mode in range(3))  # arrays of no dimension
        self.tiles = np.empty((3, options), np.float32)  # along M, N and K
        self.lines, self.columns, self.k_tiles = self.tiles
        self.waves, self.time, self.more, self.each = np.empty((4, options), np.float32)
        self.whole_waves = self.waves[:even]
        self.shared = tuple(vector[even:together] for vector in (self.time, self.waves, self.k_tiles))
        self.spare = tuple(vector[even:together] for vector in (self.lines, self.columns, self.more))
        self.each_shared = self.each[even:together]
        self.joint = tuple(vector[together:] for vector in (self.time, self.waves, self.k_tiles, self.more))
        self.whole = tuple(vector[:single] for vector in (self.time, self.more, self.lines))
        self.in_turns = self.time[turns], self.columns[turns]
        self.alone = np.empty(len(self.joint[0]), bool)
        self.number = np.empty((), np.float32)


class Model(ABC):
    """Microseconds of the options ``ways``: those from ``even`` on are Stream-K's, of these those from ``together`` on
    add up together, the first ``single`` give each tile to one block or cluster, the first ``alone`` of these to one
    block."""

    def __init__(self, ways: Sequence[Way]) -> None:
        self.options = len(ways)
        self.even = sum(way.parts != EVEN for way in ways)
        self.together = sum(not way.together for way in ways)
        self.single = sum(way.parts == 1 for way in ways)
        self.alone = sum(way.parts == 1 and not way.in_clusters for way in ways)
        self.turns = slice(0, 0)
        self.unused: dict[bool, list[Scratch]] = {False: [], True: []}

    @abstractmethod
    def fill(self, problem: Problem, shares: bool, scratch: Scratch) -> None:
        """``scratch.time``: of all options, or without ``shares`` of the first ``single``. Of Stream-K's a lower bound
        will do."""

    @abstractmethod
    def share(self, problem: Problem, scratch: Scratch) -> None:
        """The time of Stream-K's options but for those that add up together, from what :meth:`fill` left."""

    @abstractmethod
    def join(self, problem: Problem, scratch: Scratch) -> None:
        """The time of those."""

    def times(self, problem: Problem, sharing: bool = True) -> Vector:
        """Microseconds for an (M, N, K, L) problem, without what all options have in common: of each option, or
        without ``sharing`` of those that give each tile to one block."""
        shares = can_share(problem, sharing)
        scratch = self.scratch(shares)
        self.fill(problem, shares, scratch)
        if shares:
            self.share(problem, scratch)
            self.join(problem, scratch)
        return scratch.time

    def bounds(self, problem: Problem) -> Vector:
        """Lower bounds of the times of all options, which may share tiles."""
        scratch = self.scratch(True)
        self.fill(problem, True, scratch)
        return scratch.time

    def least(self, problem: Problem, sharing: bool, first: int = 0, last: int | None = None) -> int:
        """The number of the option of least time, from ``first`` on if there are as many, and before ``last``."""
        shares = can_share(problem, sharing)
        scratch = self.scratch(shares)
        self.fill(problem, shares, scratch)
        first = first if shares and first < (last or self.options) else 0
        time = scratch.time[first:last] if first or last else scratch.time
        found = int(time.argmin()) + first
        # Of the options that share tiles, lower bounds so far: those whose bound is the least are timed, and what is
        # the least then may be one of the others. In four of five problems no such option comes so far.
        shared = joined = not shares
        while found >= self.even:
            if found >= self.together and not joined:
                self.join(problem, scratch)
                joined = True
            elif found < self.together and not shared:
                self.share(problem, scratch)
                shared = True
            else:
                break
            found = int(time.argmin()) + first
        self.unused[shares].append(scratch)
        return found

    def scratch(self, shares: bool) -> Scratch:
        """Memory that no other call uses, in this thread or another. New memory would take as long as the
        arithmetic."""
        try:
            return self.unused[shares].pop()
        except IndexError:
            options = self.options if shares else self.single
            return Scratch(options, self.even, self.together, self.single, self.turns)


def can_share(problem: Problem, sharing: bool) -> bool:
    """Whether options that share tiles are among those of a problem."""
    m, n, k, batch = problem
    return bool(sharing and batch == 1 and m and n and k)


def cut(problem: Problem, by_m: Vector, by_n: Vector, by_k: Vector, scratch: Scratch) -> None:
    """The tiles of a problem along M, N and K, by how many there are of one element."""
    m, n, k, _ = problem
    PACK(scratch.extents, 0, m, n, k)
    multiply(by_m, scratch.m, scratch.lines)
    multiply(by_n, scratch.n, scratch.columns)
    multiply(by_k, scratch.k, scratch.k_tiles)
    ceil(scratch.tiles, scratch.tiles)


def near(ways: Sequence[Way]) -> Vector:
    """The factor of a wave that one tile is: waves that have begun are counted, and Stream-K's that are full."""
    return np.where([way.parts == EVEN and not way.together for way in ways], MORE, LESS)


def single(vector: Any) -> Vector:
    """As float32."""
    return np.ascontiguousarray(vector, np.float32)
