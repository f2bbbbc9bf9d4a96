"""A persistent GEMM for sm_100 whose warps are tasks with checked schedules (``cutlass.experimental.task_scheduling``):
tiles dealt out in advance or by cluster launch control, and operands whose pipelines share a barrier."""

import argparse
from dataclasses import dataclass, field

import cutlass
import cutlass.cute as cute
import cutlass.experimental.cuda as cuda
import cutlass.pipeline as pipeline
import cutlass.utils as utils
import torch
from cutlass.cute.runtime import from_dlpack
from cutlass.experimental import primitives as prims
from cutlass.experimental.task_scheduling.enums import PipelineGroupMode, WorkAttr
from cutlass.experimental.task_scheduling.memory import (
    SmemAllocation,
    SmemAllocator,
    TmemAllocation,
    TmemAllocator,
)
from cutlass.experimental.task_scheduling.resources import (
    MemoryResource,
    PipelineConfig,
    PipelineGroup,
    StageInfo,
    TaskLocalVariable,
    TileSchedulerConfig,
    WorkQueue,
    consumer_work,
    producer_work,
)
from cutlass.experimental.task_scheduling.schedule_builder import domain_loop, schedule, work_tile_loop
from cutlass.experimental.task_scheduling.task import Task
from cutlass.experimental.task_scheduling.task_manager import TaskManager

TILE_M, TILE_N, TILE_K, STAGES = 128, 64, 64, 3
PART = 32  # columns that a thread loads at once


@dataclass(kw_only=True)
class OperandsInGlobal(MemoryResource):
    """Which tile is loaded next."""

    coord_k: cutlass.Constexpr[TaskLocalVariable] = TaskLocalVariable.uninitialized()
    coord_m: cutlass.Constexpr[TaskLocalVariable] = TaskLocalVariable.uninitialized()
    coord_n: cutlass.Constexpr[TaskLocalVariable] = TaskLocalVariable.uninitialized()

    def __post_init__(self) -> None:
        self.coord_k, self.coord_m, self.coord_n = (
            TaskLocalVariable(dtype=cutlass.Int32, default=cutlass.Int32(0), docs=f"first element along {mode}")
            for mode in ("K", "M", "N")
        )

    @consumer_work(returns=(coord_k, coord_m, coord_n))
    @cute.jit
    def compute_coords(self, stage_info: StageInfo):
        m, n, _ = stage_info.work_tile.tile_idx
        return stage_info.loop_offset * TILE_K, m * TILE_M, n * TILE_N


@dataclass(kw_only=True)
class OperandInShared(MemoryResource):
    """The ring of tiles of A or B."""

    tensor_map: cuda.TensorMap
    rows: int
    desc: cutlass.Constexpr[TaskLocalVariable] = TaskLocalVariable.uninitialized()

    def __post_init__(self) -> None:
        self.desc = TaskLocalVariable(dtype=cutlass.Int64, docs="descriptor of the stage")
        self._alloc = SmemAllocation(self.name, dtype=cutlass.Float16, count=STAGES * self.rows * TILE_K, alignment=1024)

    def get_smem_requirements(self):
        return [self._alloc]

    @cute.jit
    def stage(self, stage_info: StageInfo):
        whole = cutlass.Array(
            stage_info.context.smem_base.subview(self._alloc.offset), STAGES * self.rows * TILE_K, dtype=cutlass.Float16
        )
        return whole.subview(stage_info.stage_idx * self.rows * TILE_K)

    @producer_work
    @cute.jit
    def tma_load(self, stage_info: StageInfo, coord_k, coord_row):
        if prims.elect_sync():
            prims.cp_async_bulk_tensor_shared_cta_global(
                self.stage(stage_info), self.tensor_map.get_ptr(), (coord_k, coord_row), stage_info.barrier
            )

    @consumer_work(returns=desc)
    @cute.jit
    def build_desc(self, stage_info: StageInfo):
        return prims.Tcgen05SmemDesc.build(
            self.stage(stage_info), leading_byte_offset=16, stride_byte_offset=1024,
            layout=prims.Tcgen05SmemSwizzle.SWIZZLE_128B,
        )


