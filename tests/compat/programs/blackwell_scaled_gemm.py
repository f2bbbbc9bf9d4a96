"""Batches of D = alpha A B + beta C with an epilogue of its own: a warp loads A and B, another one C, one multiplies, and
four scale and store by TMA, two stages of accumulators deep; tiles are dealt out by cluster launch control."""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import cutlass.pipeline as pipeline
import cutlass.utils as utils
import cutlass.utils.blackwell_helpers as sm100_utils
import torch
from cutlass.cute.nvgpu import cpasync, tcgen05
from cutlass.cute.runtime import from_dlpack


class ScaledGemm:
    """D (M, N, L) = alpha A (M, K, L) * B (N, K, L) + beta C (M, N, L)."""

    epilogue_warps = (0, 1, 2, 3)
    mma_warp, load_warp, load_c_warp, schedule_warp = 4, 5, 6, 7
    ab_stages, acc_stages, c_stages, d_stages = 3, 2, 2, 2

    def __init__(self, mma_tiler_mn, cluster_shape_mn, use_2cta_instrs):
        self.mma_tiler_mn, self.cluster_shape_mn = mma_tiler_mn, cluster_shape_mn
        self.use_2cta_instrs, self.acc_dtype = use_2cta_instrs, cutlass.Float32
        self.cta_group = tcgen05.CtaGroup.TWO if use_2cta_instrs else tcgen05.CtaGroup.ONE
        self.threads = 32 * 8

    @cute.jit
    def __call__(
        self,
        a: cute.Tensor,
        b: cute.Tensor,
        c: cute.Tensor,
        d: cute.Tensor,
        alpha: cutlass.Float32,
        beta: cutlass.Float32,
        stream: cuda.CUstream,
    ):
        self.c_dtype, self.c_layout = c.element_type, utils.LayoutEnum.from_tensor(c)
        self.d_dtype, self.d_layout = d.element_type, utils.LayoutEnum.from_tensor(d)
        tiled_mma = sm100_utils.make_trivial_tiled_mma(
            a.element_type,
            b.element_type,
            utils.LayoutEnum.from_tensor(a).mma_major_mode(),
            utils.LayoutEnum.from_tensor(b).mma_major_mode(),
            self.acc_dtype,
            self.cta_group,
            self.mma_tiler_mn,
        )
        k = cute.size(tiled_mma.shape_mnk, mode=[2]) * 4
        self.mma_tiler = (*self.mma_tiler_mn, k)
        self.cta_tile_shape_mnk = (self.mma_tiler[0] // cute.size(tiled_mma.thr_id.shape), self.mma_tiler[1], k)
        self.cluster_layout_vmnk = cute.tiled_divide(
            cute.make_layout((*self.cluster_shape_mn, 1)), (tiled_mma.thr_id.shape,)
        )
        self.epi_tile = sm100_utils.compute_epilogue_tile_shape(
            self.cta_tile_shape_mnk,
            self.use_2cta_instrs,
            self.d_layout,
            self.d_dtype,
            layout_c=self.c_layout,
            elem_ty_c=self.c_dtype,
        )
        a_smem = sm100_utils.make_smem_layout_a(tiled_mma, self.mma_tiler, a.element_type, self.ab_stages)
        b_smem = sm100_utils.make_smem_layout_b(tiled_mma, self.mma_tiler, b.element_type, self.ab_stages)
        c_smem = sm100_utils.make_smem_layout_epi(self.c_dtype, self.c_layout, self.epi_tile, self.c_stages)
        d_smem = sm100_utils.make_smem_layout_epi(self.d_dtype, self.d_layout, self.epi_tile, self.d_stages)
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
        c_stage, d_stage = cute.slice_(c_smem, (None, None, 0)), cute.slice_(d_smem, (None, None, 0))
        tma_c, tc = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), c, c_stage, self.epi_tile)
        tma_d, td = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), d, d_stage, self.epi_tile)
        self.num_c_bytes = cute.size_in_bytes(self.c_dtype, c_stage)
        copied = cute.size_in_bytes(a.element_type, cute.slice_(a_smem, (None, None, None, 0)))
        copied += cute.size_in_bytes(b.element_type, cute.slice_(b_smem, (None, None, None, 0)))
        self.num_tma_load_bytes = copied * cute.size(tiled_mma.thr_id.shape)
        tiles = cute.zipped_divide(d, self.cta_tile_shape_mnk[:2])
        params = utils.ClcDynamicPersistentTileSchedulerParams(
            (*cute.get(tiles.shape, mode=[1]),), (*self.cluster_shape_mn, 1)
        )
        grid = utils.ClcDynamicPersistentTileScheduler.get_grid_shape(params)

        @cute.struct
        class SharedStorage:
            ab: cute.struct.MemRange[cutlass.Int64, self.ab_stages * 2]
            acc: cute.struct.MemRange[cutlass.Int64, self.acc_stages * 2]
            dealloc: cutlass.Int64
            holding: cutlass.Int32
            work: cute.struct.MemRange[cutlass.Int64, 2]
            loaded_c: cute.struct.MemRange[cutlass.Int64, self.c_stages * 2]
            answer: cute.struct.Align[cute.struct.MemRange[cutlass.Int32, 4], 16]
            sD: cute.struct.Align[cute.struct.MemRange[self.d_dtype, cute.cosize(d_smem.outer)], 1024]
            sC: cute.struct.Align[cute.struct.MemRange[self.c_dtype, cute.cosize(c_smem.outer)], 1024]
            sA: cute.struct.Align[cute.struct.MemRange[a.element_type, cute.cosize(a_smem.outer)], 1024]
            sB: cute.struct.Align[cute.struct.MemRange[b.element_type, cute.cosize(b_smem.outer)], 1024]

        self.shared_storage = SharedStorage
        self.kernel(
            tiled_mma, tma_a, ta, tma_b, tb, tma_c, tc, tma_d, td, a_smem, b_smem, c_smem, d_smem, alpha, beta, params
        ).launch(grid=grid, block=[self.threads, 1, 1], cluster=(*self.cluster_shape_mn, 1), stream=stream)

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
        tma_d: cute.CopyAtom,
        td: cute.Tensor,
        a_smem: cute.ComposedLayout,
        b_smem: cute.ComposedLayout,
        c_smem: cute.ComposedLayout,
        d_smem: cute.ComposedLayout,
        alpha: cutlass.Float32,
        beta: cutlass.Float32,
        params: utils.ClcDynamicPersistentTileSchedulerParams,
    ):
        warp_idx = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        tidx, _, _ = cute.arch.thread_idx()
        bidx, _, _ = cute.arch.block_idx()
        v = bidx % cute.size(tiled_mma.thr_id.shape)
        is_leader_cta = v == 0
        rank = cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster())
        in_cluster = self.cluster_layout_vmnk.get_flat_coord(rank)
        smem = utils.SmemAllocator()
        storage = smem.allocate(self.shared_storage)
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
        c_producer, c_consumer = pipeline.PipelineTmaAsync.create(
            barrier_storage=storage.loaded_c.data_ptr(),
            num_stages=self.c_stages,
            producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, len(self.epilogue_warps)),
            tx_count=self.num_c_bytes,
            defer_sync=True,
        ).make_participants()
        work_pipeline = pipeline.PipelineClcFetchAsync.create(
            barrier_storage=storage.work.data_ptr(),
            num_stages=1,
            producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
            consumer_group=pipeline.CooperativeGroup(
                pipeline.Agent.Thread, self.threads * cute.size(self.cluster_layout_vmnk)
            ),
            tx_count=16,
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
        s_d = storage.sD.get_tensor(d_smem.outer, swizzle=d_smem.inner)
        s_a = storage.sA.get_tensor(a_smem.outer, swizzle=a_smem.inner)
        s_b = storage.sB.get_tensor(b_smem.outer, swizzle=b_smem.inner)
        mask_a = mask_b = None
        if cutlass.const_expr(along_n > 1 or self.use_2cta_instrs):
            mask_a = cpasync.create_tma_multicast_mask(self.cluster_layout_vmnk, in_cluster, mcast_mode=2)
        if cutlass.const_expr(along_m > 1 or self.use_2cta_instrs):
            mask_b = cpasync.create_tma_multicast_mask(self.cluster_layout_vmnk, in_cluster, mcast_mode=1)

        ga = cute.local_tile(ta, cute.slice_(self.mma_tiler, (None, 0, None)), (None, None, None))  # (bM, bK, m, k, l)
        gb = cute.local_tile(tb, cute.slice_(self.mma_tiler, (0, None, None)), (None, None, None))
        gc = cute.local_tile(tc, cute.slice_(self.mma_tiler, (None, None, 0)), (None, None, None))
        gd = cute.local_tile(td, cute.slice_(self.mma_tiler, (None, None, 0)), (None, None, None))
        k_tiles = cute.size(ga, mode=[3])
        thr_mma = tiled_mma.get_slice(v)
        tcga, tcgb = thr_mma.partition_A(ga), thr_mma.partition_B(gb)
        of_tile = ((None, None), 0, 0, None, None, None)
        gc_parts = cute.flat_divide(thr_mma.partition_C(gc)[of_tile], self.epi_tile)  # (eM, eN, EM, EN, m, n, l)
        gd_parts = cute.flat_divide(thr_mma.partition_C(gd)[of_tile], self.epi_tile)
        a_layout = cute.make_layout(cute.slice_(self.cluster_layout_vmnk, (0, 0, None, 0)).shape)
        b_layout = cute.make_layout(cute.slice_(self.cluster_layout_vmnk, (0, None, 0, 0)).shape)
        tasa, taga = cpasync.tma_partition(
            tma_a, in_cluster[2], a_layout, cute.group_modes(s_a, 0, 3), cute.group_modes(tcga, 0, 3)
        )
        tbsb, tbgb = cpasync.tma_partition(
            tma_b, in_cluster[1], b_layout, cute.group_modes(s_b, 0, 3), cute.group_modes(tcgb, 0, 3)
        )
        frag_a, frag_b = tiled_mma.make_fragment_A(s_a), tiled_mma.make_fragment_B(s_b)
        acc_shape = tiled_mma.partition_shape_C(self.mma_tiler[:2])
        acc_like = tiled_mma.make_fragment_C(cute.append(acc_shape, self.acc_stages))
        pipeline.pipeline_init_wait(cluster_shape_mn=self.cluster_layout_vmnk)

        scheduler = utils.ClcDynamicPersistentTileScheduler.create(
            params, cute.arch.block_idx(), cute.arch.grid_dim(), storage.answer.data_ptr()
        )
        work = scheduler.initial_work_tile_info()
        answered = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, 1)
        ctas = cute.size(tiled_mma.thr_id.shape)

        if warp_idx == self.schedule_warp:
            asked = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, 1)
            while work.is_valid_tile:
                if rank == 0:
                    work_pipeline.producer_acquire(asked)
                    scheduler.advance_to_next_work(work_pipeline.producer_get_barrier(asked))
                    asked.advance()
                work_pipeline.consumer_wait(answered)
                work = scheduler.get_current_work()
                work_pipeline.consumer_release(answered)
                answered.advance()
            if rank == 0:
                work_pipeline.producer_tail(asked)

        if warp_idx == self.load_warp:
            while work.is_valid_tile:
                m, n, batch = work.tile_idx[0] // ctas, work.tile_idx[1], work.tile_idx[2]
                ab_producer.reset()
                for k in cutlass.range(0, k_tiles, 1, unroll=1):
                    handle = ab_producer.acquire_and_advance()
                    bar = handle.barrier
                    cute.copy(
                        tma_a, taga[None, m, k, batch], tasa[None, handle.index], tma_bar_ptr=bar, mcast_mask=mask_a
                    )
                    cute.copy(
                        tma_b, tbgb[None, n, k, batch], tbsb[None, handle.index], tma_bar_ptr=bar, mcast_mask=mask_b
                    )
                work_pipeline.consumer_wait(answered)
                work = scheduler.get_current_work()
                work_pipeline.consumer_release(answered)
                answered.advance()
            ab_producer.tail()

        if warp_idx == self.load_c_warp:
            to_c, from_c = cpasync.tma_partition(
                tma_c, 0, cute.make_layout(1), cute.group_modes(s_c, 0, 2), cute.group_modes(gc_parts, 0, 2)
            )
            while work.is_valid_tile:
                m, n, batch = work.tile_idx[0] // ctas, work.tile_idx[1], work.tile_idx[2]
                parts = cute.group_modes(from_c[(None, None, None, m, n, batch)], 1, 3)
                for i in cutlass.range(cute.size(parts, mode=[1])):
                    handle = c_producer.acquire_and_advance()
                    cute.copy(tma_c, parts[None, i], to_c[None, handle.index], tma_bar_ptr=handle.barrier)
                work_pipeline.consumer_wait(answered)
                work = scheduler.get_current_work()
                work_pipeline.consumer_release(answered)
                answered.advance()
            c_producer.tail()

        if warp_idx == self.mma_warp:
            tmem.wait_for_alloc()
            acc_all = cute.make_tensor(tmem.retrieve_ptr(self.acc_dtype), acc_like.layout)
            state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, self.acc_stages)
            while work.is_valid_tile:
                if is_leader_cta:
                    acc = acc_all[(None, None, None, state.index)]
                    acc_pipeline.producer_acquire(state)
                    tiled_mma.set(tcgen05.Field.ACCUMULATE, False)
                    for _ in cutlass.range(k_tiles):
                        handle = ab_consumer.wait_and_advance()
                        for block in cutlass.range_constexpr(cute.size(frag_a, mode=[2])):
                            part = (None, None, block, handle.index)
                            cute.gemm(tiled_mma, acc, frag_a[part], frag_b[part], acc)
                            tiled_mma.set(tcgen05.Field.ACCUMULATE, True)
                        handle.release()
                    acc_pipeline.producer_commit(state)
                state.advance()
                work_pipeline.consumer_wait(answered)
                work = scheduler.get_current_work()
                work_pipeline.consumer_release(answered)
                answered.advance()
            acc_pipeline.producer_tail(state)

        if warp_idx < self.mma_warp:
            tmem.allocate(utils.get_num_tmem_alloc_cols(acc_like))
            tmem.wait_for_alloc()
            base = tmem.retrieve_ptr(self.acc_dtype)
            acc_all = cute.make_tensor(base, acc_like.layout)[((None, None), 0, 0, None)]
            acc_tiles = cute.flat_divide(acc_all, self.epi_tile)  # (eM, eN, EM, EN, stages)
            load_atom = sm100_utils.get_tmem_load_op(
                self.cta_tile_shape_mnk,
                self.d_layout,
                self.d_dtype,
                self.acc_dtype,
                self.epi_tile,
                self.use_2cta_instrs,
            )
            t2r = tcgen05.make_tmem_copy(load_atom, acc_tiles[(None, None, 0, 0, 0)])
            thr_t2r = t2r.get_slice(tidx)
            from_acc = thr_t2r.partition_S(acc_tiles)  # (T2R, T2R_M, T2R_N, EM, EN, stages)
            like = thr_t2r.partition_D(gd_parts)[(None, None, None, 0, 0, 0, 0, 0)]
            acc_regs = cute.make_rmem_tensor(like.shape, self.acc_dtype)
            c_regs = cute.make_rmem_tensor(like.shape, self.c_dtype)
            d_regs = cute.make_rmem_tensor(like.shape, self.d_dtype)
            store_atom = sm100_utils.get_smem_store_op(self.d_layout, self.d_dtype, self.acc_dtype, t2r)
            r2s = cute.make_tiled_copy_D(store_atom, t2r)
            thr_r2s = r2s.get_slice(tidx)
            to_d, from_d = thr_r2s.partition_D(s_d), r2s.retile(d_regs)
            s2r = cute.make_tiled_copy_D(cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), self.c_dtype), t2r)
            from_c, to_c = s2r.get_slice(tidx).partition_D(s_c), s2r.retile(c_regs)
            d_shared, d_global = cpasync.tma_partition(
                tma_d, 0, cute.make_layout(1), cute.group_modes(s_d, 0, 2), cute.group_modes(gd_parts, 0, 2)
            )
            stores = pipeline.PipelineTmaStore.create(
                num_stages=self.d_stages,
                producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 32 * len(self.epilogue_warps)),
            )
            together = pipeline.NamedBarrier(barrier_id=1, num_threads=32 * len(self.epilogue_warps))
            state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, self.acc_stages)
            stored = cutlass.Int32(0)
            while work.is_valid_tile:
                m, n, batch = work.tile_idx[0] // ctas, work.tile_idx[1], work.tile_idx[2]
                to = cute.group_modes(d_global[(None, None, None, m, n, batch)], 1, 3)
                acc_pipeline.consumer_wait(state)
                parts = cute.group_modes(from_acc[(None, None, None, None, None, state.index)], 3, 5)
                for i in cutlass.range(cute.size(parts, mode=[3])):
                    cute.copy(t2r, parts[(None, None, None, i)], acc_regs)
                    handle = c_consumer.wait_and_advance()
                    cute.copy(s2r, from_c[(None, None, None, handle.index)], to_c)
                    handle.release()
                    cute.arch.fence_view_async_tmem_load()
                    scaled = alpha * acc_regs.load() + beta * c_regs.load().to(self.acc_dtype)
                    d_regs.store(scaled.to(self.d_dtype))
                    buffer = stored % self.d_stages
                    cute.copy(r2s, from_d, to_d[(None, None, None, buffer)])
                    cute.arch.fence_proxy("async.shared", space="cta")
                    together.arrive_and_wait()
                    if warp_idx == self.epilogue_warps[0]:
                        cute.copy(tma_d, d_shared[(None, buffer)], to[(None, i)])
                        stores.producer_commit()
                        stores.producer_acquire()
                    together.arrive_and_wait()
                    stored += 1
                cute.arch.tcgen05_fence_before_thread_sync()
                acc_pipeline.consumer_release(state)
                state.advance()
                work_pipeline.consumer_wait(answered)
                work = scheduler.get_current_work()
                work_pipeline.consumer_release(answered)
                answered.advance()
            tmem.relinquish_alloc_permit()
            together.arrive_and_wait()
            tmem.free(base)
            stores.producer_tail()


