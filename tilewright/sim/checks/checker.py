"""What a checker is: a class that observes the events of a launch and reports findings. One file each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tilewright.sim.events import Mask, Observer
from tilewright.sim.shared import SharedBuffer

if TYPE_CHECKING:
    from tilewright.ir.runtime import LaunchConfig
    from tilewright.sim.checks.findings import Findings
    from tilewright.sim.checks.order import HappensBefore
    from tilewright.sim.group import Group
    from tilewright.sim.program import Program


class Checker(Observer):
    """Base class. A subclass defines the events that it listens to (:class:`tilewright.sim.events.Observer`), calls
    ``self.findings.add(Finding(...))``, and has a row in :data:`tilewright.sim.checks.registry.CHECKERS`.

    Class attributes:
        uses_order: whether it asks ``self.order`` what happened before what. Keeping that costs time; without a
            checker that uses it, the launch does not keep it.

    Attributes:
        findings: where to report; shared by the checkers of the launch.
        order: the launch's vector clocks, up to date with every event when a checker is notified of it.
        thorough: False where the checker runs only as part of ``check="default"``, and has to keep its cost low.
    """

    uses_order: ClassVar[bool] = False
    each_landing = False

    def __init__(self, findings: Findings, order: HappensBefore, thorough: bool) -> None:
        self.findings, self.order, self.thorough = findings, order, thorough

    def asks_order(self) -> bool:
        """Whether it will still ask ``self.order`` in this launch; where no checker does, it is no longer kept."""
        return self.uses_order

    @classmethod
    def takes(cls, program: Program, config: LaunchConfig) -> bool:
        """Whether a launch with this configuration has anything for it to look at."""
        return True


class SharedChecker(Checker):
    """One whose ``access`` looks at shared memory only: the simulator's quick way to global memory stays quick."""

    def pointed(self, verb: str, buffer: Any, group: Group, pointer: Any, access: Any, mask: Mask, values: Any) -> None:
        if isinstance(buffer, SharedBuffer):
            off = np.asarray(pointer.off, np.int64)
            if off.ndim == 0:  # broadcasting takes longer than all the rest
                off = np.broadcast_to(off, (group.lanes_count,))
            self.access(verb, buffer, group, off if mask is None else off[mask], access, mask, None)
