"""Products of different shapes in one launch by pairs of blocks: the warp that loads and the warps that store change
their tensor maps when a cluster comes to another group."""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import cutlass.pipeline as pipeline
import cutlass.utils as utils
import cutlass.utils.blackwell_helpers as sm100_utils
import torch
from cutlass.cute.nvgpu import OperandMajorMode, cpasync, tcgen05
from cutlass.cute.runtime import from_dlpack
from cutlass.utils.gemm.sm100 import (
    epilogue_smem_copy_and_partition,
    epilogue_tmem_copy_and_partition,
    transform_partitioned_tensor_layout,
)

MAP_BYTES = 128


class GroupedGemm:
    """D[g] (M, N) = A[g] (M, K) * B[g] (N, K)."""

    epilogue_warps, mma_warp, load_warp = (0, 1, 2, 3), 4, 5
    ab_stages, acc_stages, c_stages, threads = 3, 2, 1, 32 * 6

    def __init__(self, mma_tiler_mn, cluster_shape_mn, use_2cta_instrs, mode):
        self.mma_tiler_mn, self.cluster_shape_mn, self.mode = mma_tiler_mn, cluster_shape_mn, mode
        self.use_2cta_instrs, self.acc_dtype = use_2cta_instrs, cutlass.Float32
        self.cta_group = tcgen05.CtaGroup.TWO if use_2cta_instrs else tcgen05.CtaGroup.ONE

    @cute.jit
    def __call__(
        self,
        a: cute.Tensor,
        b: cute.Tensor,
        c: cute.Tensor,
        groups: cutlass.Constexpr,
        shapes: cute.Tensor,
        strides: cute.Tensor,
        pointers: cute.Tensor,
        maps: cute.Tensor,
        total: cutlass.Constexpr,
        clusters: cutlass.Constexpr,
        stream: cuda.CUstream,
    ):
        self.ab_dtype, self.c_dtype = a.element_type, c.element_type
        self.c_layout = utils.LayoutEnum.from_tensor(c)
        tiled_mma = sm100_utils.make_trivial_tiled_mma(
            self.ab_dtype, OperandMajorMode.K, OperandMajorMode.K, self.acc_dtype, self.cta_group, self.mma_tiler_mn
        )
        ctas = cute.size(tiled_mma.thr_id.shape)
        k = cute.size(tiled_mma.shape_mnk, mode=[2]) * 4
        self.mma_tiler = (*self.mma_tiler_mn, k)
        self.cta_tile_shape_mnk = (self.mma_tiler[0] // ctas, self.mma_tiler[1], k)
        self.cluster_tile = (
            self.cta_tile_shape_mnk[0] * self.cluster_shape_mn[0],
            self.cta_tile_shape_mnk[1] * self.cluster_shape_mn[1],
            k,
        )
        self.cluster_layout_vmnk = cute.tiled_divide(
            cute.make_layout((*self.cluster_shape_mn, 1)), (tiled_mma.thr_id.shape,)
        )
        self.epi_tile = sm100_utils.compute_epilogue_tile_shape(
            self.cta_tile_shape_mnk, self.use_2cta_instrs, self.c_layout, self.c_dtype
        )
        a_smem = sm100_utils.make_smem_layout_a(tiled_mma, self.mma_tiler, self.ab_dtype, self.ab_stages)
        b_smem = sm100_utils.make_smem_layout_b(tiled_mma, self.mma_tiler, self.ab_dtype, self.ab_stages)
        c_smem = sm100_utils.make_smem_layout_epi(self.c_dtype, self.c_layout, self.epi_tile, self.c_stages)
        tma_a, ta = cute.nvgpu.make_tiled_tma_atom_A(
            sm100_utils.cluster_shape_to_tma_atom_A(self.cluster_shape_mn, tiled_mma.thr_id),
            a,
            cute.slice_(a_smem, (None, None, None, 0)),
            self.mma_tiler,
            tiled_mma,
            self.cluster_layout_vmnk.shape,
        )
        tma_b, tb = cute.nvgpu.make_tiled_tma_atom_B(
            sm100_utils.cluster_shape_to_tma_atom_B(self.cluster_shape_mn, tiled_mma.thr_id),
            b,
            cute.slice_(b_smem, (None, None, None, 0)),
            self.mma_tiler,
            tiled_mma,
            self.cluster_layout_vmnk.shape,
        )
        tma_c, tc = cpasync.make_tiled_tma_atom(
            cpasync.CopyBulkTensorTileS2GOp(), c, cute.slice_(c_smem, (None, None, 0)), self.epi_tile
        )
        copied = cute.size_in_bytes(self.ab_dtype, cute.slice_(a_smem, (None, None, None, 0)))
        copied += cute.size_in_bytes(self.ab_dtype, cute.slice_(b_smem, (None, None, None, 0)))
        self.num_tma_load_bytes = copied * ctas
        params = utils.PersistentTileSchedulerParams(
            (*self.cluster_shape_mn, cutlass.Int32(total)), (*self.cluster_shape_mn, 1)
        )
        grid = utils.StaticPersistentGroupTileScheduler.get_grid_shape(params, clusters)
        words = MAP_BYTES // 8 if self.mode == utils.TensorMapUpdateMode.SMEM else 0

        @cute.struct
        class SharedStorage:
            map_a: cute.struct.MemRange[cutlass.Int64, words]
            map_b: cute.struct.MemRange[cutlass.Int64, words]
            map_c: cute.struct.MemRange[cutlass.Int64, words]
            ab: cute.struct.MemRange[cutlass.Int64, self.ab_stages * 2]
            acc: cute.struct.MemRange[cutlass.Int64, self.acc_stages * 2]
            dealloc: cutlass.Int64
            holding: cutlass.Int32
            sC: cute.struct.Align[cute.struct.MemRange[self.c_dtype, cute.cosize(c_smem.outer)], 1024]
            sA: cute.struct.Align[cute.struct.MemRange[self.ab_dtype, cute.cosize(a_smem.outer)], 1024]
            sB: cute.struct.Align[cute.struct.MemRange[self.ab_dtype, cute.cosize(b_smem.outer)], 1024]

        self.shared_storage = SharedStorage
        self.kernel(
            tiled_mma, tma_a, ta, tma_b, tb, tma_c, tc, a_smem, b_smem, c_smem, params, groups, shapes, strides,
            pointers, maps,
        ).launch(grid=grid, block=[self.threads, 1, 1], cluster=(*self.cluster_shape_mn, 1), stream=stream)  # fmt: skip

    @cute.kernel
    def kernel(
        self,
        tiled_mma: cute.TiledMma,
        tma_a: cute.CopyAtom,
        ta: cute.Tensor,
        tma_b: cute.CopyAtom,
        tb: cute.Tensor,
        tma_c: cute.CopyAtom,
        tc: cute.Tensor,
        a_smem: cute.ComposedLayout,
        b_smem: cute.ComposedLayout,
        c_smem: cute.ComposedLayout,
        params: utils.PersistentTileSchedulerParams,
        groups: cutlass.Constexpr,
        shapes: cute.Tensor,
        strides: cute.Tensor,
        pointers: cute.Tensor,
        maps: cute.Tensor,
    ):
        warp_idx = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        tidx, _, _ = cute.arch.thread_idx()
        bidx, bidy, bidz = cute.arch.block_idx()
        grid = cute.arch.grid_dim()
        v = bidx % cute.size(tiled_mma.thr_id.shape)
        is_leader_cta = v == 0
        rank = cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster())
        in_cluster = self.cluster_layout_vmnk.get_flat_coord(rank)
        storage = utils.SmemAllocator().allocate(self.shared_storage)
        along_m, along_n = (cute.size(self.cluster_layout_vmnk.shape[mode]) for mode in (1, 2))
        ab_producer, ab_consumer = pipeline.PipelineTmaUmma.create(
            barrier_storage=storage.ab.data_ptr(),
            num_stages=self.ab_stages,
            producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, along_m + along_n - 1),
            tx_count=self.num_tma_load_bytes,
            cta_layout_vmnk=self.cluster_layout_vmnk,
            defer_sync=True,
        ).make_participants()
        acc_pipeline = pipeline.PipelineUmmaAsync.create(
            barrier_storage=storage.acc.data_ptr(),
            num_stages=self.acc_stages,
            producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
            consumer_group=pipeline.CooperativeGroup(
                pipeline.Agent.Thread, 32 * len(self.epilogue_warps) * (2 if self.use_2cta_instrs else 1)
            ),
            cta_layout_vmnk=self.cluster_layout_vmnk,
            defer_sync=True,
        )
        tmem = utils.TmemAllocator(
            storage.holding.ptr,
            barrier_for_retrieve=pipeline.NamedBarrier(barrier_id=2, num_threads=32 * 5),
            allocator_warp_id=self.epilogue_warps[0],
            is_two_cta=self.use_2cta_instrs,
            two_cta_tmem_dealloc_mbar_ptr=storage.dealloc.ptr,
        )
        pipeline.pipeline_init_arrive(cluster_shape_mn=self.cluster_layout_vmnk, is_relaxed=True)
        s_c = storage.sC.get_tensor(c_smem.outer, swizzle=c_smem.inner)
        s_a = storage.sA.get_tensor(a_smem.outer, swizzle=a_smem.inner)
        s_b = storage.sB.get_tensor(b_smem.outer, swizzle=b_smem.inner)
        mask_a = mask_b = None
        if cutlass.const_expr(along_n > 1 or self.use_2cta_instrs):
            mask_a = cpasync.create_tma_multicast_mask(self.cluster_layout_vmnk, in_cluster, mcast_mode=2)
        if cutlass.const_expr(along_m > 1 or self.use_2cta_instrs):
            mask_b = cpasync.create_tma_multicast_mask(self.cluster_layout_vmnk, in_cluster, mcast_mode=1)

        ga = cute.local_tile(ta, cute.slice_(self.mma_tiler, (None, 0, None)), (None, None, None))
        gb = cute.local_tile(tb, cute.slice_(self.mma_tiler, (0, None, None)), (None, None, None))
        gc = cute.local_tile(tc, cute.slice_(self.mma_tiler, (None, None, 0)), (None, None, None))
        thr_mma = tiled_mma.get_slice(v)
        a_layout = cute.make_layout(cute.slice_(self.cluster_layout_vmnk, (0, 0, None, 0)).shape)
        b_layout = cute.make_layout(cute.slice_(self.cluster_layout_vmnk, (0, None, 0, 0)).shape)
        tasa, taga = cpasync.tma_partition(
            tma_a, in_cluster[2], a_layout, cute.group_modes(s_a, 0, 3), cute.group_modes(thr_mma.partition_A(ga), 0, 3)
        )
        tbsb, tbgb = cpasync.tma_partition(
            tma_b, in_cluster[1], b_layout, cute.group_modes(s_b, 0, 3), cute.group_modes(thr_mma.partition_B(gb), 0, 3)
        )
        tcgc = transform_partitioned_tensor_layout(thr_mma.partition_C(gc))
        frag_a, frag_b = tiled_mma.make_fragment_A(s_a), tiled_mma.make_fragment_B(s_b)
        acc_shape = tiled_mma.partition_shape_C(self.mma_tiler[:2])
        acc_like = tiled_mma.make_fragment_C(cute.append(acc_shape, self.acc_stages))
        pipeline.pipeline_init_wait(cluster_shape_mn=self.cluster_layout_vmnk)

        block = bidz * grid[1] * grid[0] + bidy * grid[0] + bidx
        manager = utils.TensorMapManager(self.mode, MAP_BYTES)
        map_a, map_b, map_c = (manager.get_tensormap_ptr(maps[(block, i, None)].iterator) for i in range(3))
        in_shared = cutlass.const_expr(self.mode == utils.TensorMapUpdateMode.SMEM)
        shared_a, shared_b, shared_c = (m.data_ptr() for m in (storage.map_a, storage.map_b, storage.map_c))
        init_a, init_b, init_c = (shared_a, shared_b, shared_c) if in_shared else (map_a, map_b, map_c)
        helper = utils.GroupedGemmTileSchedulerHelper(
            groups, params, self.cluster_tile, utils.create_initial_search_state()
        )
        scheduler = utils.StaticPersistentTileScheduler.create(params, cute.arch.block_idx(), grid)
        work = scheduler.initial_work_tile_info()
        last = cutlass.Int32(-1)

        if warp_idx == self.load_warp:
            manager.init_tensormap_from_atom(tma_a, init_a, self.load_warp)
            manager.init_tensormap_from_atom(tma_b, init_b, self.load_warp)
            manager.fence_tensormap_initialization()
            while work.is_valid_tile:
                found = helper.delinearize_z(work.tile_idx, shapes)
                if found.group_idx != last:
                    m, n, k = found.problem_shape_m, found.problem_shape_n, found.problem_shape_k
                    real_a = self.operand(pointers, strides, found.group_idx, 0, (m, k), self.ab_dtype)
                    real_b = self.operand(pointers, strides, found.group_idx, 1, (n, k), self.ab_dtype)
                    manager.update_tensormap(
                        (real_a, real_b), (tma_a, tma_b), (map_a, map_b), self.load_warp, (shared_a, shared_b)
                    )
                    manager.fence_tensormap_update(map_a)
                    manager.fence_tensormap_update(map_b)
                    last = found.group_idx
                m_tile = found.cta_tile_idx_m // cute.size(tiled_mma.thr_id.shape)
                from_a, from_b = taga[None, m_tile, None, 0], tbgb[None, found.cta_tile_idx_n, None, 0]
                ab_producer.reset()
                token = ab_producer.try_acquire()
                for tile in cutlass.range(0, found.cta_tile_count_k, 1, unroll=1):
                    handle = ab_producer.acquire_and_advance(token)
                    cute.copy(
                        tma_a,
                        from_a[None, handle.count],
                        tasa[None, handle.index],
                        tma_bar_ptr=handle.barrier,
                        mcast_mask=mask_a,
                        tma_desc_ptr=manager.get_tensormap_ptr(map_a, cute.AddressSpace.generic),
                    )
                    cute.copy(
                        tma_b,
                        from_b[None, handle.count],
                        tbsb[None, handle.index],
                        tma_bar_ptr=handle.barrier,
                        mcast_mask=mask_b,
                        tma_desc_ptr=manager.get_tensormap_ptr(map_b, cute.AddressSpace.generic),
                    )
                    token = cutlass.Boolean(1)
                    if handle.count + 1 < found.cta_tile_count_k:
                        token = ab_producer.try_acquire()
                scheduler.advance_to_next_work()
                work = scheduler.get_current_work()
            ab_producer.tail()

        if warp_idx == self.mma_warp:
            tmem.wait_for_alloc()
            acc_all = cute.make_tensor(tmem.retrieve_ptr(self.acc_dtype), acc_like.layout)
            state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, self.acc_stages)
            while work.is_valid_tile:
                k_tiles, _ = helper.search_cluster_tile_count_k(work.tile_idx, shapes)
                if is_leader_cta:
                    acc = acc_all[(None, None, None, state.index)]
                    acc_pipeline.producer_acquire(state)
                    tiled_mma.set(tcgen05.Field.ACCUMULATE, False)
                    for _ in cutlass.range(k_tiles):
                        handle = ab_consumer.wait_and_advance()
                        for k_block in cutlass.range_constexpr(cute.size(frag_a, mode=[2])):
                            part = (None, None, k_block, handle.index)
                            cute.gemm(tiled_mma, acc, frag_a[part], frag_b[part], acc)
                            tiled_mma.set(tcgen05.Field.ACCUMULATE, True)
                        handle.release()
                    acc_pipeline.producer_commit(state)
                state.advance()
                scheduler.advance_to_next_work()
                work = scheduler.get_current_work()
            acc_pipeline.producer_tail(state)

        if warp_idx < self.mma_warp:
            manager.init_tensormap_from_atom(tma_c, init_c, self.epilogue_warps[0])
            manager.fence_tensormap_initialization()
            tmem.allocate(utils.get_num_tmem_alloc_cols(acc_like))
            tmem.wait_for_alloc()
            base = tmem.retrieve_ptr(self.acc_dtype)
            acc_all = transform_partitioned_tensor_layout(cute.make_tensor(base, acc_like.layout))
            t2r, acc_parts, acc_regs = epilogue_tmem_copy_and_partition(
                self, tidx, acc_all, tcgc, self.epi_tile, self.use_2cta_instrs
            )
            c_regs = cute.make_rmem_tensor(acc_regs.shape, self.c_dtype)
            r2s, c_from, c_to = epilogue_smem_copy_and_partition(self, t2r, c_regs, tidx, s_c)
            gc_parts = cute.flat_divide(tcgc, self.epi_tile)
            bsgc_s, bsgc_g = cpasync.tma_partition(
                tma_c, 0, cute.make_layout(1), cute.group_modes(s_c, 0, 2), cute.group_modes(gc_parts, 0, 2)
            )
            stores = pipeline.PipelineTmaStore.create(
                num_stages=self.c_stages,
                producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 32 * len(self.epilogue_warps)),
            )
            together = pipeline.NamedBarrier(barrier_id=1, num_threads=32 * len(self.epilogue_warps))
            state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, self.acc_stages)
            while work.is_valid_tile:
                found = helper.delinearize_z(work.tile_idx, shapes)
                if found.group_idx != last:
                    shape = (found.problem_shape_m, found.problem_shape_n)
                    real_c = self.operand(pointers, strides, found.group_idx, 2, shape, self.c_dtype)
                    manager.update_tensormap((real_c,), (tma_c,), (map_c,), self.epilogue_warps[0], (shared_c,))
                    if warp_idx == self.epilogue_warps[0]:
                        manager.fence_tensormap_update(map_c)
                    last = found.group_idx
                m_tile = found.cta_tile_idx_m // cute.size(tiled_mma.thr_id.shape)
                to = cute.group_modes(bsgc_g[(None, None, None, m_tile, found.cta_tile_idx_n, 0)], 1, 3)
                acc_pipeline.consumer_wait(state)
                parts = cute.group_modes(acc_parts[(None, None, None, None, None, state.index)], 3, 5)
                for i in cutlass.range(cute.size(parts, mode=[3])):
                    cute.copy(t2r, parts[(None, None, None, i)], acc_regs)
                    cute.arch.fence_view_async_tmem_load()
                    c_from.store(r2s.retile(acc_regs).load().to(self.c_dtype))
                    cute.copy(r2s, c_from, c_to[(None, None, None, 0)])
                    cute.arch.fence_proxy("async.shared", space="cta")
                    together.arrive_and_wait()
                    if warp_idx == self.epilogue_warps[0]:
                        cute.copy(
                            tma_c,
                            bsgc_s[(None, 0)],
                            to[(None, i)],
                            tma_desc_ptr=manager.get_tensormap_ptr(map_c, cute.AddressSpace.generic),
                        )
                        stores.producer_commit()
                        stores.producer_acquire()
                    together.arrive_and_wait()
                cute.arch.tcgen05_fence_before_thread_sync()
                acc_pipeline.consumer_release(state)
                state.advance()
                scheduler.advance_to_next_work()
                work = scheduler.get_current_work()
            tmem.relinquish_alloc_permit()
            together.arrive_and_wait()
            tmem.free(base)
            stores.producer_tail()

    @cute.jit
    def operand(self, pointers, strides, group, which: cutlass.Constexpr, shape, dtype: cutlass.Constexpr):
        pointer = cute.make_ptr(dtype, pointers[group, which], cute.AddressSpace.gmem, assumed_align=16)
        outer = cute.assume(strides[group, which], divby=8)
        return cute.make_tensor(pointer, cute.make_layout((*shape, cutlass.Int32(1)), stride=(outer, 1, 0)))


