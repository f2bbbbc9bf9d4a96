"""Happens-before: what the launch's synchronisation orders, kept as vector clocks (:mod:`.clocks`).

Every rule here is one of the PTX ISA's memory model: program order of a lane; barriers, ``bar.warp.sync``, mbarriers
and the cluster's barrier; release and acquire of atomics, loads and stores, also by fences; the groups of asynchronous
copies. What an instruction orders is stated in its class.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import numpy as np

from tilewright.ir.core import Constant, Op
from tilewright.ir.effects import SCOPES, Ordering
from tilewright.ir.lanes import Array
from tilewright.ir.target import WARP
from tilewright.sim.checks.barrier_clocks import BarrierClocks, ClusterBarrierClocks, MbarrierClocks
from tilewright.sim.checks.clocks import ROLES, ClockColumns, Clocks
from tilewright.sim.checks.early_reads import READERS, Stages
from tilewright.sim.checks.flags import Flags
from tilewright.sim.checks.shadow import NEVER
from tilewright.sim.checks.sites import kernel_facts
from tilewright.sim.checks.sparse_clock import SparseClock
from tilewright.sim.checks.versions import Versions
from tilewright.sim.events import Observer

if TYPE_CHECKING:
    from tilewright.sim.agents import Effect
    from tilewright.sim.engine import Launch
    from tilewright.sim.group import Group
    from tilewright.sim.wave import Wave


class Snapshot:
    """The clocks of a group when it issued an asynchronous effect, which may act at any time after."""

    __slots__ = (
        "clocks",
        "warps",
        "rows",
        "now",
        "open",
        "waited",
        "lane_clocks",
        "floors",
        "tick",
        "phases",
        "asked",
        "__weakref__",
    )

    def __init__(self, clocks: Clocks, group: Group) -> None:
        warps = group.warps
        self.clocks, self.warps = clocks, warps
        self.rows = clocks.clocks[warps]
        self.now, self.open = clocks.now[warps], clocks.open[warps]
        self.waited = list(clocks.waited)
        self.lane_clocks = LaneClocksAtIssue(clocks, group) if clocks.lane_clocks else NOTHING
        self.floors, self.tick = clocks.floors(group), clocks.layout.tick
        self.phases: tuple[Array, Array] | None = None  # that were complete then: see mbarriers.py
        self.asked: dict[tuple[int, bytes], tuple[Any, ...]] = {}  # by agent and lanes: see pending.py

    def waited_by(self, row: int, agent: int, lane: int) -> int:
        """As :meth:`Clocks.waited_by`, of a row of the group."""
        return int(self.waited[agent][self.warps[row], lane])


class LaneClocksAtIssue:
    """What the active warps of a group knew at some moment, as far as it is not in their clocks. Most is never asked
    for, so it is put together when it is."""

    __slots__ = ("_kept", "_made", "_clusters")

    def __init__(self, clocks: Clocks | None = None, group: Group | None = None) -> None:
        self._kept: dict[int, tuple[SparseClock, Array]] = {}
        self._made: dict[int, SparseClock] = {}
        if clocks is None:
            return
        assert group is not None
        self._clusters = clocks.cluster
        warps = group.warps if group.mask is None else group.warps[group.mask.reshape(-1, WARP).any(1)]
        split = [warp for warp in warps.tolist() if warp in clocks.lane_clocks]
        if split:
            rows = clocks.clocks[split]  # not what its lanes would release: what the others of them did is not known
            self._kept = {warp: (clocks.lane_clocks[warp].all(), row) for warp, row in zip(split, rows, strict=True)}

    def __bool__(self) -> bool:
        return bool(self._kept)

    def get(self, warp: int) -> SparseClock | None:
        """The clocks of single lanes of a warp; None where those of the warp are exact."""
        known = self._made.get(warp)
        if known is None and warp in self._kept:
            every, row = self._kept[warp]
            known = self._made[warp] = every.copy()
            known.join(SparseClock({int(self._clusters[warp]): row}))
        return known


NOTHING = LaneClocksAtIssue()


class HappensBefore(Observer):
    """``clocks``: of every wave that has begun. Other checkers ask it; it reports nothing itself."""

    follows_errors, each_effect, each_landing = True, False, False

    def __init__(self) -> None:
        self.waves: dict[Wave, Clocks] = {}
        self.barriers: dict[Wave, BarrierClocks] = {}
        self.clusters: dict[Wave, ClusterBarrierClocks] = {}
        self.mbarriers: dict[Wave, MbarrierClocks] = {}
        self.blocks = 0
        self.landing: list[Effect] = []
        self.agents: dict[int, tuple[int, list[int]]] = {}  # by an op's id: bits of roles, agents of groups
        self.orders: dict[int, tuple[Ordering, ...]] = {}  # by an op's id: what it orders
        self.closes: dict[int, list[int]] = {}  # by an op's id: the agents whose groups it closes
        self.snapshots: WeakSet[Snapshot] = WeakSet()  # of effects that may still take place
        self.brought: dict[int, tuple[int, int]] = {}  # by mbarrier: unit and clock of the bytes that have come

    def begin(self, launch: Launch) -> None:
        facts = kernel_facts(launch.program)
        self.sites, self.results_unused = facts.sites, facts.results_unused
        self.without_groups = facts.without_groups
        self.layout = ClockColumns(launch.geometry, facts.agents, facts.mbarriers)
        self.flags = Flags(self.layout)
        if facts.polling_loops:
            self.flags.versions = Versions(self.layout, facts.polling_loops, launch.program)
        self.issuing: tuple[int, int, Snapshot] | None = None
        self.stages = Stages(facts.shared_names) if facts.staged else None

    def wave(self, wave: Wave) -> None:
        clocks = self.waves[wave] = Clocks(self.layout, self.blocks, len(wave.coords))
        self.blocks += len(wave.coords)
        self.barriers[wave] = BarrierClocks(clocks, wave)
        self.clusters[wave] = ClusterBarrierClocks(clocks, wave)
        self.mbarriers[wave] = MbarrierClocks(clocks)

    def knows(self, wave: Wave, warp: int, other: int, clock: int, lane: int = 0) -> bool:
        """Whether what lane ``lane`` of warp ``other`` did at ``clock`` happened before what ``warp`` does now."""
        clocks = self.waves[wave]
        identity, cluster = int(clocks.unit[other]) * WARP + lane, int(clocks.cluster[other])
        columns = self.layout.columns(identity)
        if cluster == clocks.cluster[warp] and int(clocks.clocks[warp, columns].max()) >= clock:
            return True
        lane_clocks = clocks.lane_clocks.get(warp)
        if lane_clocks is None:
            return False
        return any(k.knows(cluster, columns, identity, clock) for k in (lane_clocks.know, *lane_clocks.extras.values()))

    def knows_of_warp(self, wave: Wave, warp: int, other: int, clock: int) -> bool:
        """Whether what some lane of warp ``other`` did at ``clock`` happened before what ``warp`` does now."""
        clocks, layout = self.waves[wave], self.layout
        own, cluster = int(clocks.own[other]), int(clocks.cluster[other])
        # All lanes of a warp share its column; the elected one, whichever it is, has one more (0 before there is one).
        if cluster == clocks.cluster[warp]:
            row = clocks.clocks[warp]
            if row[own] >= clock or (layout.elects and row[own + layout.elected] >= clock):
                return True
        lane_clocks = clocks.lane_clocks.get(warp)
        if lane_clocks is None:
            return False
        columns = [own, own + layout.elected] if layout.elects else [own]
        identities = range(first := int(clocks.unit[other]) * WARP, first + WARP)
        every = (lane_clocks.know, *lane_clocks.extras.values())
        return any(k.knows_of_any(cluster, columns, identities, clock) for k in every)

    def floors(self, clocks: Clocks) -> tuple[int, int]:
        """As :meth:`Clocks.floors`, of whatever will still happen in a wave."""
        if self.issuing is not None and self.issuing[1] != clocks.version:
            self.issuing = None  # its snapshot is of interest as long as the effect is
        floors = [clocks.all_floors(), *(s.floors for s in list(self.snapshots) if s.clocks is clocks)]
        return min(f for f, _ in floors), min(c for _, c in floors)

    def left(self, group: Group) -> None:
        self.waves[group.wave].floor[group.warps] = NEVER  # nothing is in the way of those who have ended
        if group.wave.barriers.ended is not None:
            self.barriers[group.wave].settle()

    # -- barriers ------------------------------------------------------------------------------------------------------

    def barrier(self, group: Group, rows: Array, keys: Array, target: Array, waits: bool) -> None:
        self.barriers[group.wave].arrive(group, rows, keys, target, waits)

    def cluster(self, group: Group, threads: Array, waits: bool) -> None:
        if not waits:
            releases = any(order.release for order in self._orders(group.lanes.op))
            self.clusters[group.wave].arrive(threads, releases)

    def mbarrier(self, group: Group, what: str, places: Array, lanes: Array, done: Array | None) -> None:
        """The order by mbarriers: arrivals release, waits and tests that succeed acquire (relaxed ones with a fence
        before or after them), and bytes that a copy brings carry the copy's clock to the warps that wait for the
        phase."""
        op, mbarriers = group.lanes.op, self.mbarriers[group.wave]
        if what == "arrive":
            orders = [order for order in self._orders(op) if order.release]
            if not orders:
                mbarriers.arrive_relaxed(
                    group.warps, places, lanes, self.flags, SCOPES.index(op.attrs["atom"].ordered_scope)
                )
            for order in orders:
                if order.agent:
                    mbarriers.landed(group.warps, places, lanes, self.layout.agents.index(order.agent), self._open())
                else:
                    mbarriers.arrive(group.warps, places, lanes)
        elif what == "test" and op not in self.results_unused:
            assert done is not None
            learn = (
                mbarriers.acquire
                if self._orders(op)
                else partial(mbarriers.see, self.flags, SCOPES.index(op.attrs["atom"].ordered_scope))
            )
            learn(group.warps, places[done], lanes[done])
        elif what == "wait":
            mbarriers.begin_wait(group.warps, places, lanes)
        elif what == "complete" and self.landing:
            self.brought = {place: mbarriers.bytes_came(place) for place in sorted(set(places.tolist()))}
        elif what == "inval":
            mbarriers.forget(places)
        self._stage_step(group, what, places, lanes, done)
        if what in ("arrive", "complete") and done is not None:
            mbarriers.complete(places[done])

    def _stage_step(self, group: Group, what: str, places: Array, lanes: Array, done: Array | None) -> None:
        if self.stages is None or not lanes.size or self.landing:
            return
        op, clocks = group.lanes.op, self.waves[group.wave].now
        if what == "arrive":
            self.stages.step(group, False, op, places, lanes, clocks)
        elif what == "test" and done is not None and done.any() and op not in self.results_unused:
            self.stages.step(group, True, op, places[done], lanes[done], clocks)

    def _orders(self, op: Op) -> tuple[Ordering, ...]:
        found = self.orders.get(id(op))
        if found is None:
            found = self.orders[id(op)] = tuple(op.attrs["atom"].orders)
        return found

    def _open(self) -> Array:
        """The groups that were open when the effect that lands was issued ``[warps, agents]``."""
        found: Array = self.landing[-1].notes.open
        return found

    def resumes(self, group: Group, wait: Any) -> None:
        mbarriers = self.mbarriers[group.wave]
        if mbarriers.waiting:
            if self.stages is not None:
                self.stages.wait_is_over(group, wait.op, mbarriers)
            mbarriers.end_wait(group.warps)
        self.clusters[group.wave].end_wait(group.warps, wait)

    # -- fences, groups, warps -----------------------------------------------------------------------------------------

    def ordered(self, group: Group, op: Op) -> None:
        """The order by an op alone: lanes of a warp, groups of asynchronous copies (commit releases,
        wait acquires), and fences of threads. Barriers and mbarriers are events of their own."""
        clocks = self.waves[group.wave]
        acting: tuple[Array, Array | None] | None = None
        for order in self._orders(op):
            if order.through == "warp":
                self._warp_sync(clocks, group, op)
            elif order.through == "group":
                agent = self.layout.agents.index(order.agent)
                acting = acting or acting_warps(group)
                warps, lanes = acting
                if order.release:
                    clocks.commit(warps, lanes, agent)
                if order.acquire:
                    clocks.wait(warps, lanes, agent, int(op.attrs["atom"].pending))
            elif order.through == "" and not order.agent and order.proxies == ("generic",):
                self.flags.fence(clocks, group, order)

    def _warp_sync(self, clocks: Clocks, group: Group, op: Op) -> None:
        active = _active(group)
        given = op.operands[0] if op.operands else None
        if isinstance(given, Constant):
            active = active & (int(given.value) >> np.arange(WARP) & 1).astype(bool)
        whole = (active | ~clocks.exists[group.warps]).all(1)
        if whole.any():
            clocks.synchronise(group.warps[whole])
        for row in np.flatnonzero(active.any(1) & ~whole):
            clocks.synchronise_lanes(int(group.warps[row]), np.flatnonzero(active[row]))

    # -- asynchronous effects ------------------------------------------------------------------------------------------

    def issue(self, group: Group, effect: Effect) -> None:
        self.issued_together(group, [effect])

    def issued_together(self, group: Group, effects: Sequence[Effect]) -> None:
        first = effects[0]
        closes = self._closes(first.op)
        if closes and len(effects) > 1:  # each stands for what was issued before it
            super().issued_together(group, effects)
            return
        # One snapshot serves all repetitions of an op. Invariant: no clock of the wave has changed since it was taken.
        clocks, known = self.waves[group.wave], self.issuing
        begins = known is None or known[0] != id(group) or known[1] != clocks.version
        if begins:
            snapshot = Snapshot(clocks, group)
            self.snapshots.add(snapshot)
            clocks.step(group.warps)
            self.issuing = (id(group), clocks.version, snapshot)
        assert self.issuing is not None
        for effect in effects:
            effect.notes = self.issuing[2]
        if begins or first.lane is not None:
            self._mark(clocks, group, effects)
        for agent in closes:
            clocks.commit(*acting_warps(group), agent)

    def _closes(self, op: Op) -> list[int]:
        """The agents whose open groups an asynchronous arrival closes: it stands for what they have been handed so far,
        and not for what comes later."""
        found = self.closes.get(id(op))
        if found is None:
            names = [o.agent for o in self._orders(op) if o.release and o.agent in self.without_groups]
            found = self.closes[id(op)] = [self.layout.agents.index(name) for name in names]
        return found

    def _mark(self, clocks: Clocks, group: Group, effects: Sequence[Effect]) -> None:
        """Note that the lanes which issue these effects of one op have something unfinished in the open groups of its
        agents: one lane for each effect, or all that are here."""
        first = effects[0]
        roles, agents = self._agents(first.op)
        if first.lane is None:
            warps, lanes = acting_warps(group)
        else:
            issuers = np.array([*dict.fromkeys(effect.lane for effect in effects)])
            warps = group.warps[issuers // WARP]
        if roles:
            clocks.does[warps] |= roles
        for agent in agents:
            if first.lane is None:
                clocks.issue(warps, lanes, agent)
                self._note_issue(clocks, group, agent, warps)
                continue
            fresh = clocks.issue_by_lanes(warps, issuers % WARP, agent)
            if fresh.any():
                self._note_issue(clocks, group, agent, warps[fresh])

    def _agents(self, op: Op) -> tuple[int, list[int]]:
        """The roles that the op's agents stand for, as bits, and those of the agents that work in groups."""
        found = self.agents.get(id(op))
        if found is None:
            names = {a.agent for a in op.attrs["atom"].accesses}
            roles = sum(1 << k for k, role in enumerate(ROLES) if role in names)
            found = roles, [k for k, agent in enumerate(self.layout.agents) if agent in names]
            self.agents[id(op)] = found
        return found

    def _note_issue(self, clocks: Clocks, group: Group, agent: int, warps: Array) -> None:
        if self.stages is not None and self.layout.agents[agent] in READERS:
            before = clocks.now[warps] - 1  # the issue has moved the clocks on
            self.stages.issue(group.wave, agent, warps, clocks.open[warps, agent], before)

    def land(self, effect: Effect, begins: bool) -> None:
        if begins:
            self.landing.append(effect)
        else:
            self.landing.pop()


def _active(group: Group) -> Array:
    """bool ``[warps, 32]``: the lanes that execute."""
    if group.mask is None:
        return np.ones((group.warps.size, WARP), bool)
    return group.mask.reshape(-1, WARP)


def acting_warps(group: Group) -> tuple[Array, Array | None]:
    """The warps of which lanes execute, and bool ``[warps, 32]`` which; None: all lanes of these."""
    if group.mask is None:
        return group.warps, None
    lanes = group.mask.reshape(-1, WARP)
    there = lanes.any(1)
    if there.all():
        return group.warps, None if lanes.all() else lanes
    lanes = lanes[there]
    return group.warps[there], None if lanes.all() else lanes
