"""A GEMM of narrow weights and Float16 activations: four warps convert the weights into tensor memory, from where the MMA
reads them as operand A, while TMA brings operand B to shared memory. Int8 weights count as they are, Int4 weights times
a scale for each row and GROUP columns."""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import cutlass.pipeline as pipeline
import cutlass.utils as utils
import cutlass.utils.blackwell_helpers as sm100_utils
import torch
from cutlass.cute.nvgpu import OperandMajorMode, cpasync, tcgen05
from cutlass.cute.runtime import from_dlpack

TILE, STAGES = (128, 64, 64), 2
CONVERTERS = 128
GROUP = 32  # columns that share a scale
A_COLUMNS = TILE[2] // 2  # of tensor memory, two numbers a word


class MixedInputGemm:
    """D (M, N) = (W (M, K) * scale (M, K / GROUP)) * B (N, K), a block for each 128 rows."""

    def __init__(self, narrow):
        self.narrow = narrow

    @cute.jit
    def __call__(
        self, w: cute.Tensor, scale: cute.Tensor | None, b: cute.Tensor, d: cute.Tensor, stream: cuda.CUstream
    ):
        if cutlass.const_expr(self.narrow.width < 8):
            w = cute.recast_tensor(w, self.narrow)
            rows, groups = scale.shape
            spread = cute.make_layout((rows, (GROUP, groups)), stride=(groups, (0, 1)))
            scale = cute.make_tensor(scale.iterator, spread)
        op = tcgen05.MmaF16BF16Op(
            cutlass.Float16,
            cutlass.Float32,
            (TILE[0], TILE[1]),
            tcgen05.CtaGroup.ONE,
            tcgen05.OperandSource.TMEM,
            OperandMajorMode.K,
            OperandMajorMode.K,
        )
        tiled_mma = cute.make_tiled_mma(op)
        vmnk = cute.tiled_divide(cute.make_layout((1, 1, 1)), (tiled_mma.thr_id.shape,))
        b_smem = sm100_utils.make_smem_layout_b(tiled_mma, TILE, b.element_type, STAGES)
        stage = cute.slice_(b_smem, (None, None, None, 0))
        load = sm100_utils.cluster_shape_to_tma_atom_B((1, 1), tiled_mma.thr_id)
        tma_b, tb = cute.nvgpu.make_tiled_tma_atom_B(load, b, stage, TILE, tiled_mma, vmnk.shape)
        self.nbytes = cute.size_in_bytes(b.element_type, stage)
        self.kernel(tiled_mma, tma_b, tb, w, scale, d, b_smem).launch(
            grid=(w.shape[0] // TILE[0], d.shape[1] // TILE[1], 1), block=(CONVERTERS + 64, 1, 1), stream=stream
        )

    @cute.kernel
    def kernel(
        self,
        tiled_mma: cute.TiledMma,
        tma_b: cute.CopyAtom,
        tb: cute.Tensor,
        w: cute.Tensor,
        scale: cute.Tensor | None,
        d: cute.Tensor,
        b_smem: cute.ComposedLayout,
    ):
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        tidx, _, _ = cute.arch.thread_idx()
        m, n, _ = cute.arch.block_idx()
        smem = utils.SmemAllocator()
        s_b = smem.allocate_tensor(cutlass.Float16, b_smem.outer, 1024, b_smem.inner)
        one, threads = (pipeline.CooperativeGroup(pipeline.Agent.Thread, x) for x in (1, CONVERTERS))
        b_producer, b_consumer = pipeline.PipelineTmaUmma.create(
            barrier_storage=smem.allocate_array(cutlass.Int64, 2 * STAGES),
            num_stages=STAGES,
            producer_group=one,
            consumer_group=one,
            tx_count=self.nbytes,
        ).make_participants()
        a_producer, a_consumer = pipeline.PipelineAsyncUmma.create(
            barrier_storage=smem.allocate_array(cutlass.Int64, 2 * STAGES),
            num_stages=STAGES,
            producer_group=threads,
            consumer_group=one,
        ).make_participants()
        acc_producer, acc_consumer = pipeline.PipelineUmmaAsync.create(
            barrier_storage=smem.allocate_array(cutlass.Int64, 2),
            num_stages=1,
            producer_group=one,
            consumer_group=threads,
        ).make_participants()
        tmem = utils.TmemAllocator(
            smem.allocate_array(cutlass.Int32, 1), barrier_for_retrieve=pipeline.NamedBarrier(2, CONVERTERS + 32)
        )
        k_tiles = w.shape[1] // TILE[2]
        thr_mma = tiled_mma.get_slice(0)
        acc_layout = tiled_mma.make_fragment_C(tiled_mma.partition_shape_C(TILE[:2])).layout

        if warp == 5:
            gb = thr_mma.partition_B(cute.local_tile(tb, (TILE[1], TILE[2]), (n, None)))
            tbsb, tbgb = cpasync.tma_partition(
                tma_b, 0, cute.make_layout(1), cute.group_modes(s_b, 0, 3), cute.group_modes(gb, 0, 3)
            )
            for k in range(k_tiles):
                handle = b_producer.acquire_and_advance()
                cute.copy(tma_b, tbgb[None, k], tbsb[None, handle.index], tma_bar_ptr=handle.barrier)
            b_producer.tail()

        if warp == 4:
            tmem.wait_for_alloc()
            base = tmem.retrieve_ptr(cutlass.Float32)
            acc = cute.make_tensor(base, acc_layout)
            a_layout = tiled_mma.make_fragment_A(tiled_mma.partition_shape_A((TILE[0], TILE[2]))).layout
            frag_b = tiled_mma.make_fragment_B(s_b)
            done = acc_producer.acquire_and_advance()
            tiled_mma.set(tcgen05.Field.ACCUMULATE, False)
            for k in range(k_tiles):
                of_b, of_a = b_consumer.wait_and_advance(), a_consumer.wait_and_advance()
                cute.arch.tcgen05_fence_after_thread_sync()
                place = base + TILE[1] + k % STAGES * A_COLUMNS
                frag_a = cute.make_tensor(place.with_dtype(cutlass.Float16), a_layout)
                for block in range(cute.size(frag_a, mode=[2])):
                    from_b = frag_b[None, None, block, of_b.index]
                    cute.gemm(tiled_mma, acc, frag_a[None, None, block], from_b, acc)
                    tiled_mma.set(tcgen05.Field.ACCUMULATE, True)
                of_b.release()
                of_a.release()
            done.commit()
            acc_producer.tail()

        if warp < 4:
            tmem.allocate(128)
            tmem.wait_for_alloc()
            base = tmem.retrieve_ptr(cutlass.Float32)
            gw = cute.local_tile(w, (TILE[0], TILE[2]), (m, None))
            for k in range(k_tiles):
                place = base + TILE[1] + k % STAGES * A_COLUMNS
                rows = cute.make_tensor(
                    place.with_dtype(cutlass.Float16), cute.make_layout((TILE[0], TILE[2]), stride=(2 * 65536, 1))
                )
                atom = cute.make_copy_atom(tcgen05.St32x32bOp(tcgen05.Repetition(A_COLUMNS)), cutlass.Float16)
                r2t = tcgen05.make_tmem_copy(atom, rows)
                mine = r2t.get_slice(tidx)
                weights = mine.partition_S(gw[None, None, k])
                narrow = cute.make_rmem_tensor(weights.shape, self.narrow)
                cute.autovec_copy(weights, narrow)
                wide = cute.make_rmem_tensor(weights.shape, cutlass.Float16)
                wide.store(narrow.load().to(cutlass.Float16))
                if cutlass.const_expr(scale is not None):
                    gs = cute.local_tile(scale, (TILE[0], TILE[2]), (m, None))
                    from_s = mine.partition_S(gs[None, None, k])
                    factors = cute.make_fragment_like(from_s)
                    cute.autovec_copy(cute.filter_zeros(from_s), cute.filter_zeros(factors))
                    wide.store(wide.load() * factors.load())
                handle = a_producer.acquire_and_advance()
                cute.arch.tcgen05_fence_after_thread_sync()
                cute.copy(r2t, wide, mine.partition_D(rows))
                cute.arch.fence_view_async_tmem_store()
                cute.arch.tcgen05_fence_before_thread_sync()
                handle.commit()
            acc = cute.make_tensor(base, acc_layout)[(None, None), 0, 0]
            gd = thr_mma.partition_C(cute.local_tile(d, TILE[:2], (m, n)))[(None, None), 0, 0]
            t2r = tcgen05.make_tmem_copy(
                cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x32), cutlass.Float32), acc
            )
            mine = t2r.get_slice(tidx)
            to = mine.partition_D(gd)
            sums = cute.make_rmem_tensor(to.shape, cutlass.Float32)
            handle = acc_consumer.wait_and_advance()
            cute.copy(t2r, mine.partition_S(acc), sums)
            cute.arch.fence_view_async_tmem_load()
            handle.release()
            cute.autovec_copy(sums, to)
            tmem.relinquish_alloc_permit()
            pipeline.NamedBarrier(1, CONVERTERS).arrive_and_wait()
            tmem.free(base)


