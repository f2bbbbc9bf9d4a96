"""Vector clocks of barriers, the cluster's barrier and mbarriers: what was released there, until it is acquired."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tilewright.ir.lanes import Array
from tilewright.ir.target import WARP
from tilewright.sim.barriers import NAMED
from tilewright.sim.checks.clocks import MBARRIERS, Clocks
from tilewright.sim.checks.sparse_clock import SparseClock
from tilewright.sim.cluster_barrier import ClusterWait

if TYPE_CHECKING:
    from tilewright.sim.checks.flags import Flags
    from tilewright.sim.group import Group
    from tilewright.sim.wave import Wave


class ReleasedClock:
    """The clocks that have been released at one meeting place and not yet acquired: a row of the cluster's clocks, and
    the rest."""

    __slots__ = ("row", "rest")

    def __init__(self, width: int) -> None:
        self.row = np.zeros(width, np.int32)
        self.rest: SparseClock | None = None

    def add(self, row: Array, rest: SparseClock | None = None) -> None:
        np.maximum(self.row, row, out=self.row)
        if rest is not None:
            self.rest = self.rest or SparseClock()
            self.rest.join(rest)

    def hand_to(self, clocks: Clocks, warps: Array) -> None:
        """All lanes of these warps learn it."""
        clocks.clocks[warps] = np.maximum(clocks.clocks[warps], self.row)
        clocks.version += 1
        if self.rest is not None:
            for warp in warps:
                clocks.learn(int(warp), self.rest)


def _rest(clocks: Clocks, warps: Array) -> SparseClock | None:
    """What single lanes of these warps know beside the clocks of whole warps, as all lanes release it."""
    if not clocks.lane_clocks:
        return None
    found = SparseClock()
    for warp in map(int, warps):
        lane_clocks = clocks.lane_clocks.get(warp)
        if lane_clocks is not None:
            found.join(lane_clocks.all())
    return found


class Arrivals(NamedTuple):
    """Warps that arrive together at barriers of their blocks, by barrier: the ``keys`` of the barriers, their rows in
    :class:`BarrierClocks` (``span``: as a slice, if they are neighbours), where the warps of each begin in ``order``
    (None: as they are) and how many they are."""

    keys: Array
    rows: Array
    span: Any
    order: Array | None
    first: Array
    counts: Array


class BarrierClocks:
    """The sixteen barriers of every block. A thread that waits takes the clocks as soon as the phase is complete. A
    *key* is block * 16 + id; the arrays here have a row for each block, for one barrier id in use after the other.

    All blocks that arrive together are one step. Invariant: barriers of different keys share nothing but the tick, so
    that their order among each other does not matter.
    """

    def __init__(self, clocks: Clocks, wave: Wave) -> None:
        self.clocks, self.per = clocks, clocks.layout.warps
        self.blocks, self.width = len(wave.coords), clocks.clocks.shape[1]
        self.completed = wave.barriers.completed
        self.ids: dict[int, int] = {}  # the first row of each barrier id that is in use
        # By row: what has been released, and the warps that have arrived, and wait, in this phase.
        self.gathered = np.zeros((0, self.width), np.int32)
        self.seen, self.arrived, self.waiting = np.zeros((3, 0), np.int64)
        self.rest: dict[int, SparseClock] = {}  # by key: what single lanes have released
        self.before = np.zeros((0, 0), np.int32)  # what the warps that arrived last knew before
        self.key = np.full(clocks.now.size, -1, np.int64)
        self.target = np.zeros(clocks.now.size, np.int64)

    def arrive(self, group: Group, rows: Array, keys: Array, target: Array, waits: bool) -> None:
        """Warps ``rows`` of a group arrive at the barriers ``keys`` of their blocks in the phase ``target``: each
        barrier gathers what its warps release, and hands it out when the phase is complete. ``waits``: they also wait
        for it."""
        clocks = self.clocks
        warps = group.warps if rows.size == group.warps.size else group.warps[rows]
        released = self.before = clocks.release(warps)
        # What single lanes know does not fit into rows of whole warps. It is rare, so a loop will do.
        for warp, key in zip(warps.tolist(), keys.tolist(), strict=True) if clocks.lane_clocks else ():
            lane_clocks = clocks.lane_clocks.get(warp)
            if lane_clocks is not None:
                self.rest.setdefault(key, SparseClock()).join(lane_clocks.all())
        here = self._arrivals(group, warps, keys)
        if here.order is not None:
            released = released[here.order]
        # Several warps of one block: the maximum of their clocks is what the barrier gathers.
        if here.first.size < warps.size:
            released = np.maximum.reduceat(released, here.first, axis=0)
        span = here.span
        self.gathered[span] = np.maximum(self.gathered[span], released)
        self.arrived[span] += here.counts
        # What these warps do from now on is not in what they have released here.
        clocks.step(warps)
        if waits:
            self.waiting[span] += here.counts
            self.key[warps], self.target[warps] = keys, target
        # The last arrival of a phase completes it: then all that wait for it learn what was gathered.
        over = self.completed[here.keys] > self.seen[span]
        if over.all():
            self._complete(here.keys, span)
        elif over.any():
            self._complete(here.keys[over], here.rows[over])

    def settle(self) -> None:
        """Phases may be complete because the others of their blocks have ended (``exit``)."""
        for number, first in self.ids.items():
            keys = np.arange(self.blocks) * NAMED + number
            rows = np.arange(first, first + self.blocks)
            over = self.completed[keys] > self.seen[rows]
            if over.any():
                self._complete(keys[over], rows[over])

    def _arrivals(self, group: Group, warps: Array, keys: Array) -> Arrivals:
        """The barriers that these warps arrive at; found once for each pair of warps and keys, on which alone it
        depends."""
        name = "check.arrivals", warps.tobytes() if warps is not group.warps else b"", keys.tobytes()
        found: Arrivals | None = group.registers.get(name)
        if found is None:
            order = np.argsort(keys, kind="stable")
            by_key = keys[order]
            first = np.flatnonzero(np.concatenate([[True], by_key[1:] != by_key[:-1]]))
            each, counts = by_key[first], np.diff(np.append(first, keys.size))
            at = np.array([self._first(number) for number in (each % NAMED).tolist()]) + each // NAMED
            span = slice(int(at[0]), int(at[-1]) + 1) if (at[1:] - at[:-1] == 1).all() else at
            found = Arrivals(each, at, span, None if (by_key == keys).all() else order, first, counts)
            group.registers[name] = found
        return found

    def _first(self, number: int) -> int:
        """The row of the first block's barrier of this id."""
        found = self.ids.get(number)
        if found is None:
            found = self.ids[number] = self.seen.size
            self.gathered = np.concatenate([self.gathered, np.zeros((self.blocks, self.width), np.int32)])
            self.seen, self.arrived, self.waiting = (
                np.concatenate([kept, np.zeros(self.blocks, np.int64)])
                for kept in (self.seen, self.arrived, self.waiting)
            )
        return found

    def _complete(self, keys: Array, rows: Any) -> None:
        """Phases of these barriers are complete: those who wait go on, and know."""
        clocks, per, blocks = self.clocks, self.per, keys // NAMED
        self.seen[rows] = completed = self.completed[keys]
        there = (blocks[:, None] * per + np.arange(per)).reshape(-1)
        whole = self.arrived[rows] == per
        each = np.arange(keys.size).repeat(per)
        # Mostly every warp of the block arrived and waits; else those that wait for this phase are looked up, without
        # those that only arrived.
        if whole.all() and (self.waiting[rows] == per).all():
            waiting = there
        else:
            over = (self.key[there] == keys[each]) & (self.target[there] <= completed[each])
            waiting, each = there[over], each[over]
            whole &= over.reshape(-1, per).all(1)
        clocks.clocks[waiting] = np.maximum(clocks.clocks[waiting], self.gathered[rows][each])
        clocks.version += 1
        for warp in waiting if self.rest else ():
            rest = self.rest.get(int(self.key[warp]))
            if rest is not None:
                clocks.learn(int(warp), rest)
        # A barrier synchronises the lanes of each warp, too.
        if clocks.lane_clocks:
            clocks.merge_lanes(waiting)
        self.key[waiting] = -1
        # Where the whole block came, every warp knows what any of them did before.
        if whole.all():
            clocks.passed_barrier(there)
        elif whole.any():
            clocks.passed_barrier(there.reshape(-1, per)[whole].reshape(-1))
        self.gathered[rows] = 0
        self.arrived[rows] = self.waiting[rows] = 0
        for key in keys.tolist() if self.rest else ():
            self.rest.pop(key, None)


