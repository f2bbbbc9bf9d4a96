"""The checks of one launch: which run, and what becomes an error at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.errors import SimulationError
from tilewright.sim.checks.collect import current
from tilewright.sim.checks.findings import Findings
from tilewright.sim.checks.order import HappensBefore
from tilewright.sim.checks.registry import CHECKERS, enabled_checkers
from tilewright.sim.checks.sites import kernel_facts
from tilewright.sim.events import Observer

if TYPE_CHECKING:
    from tilewright.ir.runtime import LaunchConfig
    from tilewright.sim.engine import Launch
    from tilewright.sim.program import Program


class Verdict(Observer):
    """Ends a launch in which something was found with an error, unless findings are collected."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings

    def end(self, launch: Launch) -> None:
        self.findings.drop_consequences()
        report = current()
        if report is not None:
            report.take(self.findings)
        elif self.findings.errors:
            raise SimulationError(self.findings.text(), self.findings)

    def error(self, launch: Launch, error: SimulationError) -> None:
        self.findings.drop_consequences()
        if self.findings.errors:
            # What the checks have found came before what ended the launch, and is often its cause.
            follows = ", which may follow from the early read" if any(f.early for f in self.findings) else ""
            error.args = (f"{self.findings.text()}\nthe launch ended with an error{follows}:\n  {error}",)
            error.findings = self.findings


def observers(program: Program, config: LaunchConfig, check: str) -> list[Observer]:
    """The observers that check a launch of ``program``, in the order in which they are notified of events."""
    wanted = enabled_checkers(check)
    rows = [row for row in CHECKERS if row.name in wanted and row.concerns(kernel_facts(program))]
    classes = [(row.name, checker) for row in rows if (checker := row.checker()).takes(program, config)]
    if not classes:
        return []
    findings, order = Findings(program.name), HappensBefore()
    checkers = [checker(findings, order, wanted[name]) for name, checker in classes]
    kept: list[Observer] = [order] if any(checker.uses_order for _, checker in classes) else []
    return [*kept, *checkers, Verdict(findings)]
