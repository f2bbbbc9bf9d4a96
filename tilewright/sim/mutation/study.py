"""The mutation study of a launch: each mutant of its kernel is run with all checks on the memory that the launch was
given, and what notices it is written down.

A mutant is *noticed* by a checker (its rule), a fault, a deadlock, a hang, the verifier, or other bytes than the
kernel's own. It is *equivalent* where it is shown to change nothing: its operation is not executed in this launch, or
waits for nothing in any of its executions. All others are *missed*.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewright.atoms.cp_async import CpAsyncWait
from tilewright.atoms.wgmma_sync import WgmmaWait
from tilewright.errors import SimulationError, TilewrightError
from tilewright.ir.core import Function, Op
from tilewright.ir.verify import verify
from tilewright.sim.events import Observer
from tilewright.sim.lowering import lower
from tilewright.sim.mutation.mutants import Mutant, mutants
from tilewright.sim.program import Program
from tilewright.sim.replay import Memory, Replay, intercepting
from tilewright.sim.settings import options

SEEDS = 3  # schedules of the kernel itself, which tell the bytes that depend on the schedule
TURNS = 1 << 14  # of while loops before a mutant counts as hung
NOTICED, EQUIVALENT, MISSED = "noticed", "equivalent", "missed"


@dataclass(frozen=True)
class Outcome:
    """``verdict``: noticed, equivalent or missed; ``by``: the rule or kind of error that notices it, or why it is
    equivalent; ``text``: the first line of the error."""

    mutant: Mutant
    kernel: str
    verdict: str
    by: str = ""
    text: str = ""

    @property
    def place(self) -> str:
        """The Python line, as ``file:line``."""
        return str(self.mutant.location or "")


@dataclass
class Study:
    """The outcomes of all mutants that have been run. ``score``: the part of those not equivalent that is noticed."""

    outcomes: list[Outcome] = field(default_factory=list)

    def of(self, verdict: str) -> list[Outcome]:
        return [o for o in self.outcomes if o.verdict == verdict]

    @property
    def score(self) -> float:
        noticed, missed = len(self.of(NOTICED)), len(self.of(MISSED))
        return noticed / (noticed + missed) if noticed + missed else 1.0


class _Executed(Observer):
    """Which ops a launch executes, and which waits for groups ever found one to wait for."""

    def __init__(self) -> None:
        self.ops: set[int] = set()
        self.landed: set[int] = set()
        self.queued: dict[int, int] = {}

    def executed(self, group: Any, op: Op) -> None:
        self.ops.add(id(op))


def study(
    act: Callable[[], Any], every: bool = False, seed: int = 0, schedules: int = 1, progress: Callable[..., Any] = print,
    launches: int = 1,
) -> Study:  # fmt: skip
    """Run ``act`` and study the kernels that it launches.

    Args:
        every: change every op, also where a line repeats it; else the first and the last.
        schedules: seeds that a mutant is run with before it counts as missed.
        launches: of one kernel that are studied, from the first on; a mutant is missed if none of them notices it.
        progress: is called with a line for each outcome.
    """
    found = Study()
    seen: dict[Function, int] = {}

    def take(replay: Replay) -> None:
        function = replay.kernel.program.function
        seen[function] = seen.get(function, 0) + 1
        if seen[function] > launches:
            replay.run()
            return
        for outcome in _launch(replay, every, seed, schedules):
            found.outcomes.append(outcome)
            progress(outcome)

    with options(check="all", seed=seed), intercepting(take):
        act()
    return found


def _launch(replay: Replay, every: bool, seed: int, schedules: int) -> Iterator[Outcome]:
    before = replay.memory()
    seen = _Executed()
    own = []
    for k in range(SEEDS):
        replay.restore(before)
        with options(seed=seed + k):
            replay.run(observers=[seen])  # an error here is the user's: the kernel itself is not clean
        own.append(replay.memory())
    firm = [np.logical_and.reduce([other == first for other in others]) for first, *others in zip(*own, strict=True)]
    for mutant in mutants(replay.kernel.program.function, every):
        if not any(id(op) in seen.ops for op in mutant.old):
            yield Outcome(mutant, replay.name, EQUIVALENT, "not executed in this launch")
            continue
        yield _judged(replay, mutant, before, own[0], firm, seed, schedules)
    replay.restore(own[0])


def _judged(
    replay: Replay, mutant: Mutant, before: Memory, own: Memory, firm: Memory, seed: int, schedules: int
) -> Outcome:
    with mutant.applied() as function:
        try:
            verify(function)
            program = lower(function)
        except TilewrightError as error:
            return Outcome(mutant, replay.name, NOTICED, "verifier", _line(error))
        for k in range(schedules):
            replay.restore(before)
            by, text = _run(replay, program, seed + k)
            if by:
                return Outcome(mutant, replay.name, NOTICED, by, text)
            now = replay.memory()
            different = sum(int(((a != b) & f).sum()) for a, b, f in zip(now, own, firm, strict=True))
            if different:
                return Outcome(mutant, replay.name, NOTICED, "wrong result", f"{different} bytes differ (seed {seed + k})")
    return Outcome(mutant, replay.name, MISSED)


def _run(replay: Replay, program: Program, seed: int) -> tuple[str, str]:
    """What notices a run of the program, and its text; both empty if nothing does."""
    try:
        with options(seed=seed, turns=TURNS), contextlib.redirect_stdout(io.StringIO()):
            replay.run(program)
    except SimulationError as error:
        return _rule(error), _line(error)
    return "", ""


def _rule(error: SimulationError) -> str:
    text = str(error)
    rules = re.findall(r"^ {2}([a-z][a-z-]+): ", text, re.MULTILINE)
    if text.startswith("deadlock"):
        return "deadlock"
    if " hangs:" in text.split("\n", 1)[0]:
        return "hang"
    if text.startswith("checks of kernel") and rules:
        return ", ".join(sorted(set(rules)))
    return "fault"


def _line(error: Exception) -> str:
    lines = str(error).split("\n")
    return lines[1].strip() if lines[0].startswith("checks of kernel") and len(lines) > 1 else lines[0]
