"""Checks of all schedules of a kernel together, while it is staged.

The order in which tasks may go on depends on counts alone: a task that acquires stage n goes on once n stages less
the ring's are released, whatever else has run. So one run of all schedules, in any order, finds the deadlock that
another order would meet.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tilewright.experimental.task_scheduling.capture import Block, Step
from tilewright.experimental.task_scheduling.lanes import lane_of, lanes_of
from tilewright.experimental.task_scheduling.pipeline_group import PipelineGroup, shares
from tilewright.experimental.task_scheduling.resource import PdlLaunchBarrier, PdlWaitBarrier
from tilewright.experimental.task_scheduling.work_queue import WorkQueue
from tilewright.lang.numbers.numeric import unwrap

MOST_STEPS = 20000
"""The most steps of all tasks together in the simulated run; longer loops are cut to as many iterations as fit."""

_PRODUCER = ("acquire", "try_acquire", "commit")
_TAGS = {"first": "F", "last": "L", "every": "E", "true": "?", "false": "?", "skippable": "S"}


def problems(manager: Any) -> Iterator[str]:
    """What is wrong with the schedules, a sentence each."""
    for task in manager.tasks:
        yield from _of_roles(task)
        yield from _of_brackets(task)
        yield from _of_early_release(task, manager.graph)
        yield from _of_queues(task)
    yield from _of_graph(manager)
    yield from _of_dependents(manager)
    yield from _of_memory(manager)
    if manager.interleave:
        yield from _of_progress(manager.tasks)


def table(tasks: list[Any]) -> str:
    """The steps of each task: H before the domain loop, T behind it, F, L, E, ? and S in guards."""
    lines = []
    for task in tasks:
        lines.append(f"{task.name}[{task.warp_idx}:{task.warp_idx + task.num_warps})")
        seen = False
        has_loop = any(block.kind == "domain" for block in task.schedule.root.blocks())
        for step, around in task.schedule.root.walk():
            inside = any(block.kind == "domain" for block in around)
            seen = seen or inside
            place = " " if inside or not has_loop else "T" if seen else "H"
            tags = "".join(_TAGS.get(block.kind, "") for block in around)
            lines.append(f"  {place}{tags:2} {step.label}")
    return "\n".join(lines)


def _members(resource: Any) -> list[Any]:
    return resource.members if isinstance(resource, PipelineGroup) else [resource]


def _steps(task: Any) -> list[Step]:
    return [step for step, _ in task.schedule.root.walk()]


def _is_producer(step: Step) -> bool:
    return step.op in _PRODUCER or (step.op == "work" and step.work.role == "producer")


def _of_roles(task: Any) -> Iterator[str]:
    """Reads belong to src_resources, writes to dst_resources; what is declared is used."""
    used = set()
    for step in _steps(task):
        for resource in _members(step.resource):
            used.add(resource)
            declared = task.dst_resources if _is_producer(step) else task.src_resources
            if resource not in task.resources or (step.op != "work" and resource not in declared):
                side = "dst_resources" if _is_producer(step) else "src_resources"
                yield f"task {task.name!r} has {step.label}, and {resource.label} is not in its {side}"
        if step.op != "work" and (group := shares(step.resource, step.op)) is not None:
            yield (
                f"task {task.name!r} has {step.label}, which is the step of the {group.mode.name} group: "
                f"{group.label}.{step.op}()"
            )
    for resource in task.resources:
        if resource not in used:
            yield f"task {task.name!r} declares {resource.label}, and its schedule does not use it"


def _of_brackets(task: Any) -> Iterator[str]:
    """Work on a pipeline's stage comes behind the step that opens the stage."""
    steps = _steps(task)
    for role, opens in (("producer", "acquire"), ("consumer", "wait")):
        opened = {r for step in steps if step.op == opens for r in _members(step.resource)}
        so_far: set[Any] = set()
        for step in steps:
            if step.op == opens:
                so_far |= set(_members(step.resource))
            elif step.op == "work" and step.work.role == role and not step.work.is_auxiliary:
                if step.resource in opened - so_far:
                    yield (
                        f"task {task.name!r} has {step.label} before {step.resource.label}.{opens}: the stage is not "
                        f"this task's yet; move the {opens} in front"
                    )


