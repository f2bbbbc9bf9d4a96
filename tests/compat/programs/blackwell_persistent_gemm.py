"""A persistent GEMM by pairs of blocks, written for the CuTe DSL's documentation: a warp that loads, one that
multiplies, four that store; two stages of accumulators, so that the next tile is multiplied while this one is stored.
The epilogue is written out, or one call: by TMA, or by the threads' own stores."""

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


class PersistentGemm:
    """C (M, N, 1) = A (M, K) * B (N, K), at least 0. ``epilogue``: "parts", written out; "tma" or "direct", one call."""

    epilogue_warp_id, epilog_sync_bar_id = (0, 1, 2, 3), 1
    mma_warp, load_warp = 4, 5
    ab_stages, acc_stages, c_stages = 3, 2, 3

    def __init__(self, mma_tiler_mn, cluster_shape_mn, use_2cta_instrs, epilogue):
        self.epilogue = epilogue
        self.mma_tiler_mn, self.cluster_shape_mn = mma_tiler_mn, cluster_shape_mn
        self.use_2cta_instrs, self.acc_dtype = use_2cta_instrs, cutlass.Float32
        self.cta_group = tcgen05.CtaGroup.TWO if use_2cta_instrs else tcgen05.CtaGroup.ONE
        self.threads = 32 * 6

    @cute.jit
    def __call__(
        self, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, clusters: cutlass.Constexpr, stream: cuda.CUstream
    ):
        self.c_dtype, self.c_layout = c.element_type, utils.LayoutEnum.from_tensor(c)
        tiled_mma = sm100_utils.make_trivial_tiled_mma(
            a.element_type,
            b.element_type,
            OperandMajorMode.K,
            OperandMajorMode.K,
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
            self.cta_tile_shape_mnk, self.use_2cta_instrs, self.c_layout, self.c_dtype
        )
        a_smem = sm100_utils.make_smem_layout_a(tiled_mma, self.mma_tiler, a.element_type, self.ab_stages)
        b_smem = sm100_utils.make_smem_layout_b(tiled_mma, self.mma_tiler, b.element_type, self.ab_stages)
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
        copied = cute.size_in_bytes(a.element_type, cute.slice_(a_smem, (None, None, None, 0)))
        copied += cute.size_in_bytes(b.element_type, cute.slice_(b_smem, (None, None, None, 0)))
        self.num_tma_load_bytes = copied * cute.size(tiled_mma.thr_id.shape)
        tiles = cute.zipped_divide(c, self.cta_tile_shape_mnk[:2])
        counts = cute.get(tiles.shape, mode=[1])
        params = utils.PersistentTileSchedulerParams(counts, (*self.cluster_shape_mn, 1))
        grid = utils.StaticPersistentTileScheduler.get_grid_shape(params, clusters)

        @cute.struct
        class SharedStorage:
            ab: cute.struct.MemRange[cutlass.Int64, self.ab_stages * 2]
            acc: cute.struct.MemRange[cutlass.Int64, self.acc_stages * 2]
            dealloc: cutlass.Int64
            holding: cutlass.Int32
            sC: cute.struct.Align[cute.struct.MemRange[self.c_dtype, cute.cosize(c_smem.outer)], 1024]
            sA: cute.struct.Align[cute.struct.MemRange[a.element_type, cute.cosize(a_smem.outer)], 1024]
            sB: cute.struct.Align[cute.struct.MemRange[b.element_type, cute.cosize(b_smem.outer)], 1024]

        self.shared_storage = SharedStorage
        if cutlass.const_expr(self.epilogue == "direct"):
            tc = c
        self.kernel(tiled_mma, tma_a, ta, tma_b, tb, tma_c, tc, a_smem, b_smem, c_smem, params).launch(
            grid=grid, block=[self.threads, 1, 1], cluster=(*self.cluster_shape_mn, 1), stream=stream
        )

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
                pipeline.Agent.Thread, len(self.epilogue_warp_id) * (2 if self.use_2cta_instrs else 1)
            ),
            cta_layout_vmnk=self.cluster_layout_vmnk,
            defer_sync=True,
        )
        tmem = utils.TmemAllocator(
            storage.holding.ptr,
            barrier_for_retrieve=pipeline.NamedBarrier(barrier_id=2, num_threads=32 * 5),
            allocator_warp_id=self.epilogue_warp_id[0],
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

        ga = cute.local_tile(ta, cute.slice_(self.mma_tiler, (None, 0, None)), (None, None))  # (bM, bK, m, k)
        gb = cute.local_tile(tb, cute.slice_(self.mma_tiler, (0, None, None)), (None, None))
        gc = cute.local_tile(tc, cute.slice_(self.mma_tiler, (None, None, 0)), (None, None, None))
        k_tiles = cute.size(ga, mode=[3])
        thr_mma = tiled_mma.get_slice(v)
        tcga, tcgb = thr_mma.partition_A(ga), thr_mma.partition_B(gb)
        tcgc = thr_mma.partition_C(gc)
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

        scheduler = utils.StaticPersistentTileScheduler.create(params, cute.arch.block_idx(), cute.arch.grid_dim())
        work = scheduler.initial_work_tile_info()

        if warp_idx == self.load_warp:
            while work.is_valid_tile:
                m, n = work.tile_idx[0] // cute.size(tiled_mma.thr_id.shape), work.tile_idx[1]
                ab_producer.reset()
                for k in cutlass.range(0, k_tiles, 1, unroll=1):
                    handle = ab_producer.acquire_and_advance()
                    cute.copy(
                        tma_a, taga[None, m, k], tasa[None, handle.index], tma_bar_ptr=handle.barrier, mcast_mask=mask_a
                    )
                    cute.copy(
                        tma_b, tbgb[None, n, k], tbsb[None, handle.index], tma_bar_ptr=handle.barrier, mcast_mask=mask_b
                    )
                scheduler.advance_to_next_work()
                work = scheduler.get_current_work()
            ab_producer.tail()

        if warp_idx == self.mma_warp:
            tmem.wait_for_alloc()
            acc_all = cute.make_tensor(tmem.retrieve_ptr(self.acc_dtype), acc_like.layout)
            state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, self.acc_stages)
            while work.is_valid_tile:
                if is_leader_cta:
                    stage = (None, None, None, state.index)
                    acc_pipeline.producer_acquire(state)
                    tiled_mma.set(tcgen05.Field.ACCUMULATE, False)
                    for _ in cutlass.range(k_tiles):
                        handle = ab_consumer.wait_and_advance()
                        for block in cutlass.range_constexpr(cute.size(frag_a, mode=[2])):
                            part = (None, None, block, handle.index)
                            cute.gemm(tiled_mma, acc_all[stage], frag_a[part], frag_b[part], acc_all[stage])
                            tiled_mma.set(tcgen05.Field.ACCUMULATE, True)
                        handle.release()
                    acc_pipeline.producer_commit(state)
                state.advance()
                scheduler.advance_to_next_work()
                work = scheduler.get_current_work()
            acc_pipeline.producer_tail(state)

        if warp_idx < self.mma_warp:
            tmem.allocate(utils.get_num_tmem_alloc_cols(acc_like))
            tmem.wait_for_alloc()
            base = tmem.retrieve_ptr(self.acc_dtype)
            acc_all = cute.make_tensor(base, acc_like.layout)
            stores = pipeline.PipelineTmaStore.create(
                num_stages=self.c_stages,
                producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 32 * len(self.epilogue_warp_id)),
            )
            together = pipeline.NamedBarrier(self.epilog_sync_bar_id, 32 * len(self.epilogue_warp_id))
            state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, self.acc_stages)
            while work.is_valid_tile:
                m, n, batch = work.tile_idx
                tile = (m // cute.size(tiled_mma.thr_id.shape), n, batch)
                executed = scheduler.num_tiles_executed
                if cutlass.const_expr(self.epilogue == "parts"):
                    state = self.store_parts(
                        tidx, warp_idx, tma_c, acc_all, s_c, tcgc, executed, tile, state, acc_pipeline, stores, together
                    )
                elif cutlass.const_expr(self.epilogue == "tma"):
                    state = utils.gemm.sm100.epilogue_tma_store(
                        self, tidx, warp_idx, tma_c, acc_all, s_c, tcgc, self.epi_tile, executed, relu, tile, state,
                        acc_pipeline, stores,
                    )  # fmt: skip
                else:
                    identity = cute.make_identity_tensor(tc.shape)
                    tiles = cute.local_tile(identity, cute.slice_(self.mma_tiler, (None, None, 0)), (None, None, None))
                    state = utils.gemm.sm100.epilogue(
                        self, tidx, acc_all, tcgc, self.epi_tile, relu, tile, state, acc_pipeline,
                        tCcC_base=thr_mma.partition_C(tiles), mC_mnl=tc,
                    )  # fmt: skip
                scheduler.advance_to_next_work()
                work = scheduler.get_current_work()
            tmem.relinquish_alloc_permit()
            together.arrive_and_wait()
            tmem.free(base)
            stores.producer_tail()

    @cute.jit
    def store_parts(
        self, tidx, warp_idx, tma_c, acc_base, s_c, tcgc_base, executed, tile, state, acc_pipeline, stores, together
    ):
        """What ``utils.gemm.sm100.epilogue_tma_store`` does: a tile from tensor memory to global memory, in parts."""
        tcgc = transform_partitioned_tensor_layout(tcgc_base)
        acc_all = transform_partitioned_tensor_layout(acc_base)
        t2r, acc_parts, acc_regs = epilogue_tmem_copy_and_partition(
            self, tidx, acc_all, tcgc, self.epi_tile, self.use_2cta_instrs
        )
        c_regs = cute.make_rmem_tensor(acc_regs.shape, self.c_dtype)
        r2s, c_from, c_to = epilogue_smem_copy_and_partition(self, t2r, c_regs, tidx, s_c)
        gc_parts = cute.flat_divide(tcgc, self.epi_tile)
        bsgc_s, bsgc_g = cpasync.tma_partition(
            tma_c, 0, cute.make_layout(1), cute.group_modes(s_c, 0, 2), cute.group_modes(gc_parts, 0, 2)
        )
        to = cute.group_modes(bsgc_g[(None, None, None, *tile)], 1, 3)
        acc_pipeline.consumer_wait(state)
        parts = cute.group_modes(acc_parts[(None, None, None, None, None, state.index)], 3, 5)
        before = executed * cute.size(parts, mode=[3])
        for i in cutlass.range(cute.size(parts, mode=[3])):
            cute.copy(t2r, parts[(None, None, None, i)], acc_regs)
            cute.arch.fence_view_async_tmem_load()
            c_from.store(relu(r2s.retile(acc_regs).load().to(self.c_dtype)))
            buffer = (before + i) % self.c_stages
            cute.copy(r2s, c_from, c_to[(None, None, None, buffer)])
            cute.arch.fence_proxy("async.shared", space="cta")
            together.arrive_and_wait()
            if warp_idx == self.epilogue_warp_id[0]:
                cute.copy(tma_c, bsgc_s[(None, buffer)], to[(None, i)])
                stores.producer_commit()
                stores.producer_acquire()
            together.arrive_and_wait()
        with cute.arch.elect_one():
            acc_pipeline.consumer_release(state)
        state.advance()
        return state


def relu(x):
    return cute.where(x > 0, x, cute.full_like(x, 0))


def run(mnk, mma_tiler_mn, cluster_shape_mn, use_2cta_instrs, clusters, epilogue):
    m, n, k = mnk
    a = torch.randint(-2, 3, (m, k)).to(torch.float16).cuda()
    b = torch.randint(-2, 3, (n, k)).to(torch.float16).cuda()
    c = torch.zeros(m, n, 1, dtype=torch.float16).cuda()
    stream = cuda.CUstream(torch.cuda.current_stream().cuda_stream)
    PersistentGemm(mma_tiler_mn, cluster_shape_mn, use_2cta_instrs, epilogue)(
        *(from_dlpack(x, assumed_align=16) for x in (a, b, c)), clusters, stream
    )
    torch.cuda.synchronize()
    assert torch.equal(c[:, :, 0].float(), torch.relu(a.float() @ b.float().T)), (mnk, epilogue)


if __name__ == "__main__":
    torch.manual_seed(0)
    run((512, 128, 128), (256, 64), (2, 1), True, 2, "parts")
    run((512, 128, 64), (256, 64), (2, 1), True, 2, "tma")
    run((200, 120, 64), (128, 64), (1, 1), False, 3, "direct")
    print("PASS")
