"""The table of a group of problems in global memory, as kernels read it: a row of numbers for each problem."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tilewright import Constexpr, Int32, const_expr, cute
from tilewright.errors import ConstraintError
from tilewright.gemm.access import AccessRequirement
from tilewright.gemm.config import AnyConfig, Major, Operand
from tilewright.gemm.counts import known_count
from tilewright.gemm.epilogue.functions import Bias, Chain
from tilewright.gemm.epilogue.scales import BlockScales, Scales
from tilewright.gemm.schedule.group_shares import EvenShares
from tilewright.gemm.tiles import aligned

ADDRESS, PITCH, EXTENT, ORIGIN, FIRST, BIAS, ITERATION, COLUMNS = 0, 4, 8, 11, 14, 15, 16, 17
"""Columns of the table, of Int64: addresses of A, B, C and D; elements from one row (or column) of each to the next;
where M, N and K end and where they begin, counted from the addresses; the number of the problem's first tile; the
address of its bias, or, where offsets on the device cut the groups, the element at which it begins; where blocks share
tiles, its first k tile among those of all problems. One more row has the numbers of all tiles and k tiles as its
first. All modes begin at 0 where a kernel reads from any address; TMA, whose addresses
are multiples of 16 bytes, begins at any coordinate."""

LANES = 32
"""Of a warp."""

ACCESS = AccessRequirement("the table of a group")
"""The requirement on each matrix: the table holds one stride of it, and C is contiguous along the same mode as D."""


@dataclass(frozen=True)
class GroupBias:
    """acc += the problem's own vector over N, of ``dtype``; stands for a :class:`Bias` until the problem is known."""

    dtype: Constexpr
    along: Constexpr = 1
    """Which extent of the problem, as the kernel sees it, is the vector's: 1, or 0 where the kernel has it
    transposed."""

    def of_problem(self, table: cute.Tensor, problem: Any) -> Bias:
        """The bias of one problem."""
        align = self.dtype.width // 8
        pointer = cute.make_ptr(self.dtype, table[problem, BIAS], cute.AddressSpace.gmem, assumed_align=align)
        extent = table[problem, EXTENT + self.along].to(Int32)
        return Bias(cute.make_tensor(pointer, cute.make_layout(extent)))


def function_of(function: Any, table: cute.Tensor, problem: Any) -> Any:
    """The epilogue function of one problem."""
    if isinstance(function, Chain):
        return Chain(tuple(function_of(one, table, problem) for one in function.functions))
    return function.of_problem(table, problem) if hasattr(function, "of_problem") else function


@dataclass(frozen=True)
class ZeroUnless:
    """acc = 0 unless ``in_group``: what belongs to no group has sums of 0, and scales that may be NaN."""

    in_group: Any

    @cute.jit
    def __call__(self, acc: cute.Tensor, tile: Any) -> None:
        if self.in_group == False:  # noqa: E712  # a run-time Boolean
            acc.fill(0)


@dataclass(frozen=True)
class GroupZeros:
    """Stands for :class:`ZeroUnless` until the problem is known: the last one of the table is no group."""

    def of_problem(self, table: cute.Tensor, problem: Any) -> ZeroUnless:
        return ZeroUnless(problem < cute.size(table, mode=[0]) - 2)


@dataclass(frozen=True)
class GroupScales:
    """acc[m, n] *= a[m] * b[n], of the groups that offsets on the device cut; stands for :class:`Scales` until the
    problem is known. The scales along the mode that is ``cut`` are one vector for all groups, others (groups, extent).

    ``moved``: a problem's coordinates begin at 0, wherever the group begins.
    """

    a: Any  # (M,) or (G, M)
    b: Any  # (N,) or (G, N)
    cut: Constexpr
    moved: Constexpr

    def of_problem(self, table: cute.Tensor, problem: Any) -> Scales | Chain:
        """The scales of one problem's rows and columns."""
        scales = Scales(*(self.vector(x, mode, table, problem) for mode, x in enumerate((self.a, self.b))))
        if self.cut == 2:  # every problem is a group
            return scales
        return Chain((scales, ZeroUnless(problem < cute.size((self.b, self.a)[self.cut], mode=[0]))))

    def vector(self, scales: Any, mode: int, table: cute.Tensor, problem: Any) -> Any:
        if mode != self.cut:
            return scales[cute.min(problem, cute.size(scales, mode=[0]) - 1), None]
        return cute.domain_offset((table[problem, BIAS].to(Int32),), scales) if self.moved else scales


@dataclass(frozen=True)
class GroupBlockScales(BlockScales):
    """Scales of blocks, of groups that offsets on the device cut; stands for :class:`BlockScales` until the problem is
    known. Those along the mode that is ``cut``, rows of A (0) or columns of B (1), are one matrix (lines, K / 128) for
    all groups; others have a matrix for each group."""

    cut: Constexpr = 0

    def of_problem(self, table: cute.Tensor, problem: Any) -> Chain:
        """The scales of one problem; lines that are cut count from the first one of all."""
        stack = self.a if self.cut else self.b
        groups = cute.size(stack, mode=[0])
        own = stack[cute.min(problem, groups - 1), None, None]
        a, b = (own, self.b) if self.cut else (self.a, own)
        return Chain((BlockScales(a, b, self.rows, self.columns), ZeroUnless(problem < groups)))


