"""FP8 GEMM with blockwise scales: accumulators promoted every k tile."""

import cuda.bindings.driver as cuda
import torch
import cutlass
import cutlass.cute as cute
import cutlass.pipeline as pipeline
import cutlass.utils as utils
import cutlass.utils.hopper_helpers as sm90_utils
from cutlass.cute.nvgpu import cpasync, warpgroup
from cutlass.cute.runtime import from_dlpack

TM, TN, TK, STAGES = 128, 128, 128, 3


@cute.kernel
def kernel(
    tma_a: cute.CopyAtom,
    mA: cute.Tensor,
    tma_b: cute.CopyAtom,
    mB: cute.Tensor,
    sfa: cute.Tensor,
    sfb: cute.Tensor,
    mC: cute.Tensor,
    tiled_mma: cute.TiledMma,
    a_sl: cute.ComposedLayout,
    b_sl: cute.ComposedLayout,
):
    tidx, _, _ = cute.arch.thread_idx()
    bm, bn, _ = cute.arch.block_idx()
    warp_idx = cute.arch.make_warp_uniform(cute.arch.warp_idx())

    @cute.struct
    class Storage:
        bars: cute.struct.MemRange[cutlass.Int64, STAGES * 2]
        sA: cute.struct.Align[cute.struct.MemRange[tma_a.value_type, cute.cosize(a_sl)], 1024]
        sB: cute.struct.Align[cute.struct.MemRange[cutlass.Float8E4M3FN, cute.cosize(b_sl)], 1024]

    st = utils.SmemAllocator().allocate(Storage)
    sA = st.sA.get_tensor(a_sl.outer, swizzle=a_sl.inner)
    sB = st.sB.get_tensor(b_sl.outer, swizzle=b_sl.inner)
    producer, consumer = pipeline.PipelineTmaAsync.create(
        num_stages=STAGES,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 8),
        tx_count=TK * (TM + TN),
        barrier_storage=st.bars.data_ptr(),
    ).make_participants()
    gA = cute.local_tile(mA, (TM, TK), (bm, None))
    gB = cute.local_tile(mB, (TN, TK), (bn, None))
    gC = cute.local_tile(mC, (TM, TN), (bm, bn))
    tAsA, tAgA = cpasync.tma_partition(
        tma_a, 0, cute.make_layout(1), cute.group_modes(sA, 0, 2), cute.group_modes(gA, 0, 2)
    )
    tBsB, tBgB = cpasync.tma_partition(
        tma_b, 0, cute.make_layout(1), cute.group_modes(sB, 0, 2), cute.group_modes(gB, 0, 2)
    )
    kt = cute.size(gA, mode=[2])
    if warp_idx == 8:
        cute.arch.warpgroup_reg_dealloc(40)
        for k in cutlass.range(kt):
            h = producer.acquire_and_advance()
            cute.copy(tma_a, tAgA[None, k], tAsA[None, h.index], tma_bar_ptr=h.barrier)
            cute.copy(tma_b, tBgB[None, k], tBsB[None, h.index], tma_bar_ptr=h.barrier)
        producer.tail()
    elif warp_idx > 8:
        cute.arch.warpgroup_reg_dealloc(40)
    else:
        cute.arch.warpgroup_reg_alloc(232)
        thr = tiled_mma.get_slice(tidx)
        tCgC = thr.partition_C(gC)
        tCrA = tiled_mma.make_fragment_A(thr.partition_A(sA))
        tCrB = tiled_mma.make_fragment_B(thr.partition_B(sB))
        acc = cute.make_rmem_tensor(tCgC.shape, cutlass.Float32)
        total = cute.make_rmem_tensor_like(acc)
        total.fill(0.0)
        cC = thr.partition_C(cute.local_tile(cute.make_identity_tensor(mC.shape), (TM, TN), (bm, bn)))
        for k in cutlass.range(kt):
            h = consumer.wait_and_advance()
            tiled_mma.set(warpgroup.Field.ACCUMULATE, False)
            warpgroup.fence()
            for kb in cutlass.range_constexpr(cute.size(tCrA, mode=[2])):
                cute.gemm(tiled_mma, acc, tCrA[None, None, kb, h.index], tCrB[None, None, kb, h.index], acc)
                tiled_mma.set(warpgroup.Field.ACCUMULATE, True)
            warpgroup.commit_group()
            warpgroup.wait_group(0)
            h.release()
            sb = sfb[bn, k]
            for i in cutlass.range_constexpr(cute.size(acc)):
                row = cC[i][0]
                total[i] += acc[i] * (sfa[row, k] * sb)
        for i in cutlass.range_constexpr(cute.size(acc)):
            tCgC[i] = total[i].to(mC.element_type)


@cute.jit
def gemm(a: cute.Tensor, b: cute.Tensor, sfa: cute.Tensor, sfb: cute.Tensor, c: cute.Tensor, stream: cuda.CUstream):
    la, lb = utils.LayoutEnum.from_tensor(a), utils.LayoutEnum.from_tensor(b)
    tiled_mma = sm90_utils.make_trivial_tiled_mma(
        a.element_type,
        b.element_type,
        la.sm90_mma_major_mode(),
        lb.sm90_mma_major_mode(),
        cutlass.Float32,
        (2, 1, 1),
        (64, TN),
    )
    a_sl = sm90_utils.make_smem_layout_a(la, (TM, TN, TK), a.element_type, STAGES)
    b_sl = sm90_utils.make_smem_layout_b(lb, (TM, TN, TK), b.element_type, STAGES)
    op = cpasync.CopyBulkTensorTileG2SOp()
    ta, mA = cpasync.make_tiled_tma_atom(op, a, cute.slice_(a_sl, (None, None, 0)), (TM, TK))
    tb, mB = cpasync.make_tiled_tma_atom(op, b, cute.slice_(b_sl, (None, None, 0)), (TN, TK))
    kernel(ta, mA, tb, mB, sfa, sfb, c, tiled_mma, a_sl, b_sl).launch(
        grid=[*cute.ceil_div(c.shape, (TM, TN)), 1], block=[384, 1, 1], stream=stream
    )


def fp8(t):
    q = t.to(torch.float8_e4m3fn)
    c = from_dlpack(q.view(torch.uint8), assumed_align=16)
    c.element_type = cutlass.Float8E4M3FN
    return c.mark_layout_dynamic(leading_dim=1), q


if __name__ == "__main__":
    torch.manual_seed(0)
    M, N, K = 256, 128, 384
    a, qa = fp8(torch.randn(M, K, device="cuda"))
    b, qb = fp8(torch.randn(N, K, device="cuda"))
    sfa = torch.rand(M, K // TK, device="cuda")
    sfb = torch.rand(N // TN, K // TK, device="cuda")
    c = torch.empty(M, N, device="cuda", dtype=torch.bfloat16)
    stream = cuda.CUstream(torch.cuda.current_stream().cuda_stream)
    f = cute.compile(gemm, a, b, from_dlpack(sfa), from_dlpack(sfb), from_dlpack(c), stream)
    f(a, b, from_dlpack(sfa), from_dlpack(sfb), from_dlpack(c), stream)
    af = qa.float() * sfa.repeat_interleave(TK, 1)
    bf = qb.float() * sfb.repeat_interleave(TN, 0).repeat_interleave(TK, 1)
    torch.testing.assert_close(c.float(), af @ bf.T, atol=0.5, rtol=2e-2)
    print("PASS")
