"""Products of different sizes in one launch on sm_100: tensor maps, table and order of tiles are those of
``kernel.grouped_hopper``, the roles of the warps those of ``kernel.tensor_memory``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from tilewright import cute
from tilewright.gemm.epilogue.functions import EpilogueFunction
from tilewright.gemm.epilogue.scales import block_scales
from tilewright.gemm.kernel.group_table import EXTENT, ORIGIN, numbers
from tilewright.gemm.kernel.grouped_hopper import GroupedHopperGemm, GroupWork
from tilewright.gemm.kernel.tensor_memory import TensorMemoryGemm
from tilewright.gemm.mainloop.staged_mma import StagedMma
from tilewright.gemm.schedule.group_shares import GroupPiece


@dataclass(frozen=True)
class GroupTile:
    """A part of an output tile, and the tensor maps by which the warp that has it copies."""

    one: GroupPiece
    descriptors: tuple


@dataclass(frozen=True)
class GroupBlockWork:
    """A block's tiles of all problems as the roles of a dense kernel take them, in place of
    :class:`~tilewright.gemm.kernel.block_work.BlockWork`; a tile is a :class:`GroupTile`."""

    group: GroupWork
    loads: tuple
    stores: tuple
    """Where the tensor maps of a problem are: those of the warp that loads, and those of the ones that write."""
    fragments: Callable[[tuple], tuple[Any, Any]]
    finish: Callable[..., Any]
    ahead: Callable[..., Any]

    @property
    def scaled(self) -> bool:
        return self.group.scaled

    def tile_scales(self, tile: GroupTile, at: tuple, k_begin: Any, k_end: Any) -> Any:
        """The scales of blocks of a tile."""
        scales, _ = self.ahead(self.group.function(tile.one.problem), tile.one)
        return scales

    @property
    def ring(self) -> Any:
        return self.group.ring

    @property
    def tiled_mma(self) -> cute.TiledMma:
        return self.group.tiled_mma

    def operands(self) -> GroupWork:
        """What the operands of each tile are made of."""
        return self.group

    def where(self, tile: GroupTile) -> tuple[Any, Any, Any]:
        """(m, n, batch) of a tile in its problem."""
        return *tile.one.place, 0

    def staged_mma(self, part: tuple) -> StagedMma:
        """What multiplies."""
        return StagedMma(self.tiled_mma, *self.fragments(self.group.stages), self.ring)

    def walk(self, piece: Any, state: Any, draws: bool = False) -> Any:
        """``state = piece(tile, k_begin, k_end, state)`` for the block's tiles; ``draws``: by the warp that loads."""

        def of_tile(one: GroupPiece, descriptors: tuple, state: Any) -> Any:
            return piece(GroupTile(one, descriptors), one.k_begin, one.k_end, state)

        return self.group.walk(self.loads if draws else self.stores, of_tile, state)

    def loaded(self) -> None:
        """The next kernel may have begun already."""

    def reduce(self, mine: Any) -> None:
        """There are no reduction blocks."""


class GroupedTensorMemoryGemm(GroupedHopperGemm, TensorMemoryGemm):
    """As :class:`GroupedHopperGemm`, on sm_100a and its like."""

    def ring(self, stages: tuple) -> Any:
        return TensorMemoryGemm.ring(self, stages)

    @cute.jit
    def roles_of_groups(self, warp: Any, warpgroup: Any, group: GroupWork, finish: Any) -> None:
        """The roles of the dense kernel, for the tiles of all groups."""
        a, b, d = (self.map_of(group.maps, which) for which in range(3))
        fragments = partial(self.fragments, group.tiled_mma, part=(0, 0))
        ahead = partial(self.ahead_of_group, group.tiled_mma, group.table, (0, 0))
        work = GroupBlockWork(group, (a, b), (d,), fragments, partial(self.finish_of_problem, group, finish), ahead)
        self.roles(warp, warpgroup, work)

    def load_half(  # type: ignore[override]  # what it hands on needs no names
        self, ring: Any, group: GroupWork, v: Any, where: Any, tile: GroupTile, *of_tile: Any
    ) -> Any:
        """The loads of one output tile of a problem."""
        operands = self.operands_of_problem(group, tile.one, tile.descriptors)
        return super().load_half(ring, operands, v, where, tile, *of_tile)

    def ahead_of_group(  # type: ignore[override]  # as that of the dense kernel
        self,
        tiled_mma: cute.TiledMma,
        table: cute.Tensor,
        part: tuple,
        function: EpilogueFunction,
        one: GroupPiece,
    ) -> tuple[Any, None]:
        """The scales of blocks for each part of a tile that is loaded from tensor memory."""
        extent, origin = (numbers(table, one.problem, column)[:2] for column in (EXTENT, ORIGIN))
        scales, whole = block_scales(function), cute.domain_offset(origin, cute.make_identity_tensor(extent))
        return self.scales_of_parts(scales, whole, one.place, extent, one.k_begin, one.k_end), None

    def finish_of_problem(
        self,
        group: GroupWork,
        finish: Any,
        mine: Any,
        part: tuple,
        acc: cute.Tensor,
        tile: GroupTile,
        at: tuple,
        k_begin: Any,
        k_end: Any,
    ) -> None:
        """Write the sums of a part of a tile by the epilogue function of its problem, or hand them over."""
        one = tile.one
        function, coming = group.function(one.problem), None
        write = partial(finish, mine, part, one.problem, one.place, tile.descriptors[0], function, coming)
        self.write_or_give(one, write, acc)
