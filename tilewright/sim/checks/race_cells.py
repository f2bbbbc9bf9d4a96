"""Data races cell by cell: an access against what shadow memory says of those before it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.ir.lanes import Array
from tilewright.ir.target import WARP
from tilewright.sim.checks.accessors import Accessors
from tilewright.sim.checks.actors import Actor, actor
from tilewright.sim.checks.early_reads import Copy, Reader
from tilewright.sim.checks.explain import explain
from tilewright.sim.checks.findings import Finding, Findings, Party
from tilewright.sim.checks.flags import GPU
from tilewright.sim.checks.order import HappensBefore
from tilewright.sim.checks.places import global_memory, shared_memory
from tilewright.sim.checks.shadow import (
    CLOCK_SHIFT,
    GROUPS,
    KIND_SHIFT,
    NEVER,
    SITE,
    SITE_SHIFT,
    THREADS,
    Cells,
    Read,
    Shadow,
    clock_of,
    site_of,
    who_of,
)
from tilewright.sim.checks.sites import THREAD, KernelFacts, Site, kernel_facts

if TYPE_CHECKING:
    from tilewright.sim.engine import Launch
    from tilewright.sim.group import Group

OFTEN = 16  # reads in a list before those are dropped that a barrier has made old
NO_INDICES = np.zeros(0, np.int64)
DOES = {"load": "read", "store": "write", "atomic": "atomic"}
DID = {"load": "after a read", "store": "after a write", "atomic": "after an atomic"}
READERS = ("", "wgmma", "cp.async.bulk.read")  # whose reads of a stage may come too early: threads, and agents
PAIR = np.dtype([("thread", np.int64), ("entry", np.int64)])


class CellCheck:
    """``owners``: the buffers of the shadows of global memory; other shadows are of shared memory."""

    def __init__(self, findings: Findings, order: HappensBefore, launch: Launch, facts: KernelFacts) -> None:
        self.findings, self.order, self.launch = findings, order, launch
        self.names, self.results_used = facts.shared_names, facts.results_used
        self.owners: dict[Shadow, Any] = {}

    def check(
        self, verb: str, shadow: Shadow, cells: Array, acting: Accessors, number: int, group: Group, values: Any
    ) -> None:
        """``number``: of the site; ``values``: what a store writes: (buffer, access, values, offsets) or None."""
        cells = shadow.local(cells)
        where, shared = Cells(cells), shadow not in self.owners
        floors = acting.floors if shared else (0, 0)
        scope = self.order.sites[number].scope
        strong = scope != THREAD
        before = where.get(shadow.written)
        asks = THREAD <= scope < GPU and shadow.observer is not None  # strong ones of all blocks race with none
        seen = self._observed(where, shadow, acting, group, number) if asks else None
        # One maximum over the entries shows in most cases that a barrier of all threads came between.
        if not _older(before, *floors):
            hidden = before if seen is None else np.where(seen & self.order.sites.strong(before), 0, before)
            self._compare(verb, hidden, cells, acting, number, group, values, shadow)
        # A strong access may take the place of a weak one that it is ordered with and others are not, and the other way
        # round: those are kept, too.
        for memory in shadow.weak if strong else shadow.strong.values():
            kept = where.get(memory)
            if seen is not None:
                kept[seen] = 0
            if not _older(kept, *floors):
                self._compare(verb, kept, cells, acting, number, group, None, shadow)
        if strong and verb != "load" and before.any():
            weak = (before != 0) & ~self.order.sites.strong(before)
            if weak.any():
                shadow.keep_weak(cells[weak], before[weak])
        entries = acting.entries(number)
        if strong:
            shadow.set_observer(
                where, entries if verb == "load" or self.order.sites[number].op in self.results_used else None
            )
        if verb == "load":
            if len(shadow.reads) >= OFTEN and shared:
                shadow.drop_old_reads(self.order.floors(acting.clocks)[0])
            newest = acting.newest if acting.kind == THREADS else NEVER
            shadow.read(Read(where, entries, newest, floors[0]))
            return
        if shadow.has_newer_reads(floors[0]):
            for reads in shadow.merge_reads():
                before = where.get(reads)
                if not _older(before, *floors):
                    self._compare(verb, before, cells, acting, number, group, None, shadow)
                if not strong:
                    where.set(reads, 0)
        where.set(shadow.written, entries)
        if not where.distinct():
            lost = np.flatnonzero(where.get(shadow.written) != entries)
            if lost.size and verb == "atomic" and self.order.sites[number].scope >= GPU:
                self._keep_strong(lost, entries, shadow, cells)
            elif lost.size:
                self._same_instruction(lost, entries, shadow, cells, acting, number, group, values)

    def _observed(self, where: Cells, shadow: Shadow, acting: Accessors, group: Group, number: int) -> Array:
        """bool: the cells whose last strong write was read before, in happens-before order, the present access. Strong
        writes come before what follows such a read (PTX ISA, "Causality order"): a ticket's last block may clear it."""
        assert shadow.observer is not None
        reads = where.get(shadow.observer)
        seen: Array = reads != 0
        if seen.any():
            seen[self._unordered(reads, acting, group, number)] = False
        return seen

    def _compare(
        self, verb: str, before: Array, cells: Array, acting: Accessors, number: int, group: Group, values: Any,
        shadow: Shadow,
    ) -> None:  # fmt: skip
        """Report the entries ``before`` that did not happen before."""
        if self._known_by_warps(before, acting, group):
            return
        bad = self._unordered(before, acting, group, number)
        if not bad.size:
            return
        bad = self._both_strong(bad, before, cells, acting, number, shadow)
        if bad.size and verb == "store" and values is not None:
            bad = _other_values(bad, before, cells, shadow, values, self.order)
        if bad.size:
            self._report(verb, bad, before, cells, acting, number, group, shadow)

    def _known_by_warps(self, before: Array, acting: Accessors, group: Group) -> bool:
        """Whether each warp has met one warp's accesses at one clock, and knows of them."""
        clocks, warps = acting.clocks, group.warps
        if acting.listed or acting.landed or acting.mask is not None:
            return False
        lane = WARP.bit_length() - 1
        # Without the bits of the lane: mostly a warp meets what one instruction of one warp has left.
        by_warp = (before >> lane).reshape(warps.size, -1)
        first = by_warp[:, 0]
        if not (by_warp == first[:, None]).all():
            return False
        entries = first << lane
        clusters, columns = np.divmod(who_of(entries) >> lane, self.order.layout.cluster)
        met = zip(warps.tolist(), clusters.tolist(), columns.tolist(), clock_of(entries).tolist(), strict=True)
        for warp, cluster, column, clock in met:
            row: Array | None = clocks.clocks[warp]
            if cluster != clocks.cluster[warp]:
                lane_clocks = clocks.lane_clocks.get(warp)
                row = lane_clocks.know.rows.get(cluster) if lane_clocks is not None else None
            if clock and (row is None or row[column] < clock):
                return False
        return True

    def _unordered(self, before: Array, acting: Accessors, group: Group, number: int) -> Array:
        """The numbers of the entries ``before`` that did not happen before."""
        clocks, snapshot, rows = acting.clocks, acting.snapshot, acting.rows
        warps = group.warps[rows]
        identity = who_of(before)
        column = (identity >> 5) - clocks.base[warps]
        inside: Any = None
        # As unsigned numbers, columns below 0 are large: one comparison for both ends.
        if int(column.view(np.uint64).max()) >= clocks.clocks.shape[1]:  # another cluster's, or an empty entry
            inside = column.view(np.uint64) < clocks.clocks.shape[1]
            column = np.where(inside, column, 0)
        clock = clock_of(before)
        known = clocks.clocks[warps, column] if snapshot is None else snapshot.rows[rows, column]
        fine = known >= clock
        if inside is not None:
            fine &= inside
            fine |= before == 0
        if fine.all():
            return NO_INDICES
        if snapshot is None:
            # Program order orders a thread's own accesses, whatever the clocks say.
            fine |= identity == acting.thread
        else:
            # What lands comes after what its thread did before the issue; other bytes of the same copy are no race.
            fine |= (identity == acting.thread) & (clock <= snapshot.now[rows])
            fine |= (identity == acting.identity) & (clock == acting.clock) & (site_of(before) == number)
        if fine.all():
            return NO_INDICES
        bad = np.flatnonzero(~fine)
        if self.order.layout.elects:
            # A lane that released something alone, an elected one, has a column beside that of its warp.
            column = self.order.layout.elected_columns(identity[bad])
            known = clocks.clocks[warps[bad], column] if snapshot is None else snapshot.rows[rows[bad], column]
            here = (column >= 0) & (identity[bad] // WARP // self.order.layout.cluster == clocks.cluster[warps[bad]])
            bad = bad[~(here & (known >= clock[bad]))]
        return self._ask_lanes(bad, before, acting, group)

    def _ask_lanes(self, bad: Array, before: Array, acting: Accessors, group: Group) -> Array:
        """Those of ``bad`` that what single lanes, or warps of other clusters, are known for does not explain."""
        clocks, snapshot, layout = acting.clocks, acting.snapshot, self.order.layout
        lane_clocks = clocks.lane_clocks if snapshot is None else snapshot.lane_clocks
        if lane_clocks and layout.geometry.blocks > layout.geometry.cluster_size:
            bad = self._ask_other_clusters(bad, before, acting, group)
        if not bad.size or (not lane_clocks and not layout.agents):
            return bad
        # The answer depends on who accessed and when, not on the site: each pair is asked once. So it is for lanes of
        # which nothing is known that their warp does not know.
        entries, threads = before[bad] & ~(((1 << SITE) - 1) << SITE_SHIFT), acting.thread[bad]
        if not layout.agents:
            apart = [w for w, known in clocks.lane_clocks.items() if known.extras] if snapshot is None else []
            threads = np.where(np.isin(group.warps[acting.rows[bad]], apart), threads, threads - threads % WARP)
        pairs = np.stack([threads, entries], 1).view(PAIR).reshape(-1)
        _, first, which = np.unique(pairs, return_index=True, return_inverse=True)
        answers = np.array([self._known_by_lane(int(k), before, acting, group) for k in bad[first]], bool)
        return bad[~answers[which.reshape(-1)]]

    def _ask_other_clusters(self, bad: Array, before: Array, acting: Accessors, group: Group) -> Array:
        """Those of ``bad`` that their warps do not know from other clusters."""
        warps = group.warps[acting.rows[bad]]
        clusters, columns = np.divmod(who_of(before[bad]) // WARP, self.order.layout.cluster)
        elected = self.order.layout.elected_columns(who_of(before[bad])) if self.order.layout.elects else None
        left = np.ones(bad.size, bool)
        pairs = np.unique((warps.astype(np.int64) << 32) + clusters)
        for warp, cluster in zip(*np.divmod(pairs, 1 << 32), strict=True):
            lane_clocks = acting.clocks.lane_clocks.get(int(warp))
            know = lane_clocks.know if lane_clocks is not None else None
            # An asynchronous copy knows what its lane knew when it was issued, not what the warp has learnt since.
            if acting.snapshot is not None:
                know = acting.snapshot.lane_clocks.get(int(warp))
            row = know.rows.get(int(cluster)) if know is not None else None
            if row is not None:
                mine = (warps == warp) & (clusters == cluster)
                left[mine] = row[columns[mine]] < clock_of(before[bad[mine]])
                if elected is not None:
                    left[mine] &= (elected[mine] < 0) | (row[elected[mine]] < clock_of(before[bad[mine]]))
        return bad[left]

    def _known_by_lane(self, k: int, before: Array, acting: Accessors, group: Group) -> bool:
        """Whether the ``k``-th access happened after the entry before it, by what is known of its lane alone: rows and
        lanes that its warp learnt of other clusters, and groups of asynchronous copies that the lane has waited for."""
        clocks, layout = acting.clocks, self.order.layout
        warp, lane = int(group.warps[acting.rows[k]]), int(acting.thread[k]) % WARP
        identity, clock = int(who_of(before[k])), int(clock_of(before[k]))
        unit = identity // WARP
        cluster, columns = unit // layout.cluster, layout.columns(identity)
        if acting.snapshot is not None:
            know = acting.snapshot.lane_clocks.get(warp)
            if know is not None and know.knows(cluster, columns, identity, clock):
                return True
        else:
            lane_clocks = clocks.lane_clocks.get(warp)
            if lane_clocks is not None:
                extra = lane_clocks.extras.get(lane)
                if lane_clocks.know.knows(cluster, columns, identity, clock) or (
                    extra is not None and extra.knows(cluster, columns, identity, clock)
                ):
                    return True
        # A thread that has waited for a group of its own copies knows them; other threads need a barrier after.
        for a in range(len(layout.agents)):
            mine = layout.agent_unit(int(clocks.unit[warp]), warp, a)
            if unit == mine and (identity % WARP == lane or layout.by_warpgroup[a]):
                if acting.snapshot is not None:
                    return acting.snapshot.waited_by(int(acting.rows[k]), a, lane) >= clock
                return clocks.waited_by(warp, a, lane) >= clock
        return False

    def _both_strong(
        self, bad: Array, before: Array, cells: Array, acting: Accessors, number: int, shadow: Shadow
    ) -> Array:
        """Those of ``bad`` that are not both strong. The others do not race, but what comes after may with both."""
        mine = self.order.sites[number].scope
        if mine == THREAD:
            return bad
        layout, sites = self.order.layout, self.order.sites
        numbers, which = np.unique(site_of(before[bad]), return_inverse=True)
        scopes = np.minimum(mine, np.array([sites[int(n)].scope for n in numbers])[which.reshape(-1)])
        blocks = [who // (WARP * layout.block) for who in (who_of(before[bad]), acting.thread[bad])]
        covered = scopes >= self.order.flags.covers_all(*blocks)
        strong = bad[covered]
        if strong.size:
            shadow.keep_strong(cells[strong], before[strong], layout.block)
        return bad[~covered]

    def _keep_strong(self, lost: Array, entries: Array, shadow: Shadow, cells: Array) -> None:
        """Strong accesses ``lost`` of one instruction share cells with later ones: those of other warps are remembered,
        since what comes after may race with each."""
        others = lost[who_of(entries[lost]) // WARP != who_of(shadow.written[cells[lost]]) // WARP][::-1]
        if others.size:
            shadow.keep_strong(cells[others], entries[others], self.order.layout.block)

    def _same_instruction(
        self, lost: Array, entries: Array, shadow: Shadow, cells: Array, acting: Accessors, number: int, group: Group,
        values: Any,
    ) -> None:  # fmt: skip
        """Lanes that store to one cell with one instruction: fine if they store the same."""
        # NumPy keeps the last of several values for one cell, so the last lane is the one in memory.
        winner = {int(c): k for k, c in enumerate(cells)}
        if self.order.sites[number].scope != THREAD:
            before, every = shadow.written[cells], lost
            lost = self._both_strong(lost, before, cells, acting, number, shadow)
            self._keep_strong(np.setdiff1d(every, lost), entries, shadow, cells)
        if values is not None:
            _, access, stored, at = values
            if np.ndim(stored) != (1 if access.scalar else 2):
                return
            per = cells.size // at.size
            data = np.ascontiguousarray(access.encode(stored)).view(np.uint8).reshape(at.size, -1)
            lost = np.array(
                [k for k in map(int, lost) if (data[k // per] != data[winner[int(cells[k])] // per]).any()], np.int64
            )
        if lost.size:
            self._report("store", lost, shadow.written[cells], cells, acting, number, group, shadow)

    # -- the finding ---------------------------------------------------------------------------------------------------

    def _report(
        self, verb: str, bad: Array, before: Array, cells: Array, acting: Accessors, number: int, group: Group,
        shadow: Shadow,
    ) -> None:  # fmt: skip
        then = site_of(before[bad])
        for other in np.unique(then):
            mine = bad[then == other]
            key = (
                "data-race",
                *sorted(str(self.order.sites[n].place) for n in (number, int(other))),
            )
            # The pair whose threads are farthest apart says what orders all pairs of these lines.
            units = np.stack([acting.thread[mine], who_of(before[mine])]) // WARP
            blocks = units // self.order.layout.block
            apart = (units[0] != units[1]).astype(int) + (blocks[0] != blocks[1])
            farthest = int(np.argmax(apart))
            if not self.findings.counted(key, mine.size, int(apart[farthest])):
                found = self._finding(
                    verb, int(mine[farthest]), int(other), before, cells, acting, number, group, shadow
                )
                self.findings.add(replace(found, count=int(mine.size), apart=int(apart[farthest])), key)

    def _finding(
        self, verb: str, k: int, other: int, before: Array, cells: Array, acting: Accessors, number: int, group: Group,
        shadow: Shadow,
    ) -> Finding:  # fmt: skip
        now_site, then_site = self.order.sites[number], self.order.sites[other]
        shared = shadow not in self.owners
        offset = shadow.cell(int(cells[k])) << shadow.shift
        stages = self.order.stages if shared else None
        copy = None if stages is None else self._copy_that_arrives(acting, k) or stages.copy_at(group.wave, offset)
        parties = [
            Party(DOES[verb], now_site.op, self._who(int(acting.identity[k]), copy)),
            Party(DID[then_site.verb], then_site.op, self._who(int(who_of(before[k])), copy)),
        ]
        if shared:
            offset %= group.wave.shared.stride
            memory = shared_memory(offset, 1 << shadow.shift, self.names)
        else:
            memory = global_memory(now_site.op, self.owners[shadow], offset, 1 << shadow.shift)
        threads = [int(acting.thread[k]), int(who_of(before[k]))]
        early = None if copy is None else self._missing_wait(copy, now_site, then_site, acting, before, k, group)
        if early is not None:
            if then_site.verb == "load":  # the reader is at fault
                parties = [replace(parties[1], does="read"), replace(parties[0], does="before a write")]
            what, why, fix = early
            return Finding("data-race", f"data race in shared memory: {what}", parties, memory, why, fix, early=True)
        why, fix = explain(self.order.layout, now_site, then_site, threads, shared, kernel_facts(self.launch.program))
        what = f"data race in {'shared' if shared else 'global'} memory: nothing orders these two accesses"
        return Finding("data-race", what, parties, memory, why, fix)

    def _missing_wait(
        self, copy: Copy, now: Site, then: Site, acting: Accessors, before: Array, k: int, group: Group
    ) -> tuple[str, str, str] | None:
        """(what, why, fix) where one of the two is the write of ``copy`` and the other reads without a wait for it, or
        after a wait that did not count its bytes."""
        stages, clocks, layout = self.order.stages, acting.clocks, self.order.layout
        assert stages is not None
        now_writes = now.verb == "store" and now.agent in ("tma", "cp.async")
        read, write = (then, now) if now_writes else (now, then)
        copies = write.agent == "tma" or (now_writes and write.agent == "cp.async")
        if not copies or (write.verb, read.verb) != ("store", "load") or read.agent not in READERS:
            return None
        # The reader is who waited, or did not: its warp and clock are in the entry if the copy came second.
        if now_writes:
            unit = int(acting.identity[k]) // WARP
            block, within, agent = layout.describe(int(who_of(before[k])) // WARP)
            warp, clock = (block - clocks.first) * layout.warps + within, int(clock_of(before[k]))
            if agent:  # the clock is the number of its group
                known = stages.issued_at(group.wave, layout.agents.index(agent), warp, clock)
                clock = NEVER if known is None else known
        else:
            unit, warp = int(who_of(before[k])) // WARP, int(group.warps[acting.rows[k]])
            clock = int(clocks.now[warp] if acting.snapshot is None else acting.snapshot.now[acting.rows[k]])
        column = unit - int(clocks.base[warp])
        known_then = acting.snapshot.rows[acting.rows[k]] if read is now and acting.snapshot else clocks.clocks[warp]
        knows = int(known_then[column]) if 0 <= column < known_then.size else 0
        found = stages.missing_wait(Reader(group.wave, warp, clock, knows), copy)
        if found is not None:
            return "bytes of a copy are read before a wait for the copy", *found
        over = stages.not_announced(group.wave, copy) if now_writes and now.agent == "tma" else None
        return None if over is None else ("bytes of a copy come after the phase that should wait for them", *over)

    def _copy_that_arrives(self, acting: Accessors, k: int) -> Copy | None:
        """The copy by ``cp.async`` that lands because an arrival at an mbarrier stands for it."""
        landing = self.order.landing
        if len(landing) < 2 or (places := landing[-2].places) is None:
            return None
        arrival, row, lane = landing[-2], int(acting.rows[k]), int(acting.thread[k]) % WARP
        warp = int(landing[-1].notes.warps[row])
        lanes = np.flatnonzero(
            np.ones(arrival.lanes.group.warps.size * WARP, bool) if arrival.mask is None else arrival.mask
        )
        mine = np.flatnonzero(arrival.notes.warps[lanes // WARP] == warp)
        return Copy(0, 0, int(places[mine[0]]), warp, lane) if mine.size else None

    def _who(self, identity: int, copy: Copy | None = None) -> Actor:
        unit, lane = divmod(identity, WARP)
        block, warp, agent = self.order.layout.describe(unit)
        for clocks_wave, clocks in self.order.waves.items():
            if clocks.first <= block < clocks.first + len(clocks_wave.coords):
                coords = clocks_wave.coords[block - clocks.first]
                if agent == "tma":  # the thread that issued it, where it is known, may be of another block
                    if copy is None:
                        return Actor(tuple(int(v) for v in coords), agent="TMA")
                    own, warp = divmod(copy.warp, self.order.layout.warps)
                    return actor(self.launch, clocks_wave.coords[own], warp, copy.lane, "TMA", clocks.role(copy.warp))
                role = clocks.role((block - clocks.first) * self.order.layout.warps + warp)
                return actor(self.launch, coords, warp, lane, agent, role)
        return Actor((block,))


def _older(entries: Array, tick: int, copies: int) -> bool:
    """Whether all entries are plainly known to who makes the access: empty, or older than the last barrier of all
    threads, or of copies by cp.async that are over."""
    newest = int(entries.max()) if entries.size else 0
    if newest < max(1, tick << CLOCK_SHIFT):
        return True
    if not copies or newest >= (GROUPS << KIND_SHIFT) + (copies + 1 << CLOCK_SHIFT):
        return False
    return int(entries.min()) >= GROUPS << KIND_SHIFT


def _other_values(bad: Array, before: Array, cells: Array, shadow: Shadow, values: Any, order: HappensBefore) -> Array:
    """Those of ``bad`` where the cell holds something else than what is stored now."""
    buffer, access, stored, at = values
    per_lane = np.ndim(stored) == (1 if access.scalar else 2)
    count = cells.size // at.size
    data = np.ascontiguousarray(access.encode(np.asarray(stored) if per_lane else np.asarray(stored)[None]))
    data = data.view(np.uint8).reshape(data.shape[0], -1)
    step, keep = 1 << shadow.shift, []
    for k in map(int, bad):
        if order.sites[int(site_of(before[k]))].verb != "store":
            keep.append(k)
            continue
        lane, part = divmod(k, count)
        new = data[lane if per_lane else 0, part * step : (part + 1) * step]
        start = shadow.cell(int(cells[k])) * step
        if (buffer.bytes[start : start + step] != new).any():
            keep.append(k)
    return np.array(keep, np.int64)
