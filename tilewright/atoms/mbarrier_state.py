"""The simulator's state of every mbarrier: its phase, and the arrivals and bytes that the phase still waits for.

The state is kept beside shared memory, under the *place* (:meth:`tilewright.ir.instruction.Lanes.places`); the bytes
of shared memory that it takes on a GPU stay as they are. A phase is complete when no arrival and no byte is pending;
the next one begins at once with the count of ``mbarrier.init``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.ir.instruction import Lanes
from tilewright.ir.lanes import Array

MOST = (1 << 20) - 1  # arrivals, and bytes either way, that the 64 bits of an mbarrier can count
RANKS = 16  # blocks of the largest cluster


class Mbarriers:
    """All mbarriers of the resident blocks. A *row* is one of them; ``expected`` is 0 after it was invalidated.

    ``completed`` counts phases (``changes``: how often any row's did); ``seen`` is what it was when a wait was last
    satisfied. ``came``, ``before``: for each rank in the cluster the warps (bits) of that block that have arrived in
    the current phase, and in the last one: who arrived then and not yet now is whom a wait waits for.
    """

    def __init__(self) -> None:
        self.places, self.order = np.zeros(0, np.int64), np.zeros(0, np.int64)  # sorted places and their rows
        self.where, self.expected, self.pending, self.bytes, self.completed, self.seen = np.zeros((6, 0), np.int64)
        self.came, self.before = np.zeros((2, 0, RANKS), np.int64)
        self.changes = 0
        self.name: Callable[[int], str] = lambda offset: ""  # what the program calls one

    def rows(self, places: Array) -> Array:
        """The rows at ``places``; -1 where no mbarrier was made or it was invalidated."""
        rows = self.last_rows(places)
        if not self.places.size:
            return rows
        return np.where((rows >= 0) & (self.expected[rows] > 0), rows, -1)

    def last_rows(self, places: Array) -> Array:
        """The rows at ``places``, also of invalidated mbarriers; -1 where none was ever made."""
        if not self.places.size:
            return np.full(places.shape, -1, np.int64)
        at = np.minimum(np.searchsorted(self.places, places), self.places.size - 1)
        return np.where(self.places[at] == places, self.order[at], -1)

    def make(self, places: Array, counts: Array) -> None:
        """Fresh mbarriers at distinct ``places`` where the memory holds no mbarrier yet."""
        new = places[self.last_rows(places) < 0]
        if new.size:
            self.where = np.concatenate([self.where, new])
            for name in ("expected", "pending", "bytes", "completed", "seen"):
                setattr(self, name, np.concatenate([getattr(self, name), np.zeros(new.size, np.int64)]))
            self.came, self.before = (
                np.concatenate([x, np.zeros((new.size, RANKS), np.int64)]) for x in (self.came, self.before)
            )
            self.order = np.argsort(self.where)
            self.places = self.where[self.order]
        rows = self.order[np.searchsorted(self.places, places)]
        self.expected[rows] = self.pending[rows] = counts
        self.bytes[rows] = self.completed[rows] = self.seen[rows] = 0
        self.came[rows] = self.before[rows] = 0
        self.changes += 1

    def passed(self, rows: Array, parity: Array) -> Array:
        """Whether the phase of this parity is complete; a wait that finds it so has seen it."""
        done = (self.completed[rows] & 1) != parity
        self.seen[rows[done]] = self.completed[rows[done]]
        return done

    def absent(self, row: int) -> list[tuple[int, int]]:
        """(rank of the block in the cluster, warp) of those who arrived in the last phase and not in this one."""
        missing = self.before[row] & ~self.came[row]
        return [(rank, warp) for rank in range(RANKS) for warp in range(32) if int(missing[rank]) >> warp & 1]

    def describe(self, row: int) -> str:
        arrived = max(0, int(self.expected[row] - self.pending[row]))
        offset = int(self.where[row]) & 0xFFFFFFFF
        outstanding = f", {int(self.bytes[row])} bytes outstanding" if self.bytes[row] else ""
        return (
            f"the mbarrier {self.name(offset) or f'at shared-memory offset {offset}'} "
            f"(in phase {int(self.completed[row])}: {arrived} of {int(self.expected[row])} arrivals{outstanding})"
        )


NO_LANES = np.zeros(0, np.int64)


class Touch:
    """One instruction's access: the active lanes of a group and the mbarrier that each of them names. ``rows``: the
    mbarriers' at the time when the access takes place (``init``, ``exists``). ``issuers``: of several accesses of an
    asynchronous unit, the lane that issued each."""

    rows: Array
    issuers = NO_LANES

    def __init__(self, lanes: Lanes, pointer: Any, rank: Any = None, name: str = "mbarrier") -> None:
        self.lanes, self.name = lanes, name
        self.active = lanes.active()
        self.table: Mbarriers = lanes.beside(Mbarriers)
        self.table.name = lanes.shared_name
        self.places = lanes.places(pointer, rank)[self.active]

    @classmethod
    def at(cls, lanes: Lanes, places: Array, name: str) -> Touch:
        """The access of an asynchronous unit: to the mbarriers at ``places``, on behalf of no lane in particular."""
        touch = cls.__new__(cls)
        touch.lanes, touch.name, touch.places = lanes, name, places
        touch.active = np.ones(0, bool)
        touch.table = lanes.beside(Mbarriers)
        return touch

    @classmethod
    def in_blocks(cls, lanes: Lanes, pointer: Any, masks: Array, name: str) -> list[Touch]:
        """The accesses of lanes that name an mbarrier in several blocks of the cluster at once: one for each rank that
        is in the ``masks [L]`` of active lanes."""
        parts = []
        for rank in range(RANKS):
            chosen = (masks >> rank & 1).astype(bool) & lanes.active()
            if chosen.any():
                touch = cls.at(lanes, lanes.places(pointer, np.where(chosen, rank, 0))[chosen], name)
                touch.active = chosen
                parts.append(touch)
        return parts

    def exists(self) -> Touch:
        """Refuse lanes whose place holds no mbarrier."""
        self.rows = self.table.rows(self.places)
        missing = self.rows < 0
        if missing.any():
            offset = int(self.places[missing][0]) & 0xFFFFFFFF
            raise self.fault(
                missing,
                f"{self.name} on {self.place(offset)}, where no mbarrier has been initialised",
                "let one thread run mbarrier_init, then mbarrier_init_fence, and all threads sync_threads before its "
                "first use",
            )
        return self

    def place(self, offset: int) -> str:
        return self.lanes.shared_name(offset) or f"shared-memory offset {offset}"

    def values(self, operand: Any) -> Array:
        return self.lanes.spread(operand).astype(np.int64)[self.active]

    def fault(self, bad: Array, text: str, fix: str) -> Exception:
        """The exception for the lanes ``bad`` (of the active ones)."""
        if not self.active.size:
            return self.lanes.fault(text, None, fix)
        lanes = np.zeros(self.active.shape, bool)
        lanes[self.active] = bad
        return self.lanes.fault(text, lanes, fix)

    def publish(self, what: str, done: Array | None = None) -> None:
        """Tell observers of it."""
        self.lanes.touched(what, self.places, np.flatnonzero(self.active) if self.active.size else self.issuers, done)

    # -- what instructions do ------------------------------------------------------------------------------------------

    def init(self, counts: Array) -> None:
        wrong = (counts < 1) | (counts > MOST)
        if wrong.any():
            raise self.fault(
                wrong,
                f"{self.name} with a count of {int(counts[wrong][0])} arrivals; it is 1 to {MOST}",
                "count the threads that will arrive in each phase",
            )
        self.rows = self.table.rows(self.places)
        again = self.rows >= 0
        if again.any():
            what = self.table.describe(int(self.rows[again][0]))
            raise self.fault(
                again,
                f"{self.name} on {what}, which is in use",
                "initialise an mbarrier once, by one thread; mbarrier.inval ends its life before its bytes serve again",
            )
        warps = np.flatnonzero(self.active) // 32
        places, first, which = np.unique(self.places, return_index=True, return_inverse=True)
        differs = (warps != warps[first][which]) | (counts != counts[first][which])
        if differs.any():
            offset = int(self.places[differs][0]) & 0xFFFFFFFF
            raise self.fault(
                differs,
                f"{self.name} on {self.place(offset)} by several warps, or with several counts",
                "let one thread initialise it: `if tidx == 0:`",
            )
        self.table.make(places, counts[first])
        self.publish("init")

    def inval(self) -> None:
        self.table.expected[self.rows] = 0
        self.publish("inval")

    def arrive(self, counts: Array) -> None:
        """Take ``counts`` (for each lane) off the pending arrivals."""
        table = self.table
        total = np.zeros(table.pending.size, np.int64)
        np.add.at(total, self.rows, counts)
        over = (total > table.pending) & (table.expected > 0)
        if over.any():
            row = int(np.argmax(over))
            raise self.fault(
                self.rows == row,
                f"{self.name}: {int(total[row])} more arrivals than it expects at {table.describe(row)}",
                "the count of mbarrier_init is the number of arrivals of one "
                "phase: give all threads that arrive, or let one of them (elect_one) do it; and wait for "
                "the stage to be empty (producer_acquire) before it is filled again",
            )
        table.pending -= total
        warps = self.lanes.sreg("warpid")[self.active].astype(np.int64)
        ranks = self.lanes.sreg("cluster_ctarank")[self.active]
        np.bitwise_or.at(table.came, (self.rows, ranks), np.int64(1) << warps)
        self.publish("arrive", self.settle())

    def expect(self, sizes: Array) -> None:
        """Add bytes (negative: take them off) to the pending transactions."""
        table = self.table
        np.add.at(table.bytes, self.rows, sizes)
        wrong = np.abs(table.bytes[self.rows]) > MOST
        if wrong.any():
            raise self.fault(
                wrong,
                f"{self.name}: {int(table.bytes[self.rows[wrong][0]])} bytes are pending; an "
                f"mbarrier counts {MOST} at most",
                "split the transfer over several phases",
            )

    def complete(self, sizes: Array) -> None:
        """Take bytes that have come off the pending transactions."""
        self.expect(-sizes)
        self.publish("complete", self.settle())

    def fails(self, sizes: Array) -> bool:
        """Whether adding these bytes at mbarriers that differ would be a fault."""
        table, rows = self.table, self.table.rows(self.places)
        if (rows < 0).any():
            return True
        pending = table.bytes[rows] + sizes
        done = (pending == 0) & (table.pending[rows] == 0) & (table.completed[rows] > table.seen[rows])
        return bool((done | (np.abs(pending) > MOST)).any())

    def settle(self) -> Array:
        """Complete the phases that wait for nothing any more; gives which of ``rows`` that were."""
        table = self.table
        done = np.zeros(table.expected.size, bool)
        done[self.rows] = True
        done &= (table.expected > 0) & (table.pending == 0) & (table.bytes == 0)
        unseen = done & (table.completed > table.seen)
        if unseen.any():
            row = int(np.argmax(unseen))
            raise self.fault(
                self.rows == row,
                f"{self.name}: {table.describe(row)} completes again before any thread "
                "has waited for its last phase; a thread that waits now could not tell the two apart",
                "wait for a phase before arriving for the next one (producer_acquire before "
                "producer_commit, consumer_wait before consumer_release): check that the count of "
                "mbarrier_init is all that arrive, and the parity that others wait for",
            )
        if done.any():
            table.changes += 1
        table.completed[done] += 1
        table.pending[done] = table.expected[done]
        table.before[done], table.came[done] = table.came[done], 0
        return done[self.rows]

    def test(self, parity: Array) -> Array:
        """For each active lane whether the phase of ``parity`` is complete. The lowest bit of ``parity`` counts, as in
        the machine code that ptxas makes (``SHF.L.U32 r, parity, 31``)."""
        done = self.table.passed(self.rows, parity & 1)
        self.publish("test", done)
        return done

    def wait(self, parity: Array) -> None:
        """Make each warp wait until the phases of all its active lanes are complete."""
        parity = parity & 1
        self.publish("wait")
        warps = np.flatnonzero(self.active) // 32
        table, count = self.table, self.active.size // 32
        made = table.where.size
        waits = np.unique((warps * made + self.rows) * 2 + parity)  # one number for (warp, row, parity)
        warp, row, odd = waits // 2 // made, waits // 2 % made, waits & 1

        def passed() -> Array:
            every = np.ones(count, bool)
            every[warp[~table.passed(row, odd)]] = False
            return every

        # The schedule asks at every turn: the answer is the last one as long as no phase of any mbarrier has completed.
        last = -1, np.zeros(count, bool)

        def ready() -> Array:
            nonlocal last
            if last[0] != table.changes:
                last = table.changes, passed()
            return last[1]

        def awaited(w: int) -> int:
            return int(np.argmax((warp == w) & ((table.completed[row] & 1) == odd)))

        def reason(w: int) -> str:
            k = awaited(w)
            return f"the phase of parity {int(odd[k])} of {table.describe(int(row[k]))}"

        self.lanes.wait_until(ready, reason, lambda w: table.absent(int(row[awaited(w)])))
