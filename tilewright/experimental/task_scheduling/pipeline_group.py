"""Groups: pipelines of several resources that one task drives together share the mbarriers of its side."""

from __future__ import annotations

import dataclasses
from typing import Any

from tilewright._names import attach
from tilewright.experimental.task_scheduling.enums import PipelineGroupMode
from tilewright.experimental.task_scheduling.pipelines import PipelineConfig
from tilewright.experimental.task_scheduling.resource import MemoryResource
from tilewright.pipeline.agents import Agent, CooperativeGroup, PipelineOp
from tilewright.pipeline.mbarrier_array import MbarrierArray

__all__ = ["PipelineGroup"]

_SHARED_STEPS = {
    PipelineGroupMode.Merge: ("release",),
    PipelineGroupMode.Fork: ("commit",),
    PipelineGroupMode.FusedMerge: ("wait", "try_wait", "release"),
}


class PipelineGroup(MemoryResource):
    """``members``: resources with pipelines of as many stages each. In schedules ``group.name_of_member`` is a member,
    and the step that all have in common is the group's own: ``release`` (Merge), ``commit`` (Fork), ``wait`` and
    ``release`` (FusedMerge)."""

    def __init__(
        self,
        *,
        name: str = "",
        members: Any,
        mode: PipelineGroupMode = PipelineGroupMode.Merge,
        pipeline_config: PipelineConfig | None = None,
    ) -> None:
        super().__init__(name=name)
        self.members: list[Any] = list(members)
        self.mode = mode
        configs = [member.pipeline_config for member in self.members]
        if len(configs) < 2 or None in configs:
            raise ValueError(f"PipelineGroup {name!r}: at least two members, each with a pipeline_config")
        if len({config.num_stages for config in configs}) > 1:
            raise ValueError(f"PipelineGroup {name!r}: the members have {[c.num_stages for c in configs]} stages")
        side = "producer" if mode is PipelineGroupMode.Fork else "consumer"
        if len({getattr(config.pipeline_type, side) for config in configs}) > 1:
            types = [config.pipeline_type.name for config in configs]
            raise ValueError(f"PipelineGroup {name!r}: {mode.name} shares the {side} side, which differs among {types}")
        if len({getattr(config, f"{side}_group").size for config in configs}) > 1:
            raise ValueError(f"PipelineGroup {name!r}: the members' {side} groups, one task's, differ in size")
        for member in self.members:
            member.__dict__["_group"] = self

    def __getattr__(self, name: str) -> Any:
        for member in self.__dict__.get("members", ()):
            if member.label == name:
                return member
        raise AttributeError(name)

    @property
    def steps(self) -> tuple[str, ...]:
        """The steps that are the group's own."""
        return _SHARED_STEPS[self.mode]

    @property
    def barrier_bytes(self) -> int:
        count = 2 if self.mode is PipelineGroupMode.FusedMerge else len(self.members) + 1
        return 8 * count * int(self.members[0].pipeline_config.num_stages)

    def create(self) -> None:
        """Make the members' pipelines. The shared mbarriers are the first member's; the others' are not used."""
        if self.pipeline is not None:
            return
        configs = [member.pipeline_config for member in self.members]
        first, *others = [config.make(**self._first(configs) if config is configs[0] else {}) for config in configs]
        shared = {"sync_object_full": first.sync_object_full} if self.mode is PipelineGroupMode.Fork else {}
        if not shared:
            shared = {"sync_object_empty": first.sync_object_empty}
        others = [dataclasses.replace(other, **shared) for other in others]
        if self.mode is PipelineGroupMode.FusedMerge:
            others = [self._on(first, other) for other in others]
        for member, made in zip(self.members, (first, *others), strict=True):
            member.pipeline = made
        self.pipeline = first

    def _first(self, configs: list[PipelineConfig]) -> dict[str, Any]:
        """What the first member's pipeline has besides its own: all bytes of a fork, all arrivals of a fused merge."""
        if self.mode is PipelineGroupMode.Fork and configs[0].pipeline_type.producer == "tma":
            return {"num_bytes": sum(config.num_bytes for config in configs)}
        if self.mode is PipelineGroupMode.FusedMerge:
            arrivals = sum(config.producer_group.size for config in configs)
            return {"producer_group": CooperativeGroup(Agent.Thread, arrivals)}
        return {}

    @staticmethod
    def _on(first: Any, other: Any) -> Any:
        """``other``, whose producers arrive in their own way at the first one's full barriers."""
        own, shared = other.sync_object_full, first.sync_object_full
        count = own.tx_count if own.op_type is PipelineOp.TmaLoad else 0
        full = MbarrierArray(shared.storage, shared.num_stages, (own.op_type, own.group), count, initialise=False)
        return dataclasses.replace(other, sync_object_full=full)


def shares(resource: Any, step: str) -> Any:
    """The group that has this step of a member; None: it is the resource's own."""
    group = resource.__dict__.get("_group")
    return group if group is not None and step in group.steps else None


attach(__name__)
