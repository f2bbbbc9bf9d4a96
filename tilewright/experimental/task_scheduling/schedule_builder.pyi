# Made by `python tools/stubs.py` from tilewright/experimental/task_scheduling/schedule_builder.py; do not edit.
"""``task_scheduling.schedule_builder``: schedules as functions, which are not here yet."""

from typing import Any

class domain_loop(Any):
    """Not here yet: using it is an error that says why."""

class schedule(Any):
    """Not here yet: using it is an error that says why."""

class work_tile_loop(Any):
    """Not here yet: using it is an error that says why."""
