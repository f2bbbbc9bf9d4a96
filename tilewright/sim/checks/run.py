"""The checks of one launch: which run, and what becomes an error at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.errors import SimulationError
from tilewright.sim.checks.findings import Findings
from tilewright.sim.checks.order import HappensBefore
from tilewright.sim.checks.races import Races
from tilewright.sim.events import Observer

if TYPE_CHECKING:
    from tilewright.sim.engine import Launch
    from tilewright.sim.settings import Options


BUDGET = 1 << 20  # cells of memory that the default checks look at in one launch: a tenth of a second


class Checks(Observer):
    """Ends a launch that something was found in with an error."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings

    def end(self, launch: Launch) -> None:
        text = self.findings.report(launch.program.name)
        if text:
            raise SimulationError(text)

    def error(self, launch: Launch, error: SimulationError) -> None:
        text = self.findings.report(launch.program.name)
        if text:
            error.args = (f"{error}\n{text}", *error.args[1:])


def checks_of(options: Options) -> list[Observer]:
    """The observers of a launch, in the order in which they hear of events."""
    if options.check == "none":
        return []
    findings, order = Findings(), HappensBefore()
    budget = BUDGET if options.check == "default" else None
    return [order, Races(order, findings, budget), Checks(findings)]
