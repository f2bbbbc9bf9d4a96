# Made by `python tools/stubs.py` from tilewright/experimental/task_scheduling/resources.py; do not edit.
"""``task_scheduling.resources``: what tasks share, and the pipelines between them, which are not here yet."""

from tilewright.experimental.task_scheduling.enums import WorkAttr as WorkAttr
from typing import Any

class MemoryResource(Any):
    """Not here yet: using it is an error that says why."""

class PdlLaunchBarrier(Any):
    """Not here yet: using it is an error that says why."""

class PdlWaitBarrier(Any):
    """Not here yet: using it is an error that says why."""

class PipelineConfig(Any):
    """Not here yet: using it is an error that says why."""

class PipelineGroup(Any):
    """Not here yet: using it is an error that says why."""

class StageInfo(Any):
    """Not here yet: using it is an error that says why."""

class TaskLocalVariable(Any):
    """Not here yet: using it is an error that says why."""

class TileSchedulerConfig(Any):
    """Not here yet: using it is an error that says why."""

class WorkQueue(Any):
    """Not here yet: using it is an error that says why."""

class consumer_work(Any):
    """Not here yet: using it is an error that says why."""

class producer_work(Any):
    """Not here yet: using it is an error that says why."""
