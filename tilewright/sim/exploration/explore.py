"""Exploration: a launch is run under many schedules, and the first that fails is made as small as it gets.

A schedule *fails* when it ends in an error (a fault, a deadlock, a finding of the checks) or leaves other bytes in
memory than the launch as the simulator runs it by itself. Each is drawn from a seed; seed S of kernel K is the same
schedule wherever it is asked for.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewright.errors import ArgumentError, SimulationError
from tilewright.ir.core import Function, Op
from tilewright.ir.runtime import LaunchConfig
from tilewright.sim.exploration.launch import Issues, Planned, Switch, with_stops
from tilewright.sim.exploration.plan import Drawn, Fixed, Issue, Place, Plan
from tilewright.sim.exploration.shrink import shrink
from tilewright.sim.messages import place
from tilewright.sim.replay import Memory, Replay, intercepting, kind
from tilewright.sim.settings import options

OTHER_RESULT = "other result"


@dataclass
class Failure:
    """A schedule that fails.

    Attributes:
        kind: ``deadlock``, ``hang``, ``fault``, rules of the checks, or ``other result``.
        text: the error's text, or how many bytes differ.
        seed: of the schedule; None where the launch fails under the simulator's own.
        switches: where another warp had to go on for the failure, and which.
        delays: the asynchronous effects that had to take place early, and after how many steps.
        drawn: how many switches and delays the schedule had before it was shrunk.
    """

    kind: str
    text: str
    seed: int | None = None
    switches: list[Switch] = field(default_factory=list)
    delays: dict[Issue, tuple[int, Op]] = field(default_factory=dict)
    drawn: int = 0
    names: Callable[[int], str] = str
    error: SimulationError | None = None

    def __str__(self) -> str:
        if self.seed is None:
            return self.text
        lines = [f"the schedule of seed {self.seed} fails: {self.text}"]
        parts = len(self.switches) + len(self.delays)
        if parts:
            lines.append(f"it takes {parts} of its {self.drawn} deviations from the plain order (each warp runs until "
                         "it waits, asynchronous copies arrive as late as they can):")  # fmt: skip
        else:
            lines.append("it takes none of them: each warp runs until it waits, then the next one")
        lines += [f"  {k}. {self._switch(switch)}" for k, switch in enumerate(self.switches, 1)]
        for k, (issue, (delay, op)) in enumerate(self.delays.items(), len(self.switches) + 1):
            when = "at once" if not delay else f"{delay} steps after its issue"
            lines.append(f"  {k}. copy {issue.number} of {self.names(issue.agent)}, issued {place(op)}, arrives {when}")
        lines.append(f"again: --schedules 1 --seed {self.seed}")
        return "\n".join(lines)

    def _switch(self, switch: Switch) -> str:
        if switch.place.blocked:
            stands = f"{self.names(switch.place.agent)} cannot go on"
        else:
            stands = f"{self.names(switch.place.agent)} stops before {_where(switch.before)}"
        return f"{stands}; {self.names(switch.to)} goes on{f' with {_where(switch.next_op)}' if switch.next_op else ''}"


def _where(op: Op | None) -> str:
    if op is None:
        return "its first step"
    name = op.attrs["atom"].mnemonic() if op.opcode == "call" else op.opcode
    return f"{name} {place(op)}"


@dataclass
class Explored:
    """What the exploration of one launch gave. ``schedules``: how many were run; ``steps``: of the plain one."""

    kernel: str
    config: LaunchConfig
    schedules: int = 0
    steps: int = 0
    failure: Failure | None = None
    claim: str = ""

    def __str__(self) -> str:
        head = f"kernel {self.kernel!r}, grid {self.config.grid}, block {self.config.block}"
        if self.failure is not None:
            return f"{head}: {self.failure}"
        return f"{head}: {self.claim or f'no failing schedule among {self.schedules}'}"


@dataclass
class Exploration:
    """The launches explored, in their order."""

    launches: list[Explored] = field(default_factory=list)

    @property
    def failure(self) -> Failure | None:
        """The first failure."""
        return next((e.failure for e in self.launches if e.failure is not None), None)

    def __bool__(self) -> bool:
        """Whether nothing failed."""
        return self.failure is None

    def __str__(self) -> str:
        return "\n".join(map(str, self.launches)) or "no kernel was launched on the simulator"


def explore(
    act: Callable[[], Any], schedules: int = 100, seed: int = 0, *, systematic: bool = False, compare: bool = True,
    launches: int = 1, limit: int = 2000,
) -> Exploration:  # fmt: skip
    """Run ``act``, and each kernel that it launches on the simulator under many schedules, with all checks.

    Args:
        act: is called once; what it gives is dropped. Its launches end with the result of the simulator's own schedule.
        schedules: how many are drawn, of the seeds ``seed``, ``seed + 1``, ...
        systematic: instead of drawing, run every order of the synchronisation operations that can matter (at most
            ``limit`` schedules); meant for small launches.
        compare: whether a result of other bytes is a failure. Sums by atomics of floats differ by nature.
        launches: of each kernel that are explored, from the first on; others just run.

    Returns:
        An :class:`Exploration`: true if nothing failed; ``failure`` is the first that did, and ``str()`` the report.
    """
    for name, value in (("schedules", schedules), ("launches", launches), ("limit", limit)):
        if not isinstance(value, int) or value < 1:
            raise ArgumentError(f"explore: {name}={value!r}; it is an int of 1 or more")
    found = Exploration()
    with exploring(found, schedules, seed, systematic, compare, launches, limit):
        act()
    return found


@contextlib.contextmanager
def exploring(
    found: Exploration, schedules: int, seed: int, systematic: bool, compare: bool, launches: int, limit: int
) -> Iterator[None]:
    """Explore the launches inside the block, and write what is found into ``found``."""
    seen: dict[Function, int] = {}

    def take(replay: Replay) -> None:
        function = replay.kernel.program.function
        seen[function] = seen.get(function, 0) + 1
        if seen[function] > launches:
            replay.run()
            return
        runs = Runs(replay, compare)
        explored = Explored(replay.name, replay.config)
        found.launches.append(explored)
        try:
            if runs.own(explored):
                if systematic:
                    from tilewright.sim.exploration.systematic import every_order

                    every_order(runs, explored, limit)
                else:
                    _drawn(runs, explored, schedules, seed)
        finally:
            runs.end()

    with options(check="all"), intercepting(take):
        yield


class Runs:
    """The runs of one launch: each begins with the memory that it was given."""

    def __init__(self, replay: Replay, compare: bool) -> None:
        self.replay = replay
        self.compare = compare
        self.before = replay.memory()
        self.result: Memory | None = None
        self.last: Planned | None = None

    def own(self, explored: Explored) -> bool:
        """Run it under the simulator's own schedule; whether that did not fail."""
        try:
            self.replay.run()
        except SimulationError as error:
            explored.failure = Failure(kind(error), str(error), error=error)
            return False
        self.result = self.replay.memory()
        return True

    def run(self, make: Callable[..., Planned], observers: Sequence[Any] = (), program: Any = None) -> Failure | None:
        """Run it once; the failure, if it fails."""
        self.replay.restore(self.before)

        def keep(*arguments: Any) -> Planned:
            self.last = make(*arguments)
            return self.last

        own = program or with_stops(self.replay.kernel.program)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                self.replay.run(own, [*observers, Issues()], keep)
        except SimulationError as error:
            return Failure(kind(error), str(error), error=error, names=self.planned.who)
        if self.compare and self.result is not None:
            pairs = zip(self.replay.memory(), self.result, strict=True)
            different = sum(int(np.count_nonzero(now != own)) for now, own in pairs)
            if different:
                text = f"{different} bytes of the result differ from those of the simulator's own schedule"
                return Failure(OTHER_RESULT, text, names=self.planned.who)
        return None

    @property
    def planned(self) -> Planned:
        assert self.last is not None
        return self.last

    def under(self, plan: Plan) -> Failure | None:
        return self.run(lambda *arguments: Planned(*arguments, plan=plan))

    def end(self) -> None:
        """Leave the result of the own schedule."""
        if self.result is not None:
            self.replay.restore(self.result)


