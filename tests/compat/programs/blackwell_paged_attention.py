"""Attention over a paged cache by pairs of blocks: 256 rows of Q, and pages of 128 keys that a table names. A warp that
loads, one that multiplies, and in each block four for the softmax, which also correct the sums of O."""

import math

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import cutlass.pipeline as pipeline
import cutlass.utils as utils
import cutlass.utils.blackwell_helpers as sm100_utils
import torch
from cutlass.cute.nvgpu import OperandMajorMode, cpasync, tcgen05
from cutlass.cute.runtime import from_dlpack

LOG2_E = math.log2(math.e)
TWO = tcgen05.CtaGroup.TWO


def group(threads):
    return pipeline.CooperativeGroup(pipeline.Agent.Thread, threads)


class PagedAttention:
    """O (rows, depth, batch) = softmax(scale Q K^T) V, where K and V are (page, depth, pages) and page j of a sequence is
    table[j, batch]."""

    mma_warp, load_warp, threads, kv_stages = 4, 5, 192, 2

    def __init__(self, depth, page):
        self.depth, self.page, self.acc_dtype = depth, page, cutlass.Float32
        self.qk_tiler, self.pv_tiler = (256, page, depth), (256, depth, page)

    @cute.jit
    def __call__(
        self,
        q: cute.Tensor,
        k: cute.Tensor,
        v: cute.Tensor,
        o: cute.Tensor,
        table: cute.Tensor,
        lengths: cute.Tensor,
        scale: cutlass.Float32,
        stream: cuda.CUstream,
    ):
        self.dtype = q.element_type
        v = cute.make_tensor(v.iterator, cute.select(v.layout, mode=[1, 0, 2]))  # (depth, page, pages)
        qk = sm100_utils.make_trivial_tiled_mma(
            self.dtype, self.dtype, OperandMajorMode.K, OperandMajorMode.K, self.acc_dtype, TWO, self.qk_tiler[:2]
        )
        pv = sm100_utils.make_trivial_tiled_mma(
            self.dtype,
            self.dtype,
            OperandMajorMode.K,
            OperandMajorMode.MN,
            self.acc_dtype,
            TWO,
            self.pv_tiler[:2],
            tcgen05.OperandSource.TMEM,
        )
        self.vmnk = cute.tiled_divide(cute.make_layout((2, 1, 1)), (qk.thr_id.shape,))
        q_smem = sm100_utils.make_smem_layout_a(qk, self.qk_tiler, self.dtype, 1)
        k_smem = sm100_utils.make_smem_layout_b(qk, self.qk_tiler, self.dtype, self.kv_stages)
        v_smem = sm100_utils.make_smem_layout_b(pv, self.pv_tiler, self.dtype, self.kv_stages)
        p_tmem = sm100_utils.make_smem_layout_a(pv, self.pv_tiler, self.dtype, 1)
        load = cpasync.CopyBulkTensorTileG2SOp(TWO)
        stages = [cute.select(s, mode=[0, 1, 2]) for s in (q_smem, k_smem, v_smem)]
        tma_q, tq = cute.nvgpu.make_tiled_tma_atom_A(load, q, stages[0], self.qk_tiler, qk, self.vmnk.shape)
        tma_k, tk = cute.nvgpu.make_tiled_tma_atom_B(load, k, stages[1], self.qk_tiler, qk, self.vmnk.shape)
        tma_v, tv = cute.nvgpu.make_tiled_tma_atom_B(load, v, stages[2], self.pv_tiler, pv, self.vmnk.shape)
        self.bytes = [2 * cute.size_in_bytes(self.dtype, stage) for stage in stages]

        @cute.struct
        class SharedStorage:
            load_q: cute.struct.MemRange[cutlass.Int64, 2]
            load_k: cute.struct.MemRange[cutlass.Int64, self.kv_stages * 2]
            load_v: cute.struct.MemRange[cutlass.Int64, self.kv_stages * 2]
            mma_s: cute.struct.MemRange[cutlass.Int64, 2]
            mma_o: cute.struct.MemRange[cutlass.Int64, 2]
            dealloc: cutlass.Int64
            holding: cutlass.Int32
            sQ: cute.struct.Align[cute.struct.MemRange[self.dtype, cute.cosize(q_smem)], 1024]
            sK: cute.struct.Align[cute.struct.MemRange[self.dtype, cute.cosize(k_smem)], 1024]
            sV: cute.struct.Align[cute.struct.MemRange[self.dtype, cute.cosize(v_smem)], 1024]

        self.shared_storage = SharedStorage
        self.kernel(
            qk, pv, tma_q, tq, tma_k, tk, tma_v, tv, o, table, lengths, scale * LOG2_E, q_smem, k_smem, p_tmem, v_smem
        ).launch(
            grid=[2 * cute.ceil_div(q.shape[0], 256), q.shape[2], 1],
            block=[self.threads, 1, 1],
            cluster=(2, 1, 1),
            stream=stream,
        )

    @cute.kernel
    def kernel(
        self,
        qk: cute.TiledMma,
        pv: cute.TiledMma,
        tma_q: cute.CopyAtom,
        tq: cute.Tensor,
        tma_k: cute.CopyAtom,
        tk: cute.Tensor,
        tma_v: cute.CopyAtom,
        tv: cute.Tensor,
        o: cute.Tensor,
        table: cute.Tensor,
        lengths: cute.Tensor,
        scale_log2: cutlass.Float32,
        q_smem: cute.ComposedLayout,
        k_smem: cute.ComposedLayout,
        p_tmem: cute.ComposedLayout,
        v_smem: cute.ComposedLayout,
    ):
        warp_idx = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        tidx, _, _ = cute.arch.thread_idx()
        bidx, batch, _ = cute.arch.block_idx()
        of_pair, m_block = bidx % 2, bidx // 2
        storage = utils.SmemAllocator().allocate(self.shared_storage)
        pairs = {"cta_layout_vmnk": self.vmnk, "defer_sync": True, "producer_group": group(1)}
        q_producer, q_consumer = pipeline.PipelineTmaUmma.create(
            barrier_storage=storage.load_q.data_ptr(),
            num_stages=1,
            consumer_group=group(1),
            tx_count=self.bytes[0],
            **pairs,
        ).make_participants()
        k_producer, k_consumer = pipeline.PipelineTmaUmma.create(
            barrier_storage=storage.load_k.data_ptr(),
            num_stages=self.kv_stages,
            consumer_group=group(1),
            tx_count=self.bytes[1],
            **pairs,
        ).make_participants()
        v_producer, v_consumer = pipeline.PipelineTmaUmma.create(
            barrier_storage=storage.load_v.data_ptr(),
            num_stages=self.kv_stages,
            consumer_group=group(1),
            tx_count=self.bytes[2],
            **pairs,
        ).make_participants()
        s_producer, s_consumer = pipeline.PipelineUmmaAsync.create(
            barrier_storage=storage.mma_s.data_ptr(), num_stages=1, consumer_group=group(256), **pairs
        ).make_participants()
        o_producer, o_consumer = pipeline.PipelineUmmaAsync.create(
            barrier_storage=storage.mma_o.data_ptr(), num_stages=1, consumer_group=group(256), **pairs
        ).make_participants()
        tmem = utils.TmemAllocator(
            storage.holding.ptr,
            barrier_for_retrieve=pipeline.NamedBarrier(barrier_id=1, num_threads=160),
            allocator_warp_id=0,
            is_two_cta=True,
            two_cta_tmem_dealloc_mbar_ptr=storage.dealloc.ptr,
        )
        pipeline.pipeline_init_arrive(cluster_shape_mn=self.vmnk, is_relaxed=True)
        s_q = storage.sQ.get_tensor(q_smem.outer, swizzle=q_smem.inner)
        s_k = storage.sK.get_tensor(k_smem.outer, swizzle=k_smem.inner)
        s_v = storage.sV.get_tensor(v_smem.outer, swizzle=v_smem.inner)
        qk_thr, pv_thr = qk.get_slice(of_pair), pv.get_slice(of_pair)
        frag_q, frag_k, frag_v = qk.make_fragment_A(s_q), qk.make_fragment_B(s_k), pv.make_fragment_B(s_v)
        s_like = qk.make_fragment_C(qk.partition_shape_C(self.qk_tiler[:2]))
        o_like = pv.make_fragment_C(pv.partition_shape_C(self.pv_tiler[:2]))
        pipeline.pipeline_init_wait(cluster_shape_mn=self.vmnk)
        n_blocks = cute.ceil_div(lengths[batch], self.page)

        if warp_idx == self.load_warp:
            gq = cute.local_tile(tq, cute.select(self.qk_tiler, mode=[0, 2]), (None, 0, batch))
            gk = cute.local_tile(tk, cute.select(self.qk_tiler, mode=[1, 2]), (0, 0, None))
            gv = cute.local_tile(tv, cute.select(self.pv_tiler, mode=[1, 2]), (0, 0, None))
            one = cute.make_layout(1)
            tqs, tqg = cpasync.tma_partition(
                tma_q, 0, one, cute.group_modes(s_q, 0, 3), cute.group_modes(qk_thr.partition_A(gq), 0, 3)
            )
            tks, tkg = cpasync.tma_partition(
                tma_k, 0, one, cute.group_modes(s_k, 0, 3), cute.group_modes(qk_thr.partition_B(gk), 0, 3)
            )
            tvs, tvg = cpasync.tma_partition(
                tma_v, 0, one, cute.group_modes(s_v, 0, 3), cute.group_modes(pv_thr.partition_B(gv), 0, 3)
            )
            of_q = q_producer.acquire_and_advance()
            cute.copy(tma_q, tqg[None, m_block], tqs[None, 0], tma_bar_ptr=of_q.barrier)
            for j in range(n_blocks):
                page = table[j, batch]
                of_k = k_producer.acquire_and_advance()
                cute.copy(tma_k, tkg[None, page], tks[None, of_k.index], tma_bar_ptr=of_k.barrier)
                of_v = v_producer.acquire_and_advance()
                cute.copy(tma_v, tvg[None, page], tvs[None, of_v.index], tma_bar_ptr=of_v.barrier)
            q_producer.tail()
            k_producer.tail()
            v_producer.tail()

        if warp_idx == self.mma_warp:
            tmem.wait_for_alloc()
            base = tmem.retrieve_ptr(self.acc_dtype)
            s_acc, o_acc = cute.make_tensor(base, s_like.layout), cute.make_tensor(base + self.page, o_like.layout)
            frag_p = pv.make_fragment_A(cute.make_tensor(base, p_tmem.outer))[None, None, None, 0]
            frag_p = cute.make_tensor(cute.recast_ptr(base, dtype=self.dtype), frag_p.layout)  # P in place of S
            if of_pair == 0:
                of_q = q_consumer.wait_and_advance()
                pv.set(tcgen05.Field.ACCUMULATE, False)
                for _ in range(n_blocks):
                    of_k = k_consumer.wait_and_advance()
                    of_s = s_producer.acquire_and_advance()
                    for block in range(cute.size(frag_q, mode=[2])):
                        qk.set(tcgen05.Field.ACCUMULATE, block != 0)
                        cute.gemm(qk, s_acc, frag_q[None, None, block, 0], frag_k[None, None, block, of_k.index], s_acc)
                    of_s.commit()
                    of_k.release()
                    of_v = v_consumer.wait_and_advance()
                    of_o = o_producer.acquire_and_advance()
                    s_producer.acquire()  # P has been stored, O corrected
                    for block in range(cute.size(frag_p, mode=[2])):
                        cute.gemm(pv, o_acc, frag_p[None, None, block], frag_v[None, None, block, of_v.index], o_acc)
                        pv.set(tcgen05.Field.ACCUMULATE, True)
                    of_o.commit()
                    of_v.release()
                of_q.release()
                s_producer.tail()
                o_producer.tail()

        if warp_idx < self.mma_warp:
            tmem.allocate(256)
            tmem.wait_for_alloc()
            base = tmem.retrieve_ptr(self.acc_dtype)
            s_acc = cute.make_tensor(base, s_like.layout)[(None, None), 0, 0]  # (128, page)
            o_acc = cute.make_tensor(base + self.page, o_like.layout)[(None, None), 0, 0]
            p_acc = cute.make_tensor(base, cute.composition(s_acc.layout, cute.make_layout((128, self.page // 2))))
            here = qk_thr.partition_C(cute.make_identity_tensor(self.qk_tiler[:2]))[(None, None), 0, 0]
            go = pv_thr.partition_C(cute.local_tile(o, self.pv_tiler[:2], (m_block, 0, batch)))[(None, None), 0, 0]
            s_parts, s_at = (cute.zipped_divide(x, (128, 32)) for x in (s_acc, here))
            p_parts, p_at = (cute.zipped_divide(x, (128, 16)) for x in (p_acc, here))
            o_parts, o_to = (cute.zipped_divide(x, (128, 16)) for x in (o_acc, go))

            def tmem_copy(op, columns, like):
                atom = cute.make_copy_atom(op(tcgen05.Repetition(columns)), self.acc_dtype)
                return tcgen05.make_tmem_copy(atom, like[None, 0]).get_slice(tidx)

            load_s = tmem_copy(tcgen05.Ld32x32bOp, 32, s_parts)
            store_p = tmem_copy(tcgen05.St32x32bOp, 16, p_parts)
            load_o = tmem_copy(tcgen05.Ld32x32bOp, 16, o_parts)
            store_o = tmem_copy(tcgen05.St32x32bOp, 16, o_parts)
            from_s, s_shape = load_s.partition_S(s_parts), load_s.partition_D(s_at)[None, None, 0].shape
            to_p, p_shape = store_p.partition_D(p_parts), store_p.partition_S(p_at)[None, None, 0].shape
            from_o, to_o, to_g = load_o.partition_S(o_parts), store_o.partition_D(o_parts), load_o.partition_D(o_to)
            o_shape = to_g[None, None, 0].shape
            scores = cute.make_rmem_tensor((32, cute.size(s_parts, mode=[1])), self.acc_dtype)
            row_max, row_sum = -cutlass.Float32.inf, cutlass.Float32(0.0)
            for j in range(n_blocks):
                of_s = s_consumer.wait_and_advance()
                for i in range(cute.size(scores, mode=[1])):
                    cute.copy(load_s, from_s[None, None, i], cute.make_tensor(scores[None, i].iterator, s_shape))
                cute.arch.fence_view_async_tmem_load()
                for e in range(self.page):
                    if j * self.page + e >= lengths[batch]:
                        scores[e] = -cutlass.Float32.inf
                before = row_max
                row_max = scores.load().reduce(cute.ReductionOp.MAX, row_max, 0)
                factor = cute.math.exp2((before - row_max) * scale_log2, fastmath=True)
                scores.store(cute.math.exp2((scores.load() - row_max) * scale_log2, fastmath=True))
                row_sum = scores.load().reduce(cute.ReductionOp.ADD, row_sum * factor, 0)
                if j > 0:
                    of_o = o_consumer.wait_and_advance()
                    for i in range(cute.size(o_parts, mode=[1])):
                        sums = cute.make_rmem_tensor(o_shape, self.acc_dtype)
                        cute.copy(load_o, from_o[None, None, i], sums)
                        cute.arch.fence_view_async_tmem_load()
                        sums.store(sums.load() * factor)
                        cute.copy(store_o, sums, to_o[None, None, i])
                    of_o.release()
                narrow = cute.make_rmem_tensor(scores.shape, self.dtype)
                narrow.store(scores.load().to(self.dtype))
                words = cute.recast_tensor(narrow, self.acc_dtype)
                for i in range(cute.size(words, mode=[1])):
                    cute.copy(store_p, cute.make_tensor(words[None, i].iterator, p_shape), to_p[None, None, i])
                cute.arch.fence_view_async_tmem_store()
                cute.arch.tcgen05_fence_before_thread_sync()
                of_s.release()
            of_o = o_consumer.wait_and_advance()
            for i in range(cute.size(o_parts, mode=[1])):
                sums = cute.make_rmem_tensor(o_shape, self.acc_dtype)
                cute.copy(load_o, from_o[None, None, i], sums)
                cute.arch.fence_view_async_tmem_load()
                out = cute.make_rmem_tensor(o_shape, self.dtype)
                out.store((sums.load() / row_sum).to(self.dtype))
                cute.autovec_copy(out, to_g[None, None, i])
            cute.arch.tcgen05_fence_before_thread_sync()
            of_o.release()
            tmem.relinquish_alloc_permit()
            pipeline.NamedBarrier(barrier_id=2, num_threads=128).arrive_and_wait()
            tmem.free(base)


def run(rows, keys, depth, page, pages, dtype):
    scale, batches = depth**-0.5, len(keys)
    q = torch.randn(batches, rows, depth).to(dtype).cuda()
    k, v = (torch.randn(pages, page, depth).to(dtype).cuda() for _ in range(2))
    o = torch.zeros(batches, rows, depth, dtype=dtype).cuda()
    table = torch.stack([torch.randperm(pages) for _ in keys], 1).to(torch.int32).cuda()
    lengths = torch.tensor(keys, dtype=torch.int32).cuda()
    stream = cuda.CUstream(torch.cuda.current_stream().cuda_stream)
    tensors = [from_dlpack(x.permute(1, 2, 0), assumed_align=16) for x in (q, k, v, o)]
    PagedAttention(depth, page)(*tensors, from_dlpack(table), from_dlpack(lengths), scale, stream)
    torch.cuda.synchronize()
    for b, n in enumerate(keys):
        kb, vb = (x[table[:, b].long()].reshape(-1, depth)[:n].float() for x in (k, v))
        expected = (scale * q[b].float() @ kb.T).softmax(-1) @ vb
        torch.testing.assert_close(o[b].float(), expected, atol=2e-2, rtol=2e-2)


if __name__ == "__main__":
    torch.manual_seed(0)
    run(256, [200, 128], 64, 128, 4, torch.float16)
    print("PASS")
