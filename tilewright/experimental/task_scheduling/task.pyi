# Made by `python tools/stubs.py` from tilewright/experimental/task_scheduling/task.py; do not edit.
# ruff: noqa: E501, F401, F403, I001, UP
"""``task_scheduling.task``: tasks, which are not here yet."""

from typing import Any

class Task(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""
