"""Resources: what a kernel's tasks fill and read, with the methods that do it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.experimental.task_scheduling.capture import record
from tilewright.experimental.task_scheduling.enums import WorkAttr
from tilewright.experimental.task_scheduling.memory import ResourceContext
from tilewright.experimental.task_scheduling.pipelines import PipelineConfig
from tilewright.experimental.task_scheduling.work import consumer_work, producer_work
from tilewright.lang.device.registers import griddepcontrol_launch_dependents, griddepcontrol_wait


@dataclass(frozen=True, eq=False)
class StageInfo:
    """What a work method is told. ``loop_offset``: the index of the domain loop, 0 before it; ``stage_idx`` and
    ``barrier``: the open stage of its resource and the mbarrier that tells that it is full, None without a pipeline;
    ``work_tile``: the tile of the persistent loop; ``context``: where the memory is; ``loop_start``, ``loop_end`` and
    ``loop_step``: the bounds of the domain loop, which are known before and behind it, too."""

    loop_offset: Any = 0
    stage_idx: Any = None
    barrier: Any = None
    work_tile: Any = None
    context: ResourceContext = ResourceContext()
    loop_start: Any = 0
    loop_end: Any = 0
    loop_step: Any = 1


@dataclass(kw_only=True, eq=False)
class MemoryResource:
    """A piece of memory, or of synchronisation. A subclass, ``@dataclass(kw_only=True)``, has its tensors as fields and
    its work as methods marked ``@producer_work`` and ``@consumer_work``.

    >>> sorted([MemoryResource(name="b").label, MemoryResource().label])
    ['MemoryResource', 'b']
    """

    name: str = ""
    pipeline_config: PipelineConfig | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # A dataclass would compare resources by their fields; they are keys of the dependency graph, each for itself.
        cls.__eq__ = object.__eq__  # type: ignore[method-assign]  # see above
        cls.__hash__ = object.__hash__  # type: ignore[method-assign]  # see above

    @property
    def label(self) -> str:
        """Its name in messages."""
        return self.name or type(self).__name__

    @property
    def pipeline(self) -> Any:
        """Its pipeline, once ``setup_resources_and_tasks`` has made it."""
        return self.__dict__.get("_pipeline")

    @pipeline.setter
    def pipeline(self, made: Any) -> None:
        self.__dict__["_pipeline"] = made

    def create(self) -> None:
        """Make the pipeline."""
        if self.pipeline is None and self.pipeline_config is not None:
            self.pipeline = self.pipeline_config.make()

    def get_smem_requirements(self) -> list[Any]:
        """The shared memory that it needs, the same objects at each call."""
        return []

    def get_tmem_requirements(self) -> list[Any]:
        """The columns of tensor memory that it needs, the same objects at each call."""
        return []

    def acquire(self) -> None:
        """In a schedule: wait until a stage may be filled."""
        record(self, "acquire")

    def try_acquire(self) -> None:
        """In a schedule: look whether the next stage may be filled, for the ``acquire`` that follows."""
        record(self, "try_acquire")

    def commit(self) -> None:
        """In a schedule: the stage is filled."""
        record(self, "commit")

    def wait(self) -> None:
        """In a schedule: wait until a stage is filled."""
        record(self, "wait")

    def try_wait(self) -> None:
        """In a schedule: look whether the next stage is filled, for the ``wait`` that follows."""
        record(self, "try_wait")

    def release(self) -> None:
        """In a schedule: the stage has been read."""
        record(self, "release")


class PdlWaitBarrier(MemoryResource):
    """The end of the kernel before this one, where launches overlap."""

    @consumer_work(work_attrs=WorkAttr.AUXILIARY)
    def wait_griddep(self, stage_info: StageInfo) -> None:
        """Wait for the kernel before."""
        griddepcontrol_wait()


class PdlLaunchBarrier(MemoryResource):
    """The permission for the kernel behind this one to begin."""

    @producer_work(work_attrs=WorkAttr.AUXILIARY)
    def launch_griddep(self, stage_info: StageInfo) -> None:
        """Let the kernel behind begin."""
        griddepcontrol_launch_dependents()
