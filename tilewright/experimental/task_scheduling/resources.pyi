# Made by `python tools/stubs.py` from tilewright/experimental/task_scheduling/resources.py; do not edit.
# ruff: noqa: E501, F401, F403, I001, UP
"""``task_scheduling.resources``: what tasks share, and the pipelines between them, which are not here yet."""

from tilewright.experimental.task_scheduling.enums import WorkAttr as WorkAttr
from typing import Any

class MemoryResource(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class PdlLaunchBarrier(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class PdlWaitBarrier(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class PipelineConfig(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class PipelineGroup(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class StageInfo(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class TaskLocalVariable(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class TileSchedulerConfig(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class WorkQueue(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class consumer_work(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class producer_work(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""
