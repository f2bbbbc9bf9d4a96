"""Exploration: a launch is run under many schedules, and the first that fails is made as small as it gets.

A schedule *fails* when it ends in an error (a fault, a deadlock, a finding of the checks) or leaves other bytes in
memory than the launch under the simulator's own schedule. Each is drawn from a seed; seed S of kernel K is the same
schedule wherever it is asked for.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tilewright.errors import ArgumentError
from tilewright.reports import Shown
from tilewright.sim.checks.collect import Report
from tilewright.sim.checks.findings import Finding, Party
from tilewright.sim.checks.registry import enabled_checkers
from tilewright.sim.exploration.plan import RandomPlan, SchedulingPolicy
from tilewright.sim.exploration.runs import ExplorationResult, FailingSchedule, LaunchRuns
from tilewright.sim.exploration.shrunk import shrunk
from tilewright.sim.exploration.systematic import every_order
from tilewright.sim.replay import Replay, intercepting
from tilewright.sim.settings import options


@dataclass
class Exploration(Shown):
    """The launches explored, in their order."""

    launches: list[ExplorationResult] = field(default_factory=list)

    @property
    def failure(self) -> FailingSchedule | None:
        """The first failure."""
        return next((e.failure for e in self.launches if e.failure is not None), None)

    def report(self) -> Report:
        """The failures, as findings: one launch's after the other's."""
        report = Report()
        for launch in self.launches:
            failure = launch.failure
            if failure is None:
                continue
            if failure.error is not None:
                report.add_error(failure.error, launch.kernel, failure.schedule)
            else:
                sides = [Party("stops before", s.before) for s in failure.switches if s.before is not None]
                what = f"the result depends on the schedule: {failure.text}"
                fix = "order the accesses; sums by atomics of floats differ by nature (--no-compare)"
                finding = Finding("other-result", what, sides, fix=fix, kernel=launch.kernel, schedule=failure.schedule)
                report.found.setdefault((launch.kernel, finding.key), finding)
        return report

    def __bool__(self) -> bool:
        """Whether nothing failed."""
        return self.failure is None

    def __str__(self) -> str:
        return "\n".join(map(str, self.launches)) or "no kernel was launched on the simulator"


def explore(
    act: Callable[[], Any],
    schedules: int = 100,
    seed: int = 0,
    *,
    systematic: bool = False,
    compare: bool = True,
    launches: int = 1,
    limit: int = 2000,
    check: str = "all",
) -> Exploration:
    """Run ``act``, and each kernel that it launches on the simulator under many schedules, with all checks.

    Args:
        act: is called once; what it gives is dropped. Its launches end with the result of the simulator's own schedule.
        schedules: how many are drawn, of the seeds ``seed``, ``seed + 1``, ...
        systematic: instead of drawing, run every order of the synchronisation operations that can matter (at most
            ``limit`` schedules); meant for small launches.
        compare: whether a result of other bytes is a failure. Sums by atomics of floats differ by nature.
        launches: of each kernel that are explored, from the first on; others just run.
        check: the checks of each run (see :class:`tilewright.sim.SimulatorOptions`). A systematic exploration
            needs ``races``.

    Returns:
        An :class:`Exploration`: true if nothing failed; ``failure`` is the first that did, and ``str()`` the report.

    >>> from tilewright import sim
    >>> @cute.kernel
    ... def count(total: cute.Tensor):
    ...     t, _, _ = cute.arch.thread_idx()
    ...     if t % 32 == 0:
    ...         cute.arch.atomic_add(total.iterator, 1)
    >>> @cute.jit
    ... def run(total: cute.Tensor):
    ...     count(total).launch(grid=(1, 1, 1), block=(64, 1, 1))
    >>> print(sim.explore(lambda: run(np.zeros(1, np.int32)), schedules=10))
    kernel 'count', grid (1, 1, 1), block (64, 1, 1): no failing schedule among 10
    """
    for name, value in (("schedules", schedules), ("launches", launches), ("limit", limit)):
        if not isinstance(value, int) or value < 1:
            raise ArgumentError(f"explore: {name}={value!r}; it is an int of 1 or more")
    if systematic and "races" not in enabled_checkers(check):
        raise ArgumentError(f"explore: check={check!r} without races; a systematic exploration relies on that checker")
    exploration = Exploration()
    with exploring(exploration, schedules, seed, systematic, compare, launches, limit, check):
        act()
    return exploration


@contextlib.contextmanager
def exploring(
    exploration: Exploration,
    schedules: int,
    seed: int,
    systematic: bool = False,
    compare: bool = True,
    launches: int = 1,
    limit: int = 2000,
    check: str = "all",
) -> Iterator[None]:
    """Explore the launches inside the block, and write what is found into ``exploration``."""

    def take(replay: Replay) -> None:
        runs = LaunchRuns(replay, compare)
        explored = ExplorationResult(replay.name, replay.config)
        exploration.launches.append(explored)
        try:
            if runs.own(explored):
                if systematic:
                    every_order(runs, explored, limit)
                else:
                    _drawn(runs, explored, schedules, seed)
        finally:
            runs.end()

    with options(check=check), intercepting(take, launches):
        yield


def _drawn(runs: LaunchRuns, explored: ExplorationResult, schedules: int, seed: int) -> None:
    # Counts the steps among which a plan draws its changes. The own schedule was clean, and this is the same order.
    runs.under(SchedulingPolicy())
    explored.steps = runs.planned.clock
    for k in range(schedules):
        explored.schedules = k + 1
        failure = runs.under(RandomPlan(seed + k, explored.steps))
        if failure is not None:
            failure.seed = seed + k
            explored.failure = shrunk(runs, failure)
            return
