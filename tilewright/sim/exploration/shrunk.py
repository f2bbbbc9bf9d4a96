"""A failing schedule made as small as it gets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.sim.exploration.plan import FixedPlan, IssuedEffect, SwitchPoint
from tilewright.sim.exploration.runs import FailingSchedule, LaunchRuns
from tilewright.sim.exploration.shrink import shrink
from tilewright.sim.program import Program


def shrunk(runs: LaunchRuns, failure: FailingSchedule, program: Program | None = None) -> FailingSchedule:
    """The failure of the last run with as few switches and delays as it takes; itself, where a plan does not lead to
    it."""
    planned = runs.planned
    switches: list[tuple[Any, Any]] = [(s.place, s.to) for s in planned.switches]
    parts = [*switches, *((issue, delay) for issue, (delay, _) in planned.delays.items())]
    smallest = [failure]

    def fails(kept: Sequence[tuple[Any, Any]]) -> bool:
        outcome = runs.under(_fixed(kept), program)
        if outcome is None or outcome.kind != failure.kind:
            return False
        smallest[0] = outcome
        return True

    failure.drawn = len(parts)
    if not fails(parts):
        return failure
    kept = shrink(parts, fails)
    fails(kept)  # so that the switches are those of the smallest
    found = smallest[0]
    found.drawn, found.seed, found.order = len(parts), failure.seed, failure.order
    needed = dict(kept)
    found.switches = [s for s in runs.planned.switches if s.place in needed]
    found.delays = {i: d for i, d in runs.planned.delays.items() if i in needed}
    return found


def _fixed(parts: Sequence[tuple[Any, Any]]) -> FixedPlan:
    return FixedPlan(
        {p: to for p, to in parts if isinstance(p, SwitchPoint)},
        {i: d for i, d in parts if isinstance(i, IssuedEffect)},
    )
