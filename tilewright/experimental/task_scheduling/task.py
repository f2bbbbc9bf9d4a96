"""Tasks, and the code of their schedules.

A task's warps run its schedule as one stretch of code: this module emits the captured blocks in order while the kernel
is staged, and makes loops and branches of them. What a task changes in a resource's fields (a flag of the tile, say)
is its own: afterwards the fields are what they were.
"""

from __future__ import annotations

import inspect
from typing import Any

from tilewright._names import attach
from tilewright.errors import ConstraintError
from tilewright.experimental.task_scheduling.capture import Block, Step, Token
from tilewright.experimental.task_scheduling.enums import SignalingThreads
from tilewright.experimental.task_scheduling.lanes import lane_of
from tilewright.experimental.task_scheduling.memory import ResourceContext
from tilewright.experimental.task_scheduling.pipeline_group import PipelineGroup
from tilewright.experimental.task_scheduling.resource import StageInfo
from tilewright.experimental.task_scheduling.schedule_builder import ScheduleResult
from tilewright.experimental.task_scheduling.work import BoundWork, TaskLocalVariable
from tilewright.experimental.task_scheduling.work_queue import WorkQueue
from tilewright.lang.device.registers import setmaxregister_decrease, setmaxregister_increase
from tilewright.lang.device.threads import block_idx, block_idx_in_cluster, block_shape, warp_idx
from tilewright.lang.device.warps import make_warp_uniform
from tilewright.lang.launch.jit import jit
from tilewright.lang.numbers.numeric import Boolean, Int32, Numeric
from tilewright.lang.staging.generate import if_generate
from tilewright.lang.staging.ranges import range as staged_range
from tilewright.pipeline.agents import PipelineUserType
from tilewright.pipeline.state import PipelineState, make_pipeline_state

__all__ = ["Task"]

REGISTERS = 65536
"""Registers of a multiprocessor, of which a block of one has all."""


class Task:
    """Warps ``warp_idx`` to ``warp_idx + num_warps - 1`` with their schedule. ``src_resources``: what they read out of
    (``wait``, ``release``, ``consumer_work``); ``dst_resources``: what they fill. ``num_registers``: of a thread;
    ``run_only_on_cta_id``: the one block of the cluster that runs the task."""

    def __init__(
        self,
        src_resources: list[Any] | None = None,
        dst_resources: list[Any] | None = None,
        warp_idx: int = 0,
        num_warps: int = 1,
        *,
        schedule: ScheduleResult,
        num_registers: int | None = None,
        name: str = "",
        debug_print: bool = False,
        run_only_on_cta_id: int | None = None,
    ) -> None:
        self.src_resources, self.dst_resources = list(src_resources or ()), list(dst_resources or ())
        self.warp_idx, self.num_warps, self.num_registers = warp_idx, num_warps, num_registers
        self.name = name or type(self).__name__
        self.run_only_on_cta_id, self.debug_print = run_only_on_cta_id, debug_print
        if not isinstance(schedule, ScheduleResult):
            raise ConstraintError(
                f"Task {self.name!r}: schedule is {schedule!r}; it is what a call of a function marked @schedule gives"
            )
        self.schedule = schedule

    @property
    def resources(self) -> list[Any]:
        """All resources of the task, each once."""
        return list(dict.fromkeys((*self.src_resources, *self.dst_resources)))

    def run(self, context: ResourceContext) -> None:
        """The task's code, in the branch of its warps."""
        run_task(self, context)


@jit
def run_task(task: Any, context: Any) -> None:
    """Where this is one of the task's warps, its schedule."""
    warp = make_warp_uniform(warp_idx())
    mine = (warp >= task.warp_idx) & (warp < task.warp_idx + task.num_warps)
    if task.run_only_on_cta_id is not None:
        mine = mine & (make_warp_uniform(block_idx_in_cluster()) == task.run_only_on_cta_id)
    if mine:
        before = _fields(task)
        _change_registers(task)
        run_block(task.schedule.root, _Run(task, context), {})
        _restore(before)