@dataclass(kw_only=True)
class SumsInTensorMemory(MemoryResource):
    """Two tiles of accumulators."""

    scale_d: cutlass.Boolean = field(init=False, default=None)
    values: cutlass.Constexpr[TaskLocalVariable] = TaskLocalVariable.uninitialized()

    def __post_init__(self) -> None:
        self.values = TaskLocalVariable(docs="a thread's part of the sums")
        self._alloc = TmemAllocation("sums", 2 * TILE_N)

    def get_tmem_requirements(self):
        return [self._alloc]

    @cute.jit
    def stage(self, stage_info: StageInfo):
        return stage_info.context.tmem_ptr_i32.load() + self._alloc.offset + stage_info.stage_idx * TILE_N

    @producer_work(work_attrs=WorkAttr.AUXILIARY)
    @cute.jit
    def init_work_tile_state(self, stage_info: StageInfo):
        self.scale_d = False

    @producer_work
    @cute.jit
    def mma(self, stage_info: StageInfo, *, desc_a, desc_b):
        idesc = prims.Tcgen05InstrDesc.build(
            c_dtype=cutlass.Float32, a_dtype=cutlass.Float16, b_dtype=cutlass.Float16, m_dim=TILE_M, n_dim=TILE_N
        )
        sums = prims.make_tmem_ptr(self.stage(stage_info), cutlass.Float32)
        for step in cutlass.range_constexpr(TILE_K // 16):
            if prims.elect_sync():
                prims.tcgen05_mma(
                    prims.Tcgen05MMAKind.F16, prims.CTAGroup.CTA_1, sums, desc_a + 2 * step, desc_b + 2 * step, idesc,
                    self.scale_d,
                )
            self.scale_d = True

    @consumer_work(returns=values)
    @cute.jit
    def load_part(self, stage_info: StageInfo, *, part: cutlass.Constexpr[int]):
        lanes = prims.TmemAddr.from_row_col(cute.arch.make_warp_uniform(cute.arch.warp_idx()) * 32, 0)
        place = prims.make_tmem_ptr(self.stage(stage_info) + lanes + part * PART, cutlass.Float32)
        found = prims.tcgen05_ld("32x32b", place, num=PART)
        prims.tcgen05_wait(kind=prims.Tcgen05Wait.LOAD)
        return found


@dataclass(kw_only=True)
class ResultInGlobal(MemoryResource):
    d: cute.Tensor

    @producer_work
    @cute.jit
    def store_part(self, stage_info: StageInfo, *, values, part: cutlass.Constexpr[int]):
        tidx, _, _ = cute.arch.thread_idx()
        m, n, _ = stage_info.work_tile.tile_idx
        out = cutlass.make_array_view(self.d)
        for i in cutlass.range_constexpr(PART):
            out[m * TILE_M + tidx, n * TILE_N + part * PART + i] = values[i]


@cute.kernel
def gemm_kernel(
    map_a: cutlass.GridConstant[cuda.TensorMap],
    map_b: cutlass.GridConstant[cuda.TensorMap],
    d: cute.Tensor,
    tiles: cutlass.Constexpr,
    k_tiles: cutlass.Constexpr[int],
    DYNAMIC: cutlass.Constexpr[bool],
    GROUPED: cutlass.Constexpr[bool],
):
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    one = pipeline.CooperativeGroup(pipeline.Agent.Thread)
    threads = pipeline.CooperativeGroup(pipeline.Agent.Thread, 128)

    def ring(rows):
        return PipelineConfig.create_tma_umma_pipeline_cfg(
            num_stages=STAGES, num_bytes=2 * rows * TILE_K, producer_group=one, consumer_group=one
        )

    gmem = OperandsInGlobal(name="gmem")
    smem_a = OperandInShared(name="smem_a", tensor_map=map_a, rows=TILE_M, pipeline_config=ring(TILE_M))
    smem_b = OperandInShared(name="smem_b", tensor_map=map_b, rows=TILE_N, pipeline_config=ring(TILE_N))
    sums = SumsInTensorMemory(
        name="sums",
        pipeline_config=PipelineConfig.create_umma_async_pipeline_cfg(
            num_stages=2, producer_group=one, consumer_group=threads
        ),
    )
    result = ResultInGlobal(name="result", d=d)
    if cutlass.const_expr(DYNAMIC):
        answer = cutlass.Array(cutlass.Int32, 4, space=cutlass.AddressSpace.smem, alignment=16)
        wq = WorkQueue(
            name="wq",
            tile_scheduler_config=TileSchedulerConfig.create_clc_dynamic_persistent_tile_scheduler_params(
                utils.ClcDynamicPersistentTileSchedulerParams(tiles), clc_response_ptr=answer
            ),
            pipeline_config=PipelineConfig.create_clc_fetch_async_pipeline_cfg(
                num_stages=1, producer_group=one,
                consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 7 * 32),
            ),
        )
    else:
        wq = WorkQueue(
            name="wq",
            tile_scheduler_config=TileSchedulerConfig.create_static_persistent_tile_scheduler_params(
                utils.PersistentTileSchedulerParams(tiles)
            ),
        )
    group = None
    if cutlass.const_expr(GROUPED):
        group = PipelineGroup(name="ab", members=[smem_a, smem_b], mode=PipelineGroupMode.Merge)

    allocator, tmem = SmemAllocator(), TmemAllocator()
    for resource in (smem_a, smem_b):
        allocator.add_resource(resource)
    slot = allocator.add_tmem_ptr(SmemAllocation("tmem_ptr", dtype=cutlass.Int32, count=1, alignment=4))
    tmem.add_resource(sums)
    allocator.compute_layout()
    tmem.compute_layout()

    def next_tile(queue):
        queue.try_wait()
        queue.wait()
        queue.get_and_advance_work_tile()
        queue.release()

    @schedule
    def load_schedule(gmem, smem_a, smem_b, wq):
        with work_tile_loop(wq):
            with domain_loop(0, k_tiles, 1):
                coord_k, coord_m, coord_n = gmem.compute_coords()
                smem_a.try_acquire()
                smem_a.acquire()
                smem_a.tma_load(coord_k=coord_k, coord_row=coord_m)
                smem_a.commit()
                smem_b.try_acquire()
                smem_b.acquire()
                smem_b.tma_load(coord_k=coord_k, coord_row=coord_n)
                smem_b.commit()
            next_tile(wq)

    @schedule
    def mma_schedule(smem_a, smem_b, sums, wq):
        with work_tile_loop(wq):
            sums.init_work_tile_state()
            sums.acquire()
            with domain_loop(0, k_tiles, 1):
                smem_a.wait()
                smem_b.wait()
                desc_a = smem_a.build_desc()
                desc_b = smem_b.build_desc()
                sums.mma(desc_a=desc_a, desc_b=desc_b)
                if group is None:
                    smem_a.release()
                    smem_b.release()
                else:
                    group.release()
            sums.commit()
            next_tile(wq)

    @schedule
    def store_schedule(sums, result, wq):
        with work_tile_loop(wq):
            sums.wait()
            for part in range(TILE_N // PART):
                values = sums.load_part(part=part)
                result.store_part(values=values, part=part)
            sums.release()
            next_tile(wq)

    @schedule
    def fetch_schedule(wq):
        with work_tile_loop(wq):
            wq.try_acquire()
            wq.acquire()
            wq.fetch_work_tile()
            wq.commit()
            next_tile(wq)

    tasks = [
        Task([gmem, wq], [smem_a, smem_b], 5, 1, schedule=load_schedule(gmem, smem_a, smem_b, wq), name="load"),
        Task([smem_a, smem_b, wq], [sums], 4, 1, schedule=mma_schedule(smem_a, smem_b, sums, wq), name="mma"),
        Task([sums, wq], [result], 0, 4, schedule=store_schedule(sums, result, wq), name="store"),
    ]
    if cutlass.const_expr(DYNAMIC):
        tasks.append(Task([wq], [wq], 6, 1, schedule=fetch_schedule(wq), name="fetch"))
    manager = TaskManager(
        tasks=tasks,
        resource_dependency_graph={
            smem_a: [gmem, wq], smem_b: [gmem, wq], sums: [smem_a, smem_b, wq], result: [sums, wq],
        },
        smem_allocator=allocator, tmem_allocator=tmem, verbose=False,
    )
    manager.setup_resources_and_tasks()
    place = allocator.get(slot)
    if warp == 4:
        prims.tcgen05_alloc(place, 2 * TILE_N, group=prims.CTAGroup.CTA_1)
        prims.tcgen05_relinquish_alloc_permit(group=prims.CTAGroup.CTA_1)
    prims.tcgen05_fence(prims.Tcgen05Fence.BEFORE_THREAD_SYNC)
    prims.barrier_cta_sync(0)
    prims.tcgen05_fence(prims.Tcgen05Fence.AFTER_THREAD_SYNC)
    manager.run()
    prims.tcgen05_fence(prims.Tcgen05Fence.BEFORE_THREAD_SYNC)
    prims.barrier_cta_sync(0)
    if warp == 4:
        prims.tcgen05_fence(prims.Tcgen05Fence.AFTER_THREAD_SYNC)
        base = prims.make_tmem_ptr(place.load(), cutlass.Float32)
        prims.tcgen05_dealloc(base, 2 * TILE_N, group=prims.CTAGroup.CTA_1)


@cute.jit
def gemm(
    a: cute.Tensor, b: cute.Tensor, d: cute.Tensor, DYNAMIC: cutlass.Constexpr[bool], GROUPED: cutlass.Constexpr[bool]
):
    how = {"stride_order": (1, 0), "swizzle": cuda.TensorMapSwizzle.s128b}
    map_a = cuda.create_tensor_map_tiled_from_view(a, box_dims=(TILE_M, TILE_K), **how)
    map_b = cuda.create_tensor_map_tiled_from_view(b, box_dims=(TILE_N, TILE_K), **how)
    tiles = (cute.size(a, mode=[0]) // TILE_M, cute.size(b, mode=[0]) // TILE_N, 1)
    if cutlass.const_expr(DYNAMIC):
        grid = utils.ClcDynamicPersistentTileSchedulerParams(tiles).get_grid_shape()
    else:
        grid = utils.PersistentTileSchedulerParams(tiles).get_grid_shape(3)
    gemm_kernel(map_a, map_b, d, tiles, cute.size(a, mode=[1]) // TILE_K, DYNAMIC, GROUPED).launch(
        grid=grid, block=(7 * 32, 1, 1)
    )


def run(m: int, n: int, k: int, dynamic: bool, grouped: bool) -> None:
    torch.manual_seed(1)
    a, b = (torch.randint(-3, 4, (rows, k), device="cuda").half() for rows in (m, n))
    d = torch.zeros(m, n, device="cuda")
    gemm(*(from_dlpack(x, assumed_align=16) for x in (a, b, d)), dynamic, grouped)
    torch.testing.assert_close(d, a.float() @ b.float().T, atol=0, rtol=0)
    print(f"{m}x{n}x{k} dynamic={dynamic} grouped={grouped}: PASS")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--mnk", type=lambda text: [int(x) for x in text.split(",")], default=[256, 256, 256])
    arguments = parser.parse_args()
    for dynamic, grouped in ((False, False), (True, False), (False, True)):
        run(*arguments.mnk, dynamic, grouped)
