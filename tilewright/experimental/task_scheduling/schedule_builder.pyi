# Made by `python tools/stubs.py` from tilewright/experimental/task_scheduling/schedule_builder.py; do not edit.
# ruff: noqa: E501, F401, F403, I001, UP
"""``task_scheduling.schedule_builder``: schedules as functions, which are not here yet."""

from typing import Any

class domain_loop(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class schedule(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class work_tile_loop(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""
