"""Mutation study: leave out or weaken each synchronisation operation of a kernel, and see what notices it."""

from tilewright.sim.mutation.equivalent import Known, KnownList
from tilewright.sim.mutation.mutants import Mutant, mutants
from tilewright.sim.mutation.outcomes import Outcome, Study, study
from tilewright.sim.mutation.report import as_json, table

__all__ = ["Known", "KnownList", "Mutant", "Outcome", "Study", "as_json", "mutants", "study", "table"]
