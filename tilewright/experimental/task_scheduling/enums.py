"""The kinds of pipelines, schedulers and work of ``task_scheduling``."""

from __future__ import annotations

from enum import Enum, Flag

from tilewright._names import attach

__all__ = ["PipelineGroupMode", "PipelineType", "SignalingThreads", "TileSchedulerType", "WorkAttr"]


class PipelineType(Enum):
    """Who fills the stages of a pipeline, then who reads them."""

    AsyncAsync = "AsyncAsync"
    TmaAsync = "TmaAsync"
    TmaUmma = "TmaUmma"
    UmmaAsync = "UmmaAsync"
    AsyncUmma = "AsyncUmma"
    UmmaUmma = "UmmaUmma"
    ClcFetchAsync = "ClcFetchAsync"

    @property
    def producer(self) -> str:
        """``"tma"``, ``"umma"``, ``"async"`` or ``"clc"``.

        >>> PipelineType.TmaUmma.producer, PipelineType.TmaUmma.consumer
        ('tma', 'umma')
        """
        return next(word for word in ("tma", "umma", "async", "clc") if self.value.lower().startswith(word))

    @property
    def consumer(self) -> str:
        """``"umma"`` or ``"async"``."""
        return "umma" if self.value.endswith("Umma") else "async"


class TileSchedulerType(Enum):
    """How a persistent kernel deals out its tiles: in advance, or by cluster launch control."""

    StaticPersistent = "StaticPersistent"
    ClcDynamicPersistent = "ClcDynamicPersistent"


class PipelineGroupMode(Enum):
    """Which side of a group's pipelines is one task's: the consumers', the producers', or the consumers' with one full
    barrier for all producers."""

    Merge = "Merge"
    Fork = "Fork"
    FusedMerge = "FusedMerge"


class SignalingThreads(Flag):
    """Which threads of a side signal the mbarriers: all; those of the cluster's first block; the first warp of the
    task. The last two may be joined."""

    All = 1
    CtaLeader = 2
    TaskWarpLeader = 4


class WorkAttr(Flag):
    """``AUXILIARY``: work that reads and writes no data that a pipeline guards."""

    NONE = 0
    AUXILIARY = 1


attach(__name__)