def run(mnkl, mma_tiler_mn, cluster_shape_mn, use_2cta_instrs, a_major, c_dtype):
    m, n, k, batches = mnkl
    a = torch.randint(-2, 3, (batches, m, k)).to(torch.float16)
    a = (a if a_major == "k" else a.permute(0, 2, 1).contiguous().permute(0, 2, 1)).cuda()
    b = torch.randint(-2, 3, (batches, n, k)).to(torch.float16).cuda()
    c = torch.randint(-2, 3, (batches, m, n)).to(c_dtype).cuda()
    d = torch.zeros(batches, m, n, dtype=torch.float16).cuda()
    stream = cuda.CUstream(torch.cuda.current_stream().cuda_stream)
    tensors = [from_dlpack(x.permute(1, 2, 0), assumed_align=16) for x in (a, b, c, d)]
    ScaledGemm(mma_tiler_mn, cluster_shape_mn, use_2cta_instrs)(*tensors, 0.5, 2.0, stream)
    torch.cuda.synchronize()
    assert torch.equal(d.float(), 0.5 * a.float() @ b.float().transpose(1, 2) + 2 * c.float()), mnkl


if __name__ == "__main__":
    torch.manual_seed(0)
    run((512, 128, 128, 1), (256, 64), (2, 1), True, "k", torch.float16)
    run((256, 192, 64, 2), (128, 64), (1, 1), False, "m", torch.float32)
    print("PASS")
