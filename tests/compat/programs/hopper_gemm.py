"""D = A B^T on Hopper: one warp loads by TMA (multicast in the cluster), warpgroups multiply by wgmma and store by TMA,
blocks stay for one tile after another."""

import argparse
import math

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import cutlass.cute.testing as testing
import cutlass.pipeline as pipeline
import cutlass.torch as cutlass_torch
import cutlass.utils as utils
import cutlass.utils.hopper_helpers as sm90_utils
import torch
from cutlass.cute.nvgpu import cpasync, warpgroup
from cutlass.pipeline import pipeline_init_arrive, pipeline_init_wait


class PersistentGemm:
    def __init__(self, acc_dtype, tile_mn, cluster_mn, swizzle_size=1, raster_along_m=True):
        self.acc_dtype, self.cluster_mn = acc_dtype, cluster_mn
        self.swizzle_size, self.raster_along_m = swizzle_size, raster_along_m
        self.tile = (*tile_mn, 64)
        self.atom_layout = (2, 1, 1) if tile_mn[0] > 64 else (1, 1, 1)
        self.warpgroups = math.prod(self.atom_layout)
        self.threads = 128 * (1 + self.warpgroups)
        self.stages, self.epi_stages = 3, 2
        self.shared_storage = None

    @cute.jit
    def __call__(
        self, a: cute.Tensor, b: cute.Tensor, d: cute.Tensor, max_active: cutlass.Constexpr, stream: cuda.CUstream
    ):
        a_layout, b_layout, d_layout = (utils.LayoutEnum.from_tensor(t) for t in (a, b, d))
        self.a_dtype, self.b_dtype, self.d_dtype = a.element_type, b.element_type, d.element_type
        self.d_layout = d_layout
        if cutlass.const_expr(self.a_dtype.width != self.b_dtype.width):
            raise TypeError(f"widths differ: {self.a_dtype}, {self.b_dtype}")
        tiled_mma = sm90_utils.make_trivial_tiled_mma(
            self.a_dtype, self.b_dtype, a_layout.sm90_mma_major_mode(), b_layout.sm90_mma_major_mode(), self.acc_dtype,
            self.atom_layout, tiler_mn=(64, self.tile[1]),
        )  # fmt: skip
        self.epi_tile = sm90_utils.compute_tile_shape_or_override(self.tile, self.d_dtype, self.warpgroups == 2)
        a_staged = sm90_utils.make_smem_layout_a(a_layout, self.tile, self.a_dtype, self.stages)
        b_staged = sm90_utils.make_smem_layout_b(b_layout, self.tile, self.b_dtype, self.stages)
        d_staged = sm90_utils.make_smem_layout_epi(self.d_dtype, d_layout, self.epi_tile, self.epi_stages)
        tma_a, tA = self.load_atom(a, a_staged, (self.tile[0], self.tile[2]), self.cluster_mn[1])
        tma_b, tB = self.load_atom(b, b_staged, (self.tile[1], self.tile[2]), self.cluster_mn[0])
        tma_d, tD = cpasync.make_tiled_tma_atom(
            cpasync.CopyBulkTensorTileS2GOp(), d, cute.slice_(d_staged, (None, None, 0)), self.epi_tile
        )

        tiles = cute.zipped_divide(d, tiler=(self.tile[0], self.tile[1]))
        params = utils.PersistentTileSchedulerParams(
            tiles[(0, (None, None, None))].shape, (*self.cluster_mn, 1), self.swizzle_size, self.raster_along_m
        )
        grid = utils.StaticPersistentTileScheduler.get_grid_shape(params, max_active)

        @cute.struct
        class SharedStorage:
            mainloop: cute.struct.MemRange[cutlass.Int64, 2 * self.stages]
            sA: cute.struct.Align[cute.struct.MemRange[self.a_dtype, cute.cosize(a_staged)], 1024]
            sB: cute.struct.Align[cute.struct.MemRange[self.b_dtype, cute.cosize(b_staged)], 1024]
            sD: cute.struct.Align[cute.struct.MemRange[self.d_dtype, cute.cosize(d_staged)], 1024]

        self.shared_storage = SharedStorage
        self.kernel(
            tma_a, tA, tma_b, tB, tma_d, tD, tiled_mma, cute.make_layout((*self.cluster_mn, 1)), a_staged, b_staged,
            d_staged, params,
        ).launch(
            grid=grid, block=(self.threads, 1, 1), cluster=(*self.cluster_mn, 1), min_blocks_per_mp=1, stream=stream
        )  # fmt: skip

    @staticmethod
    def load_atom(tensor, staged, tile, sharers):
        op = cpasync.CopyBulkTensorTileG2SOp() if sharers == 1 else cpasync.CopyBulkTensorTileG2SMulticastOp()
        stage = cute.slice_(staged, (None, None, 0))
        return cpasync.make_tiled_tma_atom(op, tensor, stage, tile, num_multicast=sharers)

    @cute.kernel
    def kernel(
        self, tma_a: cute.CopyAtom, mA: cute.Tensor, tma_b: cute.CopyAtom, mB: cute.Tensor, tma_d: cute.CopyAtom,
        mD: cute.Tensor, tiled_mma: cute.TiledMma, cta_layout: cute.Layout, a_staged: cute.ComposedLayout,
        b_staged: cute.ComposedLayout, d_staged: cute.ComposedLayout, params: utils.PersistentTileSchedulerParams,
    ):  # fmt: skip
        tidx, _, _ = cute.arch.thread_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        if warp == 0:
            for atom in (tma_a, tma_b, tma_d):
                cpasync.prefetch_descriptor(atom)
        rank = cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster())
        coord = cta_layout.get_flat_coord(rank)
        mask_a = cute.make_layout_image_mask(cta_layout, coord, mode=1)
        mask_b = cute.make_layout_image_mask(cta_layout, coord, mode=0)
        mask_a = mask_a if self.cluster_mn[1] > 1 else 0
        mask_b = mask_b if self.cluster_mn[0] > 1 else 0
        one_a, one_b = cute.slice_(a_staged, (None, None, 0)), cute.slice_(b_staged, (None, None, 0))
        nbytes = cute.size_in_bytes(self.a_dtype, one_a) + cute.size_in_bytes(self.b_dtype, one_b)

        smem = utils.SmemAllocator()
        storage = smem.allocate(self.shared_storage)
        sharers = self.cluster_mn[0] + self.cluster_mn[1] - 1
        mainloop = pipeline.PipelineTmaAsync.create(
            barrier_storage=storage.mainloop.data_ptr(),
            num_stages=self.stages,
            producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, sharers * 4 * self.warpgroups),
            tx_count=nbytes,
            cta_layout_vmnk=cute.make_layout((1, *cta_layout.shape)),
            defer_sync=True,
        )
        pipeline_init_arrive(cluster_shape_mn=self.cluster_mn, is_relaxed=True)

        sA = storage.sA.get_tensor(a_staged.outer, swizzle=a_staged.inner)
        sB = storage.sB.get_tensor(b_staged.outer, swizzle=b_staged.inner)
        sD = storage.sD.get_tensor(d_staged.outer, swizzle=d_staged.inner)
        tile_mk = cute.slice_(self.tile, (None, 0, None))
        tile_nk = cute.slice_(self.tile, (0, None, None))
        tile_mn = cute.slice_(self.tile, (None, None, 0))
        gA = cute.local_tile(mA, tile_mk, (None, None, None))  # (M, K, tiles m, tiles k, L)
        gB = cute.local_tile(mB, tile_nk, (None, None, None))
        gD = cute.local_tile(mD, tile_mn, (None, None, None))
        a_cta = cute.make_layout(cute.slice_(cta_layout, (0, None, 0)).shape)
        b_cta = cute.make_layout(cute.slice_(cta_layout, (None, 0, 0)).shape)
        tAsA, tAgA = cpasync.tma_partition(
            tma_a, coord[1], a_cta, cute.group_modes(sA, 0, 2), cute.group_modes(gA, 0, 2)
        )
        tBsB, tBgB = cpasync.tma_partition(
            tma_b, coord[0], b_cta, cute.group_modes(sB, 0, 2), cute.group_modes(gB, 0, 2)
        )
        k_tiles = cute.size(gA, mode=[3])
        pipeline_init_wait(cluster_shape_mn=self.cluster_mn)

        group = cute.arch.make_warp_uniform(tidx // 128)
        scheduler = utils.StaticPersistentTileScheduler.create(params, cute.arch.block_idx(), cute.arch.grid_dim())
        work = scheduler.initial_work_tile_info()
        if group == 0:
            cute.arch.setmaxregister_decrease(40)
        else:
            cute.arch.setmaxregister_increase(232)

        if group == 0:
            if warp == 0:
                state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, self.stages)
                while work.is_valid_tile:
                    m, n, batch = work.tile_idx
                    tAgA_tile = tAgA[(None, m, None, batch)]
                    tBgB_tile = tBgB[(None, n, None, batch)]
                    for k in cutlass.range(k_tiles, unroll=1):
                        mainloop.producer_acquire(state)
                        for atom, tg, ts, mask in (
                            (tma_a, tAgA_tile, tAsA, mask_a), (tma_b, tBgB_tile, tBsB, mask_b),
                        ):  # fmt: skip
                            cute.copy(
                                atom, tg[(None, k)], ts[(None, state.index)],
                                tma_bar_ptr=mainloop.producer_get_barrier(state), mcast_mask=mask,
                            )  # fmt: skip
                        mainloop.producer_commit(state)
                        state.advance()
                    scheduler.advance_to_next_work()
                    work = scheduler.get_current_work()
                mainloop.producer_tail(state)
        else:
            mma_group = group - 1
            slices = cute.make_layout(self.warpgroups, stride=128)
            thr_mma = tiled_mma.get_slice(slices(mma_group))
            tCrA = tiled_mma.make_fragment_A(thr_mma.partition_A(sA))
            tCrB = tiled_mma.make_fragment_B(thr_mma.partition_B(sB))
            acc = cute.make_rmem_tensor(thr_mma.partition_shape_C(self.tile[:2]), self.acc_dtype)
            store_atom = sm90_utils.sm90_get_smem_store_op(self.d_layout, self.d_dtype, self.acc_dtype)
            copy_c = cute.make_tiled_copy_C_atom(
                cute.make_copy_atom(warp_store(self.d_layout), self.d_dtype), tiled_mma
            )
            r2s = cute.make_tiled_copy_S(store_atom, copy_c)
            thr_r2s = r2s.get_slice(tidx - 128)
            tRS_sD, tRS_rAcc = thr_r2s.partition_D(sD), r2s.retile(acc)
            rD_shape = cute.shape(thr_r2s.partition_S(sD))
            tRS_rD = cute.make_rmem_tensor_like(cute.make_layout(rD_shape[:3]), self.acc_dtype)
            size_rD = cute.size(tRS_rD)
            store_pipe = pipeline.PipelineTmaStore.create(
                num_stages=self.epi_stages,
                producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 128 * self.warpgroups),
            )
            epilogue_barrier = pipeline.NamedBarrier(barrier_id=1, num_threads=128 * self.warpgroups)
            read = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, self.stages)
            release = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, self.stages)
            k_blocks = cute.size(tCrA, mode=[2])
            while work.is_valid_tile:
                read.reset_count()
                release.reset_count()
                tiled_mma.set(warpgroup.Field.ACCUMULATE, False)
                for k in cutlass.range(k_tiles, unroll=1):
                    mainloop.consumer_wait(read)
                    warpgroup.fence()
                    for block in cutlass.range(k_blocks, unroll_full=True):
                        at = (None, None, block, read.index)
                        cute.gemm(tiled_mma, acc, tCrA[at], tCrB[at], acc)
                        tiled_mma.set(warpgroup.Field.ACCUMULATE, True)
                    warpgroup.commit_group()
                    if k > 0:
                        warpgroup.wait_group(1)
                        mainloop.consumer_release(release)
                        release.advance()
                    read.advance()
                warpgroup.wait_group(0)
                mainloop.consumer_release(release)
                release.advance()

                gD_tile = gD[(None, None, *work.tile_idx)]
                parts = cute.zipped_divide(gD_tile, self.epi_tile)
                bSG_sD, bSG_gD = cpasync.tma_partition(tma_d, 0, cute.make_layout(1), cute.group_modes(sD, 0, 2), parts)
                count = cute.size(parts, mode=[1])
                part_layout = cute.make_layout(parts.shape[1], stride=(parts.shape[1][1], 1))
                done = scheduler.num_tiles_executed * count
                for part in cutlass.range_constexpr(count):
                    for v in cutlass.range_constexpr(size_rD):
                        tRS_rD[v] = tRS_rAcc[part * size_rD + v]
                    converted = cute.make_rmem_tensor_like(tRS_rD, self.d_dtype)
                    converted.store(tRS_rD.load().to(self.d_dtype))
                    buffer = (done + part) % cute.size(tRS_sD, mode=[3])
                    cute.copy(r2s, converted, tRS_sD[(None, None, None, buffer)])
                    cute.arch.fence_proxy("async.shared", space="cta")
                    epilogue_barrier.arrive_and_wait()
                    if warp == 4:
                        cute.copy(tma_d, bSG_sD[(None, buffer)], bSG_gD[(None, part_layout.get_hier_coord(part))])
                        store_pipe.producer_commit()
                        store_pipe.producer_acquire()
                    epilogue_barrier.arrive_and_wait()
                scheduler.advance_to_next_work()
                work = scheduler.get_current_work()
            if warp == 4:
                store_pipe.producer_tail()


