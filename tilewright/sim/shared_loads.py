"""Loads of a fragment from shared memory that lanes of a warp share: kept once for those that load the same.

What the copies of a stretch load through one pointer is loaded at the last of them, at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.ir.core import Op
from tilewright.ir.target import WARP
from tilewright.ir.types import F32
from tilewright.sim.access import access_of
from tilewright.sim.memory import Buffer
from tilewright.sim.moves import Arrangement
from tilewright.sim.offsets import SharedRows
from tilewright.sim.program import Closure
from tilewright.sim.values import Ptr

Published = tuple[tuple[Op, tuple[int, ...]], ...]  # copies through one pointer, each with its distances from it
EMPTY = SharedRows(np.arange(0), np.arange(0))
"""The rows of a fragment to which nothing has been loaded."""


class Operand:
    """A fragment of A or B that is kept once for each row (or column) of a warp's grid of lanes.

    In the part of a warp, ``[32 * n]``, the rows' registers stand piece after piece, ``[n / each, rows, each]``; a
    piece is what one copy loads side by side.
    """

    def __init__(self, fragment: int, state: int, each: int) -> None:
        self.fragment = fragment
        self.state = state
        """The register that has EMPTY, the SharedRows that were loaded, or None: each lane has its registers."""
        self.each = each
        self.access = access_of(F32, each, each * F32.bytes, False)
        self.wanted = True
        """Until the lanes turn out to be no grid: then each lane loads for itself."""

    def spread(self, slots: list[Any]) -> None:
        """Give each lane its registers."""
        state, slots[self.state] = slots[self.state], None
        for rows, warps in states_by_warp(state):
            if rows is EMPTY:
                continue
            fragment = slots[self.fragment]
            n = fragment.shape[1]
            if warps is None:
                warps = np.arange(len(fragment) // WARP)
                slots[self.fragment] = np.empty_like(fragment)  # no other register names it
            kept = fragment.reshape(-1, WARP * n)[warps, : rows.count * n]
            kept = kept.reshape(-1, n // self.each, rows.count, self.each)
            registers = kept[:, :, rows.row].transpose(0, 2, 1, 3).reshape(-1, WARP, n)
            slots[self.fragment].reshape(-1, WARP, n)[warps] = registers


def states_by_warp(state: Any) -> list[tuple[Any, Any]]:
    """Each state but None that warps have, with the numbers of these warps (None: all have it).

    Where groups with different states have met, the register is an array of them, ``[lanes]``, as masks are: True and
    False in it are of warps that had none.
    """
    if not isinstance(state, np.ndarray):
        return [] if state is None else [(state, None)]
    by_warp = state[::WARP]
    distinct = {id(one): one for one in by_warp if one is not None and not isinstance(one, (bool, np.bool_))}
    return [(one, np.flatnonzero([its is one for its in by_warp])) for one in distinct.values()]


class SharedLoads:
    """Copies to an operand through one pointer (the register ``base``), done once for the lanes that share. The copy at
    ``distances[i]`` bytes from it loads the piece of the operand that begins at ``registers[i]``."""

    def __init__(self, operand: Operand, base: int, distances: tuple[int, ...], registers: list[int]) -> None:
        self.operand, self.base, access = operand, base, operand.access
        self.least, self.most = min(distances), max(distances) + access.nbytes
        order = np.argsort(registers)
        self.moves = tuple(distances[k] - self.least for k in order)
        pieces = np.array(registers)[order] // operand.each
        together = bool((np.diff(pieces) == 1).all())
        self.pieces = slice(int(pieces[0]), int(pieces[-1]) + 1) if together else pieces
        self.aligned = not any((at - self.least) % access.width for at in distances)
        self.arrangements: dict[SharedRows, Arrangement] = {}

    def rows(self, group: Any, slots: list[Any]) -> SharedRows | None:
        """How the lanes of a group share what they load now; None where each is to load for itself."""
        pointer: Ptr = slots[self.base]
        root, buf, add = pointer.root, pointer.buf, pointer.add + self.least
        if group.mask is not None or root is None or not self.operand.wanted or not isinstance(buf, Buffer):
            return None
        if group.events is not None and (group.events.quick is None or group.wave.launch.reports_ops):
            return None
        low, high, bits = root.range
        if add < 0 or low < 0 or low + add < buf.low or high + pointer.add + self.most > buf.high:
            return None
        if not self.aligned or (bits | add) & (self.operand.access.width - 1):
            return None
        state, rows = slots[self.operand.state], root.shared
        return rows if state is EMPTY or state is rows else None

    def load(self, group: Any, slots: list[Any], rows: SharedRows) -> None:
        pointer, access = slots[self.base], self.operand.access
        order = self.arrangements.get(rows)
        if order is None:
            count = len(self.moves)
            order = Arrangement(np.repeat(np.arange(count), rows.count), np.tile(rows.lanes, count))
            self.arrangements[rows] = order
        base = pointer.buf._base(group)
        index = pointer.root.arranged(access, base, self.moves, order)
        start = pointer.add + self.least + (base if type(base) is int else 0)
        items = pointer.buf.views[access.shift][start >> access.shift :].take(index)
        warps = len(items)
        parts = slots[self.operand.fragment].reshape(warps, -1).view(access.item)
        if isinstance(self.pieces, slice):
            parts[:, self.pieces.start * rows.count : self.pieces.stop * rows.count] = items
        else:
            where = self.pieces[:, None] * rows.count + np.arange(rows.count)
            parts[:, where.reshape(-1)] = items
        slots[self.operand.state] = rows


def shared_load(
    plain: list[Closure], number: int, published: list[Published], loads: SharedLoads, state: int
) -> Closure:
    """The step of copy ``number`` of those with the steps ``plain``: all are done together, by the last of them.

    Observers are notified of all at the first; those that follow issues, of the copies ``published[number]`` (none or
    several) at this one. The register ``state`` has, from the first copy on, the rows (SharedRows) that the copies load
    together. Where each is done by its plain step instead, it has the number of copies of which observers that follow
    issues were notified before, or None where the plain steps notify them."""
    operand, last, here = loads.operand, len(plain) - 1, published[number]
    everything, before = sum(published, ()), sum(map(len, published[:number]))

    def run(group: Any, slots: list[Any]) -> None:
        rows = slots[state] if number else loads.rows(group, slots)
        if type(rows) is SharedRows and not (group.events is not None and group.wave.launch.reports_ops):
            if group.events is not None:
                group.lanes.mask = None
                if number == 0:
                    group.events.loaded(group, slots[loads.base], operand.access, everything)
                if here:
                    group.events.loaded_in_order(group, slots[loads.base], operand.access, here)
            slots[state] = rows
            if number == last:
                loads.load(group, slots, rows)
            return
        if type(rows) is SharedRows:  # an observer asks for every op from now on
            operand.spread(slots)
            _without_events(plain[:number], group, slots)
            slots[state] = before
        elif number == 0:
            operand.spread(slots)
            slots[state] = None
        published_before = slots[state]
        if published_before is None:
            plain[number](group, slots)
            return
        if number >= published_before:
            group.lanes.mask = None
            group.events.loaded_in_order(group, slots[loads.base], operand.access, everything[number : number + 1])
        _without_events(plain[number : number + 1], group, slots)

    return run


def _without_events(steps: list[Closure], group: Any, slots: list[Any]) -> None:
    """Take steps of which the observers were notified before."""
    events, group.events = group.events, None
    try:
        for step in steps:
            step(group, slots)
    finally:
        group.events = events
