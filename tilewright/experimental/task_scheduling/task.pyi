# Made by `python tools/stubs.py` from tilewright/experimental/task_scheduling/task.py; do not edit.
"""``task_scheduling.task``: tasks, which are not here yet."""

from typing import Any

class Task(Any):
    """Not here yet: using it is an error that says why."""