class _Run:
    """Where a task is in its schedule: all that changes as it goes."""

    def __init__(self, task: Task, context: ResourceContext) -> None:
        self.task, self.context = task, context
        self.offset: Any = Int32(0)
        self.bounds: tuple[Any, Any, Any] = (Int32(0), Int32(0), Int32(1))
        self.count: Any = Int32(0)
        self.is_first: Any = Boolean(True)
        self.is_last: Any = Boolean(True)
        self.tile: Any = None
        self.values: dict[tuple[int, str], Any] = {}
        self.cursors: dict[tuple[int, str], Any] = {}
        self.opened: dict[tuple[int, str], Any] = {}
        self.early: dict[tuple[int, str], bool] = {}
        self.sides: dict[int, set[str]] = {}
        steps = [step for step, _ in task.schedule.root.walk()]
        self.warp = make_warp_uniform(warp_idx()) - task.warp_idx
        for resource in dict.fromkeys(step.resource for step in steps):
            self._begin(resource, {step.op for step in steps if step.resource is resource})
        for step in steps:
            for token in (*step.tokens(), *step.results()):
                self._preset(token)

    def _begin(self, resource: Any, ops: set[str]) -> None:
        """The cursors of the stages of both sides. A side opens a stage and closes it; ``early``: it goes on
        to the next stage when it opens one, because the program says so, or closes none."""
        config = resource.pipeline_config
        if resource.pipeline is None or config is None:
            return
        for side, opens, closes, early, kind in (
            ("producer", "acquire", "commit", config.advance_on_acquire, PipelineUserType.Producer),
            ("consumer", "wait", "release", config.advance_on_wait, PipelineUserType.Consumer),
        ):
            key = (id(resource), side)
            if ops & {opens, closes}:
                self.sides.setdefault(id(resource), set()).add(side)
            closed_by_group = getattr(resource, "_group", None) is not None and closes in resource._group.steps
            self.early[key] = early or (opens in ops and closes not in ops and not closed_by_group)
            for cursors in (self.cursors, self.opened):
                cursors[key] = self._first_stage(resource, opens if opens in ops else closes, kind, ops)
            self.cursors[(id(resource), closes)] = self._first_stage(resource, closes, kind, ops)

    def _first_stage(self, resource: Any, step: str, kind: PipelineUserType, ops: set[str]) -> PipelineState:
        """Where the cursor of a step begins: at the stage of the lane, if the task has that step."""
        begin = make_pipeline_state(kind, resource.pipeline_config.num_stages)
        if step not in ops or resource.pipeline_config.stride(step) == 1:
            return begin
        lane = lane_of(self.task, resource, step)
        return PipelineState(begin.stages, begin.count, self.warp if lane is None else lane, begin.phase)

    def _preset(self, token: Token) -> None:
        """Set a variable to its first value, if it has one."""
        variable = getattr(token.resource, token.slot, None) if token.slot.isidentifier() else None
        first = variable.first() if isinstance(variable, TaskLocalVariable) else None
        if first is not None:
            kind = _number_type(variable)
            self.values[(id(token.resource), token.slot)] = first if kind is None else kind(first)


# -- blocks ----------------------------------------------------------------------------------------------------------


@jit
def run_block(block: Any, run: Any, local: Any) -> None:
    """The items of a block. ``local``: what has been returned in this stretch of code and has no default."""
    domain = next((item for item in block.items if not isinstance(item, Step) and item.kind == "domain"), None)
    if domain is not None:
        _note_bounds(domain, run)
    for item in block.items:
        if isinstance(item, Step):
            run_step(item, run, local)
        elif item.kind == "tiles":
            _run_tiles(item, run)
        elif item.kind == "domain":
            _run_domain(item, run)
        elif _holds(item, run, local):
            run_block(item, run, {**local})


@jit
def _run_tiles(block: Any, run: Any) -> None:
    queue, _skip = block.head
    run.tile = queue.first_tile()
    while run.tile.is_valid_tile:
        before = _fields(run.task)
        run_block(block, run, {})
        _restore(before, unset=True)


@jit
def _run_domain(block: Any, run: Any) -> None:
    start, stop, step = _note_bounds(block, run)
    run.count = Int32(0)
    for i in staged_range(start, stop, step, unroll=block.head.unroll or 1):
        run.offset = Int32(i)
        run.is_first = Boolean(i == start)
        run.is_last = Boolean(i + step >= stop)
        run_block(block, run, {})
        run.count = run.count + 1
    run.offset = Int32(0)


