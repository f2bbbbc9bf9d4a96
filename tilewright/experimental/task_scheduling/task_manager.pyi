# Made by `python tools/stubs.py` from tilewright/experimental/task_scheduling/task_manager.py; do not edit.
"""``task_scheduling.task_manager``: what runs the tasks of a kernel, which is not here yet."""

from typing import Any

class TaskManager(Any):
    """Not here yet: using it is an error that says why."""
