"""The checkers: each observes the events of a launch, and says what is wrong with it."""

from tilewright.sim.checks.run import Checks, checks_of

__all__ = ["Checks", "checks_of"]
