"""``task_scheduling.enums``: the enumerations that tasks and pipelines are described with."""

from enum import Enum

from tilewright._lazy import unknown_names

__all__ = ["PipelineGroupMode", "PipelineType", "SignalingThreads", "TileSchedulerType", "WorkAttr"]


class PipelineType(Enum):
    """A pipeline by its producer and its consumer."""

    AsyncAsync = "AsyncAsync"
    TmaAsync = "TmaAsync"
    TmaUmma = "TmaUmma"
    UmmaAsync = "UmmaAsync"
    AsyncUmma = "AsyncUmma"
    UmmaUmma = "UmmaUmma"
    ClcFetchAsync = "ClcFetchAsync"


class TileSchedulerType(Enum):
    """How persistent blocks find their tiles: by a rule, or from cluster launch control."""

    StaticPersistent = "StaticPersistent"
    ClcDynamicPersistent = "ClcDynamicPersistent"


class PipelineGroupMode(Enum):
    """Which side of several pipelines one task drives: the consumer's, the producer's, or the consumer's with one full
    barrier for all producers."""

    Merge = "Merge"
    Fork = "Fork"
    FusedMerge = "FusedMerge"


class SignalingThreads(Enum):
    """Which threads signal a barrier."""

    All = "All"
    CtaLeader = "CtaLeader"


class WorkAttr(Enum):
    """What kind of work a method of a resource is."""

    AUXILIARY = "AUXILIARY"


unknown_names(__name__)