def _note_bounds(block: Block, run: _Run) -> tuple[Any, Any, Any]:
    """Evaluate the bounds of a domain loop, and note them for its steps and those beside it."""
    start, stop, step = (_bound(x, run) for x in block.head[:3])
    run.bounds = (Int32(start), Int32(stop), Int32(step))
    return start, stop, step


def _holds(block: Block, run: _Run, local: Any) -> Any:
    """Whether a guard's steps run now."""
    if block.kind in ("first", "last"):
        return run.is_first if block.kind == "first" else run.is_last
    if block.kind == "every":
        period, start = block.head
        return (run.count >= start) & ((run.count - start) % period == 0)
    if block.kind == "skippable":
        queue, skip = block.head
        return True if skip is None else Boolean(_called(skip, queue, run.tile)) == Boolean(False)
    value = _value(block.head, run, local)
    if isinstance(value, (bool, int)):
        return bool(value) is (block.kind == "true")
    return (value != 0) if block.kind == "true" else (value == 0)


def _called(skip: Any, queue: Any, tile: Any) -> Any:
    """``skip_if``, a function of (queue, tile) or of the tile."""
    function = getattr(skip, "function", skip)
    count = len(inspect.signature(function).parameters) - (1 if hasattr(skip, "__self__") else 0)
    return skip(queue, tile) if count == 2 else skip(tile)


def _bound(bound: Any, run: _Run) -> Any:
    """A bound of the domain: a number, or a method of the task of the tile's coordinate."""
    if not callable(bound) or isinstance(bound, Numeric):
        return bound
    coord = block_idx() if run.tile is None else run.tile.tile_idx
    owner = getattr(bound, "__self__", None)
    return bound(coord) if owner is not None else bound(run.task, coord)


# -- steps -----------------------------------------------------------------------------------------------------------


def run_step(step: Step, run: _Run, local: Any) -> None:
    """One step's code."""
    resource = step.resource
    if step.op == "work":
        return _work(step, run, local)
    members = resource.members if isinstance(resource, PipelineGroup) else [resource]
    if members[0].pipeline is None:
        return None  # without a pipeline nothing is waited for: a queue that is dealt out in advance
    side = "producer" if step.op in ("acquire", "try_acquire", "commit") else "consumer"
    first = members[0]
    if step.op in ("try_acquire", "try_wait"):
        state = run.cursors[(id(first), side)]
        local[("token", id(resource), step.op[4:])] = getattr(first.pipeline, f"{side}_{step.op}")(state)
        return None
    for member in members:
        state = _state_of(step.op, side, member, run)
        if member is first:
            token = local.pop(("token", id(resource), step.op), None)
            _signal(step.op, side, member, state, token)
        _advance(step.op, side, member, run)
    return None


def _state_of(op: str, side: str, resource: Any, run: _Run) -> Any:
    """The cursor of the stage that a step opens or closes."""
    key = (id(resource), side)
    closes = op in ("commit", "release")
    return run.cursors[(id(resource), op)] if closes and run.early[key] else run.cursors[key]


def _signal(op: str, side: str, resource: Any, state: Any, token: Any) -> None:
    """The mbarriers' part of a step, by the threads that signal."""
    more = (token,) if op in ("acquire", "wait") else ()
    config = resource.pipeline_config
    threads = config.producer_signaling_threads if side == "producer" else config.consumer_signaling_threads
    if op == "wait" and config.consumer_wait_signaling_threads is not None:
        threads = config.consumer_wait_signaling_threads

    def emit() -> None:
        getattr(resource.pipeline, f"{side}_{op}")(state, *more)

    # Where MMAs read what TMA brings, the pipeline itself lets the leader alone expect the bytes; all blocks wait.
    alone = SignalingThreads.CtaLeader in threads and config.pipeline_type.producer != "tma"
    if alone and config.blocks > 1:
        if_generate(make_warp_uniform(block_idx_in_cluster()) == 0, emit)
    else:
        emit()