def _of_early_release(task: Any, graph: dict[Any, list[Any]]) -> Iterator[str]:
    """A stage that TMA or MMAs of this task read is released behind the call that issues them."""
    steps = _steps(task)
    for below, above in graph.items():
        config = below.pipeline_config
        if config is None or config.pipeline_type.producer == "async":
            continue
        works = [i for i, s in enumerate(steps) if s.op == "work" and s.resource is below and not s.work.is_auxiliary]
        for resource in above:
            released = [i for i, s in enumerate(steps) if s.op == "release" and resource in _members(s.resource)]
            if works and released and not isinstance(resource, WorkQueue) and released[0] < works[0]:
                yield (
                    f"task {task.name!r} has {steps[released[0]].label} before {steps[works[0]].label}, which reads "
                    f"{resource.label}: release it behind that"
                )


def _of_queues(task: Any) -> Iterator[str]:
    """The queue of tiles goes on once a tile, whatever becomes of the tile."""
    for step, around in task.schedule.root.walk():
        inner = [block.kind for block in around if block.kind in ("domain", "skippable")]
        if isinstance(step.resource, WorkQueue) and inner:
            loop = "domain_loop" if inner[-1] == "domain" else "skippable()"
            yield f"task {task.name!r} has {step.label} inside of {loop}; it belongs behind it, once for each tile"


def _of_graph(manager: Any) -> Iterator[str]:
    """The graph names what the tasks use, and each of its edges is a task's."""
    used = set(manager.resources)
    named = set(manager.graph) | {resource for above in manager.graph.values() for resource in above}
    for resource in sorted(used - named, key=lambda r: r.label):
        if not isinstance(resource, (PdlLaunchBarrier, PdlWaitBarrier, WorkQueue)):
            yield f"{resource.label} does not appear in resource_dependency_graph"
    for resource in sorted(named - used, key=lambda r: r.label):
        if not isinstance(resource, PipelineGroup):
            yield f"resource_dependency_graph has {resource.label}, which no task uses"
    for below, above in manager.graph.items():
        for resource in above:
            both = [t for t in manager.tasks if resource in t.resources and below in t.resources]
            if resource in used and below in used and not both:
                yield (
                    f"resource_dependency_graph makes {below.label} from {resource.label}, and no task has both: "
                    "one that reads the latter and writes the former"
                )


def _of_dependents(manager: Any) -> Iterator[str]:
    """The next kernel is not launched before this one may read the results of the previous kernel."""
    kinds = {type(resource) for resource in manager.resources}
    launches = any(issubclass(kind, PdlLaunchBarrier) for kind in kinds)
    if launches and not manager.assume_pdl_wait_completed and not any(issubclass(k, PdlWaitBarrier) for k in kinds):
        yield "launch_griddep runs, and no task waits for the kernel before by wait_griddep"


def _of_memory(manager: Any) -> Iterator[str]:
    smem, tmem = manager.smem_allocator, manager.tmem_allocator
    if smem is not None and manager.smem_capacity_bytes is not None and smem.total is not None:
        if smem.total > manager.smem_capacity_bytes:
            yield f"{smem.total} bytes of shared memory are laid out; there are {manager.smem_capacity_bytes}"
    if tmem is not None and manager.tmem_capacity_columns is not None and tmem.total is not None:
        if tmem.total > manager.tmem_capacity_columns:
            yield f"{tmem.total} columns of tensor memory are laid out; there are {manager.tmem_capacity_columns}"


# -- a run of all schedules ----------------------------------------------------------------------------------------


