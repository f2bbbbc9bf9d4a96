"""Reads of bytes that an asynchronous copy brings, without the wait for its mbarrier: which wait is missing.

A race between a read and a copy can be the reader's mistake (it did not wait, or for another phase or stage) or the
producer's (it filled a stage that was still in use). What the reader's warp did with mbarriers before its read tells
the two apart, so that is kept: the last ``KEPT`` waits and arrivals of each wave, and the copy that came last to each
place.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tilewright.atoms.mbarrier_state import Mbarriers
from tilewright.ir.core import Op
from tilewright.ir.lanes import Array
from tilewright.ir.target import WARP
from tilewright.sim.messages import source_line

if TYPE_CHECKING:
    from tilewright.sim.agents import Effect
    from tilewright.sim.checks.barrier_clocks import MbarrierClocks
    from tilewright.sim.group import Group
    from tilewright.sim.shared_names import SharedNames
    from tilewright.sim.wave import Wave

KEPT = 1024
READERS = ("", "wgmma", "tcgen05.mma", "cp.async.bulk.read")  # who may read a stage too early: threads, and agents


class Copy(NamedTuple):
    """Bytes ``start`` to ``stop`` of a wave's shared memory that lane ``lane`` of warp ``warp`` has had copied there;
    they count at the mbarrier ``barrier``."""

    start: int
    stop: int
    barrier: int
    warp: int
    lane: int


class MbarrierEvent(NamedTuple):
    """What warps did with mbarriers at one moment: an arrival, or a wait that was over. ``clocks``: of the warps then;
    ``completed``: the phases that the mbarriers had completed."""

    waits: bool
    op: Op
    barriers: Array
    warps: Array
    clocks: Array
    completed: Array


class Issue(NamedTuple):
    """Warps have handed something to the agent with this number, in their open groups ``groups``, at ``clocks``."""

    agent: int
    warps: Array
    groups: Array
    clocks: Array


class Reader(NamedTuple):
    """Who read: a warp, its clock then, and the clock of the mbarrier's bytes that it knows of now."""

    wave: Wave
    warp: int
    clock: int
    knows: int


