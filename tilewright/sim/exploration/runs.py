"""The runs of one launch, and what a failing one is told as."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewright.errors import SimulationError, byte_count
from tilewright.ir.core import Op
from tilewright.ir.runtime import LaunchConfig
from tilewright.reports import Shown
from tilewright.sim.exploration.launch import IssueObserver, PolicyLaunch, Switch, with_stops
from tilewright.sim.exploration.plan import IssuedEffect, SchedulingPolicy
from tilewright.sim.messages import source_line
from tilewright.sim.program import Program
from tilewright.sim.replay import MemoryContents, Replay, error_kind

OTHER_RESULT = "other result"


@dataclass
class FailingSchedule(Shown):
    """A schedule that fails.

    Attributes:
        kind: ``deadlock``, ``hang``, ``fault``, rules of the checks, or ``other result``.
        text: the error's text, or how many bytes differ.
        seed: of the schedule; None where the launch fails under the simulator's own.
        switches: where another warp had to go on for the failure, and which.
        delays: the asynchronous effects that had to take place early, and after how many steps.
        order: number of the schedule in a systematic exploration, instead of a seed.
        drawn: how many switches and delays the schedule had before it was shrunk.
    """

    kind: str
    text: str
    seed: int | None = None
    order: int | None = None
    switches: list[Switch] = field(default_factory=list)
    delays: dict[IssuedEffect, tuple[int, Op]] = field(default_factory=dict)
    drawn: int = 0
    names: Callable[[int], str] = str
    error: SimulationError | None = None

    @property
    def schedule(self) -> str:
        """Which schedule it was; empty for the simulator's own."""
        if self.seed is not None:
            return f"seed {self.seed} (--schedules 1 --seed {self.seed})"
        return "" if self.order is None else f"number {self.order} of all orders (--systematic)"

    def __str__(self) -> str:
        """The error under the own schedule as it is; else the deviations from the plain order, one a line."""
        if self.seed is None and self.order is None:
            return self.text
        which = f"the schedule of seed {self.seed}" if self.order is None else f"schedule number {self.order}"
        lines = [f"{which} fails: {self.text}"]
        parts = len(self.switches) + len(self.delays)
        if parts:
            lines.append(
                f"it takes {parts} of its {self.drawn} deviations from the plain order (each warp runs until "
                "it waits, asynchronous copies arrive as late as they can):"
            )
        else:
            lines.append("it takes none of them: each warp runs until it waits, then the next one")
        lines += [f"  {k}. {self._switch(switch)}" for k, switch in enumerate(self.switches, 1)]
        for k, (issue, (delay, op)) in enumerate(self.delays.items(), len(self.switches) + 1):
            when = "at once" if not delay else f"{delay} steps after its issue"
            lines.append(
                f"  {k}. copy {issue.number} of {self.names(issue.agent)}, issued {source_line(op)}, arrives {when}"
            )
        if self.seed is not None:
            lines.append(f"again: --schedules 1 --seed {self.seed}")
        return "\n".join(lines)

    def _switch(self, switch: Switch) -> str:
        if switch.place.blocked:
            reached = f"{self.names(switch.place.agent)} cannot go on"
        else:
            reached = f"{self.names(switch.place.agent)} stops before {_where(switch.before)}"
        return (
            f"{reached}; {self.names(switch.to)} goes on{f' with {_where(switch.next_op)}' if switch.next_op else ''}"
        )


def _where(op: Op | None) -> str:
    if op is None:
        return "its first step"
    name = op.attrs["atom"].mnemonic() if op.opcode == "call" else op.opcode
    return f"{name} {source_line(op)}"


@dataclass
class ExplorationResult(Shown):
    """The result of exploring one launch. ``schedules``: how many were run; ``steps``: of the plain one, or
    of the longest. ``complete``: whether a systematic exploration has come to its end; ``claim``: what it has shown."""

    kernel: str
    config: LaunchConfig
    schedules: int = 0
    steps: int = 0
    failure: FailingSchedule | None = None
    claim: str = ""
    complete: bool = False

    def __str__(self) -> str:
        head = f"kernel {self.kernel!r}, grid {self.config.grid}, block {self.config.block}"
        if self.failure is not None:
            return f"{head}: {self.failure}"
        return f"{head}: {self.claim or f'no failing schedule among {self.schedules}'}"


class LaunchRuns:
    """The runs of one launch: each begins with the memory that it was given."""

    def __init__(self, replay: Replay, compare: bool) -> None:
        self.replay = replay
        self.compare = compare
        self.before = replay.memory()
        self.result: MemoryContents | None = None
        self.last: PolicyLaunch | None = None

    def own(self, explored: ExplorationResult) -> bool:
        """Run it under the simulator's own schedule; whether that did not fail."""
        try:
            self.replay.run()
        except SimulationError as error:
            explored.failure = FailingSchedule(error_kind(error), str(error), error=error)
            return False
        self.result = self.replay.memory()
        return True

    def run(
        self, make: Callable[..., PolicyLaunch], observers: Sequence[Any] = (), program: Program | None = None
    ) -> FailingSchedule | None:
        """Run it once; the failure, if it fails."""
        # The launches before this one are not run again: all begin with the memory as it was then.
        self.replay.restore(self.before)

        def keep(*arguments: Any) -> PolicyLaunch:
            self.last = make(*arguments)
            return self.last

        own = program or with_stops(self.replay.kernel.program)
        try:
            # A kernel that prints would do so once for each schedule.
            with contextlib.redirect_stdout(io.StringIO()):
                self.replay.run(own, [*observers, IssueObserver()], keep)
        except SimulationError as error:
            return FailingSchedule(error_kind(error), str(error), error=error, names=self.planned.who)
        if self.compare and self.result is not None:
            pairs = zip(self.replay.memory(), self.result, strict=True)
            different = sum(int(np.count_nonzero(now != own)) for now, own in pairs)
            if different:
                verb = "differs" if different == 1 else "differ"
                text = f"{byte_count(different)} of the result {verb} from what the simulator's own schedule gives"
                return FailingSchedule(OTHER_RESULT, text, names=self.planned.who)
        return None

    @property
    def planned(self) -> PolicyLaunch:
        assert self.last is not None
        return self.last

    def under(self, plan: SchedulingPolicy, program: Program | None = None) -> FailingSchedule | None:
        return self.run(lambda *arguments: PolicyLaunch(*arguments, plan=plan), program=program)

    def end(self) -> None:
        """Leave the result of the own schedule."""
        if self.result is not None:
            self.replay.restore(self.result)
