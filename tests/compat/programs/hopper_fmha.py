"""Attention, forward, on Hopper: one warp loads Q, K and V by TMA, two warpgroups of 64 rows each multiply by wgmma;
P stays in registers. Grouped heads, causal masks, sequences of different lengths in one launch."""

import argparse
import math
from typing import Optional, Tuple, Type

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import cutlass.pipeline as pipeline
import cutlass.torch as cutlass_torch
import cutlass.utils as utils
import cutlass.utils.hopper_helpers as sm90_utils
import torch
from cutlass.cute.nvgpu import OperandMajorMode, cpasync, warpgroup
from cutlass.cute.runtime import from_dlpack
from cutlass.cute.typing import Float32, Int32, Int64


class HopperFmhaForward:
    def __init__(
        self,
        qk_acc_dtype: Type[cutlass.Numeric],
        pv_acc_dtype: Type[cutlass.Numeric],
        mma_tiler: Tuple[int, int, int],
        is_causal: bool,
    ):
        self.qk_acc_dtype = qk_acc_dtype
        self.pv_acc_dtype = pv_acc_dtype
        self.mma_warp_groups = 2
        self.cta_tiler = mma_tiler
        self.qk_mma_tiler = (mma_tiler[0] // self.mma_warp_groups, mma_tiler[1], mma_tiler[2])
        self.pv_mma_tiler = (self.qk_mma_tiler[0], mma_tiler[2], mma_tiler[1])
        self.is_causal = is_causal
        self.num_threads_per_warp_group = 128
        self.num_warps_per_warp_group = 4
        self.threads_per_cta = (self.mma_warp_groups + 1) * self.num_threads_per_warp_group
        self.num_regs_load, self.num_regs_mma = 24, 240
        self.q_stage, self.kv_stage, self.epi_stage = 2, 4, 2
        self.buffer_align_bytes = 1024

    @cute.jit
    def __call__(
        self,
        q_iter: cute.Pointer,
        k_iter: cute.Pointer,
        v_iter: cute.Pointer,
        o_iter: cute.Pointer,
        problem_size: Tuple[Int32, Int32, Int32, Int32, Int32, Int32],
        cum_seqlen_q: Optional[cute.Tensor],
        cum_seqlen_k: Optional[cute.Tensor],
        lse: Optional[cute.Tensor],
        scale_softmax_log2: Float32,
        scale_softmax: Float32,
        stream: cuda.CUstream,
    ):
        b, s_q, s_k, h_q, h_k, d = problem_size
        d = cute.assume(d, divby=8)  # rows of 16 bytes
        h_r = h_q // h_k
        total_b = b if cutlass.const_expr(cum_seqlen_q is None) else 1
        q_offset = s_q * h_q * d if cutlass.const_expr(cum_seqlen_q is None) else 0
        kv_offset = s_k * h_k * d if cutlass.const_expr(cum_seqlen_q is None) else 0
        # (s, d, ((h_r, h_k), b))
        q_layout = cute.make_layout(
            (s_q, d, ((h_r, h_k), total_b)),
            stride=(d * h_q, 1, ((d, d * h_r), q_offset)),
        )
        q = cute.make_tensor(q_iter, q_layout)
        o = cute.make_tensor(o_iter, q_layout)
        k_layout = cute.make_layout(
            (s_k, d, ((h_r, h_k), total_b)), stride=(d * h_k, 1, ((0, d), kv_offset))
        )
        k = cute.make_tensor(k_iter, k_layout)
        # (d, s, ((h_r, h_k), b))
        v = cute.make_tensor(v_iter, cute.select(k_layout, mode=[1, 0, 2]))
        self.q_dtype, self.k_dtype, self.v_dtype, self.o_dtype = (
            t.element_type for t in (q, k, v, o)
        )
        self.q_layout_enum = utils.LayoutEnum.from_tensor(q)
        self.o_layout = utils.LayoutEnum.from_tensor(o)
        if cutlass.const_expr(self.q_dtype != self.k_dtype):
            raise TypeError(f"Type mismatch: {self.q_dtype} != {self.k_dtype}")

        qk_tiled_mma = sm90_utils.make_trivial_tiled_mma(
            self.q_dtype,
            self.k_dtype,
            OperandMajorMode.K,
            OperandMajorMode.K,
            self.qk_acc_dtype,
            (1, 1, 1),
            tiler_mn=(64, self.qk_mma_tiler[1]),
        )
        pv_tiled_mma = sm90_utils.make_trivial_tiled_mma(
            self.v_dtype,
            self.v_dtype,
            OperandMajorMode.K,
            OperandMajorMode.MN,
            self.pv_acc_dtype,
            (1, 1, 1),
            tiler_mn=(64, self.pv_mma_tiler[1]),
            a_source=warpgroup.OperandSource.RMEM,
        )
        q_smem_layout_staged = sm90_utils.make_smem_layout_a(
            self.q_layout_enum, self.qk_mma_tiler, self.q_dtype, self.q_stage
        )
        k_smem_layout_staged = sm90_utils.make_smem_layout_b(
            utils.LayoutEnum.from_tensor(k), self.qk_mma_tiler, self.k_dtype, self.kv_stage
        )
        v_smem_layout_staged = sm90_utils.make_smem_layout_b(
            utils.LayoutEnum.from_tensor(v), self.pv_mma_tiler, self.v_dtype, self.kv_stage
        )
        o_smem_layout_staged = sm90_utils.make_smem_layout_epi(
            self.o_dtype, self.o_layout, cute.select(self.pv_mma_tiler, mode=[0, 1]), self.epi_stage
        )

        tma_load_op = cpasync.CopyBulkTensorTileG2SOp()
        tma_atom_q, tma_tensor_q = cpasync.make_tiled_tma_atom(
            tma_load_op,
            q,
            cute.select(q_smem_layout_staged, mode=[0, 1]),
            cute.select(self.qk_mma_tiler, mode=[0, 2]),
        )
        tma_atom_k, tma_tensor_k = cpasync.make_tiled_tma_atom(
            tma_load_op,
            k,
            cute.select(k_smem_layout_staged, mode=[0, 1]),
            cute.select(self.qk_mma_tiler, mode=[1, 2]),
        )
        tma_atom_v, tma_tensor_v = cpasync.make_tiled_tma_atom(
            tma_load_op,
            v,
            cute.select(v_smem_layout_staged, mode=[0, 1]),
            cute.select(self.pv_mma_tiler, mode=[1, 2]),
        )
        self.tma_copy_q_bytes = cute.size_in_bytes(
            self.q_dtype, cute.select(q_smem_layout_staged, mode=[0, 1])
        )
        self.tma_copy_kv_bytes = cute.size_in_bytes(
            self.k_dtype, cute.select(k_smem_layout_staged, mode=[0, 1])
        )

        @cute.struct
        class SharedStorage:
            load_q_mbar_ptr: cute.struct.MemRange[Int64, self.q_stage * 2]
            load_kv_mbar_ptr: cute.struct.MemRange[Int64, self.kv_stage * 2]
            order_mbar_ptr: cute.struct.MemRange[Int64, self.mma_warp_groups]
            # O is written where Q was
            sQ: cute.struct.Align[
                cute.struct.MemRange[self.q_dtype, cute.cosize(q_smem_layout_staged)],
                self.buffer_align_bytes,
            ]
            sK: cute.struct.Align[
                cute.struct.MemRange[self.k_dtype, cute.cosize(k_smem_layout_staged)],
                self.buffer_align_bytes,
            ]

        self.shared_storage = SharedStorage
        grid = (cute.ceil_div(s_q, self.cta_tiler[0]), h_q, b)
        self.kernel(
            qk_tiled_mma,
            pv_tiled_mma,
            tma_atom_q,
            tma_tensor_q,
            tma_atom_k,
            tma_tensor_k,
            tma_atom_v,
            tma_tensor_v,
            o,
            cum_seqlen_q,
            cum_seqlen_k,
            lse,
            scale_softmax_log2,
            scale_softmax,
            q_smem_layout_staged,
            k_smem_layout_staged,
            v_smem_layout_staged,
            o_smem_layout_staged,
        ).launch(
            grid=grid,
            block=[self.threads_per_cta, 1, 1],
            cluster=(1, 1, 1),
            smem=self.shared_storage.size_in_bytes(),
            stream=stream,
            min_blocks_per_mp=1,
        )

    @cute.kernel
    def kernel(
        self,
        qk_tiled_mma: cute.TiledMma,
        pv_tiled_mma: cute.TiledMma,
        tma_atom_q: cute.CopyAtom,
        mQ_qdl: cute.Tensor,
        tma_atom_k: cute.CopyAtom,
        mK_kdl: cute.Tensor,
        tma_atom_v: cute.CopyAtom,
        mV_dkl: cute.Tensor,
        mO_qdl: cute.Tensor,
        cum_seqlen_q: Optional[cute.Tensor],
        cum_seqlen_k: Optional[cute.Tensor],
        mLSE: Optional[cute.Tensor],
        scale_softmax_log2: Float32,
        scale_softmax: Float32,
        q_smem_layout_staged: cute.ComposedLayout,
        k_smem_layout_staged: cute.ComposedLayout,
        v_smem_layout_staged: cute.ComposedLayout,
        o_smem_layout_staged: cute.ComposedLayout,
    ):
        warp_idx = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        tidx, _, _ = cute.arch.thread_idx()
        bidx, head, batch = cute.arch.block_idx()
        if warp_idx == 0:
            cpasync.prefetch_descriptor(tma_atom_q)
            cpasync.prefetch_descriptor(tma_atom_k)
            cpasync.prefetch_descriptor(tma_atom_v)

        smem = utils.SmemAllocator()
        storage = smem.allocate(self.shared_storage)
        load_q_producer, load_q_consumer = pipeline.PipelineTmaAsync.create(
            num_stages=self.q_stage,
            producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
            consumer_group=pipeline.CooperativeGroup(
                pipeline.Agent.Thread, self.num_warps_per_warp_group
            ),
            tx_count=self.tma_copy_q_bytes,
            barrier_storage=storage.load_q_mbar_ptr.data_ptr(),
            defer_sync=True,
        ).make_participants()
        load_kv_producer, load_kv_consumer = pipeline.PipelineTmaAsync.create(
            num_stages=self.kv_stage,
            producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
            consumer_group=pipeline.CooperativeGroup(
                pipeline.Agent.Thread, self.mma_warp_groups * self.num_warps_per_warp_group
            ),
            tx_count=self.tma_copy_kv_bytes,
            barrier_storage=storage.load_kv_mbar_ptr.data_ptr(),
            defer_sync=True,
        ).make_participants()
        warp_group_idx = cute.arch.make_warp_uniform(tidx // self.num_threads_per_warp_group)
        order = pipeline.PipelineOrder.create(
            barrier_storage=storage.order_mbar_ptr.data_ptr(),
            depth=1,
            length=self.mma_warp_groups,
            group_id=warp_group_idx - 1,
            producer_group=pipeline.CooperativeGroup(
                pipeline.Agent.Thread, self.num_threads_per_warp_group
            ),
            defer_sync=True,
        )
        pipeline.pipeline_init_arrive()

        sQ = storage.sQ.get_tensor(q_smem_layout_staged.outer, swizzle=q_smem_layout_staged.inner)
        sK = storage.sK.get_tensor(k_smem_layout_staged.outer, swizzle=k_smem_layout_staged.inner)
        # K and V share one ring
        sV_ptr = cute.recast_ptr(sK.iterator, v_smem_layout_staged.inner, dtype=self.v_dtype)
        sV = cute.make_tensor(sV_ptr, v_smem_layout_staged.outer)
        sO_ptr = cute.recast_ptr(sQ.iterator, o_smem_layout_staged.inner, dtype=self.o_dtype)
        sO = cute.make_tensor(sO_ptr, o_smem_layout_staged.outer)
        pipeline.pipeline_init_wait()

        seqlen_q, seqlen_k = mQ_qdl.shape[0], mK_kdl.shape[0]
        start_q, start_k, batch_coord = Int32(0), Int32(0), batch
        if cutlass.const_expr(cum_seqlen_q is not None):
            start_q, start_k = cum_seqlen_q[batch], cum_seqlen_k[batch]
            seqlen_q = cum_seqlen_q[batch + 1] - start_q
            seqlen_k = cum_seqlen_k[batch + 1] - start_k
            batch_coord = Int32(0)
        active = bidx * self.cta_tiler[0] < seqlen_q
        trip_count = cute.ceil_div(seqlen_k, self.cta_tiler[1])
        if cutlass.const_expr(self.is_causal):
            last = (bidx + 1) * self.cta_tiler[0] + seqlen_k - seqlen_q
            trip_count = cutlass.max(
                cutlass.min(trip_count, cute.ceil_div(last, self.cta_tiler[1])), 1
            )

        # ---------------------------------------------------------------- load
        if warp_group_idx == 0:
            cute.arch.warpgroup_reg_dealloc(self.num_regs_load)
            if warp_idx == 0 and active:
                coord_l = (head, batch_coord)
                tQsQ, tQgQ = self.tma_parts(
                    tma_atom_q, cute.domain_offset((start_q, 0, 0), mQ_qdl)[None, None, coord_l], sQ,
                    (self.qk_mma_tiler[0], self.qk_mma_tiler[2]), (None, 0),
                )
                tKsK, tKgK = self.tma_parts(
                    tma_atom_k, cute.domain_offset((start_k, 0, 0), mK_kdl)[None, None, coord_l], sK,
                    (self.qk_mma_tiler[1], self.qk_mma_tiler[2]), (None, 0),
                )
                tVsV, tVgV = self.tma_parts(
                    tma_atom_v, cute.domain_offset((0, start_k, 0), mV_dkl)[None, None, coord_l], sV,
                    (self.pv_mma_tiler[1], self.pv_mma_tiler[2]), (0, None),
                )
                for group in cutlass.range_constexpr(self.mma_warp_groups):
                    q_handle = load_q_producer.acquire_and_advance()
                    cute.copy(
                        tma_atom_q,
                        tQgQ[(None, bidx * self.mma_warp_groups + group)],
                        tQsQ[(None, q_handle.index)],
                        tma_bar_ptr=q_handle.barrier,
                    )
                # from the last block, which may be masked, to the first
                for j in cutlass.range(0, trip_count, 1, unroll=1):
                    block = trip_count - 1 - j
                    k_handle = load_kv_producer.acquire_and_advance()
                    cute.copy(
                        tma_atom_k, tKgK[None, block], tKsK[None, k_handle.index], tma_bar_ptr=k_handle.barrier
                    )
                    v_handle = load_kv_producer.acquire_and_advance()
                    cute.copy(
                        tma_atom_v, tVgV[None, block], tVsV[None, v_handle.index], tma_bar_ptr=v_handle.barrier
                    )
                load_kv_producer.tail()
        # ---------------------------------------------------------------- multiply
        else:
            cute.arch.warpgroup_reg_alloc(self.num_regs_mma)
            if active:
                group = warp_group_idx - 1
                tid = tidx % self.num_threads_per_warp_group
                qk_thr_mma = qk_tiled_mma.get_slice(tid)
                pv_thr_mma = pv_tiled_mma.get_slice(tid)
                tSrQ = qk_tiled_mma.make_fragment_A(qk_thr_mma.partition_A(sQ))
                tSrK = qk_tiled_mma.make_fragment_B(qk_thr_mma.partition_B(sK))
                tOrV = pv_tiled_mma.make_fragment_B(pv_thr_mma.partition_B(sV))
                acc_shape_qk = qk_thr_mma.partition_shape_C(cute.select(self.qk_mma_tiler, mode=[0, 1]))
                acc_shape_pv = pv_thr_mma.partition_shape_C(cute.select(self.pv_mma_tiler, mode=[0, 1]))
                acc_pv = cute.make_rmem_tensor(acc_shape_pv, self.pv_acc_dtype)
                acc_pv.fill(0.0)
                cS = cute.make_identity_tensor(cute.select(self.qk_mma_tiler, mode=[0, 1]))
                tScS = qk_thr_mma.partition_C(cS)
                rows = cute.size(convert_c_layout_to_rows(acc_pv.layout), mode=[0])
                s_max = cute.make_rmem_tensor(rows, self.qk_acc_dtype)
                a_sum = cute.make_rmem_tensor_like(s_max, self.qk_acc_dtype)
                s_max.fill(-Float32.inf)
                a_sum.fill(0.0)
                first_row = bidx * self.cta_tiler[0] + group * self.qk_mma_tiler[0]

                # one consumer side of two stages: this group's Q is the stage of its number
                if group == 1:
                    load_q_consumer.advance()
                q_handle = load_q_consumer.wait()
                tSrQ_stage = tSrQ[(None, None, None, q_handle.index)]

                k_handle = load_kv_consumer.wait_and_advance()
                acc_qk = cute.make_rmem_tensor(acc_shape_qk, self.qk_acc_dtype)
                self.multiply_qk(qk_tiled_mma, tSrQ_stage, tSrK[None, None, None, k_handle.index], acc_qk)
                warpgroup.wait_group(0)
                k_handle.release()
                self.mask(acc_qk, tScS, (first_row, (trip_count - 1) * self.cta_tiler[1]), seqlen_q, seqlen_k)
                self.softmax_step(acc_qk, acc_pv, s_max, a_sum, scale_softmax_log2)
                for j in cutlass.range(1, trip_count, 1, unroll=1):
                    tOrP = self.make_operand(acc_qk)
                    # stage of V, then that of the next K
                    v_handle = load_kv_consumer.wait_and_advance()
                    k_token = load_kv_consumer.try_wait()
                    k_handle = load_kv_consumer.wait_and_advance(k_token)
                    acc_next = cute.make_rmem_tensor(acc_shape_qk, self.qk_acc_dtype)
                    order.wait()
                    self.multiply_qk(qk_tiled_mma, tSrQ_stage, tSrK[None, None, None, k_handle.index], acc_next)
                    self.multiply_pv(pv_tiled_mma, tOrP, tOrV[None, None, None, v_handle.index], acc_pv)
                    order.arrive()
                    warpgroup.wait_group(1)
                    k_handle.release()
                    n_start = (trip_count - 1 - j) * self.cta_tiler[1]
                    if cutlass.const_expr(self.is_causal):
                        if n_start + self.cta_tiler[1] > first_row + seqlen_k - seqlen_q:
                            self.mask(acc_next, tScS, (first_row, n_start), seqlen_q, seqlen_k)
                    warpgroup.wait_group(0)
                    v_handle.release()
                    self.softmax_step(acc_next, acc_pv, s_max, a_sum, scale_softmax_log2)
                    acc_qk.store(acc_next.load())
                v_handle = load_kv_consumer.wait_and_advance()
                tOrP = self.make_operand(acc_qk)
                self.multiply_pv(pv_tiled_mma, tOrP, tOrV[None, None, None, v_handle.index], acc_pv)
                warpgroup.wait_group(0)
                v_handle.release()
                q_handle.release()

                lse_tensor = self.normalize(acc_pv, s_max, a_sum, scale_softmax)
                # ------------------------------------------------------------ epilogue
                copy_atom = sm90_utils.sm90_get_smem_store_op(
                    self.o_layout, elem_ty_d=self.o_dtype, elem_ty_acc=self.pv_acc_dtype
                )
                tiled_copy_c = cute.make_tiled_copy_C(copy_atom, pv_tiled_mma)
                thr_copy = tiled_copy_c.get_slice(tid)
                tRS_sD = thr_copy.partition_D(sO)
                tOrO = cute.make_rmem_tensor_like(acc_pv, self.o_dtype)
                tOrO.store(acc_pv.load().to(self.o_dtype))
                cute.copy(tiled_copy_c, tiled_copy_c.retile(tOrO), tRS_sD[None, None, None, group])
                cute.arch.barrier(barrier_id=1 + group, number_of_threads=self.num_threads_per_warp_group)
                gO = cute.domain_offset((start_q, 0, 0), mO_qdl)[None, None, (head, batch_coord)]
                tile_coord = (bidx * self.mma_warp_groups + group, 0)
                self.store_o(sO[None, None, group], gO, seqlen_q, tile_coord, tid)
                if cutlass.const_expr(mLSE is not None):
                    tOcS = convert_c_layout_to_rows(tScS.layout)
                    tScS_rows = cute.make_tensor(tScS.iterator, tOcS)
                    if tScS[0][1] == 0:
                        for i in cutlass.range_constexpr(cute.size(lse_tensor)):
                            row = first_row + tScS_rows[i, 0][0]
                            if row < seqlen_q:
                                mLSE[start_q + row, head, batch_coord] = lse_tensor[i]

    @cute.jit
    def tma_parts(self, atom, tensor, shared, tile: cutlass.Constexpr, coord: cutlass.Constexpr):
        tiles = cute.local_tile(tensor, tile, coord)
        return cpasync.tma_partition(
            atom,
            0,
            cute.make_layout(1),
            cute.group_modes(shared, 0, 2),
            cute.group_modes(tiles, 0, 2),
        )

    @cute.jit
    def multiply_qk(self, tiled_mma: cute.TiledMma, tSrQ: cute.Tensor, tSrK: cute.Tensor, acc: cute.Tensor):
        warpgroup.fence()
        tiled_mma.set(warpgroup.Field.ACCUMULATE, False)
        for k_block in cutlass.range(cute.size(tSrQ, mode=[2]), unroll_full=True):
            cute.gemm(tiled_mma, acc, tSrQ[None, None, k_block], tSrK[None, None, k_block], acc)
            tiled_mma.set(warpgroup.Field.ACCUMULATE, True)
        warpgroup.commit_group()

    @cute.jit
    def multiply_pv(self, tiled_mma: cute.TiledMma, tOrP: cute.Tensor, tOrV: cute.Tensor, acc: cute.Tensor):
        warpgroup.fence()
        tiled_mma.set(warpgroup.Field.ACCUMULATE, True)
        cute.gemm(tiled_mma, acc, tOrP, tOrV, acc)
        warpgroup.commit_group()

    @cute.jit
    def make_operand(self, acc: cute.Tensor) -> cute.Tensor:
        """The accumulators of a product as A of the next one."""
        operand = cute.make_rmem_tensor(convert_c_layout_to_a(acc.layout).shape, self.v_dtype)
        as_c = cute.make_tensor(operand.iterator, cute.make_layout(acc.shape))
        as_c.store(acc.load().to(self.v_dtype))
        return operand

    @cute.jit
    def mask(self, acc: cute.Tensor, tScS: cute.Tensor, origin, seqlen_q, seqlen_k):
        for i in cutlass.range(cute.size(acc), unroll_full=True):
            row, column = tScS[i][0] + origin[0], tScS[i][1] + origin[1]
            outside = column >= seqlen_k
            if cutlass.const_expr(self.is_causal):
                outside = outside or column > row + seqlen_k - seqlen_q
            if outside:
                acc[i] = -Float32.inf

    @cute.jit
    def softmax_step(
        self, acc_qk: cute.Tensor, acc_pv: cute.Tensor, s_max: cute.Tensor, a_sum: cute.Tensor, scale: Float32
    ):
        scores = cute.make_tensor(acc_qk.iterator, convert_c_layout_to_rows(acc_qk.layout))
        out = cute.make_tensor(acc_pv.iterator, convert_c_layout_to_rows(acc_pv.layout))
        for i in cutlass.range_constexpr(cute.size(s_max)):
            before = s_max[i]
            largest = scores[i, None].load().reduce(cute.ReductionOp.MAX, before, 0)
            largest = cute.arch.warp_reduction_max(largest, threads_in_group=4)
            s_max[i] = largest
            safe = 0.0 if largest == -Float32.inf else largest
            p = cute.math.exp2(scores[i, None].load() * scale - safe * scale, fastmath=True)
            scores[i, None].store(p)
            keep = cute.math.exp2((before - safe) * scale, fastmath=True)
            a_sum[i] = a_sum[i] * keep + p.reduce(cute.ReductionOp.ADD, Float32.zero, 0)
            out[i, None].store(out[i, None].load() * keep)

    @cute.jit
    def normalize(self, acc_pv: cute.Tensor, s_max: cute.Tensor, a_sum: cute.Tensor, scale_softmax: Float32):
        lse = cute.make_rmem_tensor_like(a_sum, a_sum.element_type)
        out = cute.make_tensor(acc_pv.iterator, convert_c_layout_to_rows(acc_pv.layout))
        for i in cutlass.range_constexpr(cute.size(a_sum)):
            total = cute.arch.warp_reduction_sum(a_sum[i], threads_in_group=4)
            inverse = 1.0 if total == 0.0 or total != total else cute.arch.rcp_approx(total)
            lse[i] = s_max[i] * scale_softmax + cute.math.log(total, fastmath=True)
            out[i, None].store(out[i, None].load() * inverse)
        return lse

    @cute.jit
    def store_o(self, sO: cute.Tensor, gO: cute.Tensor, seqlen_q, coord, tid):
        """16 bytes a thread; rows that belong to the next sequence stay."""
        tile = cute.select(self.pv_mma_tiler, mode=[0, 1])
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), self.o_dtype, num_bits_per_copy=128)
        per_row = tile[1] // 8
        tiled_copy = cute.make_tiled_copy_tv(
            atom,
            cute.make_ordered_layout((self.num_threads_per_warp_group // per_row, per_row), order=(1, 0)),
            cute.make_layout((1, 8)),
        )
        thr_copy = tiled_copy.get_slice(tid)
        tOsO = thr_copy.partition_S(sO)
        tOgO = thr_copy.partition_D(cute.local_tile(gO, tile, coord))
        tOcO = thr_copy.partition_S(cute.local_tile(cute.make_identity_tensor(gO.shape), tile, coord))
        tOrO = cute.make_fragment_like(tOsO)
        cute.autovec_copy(tOsO, tOrO)
        for m in cutlass.range_constexpr(cute.size(tOrO, mode=[1])):
            if cute.elem_less(tOcO[0, m, 0][0], seqlen_q):
                cute.copy(atom, tOrO[None, m, None], tOgO[None, m, None])

    @staticmethod
    def can_implement(d: int, dtype: Type[cutlass.Numeric], mma_tiler_mn: Tuple[int, int], h_q: int, h_k: int) -> bool:
        return d in (64, 128) and dtype in (cutlass.Float16, cutlass.BFloat16) and h_q % h_k == 0 and (
            mma_tiler_mn[0] == 128 and mma_tiler_mn[1] % 16 == 0
        )


def convert_c_layout_to_a(acc: cute.Layout) -> cute.Layout:
    """((2,2,N/8), M, 1) -> ((2,2,2), M, N/16)"""
    divided = cute.logical_divide(acc, ((None, None, 2), None, None))
    (pair, quad, (two, blocks)), m, n = divided.shape
    (s_pair, s_quad, (s_two, s_blocks)), s_m, s_n = divided.stride
    return cute.make_layout(
        ((pair, quad, two), m, (blocks, n)), stride=((s_pair, s_quad, s_two), s_m, (s_blocks, s_n))
    )


def convert_c_layout_to_rows(acc: cute.Layout) -> cute.Layout:
    """((2,2,V), M, N) -> ((2,M), (2,V,N))"""
    shape, stride = acc.shape, acc.stride
    return cute.make_layout(
        ((shape[0][1], shape[1]), (shape[0][0], shape[0][2], shape[2])),
        stride=((stride[0][1], stride[1]), (stride[0][0], stride[0][2], stride[2])),
    )


def reference(q, k, v, is_causal, scale):
    """(s, h, d) each"""
    h_r = q.shape[1] // k.shape[1]
    q, k, v = (t.float().transpose(0, 1) for t in (q, k, v))
    k, v = (t.repeat_interleave(h_r, 0) for t in (k, v))
    scores = q @ k.transpose(1, 2) * scale
    if is_causal:
        rows, columns = scores.shape[1:]
        hidden = torch.arange(columns)[None] > torch.arange(rows)[:, None] + columns - rows
        scores.masked_fill_(hidden, float("-inf"))
    return (scores.softmax(-1) @ v).transpose(0, 1), scores.logsumexp(-1).transpose(0, 1)


def run(q_shape, k_shape, dtype, mma_tiler_mn, is_causal, lengths, tolerance):
    b, s_q, h_q, d = q_shape
    _, s_k, h_k, _ = k_shape
    if not HopperFmhaForward.can_implement(d, dtype, mma_tiler_mn, h_q, h_k):
        raise TypeError("Unsupported testcase")
    torch.manual_seed(1111)
    torch_dtype = cutlass_torch.dtype(dtype)
    if lengths is not None:
        cum_q, cum_k = (torch.tensor([0, *x]).cumsum(0).to(torch.int32) for x in zip(*lengths))
        b, made_b = len(lengths), 1
        s_q, s_k = int(cum_q[-1]), int(cum_k[-1])
        cum_cute = [from_dlpack(c.cuda()).mark_layout_dynamic() for c in (cum_q, cum_k)]
    else:
        made_b, cum_cute = b, [None, None]

    def make(s, h):
        data = torch.randn(made_b, s, h, d).to(torch_dtype)
        on_gpu = data.cuda()
        return data, from_dlpack(on_gpu, assumed_align=16), on_gpu

    (q, q_t, _), (k, k_t, _), (v, v_t, _) = make(s_q, h_q), make(s_k, h_k), make(s_k, h_k)
    _, o_t, o_gpu = make(s_q, h_q)
    lse_gpu = torch.zeros(made_b, s_q, h_q, device="cuda")
    lse = from_dlpack(lse_gpu.permute(1, 2, 0)).mark_layout_dynamic(leading_dim=1)

    scale = 1.0 / math.sqrt(d)
    fmha = HopperFmhaForward(cutlass.Float32, cutlass.Float32, (*mma_tiler_mn, d), is_causal)
    stream = cuda.CUstream(torch.cuda.current_stream().cuda_stream)
    problem_size = (b, s_q, s_k, h_q, h_k, d)
    arguments = (
        q_t.iterator, k_t.iterator, v_t.iterator, o_t.iterator, problem_size, *cum_cute, lse,
        scale * math.log2(math.e), scale, stream,
    )
    compiled_fmha = cute.compile(fmha, *arguments)
    compiled_fmha(*arguments)
    torch.cuda.synchronize()
    if lengths is None:
        parts = [((i, slice(None)), (i, slice(None))) for i in range(b)]
    else:
        parts = [
            ((0, slice(*cum_q[i : i + 2].tolist())), (0, slice(*cum_k[i : i + 2].tolist()))) for i in range(b)
        ]
    for at_q, at_k in parts:
        expected, expected_lse = reference(q[at_q], k[at_k], v[at_k], is_causal, scale)
        torch.testing.assert_close(o_gpu[at_q].cpu().float(), expected, atol=tolerance, rtol=1e-2)
        torch.testing.assert_close(lse_gpu[at_q].cpu(), expected_lse, atol=1e-2, rtol=1e-2)
    print(f"q {q_shape}, k {k_shape}, {dtype}, {'causal' if is_causal else 'full'}, {lengths}: verified")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Hopper FMHA")
    parser.add_argument("--d", type=int, default=64)
    parser.add_argument("--tolerance", type=float, default=2e-2)
    args = parser.parse_args()
    if torch.cuda.get_device_capability()[0] != 9:
        raise RuntimeError("Hopper is required")
    d = args.d
    run((1, 192, 2, d), (1, 300, 1, d), cutlass.Float16, (128, 128), False, None, args.tolerance)
    run((1, 130, 1, d), (1, 200, 1, d), cutlass.BFloat16, (128, 64), True, None, args.tolerance)
    lengths = [(100, 140), (65, 65), (8, 70)]
    run((3, 100, 2, d), (3, 140, 2, d), cutlass.Float16, (128, 64), True, lengths, args.tolerance)
    print("PASS")
