"""The mutation study of a launch: each mutant of its kernel is run with all checks on the memory that the launch was
given, and what notices it is written down.

A mutant is *noticed* by a checker (its rule), a fault, a deadlock, a hang, the verifier, or other bytes than the
kernel's own. It is *equivalent* where it is shown, or known, to change nothing (:mod:`.equivalent`). All others are
*missed*.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewright.errors import SimulationError, TilewrightError, byte_count
from tilewright.ir.verify import verify
from tilewright.reports import Shown
from tilewright.sim.exploration.launch import IssueObserver, PolicyLaunch, visible, with_stops
from tilewright.sim.exploration.plan import RandomPlan
from tilewright.sim.lowering import lower
from tilewright.sim.mutation.equivalent import KnownList, LaunchEvidence
from tilewright.sim.mutation.mutants import Mutant, edited, mutants
from tilewright.sim.replay import MemoryContents, Replay, error_kind, intercepting
from tilewright.sim.settings import options

SEEDS = 3  # schedules of the kernel itself, which tell the bytes that depend on the schedule
STEPS = 1000  # among which the changes of priority of a drawn schedule are
TURNS = 1 << 14  # of while loops before a mutant counts as hung
NOTICED, EQUIVALENT, MISSED = "noticed", "equivalent", "missed"


@dataclass(frozen=True)
class Outcome(Shown):
    """``verdict``: noticed, equivalent or missed; ``by``: the rule or kind of error that notices it, or why it is
    equivalent; ``text``: the first line of the error."""

    mutant: Mutant
    kernel: str
    verdict: str
    by: str = ""
    text: str = ""

    def __str__(self) -> str:
        why = f" ({self.by})" if self.by else ""
        return f"{self.verdict}{why}: kernel {self.kernel}, {self.mutant}"


@dataclass
class Study(Shown):
    """The outcomes of all mutants that have been run. ``score``: the part of those not equivalent that is noticed."""

    outcomes: list[Outcome] = field(default_factory=list)

    def of(self, verdict: str) -> list[Outcome]:
        return [o for o in self.outcomes if o.verdict == verdict]

    def __str__(self) -> str:
        counts = ", ".join(f"{len(self.of(verdict))} {verdict}" for verdict in (NOTICED, EQUIVALENT, MISSED))
        return "\n".join([f"mutants: {counts}; score {self.score:.0%}", *map(str, self.of(MISSED))])

    @property
    def score(self) -> float:
        noticed, missed = len(self.of(NOTICED)), len(self.of(MISSED))
        return noticed / (noticed + missed) if noticed + missed else 1.0


def study(
    act: Callable[[], Any],
    *,
    every: bool = False,
    seed: int = 0,
    schedules: int = 0,
    launches: int = 1,
    known: KnownList | None = None,
    progress: Callable[[Outcome], Any] = lambda outcome: None,
) -> Study:
    """Run ``act`` and study the kernels that it launches on the simulator.

    Args:
        every: change every op, also where a line repeats it; else the first and the last.
        seed: of the schedules.
        schedules: how many are drawn for a mutant that the simulator's own misses (see :mod:`..exploration`).
        launches: of one kernel that are studied, from the first on, each by itself.
        known: mutants that are known to be equivalent.
        progress: is called with each outcome.

    A kernel that is not clean itself ends the study with its own error.
    """
    result = Study()

    def take(replay: Replay) -> None:
        for outcome in _launch(replay, every, seed, schedules, known or KnownList()):
            result.outcomes.append(outcome)
            progress(outcome)

    with options(check="all", seed=seed), intercepting(take, launches):
        act()
    return result


def _launch(replay: Replay, every: bool, seed: int, schedules: int, known: KnownList) -> Iterator[Outcome]:
    function = replay.kernel.program.function
    chosen = mutants(function, every)
    if not chosen:
        replay.run()
        return
    before = replay.memory()
    own: list[MemoryContents] = []
    for k in range(SEEDS + schedules):  # the kernel itself has to pass whatever its mutants are judged by
        replay.restore(before)
        if k < SEEDS:
            with options(seed=seed + k):
                replay.run()
        else:
            replay.run(with_stops(replay.kernel.program), [IssueObserver()], _planned(seed + k - SEEDS))
        own.append(replay.memory())
    # Bytes that differ between schedules of the kernel itself (an order of claims, sums of floats) prove nothing.
    firm = [np.logical_and.reduce([o == first for o in others]) for first, *others in zip(*own, strict=True)]
    expected = own[0], firm
    witness = _witness(replay, before)
    for mutant in chosen:
        outcome = _judged(replay, mutant, before, expected, seed, None)
        # Evidence is looked for only where it is needed: a mutant that is noticed is not equivalent.
        if outcome.verdict == MISSED:
            reason = witness.reason(mutant) or known.reason(mutant)
            if reason:
                outcome = Outcome(mutant, replay.name, EQUIVALENT, reason)
        for k in range(schedules):
            if outcome.verdict == MISSED:
                outcome = _judged(replay, mutant, before, expected, seed, seed + k)
        yield outcome
    replay.restore(own[0])


def _witness(replay: Replay, before: MemoryContents) -> LaunchEvidence:
    witness = LaunchEvidence(replay.kernel.program.function)
    with edited(witness.edits), options(check="none"):
        replay.restore(before)
        with contextlib.redirect_stdout(io.StringIO()):
            replay.run(lower(witness.function), [witness])
    return witness


def _judged(
    replay: Replay,
    mutant: Mutant,
    before: MemoryContents,
    expected: tuple[MemoryContents, MemoryContents],
    seed: int,
    drawn: int | None,
) -> Outcome:
    """One run of a mutant, under the simulator's own schedule or the one ``drawn`` from a seed."""
    with mutant.applied() as function:
        try:
            verify(function)
            program = lower(function, stops=None if drawn is None else visible)
        except TilewrightError as error:
            return Outcome(mutant, replay.name, NOTICED, "verifier", _line(error))
        replay.restore(before)
        try:
            with options(seed=seed, turns=TURNS), contextlib.redirect_stdout(io.StringIO()):
                if drawn is None:
                    replay.run(program)
                else:
                    replay.run(program, [IssueObserver()], _planned(drawn))
        except SimulationError as error:
            by, text = error_kind(error), _line(error)
        else:
            different = sum(
                int(((now != own) & firm).sum()) for now, own, firm in zip(replay.memory(), *expected, strict=True)
            )
            by, text = ("wrong result", f"{byte_count(different)} of the result") if different else ("", "")
    if not by:
        return Outcome(mutant, replay.name, MISSED)
    return Outcome(mutant, replay.name, NOTICED, by if drawn is None else f"{by} (drawn schedule)", text)


def _planned(seed: int) -> Callable[..., PolicyLaunch]:
    return lambda *arguments: PolicyLaunch(*arguments, plan=RandomPlan(seed, STEPS))


def _line(error: Exception) -> str:
    lines = str(error).split("\n")
    return lines[1].strip() if lines[0].startswith("checks of kernel") and len(lines) > 1 else lines[0]
