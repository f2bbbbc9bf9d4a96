"""D = A B^T on Hopper, persistent: one warp loads, two warpgroups multiply; they share a tile ("cooperative") or take
tiles in turns ("pingpong": while one multiplies, the other stores). The sides of pipelines keep their own state."""

import argparse
from typing import Tuple, Type

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import cutlass.cute.testing as testing
import cutlass.torch as cutlass_torch
import cutlass.utils as utils
import torch
from cutlass import Float32, Int32, const_expr
from cutlass.cute.nvgpu import cpasync, warpgroup
from cutlass.cute.runtime import from_dlpack
from cutlass.pipeline import (
    Agent,
    CooperativeGroup,
    PipelineOrder,
    PipelineTmaAsync,
    PipelineTmaStore,
    pipeline_init_arrive,
    pipeline_init_wait,
)
from cutlass.utils import sm90 as sm90_utils


class PersistentGemm:
    num_mma_warp_groups = 2
    load_register_requirement, mma_register_requirement = 40, 232

    def __init__(
        self,
        schedule: str,
        acc_dtype: Type[cutlass.Numeric],
        tile_shape_mn: Tuple[int, int],
        cluster_shape_mn: Tuple[int, int],
        swizzle_size: int = 1,
        raster_along_m: bool = True,
    ):
        self.pingpong = schedule == "pingpong"
        self.acc_dtype = acc_dtype
        self.tile_shape_mn = tile_shape_mn
        self.cluster_shape_mn = cluster_shape_mn
        self.swizzle_size, self.raster_along_m = swizzle_size, raster_along_m
        self.warp_groups_of_tile = 1 if self.pingpong else self.num_mma_warp_groups
        self.threads_per_cta = 128 * (1 + self.num_mma_warp_groups)
        self.epi_stages = 2 if self.pingpong else 4
        self.shared_storage = None

    @cute.jit
    def __call__(
        self,
        a: cute.Tensor,
        b: cute.Tensor,
        c: cute.Tensor,
        max_active_clusters: cutlass.Constexpr,
        stream: cuda.CUstream,
    ):
        a_layout = utils.LayoutEnum.from_tensor(a)
        b_layout = utils.LayoutEnum.from_tensor(b)
        self.c_layout = utils.LayoutEnum.from_tensor(c)
        self.c_dtype = c.element_type
        tiled_mma = sm90_utils.make_trivial_tiled_mma(
            a_dtype=a.element_type,
            b_dtype=b.element_type,
            a_leading_mode=a_layout.sm90_mma_major_mode(),
            b_leading_mode=b_layout.sm90_mma_major_mode(),
            acc_dtype=self.acc_dtype,
            atom_layout_mnk=(self.warp_groups_of_tile, 1, 1),
            tiler_mn=(64, self.tile_shape_mn[1]),
        )
        self.cta_tile_shape_mnk = (*self.tile_shape_mn, cute.size(tiled_mma.shape_mnk, mode=[2]) * 4)
        self.epi_tile = sm90_utils.compute_tile_shape_or_override(
            self.cta_tile_shape_mnk, self.c_dtype, is_cooperative=not self.pingpong
        )
        epi_buffers = self.epi_stages * (self.num_mma_warp_groups if self.pingpong else 1)
        c_smem = sm90_utils.make_smem_layout_epi(self.c_dtype, self.c_layout, self.epi_tile, epi_buffers)
        self.ab_stages = self.stages(a.element_type, b.element_type, cute.size_in_bytes(self.c_dtype, c_smem))
        a_smem = sm90_utils.make_smem_layout_a(a_layout, self.cta_tile_shape_mnk, a.element_type, self.ab_stages)
        b_smem = sm90_utils.make_smem_layout_b(b_layout, self.cta_tile_shape_mnk, b.element_type, self.ab_stages)
        m, n, k = self.cta_tile_shape_mnk
        tma_a, tensor_a = self.make_load(a, a_smem, (m, k), self.cluster_shape_mn[1])
        tma_b, tensor_b = self.make_load(b, b_smem, (n, k), self.cluster_shape_mn[0])
        tma_c, tensor_c = cpasync.make_tiled_tma_atom(
            cpasync.CopyBulkTensorTileS2GOp(), c, cute.select(c_smem, mode=[0, 1]), self.epi_tile
        )
        ctas = cute.ceil_div(c.shape, (m, n, 1))
        params = utils.PersistentTileSchedulerParams(
            ctas,
            (*self.cluster_shape_mn, 1),
            swizzle_size=self.swizzle_size,
            raster_along_m=self.raster_along_m,
        )
        grid = utils.StaticPersistentTileScheduler.get_grid_shape(params, max_active_clusters)

        @cute.struct
        class SharedStorage:
            full_and_empty: cute.struct.MemRange[cutlass.Int64, self.ab_stages * 2]
            order: cute.struct.MemRange[cutlass.Int64, 2 * self.num_mma_warp_groups]
            sC: cute.struct.Align[cute.struct.MemRange[self.c_dtype, cute.cosize(c_smem)], 1024]
            sA: cute.struct.Align[cute.struct.MemRange[a.element_type, cute.cosize(a_smem)], 1024]
            sB: cute.struct.Align[cute.struct.MemRange[b.element_type, cute.cosize(b_smem)], 1024]

        self.shared_storage = SharedStorage
        self.kernel(
            tma_a, tensor_a, tma_b, tensor_b, tma_c, tensor_c, tiled_mma, a_smem, b_smem, c_smem, params
        ).launch(
            grid=grid,
            block=[self.threads_per_cta, 1, 1],
            cluster=(*self.cluster_shape_mn, 1),
            stream=stream,
            min_blocks_per_mp=1,
        )

    def stages(self, a_dtype, b_dtype, epi_bytes):
        m, n, k = self.cta_tile_shape_mnk
        stage = (m * a_dtype.width + n * b_dtype.width) * k // 8
        return (utils.get_smem_capacity_in_bytes("sm_90") - 1024 - epi_bytes) // stage

    @staticmethod
    def make_load(tensor, smem_layout, tile, sharers):
        op = cpasync.CopyBulkTensorTileG2SOp()
        if sharers > 1:
            op = cpasync.CopyBulkTensorTileG2SMulticastOp()
        return cpasync.make_tiled_tma_atom(
            op, tensor, cute.slice_(smem_layout, (None, None, 0)), tile, num_multicast=sharers
        )

    @cute.kernel
    def kernel(
        self,
        tma_a: cute.CopyAtom,
        mA: cute.Tensor,
        tma_b: cute.CopyAtom,
        mB: cute.Tensor,
        tma_c: cute.CopyAtom,
        mC: cute.Tensor,
        tiled_mma: cute.TiledMma,
        a_smem: cute.ComposedLayout,
        b_smem: cute.ComposedLayout,
        c_smem: cute.ComposedLayout,
        params: utils.PersistentTileSchedulerParams,
    ):
        tidx, _, _ = cute.arch.thread_idx()
        warp_idx = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        warp_group_idx = cute.arch.make_warp_uniform(tidx // 128)
        if warp_idx == 0:
            cpasync.prefetch_descriptor(tma_a)
            cpasync.prefetch_descriptor(tma_b)
            cpasync.prefetch_descriptor(tma_c)
        cta_layout_mnk = cute.make_layout((*self.cluster_shape_mn, 1))
        cluster_coord = cta_layout_mnk.get_flat_coord(cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster()))
        cta_layout_vmnk = cute.make_layout((1, *cta_layout_mnk.shape))
        vmnk = (0, *cluster_coord)
        mask_a, mask_b = None, None
        if const_expr(self.cluster_shape_mn[1] > 1):
            mask_a = cpasync.create_tma_multicast_mask(cta_layout_vmnk, vmnk, mcast_mode=2)
        if const_expr(self.cluster_shape_mn[0] > 1):
            mask_b = cpasync.create_tma_multicast_mask(cta_layout_vmnk, vmnk, mcast_mode=1)

        storage = utils.SmemAllocator().allocate(self.shared_storage)
        # the warpgroups of a tile are those who release its stages
        releasing_warps = 4 * self.warp_groups_of_tile
        sharers = self.cluster_shape_mn[0] + self.cluster_shape_mn[1] - 1
        tx_count = cute.size_in_bytes(tma_a.value_type, cute.select(a_smem, mode=[0, 1])) + cute.size_in_bytes(
            tma_b.value_type, cute.select(b_smem, mode=[0, 1])
        )
        producer, consumer = PipelineTmaAsync.create(
            barrier_storage=storage.full_and_empty.data_ptr(),
            num_stages=self.ab_stages,
            producer_group=CooperativeGroup(Agent.Thread),
            consumer_group=CooperativeGroup(Agent.Thread, sharers * releasing_warps),
            tx_count=tx_count,
            cta_layout_vmnk=cta_layout_vmnk,
            tidx=tidx,
            defer_sync=True,
        ).make_participants()
        order = PipelineOrder.create(
            barrier_storage=storage.order.data_ptr(),
            depth=2,
            length=self.num_mma_warp_groups,
            group_id=warp_group_idx - 1,
            producer_group=CooperativeGroup(Agent.Thread, 128),
            defer_sync=True,
        )
        pipeline_init_arrive(cluster_shape_mn=cta_layout_vmnk, is_relaxed=True)
        sA = storage.sA.get_tensor(a_smem.outer, swizzle=a_smem.inner)
        sB = storage.sB.get_tensor(b_smem.outer, swizzle=b_smem.inner)
        sC = storage.sC.get_tensor(c_smem.outer, swizzle=c_smem.inner)
        m, n, k = self.cta_tile_shape_mnk
        gA = cute.local_tile(mA, tiler=(m, k), coord=(None, None, None))
        gB = cute.local_tile(mB, tiler=(n, k), coord=(None, None, None))
        gC = cute.local_tile(mC, tiler=(m, n), coord=(None, None, None))
        tAsA, tAgA = cpasync.tma_partition(
            tma_a, cluster_coord[1], cute.make_layout(self.cluster_shape_mn[1]),
            cute.group_modes(sA, 0, 2), cute.group_modes(gA, 0, 2),
        )
        tBsB, tBgB = cpasync.tma_partition(
            tma_b, cluster_coord[0], cute.make_layout(self.cluster_shape_mn[0]),
            cute.group_modes(sB, 0, 2), cute.group_modes(gB, 0, 2),
        )
        k_tiles = cute.size(gA, mode=[3])
        scheduler = utils.StaticPersistentTileScheduler.create(params, cute.arch.block_idx(), cute.arch.grid_dim())
        pipeline_init_wait(cluster_shape_mn=cta_layout_vmnk)

        if warp_group_idx == 0:
            cute.arch.setmaxregister_decrease(self.load_register_requirement)
            if warp_idx == 0:
                work = scheduler.initial_work_tile_info()
                while work.is_valid_tile:
                    tile_m, tile_n, batch = work.tile_idx
                    tAgA_tile = tAgA[(None, tile_m, None, batch)]
                    tBgB_tile = tBgB[(None, tile_n, None, batch)]
                    producer.reset()
                    token = producer.try_acquire()
                    for k_tile in cutlass.range(k_tiles, unroll=1):
                        handle = producer.acquire_and_advance(token)
                        cute.copy(
                            tma_a,
                            tAgA_tile[(None, handle.count)],
                            tAsA[(None, handle.index)],
                            tma_bar_ptr=handle.barrier,
                            mcast_mask=mask_a,
                        )
                        cute.copy(
                            tma_b,
                            tBgB_tile[(None, handle.count)],
                            tBsB[(None, handle.index)],
                            tma_bar_ptr=handle.barrier,
                            mcast_mask=mask_b,
                        )
                        handle.commit()
                        token = cutlass.Boolean(1)
                        if handle.count + 1 < k_tiles:
                            token = producer.try_acquire()
                    scheduler.advance_to_next_work()
                    work = scheduler.get_current_work()
                producer.tail()
        else:
            cute.arch.setmaxregister_increase(self.mma_register_requirement)
            group = warp_group_idx - 1
            tid = tidx - 128
            if const_expr(self.pingpong):
                tid = tidx % 128
                # the second group begins with the second tile
                if group == 1:
                    for _ in cutlass.range(k_tiles, unroll=1):
                        consumer.advance()
                    scheduler.advance_to_next_work()
            work = scheduler.get_current_work()
            thr_mma = tiled_mma.get_slice(tid)
            tCrA = tiled_mma.make_fragment_A(thr_mma.partition_A(sA))
            tCrB = tiled_mma.make_fragment_B(thr_mma.partition_B(sB))
            acc = cute.make_rmem_tensor(tiled_mma.partition_shape_C((m, n)), self.acc_dtype)

            store_atom = sm90_utils.get_smem_store_op(self.c_layout, self.c_dtype, self.acc_dtype)
            r2s = cute.make_tiled_copy_S(
                store_atom,
                cute.make_tiled_copy_C_atom(
                    cute.make_copy_atom(
                        cute.nvgpu.warp.StMatrix8x8x16bOp(self.c_layout.is_m_major_c(), num_matrices=4), self.c_dtype
                    ),
                    tiled_mma,
                ),
            )
            thr_r2s = r2s.get_slice(tid)
            tRS_sC = thr_r2s.partition_D(sC)
            tRS_rAcc = r2s.retile(acc)
            tRS_rC_layout = cute.make_layout(cute.shape(thr_r2s.partition_S(sC))[:3])
            size_part = cute.size(tRS_rC_layout)
            ring = PipelineTmaStore.create(
                num_stages=self.epi_stages, producer_group=CooperativeGroup(Agent.Thread, 128 * self.warp_groups_of_tile)
            )
            first_buffer, barrier_id = 0, 1
            stores = warp_idx == 4
            if const_expr(self.pingpong):
                first_buffer, barrier_id = group * self.epi_stages, 1 + group
                stores = warp_idx % 4 == 0

            while work.is_valid_tile:
                if const_expr(self.pingpong):
                    order.wait()
                tiled_mma.set(warpgroup.Field.ACCUMULATE, False)
                previous = consumer.wait_and_advance()
                self.multiply(tiled_mma, acc, tCrA, tCrB, previous.index)
                for k_tile in cutlass.range(1, k_tiles, unroll=1):
                    handle = consumer.wait_and_advance()
                    self.multiply(tiled_mma, acc, tCrA, tCrB, handle.index)
                    warpgroup.wait_group(1)
                    previous.release()
                    previous = handle
                if const_expr(self.pingpong):
                    order.arrive()
                warpgroup.wait_group(0)
                previous.release()
                if const_expr(self.pingpong):
                    # the stages of the other group's tile
                    for _ in cutlass.range(k_tiles, unroll=1):
                        consumer.advance()
                    order.wait()

                gC_parts = cute.zipped_divide(gC[(None, None, *work.tile_idx)], self.epi_tile)
                bSG_sC, bSG_gC = cpasync.tma_partition(
                    tma_c, 0, cute.make_layout(1), cute.group_modes(sC, 0, 2), gC_parts
                )
                rest = gC_parts.shape[1]
                part_order = cute.make_layout(rest, stride=(rest[1], 1))
                for i in cutlass.range(cute.size(rest), unroll_full=True):
                    tRS_rC = cute.make_rmem_tensor(tRS_rC_layout.shape, self.c_dtype)
                    for v in cutlass.range(size_part, unroll_full=True):
                        tRS_rC[v] = tRS_rAcc[i * size_part + v].to(self.c_dtype)
                    buffer = first_buffer + i % self.epi_stages
                    if stores:
                        ring.producer_acquire()
                    cute.arch.barrier(barrier_id=barrier_id, number_of_threads=128 * self.warp_groups_of_tile)
                    cute.copy(r2s, tRS_rC, tRS_sC[(None, None, None, buffer)])
                    cute.arch.fence_proxy(cute.arch.ProxyKind.async_shared, space=cute.arch.SharedSpace.shared_cta)
                    cute.arch.barrier(barrier_id=barrier_id, number_of_threads=128 * self.warp_groups_of_tile)
                    if stores:
                        cute.copy(tma_c, bSG_sC[(None, buffer)], bSG_gC[(None, part_order.get_hier_coord(i))])
                        ring.producer_commit()
                if const_expr(self.pingpong):
                    order.arrive()
                    scheduler.advance_to_next_work()
                scheduler.advance_to_next_work()
                work = scheduler.get_current_work()
            if stores:
                ring.producer_tail()

    @cute.jit
    def multiply(self, tiled_mma: cute.TiledMma, acc: cute.Tensor, tCrA: cute.Tensor, tCrB: cute.Tensor, stage: Int32):
        warpgroup.fence()
        for k_block in cutlass.range_constexpr(cute.size(tCrA, mode=[2])):
            coord = (None, None, k_block, stage)
            cute.gemm(tiled_mma, acc, tCrA[coord], tCrB[coord], acc)
            tiled_mma.set(warpgroup.Field.ACCUMULATE, True)
        warpgroup.commit_group()