class ClusterBarrierClocks:
    """The barrier of every cluster. A phase may also be completed by warps that end, so what was gathered is looked
    after when the next one arrives and when waits end."""

    def __init__(self, clocks: Clocks, wave: Wave) -> None:
        self.clocks, self.barriers = clocks, wave.clusters
        count, width = self.barriers.completed.size, clocks.clocks.shape[1]
        self.width, self.seen = width, np.zeros(count, np.int64)
        self.gathered: dict[int, ReleasedClock] = {}
        self.done: dict[int, ReleasedClock] = {}

    def arrive(self, threads: Array, releases: bool) -> None:
        clocks, per = self.clocks, self.barriers.per_cluster
        cluster = int(threads[0]) // per
        if (threads // per != cluster).any():
            for one in np.unique(threads // per):
                self.arrive(threads[threads // per == one], releases)
            return
        if self.barriers.target[threads[0]] > self.barriers.completed[cluster]:
            self._take_completed(cluster)  # the phase before was completed by those who ended
        warps = np.unique(threads // WARP)
        if releases:
            gathered = self.gathered.setdefault(cluster, ReleasedClock(self.width))
            gathered.add(clocks.release(warps).max(0), _rest(clocks, warps))
            clocks.step(warps)
        self._take_completed(cluster)

    def _take_completed(self, cluster: int) -> None:
        if self.barriers.completed[cluster] > self.seen[cluster]:
            self.seen[cluster] = self.barriers.completed[cluster]
            found = self.gathered.pop(cluster, None)
            if found is not None:
                self.done.setdefault(cluster, ReleasedClock(self.width)).add(found.row, found.rest)

    def end_wait(self, warps: Array, wait: Any) -> None:
        if not isinstance(wait, ClusterWait):
            return
        if not any(order.acquire for order in wait.op.attrs["atom"].orders):
            return
        for cluster in np.unique(wait.cluster):
            self._take_completed(int(cluster))
            found = self.done.get(int(cluster))
            mine = warps[wait.cluster == cluster]
            if found is not None:
                found.hand_to(self.clocks, mine)
            self.clocks.merge_lanes(mine)


WarpPlaceLane = tuple[int, int, int]


def _by_number(places: Array, warps: Array) -> dict[int, Array]:
    """The warps of each place."""
    return {place: warps[places == place] for place in dict.fromkeys(places.tolist())}


class MbarrierClocks:
    """The mbarriers, by their places. What earlier phases released stays known to who waits for a later one: arrivals
    are read-modify-writes, which carry on a release."""

    def __init__(self, clocks: Clocks) -> None:
        self.clocks, self.width = clocks, clocks.clocks.shape[1]
        self.gathered: dict[int, ReleasedClock] = {}
        self.done: dict[int, ReleasedClock] = {}
        self.waiting: dict[int, list[tuple[int, int | None]]] = {}  # by warp: place, lane (None: all)
        self.units: dict[int, tuple[int, int]] = {}  # by place: unit, and the clock of what comes next
        self.count: dict[int, int] = {}

    def _by_place(self, warps: Array, places: Array, lanes: Array) -> tuple[dict[int, Array], list[WarpPlaceLane]]:
        """Whole warps that name one place, by place; and (warp, place, lane) of other lanes that act."""
        rows = lanes // WARP
        if rows.size == 1 or (rows[1:] != rows[:-1]).all():  # a lane of each warp, as those that are elected
            mine = warps[rows]
            if (self.clocks.lanes[mine] > 1).all():
                return {}, list(zip(mine.tolist(), places.tolist(), (lanes % WARP).tolist(), strict=True))
        if (whole_warps := self._of_whole_warps(warps, places, lanes)) is not None:
            return whole_warps, []
        first = np.flatnonzero(np.concatenate([[True], rows[1:] != rows[:-1]]))
        counts = np.diff(np.append(first, rows.size))
        mine = warps[rows[first]]
        whole = np.minimum.reduceat(places, first) == np.maximum.reduceat(places, first)
        whole &= counts == self.clocks.lanes[mine]
        whole_warps = _by_number(places[first][whole], mine[whole])
        single = np.flatnonzero(~np.repeat(whole, counts))
        others = warps[rows[single]].tolist(), places[single].tolist(), (lanes[single] % WARP).tolist()
        return whole_warps, list(zip(*others, strict=True))

    @staticmethod
    def _of_whole_warps(warps: Array, places: Array, lanes: Array) -> dict[int, Array] | None:
        """The warps by place, if all 32 lanes of each act and name one place. Invariant: lanes ascend, so 32 of them
        that end 31 behind a multiple of 32 are a warp."""
        if lanes.size % WARP:
            return None
        by_row, there = lanes.reshape(-1, WARP), places.reshape(-1, WARP)
        first = by_row[:, 0]
        if np.count_nonzero(first % WARP) or np.count_nonzero(by_row[:, -1] - first != WARP - 1):
            return None
        if np.count_nonzero(there != there[:, :1]):
            return None
        return _by_number(there[:, 0], warps[first // WARP])

    def _at(self, place: int) -> ReleasedClock:
        found = self.gathered.get(place)
        if found is None:
            found = self.gathered[place] = ReleasedClock(self.width)
        return found

    def arrive(self, warps: Array, places: Array, lanes: Array) -> None:
        """Lanes ``lanes`` of ``warps`` arrive at the mbarriers ``places``: each mbarrier gathers what they release. A
        lane that arrives alone releases what it knows itself, a whole warp what all of its lanes know."""
        clocks = self.clocks
        whole_warps, single_lanes = self._by_place(warps, places, lanes)
        others: list[tuple[int, int, int | None]] = [*single_lanes]
        for place, mine in whole_warps.items():
            if clocks.lane_clocks:
                apart = [warp for warp in mine.tolist() if warp in clocks.lane_clocks]
                others += [(warp, place, None) for warp in apart]
                mine = mine[~np.isin(mine, apart)]
            if mine.size:
                self._at(place).add(np.maximum.reduce(clocks.release(mine)))
                clocks.step(mine)
        for warp, place, lane in others:
            know = clocks.known(warp, lane)
            row = know.rows.pop(int(clocks.cluster[warp]))
            self._at(place).add(row, know if know.rows or know.lanes else None)
        if others:
            clocks.step(np.array([*{warp for warp, _, _ in others}]))

    def arrive_relaxed(self, warps: Array, places: Array, lanes: Array, flags: Flags, scope: int) -> None:
        """As :meth:`arrive`, of arrivals that release nothing by themselves: what a fence before them released is what
        the mbarrier gathers, where the fence's scope and theirs are wide enough."""
        clocks = self.clocks
        for warp, place, lane in self._each(warps, places, lanes):
            know, level = flags.released_by_fence(clocks, warp, lane, scope)
            block = clocks.first + warp // clocks.layout.warps
            if know is None or level < flags.covers(block, clocks.first + (place >> 32)):
                continue
            row = know.rows.pop(int(clocks.cluster[warp]), None)
            nothing = np.zeros(self.width, np.int32)
            self._at(place).add(nothing if row is None else row, know if know.rows or know.lanes else None)

    def _each(self, warps: Array, places: Array, lanes: Array) -> list[tuple[int, int, int | None]]:
        """(warp, place, lane) of who acts; lane None where a whole warp does."""
        whole_warps, single_lanes = self._by_place(warps, places, lanes)
        whole = [(warp, place, None) for place, mine in whole_warps.items() for warp in mine.tolist()]
        return [*whole, *single_lanes]

    def landed(self, warps: Array, places: Array, lanes: Array, agent: int, opened: Array) -> None:
        """Arrivals that stand for what an agent did for these lanes: up to the groups open at their issue."""
        clocks = self.clocks
        rows = {int(w): k for k, w in enumerate(warps)}
        for warp, place, lane in self._each(warps, places, lanes):
            clock, gathered = int(opened[rows[warp], agent]), self._at(place)
            if lane is None or clocks.issues_alone(warp, lane, agent):
                # The copies of a whole warp have a column; those of single lanes have none, and go beside the row.
                column = clocks.layout.agent_unit(int(clocks.own[warp]), warp, agent)
                gathered.row[column] = max(gathered.row[column], clock)
            else:
                unit = clocks.layout.agent_unit(int(clocks.unit[warp]), warp, agent)
                gathered.add(gathered.row, SparseClock(None, {unit * WARP + lane: clock}))

    def bytes_came(self, place: int) -> tuple[int, int]:
        """(unit, clock) of bytes that an asynchronous unit has brought, and that it counts at this mbarrier."""
        known = self.units.get(place)
        if known is None:
            block = place >> 32
            layout, first = self.clocks.layout, self.clocks.first
            # A block has MBARRIERS units for its mbarriers. Further ones share them: then a race between copies to two
            # mbarriers may be missed, but none is reported that is not there.
            number = self.count.get(block, 0)
            self.count[block] = number + 1
            known = (first + block) * layout.block + layout.first_mbarrier + number % MBARRIERS, 0
        unit, clock = known
        self.units[place] = unit, clock + 1
        gathered = self._at(place)
        cluster = unit // self.clocks.layout.cluster
        gathered.row[unit - cluster * self.clocks.layout.cluster] = clock + 1
        return unit, clock + 1

    def complete(self, places: Array) -> None:
        for place in set(places.tolist()):
            found = self.gathered.pop(place, None)
            if found is not None:
                self.done.setdefault(place, ReleasedClock(self.width)).add(found.row, found.rest)

    def forget(self, places: Array) -> None:
        for place in map(int, places):
            self.gathered.pop(place, None)
            self.done.pop(place, None)

    # -- acquiring -----------------------------------------------------------------------------------------------------

    def begin_wait(self, warps: Array, places: Array, lanes: Array) -> None:
        whole_warps, others = self._by_place(warps, places, lanes)
        for place, mine in whole_warps.items():
            for warp in map(int, mine):
                self.waiting.setdefault(warp, []).append((place, None))
        for warp, place, lane in others:
            self.waiting.setdefault(warp, []).append((place, lane))

    def end_wait(self, warps: Array) -> None:
        whole_warps: dict[int, list[int]] = {}
        for warp in warps.tolist():
            for place, lane in self.waiting.pop(warp, ()):
                if lane is None:
                    whole_warps.setdefault(place, []).append(warp)
                else:
                    self._learn(warp, place, lane)
        for place, mine in whole_warps.items():
            self._all_learn(np.array(mine), place)

    def acquire(self, warps: Array, places: Array, lanes: Array) -> None:
        if not places.size:
            return
        whole_warps, others = self._by_place(warps, places, lanes)
        for place, mine in whole_warps.items():
            self._all_learn(mine, place)
        for warp, place, lane in others:
            self._learn(warp, place, lane)

    def see(self, flags: Flags, scope: int, warps: Array, places: Array, lanes: Array) -> None:
        """Relaxed tests have found these phases complete: a fence after them acquires what was released there."""
        clocks = self.clocks
        for warp, place, lane in self._each(warps, places, lanes) if places.size else ():
            if place in self.done:
                flags.has_seen(clocks, warp, self._released(warp, place), clocks.first + (place >> 32), scope, lane)

    def _all_learn(self, warps: Array, place: int) -> None:
        found = self.done.get(place)
        if found is not None:
            found.hand_to(self.clocks, warps)

    def _learn(self, warp: int, place: int, lane: int) -> None:
        if place in self.done:
            self.clocks.learn(warp, self._released(warp, place), lane)

    def _released(self, warp: int, place: int) -> SparseClock:
        """What phases of this mbarrier have released so far. Its row goes on changing with later phases, so this is a
        copy, which may be kept."""
        found = self.done[place]
        know = SparseClock({int(self.clocks.cluster[warp]): found.row.copy()})
        if found.rest is not None:
            know.join(found.rest)
        return know