def run(mma_tiler_mn, cluster_shape_mn, use_2cta_instrs, mode, problems, clusters):
    made = []
    for m, n, k in problems:
        a, b = torch.randint(-2, 3, (m, k)), torch.randint(-2, 3, (n, k))
        made.append([a.half().cuda(), b.half().cuda(), torch.zeros(m, n, dtype=torch.float16, device="cuda")])
    shapes = torch.tensor([(*p, 1) for p in problems], dtype=torch.int32, device="cuda")
    strides = torch.tensor([[t.stride(0) for t in group] for group in made], dtype=torch.int32, device="cuda")
    pointers = torch.tensor([[t.data_ptr() for t in group] for group in made], dtype=torch.int64, device="cuda")
    tile_m = mma_tiler_mn[0] // (2 if use_2cta_instrs else 1) * cluster_shape_mn[0]
    tile_n = mma_tiler_mn[1] * cluster_shape_mn[1]
    total = sum(-(-m // tile_m) * -(-n // tile_n) for m, n, _ in problems)
    blocks = clusters * cluster_shape_mn[0] * cluster_shape_mn[1]
    maps = torch.zeros(blocks, 3, MAP_BYTES // 8, dtype=torch.int64, device="cuda")
    first = [torch.zeros(64, 64, 1, dtype=torch.float16, device="cuda") for _ in range(3)]
    tensors = [from_dlpack(t, assumed_align=16).mark_layout_dynamic(leading_dim=1) for t in first]
    stream = cuda.CUstream(torch.cuda.current_stream().cuda_stream)
    rest = [from_dlpack(t, assumed_align=16) for t in (shapes, strides, pointers, maps)]
    gemm = GroupedGemm(mma_tiler_mn, cluster_shape_mn, use_2cta_instrs, mode)
    compiled = cute.compile(gemm, *tensors, len(problems), *rest, total, clusters, stream)
    compiled(*tensors, *rest, stream)
    torch.cuda.synchronize()
    for a, b, d in made:
        assert torch.equal(d.float(), a.float() @ b.float().T)


if __name__ == "__main__":
    torch.manual_seed(0)
    problems = [(160, 72, 64), (64, 64, 200), (8, 136, 40)]
    run((128, 64), (1, 1), False, utils.TensorMapUpdateMode.GMEM, problems, 2)
    run((256, 64), (2, 1), True, utils.TensorMapUpdateMode.SMEM, problems, 2)
    print("PASS")
