"""Exploration of schedules: which warp goes on when, and when asynchronous copies arrive.

:func:`explore` runs a program's launches again under other schedules: drawn ones (``plan.py``, ``launch.py``), or every
order of the synchronisation that matters (``systematic.py``, which asks ``orders.py`` for the next one and
``footprint.py`` which steps conflict). A schedule that fails is made smaller (``shrink.py``) and reported with its
switches (``runs.py``).
"""

from tilewright.sim.exploration.runs import ExplorationResult, FailingSchedule
from tilewright.sim.exploration.schedules import Exploration, explore, exploring

__all__ = ["Exploration", "ExplorationResult", "FailingSchedule", "explore", "exploring"]
