# Made by `python tools/stubs.py` from tilewright/experimental/task_scheduling/task_manager.py; do not edit.
# ruff: noqa: E501, F401, F403, I001, UP
"""``task_scheduling.task_manager``: what runs the tasks of a kernel, which is not here yet."""

from typing import Any

class TaskManager(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""
