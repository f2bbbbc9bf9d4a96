"""Schedules of tasks whose stages are divided among lanes, or written in turns by two tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tests.compat.test_task_scheduling import Numbers, managed
from tilewright import cute, pipeline, sim
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ConstraintError
from tilewright.experimental import task_scheduling as ts
from tilewright.experimental.task_scheduling.memory import SmemAllocation, SmemAllocator
from tilewright.experimental.task_scheduling.resources import (
    MemoryResource,
    PipelineConfig,
    StageInfo,
    TaskLocalVariable,
    TileSchedulerConfig,
)
from tilewright.experimental.task_scheduling.task import Task


@dataclass(kw_only=True)
class Sums(MemoryResource):
    """Each lane's sum of what it has taken."""

    d: Any
    total: Any = None

    @ts.producer_work(work_attrs=ts.WorkAttr.AUXILIARY)
    def begin(self, stage_info: StageInfo) -> None:
        self.total = cutlass.Int32(0)

    @ts.producer_work
    def add(self, stage_info: StageInfo, item: Any) -> None:
        self.total = self.total + item

    @ts.producer_work
    @cute.jit
    def store(self, stage_info: StageInfo, *, of: cutlass.Constexpr[int] = 0) -> None:
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx()) - 1
        self.d[warp, cute.arch.lane_idx()] = self.total


@ts.schedule
def fills(ring: Numbers) -> None:
    with ts.domain_loop(0, 8, 1):
        ring.acquire()
        ring.put(times=1)
        ring.commit()


@ts.schedule
def takes(ring: Numbers, sums: Sums, first: int, step: int) -> None:
    sums.begin()
    with ts.domain_loop(first, 8, step):
        ring.wait()
        item, _ = ring.get()
        sums.add(item=item)
        ring.release()
    sums.store()


@cute.kernel
def laned(d: cute.Tensor, by_warps: cutlass.Constexpr[bool]) -> None:
    rows = cute.make_tensor(cute.arch.alloc_smem(cutlass.Int32, 128, 16), cute.make_layout((32, 4)))
    warp = pipeline.CooperativeGroup(pipeline.Agent.Thread, 32)
    config = PipelineConfig.create_async_async_pipeline_cfg(
        num_stages=4, producer_group=warp, consumer_group=warp, interleave_stride=(1, 1, 2, 2)
    )
    ring = Numbers(name="ring", rows=rows, pipeline_config=config)
    tasks = [Task([], [ring], 0, 1, schedule=fills(ring), name="fills")]
    if by_warps:
        sums = Sums(name="sums", d=d)
        tasks.append(Task([ring], [sums], 1, 2, schedule=takes(ring, sums, 0, 2), name="takes"))
        graph = {sums: [ring]}
    else:
        outs = [Sums(name=f"sums{lane}", d=d) for lane in (0, 1)]
        tasks += [
            Task([ring], [out], 1 + lane, 1, schedule=takes(ring, out, lane, 2), name=f"takes{lane}")
            for lane, out in enumerate(outs)
        ]
        graph = {out: [ring] for out in outs}
    manager = managed(tasks, graph)
    manager.setup_resources_and_tasks()
    manager.run()


@cute.jit
def run_laned(d: cute.Tensor, by_warps: cutlass.Constexpr[bool]) -> None:
    laned(d, by_warps).launch(grid=(1, 1, 1), block=(96, 1, 1))


@pytest.mark.parametrize("by_warps", [False, True])
def test_lanes_divide_the_stages_among_each_other(by_warps: bool) -> None:
    d = np.zeros((2, 32), np.int32)
    run_laned(from_dlpack(d), by_warps)
    assert (d == [[0 + 2 + 4 + 6], [1 + 3 + 5 + 7]][0:2]).all()


def test_lanes_that_do_not_fit_are_refused() -> None:
    one = pipeline.CooperativeGroup(pipeline.Agent.Thread)

    def config(stages: int, stride: Any, kind: str = "async_async", **more: Any) -> Any:
        make = getattr(PipelineConfig, f"create_{kind}_pipeline_cfg")
        return make(num_stages=stages, producer_group=one, consumer_group=one, interleave_stride=stride, **more)

    assert config(8, (1, 1, 4, 1), advance_on_wait=True).stride("wait") == 4
    for stages, stride, kind, words in (
        (4, 3, "async_async", "divides the 4 stages"),
        (8, (1, 1, 4, 1), "async_async", "needs advance_on_wait=True"),
        (4, 2, "umma_umma", "do not share acquire and commit and wait and release of a UmmaUmma"),
        (4, (2, 2, 1, 1), "umma_async", "do not share acquire and commit of a UmmaAsync"),
    ):
        with pytest.raises(ConstraintError, match=words):
            config(stages, stride, kind)
    ring = Numbers(name="ring", rows=None, pipeline_config=config(4, (1, 1, 2, 2)))
    sums = Sums(name="sums", d=None)
    tasks = [
        Task([], [ring], 0, 1, schedule=fills(ring), name="fills"),
        Task([ring], [sums], 1, 3, schedule=takes(ring, sums, 0, 1), name="takes"),
    ]
    with pytest.raises(ConstraintError, match=r"'takes' has ring.wait, whose stages are divided among 2 lanes"):
        managed(tasks, {sums: [ring]})
    with pytest.raises(ConstraintError, match=r"do not come to an end: task 'fills' at ring.acquire"):
        managed([tasks[0], Task([ring], [sums], 1, 1, schedule=takes(ring, sums, 0, 2), name="even")], {sums: [ring]})


