"""D = silu(A W1^T) * (A W2^T): Hopper, TMA, one producer warp, two accumulators, TMA store by sub-tiles."""

import argparse
from typing import Type, Tuple
import cuda.bindings.driver as cuda
import torch
import cutlass
import cutlass.cute as cute
import cutlass.pipeline as pipeline
import cutlass.utils as utils
import cutlass.utils.hopper_helpers as sm90_utils
import cutlass.torch as cutlass_torch
from cutlass.cute.nvgpu import cpasync, warp, warpgroup


class DualGemmKernel:
    def __init__(self, acc_dtype: Type[cutlass.Numeric], tile_shape_mn: Tuple[int, int], cluster_shape_mn=(1, 1)):
        self.acc_dtype = acc_dtype
        self.cluster_shape_mn = cluster_shape_mn
        self.tile_shape_mnk = (*tile_shape_mn, 1)
        self.atom_layout_mnk = (2, 1, 1) if tile_shape_mn[0] > 64 else (1, 1, 1)
        self.num_mma_warps = 4 * self.atom_layout_mnk[0]
        self.threads_per_cta = (self.num_mma_warps + 4) * 32
        self.load_warp_id = self.num_mma_warps
        self.epi_barrier_id = 1
        self.buffer_align_bytes = 1024

    def _setup(self):
        is_cooperative = self.atom_layout_mnk == (2, 1, 1)
        self.tiled_mma = sm90_utils.make_trivial_tiled_mma(
            self.a_dtype,
            self.b_dtype,
            self.a_layout.sm90_mma_major_mode(),
            self.b_layout.sm90_mma_major_mode(),
            self.acc_dtype,
            self.atom_layout_mnk,
            tiler_mn=(64, self.tile_shape_mnk[1]),
        )
        k = cute.size(self.tiled_mma.shape_mnk, mode=[2])
        self.tile_shape_mnk = (self.tile_shape_mnk[0], self.tile_shape_mnk[1], k * 4)
        self.epi_tile = sm90_utils.compute_tile_shape_or_override(
            self.tile_shape_mnk, self.c_dtype, is_cooperative=is_cooperative
        )
        a_shape = cute.slice_(self.tile_shape_mnk, (None, 0, None))
        b_shape = cute.slice_(self.tile_shape_mnk, (0, None, None))
        epi_bytes = cute.size(self.epi_tile) * self.c_dtype.width // 8
        self.epi_stage = 2
        ab_bytes = (cute.size(a_shape) * self.a_dtype.width + 2 * cute.size(b_shape) * self.b_dtype.width) // 8
        capacity = utils.get_smem_capacity_in_bytes("sm_90")
        self.ab_stage = min(4, (capacity - 2048 - self.epi_stage * epi_bytes) // ab_bytes)
        self.a_smem_layout_staged = sm90_utils.make_smem_layout_a(
            self.a_layout, self.tile_shape_mnk, self.a_dtype, self.ab_stage
        )
        self.b_smem_layout_staged = sm90_utils.make_smem_layout_b(
            self.b_layout, self.tile_shape_mnk, self.b_dtype, self.ab_stage
        )
        self.epi_smem_layout_staged = sm90_utils.make_smem_layout_epi(
            self.c_dtype, self.c_layout, self.epi_tile, self.epi_stage
        )

    @cute.jit
    def __call__(
        self,
        a: cute.Tensor,
        b1: cute.Tensor,
        b2: cute.Tensor,
        c: cute.Tensor,
        max_active_clusters: cutlass.Constexpr,
        stream: cuda.CUstream,
    ):
        self.a_dtype, self.b_dtype, self.c_dtype = a.element_type, b1.element_type, c.element_type
        self.a_layout = utils.LayoutEnum.from_tensor(a)
        self.b_layout = utils.LayoutEnum.from_tensor(b1)
        self.c_layout = utils.LayoutEnum.from_tensor(c)
        if cutlass.const_expr(self.a_dtype.width != self.b_dtype.width):
            raise TypeError(f"Type width mismatch: {self.a_dtype.width} != {self.b_dtype.width}")
        self._setup()
        tma_a, tma_tensor_a = self._tma_load(
            a, self.a_smem_layout_staged, (self.tile_shape_mnk[0], self.tile_shape_mnk[2]), self.cluster_shape_mn[1]
        )
        tma_b1, tma_tensor_b1 = self._tma_load(
            b1, self.b_smem_layout_staged, (self.tile_shape_mnk[1], self.tile_shape_mnk[2]), self.cluster_shape_mn[0]
        )
        tma_b2, tma_tensor_b2 = self._tma_load(
            b2, self.b_smem_layout_staged, (self.tile_shape_mnk[1], self.tile_shape_mnk[2]), self.cluster_shape_mn[0]
        )
        epi_smem_layout = cute.slice_(self.epi_smem_layout_staged, (None, None, 0))
        d_cta_v_layout = cute.composition(cute.make_identity_layout(c.shape), self.epi_tile)
        tma_c, tma_tensor_c = cpasync.make_tiled_tma_atom(
            cpasync.CopyBulkTensorTileS2GOp(), c, epi_smem_layout, d_cta_v_layout
        )

        c_shape = cute.slice_(self.tile_shape_mnk, (None, None, 0))
        gc = cute.zipped_divide(c, tiler=c_shape)
        num_ctas_mnl = gc[(0, (None, None, None))].shape
        self.tile_sched_params = utils.PersistentTileSchedulerParams(num_ctas_mnl, (*self.cluster_shape_mn, 1))
        grid = utils.StaticPersistentTileScheduler.get_grid_shape(self.tile_sched_params, max_active_clusters)

        @cute.struct
        class SharedStorage:
            mainloop_pipeline_array_ptr: cute.struct.MemRange[cutlass.Int64, self.ab_stage * 2]
            sA: cute.struct.Align[
                cute.struct.MemRange[self.a_dtype, cute.cosize(self.a_smem_layout_staged)], self.buffer_align_bytes
            ]
            sB1: cute.struct.Align[
                cute.struct.MemRange[self.b_dtype, cute.cosize(self.b_smem_layout_staged)], self.buffer_align_bytes
            ]
            sB2: cute.struct.Align[
                cute.struct.MemRange[self.b_dtype, cute.cosize(self.b_smem_layout_staged)], self.buffer_align_bytes
            ]
            sC: cute.struct.Align[
                cute.struct.MemRange[self.c_dtype, cute.cosize(self.epi_smem_layout_staged)], self.buffer_align_bytes
            ]

        self.shared_storage = SharedStorage
        self.kernel(
            tma_a,
            tma_tensor_a,
            tma_b1,
            tma_tensor_b1,
            tma_b2,
            tma_tensor_b2,
            tma_c,
            tma_tensor_c,
            self.tiled_mma,
            cute.make_layout((*self.cluster_shape_mn, 1)),
            self.a_smem_layout_staged,
            self.b_smem_layout_staged,
            self.epi_smem_layout_staged,
            self.tile_sched_params,
        ).launch(
            grid=grid,
            block=[self.threads_per_cta, 1, 1],
            cluster=(*self.cluster_shape_mn, 1),
            min_blocks_per_mp=1,
            stream=stream,
        )

    @staticmethod
    def _tma_load(tensor, smem_layout_staged, smem_tile, mcast_dim):
        op = cpasync.CopyBulkTensorTileG2SOp() if mcast_dim == 1 else cpasync.CopyBulkTensorTileG2SMulticastOp()
        smem_layout = cute.slice_(smem_layout_staged, (None, None, 0))
        return cpasync.make_tiled_tma_atom(op, tensor, smem_layout, smem_tile, num_multicast=mcast_dim)

    @cute.kernel
    def kernel(
        self,
        tma_a: cute.CopyAtom,
        mA: cute.Tensor,
        tma_b1: cute.CopyAtom,
        mB1: cute.Tensor,
        tma_b2: cute.CopyAtom,
        mB2: cute.Tensor,
        tma_c: cute.CopyAtom,
        mC: cute.Tensor,
        tiled_mma: cute.TiledMma,
        cta_layout_mnk: cute.Layout,
        a_sl: cute.ComposedLayout,
        b_sl: cute.ComposedLayout,
        epi_sl: cute.ComposedLayout,
        tile_sched_params: utils.PersistentTileSchedulerParams,
    ):
        tidx, _, _ = cute.arch.thread_idx()
        warp_idx = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        if warp_idx == 0:
            for d in (tma_a, tma_b1, tma_b2, tma_c):
                cpasync.prefetch_descriptor(d)
        cta_rank = cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster())
        cluster_coord = cta_layout_mnk.get_flat_coord(cta_rank)
        a_mask = cute.make_layout_image_mask(cta_layout_mnk, cluster_coord, mode=1)
        b_mask = cute.make_layout_image_mask(cta_layout_mnk, cluster_coord, mode=0)
        if cutlass.const_expr(self.cluster_shape_mn[1] == 1):
            a_mask = 0
        if cutlass.const_expr(self.cluster_shape_mn[0] == 1):
            b_mask = 0
        a1 = cute.slice_(a_sl, (None, None, 0))
        b1 = cute.slice_(b_sl, (None, None, 0))
        tx = cute.size_in_bytes(self.a_dtype, a1) + 2 * cute.size_in_bytes(self.b_dtype, b1)
        smem = utils.SmemAllocator()
        storage = smem.allocate(self.shared_storage)
        mcast_size = self.cluster_shape_mn[0] + self.cluster_shape_mn[1] - 1
        ab_pipe = pipeline.PipelineTmaAsync.create(
            num_stages=self.ab_stage,
            producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, mcast_size * self.num_mma_warps),
            tx_count=tx,
            barrier_storage=storage.mainloop_pipeline_array_ptr.data_ptr(),
            cta_layout_vmnk=cute.make_layout((1, *cta_layout_mnk.shape)),
            defer_sync=True,
        )
        pipeline.pipeline_init_arrive(cluster_shape_mn=self.cluster_shape_mn, is_relaxed=True)
        sA = storage.sA.get_tensor(a_sl.outer, swizzle=a_sl.inner)
        sB1 = storage.sB1.get_tensor(b_sl.outer, swizzle=b_sl.inner)
        sB2 = storage.sB2.get_tensor(b_sl.outer, swizzle=b_sl.inner)
        sC = storage.sC.get_tensor(epi_sl.outer, swizzle=epi_sl.inner)
        gA = cute.local_tile(mA, cute.slice_(self.tile_shape_mnk, (None, 0, None)), (None, None, None))
        gB1 = cute.local_tile(mB1, cute.slice_(self.tile_shape_mnk, (0, None, None)), (None, None, None))
        gB2 = cute.local_tile(mB2, cute.slice_(self.tile_shape_mnk, (0, None, None)), (None, None, None))
        gC = cute.local_tile(mC, cute.slice_(self.tile_shape_mnk, (None, None, 0)), (None, None, None))
        a_cta_layout = cute.make_layout(cute.slice_(cta_layout_mnk, (0, None, 0)).shape)
        b_cta_layout = cute.make_layout(cute.slice_(cta_layout_mnk, (None, 0, 0)).shape)
        tAsA, tAgA = cpasync.tma_partition(
            tma_a, cluster_coord[1], a_cta_layout, cute.group_modes(sA, 0, 2), cute.group_modes(gA, 0, 2)
        )
        tBsB1, tBgB1 = cpasync.tma_partition(
            tma_b1, cluster_coord[0], b_cta_layout, cute.group_modes(sB1, 0, 2), cute.group_modes(gB1, 0, 2)
        )
        tBsB2, tBgB2 = cpasync.tma_partition(
            tma_b2, cluster_coord[0], b_cta_layout, cute.group_modes(sB2, 0, 2), cute.group_modes(gB2, 0, 2)
        )
        k_tile_cnt = cute.size(gA, mode=[3])
        pipeline.pipeline_init_wait(cluster_shape_mn=self.cluster_shape_mn)
        warp_group_idx = cute.arch.make_warp_uniform(tidx // 128)
        is_load = warp_idx >= self.num_mma_warps
        if is_load:
            cute.arch.setmaxregister_decrease(40)
        if warp_idx == self.load_warp_id:
            sched = utils.StaticPersistentTileScheduler.create(
                tile_sched_params, cute.arch.block_idx(), cute.arch.grid_dim()
            )
            work = sched.initial_work_tile_info()
            prod = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, self.ab_stage)
            while work.is_valid_tile:
                m, n, l = work.tile_idx
                tAgA_k = tAgA[(None, m, None, l)]
                tB1 = tBgB1[(None, n, None, l)]
                tB2 = tBgB2[(None, n, None, l)]
                for k_tile in cutlass.range(k_tile_cnt, unroll=1):
                    ab_pipe.producer_acquire(prod)
                    bar = ab_pipe.producer_get_barrier(prod)
                    cute.copy(
                        tma_a, tAgA_k[(None, k_tile)], tAsA[(None, prod.index)], tma_bar_ptr=bar, mcast_mask=a_mask
                    )
                    cute.copy(
                        tma_b1, tB1[(None, k_tile)], tBsB1[(None, prod.index)], tma_bar_ptr=bar, mcast_mask=b_mask
                    )
                    cute.copy(
                        tma_b2, tB2[(None, k_tile)], tBsB2[(None, prod.index)], tma_bar_ptr=bar, mcast_mask=b_mask
                    )
                    ab_pipe.producer_commit(prod)
                    prod.advance()
                sched.advance_to_next_work()
                work = sched.get_current_work()
            ab_pipe.producer_tail(prod)
        if not is_load:
            cute.arch.setmaxregister_increase(232)
            wg_layout = cute.make_layout(self.num_mma_warps // 4, stride=128)
            thr_mma = tiled_mma.get_slice(wg_layout(warp_group_idx))
            tCrA = tiled_mma.make_fragment_A(thr_mma.partition_A(sA))
            tCrB1 = tiled_mma.make_fragment_B(thr_mma.partition_B(sB1))
            tCrB2 = tiled_mma.make_fragment_B(thr_mma.partition_B(sB2))
            acc_shape = tiled_mma.partition_shape_C(cute.select(self.tile_shape_mnk, mode=[0, 1]))
            acc1 = cute.make_rmem_tensor(acc_shape, self.acc_dtype)
            acc2 = cute.make_rmem_tensor(acc_shape, self.acc_dtype)
            num_k_blocks = cute.size(tCrA, mode=[2])
            sched = utils.StaticPersistentTileScheduler.create(
                tile_sched_params, cute.arch.block_idx(), cute.arch.grid_dim()
            )
            work = sched.initial_work_tile_info()
            read = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, self.ab_stage)
            release = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, self.ab_stage)
            st_atom = sm90_utils.sm90_get_smem_store_op(
                self.c_layout, elem_ty_d=self.c_dtype, elem_ty_acc=self.acc_dtype
            )
            copy_atom_C = cute.make_copy_atom(warp.StMatrix8x8x16bOp(self.c_layout.is_m_major_c(), 4), self.c_dtype)
            tiled_copy_C_Atom = cute.make_tiled_copy_C_atom(copy_atom_C, tiled_mma)
            tiled_copy_r2s = cute.make_tiled_copy_S(st_atom, tiled_copy_C_Atom)
            thr_r2s = tiled_copy_r2s.get_slice(tidx)
            tRS_sD = thr_r2s.partition_D(sC)
            rD_shape = cute.shape(thr_r2s.partition_S(sC))
            tRS_rD = cute.make_rmem_tensor(cute.make_layout(rD_shape[:3]).shape, self.acc_dtype)
            store_pipe = pipeline.PipelineTmaStore.create(
                num_stages=self.epi_stage,
                producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, self.num_mma_warps * 32),
            )
            tma_store_warp = warp_idx == 0
            epi_bar = pipeline.NamedBarrier(barrier_id=self.epi_barrier_id, num_threads=self.num_mma_warps * 32)
            while work.is_valid_tile:
                coord = work.tile_idx
                gC_tile = gC[(None, None, *coord)]
                tiled_mma.set(warpgroup.Field.ACCUMULATE, False)
                acc2.fill(0.0)
                acc1.fill(0.0)
                tiled_mma.set(warpgroup.Field.ACCUMULATE, True)
                for k_tile in cutlass.range(0, k_tile_cnt, 1, unroll=1):
                    ab_pipe.consumer_wait(read)
                    warpgroup.fence()
                    for kb in cutlass.range(num_k_blocks, unroll_full=True):
                        at = (None, None, kb, read.index)
                        cute.gemm(tiled_mma, acc1, tCrA[at], tCrB1[at], acc1)
                        cute.gemm(tiled_mma, acc2, tCrA[at], tCrB2[at], acc2)
                    warpgroup.commit_group()
                    warpgroup.wait_group(1)
                    if k_tile > 0:
                        ab_pipe.consumer_release(release)
                        release.advance()
                    read.advance()
                warpgroup.wait_group(0)
                ab_pipe.consumer_release(release)
                release.advance()
                # gate
                g = acc1.load()
                acc1.store(g / (1.0 + cute.math.exp(-g, fastmath=True)) * acc2.load())
                tRS_rAcc = tiled_copy_r2s.retile(acc1)
                tCgC = cute.zipped_divide(gC_tile, self.epi_tile)
                bSG_sD, bSG_gD = cpasync.tma_partition(tma_c, 0, cute.make_layout(1), cute.group_modes(sC, 0, 2), tCgC)
                epi_num = cute.size(tCgC, mode=[1])
                epi_layout = cute.make_layout(tCgC.shape[1], stride=(tCgC.shape[1][1], 1))
                prior = sched.num_tiles_executed * epi_num
                for e in cutlass.range_constexpr(epi_num):
                    for v in cutlass.range_constexpr(cute.size(tRS_rD)):
                        tRS_rD[v] = tRS_rAcc[e * cute.size(tRS_rD) + v]
                    out = cute.make_rmem_tensor_like(tRS_rD, self.c_dtype)
                    out.store(tRS_rD.load().to(self.c_dtype))
                    buf = (prior + e) % cute.size(tRS_sD, mode=[3])
                    cute.copy(tiled_copy_r2s, out, tRS_sD[(None, None, None, buf)])
                    cute.arch.fence_proxy("async.shared", space="cta")
                    epi_bar.arrive_and_wait()
                    if tma_store_warp:
                        cute.copy(tma_c, bSG_sD[(None, buf)], bSG_gD[(None, epi_layout.get_hier_coord(e))])
                        store_pipe.producer_commit()
                        store_pipe.producer_acquire()
                    epi_bar.arrive_and_wait()
                sched.advance_to_next_work()
                work = sched.get_current_work()
            if tma_store_warp:
                store_pipe.producer_tail()


