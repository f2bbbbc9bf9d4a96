"""Mutation study: leave out or weaken each synchronisation operation of a kernel, and see what notices it.

``operators.py`` lists the changes of each instruction, :func:`mutants` applies them to a kernel's IR one at a time,
and :func:`study` runs every :class:`Mutant` under the checks, then (``outcomes.py``) compares its results.
``equivalent.py`` finds the mutants that mean the same as the kernel, for which no check can say anything.
"""

from tilewright.sim.mutation.equivalent import KnownEquivalent, KnownList
from tilewright.sim.mutation.mutants import Mutant, mutants
from tilewright.sim.mutation.outcomes import Outcome, Study, study
from tilewright.sim.mutation.report import as_json, table

__all__ = ["KnownEquivalent", "KnownList", "Mutant", "Outcome", "Study", "as_json", "mutants", "study", "table"]
