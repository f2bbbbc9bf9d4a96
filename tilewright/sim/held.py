"""Registers that an asynchronous unit reads or writes after the instruction that named them has been issued.

A fragment is one array for all lanes of a group. When groups part or join, its rows move to other arrays, and an
effect that writes to it later must find them. So registers that are held are noted in the group, warp by warp, and move
with the warp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.ir.target import WARP

if TYPE_CHECKING:
    from tilewright.sim.group import Group


class FragmentRows:
    """One warp's rows of a fragment: ``array [L, n]`` from lane ``lane`` on, wherever they are now."""

    __slots__ = ("warp", "array", "lane", "done")

    def __init__(self, warp: int, array: np.ndarray, lane: int) -> None:
        self.warp = warp
        self.array = array
        self.lane = lane
        self.done = False

    @property
    def values(self) -> np.ndarray:
        """``[32, n]``, live."""
        return self.array[self.lane : self.lane + WARP]

    def release(self) -> None:
        """The unit has done with it."""
        self.done = True


def hold(group: Group, fragment: np.ndarray, rows: Any) -> list[FragmentRows]:
    """Take hold of ``fragment`` for the warps in these rows of the group."""
    taken = [FragmentRows(int(group.warps[row]), fragment, int(row) * WARP) for row in rows]
    group.held = [held for held in group.held if not held.done] + taken
    return taken


def move(parent: Group, child: Group, arrays: dict[int, Any]) -> None:
    """What ``parent`` holds for warps of ``child`` is the child's; ``arrays`` gives the child's array by the id of the
    parent's."""
    # A fragment that the child never reads again has no array there. What is written to it is lost either way: it goes
    # to the parent's array, in whose rows it stays.
    row_of = {int(warp): row for row, warp in enumerate(child.warps)}
    for held in parent.held:
        row = row_of.get(held.warp)
        if held.done or row is None:
            continue
        child.held.append(held)
        array = arrays.get(id(held.array))
        if array is not None:
            held.array, held.lane = array, row * WARP
