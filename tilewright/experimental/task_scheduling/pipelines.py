"""The pipelines of resources: what a resource asks for, and the pipeline of ``cutlass.pipeline`` that it gets."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from tilewright.errors import ConstraintError
from tilewright.experimental.task_scheduling.enums import PipelineType, SignalingThreads
from tilewright.layout import Layout, make_layout, size
from tilewright.pipeline.agents import CooperativeGroup, PipelineOp
from tilewright.pipeline.clc import PipelineClcFetchAsync
from tilewright.pipeline.mbarrier_array import MbarrierArray
from tilewright.pipeline.threads import PipelineAsync
from tilewright.pipeline.tma import ONE, PipelineTmaAsync
from tilewright.pipeline.umma import PipelineAsyncUmma, PipelineTmaUmma, PipelineUmmaAsync

_CLASSES: dict[PipelineType, Any] = {
    PipelineType.AsyncAsync: PipelineAsync,
    PipelineType.TmaAsync: PipelineTmaAsync,
    PipelineType.TmaUmma: PipelineTmaUmma,
    PipelineType.UmmaAsync: PipelineUmmaAsync,
    PipelineType.AsyncUmma: PipelineAsyncUmma,
    PipelineType.UmmaUmma: PipelineAsyncUmma,
    PipelineType.ClcFetchAsync: PipelineClcFetchAsync,
}
_INTERLEAVED = "interleave_stride: stages that several warps or tasks share are not here; one warp or task a side"


@dataclass(frozen=True, eq=False)
class PipelineConfig:
    """The pipeline of a resource; made by one of the ``create_..._pipeline_cfg``.

    ``num_stages``; ``num_bytes``: what TMA brings into a stage; ``producer_group``, ``consumer_group``: who commits and
    releases a stage, as for the class of ``cutlass.pipeline``; ``cta_layout_vmnk``: the layout of the cluster's blocks,
    or its shape. ``advance_on_acquire``, ``advance_on_wait``: a side goes on to the next stage when it opens one, so
    that it may open further ones before it closes the first. ``..._signaling_threads``: which threads signal.

    >>> from tilewright import pipeline
    >>> one = pipeline.CooperativeGroup(pipeline.Agent.Thread)
    >>> config = PipelineConfig.create_tma_umma_pipeline_cfg(
    ...     num_stages=4, num_bytes=1024, producer_group=one, consumer_group=one
    ... )
    >>> config.pipeline_type.name, config.num_stages
    ('TmaUmma', 4)
    """

    pipeline_type: PipelineType
    num_stages: int
    producer_group: CooperativeGroup = ONE
    consumer_group: CooperativeGroup = ONE
    num_bytes: int = 0
    cta_layout_vmnk: Any = None
    barrier_ptr: Any = None
    producer_signaling_threads: SignalingThreads = SignalingThreads.All
    consumer_signaling_threads: SignalingThreads = SignalingThreads.All
    consumer_wait_signaling_threads: SignalingThreads | None = None
    advance_on_wait: bool = False
    advance_on_acquire: bool = False
    async_producer_op: PipelineOp = PipelineOp.AsyncThread
    num_bytes_per_warp_per_cta: int | None = None
    interleave_stride: Any = 1
    mcast_mode_mn: tuple[int, int] = (1, 1)

    def __post_init__(self) -> None:
        strides = self.interleave_stride if isinstance(self.interleave_stride, tuple) else (self.interleave_stride,)
        if any(stride != 1 for stride in strides):
            raise ConstraintError(f"PipelineConfig: {_INTERLEAVED}")
        for side in (self.producer_signaling_threads, self.consumer_signaling_threads):
            if SignalingThreads.All in side and side is not SignalingThreads.All:
                raise ConstraintError(f"PipelineConfig: {side} joins All with others, which are fewer threads")

    @property
    def cluster(self) -> Layout | None:
        """The layout of the cluster's blocks; None: no cluster."""
        given = self.cta_layout_vmnk
        return given if given is None or isinstance(given, Layout) else make_layout(tuple(given))

    @property
    def blocks(self) -> int:
        """The blocks of the cluster."""
        return 1 if self.cluster is None else int(size(self.cluster))

    @staticmethod
    def create_async_async_pipeline_cfg(**fields: Any) -> PipelineConfig:
        """Threads fill the stages and threads read them."""
        return PipelineConfig._of(PipelineType.AsyncAsync, fields)

    @staticmethod
    def create_tma_async_pipeline_cfg(**fields: Any) -> PipelineConfig:
        """TMA fills the stages, threads read them."""
        return PipelineConfig._of(PipelineType.TmaAsync, fields)

    @staticmethod
    def create_tma_umma_pipeline_cfg(**fields: Any) -> PipelineConfig:
        """TMA fills the stages, MMAs read them."""
        return PipelineConfig._of(PipelineType.TmaUmma, fields)

    @staticmethod
    def create_umma_async_pipeline_cfg(**fields: Any) -> PipelineConfig:
        """MMAs fill the stages (accumulators), threads read them."""
        return PipelineConfig._of(PipelineType.UmmaAsync, fields)

    @staticmethod
    def create_async_umma_pipeline_cfg(*, umma_consumer_producer_op: Any = None, **fields: Any) -> PipelineConfig:
        """Threads fill the stages, MMAs read them."""
        if umma_consumer_producer_op is not None:
            fields["async_producer_op"] = umma_consumer_producer_op
        return PipelineConfig._of(PipelineType.AsyncUmma, fields)

    @staticmethod
    def create_umma_umma_pipeline_cfg(**fields: Any) -> PipelineConfig:
        """Copies to tensor memory, or MMAs, fill the stages; MMAs read them."""
        return PipelineConfig._of(PipelineType.UmmaUmma, fields)

    @staticmethod
    def create_clc_fetch_async_pipeline_cfg(**fields: Any) -> PipelineConfig:
        """Answers of cluster launch control, which threads read."""
        return PipelineConfig._of(PipelineType.ClcFetchAsync, {"num_bytes": 16, **fields})

    @staticmethod
    def _of(kind: PipelineType, fields: dict[str, Any]) -> PipelineConfig:
        known = {f.name for f in dataclasses.fields(PipelineConfig)} - {"pipeline_type"}
        if unknown := set(fields) - known:
            raise ConstraintError(
                f"PipelineConfig of {kind.name}: unknown {sorted(unknown)}; there are {sorted(known)}"
            )
        return PipelineConfig(kind, **fields)

    def make(self, **replaced: Any) -> Any:
        """The pipeline, its mbarriers initialised; without a barrier of the block behind that."""
        config = dataclasses.replace(self, **replaced)
        given: dict[str, Any] = {
            "num_stages": config.num_stages,
            "producer_group": config.producer_group,
            "consumer_group": config.consumer_group,
            "barrier_storage": getattr(config.barrier_ptr, "place", config.barrier_ptr),
            "defer_sync": True,
        }
        kind = config.pipeline_type
        if kind is not PipelineType.AsyncAsync:
            given["cta_layout_vmnk"] = config.cluster
        if kind.producer in ("tma", "clc"):
            given["tx_count"] = config.num_bytes
        if kind in (PipelineType.TmaAsync, PipelineType.TmaUmma):
            given["mcast_mode_mn"] = config.mcast_mode_mn
        made = _CLASSES[kind].create(**given)
        if kind.producer == "async" and config.async_producer_op is not PipelineOp.AsyncThread:
            full = made.sync_object_full.recast_to_new_op_type(config.async_producer_op)
            made = dataclasses.replace(made, sync_object_full=full)
        return _committed_by_umma(made) if kind is PipelineType.UmmaUmma else made


def _committed_by_umma(made: Any) -> Any:
    """A pipeline whose stages are full once the MMAs and copies issued so far are done."""
    full: MbarrierArray = made.sync_object_full.recast_to_new_op_type(PipelineOp.TCGen05Mma)
    return dataclasses.replace(made, sync_object_full=full)
