"""Data races cell by cell: an access against what shadow memory (:mod:`.shadow`) says of those before it.

The rule (PTX ISA, "Memory Consistency Model"). Two accesses of one cell conflict if one of them writes, and conflicting
accesses race unless

1. the earlier one *happened before* the later one: the vector clock of the accessor has reached the clock of the entry
   that the earlier one left (:meth:`CellCheck._happened_before`);
2. both are strong, and the scope of each includes the other's thread (:meth:`CellCheck._both_strong`); or
3. both are stores that leave the same value (:func:`_other_values`).

:meth:`CellCheck._compare` decides this. ``tests/check/reference.py``, the oracle of the tests, has the same rule for
one thread at a time.

Short cuts. Most accesses of a kernel are ordered, thousands of lanes at once, and short cuts see that:
:func:`_older` by one maximum over the entries, :meth:`CellCheck._known_by_warps` by one entry for each warp,
:meth:`CellCheck._unordered` by whole rows of clocks. They only drop entries of which ``_happened_before`` would say
yes; ``tests/check/test_short_cuts.py`` asks both.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.ir.lanes import Array
from tilewright.ir.target import WARP
from tilewright.sim.checks.accessors import Accessors
from tilewright.sim.checks.flags import GPU
from tilewright.sim.checks.order import HappensBefore
from tilewright.sim.checks.race_findings import CellAccess, RaceFindings
from tilewright.sim.checks.shadow import (
    CLOCK_SHIFT,
    GROUPS,
    KIND_SHIFT,
    SITE,
    SITE_SHIFT,
    Cells,
    Read,
    Shadow,
    clock_of,
    site_of,
    who_of,
)
from tilewright.sim.checks.sites import THREAD

NO_INDICES = np.zeros(0, np.int64)
PAIR = np.dtype([("thread", np.int64), ("entry", np.int64)])


class CellCheck(RaceFindings):
    """Decides for each access whether it races, and keeps it in shadow memory."""

    def check(
        self, verb: str, shadow: Shadow, cells: Array, acting: Accessors, number: int, values: Any = None
    ) -> None:
        """Compare an access with the conflicting ones before it, then keep it."""
        access = CellAccess(verb, number, shadow, shadow.local(cells), acting, values)
        where, shared = Cells(access.cells), shadow not in self.owners
        # In global memory other blocks act, too; a barrier of this block says nothing about them.
        floors = acting.floors if shared else (0, 0)
        self._against_writes(access, where, floors)
        entries = acting.entries(number)
        if self.order.sites[number].scope != THREAD:
            looks = verb == "load" or self.order.sites[number].op in self.results_used
            shadow.set_observer(where, entries if looks else None)
        if verb == "load":
            shadow.read(Read(where, entries, floors[0]))
        else:
            self._against_reads(access, where, floors)
            self._keep_write(access, where, entries)

    def _against_writes(self, access: CellAccess, where: Cells, floors: tuple[int, int]) -> None:
        """Compare an access with the last write to each cell, and with the writes that this one replaced."""
        shadow, scope = access.shadow, self.order.sites[access.number].scope
        strong, before = scope != THREAD, where.get(shadow.written)
        asks = THREAD <= scope < GPU and shadow.observer is not None  # strong ones of all blocks race with none
        seen = self._observed(access, where) if asks else None
        hidden = before if seen is None else np.where(seen & self.order.sites.strong(before), 0, before)
        self._compare(access, hidden, floors)
        # A strong access may replace a weak one with which it is ordered and others are not, and the other way
        # round: those are kept, too.
        for memory in shadow.weak if strong else shadow.strong.values():
            kept = where.get(memory)
            if seen is not None:
                kept[seen] = 0
            self._compare(access._replace(values=None), kept, floors)
        if strong and access.verb != "load" and before.any():
            weak = (before != 0) & ~self.order.sites.strong(before)
            if weak.any():
                shadow.keep_weak(access.cells[weak], before[weak])

    def _against_reads(self, access: CellAccess, where: Cells, floors: tuple[int, int]) -> None:
        """Compare a write with the reads since the last write; whatever follows a weak write follows these."""
        shadow = access.shadow
        if shadow.was_read:
            for reads in shadow.merge_reads():
                before = where.get(reads)
                self._compare(access._replace(values=None), before, floors)
                if self.order.sites[access.number].scope == THREAD:
                    where.set(reads, 0)

    def _keep_write(self, access: CellAccess, where: Cells, entries: Array) -> None:
        """Make this the last write to its cells. Of lanes that write to one cell NumPy keeps the last."""
        shadow = access.shadow
        where.set(shadow.written, entries)
        if where.distinct():
            return
        lost = np.flatnonzero(where.get(shadow.written) != entries)
        if lost.size and access.verb == "atomic" and self.order.sites[access.number].scope >= GPU:
            self._keep_strong(access, lost, entries)
        elif lost.size:
            self._same_instruction(access, lost, entries)

    def _observed(self, access: CellAccess, where: Cells) -> Array:
        """bool: the cells whose last strong write was read before, in happens-before order, the present access. Strong
        writes come before what follows such a read (PTX ISA, "Causality order"): a ticket's last block may clear it."""
        assert access.shadow.observer is not None
        reads = where.get(access.shadow.observer)
        seen: Array = reads != 0
        if seen.any():
            seen[self._unordered(access, reads)] = False
        return seen

    # -- the rule ------------------------------------------------------------------------------------------------------

    def _compare(self, access: CellAccess, before: Array, floors: tuple[int, int]) -> None:
        """Report the conflicting entries ``before`` that the access races with, by the rule above; 0: no entry.
        ``floors``: as :meth:`Clocks.floors`, where they hold for this memory."""
        if _older(before, *floors) or self._known_by_warps(before, access.acting):
            return
        racing = self._unordered(access, before)
        if racing.size:
            racing = self._both_strong(access, racing, before)
        if racing.size and access.verb == "store" and access.values is not None:
            racing = _other_values(access, racing, before, self.order)
        if racing.size:
            self._report(access, racing, before)

    def _happened_before(self, access: CellAccess, before: Array, k: int) -> bool:
        """Rule 1 for one lane: whether entry ``before[k]`` happened before the ``k``-th access. A copy that lands acts
        with the clocks of its issue (``snapshot``)."""
        acting = access.acting
        clocks, snapshot, layout = acting.clocks, acting.snapshot, self.order.layout
        row = int(acting.rows[k])
        warp, thread = int(acting.group.warps[row]), int(acting.thread[k])
        entry = before[k]
        identity, clock = int(who_of(entry)), int(clock_of(entry))
        # Program order orders a thread's own accesses, whatever the clocks say; what lands comes after those that its
        # thread made before the issue. Bytes of one copy do not race.
        if identity == thread and (snapshot is None or clock <= snapshot.now[row]):
            return True
        if snapshot is not None and identity == acting.identity[k] and clock == acting.clock[k]:
            if site_of(entry) == access.number:
                return True
        # What all lanes of the warp know of units of its cluster is one row; what it knows of other clusters, and of
        # single lanes, is beside it, and so is what one lane knows alone.
        cluster, columns = identity // WARP // layout.cluster, layout.columns(identity)
        known = clocks.clocks[warp] if snapshot is None else snapshot.rows[row]
        if cluster == clocks.cluster[warp] and int(known[columns].max()) >= clock:
            return True
        lane_clocks = clocks.lane_clocks.get(warp) if snapshot is None else None
        beside = [lane_clocks.know, lane_clocks.extras.get(thread % WARP)] if lane_clocks is not None else []
        if snapshot is not None:
            beside = [snapshot.lane_clocks.get(warp)]
        if any(one is not None and one.knows(cluster, columns, identity, clock) for one in beside):
            return True
        # A thread that has waited for a group of its own copies knows them; other threads need a barrier after.
        for agent, by_warpgroup in enumerate(layout.by_warpgroup):
            unit, lane = layout.agent_unit(int(clocks.unit[warp]), warp, agent), thread % WARP
            if identity // WARP == unit and (identity % WARP == lane or by_warpgroup):
                if snapshot is not None:
                    return snapshot.waited_by(row, agent, lane) >= clock
                return clocks.waited_by(warp, agent, lane) >= clock
        return False

    # -- short cuts of rule 1: each drops entries of which ``_happened_before`` says yes, and no others ----------------

    def _known_by_warps(self, before: Array, acting: Accessors) -> bool:
        """One entry for each warp. Invariant: True only where each warp meets entries of one warp at one clock, which
        are in its row of clocks, so that every lane knows them."""
        clocks, warps = acting.clocks, acting.group.warps
        if acting.listed or acting.landed or acting.mask is not None:
            return False
        lane = WARP.bit_length() - 1
        # Without the bits of the lane: mostly a warp finds what one instruction of one warp has left.
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

    def _unordered(self, access: CellAccess, before: Array) -> Array:
        """The numbers of the entries ``before`` that did not happen before the access; 0 is no entry. All lanes are
        compared with the rows of clocks at once, and the few that these do not explain one by one. Invariant: an entry
        is dropped only by a comparison that :meth:`_happened_before` makes, too."""
        acting = access.acting
        clocks, snapshot, rows = acting.clocks, acting.snapshot, acting.rows
        warps = acting.group.warps[rows]
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
            fine |= identity == acting.thread
        else:
            fine |= (identity == acting.thread) & (clock <= snapshot.now[rows])
            fine |= (identity == acting.identity) & (clock == acting.clock) & (site_of(before) == access.number)
        if fine.all():
            return NO_INDICES
        bad = np.flatnonzero(~fine)
        if self.order.layout.elects:
            # A lane that released something alone, an elected one, has a column beside that of its warp.
            column = self.order.layout.elected_columns(identity[bad])
            known = clocks.clocks[warps[bad], column] if snapshot is None else snapshot.rows[rows[bad], column]
            here = (column >= 0) & (identity[bad] // WARP // self.order.layout.cluster == clocks.cluster[warps[bad]])
            bad = bad[~(here & (known >= clock[bad]))]
        return self._ask_lanes(access, before, bad)

    def _ask_lanes(self, access: CellAccess, before: Array, bad: Array) -> Array:
        """Those of ``bad`` that did not happen before, asked one by one. Invariant: pairs that are asked once for all
        of ``bad`` differ in nothing that the answer depends on: who acts, who acted before, and when."""
        acting, layout = access.acting, self.order.layout
        clocks, snapshot = acting.clocks, acting.snapshot
        lane_clocks = clocks.lane_clocks if snapshot is None else snapshot.lane_clocks
        if not bad.size or (not lane_clocks and not layout.agents):
            return bad
        # The site does not count. Nor does the lane, where its warp knows all that it knows and there are no copies.
        entries, threads = before[bad] & ~(((1 << SITE) - 1) << SITE_SHIFT), acting.thread[bad]
        if not layout.agents:
            apart = [w for w, known in clocks.lane_clocks.items() if known.extras] if snapshot is None else []
            threads = np.where(np.isin(acting.group.warps[acting.rows[bad]], apart), threads, threads - threads % WARP)
        pairs = np.stack([threads, entries], 1).view(PAIR).reshape(-1)
        _, first, which = np.unique(pairs, return_index=True, return_inverse=True)
        answers = np.array([self._happened_before(access, before, int(k)) for k in bad[first]], bool)
        return bad[~answers[which.reshape(-1)]]

    # -- strong accesses -----------------------------------------------------------------------------------------------

    def _both_strong(self, access: CellAccess, bad: Array, before: Array) -> Array:
        """Those of ``bad`` that are not both strong. The others do not race, but what comes after may with both."""
        mine = self.order.sites[access.number].scope
        if mine == THREAD:
            return bad
        layout, sites = self.order.layout, self.order.sites
        numbers, which = np.unique(site_of(before[bad]), return_inverse=True)
        scopes = np.minimum(mine, np.array([sites[int(n)].scope for n in numbers])[which.reshape(-1)])
        blocks = [who // (WARP * layout.block) for who in (who_of(before[bad]), access.acting.thread[bad])]
        covered = scopes >= self.order.flags.covers_all(*blocks)
        strong = bad[covered]
        if strong.size:
            access.shadow.keep_strong(access.cells[strong], before[strong], layout.block)
        return bad[~covered]

    def _keep_strong(self, access: CellAccess, lost: Array, entries: Array) -> None:
        """Strong accesses ``lost`` of one instruction share cells with later ones: those of other warps are remembered,
        since what comes after may race with each."""
        shadow, cells = access.shadow, access.cells
        others = lost[who_of(entries[lost]) // WARP != who_of(shadow.written[cells[lost]]) // WARP][::-1]
        if others.size:
            shadow.keep_strong(cells[others], entries[others], self.order.layout.block)

    def _same_instruction(self, access: CellAccess, lost: Array, entries: Array) -> None:
        """Lanes that store to one cell with one instruction: fine if they store the same."""
        cells, before = access.cells, access.shadow.written[access.cells]
        winner = {int(c): k for k, c in enumerate(cells)}
        if self.order.sites[access.number].scope != THREAD:
            every, lost = lost, self._both_strong(access, lost, before)
            self._keep_strong(access, np.setdiff1d(every, lost), entries)
        if access.values is not None:
            _, form, stored, at = access.values
            if np.ndim(stored) != (1 if form.scalar else 2):
                return
            per = cells.size // at.size
            data = np.ascontiguousarray(form.encode(stored)).view(np.uint8).reshape(at.size, -1)
            lost = np.array(
                [k for k in map(int, lost) if (data[k // per] != data[winner[int(cells[k])] // per]).any()], np.int64
            )
        if lost.size:
            self._report(access._replace(verb="store"), lost, before)


def _older(entries: Array, tick: int, copies: int) -> bool:
    """Whether all entries are plainly known to the accessor. Invariant: True only where each entry is empty, or
    older than a barrier that all threads of the block have passed (``tick``), or of one of the first groups of cp.async
    that all who act know to be over (``copies``); so one maximum (and one minimum) over the entries decides."""
    newest = int(entries.max()) if entries.size else 0
    if newest < max(1, tick << CLOCK_SHIFT):
        return True
    if not copies or newest >= (GROUPS << KIND_SHIFT) + (copies + 1 << CLOCK_SHIFT):
        return False
    return int(entries.min()) >= GROUPS << KIND_SHIFT


def _other_values(access: CellAccess, bad: Array, before: Array, order: HappensBefore) -> Array:
    """Those of ``bad`` where the cell holds something else than what is stored now, or was not stored."""
    shadow = access.shadow
    buffer, form, stored, at = access.values
    per_lane = np.ndim(stored) == (1 if form.scalar else 2)
    count = access.cells.size // at.size
    data = np.ascontiguousarray(form.encode(np.asarray(stored) if per_lane else np.asarray(stored)[None]))
    data = data.view(np.uint8).reshape(data.shape[0], -1)
    step, keep = 1 << shadow.shift, []
    for k in map(int, bad):
        if order.sites[int(site_of(before[k]))].verb != "store":
            keep.append(k)
            continue
        lane, part = divmod(k, count)
        new = data[lane if per_lane else 0, part * step : (part + 1) * step]
        start = shadow.cell(int(access.cells[k])) * step
        if (buffer.bytes[start : start + step] != new).any():
            keep.append(k)
    return np.array(keep, np.int64)
