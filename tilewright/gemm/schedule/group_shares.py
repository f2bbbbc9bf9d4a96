"""Stream-K across groups: the k tiles of the output tiles of all problems, laid end to end, in even shares.

Problems have different numbers of k tiles, so the table says of each where its iterations begin; inside of a problem
tile t has iterations t * k_tiles to (t + 1) * k_tiles. A problem without K has one iteration a tile, in which nothing
is multiplied. Blocks work through their shares from the end and exchange sums as those of one product do
(``fixup.py``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright import cute
from tilewright.gemm.schedule.shared import OrderedSharedTiles


@dataclass(frozen=True)
class GroupShares:
    """An argument of a kernel: the memory through which its blocks exchange sums. ``workspace`` has a tile of
    accumulators for each block, ``flags`` an Int32, zero between launches."""

    workspace: cute.Tensor
    flags: cute.Tensor

    def of_problem(self, shares: EvenShares, first: Any, k_tiles: Any) -> OrderedSharedTiles:
        """The decomposition of one problem, whose tiles of ``k_tiles`` iterations each begin at ``first``."""
        return OrderedSharedTiles(self.workspace, self.flags, ProblemShares(shares, first, k_tiles))


@dataclass(frozen=True)
class EvenShares:
    """``total`` iterations for ``blocks`` blocks: the first ones have one more where they do not divide.

    >>> shares = EvenShares(11, 4)
    >>> [shares.begin(block) for block in range(5)], [shares.block_of(iteration) for iteration in (0, 2, 3, 8, 9, 10)]
    ([0, 3, 6, 9, 11], [0, 0, 1, 2, 3, 3])
    >>> [EvenShares(2, 4).begin(block) for block in range(5)], EvenShares(2, 4).block_of(1)
    ([0, 1, 2, 2, 2], 1)
    """

    total: Any
    blocks: Any

    def begin(self, block: Any) -> Any:
        """The first iteration of a block."""
        return block * (self.total // self.blocks) + cute.min(block, self.total % self.blocks)

    def block_of(self, iteration: Any) -> Any:
        """The block that does an iteration: the inverse of :meth:`begin`."""
        each, more = self.total // self.blocks, self.total % self.blocks
        # As StreamK.get_sk_block_idx: right among the first blocks, or right behind them; the other one is too little.
        return cute.max(iteration // (each + 1), cute.max(iteration - more, 0) // cute.max(each, 1))


@dataclass(frozen=True)
class ProblemShares:
    """The part of a plan that an exchange of sums asks for, of one problem: its iterations begin at ``first``."""

    shares: EvenShares
    first: Any
    iters_per_tile: Any

    def get_sk_block_idx(self, iteration: Any) -> Any:
        """The block that does an iteration, counted from the problem's first."""
        return self.shares.block_of(self.first + iteration)


@dataclass(frozen=True)
class GroupPiece:
    """A part of an output tile of a group: k tiles [k_begin, k_end) of tile ``inside`` of ``problem``, which is at
    ``place`` (tile_m, tile_n). ``shared``: the problem's decomposition where blocks share tiles; ``k_tiles`` are those
    of the tile."""

    problem: Any
    inside: Any
    place: Any
    k_begin: Any
    k_end: Any
    k_tiles: Any
    shared: Any = None

    @property
    def multiplied(self) -> Any:
        """K tiles of this part."""
        return self.k_end - self.k_begin


def least_iterations(k_tiles: Any) -> Any:
    """Iterations of a tile: one where there is nothing to multiply.

    >>> least_iterations(0), least_iterations(5)
    (1, 5)
    """
    return cute.max(k_tiles, 1)


def blocks_for(iterations: int, blocks: int, least: int) -> int:
    """Blocks of a launch: as many as run at once, with ``least`` iterations each.

    >>> blocks_for(1000, 132, 2), blocks_for(7, 132, 2), blocks_for(1, 132, 2)
    (132, 3, 1)
    """
    return max(1, min(blocks, iterations // least))
