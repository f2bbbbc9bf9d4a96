"""Groups of products that the device alone knows: matrices whose common mode is cut at offsets in memory.

A mixture of experts multiplies the rows of each expert by that expert's weight, and how many rows it has was just
computed on the GPU. A kernel of one warp for each group fills the table of ``group_table`` from the offsets; the host
waits for nothing, and the launches can be replayed from a CUDA graph with other offsets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from tilewright import Constexpr, Int32, Int64, const_expr, cute, range, range_constexpr
from tilewright.gemm.access import VECTOR
from tilewright.gemm.config import AnyConfig, Major
from tilewright.gemm.kernel.group_table import (
    ADDRESS,
    BIAS,
    EXTENT,
    FIRST,
    ITERATION,
    LANES,
    ORIGIN,
    PITCH,
    whole_tile,
)
from tilewright.gemm.kernel.overlap import wait_then_let_next_begin
from tilewright.gemm.schedule.group_shares import least_iterations

MODES = ((0, 2), (1, 2), (0, 1))
"""The modes of A, B and D: 0 is M, 1 is N, 2 is K."""
COLUMNS_OF = ((0,), (1,), (2, 3))
"""Columns of the table from ADDRESS and from PITCH on that say where A, B and D are; C is D."""


@dataclass(frozen=True)
class GatheredRows:
    """Row m of the product's A is row ``index[m]`` of ``count`` rows in memory; zeros where it is not."""

    index: cute.Tensor  # (M,) of Int32
    count: Int32


class Groups(Protocol):
    """The kernel that fills the table of a group. ``rows``: the indices of A's rows; None: they follow each other."""

    @property
    def rows(self) -> GatheredRows | None: ...

    @property
    def cuts_tiles(self) -> bool:
        """Whether problems end anywhere in the tiles of D."""
        ...

    def fill(self, table: cute.Tensor, problem: Any, config: AnyConfig) -> None:
        """Write the row of ``problem``; by one warp."""


@dataclass(frozen=True)
class HostGroups:
    """The host has filled the table."""

    rows: Any = None
    cuts_tiles: Constexpr[bool] = True

    def fill(self, table: cute.Tensor, problem: Any, config: AnyConfig) -> None:
        """Nothing is left to do."""


