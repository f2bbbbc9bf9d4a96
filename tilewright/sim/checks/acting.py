"""Who makes an access, lane by lane: what they know, and the entries that they leave in shadow memory."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.sim.checks.actors import lanes_of
from tilewright.sim.checks.shadow import GROUPS, NEVER, OTHERS, SITE_SHIFT, THREADS, epoch
from tilewright.sim.geometry import WARP

if TYPE_CHECKING:
    from tilewright.sim.checks.clocks import Clocks
    from tilewright.sim.checks.order import HappensBefore, Snapshot
    from tilewright.sim.group import Group

Array = np.ndarray[Any, Any]


class Acting:
    """The lanes ``lanes`` (rows of the group), each at ``each`` cells one after another.

    Most accesses are by threads, find nothing wrong and need the entries only; the rest is made when it is asked for:
    ``rows``: the row of each access's warp in the group; ``thread``: its thread (unit * 32 + lane); ``identity`` and
    ``clock``: of the entry, which are the agent's where one acts. ``snapshot``: what the group knew when it issued an
    asynchronous effect that lands now.
    """

    def __init__(self, order: HappensBefore, group: Group, agent: str, lanes: Array, each: int = 1) -> None:
        self.group, self.lanes, self.each = group, lanes, each
        self.clocks: Clocks = order.waves[group.wave]
        self.layout = order.layout
        self.snapshot: Snapshot | None = order.landing[-1].notes if order.landing else None
        self.agent = order.layout.agents.index(agent) if agent in order.layout.agents else None
        self.kind = THREADS if self.agent is None else GROUPS if agent == "cp.async" else OTHERS

    @classmethod
    def given(
        cls, order: HappensBefore, group: Group, rows: Array, thread: Array, identity: Array, clock: Array
    ) -> Acting:
        """What comes to an mbarrier: the entries are those of the mbarrier's unit."""
        self = cls(order, group, "", rows * WARP)
        self.kind = OTHERS
        self.rows, self.thread, self.identity, self.clock = rows, thread, identity, clock
        return self

    @cached_property
    def _warps(self) -> Array:
        found: Array = self.group.warps[self.lanes // WARP]
        return found

    def _spread(self, values: Array) -> Array:
        return values if self.each == 1 else np.repeat(values, self.each)

    @cached_property
    def rows(self) -> Array:
        return self._spread(self.lanes // WARP)

    @cached_property
    def _thread(self) -> Array:
        found: Array = self.clocks.unit[self._warps] * WARP + self.lanes % WARP
        return found

    @cached_property
    def thread(self) -> Array:
        return self._spread(self._thread)

    @cached_property
    def identity(self) -> Array:
        if self.agent is None:
            return self.thread
        unit = self.layout.agent_unit(self.clocks.unit[self._warps], self._warps, self.agent)
        return self._spread(unit * WARP + self.lanes % WARP)

    @cached_property
    def clock(self) -> Array:
        rows = self.lanes // WARP
        if self.snapshot is not None:
            return self._spread(self.snapshot.now[rows] if self.agent is None else self.snapshot.open[rows, self.agent])
        clocks = self.clocks
        return self._spread(clocks.now[self._warps] if self.agent is None else clocks.open[self._warps, self.agent])

    def entries(self, number: int) -> Array:
        """``[accesses]`` what they leave in shadow memory; ``number``: of the site."""
        if self.snapshot is not None or self.kind != THREADS:
            found: Array = epoch(self.identity, number, self.clock, self.kind)
            return found
        registers = self.group.registers
        known = registers.get("check.entries")
        if known is None or known[0] != self.clocks.version:
            lanes = lanes_of(self.group, None)
            warps = self.group.warps
            first = epoch(self.clocks.unit[warps] * WARP, 0, self.clocks.now[warps])
            fresh = (first[:, None] + np.arange(WARP)).reshape(lanes.shape)
            known = registers["check.entries"] = (self.clocks.version, fresh, int(self.clocks.now[warps].max()))
        entries = known[1] if self.lanes.size == known[1].size else known[1][self.lanes]
        return self._spread(entries + (number << SITE_SHIFT))

    @property
    def floors(self) -> tuple[int, int]:
        """As :meth:`Clocks.floors`, at the issue of what lands."""
        return self.snapshot.floors if self.snapshot is not None else self.clocks.floors(self.group)

    @property
    def newest(self) -> int:
        """A tick that none of the accesses is later than, for accesses by threads."""
        if self.kind != THREADS:
            return NEVER
        if self.snapshot is not None:
            return int(self.snapshot.now.max())
        known = self.group.registers.get("check.entries")
        return known[2] if known is not None and known[0] == self.clocks.version else int(self.clock.max())