class Stages:
    """The copies into shared memory, and what warps do with mbarriers."""

    def __init__(self, names: SharedNames) -> None:
        self.names = names
        self.copies: dict[Wave, dict[int, Copy]] = {}  # by their first byte
        self.steps: dict[Wave, deque[MbarrierEvent]] = {}
        self.issued: dict[Wave, deque[Issue]] = {}

    # -- what happens --------------------------------------------------------------------------------------------------

    def bytes_arrive(self, wave: Wave, start: int, size: int, barrier: int, effect: Effect, lane: int) -> None:
        """``effect``, which lane ``lane`` of its group issued, brings bytes that count at ``barrier``."""
        warp = int(effect.notes.warps[lane // WARP])
        self.copies.setdefault(wave, {})[start] = Copy(start, start + size, barrier, warp, lane % WARP)

    def step(self, group: Group, waits: bool, op: Op, barriers: Array, lanes: Array, clocks: Array) -> None:
        """Lanes of the group have arrived at mbarriers, or have waited for them; ``clocks``: of the wave's warps."""
        rows = lanes // WARP
        first = np.flatnonzero((rows[1:] != rows[:-1]) | (barriers[1:] != barriers[:-1])) + 1
        first = np.concatenate([[0], first]) if lanes.size else first
        warps, barriers, table = group.warps[rows[first]], barriers[first], group.wave.kept[Mbarriers]
        completed = table.completed[table.rows(barriers)]
        steps = self.steps.setdefault(group.wave, deque(maxlen=KEPT))
        steps.append(MbarrierEvent(waits, op, barriers, warps, clocks[warps], completed))

    def wait_is_over(self, group: Group, op: Op, mbarriers: MbarrierClocks) -> None:
        """The wait of a group is over."""
        found = [
            (place, row * WARP)
            for row, warp in enumerate(group.warps.tolist())
            for place, _ in mbarriers.waiting.get(warp, ())
        ]
        if found:
            barriers, lanes = np.array(found).T
            self.step(group, True, op, barriers, lanes, mbarriers.clocks.now)

    def issue(self, wave: Wave, agent: int, warps: Array, groups: Array, clocks: Array) -> None:
        """Warps of the wave have handed something to an agent that may read shared memory."""
        kept = self.issued.setdefault(wave, deque(maxlen=KEPT))
        kept.append(Issue(agent, warps, groups, clocks))

    # -- what it means -------------------------------------------------------------------------------------------------

    def copy_at(self, wave: Wave, offset: int) -> Copy | None:
        """The last copy that brought the byte at an offset of the wave's shared memory."""
        return next((copy for copy in self.copies.get(wave, {}).values() if copy.start <= offset < copy.stop), None)

    def issued_at(self, wave: Wave, agent: int, warp: int, group: int) -> int | None:
        """The clock of a warp when it first handed something to the agent in this group."""
        for issue in self.issued.get(wave, ()):
            mine = np.flatnonzero((issue.warps == warp) & (issue.groups == group))
            if issue.agent == agent and mine.size:
                return int(issue.clocks[mine[0]])
        return None

    def missing_wait(self, reader: Reader, copy: Copy) -> tuple[str, str] | None:
        """(why, fix) of a read that does not wait for ``copy``; None if the reader did wait, so that the copy came too
        early."""
        steps = [step for step in self.steps.get(reader.wave, ()) if self._before(step, reader)]
        name = self._name(copy.barrier)
        fix = (
            f"cute.arch.mbarrier_wait({name}, parity) before the read (consumer_wait of a pipeline); the parity of "
            "pass n over the stages is n & 1"
        )
        waits = [step for step in steps if step.waits and self._at(step, reader.warp, copy.barrier)]
        if not waits:
            if reader.knows:  # another thread waited, and a barrier has told this one
                return None
            last = next((step for step in reversed(steps) if step.waits), None)
            other = (
                "" if last is None else f"; its last wait, {source_line(last.op)}, is for {self._awaited(last, reader)}"
            )
            return f"nothing makes this warp wait for the copy's mbarrier {name} before the read{other}", fix
        last, completed = waits[-1], self._completed(waits[-1], reader.warp, copy.barrier)
        # A wait for a phase that was complete before returns at once. So two waits which saw the same number of
        # completed phases cannot both have waited for new bytes.
        if completed == 0 or any(self._completed(w, reader.warp, copy.barrier) == completed for w in waits[:-1]):
            phase = "the phase before the first one" if completed == 0 else f"phase {completed - 1}, an earlier one,"
            return (
                f"wrong parity: the wait {source_line(last.op)} is for {phase} of {name}; it is over at "
                "once, whether or not this copy has come"
            ), fix
        at = max(number for number, step in enumerate(steps) if step is last)
        # An arrival releases the stage: what is read after it, without another wait, may be the bytes of the next pass.
        released = next((step for step in steps[at + 1 :] if not step.waits), None)
        if released is not None:
            return (
                f"this warp has not waited for the copy's mbarrier {name} since it gave the stage before back, "
                f"{source_line(released.op)}"
            ), fix
        return None

    def not_announced(self, wave: Wave, copy: Copy) -> tuple[str, str] | None:
        """(why, fix) where more bytes have come to the mbarrier of ``copy`` than were announced: its phases are over
        before their bytes have come."""
        table = wave.kept[Mbarriers]
        row = int(table.rows(np.array([copy.barrier]))[0])
        if row < 0 or table.bytes[row] >= 0:
            return None
        name = self._name(copy.barrier)
        return (
            f"fewer bytes were announced to the copy's mbarrier {name} than copies bring, so its phase is complete "
            "before these bytes come, and so is the wait for it",
            f"cute.arch.mbarrier_arrive_and_expect_tx({name}, bytes) with the sum of the bytes of all copies that "
            "name it in one phase, in place of a plain arrival or of fewer bytes",
        )

    def _before(self, step: MbarrierEvent, reader: Reader) -> bool:
        return bool(((step.warps == reader.warp) & (step.clocks <= reader.clock)).any())

    def _at(self, step: MbarrierEvent, warp: int, barrier: int) -> bool:
        return bool(((step.warps == warp) & (step.barriers == barrier)).any())

    def _completed(self, step: MbarrierEvent, warp: int, barrier: int) -> int:
        return int(step.completed[(step.warps == warp) & (step.barriers == barrier)][0])

    def _awaited(self, step: MbarrierEvent, reader: Reader) -> str:
        return self._name(int(step.barriers[step.warps == reader.warp][0]))

    def _name(self, barrier: int) -> str:
        offset = barrier & 0xFFFFFFFF
        return self.names.element(offset) or f"at shared-memory offset {offset}"