def _drawn(runs: Runs, explored: Explored, schedules: int, seed: int) -> None:
    runs.under(Plan())
    explored.steps = runs.planned.clock
    for k in range(schedules):
        explored.schedules = k + 1
        failure = runs.under(Drawn(seed + k, explored.steps))
        if failure is not None:
            explored.failure = _shrunk(runs, failure)
            explored.failure.seed = seed + k
            return


def _shrunk(runs: Runs, failure: Failure) -> Failure:
    """The failure with as few switches and delays as it takes."""
    planned = runs.planned
    switches: list[tuple[Any, Any]] = [(s.place, s.to) for s in planned.switches]
    parts = [*switches, *((issue, delay) for issue, (delay, _) in planned.delays.items())]
    smallest = [failure]

    def fails(kept: Sequence[tuple[Any, Any]]) -> bool:
        found = runs.under(_fixed(kept))
        if found is None or found.kind != failure.kind:
            return False
        smallest[0] = found
        return True

    kept = shrink(parts, fails)
    fails(kept)  # so that the switches are those of the smallest
    found = smallest[0]
    found.drawn = len(parts)
    wanted = dict(kept)
    found.switches = [s for s in runs.planned.switches if s.place in wanted]
    found.delays = {i: d for i, d in runs.planned.delays.items() if i in wanted}
    return found


def _fixed(parts: Sequence[tuple[Any, Any]]) -> Fixed:
    return Fixed(
        {p: to for p, to in parts if isinstance(p, Place)}, {i: d for i, d in parts if isinstance(i, Issue)}
    )
