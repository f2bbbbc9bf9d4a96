"""Even shares of the k tiles of some output tiles: the maps of Hopper's Stream-K, on the host and in a kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tilewright import cute
from tilewright.lang.tensors.select import select


@dataclass(frozen=True)
class SharedUnits:
    """``sk_blocks`` units share the k tiles, ``iters_per_tile`` each, of ``sk_tiles`` output tiles.

    Unit u is the (u // groups)-th of group u mod groups, and so are the tiles dealt out to groups. Iterations are
    numbered group by group, and tile by tile in a group. Indices and fields may be Python ints or run-time integers.

    >>> units = SharedUnits(sk_tiles=3, sk_blocks=4, iters_per_tile=8, groups=2)
    >>> [units.get_iter_extents(unit) for unit in range(4)]
    [(0, 8), (16, 20), (8, 16), (20, 24)]
    >>> [units.get_tile(position) for position in range(3)]
    [0, 2, 1]
    """

    sk_tiles: Any
    sk_blocks: Any
    iters_per_tile: Any
    groups: Any = 1
    shared_reduction: bool = False  # all units of a tile add up a part of it each

    reduction_blocks: ClassVar[int] = 0

    def first(self, group: Any) -> Any:
        """Tiles of all groups before ``group``: the first groups have one more where the number does not divide."""
        return group * (self.sk_tiles // self.groups) + cute.min(group, self.sk_tiles % self.groups)

    def group_of(self, position: Any) -> Any:
        """The group of the tile at a place in the order of iterations."""
        each, more = self.sk_tiles // self.groups, self.sk_tiles % self.groups
        return cute.max(position // (each + 1), (position - more) // cute.max(each, 1))

    def get_tile(self, position: Any) -> Any:
        """The output tile, in the order in which tiles are dealt out, at a place in the order of iterations."""
        group = self.group_of(position)
        return (position - self.first(group)) * self.groups + group

    def get_sk_tile_idx(self, iteration: Any) -> Any:
        """The place of the tile of an iteration; :meth:`get_tile` says which it is."""
        return iteration // self.iters_per_tile

    def _share(self, group: Any) -> tuple[Any, Any, Any]:
        """(first iteration of a group, those of each unit, units with one more)"""
        begin, end = (self.first(g) * self.iters_per_tile for g in (group, group + 1))
        units = self.sk_blocks // self.groups
        return begin, (end - begin) // units, (end - begin) % units

    def get_iter_extents(self, unit: Any) -> tuple[Any, Any]:
        """[begin, end) of the iterations of a unit."""
        group, index = unit % self.groups, unit // self.groups
        first, each, more = self._share(group)
        begin = first + index * each + cute.min(index, more)
        return begin, begin + each + select(index < more, 1, 0)

    def get_sk_block_idx(self, iteration: Any) -> Any:
        """The unit that does an iteration: the inverse of :meth:`get_iter_extents`."""
        group = self.group_of(iteration // self.iters_per_tile)
        first, each, more = self._share(group)
        inside = iteration - first
        index = cute.max(inside // (each + 1), (inside - more) // cute.max(each, 1))
        return index * self.groups + group