def run(m, n, k, narrow):
    b = torch.randint(-2, 3, (n, k)).half().cuda()
    d = torch.zeros(m, n).cuda()
    if narrow is cutlass.Int4:
        values = torch.randint(-8, 8, (m, k))
        w = ((values[:, ::2] & 15) | (values[:, 1::2] << 4)).to(torch.uint8).cuda()  # the first in the low half
        scale = (2.0 ** torch.randint(-2, 3, (m, k // GROUP))).half().cuda()
        want = (values.cuda() * scale.repeat_interleave(GROUP, 1).float()) @ b.float().T
        scale = from_dlpack(scale, assumed_align=16)
    else:
        w, scale = torch.randint(-127, 128, (m, k), dtype=torch.int8).cuda(), None
        want = w.float() @ b.float().T
    stream = cuda.CUstream(torch.cuda.current_stream().cuda_stream)
    w, b, to = (from_dlpack(x, assumed_align=16) for x in (w, b, d))
    MixedInputGemm(narrow)(w, scale, b, to, stream)
    torch.cuda.synchronize()
    assert torch.equal(d, want), (m, n, k, narrow)


if __name__ == "__main__":
    torch.manual_seed(0)
    run(256, 64, 192, cutlass.Int8)
    run(128, 128, 128, cutlass.Int4)
    print("PASS")
