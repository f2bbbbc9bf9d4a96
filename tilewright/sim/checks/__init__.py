"""The checkers: each is a file here with a subclass of :class:`Checker`, which observes a launch and reports findings.

To add one: write ``NAME.py`` with a class like this, and a row in ``registry.CHECKERS``::

    class Alignment(Checker):
        def access(self, verb, buffer, group, off, access, mask, values):
            wrong = off % access.nbytes != 0
            if wrong.any():
                op, lane = group.lanes.op, lanes_of(group, mask)[wrong][0]
                self.findings.add(Finding("misaligned", "an access is not aligned",
                                          [Party("load", op, thread_of(group, lane))], fix="..."))

What they build on: ``sim/events.py`` (the events), ``ir/effects.py`` (what an op reads, writes and orders:
``op.attrs["atom"].accesses`` and ``.orders``), ``sites.kernel_facts(program)`` (what is fixed of a kernel), ``order``
(happens before: vector clocks), ``findings`` (what is reported) and ``actors`` and ``places`` (who and which memory).
"""

from tilewright.sim.checks.checker import Checker
from tilewright.sim.checks.collect import Report, collecting
from tilewright.sim.checks.findings import Finding, Findings, Party
from tilewright.sim.checks.registry import enabled_checkers
from tilewright.sim.checks.run import observers

__all__ = ["Checker", "Finding", "Findings", "Party", "Report", "enabled_checkers", "collecting", "observers"]