def run(mnkl, dtype, tile, cluster):
    m, n, k, l = mnkl
    integers = cutlass_torch.RandomInitConfig(min_val=-2, max_val=3)
    a_t = cutlass_torch.matrix(
        l, m, k, False, dtype, init_type=cutlass_torch.TensorInitType.RANDOM, init_config=integers
    )
    b1_t = cutlass_torch.matrix(l, n, k, False, dtype)
    b2_t = cutlass_torch.matrix(l, n, k, False, dtype)
    c_t = cutlass_torch.matrix(l, m, n, False, dtype)
    a, a_torch = cutlass_torch.cute_tensor_like(a_t, dtype, is_dynamic_layout=True, assumed_align=16)
    b1, b1_torch = cutlass_torch.cute_tensor_like(b1_t, dtype, is_dynamic_layout=True, assumed_align=16)
    b2, b2_torch = cutlass_torch.cute_tensor_like(b2_t, dtype, is_dynamic_layout=True, assumed_align=16)
    c, c_torch = cutlass_torch.cute_tensor_like(c_t, dtype, is_dynamic_layout=True, assumed_align=16)
    stream = cutlass_torch.default_stream()
    max_active = utils.HardwareInfo().get_max_active_clusters(cluster[0] * cluster[1])
    gemm = DualGemmKernel(cutlass.Float32, tile, cluster)
    compiled = cute.compile(gemm, a, b1, b2, c, max_active, stream)
    compiled(a, b1, b2, c, stream)
    torch.cuda.synchronize()
    x = torch.einsum("mkl,nkl->mnl", a_t.float(), b1_t.float())
    y = torch.einsum("mkl,nkl->mnl", a_t.float(), b2_t.float())
    ref = torch.nn.functional.silu(x) * y
    torch.testing.assert_close(c_torch.cpu().float(), ref.cpu().float(), atol=1e-1, rtol=2e-2)
    print("verified", mnkl)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--mnkl", type=lambda s: tuple(int(x) for x in s.split(",")), default=(256, 256, 192, 1))
    a = parser.parse_args()
    torch.manual_seed(1111)
    run(a.mnkl, cutlass.Float16, (128, 128), (1, 1))
    run((256, 128, 128, 2), cutlass.BFloat16, (64, 128), (2, 1))
    print("PASS")
