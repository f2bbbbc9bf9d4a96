"""Reports: the findings of several launches together, for tools that go on after the first."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tilewright.errors import SimulationError
from tilewright.reports import Shown
from tilewright.sim.checks.findings import Finding, Findings, Party


@dataclass
class Report(Shown):
    """The findings of all launches inside ``collecting()``, those of one kernel and key counted together."""

    found: dict[Any, Finding] = field(default_factory=dict)

    def take(self, findings: Findings) -> None:
        for finding in findings:
            key = (finding.kernel, finding.key)
            if key in self.found:
                self.found[key].count += finding.count
            else:
                self.found[key] = finding

    def add_error(self, error: SimulationError, kernel: str = "", schedule: str = "") -> None:
        """A launch that ended with an error: its findings, and the error itself unless it only reports them.
        ``schedule``: the one of an exploration under which it did."""
        if error.findings is not None:
            for finding in error.findings:
                finding.schedule = schedule
            self.take(error.findings)
        if error.findings is None or error.what:
            text = error.what or str(error)
            op = error.op
            parties = [
                Party("ends" if k == 0 else "while others stand", at)
                for k, at in enumerate((op, *error.others))
                if at is not None
            ]
            finding = Finding("simulation-error", text, parties, kernel=kernel, schedule=schedule)
            self.found.setdefault((text,), finding)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.found.values())

    def __str__(self) -> str:
        return "\n".join(map(str, self)) or "the checks found nothing"

    @property
    def errors(self) -> list[Finding]:
        return [finding for finding in self if finding.level == "error"]

    @property
    def rules(self) -> list[str]:
        """The rules of the findings, each once."""
        return list(dict.fromkeys(finding.rule for finding in self))


_current: list[Report] = []


@contextmanager
def collecting() -> Iterator[Report]:
    """Launches inside end as they do; what their checks find goes into the report instead of raising an error.

    A launch that cannot go on (a hang, a fault) still raises.

    >>> from tilewright import sim
    >>> @cute.kernel
    ... def reverse(x: cute.Tensor):
    ...     i, _, _ = cute.arch.thread_idx()
    ...     x[63 - i] = x[i]  # no barrier, and in place
    >>> @cute.jit
    ... def run(x: cute.Tensor):
    ...     reverse(x).launch(grid=(1, 1, 1), block=(64, 1, 1))
    >>> with sim.checks.collecting() as report:
    ...     run(np.zeros(64, np.float32))
    >>> report.rules
    ['data-race']
    """
    report = Report()
    _current.append(report)
    try:
        yield report
    finally:
        _current.remove(report)


def current() -> Report | None:
    """The report that findings go to now."""
    return _current[-1] if _current else None
