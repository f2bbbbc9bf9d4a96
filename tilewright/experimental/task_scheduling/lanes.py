"""Lanes: warps of a task, or tasks whose loops are parts of one, that divide the stages of a pipeline."""

from __future__ import annotations

from typing import Any

from tilewright.errors import ConstraintError
from tilewright.lang.numbers.numeric import unwrap


def lane_of(task: Any, resource: Any, step: str) -> int | None:
    """The lane of a task in a step of a resource's pipeline, by where its loop begins; None: each of its warps is a
    lane. ConstraintError for a task that is neither."""
    stride = resource.pipeline_config.stride(step)
    if stride == 1:
        return 0
    if task.num_warps == stride:
        return None
    loops = [block.head[:3] for block in task.schedule.root.blocks() if block.kind == "domain"]
    for start, _, by in loops:
        start, by = (x if callable(x) else unwrap(x) for x in (start, by))
        if isinstance(start, int) and by == stride and 0 <= start < stride:
            return start
    raise ConstraintError(
        f"task_scheduling: task {task.name!r} has {resource.label}.{step}, whose stages are divided among {stride} "
        f"lanes: give it {stride} warps, one for each lane, or a domain_loop(lane, end, {stride}) with the lane as a "
        "number, one task for each"
    )


def lanes_of(task: Any) -> int:
    """How many lanes the warps of a task are, 1 where none of its pipelines is divided among them."""
    steps = [step for step, _ in task.schedule.root.walk() if step.op in ("acquire", "commit", "wait", "release")]
    for step in steps:
        for resource in getattr(step.resource, "members", None) or [step.resource]:
            if resource.pipeline_config is not None and lane_of(task, resource, step.op) is None:
                return int(task.num_warps)
    return 1