def warp_store(layout):
    return cute.nvgpu.warp.StMatrix8x8x16bOp(layout.is_m_major_c(), 4)


def operand(batch, rows, columns, row_major, dtype):
    made = cutlass_torch.matrix(
        batch, rows, columns, not row_major, dtype, init_type=cutlass_torch.TensorInitType.RANDOM,
        init_config=cutlass_torch.RandomInitConfig(min_val=-2, max_val=3),
    )  # fmt: skip
    tensor, storage = cutlass_torch.cute_tensor_like(made, dtype, is_dynamic_layout=True, assumed_align=16)
    return tensor, storage, made


def run(mnkl, dtype, d_dtype, tile_mn, cluster_mn, majors, tolerance, timed=True):
    m, n, k, batch = mnkl
    a, a_torch, a_cpu = operand(batch, m, k, majors[0] == "k", dtype)
    b, b_torch, b_cpu = operand(batch, n, k, majors[1] == "k", dtype)
    d, d_torch, d_cpu = operand(batch, m, n, majors[2] == "n", d_dtype)
    gemm = PersistentGemm(cutlass.Float32, tile_mn, cluster_mn)
    stream = cuda.CUstream(torch.cuda.current_stream().cuda_stream)
    max_active = utils.HardwareInfo().get_max_active_clusters(cluster_mn[0] * cluster_mn[1])
    compiled = cute.compile(gemm, a, b, d, min(max_active, 2), stream)
    compiled(a, b, d, stream)
    expected = torch.einsum("mkl,nkl->mnl", a_cpu, b_cpu)
    torch.testing.assert_close(d_torch.cpu().float(), expected, atol=tolerance, rtol=1e-3)
    if not timed:
        return
    arguments = testing.JitArguments(a, b, d, stream)
    took = testing.benchmark(
        compiled, warmup_iterations=0, iterations=1, stream=stream, kernel_arguments=arguments
    )
    print(f"{mnkl} {dtype} {majors}: verified, {'timed' if took > 0 else 'untimed'}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--mnkl", type=lambda s: tuple(map(int, s.split(","))), default=(256, 160, 128, 2))
    args = parser.parse_args()
    if torch.cuda.get_device_capability()[0] != 9:
        raise RuntimeError("Hopper is required")
    run(args.mnkl, cutlass.Float16, cutlass.Float16, (128, 128), (2, 1), "kkn", 1e-1)
    run((128, 128, 96, 1), cutlass.BFloat16, cutlass.BFloat16, (64, 128), (1, 1), "mnm", 1.0, timed=False)
    print("PASS")
