"""The actors of an access, lane by lane: their clocks, and the entries that they leave in shadow memory."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.ir.lanes import Array
from tilewright.ir.target import WARP
from tilewright.sim.checks.actors import lanes_of
from tilewright.sim.checks.found_once import found_once
from tilewright.sim.checks.shadow import GROUPS, NEVER, OTHERS, THREADS, epoch

if TYPE_CHECKING:
    from tilewright.sim.checks.clocks import Clocks
    from tilewright.sim.checks.order import HappensBefore, Snapshot
    from tilewright.sim.checks.reach import Ranges
    from tilewright.sim.group import Group

LANES = np.arange(WARP)


class Accessors:
    """The active lanes of a group, each at ``each`` cells one after another.

    Most accesses are by threads, and a look at the clocks of whole warps shows that nothing is wrong; what is known
    lane by lane is made when it is asked for: ``rows``: the row of each access's warp in the group; ``thread``: its
    thread (unit * 32 + lane); ``identity`` and ``clock``: of the entry, which are the agent's where one acts.

    ``snapshot``: what the group knew when it issued an asynchronous effect that lands now. ``lanes``: rows of the
    group, where the mask does not select them. All clocks are those of the moment when this is made.
    """

    def __init__(
        self,
        order: HappensBefore,
        group: Group,
        agent: str,
        mask: Array | None = None,
        lanes: Array | None = None,
        each: int = 1,
    ) -> None:
        self.group, self.mask, self.each, self.listed = group, mask, each, lanes is not None
        self.clocks: Clocks = order.waves[group.wave]
        self.layout = order.layout
        self.snapshot: Snapshot | None = order.landing[-1].notes if order.landing else None
        self.landed = self.snapshot is not None
        self.agent = order.layout.agents.index(agent) if agent in order.layout.agents else None
        self.kind = THREADS if self.agent is None else GROUPS if agent == "cp.async" else OTHERS
        # What lands now acts with the knowledge of its issue: the clocks of its warp may have moved on since.
        if self.snapshot is None:
            self.now, self.latest = _now(self.clocks, group)
            self.tick = self.latest
        else:
            self.now, self.tick = self.snapshot.now, self.snapshot.tick
        if self.agent is not None:
            # An agent's accesses bear the number of the group open then: only a wait for that group orders them.
            opened = self.snapshot.open if self.snapshot is not None else self.clocks.open[group.warps]
            self.opened: Array = opened[:, self.agent]
        if lanes is not None:
            self.lanes = lanes

    @classmethod
    def given(
        cls, order: HappensBefore, group: Group, lanes: Array, identity: Array, clock: Array, each: int = 1
    ) -> Accessors:
        """Releases to mbarriers for single lanes: the entries are those of the mbarriers' units."""
        self = cls(order, group, "", None, lanes, each)
        self.kind = OTHERS
        self._identity, self._clock = identity, clock
        return self

    def like(self, mask: Array | None, each: int) -> Accessors:
        """Other lanes of the group, at the same moment."""
        made = copy(self)
        for name in ("lanes", "_warps", "_thread", "_identity", "_clock", "rows", "thread", "identity", "clock"):
            made.__dict__.pop(name, None)
        made.mask, made.each = mask, each
        return made

    def forget(self) -> None:
        """Drop what the group knew: from now on only what it did is asked for."""
        self.snapshot = None
        self.__dict__.pop("known", None)

    # -- lane by lane --------------------------------------------------------------------------------------------------

    @found_once
    def lanes(self) -> Array:
        return lanes_of(self.group, self.mask)

    @found_once
    def _warps(self) -> Array:
        found: Array = self.group.warps[self.lanes // WARP]
        return found

    @found_once
    def _thread(self) -> Array:
        found: Array = self.clocks.unit[self._warps] * WARP + self.lanes % WARP
        return found

    @found_once
    def _identity(self) -> Array:
        if self.agent is None:
            return self._thread
        unit = self.layout.agent_unit(self.clocks.unit[self._warps], self._warps, self.agent)
        found: Array = unit * WARP + self.lanes % WARP
        return found

    @found_once
    def _clock(self) -> Array:
        found: Array = (self.now if self.agent is None else self.opened)[self.lanes // WARP]
        return found

    def _spread(self, values: Array) -> Array:
        return values if self.each == 1 else np.repeat(values, self.each)

    @found_once
    def rows(self) -> Array:
        return self._spread(self.lanes // WARP)

    @found_once
    def thread(self) -> Array:
        return self._spread(self._thread)

    @found_once
    def identity(self) -> Array:
        return self._spread(self._identity)

    @found_once
    def clock(self) -> Array:
        return self._spread(self._clock)

    def entries(self, number: int) -> Array:
        """``[accesses]`` what they leave in shadow memory; ``number``: of the site."""
        if self.by_mask():
            found: Array = (self.entries_by_warp(number)[:, None] | LANES).reshape(-1)
            return self._spread(found if self.mask is None else found[self.mask])
        found = epoch(self.identity, number, self.clock, self.kind)
        return found

    def by_mask(self) -> bool:
        """Whether the mask says which lanes act. Invariant: the entries of a warp then differ in the number of the lane
        alone, as its lanes are of one unit and act at one clock."""
        return not self.listed

    def entries_by_warp(self, number: int) -> Array:
        """``[warps]`` the entries of lane 0 of all warps of the group."""
        warps = self.group.warps
        unit, clock = self.clocks.unit[warps], self.now
        if self.agent is not None:
            unit, clock = self.layout.agent_unit(unit, warps, self.agent), self.opened
        found: Array = epoch(unit * WARP, number, clock, self.kind)
        return found

    # -- warp by warp --------------------------------------------------------------------------------------------------

    @found_once
    def floors(self) -> tuple[int, int]:
        """As :meth:`Clocks.floors`, at the issue of what lands."""
        return self.snapshot.floors if self.snapshot is not None else self.clocks.floors(self.group)

    @found_once
    def newest(self) -> int:
        """A tick that none of the accesses is later than, for accesses by threads; a group of ``cp.async``."""
        if self.kind == THREADS:
            return int(self.now.max()) if self.landed else self.latest
        return int(self.opened.max()) if self.kind == GROUPS else NEVER

    @found_once
    def rows_and_clusters(self) -> tuple[Any, Array]:
        """The rows of the warps that act, and the number of each one's cluster in the wave."""
        rows: Any = slice(None)
        if self.listed and self.lanes.size <= WARP:
            rows = np.array(sorted(set((self.lanes // WARP).tolist())))
        clusters = self.clocks.cluster
        return rows, clusters[self.group.warps[rows]] - clusters[0]

    @found_once
    def needs(self) -> Array:
        """``[clusters of the wave, columns]``: a warp that has these clocks of its cluster has seen all accesses."""
        clocks, layout = self.clocks, self.layout
        # Bytes that counted at an mbarrier belong to the unit of the mbarrier, whose number is in the identity.
        given = "_identity" in self.__dict__ and self.kind == OTHERS and self.agent is None
        if given and self._identity.size == 1:
            found = np.zeros((int(clocks.cluster[-1] - clocks.cluster[0]) + 1, layout.cluster), np.int32)
            one, at = divmod(int(self._identity[0]) // WARP, layout.cluster)
            found[one - int(clocks.cluster[0]), at] = self._clock[0]
            return found
        rows, cluster = self.rows_and_clusters
        if given:
            cluster, column = np.divmod(self._identity // WARP, layout.cluster)
            cluster, clock, alone = cluster - clocks.cluster[0], self._clock, self._clock.size == 1
        else:
            warps = self.group.warps[rows]
            column, clock = clocks.own[warps], self.now[rows]
            if self.agent is not None:
                column, clock = layout.agent_unit(column, warps, self.agent), self.opened[rows]
            alone = self.agent is None or not layout.by_warpgroup[self.agent]  # each warp has a column of its own
        found = np.zeros((int(clocks.cluster[-1] - clocks.cluster[0]) + 1, layout.cluster), np.int32)
        # The four warps of a warpgroup share the column of wgmma, and plain indexing would keep the last of them.
        if alone:
            found[cluster, column] = clock
        else:
            np.maximum.at(found, (cluster, column), clock)
        return found

    def know(self, needs: Array, which: Array | None = None) -> bool:
        """Whether the warps that act (of them only those in whose row ``which`` is True) know what ``needs`` names of
        their clusters."""
        known, cluster = self.known
        if which is not None and not self.listed:
            known, cluster = known[which], cluster if type(cluster) is int else cluster[which]
        return bool(np.logical_and.reduce(known >= needs[cluster], axis=None))

    @found_once
    def known(self) -> tuple[Array, Any]:
        """``[warps that act, columns]`` the clocks that they know, and the cluster of each; a number if it is one."""
        rows, cluster = self.rows_and_clusters
        known = self.clocks.clocks[self.group.warps[rows]] if self.snapshot is None else self.snapshot.rows[rows]
        first = int(cluster[0])
        return known, first if first == int(cluster[-1]) else cluster

    def know_by_warp(self, theirs: Ranges, ours: Ranges) -> bool:
        """Whether each warp that acts (it reaches what ``ours`` says) knows what those threads did at the same bytes
        whose accesses ``theirs`` describes."""
        clocks, per = self.clocks, self.layout.warps
        warps = theirs.acting.group.warps
        # By number of the warp; one that did nothing has an empty range, which overlaps with none.
        low, high = np.full(clocks.now.size, 1 << 62), np.zeros(clocks.now.size, np.int64)
        low[warps], high[warps] = theirs.low, theirs.high
        done = np.zeros(clocks.now.size, np.int32)
        done[warps] = theirs.acting.now
        there = ours.block[:, None] * per + np.arange(per)  # the warps of the block whose memory is reached
        hit = (low[there] < ours.high[:, None]) & (high[there] > ours.low[:, None])
        known, _ = self.known
        # Warps whose bytes do not overlap need no order: for them clock 0 is asked, which is always known.
        known = np.take_along_axis(known, clocks.own[there], axis=1)
        return bool((known >= np.where(hit, done[there], 0)).all())


def _now(clocks: Clocks, group: Group) -> tuple[Array, int]:
    """The clocks of the group's warps, and the latest of them; the same array as long as they are the same. Invariant:
    every change of clocks changes ``Clocks.version``, so what was found at this version is what would be found now."""
    known: tuple[int, Array, int] | None = group.registers.get("check.now")
    if known is None or known[0] != clocks.version:
        now = clocks.now[group.warps]
        latest = int(now.max())
        if known is not None and known[2] == latest and np.array_equal(known[1], now):
            now = known[1]
        known = group.registers["check.now"] = (clocks.version, now, latest)
    return known[1], known[2]
