"""The simulator's bulk groups: which stores each warp has issued, and which of them it has waited for.

A bulk group belongs to the thread that committed it; here to its warp, which elects the same thread every time. So a
wait by another warp waits for nothing, as on a GPU. A store reads shared memory and writes global memory at the latest
moment that its own warp's waits allow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tilewright.ir.instruction import Lanes

Action = Callable[[], None]


class Store(NamedTuple):
    """The two moments of a store; each happens once."""

    read: Action
    write: Action


class BulkGroups:
    """The bulk stores of all warps of the resident blocks: those not yet in a group, and the groups, oldest first."""

    def __init__(self) -> None:
        self.open: dict[int, list[Store]] = {}
        self.unread: dict[int, list[list[Store]]] = {}
        self.unwritten: dict[int, list[list[Store]]] = {}

    def add(self, lanes: Lanes, stores: Sequence[tuple[int, Action, Action]]) -> None:
        """Stores that an instruction issues now: of each the lane that does, and what it does at its two moments."""
        warps = lanes.warp_numbers()
        effects = lanes.effects([(action, lane) for lane, read, write in stores for action in (read, write)])
        for (lane, _, _), read, write in zip(stores, effects[::2], effects[1::2], strict=True):
            self.open.setdefault(int(warps[lane // 32]), []).append(Store(read, write))

    def commit(self, lanes: Lanes) -> None:
        for warp in self._active(lanes):
            group = self.open.pop(warp, [])
            self.unread.setdefault(warp, []).append(group)
            self.unwritten.setdefault(warp, []).append(group)

    def wait(self, lanes: Lanes, pending: int, read: bool) -> None:
        """Let all but the newest ``pending`` groups of these warps read their source, and unless ``read`` is set write
        their target."""
        for warp in self._active(lanes):
            _land(self.unread.get(warp, []), pending, "read")
            if not read:
                _land(self.unwritten.get(warp, []), pending, "write")

    def finish(self) -> None:
        """All warps have ended: the rest happens."""
        for queues in (self.unread, self.unwritten):
            for queue in queues.values():
                _land(queue, 0, "read" if queues is self.unread else "write")
        for stores in self.open.values():
            for store in stores:
                store.read()
                store.write()

    @staticmethod
    def _active(lanes: Lanes) -> list[int]:
        chosen = lanes.active().reshape(-1, 32).any(axis=1)
        return [int(warp) for warp in np.asarray(lanes.warp_numbers())[chosen]]


def _land(queue: list[list[Store]], pending: int, what: str) -> None:
    while len(queue) > pending:
        for store in queue.pop(0):
            getattr(store, what)()
