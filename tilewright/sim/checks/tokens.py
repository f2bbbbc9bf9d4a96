"""The answer of a ``try_wait`` (a token) decides over the wait for the phase that it was asked about, and for no other.

A token that is true leaves the wait out. Where one is used again for the next phase, the launch is right as long as the
token is false, and the simulator, in which copies come late, mostly gives false: so what each token was asked about is
compared with what is waited for in its place.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tilewright.atoms.mbarrier_state import Mbarriers
from tilewright.ir.core import Constant, Op
from tilewright.ir.lanes import Array
from tilewright.ir.target import WARP
from tilewright.sim.checks.actors import thread_of
from tilewright.sim.checks.checker import Checker
from tilewright.sim.checks.findings import Finding, Party
from tilewright.sim.checks.places import shared_memory
from tilewright.sim.checks.sites import kernel_facts
from tilewright.sim.lowering import constant_value

if TYPE_CHECKING:
    from tilewright.sim.engine import Launch
    from tilewright.sim.group import Group
    from tilewright.sim.wave import Wave

BYTES = 8
KEPT = 8  # questions that are remembered of each warp and line: a token may be carried over a few iterations of a loop

Phase = tuple[int, int]
"""The place of an mbarrier (:meth:`Lanes.places`), and which of its phases: 0 for the first."""


class Tokens(Checker):
    def begin(self, launch: Launch) -> None:
        facts = kernel_facts(launch.program)
        self.guarded, self.names = facts.guarded_waits, facts.shared_names
        self.asking = {test for tests in self.guarded.values() for test in tests}
        self.slots = launch.program.slots
        self.asked: dict[tuple[Wave, int, Op], deque[Phase]] = {}  # by warp and try_wait
        self.used: dict[tuple[Wave, int, Op], Op] = {}  # by warp and wait: whose token was of the phase waited for

    def mbarrier(self, group: Group, what: str, places: Array, lanes: Array, done: Array | None) -> None:
        op, wave = group.lanes.op, group.wave
        if what == "test" and op in self.asking:
            for row, phase in self._phases(group, op, places, lanes).items():
                self.asked.setdefault((wave, int(group.warps[row]), op), deque(maxlen=KEPT)).append(phase)
        elif what == "wait" and op in self.guarded:
            for row, phase in self._phases(group, op, places, lanes).items():
                self._waits(group, op, row, phase)

    def _phases(self, group: Group, op: Op, places: Array, lanes: Array) -> dict[int, Phase]:
        """The phase that the first active lane of each warp (by its row in the group) tests or waits for."""
        operand = op.operands[1]
        parity = constant_value(operand) if isinstance(operand, Constant) else group.slots[self.slots[operand]]
        parity = np.broadcast_to(np.asarray(parity, np.int64), (group.lanes_count,))[lanes]
        table = group.wave.kept[Mbarriers]
        completed = table.completed[table.rows(places)]
        phases = completed - ((completed & 1) != parity)  # the current one, or the one before it
        rows, first = np.unique(lanes // WARP, return_index=True)
        return {int(row): (int(places[k]), int(phases[k])) for row, k in zip(rows, first, strict=True)}

    def _waits(self, group: Group, op: Op, row: int, phase: Phase) -> None:
        warp, wave = int(group.warps[row]), group.wave
        asked: dict[Op, Sequence[Phase]] = {t: self.asked.get((wave, warp, t), ()) for t in self.guarded[op]}
        right = next((test for test, phases in asked.items() if phase in phases), None)
        if right is not None:
            self.used[wave, warp, op] = right
            return
        test = self.used.get((wave, warp, op))
        if test is not None and asked[test]:
            self._stale_token(group, op, row, test, asked[test][-1], phase)

    def _stale_token(self, group: Group, op: Op, row: int, test: Op, asked: Phase, phase: Phase) -> None:
        place, number = phase
        self.findings.add(
            Finding(
                "mbarrier-token",
                "the answer of a try_wait is used again, for a phase that it says nothing of",
                [Party("waits", op, thread_of(group, row * WARP)), Party("unless the answer is true", test)],
                shared_memory(place & 0xFFFFFFFF, BYTES, self.names),
                f"asked was phase {asked[1]} of {self._name(asked)}; phase {number} of {self._name(phase)} is waited "
                "for only because the answer was false: once it is true this wait is left out",
                "ask again for each stage and phase, after the state has advanced: token = "
                "consumer.try_wait() (mbarrier_try_wait) in each iteration",
            )
        )

    def _name(self, phase: Phase) -> str:
        offset = phase[0] & 0xFFFFFFFF
        return self.names.element(offset) or f"the mbarrier at shared-memory offset {offset}"
