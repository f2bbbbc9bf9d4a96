"""Vector clocks of the warps of a wave: one row for each warp, split to lanes where lanes act apart.

``clocks[w, column]`` is what all lanes of warp ``w`` know of a unit of their cluster (:mod:`.sparse_clock`). The own
column holds the clock at which the warp's lanes synchronised last: what a lane did after that, the other lanes do not
know. ``now[w]`` is the warp's clock, a tick of the launch; it moves on whenever something of the warp is released.
``floor[w]`` is the tick of the last barrier that all warps of the block have passed together: what threads of the block
did before it is known to every other warp (0 in clusters, where other blocks reach the memory, too).

The columns of a cluster are, block after block: its warps, then for each asynchronous agent that works in groups its
warps again, then, where there are mbarriers, once more (of each warp the first lane that releases something alone: an
elected thread), and ``MBARRIERS`` units for what arrives at mbarriers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.ir.lanes import Array
from tilewright.ir.target import WARP
from tilewright.sim.checks.sparse_clock import LaneClocks, SparseClock
from tilewright.sim.geometry import Geometry

MBARRIERS = 32
ROLES = {"tma": "loads", "wgmma": "multiplies", "cp.async.bulk.read": "stores"}  # what issues for an agent tell
if TYPE_CHECKING:
    from tilewright.sim.group import Group


class ClockColumns:
    """How units are numbered. ``agents``: those of the kernel that work in groups, and whether a whole warpgroup acts
    (wgmma) or single threads; ``mbarriers``: whether there are any."""

    def __init__(self, geometry: Geometry, agents: dict[str, bool], mbarriers: bool) -> None:
        self.geometry, self.agents, self.by_warpgroup = geometry, list(agents), list(agents.values())
        self.tick = 1
        self.warps = geometry.warps
        self.elected = self.warps * (1 + len(agents))  # from a warp's column to that of its elected lane
        self.first_mbarrier = self.elected + (self.warps if mbarriers else 0)
        self.block = self.first_mbarrier + (MBARRIERS if mbarriers else 0)
        self.cluster = self.block * geometry.cluster_size
        self.elects = mbarriers
        # The elected lane of every warp of the launch, -1: none yet.
        self.lane = np.full(geometry.blocks * self.warps if mbarriers else 0, -1, np.int8)

    def describe(self, unit: int) -> tuple[int, int, str]:
        """(block, warp or number of the mbarrier, agent) of a unit."""
        block, local = divmod(unit, self.block)
        if local >= self.first_mbarrier:
            return block, local - self.first_mbarrier, "tma"
        return block, local % self.warps, (["", *self.agents])[local // self.warps]

    def agent_unit(self, unit: Any, warp: Any, agent: int) -> Any:
        """The unit (or column) of what the agent does for a warp whose own unit (or column) is ``unit``."""
        return unit + (1 + agent) * self.warps - (warp % self.warps % 4 if self.by_warpgroup[agent] else 0)

    def elect(self, unit: int, lane: int) -> bool:
        """Whether a lane, which releases something alone, is the elected one of its warp; the first that does is.
        Invariant: its column has only what this lane has released, so it says no more than the lane's own entry among
        the clocks of single lanes would; rows of columns are compared at once, entries one by one."""
        block, local = divmod(unit, self.block)
        at = block * self.warps + local
        if self.lane[at] < 0:
            self.lane[at] = lane
        return int(self.lane[at]) == lane

    def columns(self, who: int) -> list[int]:
        """The columns of a cluster's clocks, of which each tells what ``who`` (unit * 32 + lane) did."""
        unit, lane = divmod(who, WARP)
        found, (block, local) = [unit % self.cluster], divmod(unit, self.block)
        if self.elects and local < self.warps and self.lane[block * self.warps + local] == lane:
            found.append(found[0] + self.elected)
        return found

    def elected_columns(self, who: Array) -> Array:
        """For each of ``who`` the column of its warp's elected lane; -1 where it is not that."""
        units, lanes = np.divmod(who, WARP)
        block, local = np.divmod(units, self.block)
        there = local < self.warps
        at = np.where(there, block * self.warps + local, 0)
        there &= at < self.lane.size
        there &= self.lane[np.where(there, at, 0)] == lanes
        return np.where(there, units % self.cluster + self.elected, -1)


