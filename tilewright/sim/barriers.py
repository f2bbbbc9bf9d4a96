"""The sixteen named barriers of every resident block, counted in whole warps for all blocks of a wave at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.ir.target import WARP
from tilewright.sim.faults import Fault

NAMED = 16
ENDS = object()
"""What a group asks for whose warps end."""


class Barriers:
    """Arrivals, completions and expected threads of each (block, barrier), as flat arrays indexed by ``block * 16 +
    id``."""

    def __init__(self, blocks: int, warps_per_block: int) -> None:
        self.warps_per_block = warps_per_block
        self.ended: np.ndarray | None = None  # warps of each block that have ended by an `exit`
        self.of_all = np.zeros(blocks * NAMED, bool)  # whether a phase is one of all threads of the block
        self.arrived = np.zeros(blocks * NAMED, np.int64)
        self.expected = np.zeros(blocks * NAMED, np.int64)
        self.completed = np.zeros(blocks * NAMED, np.int64)
        self.arrives: bool | None = None  # whether the kernel has a bar.arrive

    def arrive(self, group: Any, barrier: Any, count: Any, op: Any, mask: Any) -> BarrierWait:
        """These warps arrive; gives what they would wait for."""
        if count is None and mask is None and np.ndim(barrier) == 0:
            wait = self._all_arrive(group, int(barrier), op)
            if wait is not None:
                return wait
        rows = whole_warps(group, mask)
        ids = _per_warp(barrier, rows, "barrier id")
        if ids.min() < 0 or ids.max() >= NAMED:
            raise Fault(f"barrier {int(ids[(ids < 0) | (ids >= NAMED)][0])} does not exist; ids are 0 to 15")
        whole = self.warps_per_block * WARP
        blocks = group.warps[rows] // self.warps_per_block
        counts = self.whole(blocks) + np.zeros_like(rows) if count is None else _per_warp(count, rows, "barrier count")
        if (counts <= 0).any() or (counts % WARP).any():
            raise Fault(f"a barrier of {int(counts[0])} threads: the count must be a positive multiple of 32")
        # bar.arrive counts each time: a warp that has arrived may come again, to wait (PTX ISA, "bar.sync").
        if (counts > whole).any() and not self._arrives_without_waiting(group.program):
            raise Fault(f"a barrier of {int(counts.max())} threads in a block of {whole} can never complete")
        keys = blocks * NAMED + ids
        self._agree(keys, counts)
        self.of_all[keys] = count is None
        target = self._count(keys, counts)
        return BarrierWait(self, rows, keys, target, op)

    def _arrives_without_waiting(self, program: Any) -> bool:
        """Whether a kernel has a ``bar.arrive``, by which one warp can arrive several times in a phase."""
        if self.arrives is None:
            calls = (op.attrs["atom"] for op in program.function.walk() if op.opcode == "call")
            self.arrives = any(
                (order := atom.orders_through("barrier")) is not None and not order.acquire for atom in calls
            )
        return self.arrives

    def _all_arrive(self, group: Any, number: int, op: Any) -> BarrierWait | None:
        """All warps of a group arrive at one barrier for the whole of their blocks, none beyond the phase that is open;
        None if that is not so."""
        keys, threads, block_of, rows = _meeting(group, number)
        expected, total, whole = self.expected[keys], self.arrived[keys] + threads, self.whole(keys // NAMED)
        others = ((expected != 0) & (expected != whole)) | (total > whole)
        if not 0 <= number < NAMED or others.any():
            return None
        incomplete, following = total != whole, self.completed[keys] + 1
        self.of_all[keys] = True
        self.completed[keys] = following - incomplete
        self.arrived[keys], self.expected[keys] = total * incomplete, whole * incomplete
        return BarrierWait(self, rows, keys[block_of], following[block_of], op)

    def whole(self, blocks: np.ndarray) -> Any:
        """The threads of each block that have not ended."""
        threads = self.warps_per_block * WARP
        return threads if self.ended is None else threads - self.ended[blocks] * WARP

    def exit(self, group: Any, mask: Any) -> None:
        """These warps end: phases of all threads, which have not ended, may be complete by that."""
        rows = whole_warps(group, mask, _TORN_EXIT)
        if rows.size < group.warps.size:
            raise Fault("exit where other warps are in the same branch without their threads", fix=_TORN_EXIT[1])
        if self.ended is None:
            self.ended = np.zeros(self.arrived.size // NAMED, np.int64)
        blocks, counts = np.unique(group.warps // self.warps_per_block, return_counts=True)
        self.ended[blocks] += counts
        keys = (blocks[:, None] * NAMED + np.arange(NAMED)).reshape(-1)
        keys = keys[self.of_all[keys] & (self.arrived[keys] > 0)]
        self.expected[keys] = self.whole(keys // NAMED)
        complete = keys[self.arrived[keys] >= self.expected[keys]]
        self.completed[complete] += 1
        self.arrived[complete] = self.expected[complete] = 0

    def _agree(self, keys: np.ndarray, counts: np.ndarray) -> None:
        expected = self.expected[keys]
        # Twice: against what earlier arrivals gave, then among these.
        clash = (expected != 0) & (expected != counts)
        self.expected[keys] = counts
        clash |= self.expected[keys] != counts
        if clash.any():
            k = int(np.argmax(clash))
            other = int(expected[k]) or int(self.expected[keys[k]])
            raise Fault(
                f"barrier {int(keys[k]) % NAMED} of one block is used with {int(counts[k])} threads here "
                f"and {other} threads elsewhere",
                fix="all warps that meet at a barrier must give the same number of threads",
            )

    def _count(self, keys: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Add a warp's 32 threads to each key; gives the completion that each warp waits for."""
        # Warps of a group may complete several phases of one barrier; each waits for the one that counts it.
        rank = _rank(keys)
        total = self.arrived[keys] + (rank + 1) * WARP
        target = self.completed[keys] + -(-total // counts)
        touched, last = np.unique(keys[::-1], return_index=True)
        final = total[::-1][last]
        expected = self.expected[touched]
        self.completed[touched] += final // expected
        self.arrived[touched] = final % expected
        self.expected[touched[self.arrived[touched] == 0]] = 0
        return target


class BarrierWait:
    """``rows``: the waiting warps of the group (all of them); each until ``completed[key] >= target``."""

    def __init__(self, barriers: Barriers, rows: np.ndarray, keys: np.ndarray, target: np.ndarray, op: Any) -> None:
        self.barriers = barriers
        self.rows = rows
        self.keys = keys
        self.target = target
        self.op = op

    def ready(self) -> np.ndarray:
        return self.barriers.completed[self.keys] >= self.target

    def take(self, rows: np.ndarray) -> BarrierWait:
        return BarrierWait(self.barriers, np.arange(rows.size), self.keys[rows], self.target[rows], self.op)

    def meetings(self, warps: int) -> np.ndarray:
        """A number for each of the group's ``warps``, which those have in common that meet."""
        numbers = np.zeros(warps, np.int64)
        numbers[self.rows] = self.target * self.barriers.completed.size + self.keys
        return numbers

    def describe(self, row: int) -> str:
        key = int(self.keys[row])
        arrived, expected = self.barriers.arrived[key], self.barriers.expected[key]
        return f"barrier {key % NAMED}, where {arrived} of {expected} threads have arrived"


class ConditionWait:
    """Warps that wait for a condition of their instruction's own (an mbarrier's phase). ``reason``: a text, or a
    function of the warp's row in the group that began to wait; ``missing``: one that gives (rank, warp) of those who
    should act; ``fix``: the repair, where the wait never ends."""

    def __init__(
        self, condition: Any, reason: Any, op: Any, rows: np.ndarray, missing: Any = None, fix: str = ""
    ) -> None:
        self.whom, self.fix = missing, fix
        self.condition = condition
        self.reason = reason
        self.op = op
        self.rows = rows

    def ready(self) -> np.ndarray:
        holds = np.asarray(self.condition())
        return np.broadcast_to(holds, self.rows.shape) if holds.ndim == 0 else holds[self.rows]

    def take(self, rows: np.ndarray) -> ConditionWait:
        return ConditionWait(self.condition, self.reason, self.op, self.rows[rows], self.whom, self.fix)

    def missing(self, row: int) -> list[tuple[int, int]]:
        """(rank of the block in the cluster, warp) of those that are waited for, as far as that is known."""
        return self.whom(int(self.rows[row])) if self.whom is not None else []

    def describe(self, row: int) -> str:
        return self.reason if isinstance(self.reason, str) else self.reason(int(self.rows[row]))


def _meeting(group: Any, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """What a barrier of a group's blocks needs to know, found once: the blocks' keys, the threads of each block, the
    number of its block for each warp, and the rows of the warps."""
    meeting = group.registers.get(("barrier", number))
    if meeting is None:
        blocks, counts = group.blocks
        block_of = np.repeat(np.arange(blocks.size), counts)
        meeting = blocks * NAMED + number, counts * WARP, block_of, np.arange(group.warps.size)
        group.registers["barrier", number] = meeting
    return meeting


def _rank(keys: np.ndarray) -> np.ndarray:
    """How many earlier entries of ``keys`` equal this one."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    fresh = np.ones(keys.size, bool)
    fresh[1:] = ordered[1:] != ordered[:-1]
    start = np.maximum.accumulate(np.where(fresh, np.arange(keys.size), 0))
    rank = np.empty_like(order)
    rank[order] = np.arange(keys.size) - start
    return rank


_TORN_BARRIER = (
    "a block barrier inside a branch that only {count} of the warp's threads take (lanes {lanes})",
    "all threads of a warp must reach the barrier together: move it out of the branch, "
    "or make the condition the same for the whole warp",
)
_TORN_EXIT = (
    "exit of only {count} of the warp's threads (lanes {lanes}): the simulator's warps end as a whole",
    "make the condition the same for the whole warp, or branch around what these threads are to leave out",
)


def whole_warps(group: Any, mask: Any, torn: tuple[str, str] = _TORN_BARRIER) -> np.ndarray:
    """The warps that arrive: those with an active lane; all their threads must be active. ``torn``: what is said where
    they are not, and how to repair it."""
    if mask is None:
        return np.arange(group.warps.size)
    existing = group.existing()
    lanes = mask.reshape(-1, WARP)
    some = lanes.any(1)
    full = lanes.all(1) if existing is None else (lanes | ~existing.reshape(-1, WARP)).all(1)
    partial = some & ~full
    if partial.any():
        warp = int(np.argmax(partial))
        there = lanes[warp]
        text, fix = torn
        where = text.format(count=int(there.sum()), lanes=_runs(there))
        raise Fault(where, np.repeat(partial, WARP) & mask, fix=fix)
    return np.flatnonzero(some)


def _per_warp(value: Any, rows: np.ndarray, what: str) -> np.ndarray:
    if np.ndim(value) == 0:
        return np.full(rows.size, int(value), np.int64)
    by_warp = np.asarray(value).reshape(-1, WARP)[rows].astype(np.int64)
    if (by_warp != by_warp[:, :1]).any():
        raise Fault(f"the {what} differs between the threads of one warp")
    return by_warp[:, 0]


def _runs(lanes: np.ndarray) -> str:
    """The set lanes as ``0-7, 16``."""
    numbers = np.flatnonzero(lanes)
    breaks = np.flatnonzero(np.diff(numbers) != 1) + 1
    return ", ".join(f"{r[0]}-{r[-1]}" if r.size > 1 else f"{r[0]}" for r in np.split(numbers, breaks))
