"""Accesses to a wave's shared memory that nothing before can race with, kept as they came instead of cell by cell.

Most accesses of a kernel are apart from what came before: another stage of a ring, another tensor, or the same bytes on
the other side of a barrier that all have passed. A few numbers for each access show it (:class:`.Reach`, and the clocks
of whole warps), so its cells are not looked at. Where these numbers do not show it, what is kept here is put into the
cells (:mod:`.shadow`), and the cells decide.

Invariant: "apart" is only said of accesses that the cells would find ordered, too. ``tests/check/test_short_cuts.py``
compares both on random kernels. Without this layer the cells of a product of 1024^3 exceed the budget of the default
checks, and all checks of ``simt_f32`` 256^3 take 12 times the unchecked run instead of 3 (``bench/notes``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tilewright.ir.target import WARP
from tilewright.sim.checks.accessors import Accessors
from tilewright.sim.checks.reach import Reach, blocks_of
from tilewright.sim.checks.records import NEAR, PARTS, AccessRecord, SimilarLoads
from tilewright.sim.checks.shadow import THREADS, Cells, Read, Shadow

if TYPE_CHECKING:
    from tilewright.sim.checks.clocks import Clocks
    from tilewright.sim.checks.order import HappensBefore
    from tilewright.sim.group import Group

FEW, MOST = 16, 192  # records: with more than FEW, old ones are looked for; with more than MOST, all go to the cells
RECENT = 8  # records to which an access may be added
CLOSE = 4  # accesses whose cells are compared before any goes to the shadow


class AgentReads(NamedTuple):
    """The last reads by an agent for some warps, at one moment: bytes around them that no write reaches which these
    might race with, and their records."""

    moment: Any
    clear: list[tuple[int, int]]
    records: list[AccessRecord]


class PendingAccesses:
    """``shadow``: the cells of the wave's shared memory, which lack what is kept here; ``size``: its bytes."""

    def __init__(self, shadow: Shadow, size: int, order: HappensBefore, clocks: Clocks) -> None:
        self.shadow, self.size, self.order, self.clocks = shadow, size, order, clocks
        self.records: list[AccessRecord] = []
        self.changes = 0  # counts the writes that loads may have to be compared with
        self.limit = FEW
        # Loads of threads at one moment (group, version of the clocks, changes): bytes around them that no write
        # reaches which these might race with, found at this moment or, with no change since, at earlier ones of the
        # group; and the records of the loads.
        self.moment: Any = None
        self.clear: list[tuple[int, int]] = []
        self.loads: list[AccessRecord] = []
        self.begun = 0  # how many records began with loads like those before
        self.agent_reads: dict[Any, AgentReads] = {}  # by who reads (:func:`_who_reads`)
        self.number = 0  # of the last write
        self.whole_lines = True  # whether all writes were of such lines
        self.lines = np.zeros((size >> 4) + 2, np.int32)  # for each line of 16 bytes the last write that reached it

    # -- is it apart? --------------------------------------------------------------------------------------------------

    def add_similar_loads(self, group: Group, span: tuple[int, int], loads: Sequence[tuple[int, SimilarLoads]]) -> bool:
        """Take more loads within the bytes ``span``, each with the number of its site, if they are plainly like those
        before. Invariant: True only for bytes of which :meth:`cannot_race` has found for this group, with no write
        since, that nothing which these loads could race with reaches them (``clear``); what a group knows of others
        only grows, so that nothing which it knew can race with it later."""
        if self.moment is None or self.moment[0] is not group or self.moment[2] != self.changes:
            return False
        low, high = span
        for start, stop in self.clear:
            if start <= low and high <= stop:
                break
        else:
            return False
        self._begin_moment(group)
        for record in self.loads:
            if low <= record.high + NEAR and record.low <= high + NEAR:
                if low < record.low:
                    record.low = low
                if high > record.high:
                    record.high = high
                parts = record.parts
                if parts is None or len(parts) >= PARTS:
                    return False
                acting = parts[0][2]
                parts.extend([(number, load, acting) for number, load in loads])
                return True
        acting = Accessors(self.order, group, "", loads[0][1].mask)
        record = AccessRecord(Reach(low, high, blocks_of(group)), True, acting, [], self.moment)
        assert record.parts is not None
        record.parts.extend([(number, load, acting) for number, load in loads])
        record.last = self.number
        self._append(record)
        self.loads.append(record)
        self.begun += 1
        acting.forget()
        return True

    def _begin_moment(self, group: Group) -> None:
        """Forget what is not of this moment."""
        known, self.moment = self.moment, (group, self.clocks.version, self.changes)
        if known != self.moment:
            self.loads = []
            if known is None or known[0] is not group or known[2] != self.changes:
                self.clear = []

    def add_similar_reads(self, reach: Reach, acting: Accessors, number: int) -> bool:
        """Take reads by an agent, if they are plainly like those before. Invariant: what acts now is of the same warps
        and groups, and knew at its issue what that one knew of which :meth:`cannot_race` has found these bytes clear,
        with no write since."""
        before = self.agent_reads.get(_who_reads(reach, acting))
        if before is None or before.moment != (self.changes, *_known_at_issue(acting)):
            return False
        low, high = reach.low, reach.high
        if not any(start <= low and high <= stop for start, stop in before.clear):
            return False
        for record in before.records:
            if low <= record.high + NEAR and record.low <= high + NEAR:
                if record.parts is None or len(record.parts) >= PARTS:
                    return False
                record.low, record.high = min(record.low, low), max(record.high, high)
                record.parts.append((number, reach, acting))
                reach.forget()
                acting.forget()
                return True
        return False

    def cannot_race(self, reach: Reach, acting: Accessors, load: bool) -> bool:
        """Whether it is plain that nothing before can race with this access. Invariant: True only where the cells, if
        they held all accesses so far, would find every conflicting one ordered before this one."""
        # From cheap to costly: other bytes, a barrier of the whole block between, lines of 16 bytes, clocks of all
        # warps, then of those warps that reach the same bytes, the cells of a few. What is not plain by the end goes to
        # the shadow; so an error here may only be to say "not apart" too often, which costs time, never to miss a race.
        low, high, blocks, floors = reach.low, reach.high, reach.blocks, acting.floors
        start, stop = -1 << 62, 1 << 62
        met = []
        for record in self.records:
            if load and record.load:
                continue
            if record.high <= low or high <= record.low:
                if load and not record.older_than(*floors):
                    start = max(start, record.high) if record.high <= low else start
                    stop = min(stop, record.low) if high <= record.low else stop
                continue
            if record.older_than(*floors):
                continue
            if record.blocks & blocks:
                met.append(record)
            else:
                start, stop = low, high
        here = met
        if met:
            met = self._maybe_same_lines(reach, met)
            if len(met) > 1:
                met = self._last_writers(reach, met)
            met = [record for record in met if not record.is_known(acting)]
            if met and not self._after_by_warp(met, reach, acting) and not self._other_cells(reach, met):
                return False
        if load and _by_threads(acting):
            # The next loads may reach other lines between the first and the last, and other warps may reach these.
            clear = not met and all(record.is_known(acting) for record in here)
            self._begin_moment(acting.group)
            if clear:
                self.clear.append((start, stop))
        elif load and _by_agent(acting) and not met and all(record.is_known(acting) for record in here):
            who, moment = _who_reads(reach, acting), (self.changes, *_known_at_issue(acting))
            before = self.agent_reads.get(who)
            if before is None or before.moment != moment:
                before = self.agent_reads[who] = AgentReads(moment, [], [])
            before.clear.append((start, stop))
        return True

    def _maybe_same_lines(self, reach: Reach, met: list[AccessRecord]) -> list[AccessRecord]:
        """Those that may have reached a line of an access. Invariant: what is left out is a record of writes whose
        first one came after the last write to any of the lines, so that all of it is elsewhere."""
        newest = int(np.maximum.reduce(reach.numbers(self.lines), axis=None))
        return [r for r in met if r.load or r.parts is None or r.numbers[0] <= newest]

    def _last_writers(self, reach: Reach, met: list[AccessRecord]) -> list[AccessRecord]:
        """Those that were the last to touch some line of an access. Invariant: where all writes are of whole lines,
        what is left out was followed at each of these lines by a write that was ordered after it, so that who comes
        after the writes that are left comes after it, too."""
        if not self.whole_lines or any(record.parts is None for record in met):
            return met
        here = reach.numbers(self.lines).reshape(-1)
        first = int(np.minimum.reduce(here))
        writes = set((np.flatnonzero(np.bincount(here - first)) + first).tolist())
        return [r for r in met if (r.last >= first if r.load else not writes.isdisjoint(r.numbers))]

    def _after_by_warp(self, met: list[AccessRecord], reach: Reach, acting: Accessors) -> bool:
        """Whether the clocks of those warps that reach the same bytes say that an access happens after the others.
        Invariant: the range of bytes of a warp holds all that it has reached, so warps whose ranges are apart need no
        order. Bytes of other blocks of the cluster are not told apart by warps."""
        if reach.blocks < 0 or any(record.blocks < 0 for record in met):
            return False
        ours = reach.ranges(acting)
        return all(record.happened_before_by_warp(acting, ours) for record in met)

    def _other_cells(self, reach: Reach, met: list[AccessRecord]) -> bool:
        """Whether the accesses of these records, if they are few, reached none of the cells of this one: copies of 4
        bytes, say, in the same lines of 16. Invariant: a cell is reached as a whole, so accesses without a common one
        need no order."""
        if reach.blocks < 0 or any(record.parts is None or record.blocks < 0 for record in met):
            return False
        parts = [part for record in met for _, part, _ in record.parts or ()]
        if len(parts) > CLOSE or not all(isinstance(part, Reach) for part in parts):
            return False
        here = np.zeros(self.size >> self.shadow.shift, bool)
        here[reach.cells(self.shadow.shift)] = True
        return not any(here[part.cells(self.shadow.shift)].any() for part in parts)

    # -- keeping it ----------------------------------------------------------------------------------------------------

    def add(self, reach: Reach, acting: Accessors, load: bool, number: int) -> None:
        """Keep an access that is apart."""
        loads = load and _by_threads(acting)
        moment = self.moment if loads else (acting.group, acting.tick, acting.agent, acting.landed)
        part = number, reach, acting
        recent = self.records[: -RECENT - 1 : -1]  # the newest first, which mostly is the one
        record = next((r for r in recent if r.accepts(reach, acting, load, moment)), None)
        if record is None:
            record = AccessRecord(reach, load, acting, [part], moment)
            self._append(record)
            if loads:
                self.loads.append(record)
        else:
            record.join(reach, part, acting)
        if load and _by_agent(acting):
            before = self.agent_reads.get(_who_reads(reach, acting))
            if before is not None and record not in before.records:
                before.records.append(record)
        record.last = self.number
        if not load:
            self.changes += 1
            self.number += 1
            self.whole_lines = self.whole_lines and reach.whole_lines
            record.numbers.append(self.number)
            self.lines[reach.lines()] = self.number
            if reach.dense:
                self._drop_overwritten(record, reach, acting)
            elif record.blocks == reach.blocks and record.dense:
                self._drop_overwritten(record, record, acting)
        reach.forget()
        acting.forget()

    def note_checked(self, reach: Reach, acting: Accessors, load: bool) -> None:
        """Remember an access that is in the cells."""
        self.changes += 1
        self._append(AccessRecord(reach, load, acting, None, None))
        acting.forget()

    def _drop_overwritten(self, by: AccessRecord, whole: Reach | AccessRecord, acting: Accessors) -> None:
        """Drop records whose bytes have been overwritten. Invariant: the threads that act now (``whole``) wrote all
        bytes of a dropped record after it, so an access that is ordered after this write is ordered after it, too."""
        gone, blocks, ours = False, whole.blocks, by.ranges()
        for record in self.records:
            if record is by or record.low < whole.low or whole.high < record.high or not record.blocks & blocks:
                continue
            if record.happened_before(acting) or (ours is not None and record.happened_before_by_warp(acting, ours)):
                record.blocks &= ~blocks
                gone = gone or not record.blocks
        if gone:
            self.records = [record for record in self.records if record.blocks]

    def _append(self, record: AccessRecord) -> None:
        self.records.append(record)
        if len(self.records) > self.limit:
            self._prune(record)
            if len(self.records) > MOST:
                self._collapse()
            self.limit = max(FEW, 2 * len(self.records))

    def _prune(self, newest: AccessRecord) -> None:
        """Forget what cannot race with anything that is still to come. Invariant: every thread and every copy under way
        knows it to have happened before (``floors``), or each of its lines has been written again by a write that was
        ordered after it."""
        floors = self.order.floors(self.clocks)
        self.records = [r for r in self.records if r is newest or (r.blocks and not r.older_than(*floors))]
        if len(self.records) <= FEW or not self.whole_lines:
            return
        lines, alive = self.lines, np.zeros(self.number + 2, bool)
        alive[lines] = True
        kept = []
        for record in self.records:
            if record is newest or record.parts is None or (record.load and record.kind == THREADS):
                kept.append(record)
            elif record.load:
                if any(int(part.numbers(lines).min()) <= record.last for _, part, _ in record.parts):
                    kept.append(record)
            elif alive[record.numbers].any():
                kept.append(record)
        self.records = kept

    def _collapse(self) -> None:
        """Replace all records by one; their accesses are in the cells."""
        self.move_to_cells(None)
        low, high = min(r.low for r in self.records), max(r.high for r in self.records)
        blocks = 0
        for record in self.records:
            blocks |= record.blocks
        # A launch that gets here has many accesses that nothing orders: the cells are then cheaper than the records.
        whole = AccessRecord(Reach(low, high, blocks), False, None, None, None)
        if all(record.kind == THREADS for record in self.records):
            whole.kind, whole.newest = THREADS, max(record.newest for record in self.records)
        self.records = [whole]

    def move_to_cells(self, reach: Reach | None) -> None:
        """Put what is kept into the cells: what came no later than the last that ``reach`` meets; None: all."""
        # In order, and those before as well: a cell keeps its last write, so an older one must not come after it.
        last = 0
        for k, record in enumerate(self.records):
            if reach is None or (record.low < reach.high and reach.low < record.high and record.blocks & reach.blocks):
                last = k + 1
        for record in self.records[:last]:
            parts, record.parts = record.parts, None
            for part in parts or ():
                self._move_part(record, *part)
        self.changes += 1  # loads that follow begin a record of their own

    def _move_part(self, record: AccessRecord, number: int, reach: Any, acting: Accessors) -> None:
        shadow = self.shadow
        if isinstance(reach, SimilarLoads):
            acting = acting.like(reach.mask, reach.nbytes >> shadow.shift)
            for one in reach.each(acting.group):
                self._move_part(record, number, one, acting)
            return
        where, entries = Cells(reach.cells(shadow.shift)), acting.entries(number)
        if record.load:
            shadow.read(Read(where, entries, record.floor))
            return
        if shadow.was_read:
            for reads in shadow.merge_reads():
                where.set(reads, 0)
        where.set(shadow.written, entries)


def _by_threads(acting: Accessors) -> bool:
    """Whether threads act themselves, and all of a group."""
    return acting.kind == THREADS and not acting.landed and not acting.listed


def _by_agent(acting: Accessors) -> bool:
    """Whether an agent acts that works in groups, for single warps, with what they knew at the issue."""
    return acting.listed and acting.agent is not None and acting.snapshot is not None


def _who_reads(reach: Reach, acting: Accessors) -> Any:
    return id(acting.group), acting.agent, acting.lanes.tobytes(), reach.blocks


def _known_at_issue(acting: Accessors) -> tuple[Any, ...]:
    """What decides, beside who acts and the records, whether reads by an agent are apart."""
    snapshot, lanes = acting.snapshot, acting.lanes.tobytes()
    assert snapshot is not None and acting.agent is not None
    known = snapshot.asked.get((acting.agent, lanes))
    if known is None:
        rows = acting.lanes // WARP
        known = snapshot.floors, acting.opened[rows].tobytes(), snapshot.rows[rows].tobytes()
        snapshot.asked[acting.agent, lanes] = known
    return known
