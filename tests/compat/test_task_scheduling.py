"""Schedules of tasks: what is captured, what a mistake says, and what the kernel does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute, pipeline
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ConstraintError, StagingError
from tilewright.experimental import task_scheduling as ts
from tilewright.experimental.task_scheduling.enums import PipelineGroupMode
from tilewright.experimental.task_scheduling.resources import (
    MemoryResource,
    PdlLaunchBarrier,
    PipelineConfig,
    PipelineGroup,
    StageInfo,
    TaskLocalVariable,
    TileSchedulerConfig,
    WorkQueue,
)
from tilewright.experimental.task_scheduling.task import Task
from tilewright.experimental.task_scheduling.task_manager import TaskManager


@dataclass(kw_only=True)
class Box(MemoryResource):
    item: Any = TaskLocalVariable.uninitialized()

    @ts.producer_work
    def put(self, stage_info: StageInfo, item: Any = None) -> None: ...

    @ts.consumer_work(returns=item)
    def get(self, stage_info: StageInfo) -> Any: ...


def ring(stages: int = 2) -> PipelineConfig:
    warp = pipeline.CooperativeGroup(pipeline.Agent.Thread, 32)
    return PipelineConfig.create_async_async_pipeline_cfg(num_stages=stages, producer_group=warp, consumer_group=warp)


def tma_ring() -> PipelineConfig:
    one = pipeline.CooperativeGroup(pipeline.Agent.Thread)
    return PipelineConfig.create_tma_umma_pipeline_cfg(
        num_stages=2, num_bytes=64, producer_group=one, consumer_group=one
    )


@ts.schedule
def fill(box: Box, count: int) -> None:
    with ts.domain_loop(count):
        box.acquire()
        box.put()
        box.commit()


@ts.schedule
def drain(box: Box, count: int) -> None:
    with ts.domain_loop(count):
        box.wait()
        box.get()
        box.release()


def managed(tasks: list[Task], graph: dict[Any, list[Any]]) -> TaskManager:
    return TaskManager(tasks=tasks, resource_dependency_graph=graph, verbose=False)


def pair(filled: int = 4, drained: int = 4, **changes: Any) -> TaskManager:
    box, out = Box(name="box", pipeline_config=ring()), Box(name="out")

    @ts.schedule
    def both(box: Box, out: Box) -> None:
        with ts.domain_loop(drained):
            box.wait()
            out.put(item=box.get())
            box.release()

    first = Task([], [box], 0, 1, schedule=fill(box, filled), name="fill")
    second = Task([box], [out], 1, 1, schedule=changes.get("second", both)(box, out), name="drain")
    return managed([first, second], {out: [box]})


def test_right_schedules_are_accepted() -> None:
    pair()


def work_before_acquire() -> None:
    @ts.schedule
    def wrong(box: Box) -> None:
        box.put()
        box.acquire()
        box.commit()

    box = Box(name="box", pipeline_config=ring())
    managed([Task([], [box], schedule=wrong(box)), Task([box], [], 1, schedule=drain(box, 1))], {box: []})


def wrong_side() -> None:
    box = Box(name="box", pipeline_config=ring())
    managed([Task([box], [], schedule=fill(box, 1), name="mine")], {box: []})


def not_in_the_graph() -> None:
    box = Box(name="box")

    @ts.schedule
    def put(box: Box) -> None:
        box.put()

    managed([Task([], [box], schedule=put(box))], {})


def edge_without_task() -> None:
    a, b = (Box(name=name, pipeline_config=ring()) for name in "ab")
    tasks = [Task([], [box], 2 * i, schedule=fill(box, 1)) for i, box in enumerate((a, b))] + [
        Task([box], [], 2 * i + 1, schedule=drain(box, 1)) for i, box in enumerate((a, b))
    ]
    managed(tasks, {b: [a]})


def unused() -> None:
    box, other = Box(name="box", pipeline_config=ring()), Box(name="other")
    managed([Task([other], [box], schedule=fill(box, 1)), Task([box], [], 1, schedule=drain(box, 1))], {box: [other]})


def early_release() -> None:
    a, sums = Box(name="a", pipeline_config=tma_ring()), Box(name="sums", pipeline_config=tma_ring())

    @ts.schedule
    def wrong(a: Box, sums: Box) -> None:
        with ts.domain_loop(2):
            a.wait()
            sums.acquire()
            a.release()
            sums.put(item=a.get())
            sums.commit()

    tasks = [
        Task([], [a], schedule=fill(a, 2)),
        Task([a], [sums], 1, schedule=wrong(a, sums), name="mma"),
        Task([sums], [], 2, schedule=drain(sums, 2)),
    ]
    managed(tasks, {sums: [a]})


def queue_in_the_loop() -> None:
    wq = WorkQueue(
        name="wq",
        tile_scheduler_config=TileSchedulerConfig.create_static_persistent_tile_scheduler_params((2, 1, 1)),
    )
    out = Box(name="out")

    @ts.schedule
    def wrong(wq: WorkQueue, out: Box) -> None:
        with ts.work_tile_loop(wq):
            with ts.domain_loop(2):
                out.put()
                wq.get_and_advance_work_tile()

    managed([Task([wq], [out], schedule=wrong(wq, out), name="mine")], {out: [wq]})


def launch_without_wait() -> None:
    barrier = PdlLaunchBarrier(name="pdl")

    @ts.schedule
    def launch(barrier: PdlLaunchBarrier) -> None:
        barrier.launch_griddep()

    managed([Task([], [barrier], schedule=launch(barrier))], {})


def member_has_the_groups_step() -> None:
    a, b = (Box(name=name, pipeline_config=ring()) for name in "ab")
    PipelineGroup(name="ab", members=[a, b], mode=PipelineGroupMode.Merge)
    managed([Task([], [a], schedule=fill(a, 1)), Task([a], [], 1, schedule=drain(a, 1), name="mine")], {a: []})


def two_loops() -> None:
    @ts.schedule
    def twice() -> None:
        for _ in range(2):
            with ts.domain_loop(2):
                pass

    twice()


def guard_outside() -> None:
    @ts.schedule
    def late() -> None:
        with ts.domain_loop(2) as loop:
            pass
        with loop.first_iter():
            pass

    late()


MISTAKES: list[tuple[Callable[[], Any], str]] = [
    (work_before_acquire, r"box\.put before box\.acquire"),
    (wrong_side, r"task 'mine' has box\.acquire, and box is not in its dst_resources"),
    (not_in_the_graph, r"box does not appear in resource_dependency_graph"),
    (edge_without_task, r"makes b from a, and no task has both"),
    (unused, r"declares other, and its schedule does not use it"),
    (early_release, r"'mma' has a\.release before sums\.put, which reads a"),
    (queue_in_the_loop, r"wq\.get_and_advance_work_tile inside of domain_loop"),
    (launch_without_wait, r"no task waits for the kernel before"),
    (member_has_the_groups_step, r"a\.release, which is the step of the Merge group: ab\.release\(\)"),
    (two_loops, r"one domain_loop, and this is its second one"),
    (guard_outside, r"a guard of a domain loop is outside"),
    (lambda: pair(filled=4, drained=6), r"do not come to an end: task 'drain' at box\.wait"),
    (lambda: pair(filled=8, drained=2), r"do not come to an end: task 'fill' at box\.acquire"),
    (lambda: ts.domain_loop(0, 4, 0), r"the step is 0"),
    (lambda: Box(name="box").acquire(), r"@schedule"),
    (lambda: Task(schedule=fill), r"it is what a call of a function marked @schedule gives"),
]


@pytest.mark.parametrize(("mistake", "words"), MISTAKES)
def test_mistakes_are_named(mistake: Callable[[], Any], words: str) -> None:
    with pytest.raises(ConstraintError, match=words):
        mistake()


def test_a_mistake_is_a_warning_where_validation_is_skipped() -> None:
    box = Box(name="box", pipeline_config=ring())
    with pytest.warns(UserWarning, match="wait for steps"):
        tasks = [Task([], [box], schedule=fill(box, 4))]
        TaskManager(tasks=tasks, resource_dependency_graph={box: []}, verbose=False, skip_validation=True)


# -- what a kernel does ------------------------------------------------------------------------------------------------


@dataclass(kw_only=True)
class Numbers(MemoryResource):
    """A ring of rows in shared memory, or a row of results."""

    rows: Any
    total: Any = None
    item: Any = TaskLocalVariable.uninitialized()
    is_large: Any = TaskLocalVariable.uninitialized()

    def __post_init__(self) -> None:
        self.item = TaskLocalVariable(dtype=cutlass.Int32, default=cutlass.Int32(-1), docs="one of the numbers")
        self.is_large = TaskLocalVariable(dtype=cutlass.Boolean, default=cutlass.Boolean(False))

    @ts.producer_work
    @cute.jit
    def put(self, stage_info: StageInfo, *, times: cutlass.Constexpr[int] = 1) -> None:
        self.rows[cute.arch.lane_idx(), stage_info.stage_idx] = times * stage_info.loop_offset

    @ts.consumer_work(returns=(item, is_large))
    @cute.jit
    def get(self, stage_info: StageInfo) -> Any:
        found = self.rows[cute.arch.lane_idx(), stage_info.stage_idx]
        return found, found >= 60

    @ts.producer_work(work_attrs=ts.WorkAttr.AUXILIARY)
    def begin(self, stage_info: StageInfo) -> None:
        self.total = cutlass.Int32(0)

    @ts.producer_work
    def add(self, stage_info: StageInfo, item: Any, times: int = 1) -> None:
        self.total = self.total + times * item

    @ts.producer_work
    @cute.jit
    def store(self, stage_info: StageInfo, item: Any) -> None:
        self.rows[cute.arch.lane_idx(), 0] = self.total
        self.rows[cute.arch.lane_idx(), 1] = item


@cute.kernel
def guarded(d: cute.Tensor, count: cutlass.Int32, early: cutlass.Constexpr[bool]) -> None:
    rows = cute.make_tensor(cute.arch.alloc_smem(cutlass.Int32, 64, 16), cute.make_layout((32, 2)))
    warp = pipeline.CooperativeGroup(pipeline.Agent.Thread, 32)
    config = PipelineConfig.create_async_async_pipeline_cfg(
        num_stages=2, producer_group=warp, consumer_group=warp, advance_on_wait=early
    )
    numbers, sums = Numbers(name="ring", rows=rows, pipeline_config=config), Numbers(name="sums", rows=d)

    @ts.schedule
    def producer(ring: Numbers) -> None:
        with ts.domain_loop(10, count, 10):
            ring.acquire()
            ring.put(times=3)
            ring.commit()

    @ts.schedule
    def consumer(ring: Numbers, sums: Numbers) -> None:
        sums.begin()
        with ts.domain_loop(10, count, 10) as loop:
            ring.try_wait()
            ring.wait()
            item, is_large = ring.get()
            with loop.first_iter():
                sums.add(item=item, times=1000)
            with loop.every(2, start=1):
                sums.add(item=item, times=10)
            with ts.when_true(is_large):
                sums.add(item=item)
            with ts.when_false(is_large), loop.last_iter():
                sums.add(item=item, times=7)
            ring.release()
        sums.store(item=item)

    tasks = [
        Task([], [numbers], 0, 1, schedule=producer(numbers), name="producer"),
        Task([numbers], [sums], 1, 1, schedule=consumer(numbers, sums), name="consumer"),
    ]
    manager = managed(tasks, {sums: [numbers]})
    manager.setup_resources_and_tasks()
    manager.run()


@cute.jit
def run_guarded(d: cute.Tensor, count: cutlass.Int32, early: cutlass.Constexpr[bool]) -> None:
    guarded(d, count, early).launch(grid=(1, 1, 1), block=(64, 1, 1))


@pytest.mark.parametrize(("count", "early"), [(60, False), (60, True), (20, False), (10, False)])
def test_guards_values_and_constants(count: int, early: bool) -> None:
    d = np.zeros((32, 2), np.int32)
    run_guarded(from_dlpack(d), count, early)
    items = [3 * offset for offset in range(10, count, 10)]
    total = sum(1000 * x * (i == 0) + 10 * x * (i % 2 == 1) + x * (x >= 60) for i, x in enumerate(items))
    total += sum(7 * x for x in items[-1:] if x < 60)
    assert (d == [total, items[-1] if items else -1]).all()


@dataclass(kw_only=True)
class Rows(MemoryResource):
    d: Any

    @ts.producer_work
    @cute.jit
    def mark(self, stage_info: StageInfo) -> None:
        m, n, _ = stage_info.work_tile.tile_idx
        if cute.arch.thread_idx()[0] == 0:
            self.d[m, n] += 1 + stage_info.loop_offset


class OddTask(Task):
    @cute.jit
    def get_domain_size(self, tile_coord: Any) -> Any:
        return tile_coord[0]


@cute.kernel
def skipping(d: cute.Tensor) -> None:
    wq = WorkQueue(
        name="wq",
        tile_scheduler_config=TileSchedulerConfig.create_static_persistent_tile_scheduler_params((4, 3, 1)),
    )
    rows = Rows(name="rows", d=d)

    @ts.schedule
    def odd(rows: Rows, wq: WorkQueue) -> None:
        with ts.work_tile_loop(wq, skip_if=lambda tile: tile.tile_idx[1] == 1) as tiles:
            with tiles.skippable(), ts.domain_loop(0, OddTask.get_domain_size):
                rows.mark()
            wq.try_wait()
            wq.wait()
            wq.get_and_advance_work_tile()
            wq.release()

    manager = managed([OddTask([wq], [rows], schedule=odd(rows, wq))], {rows: [wq]})
    manager.setup_resources_and_tasks()
    manager.run()


@cute.jit
def run_skipping(d: cute.Tensor) -> None:
    skipping(d).launch(grid=(1, 1, 5), block=(32, 1, 1))


def test_tiles_are_skipped_and_domains_are_of_tiles() -> None:
    d = np.zeros((4, 3), np.int32)
    run_skipping(from_dlpack(d))
    assert (d == np.array([[0, 0, 0], [1, 0, 1], [3, 0, 3], [6, 0, 6]])).all()


# -- Python's control flow in schedules of a kernel ----------------------------------------------------------------


def captured(fill: Callable[[Any, Any], None]) -> list[str]:
    """The steps of a schedule of a ring that a kernel captures; ``fill`` gets the ring and a number of the kernel."""
    found: list[str] = []
    body = cute.jit(fill)

    @cute.kernel
    def kernel() -> None:
        t, _, _ = cute.arch.thread_idx()

        @ts.schedule
        def filled(ring: MemoryResource) -> None:
            body(ring, t)

        found.extend(step.label for step, _ in filled(MemoryResource(name="ring")).root.walk())

    @cute.jit
    def host() -> None:
        kernel().launch(grid=1, block=32)

    cute.compile(host)
    return found


def test_loops_and_branches_of_a_schedule_are_pythons() -> None:
    """They run while it is captured: three iterations record three steps, in a kernel too."""

    def fill(ring: Any, t: Any) -> None:
        bound = 4 if t > 3 else 2
        with ts.domain_loop(0, bound):
            pass
        for i in range(3):
            ring.acquire()
            if i == 1:
                ring.commit()
        n = 0
        while n < 2:
            ring.commit()
            n += 1

    expected = ["ring.acquire", "ring.acquire", "ring.commit", "ring.acquire", "ring.commit", "ring.commit"]
    assert captured(fill) == expected


def test_loops_behind_a_schedule_are_the_kernels() -> None:
    @cute.kernel
    def kernel(x: cute.Tensor) -> None:
        @ts.schedule
        def filled(ring: MemoryResource) -> None:
            ring.acquire()

        filled(MemoryResource(name="ring"))
        for i in range(4):
            x[i] = i

    @cute.jit
    def host(x: cute.Tensor) -> None:
        kernel(x).launch(grid=1, block=1)

    (made,) = cute.compile(host, np.zeros(4, np.int32)).kernels
    assert [op.opcode for op in made.body.walk()].count("for") == 1


def _loops(ring: Any, t: Any) -> None:
    for _ in range(t):
        ring.acquire()


def _branches(ring: Any, t: Any) -> None:
    if t > 3:
        ring.acquire()


def _turns(ring: Any, t: Any) -> None:
    while t > 3:
        t -= 1
        ring.acquire()


@pytest.mark.parametrize("fill", [_loops, _branches, _turns])
def test_a_schedule_decides_nothing_by_numbers_of_the_kernel(fill: Any) -> None:
    """One step would be recorded, whatever the number is."""
    with pytest.raises(
        StagingError, match=r"a step of the schedule 'filled' inside of a run-time \w+( loop)? at line \d+"
    ):
        captured(fill)
