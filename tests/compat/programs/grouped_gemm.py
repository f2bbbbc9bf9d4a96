"""Products of different shapes in one launch: each block changes its tensor maps when it comes to another group."""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import cutlass.pipeline as pipeline
import cutlass.utils as utils
import cutlass.utils.hopper_helpers as sm90_utils
import torch
from cutlass.cute.nvgpu import OperandMajorMode, cpasync, warpgroup
from cutlass.cute.runtime import from_dlpack

TILE = (64, 64, 64)
BYTES = 128  # of a tensor map


class GroupedGemm:
    def __init__(self, mode):
        self.mode, self.stages = mode, 2

    @cute.jit
    def __call__(
        self, a0: cute.Tensor, b0: cute.Tensor, d0: cute.Tensor, count: cutlass.Constexpr, shapes: cute.Tensor,
        strides: cute.Tensor, pointers: cute.Tensor, maps: cute.Tensor, total: cutlass.Constexpr,
        most: cutlass.Constexpr, stream: cuda.CUstream,
    ):
        row = utils.LayoutEnum.ROW_MAJOR
        a_staged = sm90_utils.make_smem_layout_a(row, TILE, a0.element_type, self.stages)
        b_staged = sm90_utils.make_smem_layout_b(row, TILE, b0.element_type, self.stages)
        load = cpasync.CopyBulkTensorTileG2SOp()
        tma_a, tA = cpasync.make_tiled_tma_atom(load, a0, cute.slice_(a_staged, (None, None, 0)), (TILE[0], TILE[2]))
        tma_b, tB = cpasync.make_tiled_tma_atom(load, b0, cute.slice_(b_staged, (None, None, 0)), (TILE[1], TILE[2]))
        mma = sm90_utils.make_trivial_tiled_mma(
            a0.element_type, b0.element_type, OperandMajorMode.K, OperandMajorMode.K, cutlass.Float32, (1, 1, 1),
            tiler_mn=(64, TILE[1]),
        )
        params = utils.PersistentTileSchedulerParams((1, 1, cutlass.Int32(total)), (1, 1, 1))
        grid = utils.StaticPersistentGroupTileScheduler.get_grid_shape(params, most)
        d_smem = sm90_utils.make_smem_layout_epi(d0.element_type, row, TILE[:2], 1)
        tma_d, tD = cpasync.make_tiled_tma_atom(
            cpasync.CopyBulkTensorTileS2GOp(), d0, cute.slice_(d_smem, (None, None, 0)), TILE[:2]
        )
        self.kernel(
            tma_a, tA, tma_b, tB, tma_d, tD, mma, a_staged, b_staged, d_smem, count, shapes, strides, pointers, maps,
            params, d0.element_type,
        ).launch(grid=grid, block=(128 + 32, 1, 1), stream=stream)

    @cute.kernel
    def kernel(
        self, tma_a: cute.CopyAtom, tA: cute.Tensor, tma_b: cute.CopyAtom, tB: cute.Tensor, tma_d: cute.CopyAtom,
        tD: cute.Tensor, mma: cute.TiledMma, a_staged: cute.ComposedLayout, b_staged: cute.ComposedLayout,
        d_smem: cute.ComposedLayout, count: cutlass.Constexpr, shapes: cute.Tensor, strides: cute.Tensor,
        pointers: cute.Tensor, maps: cute.Tensor, params: utils.PersistentTileSchedulerParams,
        d_dtype: cutlass.Constexpr,
    ):
        tidx, _, _ = cute.arch.thread_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        _, _, z = cute.arch.block_idx()
        smem = utils.SmemAllocator()
        map_words = smem.allocate_tensor(cutlass.Int64, cute.make_layout((BYTES // 8, 3)), byte_alignment=128)
        sA = smem.allocate_tensor(tma_a.value_type, a_staged.outer, 1024, swizzle=a_staged.inner)
        sB = smem.allocate_tensor(tma_b.value_type, b_staged.outer, 1024, swizzle=b_staged.inner)
        sD = smem.allocate_tensor(d_dtype, d_smem.outer, 1024, swizzle=d_smem.inner)
        one_stage = [cute.slice_(s, (None, None, 0)) for s in (a_staged, b_staged)]
        nbytes = sum(cute.size_in_bytes(tma_a.value_type, s) for s in one_stage)
        pipe = pipeline.PipelineTmaAsync.create(
            num_stages=self.stages, producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 4), tx_count=nbytes,
            barrier_storage=smem.allocate_array(cutlass.Int64, 2 * self.stages),
        )
        manager = utils.TensorMapManager(self.mode, BYTES)
        map_a = manager.get_tensormap_ptr(maps[(z, 0, None)].iterator)
        map_b = manager.get_tensormap_ptr(maps[(z, 1, None)].iterator)
        map_d = manager.get_tensormap_ptr(maps[(z, 2, None)].iterator)
        shared_a, shared_b, shared_d = (map_words[None, i].iterator for i in range(3))
        in_shared = cutlass.const_expr(self.mode == utils.TensorMapUpdateMode.SMEM)
        init_a, init_b, init_d = (shared_a, shared_b, shared_d) if in_shared else (map_a, map_b, map_d)
        helper = utils.GroupedGemmTileSchedulerHelper(count, params, TILE, utils.create_initial_search_state())
        scheduler = utils.StaticPersistentTileScheduler.create(params, cute.arch.block_idx(), cute.arch.grid_dim())
        work = scheduler.initial_work_tile_info()
        last = cutlass.Int32(-1)

        if warp == 4:
            manager.init_tensormap_from_atom(tma_a, init_a, 4)
            manager.init_tensormap_from_atom(tma_b, init_b, 4)
            manager.fence_tensormap_initialization()
            state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, self.stages)
            while work.is_valid_tile:
                found = helper.delinearize_z(work.tile_idx, shapes)
                if found.group_idx != last:
                    m, n, k = found.problem_shape_m, found.problem_shape_n, found.problem_shape_k
                    real_a = self.operand(pointers, strides, found.group_idx, 0, (m, k), tma_a.value_type)
                    real_b = self.operand(pointers, strides, found.group_idx, 1, (n, k), tma_b.value_type)
                    manager.update_tensormap((real_a, real_b), (tma_a, tma_b), (map_a, map_b), 4, (shared_a, shared_b))
                    manager.fence_tensormap_update(map_a)
                    manager.fence_tensormap_update(map_b)
                    last = found.group_idx
                gA = cute.local_tile(tA, (TILE[0], TILE[2]), (found.cta_tile_idx_m, None, 0))
                gB = cute.local_tile(tB, (TILE[1], TILE[2]), (found.cta_tile_idx_n, None, 0))
                one = cute.make_layout(1)
                tAsA, tAgA = cpasync.tma_partition(tma_a, 0, one, *(cute.group_modes(t, 0, 2) for t in (sA, gA)))
                tBsB, tBgB = cpasync.tma_partition(tma_b, 0, one, *(cute.group_modes(t, 0, 2) for t in (sB, gB)))
                for tile in cutlass.range(found.cta_tile_count_k, unroll=1):
                    pipe.producer_acquire(state)
                    barrier = pipe.producer_get_barrier(state)
                    generic_a = manager.get_tensormap_ptr(map_a, cute.AddressSpace.generic)
                    generic_b = manager.get_tensormap_ptr(map_b, cute.AddressSpace.generic)
                    cute.copy(tma_a, tAgA[(None, tile)], tAsA[(None, state.index)], tma_bar_ptr=barrier,
                              tma_desc_ptr=generic_a)
                    cute.copy(tma_b, tBgB[(None, tile)], tBsB[(None, state.index)], tma_bar_ptr=barrier,
                              tma_desc_ptr=generic_b)
                    state.advance()
                scheduler.advance_to_next_work()
                work = scheduler.get_current_work()
            pipe.producer_tail(state)
        else:
            if warp == 0:
                manager.init_tensormap_from_atom(tma_d, init_d, 0)
                manager.fence_tensormap_initialization()
            thr = mma.get_slice(tidx)
            tCrA = mma.make_fragment_A(mma.get_slice(0).partition_A(sA))
            tCrB = mma.make_fragment_B(mma.get_slice(0).partition_B(sB))
            acc = cute.make_rmem_tensor(thr.partition_shape_C(TILE[:2]), cutlass.Float32)
            r2s = cute.make_tiled_copy_C(
                sm90_utils.get_smem_store_op(utils.LayoutEnum.ROW_MAJOR, d_dtype, cutlass.Float32), mma
            )
            epilogue = pipeline.NamedBarrier(barrier_id=1, num_threads=128)
            state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, self.stages)
            while work.is_valid_tile:
                found = helper.delinearize_z(work.tile_idx, shapes)
                mma.set(warpgroup.Field.ACCUMULATE, False)
                for _ in cutlass.range(found.cta_tile_count_k, unroll=1):
                    pipe.consumer_wait(state)
                    warpgroup.fence()
                    for block in cutlass.range_constexpr(cute.size(tCrA, mode=[2])):
                        at = (None, None, block, state.index)
                        cute.gemm(mma, acc, tCrA[at], tCrB[at], acc)
                        mma.set(warpgroup.Field.ACCUMULATE, True)
                    warpgroup.commit_group()
                    warpgroup.wait_group(0)
                    pipe.consumer_release(state)
                    state.advance()
                if found.group_idx != last:
                    shape = (found.problem_shape_m, found.problem_shape_n)
                    real_d = self.operand(pointers, strides, found.group_idx, 2, shape, d_dtype)
                    manager.update_tensormap((real_d,), (tma_d,), (map_d,), 0, (shared_d,))
                    last = found.group_idx
                    if warp == 0:
                        manager.fence_tensormap_update(map_d)
                out = cute.make_rmem_tensor_like(acc, d_dtype)
                out.store(acc.load().to(d_dtype))
                cute.copy(r2s, r2s.retile(out), r2s.get_slice(tidx).partition_D(sD[None, None, 0]))
                cute.arch.fence_proxy("async.shared", space="cta")
                epilogue.arrive_and_wait()
                if warp == 0:
                    gD = cute.local_tile(tD, TILE[:2], (found.cta_tile_idx_m, found.cta_tile_idx_n, 0))
                    bSG_sD, bSG_gD = cpasync.tma_partition(
                        tma_d, 0, cute.make_layout(1), *(cute.group_modes(t, 0, 2) for t in (sD[None, None, 0], gD))
                    )
                    generic_d = manager.get_tensormap_ptr(map_d, cute.AddressSpace.generic)
                    cute.copy(tma_d, bSG_sD, bSG_gD, tma_desc_ptr=generic_d)
                    cute.arch.cp_async_bulk_commit_group()
                    cute.arch.cp_async_bulk_wait_group(0, read=True)
                epilogue.arrive_and_wait()
                scheduler.advance_to_next_work()
                work = scheduler.get_current_work()

    @cute.jit
    def operand(self, pointers, strides, group, which: cutlass.Constexpr, shape, dtype: cutlass.Constexpr):
        pointer = cute.make_ptr(dtype, pointers[group, which], cute.AddressSpace.gmem, assumed_align=16)
        outer = cute.assume(strides[group, which], divby=8)
        return cute.make_tensor(pointer, cute.make_layout((*shape, 1), stride=(outer, 1, 0)))