@dataclass(frozen=True)
class OffsetGroups:
    """Group i has the elements ``offsets[i - 1]`` (0 of the first) to ``offsets[i]`` of ``mode``, which two of A, B and
    D have in common; the third is a stack of matrices, one for each group.

    The part of M or N that belongs to no group is one more group, with K = 0, so that D is zero there. Offsets that
    fall, are negative or exceed the extent make all groups empty: D is zero everywhere.
    """

    offsets: cute.Tensor  # (groups,) of Int32
    addresses: Any  # of A, B and D: Int64
    pitches: Any  # elements from one row (column) to the next: Int64
    apart: Int64  # bytes from one matrix of the stack to the next
    extents: Any  # of M, N and K: Int32
    mode: Constexpr[int]
    moved: Constexpr[bool]
    """Whether addresses are those of the groups; else those of the whole operands, and the groups begin at an origin:
    TMA takes multiples of 16 bytes."""
    step: Constexpr[int]
    """Where this is not 1, one of two launches does the work: the one that is not ``moved`` where all offsets are
    multiples of ``step``, the other one for other offsets."""
    rows: Any = None
    """A :class:`GatheredRows`: then A is the whole matrix for each group."""
    sharing: Constexpr[bool] = False
    """Whether blocks share the k tiles of all tiles (``schedule.group_shares``): then the table also says where the
    iterations of each group begin."""
    every: Any = None
    """An Int32: group i begins at i * every, and ``offsets[i]`` is how many elements it has, at most as many; what lies
    between groups is in none of the table's rows."""

    @property
    def cuts_tiles(self) -> bool:
        """Not where K is cut."""
        return self.mode != 2

    @cute.jit
    def fill(self, table: cute.Tensor, problem: Any, config: AnyConfig) -> None:
        """Every block counts the tiles of the groups before its own: faster than to wait for another kernel."""
        lane = cute.arch.lane_idx()
        groups = cute.size(self.offsets)
        before, wrong, odd = Int32(0), Int32(0), Int32(0)
        iterations: Any = Int32(0) if self.sharing else None
        for i in range(lane, groups, LANES, unroll=1):
            begin, end = self.begin(i), self.end(i)
            most = self.extents[self.mode] if self.every is None else begin + self.every
            wrong = wrong | ((end < begin) | (end > most)).to(Int32)
            odd = odd | end % self.step
            if const_expr(self.every is not None):
                odd = odd | begin % self.step
            if i < problem:
                before = before + self.tiles(end - begin, config)
                if const_expr(self.sharing):
                    iterations = iterations + self.iterations(i, end - begin, config)
        # Each lane has added every 32nd group: the sums over lanes are those of all groups.
        before, wrong, odd = (cute.arch.warp_reduction_sum(number) for number in (before, wrong, odd))
        if const_expr(self.sharing):
            iterations = cute.arch.warp_reduction_sum(iterations)
        begin, end = self.begin(problem), Int32(self.extents[self.mode])
        if problem < groups:
            end = self.end(problem)
        if wrong != 0:
            before, begin = self.tiles(Int32(0), config) * problem, Int32(0)
            if const_expr(self.sharing):
                iterations = self.iterations(Int32(0), Int32(0), config) * problem
            if problem < groups:
                end = Int32(0)
        tiles = self.tiles(end - begin, config)
        own: Any = self.iterations(problem, end - begin, config) if self.sharing else None
        if const_expr(self.step > 1):
            if (odd != 0) != self.moved:  # the other launch does it
                before, tiles = Int32(0), Int32(0)
                if const_expr(self.sharing):
                    iterations, own = Int32(0), Int32(0)
        if lane == 0:
            self.write(table, problem, begin, end, config)
            table[problem, FIRST] = before.to(Int64)
            if const_expr(self.sharing):
                table[problem, ITERATION] = iterations.to(Int64)
            if problem == cute.size(table, mode=[0]) - 2:
                table[problem + 1, FIRST] = (before + tiles).to(Int64)
                if const_expr(self.sharing):
                    table[problem + 1, ITERATION] = (iterations + own).to(Int64)
        cute.arch.sync_warp()

    @cute.jit
    def begin(self, problem: Any) -> Any:
        """Where a group begins."""
        begin = Int32(0)
        if const_expr(self.every is not None):
            begin = problem * self.every
        elif problem > 0:
            begin = self.offsets[problem - 1]
        return begin

    def end(self, problem: Any) -> Any:
        """The end of a group."""
        return self.offsets[problem] if self.every is None else problem * self.every + self.offsets[problem]

    def tiles(self, extent: Any, config: AnyConfig) -> Any:
        """Output tiles of a group with this extent of the mode."""
        m, n = (cute.ceil_div(extent if i == self.mode else self.extents[i], whole_tile(config)[i]) for i in (0, 1))
        return m * n

    def iterations(self, problem: Any, extent: Any, config: AnyConfig) -> Any:
        """K tiles of all output tiles of a group: what belongs to no group has none, and a tile without one counts as
        one."""
        k = extent if self.mode == 2 else cute.where(problem < cute.size(self.offsets), self.extents[2], 0)
        return self.tiles(extent, config) * least_iterations(cute.ceil_div(k, config.tile[2]))

    @cute.jit
    def write(self, table: cute.Tensor, problem: Any, begin: Any, end: Any, config: AnyConfig) -> None:
        """Write where the group of the elements ``begin`` to ``end`` is."""
        groups = cute.size(self.offsets)
        of_group = cute.min(problem, groups - 1)  # nothing is read of a matrix for what belongs to no group
        for i, operand in enumerate((config.a, config.b, config.c)):
            size, address = operand.dtype.width // 8, self.addresses[i]
            if const_expr(self.mode not in MODES[i]):
                address = address + self.apart * of_group.to(Int64)
            elif const_expr(self.moved and not (i == 0 and self.rows is not None)):
                contiguous = MODES[i].index(self.mode) == (1 if operand.major is Major.K else 0)
                step = Int64(size) if contiguous else self.pitches[i] * size
                address = address + step * begin.to(Int64)
            for column in COLUMNS_OF[i]:
                table[problem, ADDRESS + column] = address
                table[problem, PITCH + column] = self.pitches[i]
        table[problem, BIAS] = begin.to(Int64)
        for mode in range_constexpr(3):
            first, last = Int32(0), Int32(self.extents[mode])
            if const_expr(mode == self.mode):
                first, last = begin, end
            if const_expr(mode == 2 and self.mode != 2):
                last = cute.where(problem < groups, last, first)
            if const_expr(self.moved):
                first, last = Int32(0), last - first
            else:  # a tensor map has one element at least: a K without any begins behind it, where TMA may begin
                if const_expr(mode == 2):
                    step = max(VECTOR, 8 * VECTOR // config.a.dtype.width)  # of any 16 bytes
                    first = cute.where(first == last, first // step * step + step, first)
                last = cute.max(last, 1)
            table[problem, ORIGIN + mode] = first.to(Int64)
            table[problem, EXTENT + mode] = last.to(Int64)


@cute.kernel
def rows_of_table(groups: Groups, table: cute.Tensor, config: Constexpr) -> None:
    """Block i fills row i."""
    problem, _, _ = cute.arch.block_idx()
    wait_then_let_next_begin()
    groups.fill(table, problem, config)


@cute.jit
def fill_table(groups: Groups, table: cute.Tensor, config: Constexpr, stream: Any = None) -> None:
    """Launch what fills the table; nothing where the host has."""
    if const_expr(not isinstance(groups, HostGroups)):
        rows = cute.size(table, mode=[0]) - 1
        rows_of_table(groups, table, config).launch(grid=(rows, 1, 1), block=(LANES, 1, 1), stream=stream, use_pdl=True)