def make(batch, rows, columns, rows_contiguous, dtype):
    numbers = cutlass_torch.matrix(batch, rows, columns, not rows_contiguous, dtype)
    on_gpu = numbers.to(cutlass_torch.dtype(dtype)).cuda()
    tensor = from_dlpack(on_gpu, assumed_align=16).mark_layout_dynamic(leading_dim=1 if rows_contiguous else 0)
    return numbers, tensor.mark_compact_shape_dynamic(
        mode=1 if rows_contiguous else 0,
        stride_order=(2, 0, 1) if rows_contiguous else (2, 1, 0),
        divisibility=128 // dtype.width,
    ), on_gpu


def run(
    schedule, mnkl, ab_dtype, c_dtype, majors, tile_shape_mn, cluster_shape_mn, swizzle_size=1, raster_along_m=True,
    tolerance=1e-1, warmup_iterations=0, iterations=0, skip_ref_check=False, max_clusters=None,
):
    """Gives the microseconds of one product."""
    m, n, k, batch = mnkl
    (a, tensor_a, _), (b, tensor_b, _) = (
        make(batch, rows, k, major == "k", ab_dtype) for rows, major in ((m, majors[0]), (n, majors[1]))
    )
    _, tensor_c, torch_c = make(batch, m, n, majors[2] == "n", c_dtype)
    gemm = PersistentGemm(schedule, Float32, tile_shape_mn, cluster_shape_mn, swizzle_size, raster_along_m)
    stream = cutlass_torch.default_stream()
    clusters = utils.HardwareInfo().get_max_active_clusters(cluster_shape_mn[0] * cluster_shape_mn[1])
    clusters = clusters if max_clusters is None else min(clusters, max_clusters)
    compiled = cute.compile(gemm, tensor_a, tensor_b, tensor_c, clusters, stream)
    if not skip_ref_check:
        compiled(tensor_a, tensor_b, tensor_c, stream)
        torch.cuda.synchronize()
        expected = torch.einsum("mkl,nkl->mnl", a, b)
        torch.testing.assert_close(torch_c.cpu().float(), expected, atol=tolerance, rtol=1e-3)
    if iterations == 0:
        return 0.0
    return testing.benchmark(
        compiled,
        kernel_arguments=testing.JitArguments(tensor_a, tensor_b, tensor_c, stream),
        stream=stream,
        warmup_iterations=warmup_iterations,
        iterations=iterations,
        use_cuda_graphs=False,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--max_clusters", type=int, default=2)
    args = parser.parse_args()
    f16, bf16 = cutlass.Float16, cutlass.BFloat16
    for arguments in (
        ("pingpong", (200, 136, 128, 1), f16, f16, "kkn", (64, 128), (2, 1)),
        ("pingpong", (72, 128, 192, 2), f16, cutlass.Float32, "mnn", (64, 64), (1, 1)),
        ("cooperative", (136, 264, 72, 2), bf16, bf16, "kkm", (128, 128), (1, 2), 2, False, 1.0),
    ):
        run(*arguments, iterations=int(arguments[0] == "cooperative"), max_clusters=args.max_clusters)
        print(*arguments)
    print("PASS")
