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
ROLES = ("acquire", "commit", "wait", "release")
"""The steps in the order of ``interleave_stride``."""
_NOT_SHARED: dict[PipelineType, tuple[str, ...]] = {
    PipelineType.UmmaUmma: ROLES,
    PipelineType.ClcFetchAsync: ROLES,
    PipelineType.UmmaAsync: ROLES[:2],
    PipelineType.AsyncUmma: ROLES[2:],
}
"""The steps that lanes do not divide among each other."""


@dataclass(frozen=True, eq=False)
class PipelineConfig:
    """The pipeline of a resource; made by one of the ``create_..._pipeline_cfg``.

    ``num_stages``; ``num_bytes``: what TMA brings into a stage; ``producer_group``, ``consumer_group``: who commits and
    releases a stage, as for the class of ``cutlass.pipeline``; ``cta_layout_vmnk``: the layout of the cluster's blocks,
    or its shape. ``advance_on_acquire``, ``advance_on_wait``: a side goes on to the next stage when it opens one, so
    that it may open further ones before it closes the first. ``..._signaling_threads``: which threads signal.
    ``interleave_stride``: how many lanes (warps of a task, or tasks) divide the stages among each other, one number or
    four, those of acquire, commit, wait and release: lane i has the stages i, i + stride, and so on. ``producer_op``
    (also ``async_producer_op``): how the threads of a pipeline that begins with ``async`` write.

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
        self._check_strides()
        for side in (self.producer_signaling_threads, self.consumer_signaling_threads):
            if SignalingThreads.All in side and side is not SignalingThreads.All:
                raise ConstraintError(f"PipelineConfig: {side} joins All with others, which are fewer threads")

    def stride(self, step: str) -> int:
        """How many lanes divide the stages among each other in this step.

        >>> config = PipelineConfig(PipelineType.AsyncAsync, 8, advance_on_wait=True, interleave_stride=(1, 1, 4, 1))
        >>> config.stride("wait"), config.stride("release")
        (4, 1)
        """
        stride = self.interleave_stride
        return int(stride[ROLES.index(step)] if isinstance(stride, (tuple, list)) else stride)

    def _check_strides(self) -> None:
        given = self.interleave_stride
        strides = tuple(given) if isinstance(given, (tuple, list)) else (given,) * len(ROLES)
        if len(strides) != len(ROLES) or any(type(s) is not int or s < 1 or self.num_stages % s for s in strides):
            raise ConstraintError(
                f"PipelineConfig: interleave_stride={given!r} is a number that divides the {self.num_stages} stages, "
                f"or four, those of {', '.join(ROLES)}"
            )
        kind, among = self.pipeline_type, [role for role, stride in zip(ROLES, strides, strict=True) if stride > 1]
        if set(among) & set(_NOT_SHARED.get(kind, ())):
            raise ConstraintError(f"PipelineConfig: lanes do not share {' and '.join(among)} of a {kind.name} pipeline")
        if among and kind is PipelineType.TmaAsync and self.blocks > 1:
            raise ConstraintError("PipelineConfig: lanes share the stages of a TmaAsync pipeline of one block only")
        for a, b, name, early in (
            ("acquire", "commit", "advance_on_acquire", self.advance_on_acquire),
            ("wait", "release", "advance_on_wait", self.advance_on_wait),
        ):
            if self.stride(a) != self.stride(b) and not early:
                raise ConstraintError(
                    f"PipelineConfig: interleave_stride={given!r} gives {a} and {b} different lanes, which needs "
                    f"{name}=True, and a task of its own for each"
                )

    @property
    def cluster(self) -> Layout | None:
        """The layout of the cluster's blocks; None: no cluster."""
        layout = self.cta_layout_vmnk
        return layout if layout is None or isinstance(layout, Layout) else make_layout(tuple(layout))

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
        if "producer_op" in fields:
            fields = {"async_producer_op": fields["producer_op"], **fields}
            del fields["producer_op"]
        names = {f.name for f in dataclasses.fields(PipelineConfig)} - {"pipeline_type"}
        if unknown := set(fields) - names:
            raise ConstraintError(
                f"PipelineConfig of {kind.name}: unknown {sorted(unknown)}; there are {sorted(names)}"
            )
        return PipelineConfig(kind, **fields)

    def make(self, **replaced: Any) -> Any:
        """The pipeline, its mbarriers initialised; without a barrier of the block behind that."""
        config = dataclasses.replace(self, **replaced)
        arguments: dict[str, Any] = {
            "num_stages": config.num_stages,
            "producer_group": config.producer_group,
            "consumer_group": config.consumer_group,
            "barrier_storage": getattr(config.barrier_ptr, "place", config.barrier_ptr),
            "defer_sync": True,
        }
        kind = config.pipeline_type
        if kind is not PipelineType.AsyncAsync:
            arguments["cta_layout_vmnk"] = config.cluster
        if kind.producer in ("tma", "clc"):
            arguments["tx_count"] = config.num_bytes
        if kind in (PipelineType.TmaAsync, PipelineType.TmaUmma):
            arguments["mcast_mode_mn"] = config.mcast_mode_mn
        made = _CLASSES[kind].create(**arguments)
        if kind.producer == "async" and config.async_producer_op is not PipelineOp.AsyncThread:
            full = made.sync_object_full.recast_to_new_op_type(config.async_producer_op)
            made = dataclasses.replace(made, sync_object_full=full)
        return _committed_by_umma(made) if kind is PipelineType.UmmaUmma else made


def _committed_by_umma(made: Any) -> Any:
    """A pipeline whose stages are full once the MMAs and copies issued so far are done."""
    full: MbarrierArray = made.sync_object_full.recast_to_new_op_type(PipelineOp.TCGen05Mma)
    return dataclasses.replace(made, sync_object_full=full)
