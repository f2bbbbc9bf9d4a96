"""The names of ``task_scheduling.resources``: resources, their pipelines and queues, and what marks their methods."""

from __future__ import annotations

from tilewright._names import attach
from tilewright.experimental.task_scheduling.enums import SignalingThreads, WorkAttr
from tilewright.experimental.task_scheduling.memory import ResourceContext
from tilewright.experimental.task_scheduling.pipeline_group import PipelineGroup
from tilewright.experimental.task_scheduling.pipelines import PipelineConfig
from tilewright.experimental.task_scheduling.resource import (
    MemoryResource,
    PdlLaunchBarrier,
    PdlWaitBarrier,
    StageInfo,
)
from tilewright.experimental.task_scheduling.work import TaskLocalVariable, consumer_work, producer_work
from tilewright.experimental.task_scheduling.work_queue import TileSchedulerConfig, WorkQueue
from tilewright.utils.tile_scheduler import WorkTileInfo

__all__ = [
    "MemoryResource",
    "PdlLaunchBarrier",
    "PdlWaitBarrier",
    "PipelineConfig",
    "PipelineGroup",
    "ResourceContext",
    "SignalingThreads",
    "StageInfo",
    "TaskLocalVariable",
    "TileSchedulerConfig",
    "WorkAttr",
    "WorkQueue",
    "WorkTileInfo",
    "consumer_work",
    "producer_work",
]

attach(__name__)