def _of_progress(tasks: list[Any]) -> Iterator[str]:
    """Run all schedules for one tile; what is left waits for something that no task does. Loops whose length is not
    known are taken to have one iteration, so schedules with such a loop and others beside it are left out."""
    counts = [_count(b) for t in tasks for b in t.schedule.root.blocks() if b.kind == "domain"]
    if None in counts and any(count not in (None, 1) for count in counts):
        return
    size = sum(len(_steps(task)) for task in tasks) or 1
    most = max(8, MOST_STEPS // size)
    lanes = [(task, warp) for task in tasks for warp in range(lanes_of(task))]
    lines = [list(_unrolled(task.schedule.root, most)) for task, _ in lanes]
    run = _Counts(lanes, lines)
    places = [0] * len(lines)
    moved = True
    while moved:
        moved = False
        for i, line in enumerate(lines):
            while places[i] < len(line) and run.goes_on(i, line[places[i]]):
                places[i] += 1
                moved = True
    next_ops = {t: line[at] for (t, _), line, at in zip(lanes, lines, places, strict=True) if at < len(line)}
    if next_ops:
        where = "; ".join(f"task {task.name!r} at {step.label}" for task, step in next_ops.items())
        yield f"the schedules do not come to an end: {where} wait for steps that no other task comes to"


def _count(block: Block) -> int | None:
    """How many iterations a domain loop has, if that is known."""
    start, stop, step = (x if callable(x) else unwrap(x) for x in block.head[:3])
    if not all(isinstance(x, int) for x in (start, stop, step)):
        return None
    return max(0, -(-(stop - start) // step))


def _unrolled(block: Block, most: int, at: tuple[int, int] = (0, 1)) -> Iterator[Step]:
    """The steps in the order in which they run for one tile. ``at``: the iteration, of how many."""
    for item in block.items:
        if isinstance(item, Step):
            yield item
        elif item.kind == "domain":
            turns = _count(item)
            count = 1 if turns is None else min(turns, most)
            for i in range(count):
                yield from _unrolled(item, most, (i, count))
        elif _runs(item, *at):
            yield from _unrolled(item, most, at)


def _runs(guard: Block, i: int, count: int) -> bool:
    if guard.kind == "every":
        period, start = guard.head
        return i >= start and (i - start) % period == 0
    return {"first": i == 0, "last": i == count - 1, "false": False}.get(guard.kind, True)


class _Counts:
    """How often each task, or each lane of its warps, has opened and closed stages of each pipeline. ``lanes``: the
    task and the warp of each line of steps."""

    def __init__(self, lanes: list[tuple[Any, int]], lines: list[list[Step]]) -> None:
        self.lanes = lanes
        self.done: dict[tuple[int, Any, str], int] = {}
        self.closers: dict[tuple[Any, str], set[int]] = {}
        self.early: set[tuple[int, Any, str]] = set()
        for i, line in enumerate(lines):
            ops: dict[Any, set[str]] = {}
            for step in line:
                for resource in _members(step.resource):
                    ops.setdefault(resource, set()).add(step.op)
            for resource, counts in ops.items():
                config = resource.pipeline_config
                for opens, closes, flag in (
                    ("acquire", "commit", config is not None and config.advance_on_acquire),
                    ("wait", "release", config is not None and config.advance_on_wait),
                ):
                    if closes in counts:
                        self.closers.setdefault((resource, closes), set()).add(i)
                    if flag or closes not in counts:
                        self.early.add((i, resource, opens))

    def _lane(self, line: int, resource: Any, op: str) -> int:
        task, warp = self.lanes[line]
        lane = lane_of(task, resource, op)
        return warp if lane is None else lane

    def _is_closed(self, resource: Any, op: str, stage: int) -> bool:
        """Whether all whose turn it is have closed a stage, counted from the first one on."""
        by = self.closers.get((resource, op), set())
        stride = resource.pipeline_config.stride(op)
        turn = [line for line in by if self._lane(line, resource, op) == stage % stride]
        return bool(turn) and all(self.done.get((line, resource, op), 0) > stage // stride for line in turn)

    def goes_on(self, task: int, step: Step) -> bool:
        """Do the step, if it need not wait."""
        resources = [r for r in _members(step.resource) if r.pipeline_config is not None]
        if step.op in ("acquire", "wait"):
            closes, other = ("commit", "release") if step.op == "acquire" else ("release", "commit")
            for resource in resources:
                counted = step.op if (task, resource, step.op) in self.early else closes
                config, rounds = resource.pipeline_config, self.done.get((task, resource, counted), 0)
                stage = rounds * config.stride(step.op) + self._lane(task, resource, step.op)
                stage -= config.num_stages if step.op == "acquire" else 0
                if stage >= 0 and not self._is_closed(resource, other, stage):
                    return False
        for resource in resources:
            key = (task, resource, step.op)
            self.done[key] = self.done.get(key, 0) + 1
        return True