class Clocks:
    """The clocks of the wave whose first block has the number ``first`` in the launch."""

    def __init__(self, layout: ClockColumns, first: int, blocks: int) -> None:
        self.layout, self.first = layout, first
        warps = np.arange(blocks * layout.warps)
        block = warps // layout.warps
        size = layout.geometry.cluster_size
        self.cluster = (first + block) // size
        self.base = self.cluster * layout.cluster  # the unit of the cluster's first column
        self.unit = (first + block) * layout.block + warps % layout.warps
        self.own = self.unit - self.base
        self.clocks = np.zeros((warps.size, layout.cluster), np.int32)
        self.now = np.full(warps.size, layout.tick, np.int32)
        self.last = self.now.copy()  # before the last step: the clock of what has just been released
        self.floor = np.zeros(warps.size, np.int64)
        self.alone = size == 1
        self.copies: slice | None = None  # the columns of what cp.async does for the warps of the block
        if self.alone and "cp.async" in layout.agents:
            first = (1 + layout.agents.index("cp.async")) * layout.warps
            self.copies = slice(first, first + layout.warps)
        agents = len(layout.agents)
        self.numbers = warps
        self.columns = [layout.agent_unit(self.own, warps, a) for a in range(agents)]  # of each warp's agents
        # For each agent and lane: the group that it last issued to, and the last one that it has waited for.
        self.issued, self.waited = ([np.zeros((warps.size, WARP), np.int32) for _ in range(agents)] for _ in range(2))
        # Whether some lane may not have waited for the last group that it has issued to; where none has, no lane is
        # asked. Invariant: False only where ``issued <= waited`` in all lanes of the warp.
        self.unfinished = np.zeros((warps.size, agents), bool)
        self.open = np.ones((warps.size, agents), np.int32)
        # For each lane the first group that its warp closed and it did not, 0: none. Once there is one of an agent,
        # the agent is ``uneven``.
        self.skipped, self.uneven = np.zeros((warps.size, agents, WARP), np.int32), [False] * agents
        self.lane_clocks: dict[int, LaneClocks] = {}
        self.version = 0
        existing = layout.geometry.existing(warps)
        self.exists = np.ones((warps.size, WARP), bool) if existing is None else existing.reshape(-1, WARP)
        self.lanes = self.exists.sum(1)
        self.does = np.zeros(warps.size, np.uint8)  # of ROLES, as bits

    def role(self, warp: int) -> str:
        """What a warp does in its block, as far as asynchronous copies and products tell: ``loads``, ``multiplies``,
        ``stores``; empty where all warps do the same."""
        first = warp - warp % self.layout.warps
        block = self.does[first : first + self.layout.warps]
        if (block == block[0]).all():
            return ""
        return ", ".join(role for k, role in enumerate(ROLES.values()) if self.does[warp] >> k & 1)

    # -- one warp or some of its lanes ---------------------------------------------------------------------------------

    def known(self, warp: int, lane: int | None = None) -> SparseClock:
        """The clocks that a warp (or one lane of it) releases now: all that it knows, and its own accesses."""
        row = self.clocks[warp].copy()
        know = SparseClock()
        lane_clocks = self.lane_clocks.get(warp)
        if lane_clocks is not None:
            if lane is None:
                know = lane_clocks.all()
            else:
                know.join(lane_clocks.know)
                if lane in lane_clocks.extras:
                    know.join(lane_clocks.extras[lane])
        cluster = int(self.cluster[warp])
        if lane is None:
            row[self.own[warp]] = self.now[warp]
            self.agents_of(np.array([warp]), row[None])
        else:
            unit = int(self.unit[warp])
            if self.layout.elects and self.layout.elect(unit, lane):
                row[self.own[warp] + self.layout.elected] = self.now[warp]
            else:
                know.lanes[unit * WARP + lane] = int(self.now[warp])
            for a in range(len(self.layout.agents)):
                waited = self.waited_by(warp, a, lane)
                if waited and (self.layout.by_warpgroup[a] or self.issues_alone(warp, lane, a)):
                    column = self.layout.agent_unit(int(self.own[warp]), warp, a)
                    row[column] = max(row[column], waited)
                elif waited and self.issued[a][warp, lane]:
                    know.lanes[self.layout.agent_unit(unit, warp, a) * WARP + lane] = waited
        mine = know.rows.get(cluster)
        know.rows[cluster] = row if mine is None else np.maximum(mine, row)
        return know

    def know_of_block(self, warp: int, block: int) -> bool:
        """Whether a warp knows of anything that a block of its wave has done."""
        size, first = self.layout.block, block * self.layout.block % self.layout.cluster
        cluster, unit = int(self.cluster[warp]), (self.first + block) * self.layout.block
        if cluster == self.cluster[block * self.layout.warps] and self.clocks[warp, first : first + size].any():
            return True
        if warp not in self.lane_clocks:
            return False
        know = self.lane_clocks[warp].all()
        row = know.rows.get(cluster)
        return (row is not None and bool(row[first : first + size].any())) or any(
            unit <= who // WARP < unit + size for who in know.lanes
        )

    def learn(self, warp: int, know: SparseClock, lane: int | None = None) -> None:
        """A warp (or one lane of it) acquires what others have released."""
        self.version += 1
        cluster = int(self.cluster[warp])
        if lane is None:
            row = know.rows.get(cluster)
            if row is not None:
                np.maximum(self.clocks[warp], row, out=self.clocks[warp])
            if len(know.rows) > (row is not None) or know.lanes:
                rest = SparseClock({c: r for c, r in know.rows.items() if c != cluster}, know.lanes)
                self.lane_clocks.setdefault(warp, LaneClocks()).learn(rest)
        else:
            self.lane_clocks.setdefault(warp, LaneClocks()).learn(know, lane)

    def step(self, warps: Array) -> None:
        """Something of these warps has been released: what they do from now on is later."""
        # The new clock is a tick of the whole launch, not one more than the warp's last: so clocks of different warps
        # can be compared with ``floor``, which says in one number what a barrier of all warps has ordered.
        self.layout.tick += 1
        self.last[warps] = self.now[warps]
        self.now[warps] = self.layout.tick
        self.version += 1

    def passed_barrier(self, warps: Array) -> None:
        """All warps of some blocks have met at a barrier, and go on from there."""
        # In a cluster the barrier of one block says nothing of what other blocks do to its memory: no floor there.
        self.step(warps)
        if self.alone:
            self.floor[warps] = self.layout.tick

    def floors(self, group: Group) -> tuple[int, int]:
        """(tick before which all that threads of the group's blocks did is known to the group; groups of ``cp.async``
        that are known to be over to all of it). Kept while no clock changes (``version``)."""
        known: tuple[int, int, int] | None = group.registers.get("check.floors")
        if known is None or known[0] != self.version:
            copies = 0 if self.copies is None else int(self.clocks[group.warps, self.copies].min())
            known = group.registers["check.floors"] = (self.version, int(self.floor[group.warps].min()), copies)
        return known[1:]

    def all_floors(self) -> tuple[int, int]:
        """As :meth:`floors`, for the clocks that all warps of the wave know."""
        return int(self.floor.min()), 0 if self.copies is None else int(self.clocks[:, self.copies].min())

    # -- whole warps ---------------------------------------------------------------------------------------------------

    def agents_of(self, warps: Array, rows: Array) -> None:
        """Set the columns of the warps' own agents in ``rows [warps, columns]`` to what all lanes know of them."""
        for a in range(len(self.layout.agents)):
            if self.layout.by_warpgroup[a]:
                # Kept up to date by its waits. A group of wgmma is the warpgroup's, and so is its column: who has
                # waited for it knows that the operands of all four warps have been read.
                continue
            known = self.open[warps, a] - 1  # what is issued to the open group from now on is unknown to all
            unfinished = self.unfinished[warps, a]
            if unfinished.any():
                some = np.flatnonzero(unfinished)
                issued, waited = self.issued[a][warps[some]], self.waited[a][warps[some]]
                known[some] = np.minimum.reduce(np.where(issued > waited, waited, known[some, None]), axis=1)
            at = self.numbers[: warps.size], self.columns[a][warps]
            rows[at] = np.maximum(rows[at], known)

    def release(self, warps: Array) -> Array:
        """``[warps, columns]`` what all lanes of these warps together release (without what is loose)."""
        rows = self.clocks[warps]
        rows[self.numbers[: warps.size], self.own[warps]] = self.now[warps]
        if self.layout.agents:
            self.agents_of(warps, rows)
        return rows

    def synchronise(self, warps: Array) -> None:
        """The lanes of each of these warps have synchronised with each other."""
        self.clocks[warps] = self.release(warps)
        self.merge_lanes(warps)
        self.step(warps)

    def merge_lanes(self, warps: Array) -> None:
        """The lanes of each of these warps have synchronised: what one knew all know, and what is in the clocks of
        whole warps as well is forgotten."""
        for warp in warps.tolist() if self.lane_clocks else ():
            lane_clocks = self.lane_clocks.get(warp)
            if lane_clocks is None:
                continue
            lane_clocks.merge()
            row, know = self.clocks[warp], lane_clocks.know
            mine = know.rows.pop(int(self.cluster[warp]), None)
            if mine is not None:
                np.maximum(row, mine, out=row)
            base, width = int(self.base[warp]), row.size
            know.lanes = {
                who: clock
                for who, clock in know.lanes.items()
                if not 0 <= who // WARP - base < width or int(row[who // WARP - base]) < clock
            }
            if not know.rows and not know.lanes:
                del self.lane_clocks[warp]

    def synchronise_lanes(self, warp: int, lanes: Array) -> None:
        """Some lanes of a warp have synchronised with each other."""
        joined = SparseClock()
        for lane in map(int, lanes):
            joined.join(self.known(warp, lane))
        self.step(np.array([warp]))
        for lane in map(int, lanes):
            self.learn(warp, joined, lane)

    # -- groups of asynchronous copies ---------------------------------------------------------------------------------

    def issue(self, warps: Array, lanes: Array | None, agent: int) -> None:
        """``lanes [warps, 32]`` (None: all) hand something to the agent, in their open groups."""
        some = True if lanes is None else lanes
        self.issued[agent][warps] = np.where(some, self.open[warps, agent][:, None], self.issued[agent][warps])
        self.unfinished[warps, agent] |= np.any(some, axis=-1)

    def issue_by_lanes(self, warps: Array, lanes: Array, agent: int) -> Array:
        """Single lanes, each of its warp, hand something to the agent. Says of which lanes it is the first in the open
        group."""
        issued, opened = self.issued[agent], self.open[warps, agent]
        first: Array = issued[warps, lanes] != opened
        if first.any():
            issued[warps, lanes] = opened
            self.unfinished[warps, agent] = True
        return first

    def issues_alone(self, warp: int, lane: int, agent: int) -> bool:
        """Whether no other lane of the warp has ever handed anything to the agent, so that a group of the lane which is
        over is over for the whole warp. Invariant: what others hand over from now on is of groups that are open."""
        issued = self.issued[agent][warp]
        return bool(np.count_nonzero(issued) == np.count_nonzero(issued[lane]))

    def waited_by(self, warp: int, agent: int, lane: int) -> int:
        """The last group of the agent that a lane has waited for."""
        return int(self.waited[agent][warp, lane])

    def commit(self, warps: Array, lanes: Array | None, agent: int) -> None:
        """``lanes [warps, 32]`` (None: all) close their open groups."""
        if self.uneven[agent] or lanes is not None:
            some, opened = True if lanes is None else lanes, self.open[warps, agent][:, None]
            left = np.logical_not(some) & (self.issued[agent][warps] == opened)
            if self.uneven[agent] or left.any():
                skipped = self.skipped[warps, agent]
                self.skipped[warps, agent] = np.where(left & (skipped == 0), opened, np.where(some, 0, skipped))
                self.uneven[agent] = True
        self.open[warps, agent] += 1
        self.version += 1

    def wait(self, warps: Array, lanes: Array | None, agent: int, pending: int) -> None:
        """``lanes [warps, 32]`` (None: all) wait until at most ``pending`` groups are unfinished."""
        # Groups are numbered from 1, the open one is not waited for: the newest that is over has this number.
        over = np.maximum(self.open[warps, agent] - (1 + pending), 0)
        before = self.waited[agent][warps]
        reached = np.maximum(before, over[:, None])
        if self.uneven[agent]:  # what a lane has not committed it cannot wait for
            skipped = self.skipped[warps, agent]
            reached = np.where(skipped > 0, np.maximum(before, np.minimum(reached, skipped - 1)), reached)
        now = reached if lanes is None else np.where(lanes, reached, before)
        self.waited[agent] = self.waited[agent].copy()  # the array as it was may be in a snapshot
        self.waited[agent][warps] = now
        self.unfinished[warps, agent] = (self.issued[agent][warps] > now).any(1)
        if self.layout.by_warpgroup[agent]:  # the wait is one of the whole warp
            column = self.layout.agent_unit(self.own[warps], warps, agent)
            self.clocks[warps, column] = np.maximum(self.clocks[warps, column], over)
        self.version += 1