@dataclass(kw_only=True)
class PingPong(MemoryResource):
    """Numbers that two tasks change in turns, each in place."""

    rows: Any
    d: Any
    item: Any = TaskLocalVariable.uninitialized()

    def __post_init__(self) -> None:
        self.item = TaskLocalVariable(dtype=cutlass.Int32, default=cutlass.Int32(0))

    @ts.consumer_work(returns=item)
    @cute.jit
    def read_current(self, stage_info: StageInfo) -> Any:
        found = self.rows[cute.arch.lane_idx(), stage_info.stage_idx]
        if stage_info.loop_offset < 2:  # nothing is in this buffer yet
            found = cutlass.Int32(1)
        return found

    @ts.producer_work
    @cute.jit
    def write_next(self, stage_info: StageInfo, cur: Any) -> None:
        self.rows[cute.arch.lane_idx(), stage_info.stage_idx] = 2 * cur

    @ts.producer_work
    @cute.jit
    def add_one(self, stage_info: StageInfo) -> None:
        at = cute.arch.lane_idx(), stage_info.stage_idx
        self.rows[at] = self.rows[at] + 1
        self.d[at] = self.rows[at]


@cute.kernel
def in_turns(d: cute.Tensor) -> None:
    rows = cute.make_tensor(cute.arch.alloc_smem(cutlass.Int32, 64, 16), cute.make_layout((32, 2)))
    warp = pipeline.CooperativeGroup(pipeline.Agent.Thread, 32)
    config = PipelineConfig.create_async_async_pipeline_cfg(num_stages=2, producer_group=warp, consumer_group=warp)
    both = PingPong(name="both", rows=rows, d=d, pipeline_config=config)

    @ts.schedule
    def doubles(both: PingPong) -> None:
        with ts.domain_loop(0, 6, 1):
            both.acquire()
            cur = both.read_current()
            both.write_next(cur=cur)
            both.commit()

    @ts.schedule
    def adds(both: PingPong) -> None:
        with ts.domain_loop(0, 6, 1):
            both.wait()
            both.add_one()
            both.release()

    manager = managed(
        [
            Task([], [both], 0, 1, schedule=doubles(both), name="doubles"),
            Task([both], [], 1, 1, schedule=adds(both), name="adds"),
        ],
        {both: [both]},
    )
    manager.setup_resources_and_tasks()
    manager.run()


@cute.jit
def run_in_turns(d: cute.Tensor) -> None:
    in_turns(d).launch(grid=(1, 1, 1), block=(64, 1, 1))


def test_two_tasks_change_a_buffer_in_turns() -> None:
    d = np.zeros((32, 2), np.int32)
    run_in_turns(from_dlpack(d))
    assert (d == 15).all(), "three times doubled and one more, from 1 on"


@dataclass(kw_only=True)
class Pairs(MemoryResource):
    """A vector that goes through the domain loop, and the bounds of that loop before, in and behind it."""

    d: Any
    pair: Any = TaskLocalVariable.uninitialized()

    def __post_init__(self) -> None:
        self.pair = TaskLocalVariable(
            dtype=cutlass.Vector, default_factory=lambda: cutlass.Vector.from_elements((1, 2), cutlass.Int32)
        )

    @ts.consumer_work(returns=pair)
    def numbers(self, stage_info: StageInfo) -> Any:
        at = stage_info.loop_offset
        return cutlass.Vector.from_elements((at, at * stage_info.loop_step), cutlass.Int32)

    @ts.producer_work(work_attrs=ts.WorkAttr.AUXILIARY)
    def note(self, stage_info: StageInfo, at: int) -> None:
        self.d[at] = stage_info.loop_start * 100 + stage_info.loop_end

    @ts.producer_work
    def store(self, stage_info: StageInfo, pair: Any) -> None:
        for i in range(2):
            self.d[i] = pair[i]


@cute.kernel
def with_pairs(d: cute.Tensor, count: cutlass.Int32) -> None:
    pairs = Pairs(name="pairs", d=d)

    @ts.schedule
    def last(pairs: Pairs) -> None:
        pairs.note(at=2)
        with ts.domain_loop(3, count, 2):
            pair = pairs.numbers()
        pairs.store(pair=pair)
        pairs.note(at=3)

    manager = managed([Task([], [pairs], 0, 1, schedule=last(pairs))], {pairs: []})
    manager.setup_resources_and_tasks()
    manager.run()


def test_a_vector_goes_through_a_loop_with_its_bounds() -> None:
    @cute.jit
    def host(d: cute.Tensor, count: cutlass.Int32) -> None:
        with_pairs(d, count).launch(grid=(1, 1, 1), block=(32, 1, 1))

    for count, pair in ((8, [7, 14]), (3, [1, 2])):
        d = np.zeros(4, np.int32)
        with sim.options(check="none"):  # each lane writes the same
            host(from_dlpack(d), count)
        assert d.tolist() == [*pair, 300 + count, 300 + count]


def test_allocations_and_schedulers_by_their_names() -> None:
    allocator, box = SmemAllocator(), Pairs(name="box", d=None)
    one = pipeline.CooperativeGroup(pipeline.Agent.Thread)
    box.pipeline_config = PipelineConfig.create_async_async_pipeline_cfg(
        num_stages=3, producer_group=one, consumer_group=one, producer_op=pipeline.PipelineOp.AsyncThread
    )
    allocator.add_resource(box)
    assert SmemAllocation("flag", dtype=cutlass.Int64).size == 8 and allocator.barrier_smem_bytes == 48
    params = cutlass.utils.PersistentTileSchedulerParams((4, 2, 1), (1, 1, 1))
    dealt = TileSchedulerConfig.create_static_persistent_tile_scheduler_params(tile_scheduler_params=params)
    assert dealt.tile_scheduler_params is params and dealt.response_ptr is None
    with pytest.raises(ConstraintError, match="a default, or a default_factory"):
        TaskLocalVariable(default=1, default_factory=int)