def run(mode):
    problems = [(96, 72, 64), (64, 64, 200), (8, 136, 40)]
    made = []
    for m, n, k in problems:
        a, b = torch.randint(-2, 3, (m, k)), torch.randint(-2, 3, (n, k))
        made.append([a.half().cuda(), b.half().cuda(), torch.zeros(m, n, dtype=torch.float16, device="cuda")])
    shapes = torch.tensor([(*p, 1) for p in problems], dtype=torch.int32, device="cuda")
    strides = torch.tensor([[t.stride(0) for t in group] for group in made], dtype=torch.int32, device="cuda")
    pointers = torch.tensor([[t.data_ptr() for t in group] for group in made], dtype=torch.int64, device="cuda")
    most = 3
    maps = torch.zeros(most, 3, BYTES // 8, dtype=torch.int64, device="cuda")
    total = sum(-(-m // TILE[0]) * -(-n // TILE[1]) for m, n, _ in problems)
    first = [torch.zeros(64, 64, 1, dtype=torch.float16, device="cuda") for _ in range(3)]
    tensors = [from_dlpack(t, assumed_align=16).mark_layout_dynamic(leading_dim=1) for t in first]
    stream = cuda.CUstream(torch.cuda.current_stream().cuda_stream)
    rest = [from_dlpack(t, assumed_align=16) for t in (shapes, strides, pointers, maps)]
    compiled = cute.compile(GroupedGemm(mode), *tensors, len(problems), *rest, total, most, stream)
    compiled(*tensors, *rest, stream)
    for a, b, d in made:
        torch.testing.assert_close(d.cpu().float(), a.cpu().float() @ b.cpu().float().T)


if __name__ == "__main__":
    for mode in (utils.TensorMapUpdateMode.GMEM, utils.TensorMapUpdateMode.SMEM):
        run(mode)
        print(mode)
    print("PASS")
