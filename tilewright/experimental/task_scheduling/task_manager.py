"""The manager: it has the tasks, checks their schedules together, and makes the kernel's code of them."""

from __future__ import annotations

import warnings
from typing import Any

from tilewright._names import attach
from tilewright.errors import ConstraintError
from tilewright.experimental.task_scheduling import validation
from tilewright.experimental.task_scheduling.memory import ResourceContext, SmemAllocator, TmemAllocator
from tilewright.experimental.task_scheduling.task import Task
from tilewright.lang.device.barriers import sync_threads
from tilewright.pipeline.initialise import pipeline_init_arrive, pipeline_init_wait

__all__ = ["TaskManager"]


class TaskManager:
    """``tasks`` and ``resource_dependency_graph``: for each resource, those that it is made from. The schedules are
    checked at once (:meth:`print_and_verify`); a mistake is a ConstraintError that says which steps it is about.
    ``skip_validation``: mistakes are warnings. In the kernel, all threads call :meth:`setup_resources_and_tasks`, then
    :meth:`run`."""

    def __init__(
        self,
        tasks: list[Task],
        resource_dependency_graph: dict[Any, list[Any]],
        dma_consumer_release_labels: Any = None,
        skip_validation: bool = False,
        smem_allocator: SmemAllocator | None = None,
        tmem_allocator: TmemAllocator | None = None,
        tmem_ptr_i32: Any = None,
        verbose: bool = True,
        smem_capacity_bytes: int | None = None,
        tmem_capacity_columns: int | None = None,
        exhaustive_deadlock_race_check: bool = True,
        assume_pdl_wait_completed: bool = False,
        barrier_allocator: Any = None,
    ) -> None:
        self.tasks, self.graph = list(tasks), dict(resource_dependency_graph)
        self.smem_allocator, self.tmem_allocator, self.tmem_ptr_i32 = smem_allocator, tmem_allocator, tmem_ptr_i32
        self.skip_validation, self.verbose = skip_validation, verbose
        self.smem_capacity_bytes, self.tmem_capacity_columns = smem_capacity_bytes, tmem_capacity_columns
        self.interleave = exhaustive_deadlock_race_check
        self.assume_pdl_wait_completed = assume_pdl_wait_completed
        self.barrier_allocator = barrier_allocator
        self.context: ResourceContext = ResourceContext()
        self.print_and_verify()

    @property
    def resources(self) -> list[Any]:
        """The resources of all tasks, each once."""
        return list(dict.fromkeys(resource for task in self.tasks for resource in task.resources))

    def print_and_verify(self) -> None:
        """Check the schedules, and print them with ``verbose``."""
        if self.verbose:
            print(validation.table(self.tasks))
        for problem in validation.problems(self):
            if not self.skip_validation:
                raise ConstraintError(f"task_scheduling: {problem}")
            warnings.warn(f"task_scheduling: {problem}", stacklevel=3)

    def setup_resources_and_tasks(self) -> None:
        """Allocate shared memory, make the pipelines, and meet: in code that all threads of the cluster run."""
        if self.smem_allocator is not None:
            context = self.smem_allocator.context
            self.context = ResourceContext(context.smem_base, self.tmem_ptr_i32 or context.tmem_ptr_i32)
        else:
            self.context = ResourceContext(None, self.tmem_ptr_i32)
        groups = {group for resource in self.resources if (group := resource.__dict__.get("_group")) is not None}
        for resource in (*groups, *self.resources):
            resource.create()
        clusters = [r.pipeline_config.cluster for r in self.resources if r.pipeline_config is not None]
        cluster = next((c for c in clusters if c is not None), None)
        if clusters:
            pipeline_init_arrive(cluster, is_relaxed=True)
            pipeline_init_wait(cluster)
        else:
            sync_threads()

    def run(self) -> None:
        """The code of all tasks, each for its warps."""
        for task in self.tasks:
            task.run(self.context)


attach(__name__)
