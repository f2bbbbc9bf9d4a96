"""What strong writes to memory release: flags, locks, tickets; with the fences around relaxed ones.

A release (``st.release``, an atomic with release, or a fence before a relaxed one) is known to who reads it with
acquire (or relaxed, with a fence after), if the scopes of both cover both threads. Atomics carry an earlier release on;
a store ends it. A fence before a block's barrier counts for the thread that writes the flag after the barrier, and a
fence after it for a flag that another thread has read before: so CUDA programs are written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tilewright.ir.effects import SCOPES, Ordering
from tilewright.ir.lanes import Array
from tilewright.ir.target import WARP
from tilewright.sim.checks.clocks import ClockColumns, Clocks
from tilewright.sim.checks.sites import Site
from tilewright.sim.checks.sparse_clock import SparseClock
from tilewright.sim.checks.versions import Versions

if TYPE_CHECKING:
    from tilewright.sim.group import Group

CTA, CLUSTER, GPU = (SCOPES.index(name) for name in ("cta", "cluster", "gpu"))


class Fenced(NamedTuple):
    """What a warp (or one lane) knew and had done at a fence, at its clock then. ``before``: of a fence of the whole
    warp, the clock at which its lanes had synchronised last; what they did after it each lane fenced for itself alone,
    until they synchronise again."""

    level: int
    clock: int
    know: SparseClock
    before: int = 0


class SeenRelease(NamedTuple):
    """A release that a relaxed read by a lane (None: by the whole warp) has seen, for a fence to acquire."""

    clock: int
    block: int
    level: int
    know: SparseClock
    lane: int | None


Released = tuple[SparseClock | None, int]  # what a write releases, and in which scope
Place = tuple[int, int]  # a memory, and a byte of it


@dataclass(frozen=True)
class StrongAccess:
    """A strong access of a group. ``holds``: what is at a byte now; ``releases``: it releases by itself, without a
    fence before it."""

    clocks: Clocks
    group: Group
    verb: str
    site: Site
    holds: Callable[[int], Any] | None
    releases: bool
    written: set[int] = field(default_factory=set)
    """The bytes that the instruction has written: what is there between its lanes is unknown."""
    by_fence: dict[tuple[int, int | None], Released] = field(default_factory=dict)
    """What a fence before it lets a warp, or one lane, release."""


class Flags:
    def __init__(self, layout: ClockColumns) -> None:
        self.layout = layout
        # By place: for each block and scope that released something there, what.
        self.places: dict[tuple[int, int], dict[tuple[int, int], SparseClock]] = {}
        self.fenced: dict[Clocks, dict[int, dict[int | None, Fenced]]] = {}
        self.seen: dict[Clocks, dict[int, list[SeenRelease]]] = {}
        self.versions: Versions | None = None
        # How often what a place releases has changed; and at which of these counts a warp (or lane) has acquired it.
        # Invariant: who has acquired a place at this count knows all that it releases, and forgets nothing.
        self.changes: dict[tuple[int, int], int] = {}
        self.acquired: dict[tuple[Clocks, int, int | None, tuple[int, int]], int] = {}

    def covers(self, one: int, other: int) -> int:
        """The scope that two blocks (numbers in the launch) need to be ordered."""
        if one == other:
            return CTA
        size = self.layout.geometry.cluster_size
        return CLUSTER if one // size == other // size else GPU

    def covers_all(self, one: Array, other: Array) -> Array:
        """As :meth:`covers`, of many pairs of blocks."""
        size = self.layout.geometry.cluster_size
        return np.where(one == other, CTA, np.where(one // size == other // size, CLUSTER, GPU))

    def access(
        self,
        clocks: Clocks,
        group: Group,
        verb: str,
        site: Site,
        memory: int,
        at: Array,
        rows: Array,
        lanes: Array,
        holds: Callable[[int], Any] | None = None,
    ) -> None:
        """A strong access: lanes ``lanes`` of the group's warps ``rows`` at the bytes ``at`` of a memory. ``holds``:
        what is there now, to find which of several values a loop has waited for."""
        releases = site.order in ("release", "acq_rel") and verb != "load"
        # No release has been made, and this access makes none: the case of most counters and locks.
        if not self.places and (verb == "load" or not (releases or self.fenced.get(clocks))):
            return
        access = StrongAccess(clocks, group, verb, site, holds, releases)
        by_lane = self.versions is not None and verb == "load" and self.versions.differ_by_lane(site.op, group)
        for warp, place, lane in _by_place(clocks, group, at, rows, lanes, by_lane):
            key = (memory, place)
            seen, update = self._seen(access, key, warp, lane)
            if verb != "store" and seen:
                self._read_once(access, key, warp, lane, seen)
            if verb != "load":
                self._write(access, key, warp, lane, seen, update)
        if releases:
            clocks.step(np.unique(group.warps[rows]))

    def _block(self, clocks: Clocks, warp: int) -> int:
        return clocks.first + warp // self.layout.warps

    def _seen(
        self, access: StrongAccess, key: Place, warp: int, lane: int | None
    ) -> tuple[dict[tuple[int, int], SparseClock] | None, Any]:
        """What an access finds released at a place, and the version that an atomic makes of it (None where versions are
        not told apart)."""
        clocks, group, site, seen = access.clocks, access.group, access.site, self.places.get(key)
        if self.versions is None or site.op is None:
            return seen, None
        if access.verb == "load" and access.holds is not None and seen:
            return self.versions.acquired(site.op, key, access.holds(key[1]), seen, clocks, group, warp, lane), None
        if access.verb != "atomic":
            return seen, None
        update = self.versions.update(site.op, key, clocks, group, warp, lane)
        if update is not None:  # what it releases in every order: what it has acquired here, it may not have
            own = clocks.known(warp, lane) if access.releases else self._by_fence_once(access, warp, lane)[0]
            update.own.update({} if own is None else {(self._block(clocks, warp), site.scope): own})
        return seen, update

    def _read_once(
        self,
        access: StrongAccess,
        key: Place,
        warp: int,
        lane: int | None,
        seen: dict[tuple[int, int], SparseClock],
    ) -> None:
        """Read what was released. What a thread has acquired it keeps, so that one that looks again learns nothing:
        loops do it often."""
        clocks, site, is_newest = access.clocks, access.site, seen is self.places.get(key)
        reader, changes = (clocks, warp, lane, key), self.changes.get(key, 0)
        if access.verb != "load" or not is_newest or self.acquired.get(reader) != changes:
            self._read(clocks, warp, lane, self._block(clocks, warp), site, seen)
            if is_newest and site.order == "acquire" and site.scope >= GPU:
                self.acquired[reader] = changes

    def _write(
        self,
        access: StrongAccess,
        key: Place,
        warp: int,
        lane: int | None,
        seen: dict[tuple[int, int], SparseClock] | None,
        update: Any,
    ) -> None:
        """Enter what a store or an atomic releases at a place."""
        clocks, holds = access.clocks, access.holds
        self.changes[key] = self.changes.get(key, 0) + 1
        if access.releases:
            released: Released = clocks.known(warp, lane), access.site.scope
        else:
            released = self._by_fence_once(access, warp, lane)
        know, level = released
        # A store ends the earlier release sequences, an atomic carries them on (PTX ISA, "Release pattern").
        if access.verb == "store" and seen:
            seen.clear()
        if know is not None:
            entries, source = self.places.setdefault(key, {}), (self._block(clocks, warp), level)
            before = entries.get(source)
            if before is not None:
                know = know.copy()
                know.join(before)
            entries[source] = know
        if self.versions is not None and holds is not None:
            held = None if key[1] in access.written else holds(key[1])
            access.written.add(key[1])
            self.versions.written(key, held, self.places.get(key, {}), clocks, warp, lane, update)

    def _read(
        self,
        clocks: Clocks,
        warp: int,
        lane: int | None,
        block: int,
        site: Site,
        releases: dict[tuple[int, int], SparseClock],
    ) -> None:
        acquires = site.order in ("acquire", "acq_rel")
        visible = [
            (source, level, know)
            for (source, level), know in releases.items()
            if min(level, site.scope) >= self.covers(source, block)
        ]
        for source, level, know in visible:
            if acquires:
                clocks.learn(warp, know, lane)
            else:
                self.has_seen(clocks, warp, know, source, min(level, site.scope), lane)
        if acquires and site.order == "acq_rel" and len(visible) == len(releases):
            releases.clear()  # what this operation releases contains it all

    def has_seen(
        self, clocks: Clocks, warp: int, know: SparseClock, source: int, level: int, lane: int | None = None
    ) -> None:
        """A relaxed read has seen what a thread of block ``source`` released, for a fence after it to acquire.
        ``lane``: the only one that has read it; None: all of the warp."""
        items, seen = self.seen.setdefault(clocks, {}).setdefault(warp, []), (know, level, lane)
        if not any((i.know, i.level, i.lane) == seen for i in items):  # a loop reads it many times
            items.append(SeenRelease(int(clocks.now[warp]), source, level, know, lane))

    def _by_fence_once(self, access: StrongAccess, warp: int, lane: int | None) -> Released:
        """``released_by_fence`` within one access, asked once for all lanes of a warp. Invariant: the answers of two
        lanes differ only where some lane of the warp has fenced alone, or where the lanes have not synchronised since
        they fenced; then each is asked. The clock is shared."""
        clocks = access.clocks
        fences = self.fenced.get(clocks, {}).get(warp, {})
        alone = any(k is not None or f.clock > clocks.clocks[warp, clocks.own[warp]] for k, f in fences.items())
        key = warp, lane if alone else None
        if key not in access.by_fence:
            access.by_fence[key] = self.released_by_fence(clocks, warp, lane, access.site.scope)
        return access.by_fence[key]

    def released_by_fence(self, clocks: Clocks, warp: int, lane: int | None, scope: int) -> Released:
        """What a relaxed write releases: what was before the last fence of its thread, and of threads of its block that
        are known to have fenced."""
        fences, released, level = self.fenced.get(clocks, {}), SparseClock(), len(SCOPES)
        first = warp - warp % self.layout.warps
        mine = fences.get(warp, {})
        own = [
            f if k is not None or lane is None else self._for_lane(f, clocks, warp, lane)
            for k, f in mine.items()
            if k is None or lane is None or k == lane
        ]
        for other in range(first, first + self.layout.warps):
            if other != warp:
                # Releases are cumulative: a fence of another warp that is known here covers this write, too.
                other_clock = int(clocks.clocks[warp, clocks.own[other]])
                own += [f for f in fences.get(other, {}).values() if f.clock <= other_clock]
        for fence in own:
            released.join(fence.know)
            level = min(level, fence.level)
        return (released, min(level, scope)) if own else (None, 0)

    def _for_lane(self, fence: Fenced, clocks: Clocks, warp: int, lane: int) -> Fenced:
        """What a fence of the whole warp covers for one lane: what the other lanes did before it only if the lanes have
        synchronised since (PTX ISA, "Release and Acquire Patterns": a fence is followed by the write *in program
        order*, that of a thread)."""
        own = int(clocks.own[warp])
        if int(clocks.clocks[warp, own]) >= fence.clock:
            return fence
        know, cluster = fence.know.copy(), int(clocks.cluster[warp])
        row = know.rows[cluster].copy()
        row[own] = fence.before
        know.rows[cluster] = row
        know.lanes[int(clocks.unit[warp]) * WARP + lane] = fence.clock
        return fence._replace(know=know)

    def fence(self, clocks: Clocks, group: Group, order: Ordering) -> None:
        """A fence of threads. Acquire: a thread that has read a flag before now knows what its writer released.
        Release: what is known here is what a later store of a flag hands on; kept by lane where only some lanes of a
        warp execute the fence."""
        level = SCOPES.index(order.scope)
        exists = clocks.exists[group.warps]
        active = exists if group.mask is None else group.mask.reshape(-1, WARP)
        whole = (active == exists).all(1)
        acquires = order.acquire and bool(self.seen.get(clocks))
        for row in np.flatnonzero(active.any(1) & (~whole | acquires)).tolist():
            warp = int(group.warps[row])
            for lane in [None] if whole[row] else np.flatnonzero(active[row]).tolist():
                if acquires:
                    self._acquire(clocks, warp, lane, level)
                if order.release and lane is not None:
                    fenced = Fenced(level, int(clocks.now[warp]), clocks.known(warp, lane))
                    self.fenced.setdefault(clocks, {}).setdefault(warp, {})[lane] = fenced
        if order.release and whole.any():
            self._whole_warps(clocks, group.warps[whole], level)
        # What follows the fence is not covered by it.
        clocks.step(group.warps)

    def _whole_warps(self, clocks: Clocks, warps: Array, level: int) -> None:
        """All lanes of these warps fence, and release what they know."""
        rows, fenced = clocks.release(warps), self.fenced.setdefault(clocks, {})
        before = clocks.clocks[warps, clocks.own[warps]].tolist()
        for warp, now, was, row in zip(warps.tolist(), clocks.now[warps].tolist(), before, rows, strict=True):
            know = clocks.known(warp) if warp in clocks.lane_clocks else SparseClock({int(clocks.cluster[warp]): row})
            fenced[warp] = {None: Fenced(level, now, know, was)}

    def _acquire(self, clocks: Clocks, warp: int, lane: int | None, level: int) -> None:
        seen = self.seen.get(clocks)
        if not seen:
            return
        block = clocks.first + warp // self.layout.warps
        first = warp - warp % self.layout.warps
        for other in range(first, first + self.layout.warps):
            # Another warp of the block may have read the flag, if a barrier has ordered its read before this fence.
            other_clock = int(clocks.now[warp]) if other == warp else int(clocks.clocks[warp, clocks.own[other]])
            together = int(clocks.clocks[warp, clocks.own[warp]])
            for item in seen.get(other, ()):
                if item.clock <= other_clock and min(item.level, level) >= self.covers(item.block, block):
                    # What a lane alone has read since the lanes synchronised, its own fence alone acquires.
                    alone = other == warp and item.lane is not None and item.clock > together
                    if alone and lane is not None and lane != item.lane:
                        continue
                    clocks.learn(warp, item.know, item.lane if alone else lane)


def _by_place(
    clocks: Clocks, group: Group, at: Array, rows: Array, lanes: Array, by_lane: bool
) -> list[tuple[int, int, int | None]]:
    """(warp, place, lane) of the lanes that act; lane None where a whole warp names one place (unless ``by_lane``)."""
    places: list[tuple[int, int, int | None]] = []
    for row in np.unique(rows):
        mine = rows == row
        where, warp = at[mine], int(group.warps[row])
        if not by_lane and mine.sum() == clocks.exists[warp].sum() and (where == where[0]).all():
            places.append((warp, int(where[0]), None))
        else:
            places += [(warp, int(p), int(n)) for p, n in zip(where, lanes[mine], strict=True)]
    return places