@dataclass(frozen=True)
class GroupRows:
    """An epilogue function of groups of rows that offsets on the device cut: its fields ``rows`` are arrays with an
    element, or a row, for each row of the whole result; stands for the function until the problem is known.

    ``moved``: a problem's coordinates begin at 0, wherever the group begins.
    """

    function: Any
    rows: Constexpr
    moved: Constexpr

    def of_problem(self, table: cute.Tensor, problem: Any) -> Any:
        """The function for the rows of one problem."""
        if not self.moved:
            return self.function
        begin = table[problem, BIAS].to(Int32)
        cut = {}
        for name in self.rows:
            array = getattr(self.function, name)
            cut[name] = cute.domain_offset((begin, *[0] * (cute.rank(array) - 1)), array)
        return replace(self.function, **cut)


def numbers(table: cute.Tensor, problem: Any, column: int) -> tuple[Any, Any, Any]:
    """The numbers for M, N and K, which are in three columns from ``column`` on."""
    m, n, k = (table[problem, column + mode].to(Int32) for mode in (0, 1, 2))
    return m, n, k


def blocks_of_tile(config: AnyConfig) -> int:
    """How many blocks work on one tile of a group: those of an MMA."""
    return getattr(config, "ctas", 1)


def whole_tile(config: AnyConfig) -> tuple[int, int, int]:
    """The tile that is counted as one in groups: that of a block, or of a pair, whose blocks are neighbours along M."""
    bM, bN, bK = config.tile
    return bM * blocks_of_tile(config), bN, bK


@cute.jit
def problem_of(table: cute.Tensor, tile: Any, problem: Any, cuts_tiles: Constexpr) -> Any:
    """The problem that a tile is of: ``problem`` or one after it. Where each problem has few tiles (``cuts_tiles``), a
    block passes over dozens from tile to tile: the lanes of a warp look at one each, in the time of one load."""
    if const_expr(cuts_tiles):
        last, passed = cute.size(table, mode=[0]) - 2, Int32(LANES)
        lane = cute.arch.lane_idx()
        while passed == LANES:
            is_later = table[cute.min(problem + lane, last) + 1, FIRST] <= tile
            passed = cute.arch.popc(cute.arch.vote_ballot_sync(is_later))
            problem = problem + passed
    else:
        while table[problem + 1, FIRST] <= tile:
            problem = problem + 1
    return problem


def tiles_of(table: cute.Tensor) -> Any:
    """The number of tiles of all problems."""
    return known_count(table[cute.size(table, mode=[0]) - 1, FIRST])


def share_of(table: cute.Tensor) -> tuple[EvenShares, Any, Any]:
    """The shares of all blocks, and where this block's begins and ends."""
    block, blocks = cute.arch.block_idx()[0], cute.arch.grid_dim()[0]
    shares = EvenShares(table[cute.size(table, mode=[0]) - 1, ITERATION].to(Int32), blocks)
    return shares, shares.begin(block), shares.begin(block + 1)


def matrices(table: cute.Tensor, problem: Any, config: AnyConfig, whole: bool = True) -> tuple[Any, Any, Any, Any]:
    """A (M, K), B (N, K), C and D (M, N) of a problem, from the addresses on; ``whole``: rows are whole accesses."""
    m, n, k = numbers(table, problem, EXTENT)
    shapes = (((m, k), config.a), ((n, k), config.b), ((m, n), config.c), ((m, n), config.c))
    return tuple(
        matrix(table[problem, ADDRESS + i], table[problem, PITCH + i].to(Int32), shape, operand, whole)
        for i, (shape, operand) in enumerate(shapes)
    )


def matrix(address: Any, pitch: Any, shape: tuple[Any, Any], operand: Operand, whole: bool) -> Any:
    """The matrix at an address, contiguous along the operand's major."""
    align = max(operand.copy_bits, operand.dtype.width) // 8
    pointer = cute.make_ptr(operand.dtype, address, cute.AddressSpace.gmem, assumed_align=align)
    stride = (pitch, 1) if operand.major is Major.K else (1, pitch)
    found = cute.make_tensor(pointer, cute.make_layout(shape, stride=stride))
    return aligned(found, operand) if whole else found


def stack(matrix: Any) -> Any:
    """The matrix as a stack of one, (MN, K, 1), as TMA atoms of the library have them."""
    outer = next(stride for stride in matrix.stride if not isinstance(stride, int))
    if not isinstance(matrix.iterator, cute.Pointer):
        raise ConstraintError(f"a matrix in global memory is wanted, not {matrix}")
    return cute.make_tensor(matrix.iterator, cute.make_layout((*matrix.shape, 1), stride=(*matrix.stride, outer)))