def _advance(op: str, side: str, resource: Any, run: _Run) -> None:
    """Go on to the next stage, when a step closes one, or early when it opens one."""
    key = (id(resource), side)
    cursor = run.cursors[key]
    if op in ("acquire", "wait"):
        if not run.early[key]:
            return
        run.opened[key] = cursor.clone()
    elif run.early[key]:
        cursor = run.cursors[(id(resource), op)]
    for _ in range(resource.pipeline_config.stride(op)):  # the stages between are those of other lanes
        cursor.advance()


def _work(step: Step, run: _Run, local: Any) -> None:
    """A call of a work method, with what it is told; what it returns is kept."""
    resource, method = step.resource, step.work
    arguments = [_value(x, run, local) for x in step.args]
    named = {name: _value(x, run, local) for name, x in step.kwargs.items()}
    result = BoundWork(method, resource).run(_stage_info(step, run), *arguments, **named)
    if isinstance(resource, WorkQueue) and method.name == "get_and_advance_work_tile":
        run.tile = result
        return
    tokens = step.results()
    results = result if method.several else (result,)
    for token, value in zip(tokens, results, strict=True):
        key = (id(token.resource), token.slot)
        kind = _number_type(getattr(resource, token.slot, None)) if token.slot.isidentifier() else None
        if key in run.values:  # a descriptor is the number that it holds
            run.values[key] = value if kind is None else kind(getattr(value, "word", value))
        else:
            local[key] = kind(value) if kind is not None and isinstance(value, (bool, int, float, Numeric)) else value


def _stage_info(step: Step, run: _Run) -> StageInfo:
    resource, side = step.resource, step.work.role
    stage = barrier = None
    if resource.pipeline is not None and resource.pipeline_config is not None:
        sides = run.sides.get(id(resource), {side})
        if side not in sides:  # a ping-pong: the side that the task has opened both reads and writes
            (side,) = sides
        key = (id(resource), side)
        state = run.opened[key] if run.early[key] else run.cursors[key]
        stage, barrier = state.index, resource.pipeline.producer_get_barrier(state)
    return StageInfo(run.offset, stage, barrier, run.tile, run.context, *run.bounds)


def _value(x: Any, run: _Run, local: Any) -> Any:
    """What an argument of a step is: the value of a token, or itself."""
    if not isinstance(x, Token):
        return x
    key = (id(x.resource), x.slot)
    if key in local:
        return local[key]
    if key in run.values:
        return run.values[key]
    variable = getattr(x.resource, x.slot, None)
    first = variable.first() if isinstance(variable, TaskLocalVariable) else None
    if first is not None:
        return first
    raise ConstraintError(
        f"the value {x.slot!r} of {x.resource.label} is not known here: it is returned in another loop or guard; give "
        "its TaskLocalVariable a dtype and a default, so that it can pass"
    )


def _number_type(variable: Any) -> Any:
    """The numeric type of a task-local variable; None: it is not a number."""
    kind = getattr(variable, "dtype", None)
    return kind if isinstance(kind, type) and issubclass(kind, Numeric) else None


# -- fields and registers ----------------------------------------------------------------------------------------------


def _fields(task: Any) -> list[tuple[Any, dict[str, Any]]]:
    """The fields of the task's resources."""
    return [(resource, dict(vars(resource))) for resource in task.resources]


def _restore(before: list[tuple[Any, dict[str, Any]]], unset: bool = False) -> None:
    """Put the fields back; ``unset``: those alone that were not set, or None. What is set in them within a tile is the
    tile's."""
    for resource, fields in before:
        for name in [name for name in vars(resource) if name not in fields]:
            del vars(resource)[name]
        vars(resource).update({name: x for name, x in fields.items() if x is None or not unset})


def _change_registers(task: Any) -> None:
    """``setmaxnreg``, from what each thread of the block has to begin with."""
    shape = block_shape()
    if task.num_registers is None or shape is None:
        return
    threads = shape[0] * shape[1] * shape[2]
    begin = min(255, REGISTERS // threads) // 8 * 8
    if task.num_registers > begin:
        setmaxregister_increase(task.num_registers)
    elif task.num_registers < begin:
        setmaxregister_decrease(task.num_registers)


attach(__name__)
