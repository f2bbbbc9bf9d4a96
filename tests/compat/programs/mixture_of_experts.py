"""A mixture of experts: rows of A are gathered by index through cp.async, and added up where their tokens are."""

import cutlass
import cutlass.cute as cute
import cutlass.utils as utils
import torch
from cutlass import Int32, Float32, Boolean
from cutlass.cute.nvgpu import cpasync, warp
from cutlass.cute.runtime import from_dlpack

bM, bN, bK = 32, 64, 32


@cute.kernel
def moe_kernel(
    mX: cute.Tensor,
    mW: cute.Tensor,
    mOut: cute.Tensor,
    sorted_ids: cute.Tensor,
    expert_of_block: cute.Tensor,
    weights: cute.Tensor,
    n_tokens: Int32,
    top_k: cutlass.Constexpr[int],
    sA_l: cute.ComposedLayout,
    sB_l: cute.ComposedLayout,
    tiled_mma: cute.TiledMma,
):
    tidx, _, _ = cute.arch.thread_idx()
    bm, bn, _ = cute.arch.block_idx()
    expert = expert_of_block[bm]
    if expert >= 0:
        smem = utils.SmemAllocator()
        sA = smem.allocate_tensor(mX.element_type, sA_l, 128)
        sB = smem.allocate_tensor(mX.element_type, sB_l, 128)
        sIdx = smem.allocate_tensor(Int32, cute.make_layout(bM), 16)
        if tidx < bM:
            sIdx[tidx] = sorted_ids[bm * bM + tidx]
        cute.arch.sync_threads()
        atom = cute.make_copy_atom(
            cpasync.CopyG2SOp(cache_mode=cute.nvgpu.LoadCacheMode.GLOBAL), mX.element_type, num_bits_per_copy=128
        )
        tc = cute.make_tiled_copy_tv(atom, cute.make_ordered_layout((32, 4), order=(1, 0)), cute.make_layout((1, 8)))
        thr = tc.get_slice(tidx)
        gB = cute.local_tile(mW[expert, None, None], (bN, bK), (bn, None))
        tBgB, tBsB = thr.partition_S(gB), thr.partition_D(sB)
        # A: this thread copies 16 bytes of a gathered row
        tAsA = thr.partition_D(sA)
        cA = thr.partition_S(cute.make_identity_tensor((bM, bK)))
        row = cA[0, 0, 0][0]
        col = cA[0, 0, 0][1]
        slot = sIdx[row]
        token = slot // top_k
        ok = cute.make_rmem_tensor((1, 1, 1), Boolean)
        ok[0] = slot < n_tokens * top_k
        safe = token if slot < n_tokens * top_k else Int32(0)
        thr_mma = tiled_mma.get_slice(tidx)
        tCrA = tiled_mma.make_fragment_A(thr_mma.partition_A(sA))
        tCrB = tiled_mma.make_fragment_B(thr_mma.partition_B(sB))
        acc = cute.make_rmem_tensor(tiled_mma.partition_shape_C((bM, bN)), Float32)
        acc.fill(0)
        ld = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(num_matrices=4), mX.element_type)
        ldB = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(num_matrices=2), mX.element_type)
        cpA, cpB = cute.make_tiled_copy_A(ld, tiled_mma), cute.make_tiled_copy_B(ldB, tiled_mma)
        tAsA.fill(0)
        cute.arch.sync_threads()
        for k in cutlass.range(cute.ceil_div(mX.shape[1], bK)):
            src = cute.make_tensor(
                (mX.iterator + cute.crd2idx((safe, k * bK + col), mX.layout)).align(16),
                cute.make_layout(((8, 1), 1, 1)),
            )
            cute.copy(tc, src, tAsA, pred=ok)
            cute.copy(tc, tBgB[None, None, None, k], tBsB)
            cute.arch.cp_async_commit_group()
            cute.arch.cp_async_wait_group(0)
            cute.arch.sync_threads()
            for kk in cutlass.range_constexpr(cute.size(tCrA, mode=[2])):
                cute.copy(
                    cpA,
                    cpA.get_slice(tidx).partition_S(sA)[None, None, kk],
                    cpA.get_slice(tidx).retile(tCrA)[None, None, kk],
                )
                cute.copy(
                    cpB,
                    cpB.get_slice(tidx).partition_S(sB)[None, None, kk],
                    cpB.get_slice(tidx).retile(tCrB)[None, None, kk],
                )
                cute.gemm(tiled_mma, acc, tCrA[None, None, kk], tCrB[None, None, kk], acc)
            cute.arch.sync_threads()
        cC = thr_mma.partition_C(cute.make_identity_tensor((bM, bN)))
        for i in cutlass.range_constexpr(cute.size(acc)):
            r, c = cC[i]
            s = sIdx[r]
            if s < n_tokens * top_k:
                w = weights[s]
                cute.arch.atomic_add(mOut.iterator + cute.crd2idx((s // top_k, bn * bN + c), mOut.layout), acc[i] * w)


@cute.jit
def moe(
    x: cute.Tensor,
    w: cute.Tensor,
    out: cute.Tensor,
    ids: cute.Tensor,
    experts: cute.Tensor,
    weights: cute.Tensor,
    top_k: cutlass.Constexpr[int],
):
    sw = cute.make_composed_layout(cute.make_swizzle(2, 3, 3), 0, cute.make_layout((8, 32), stride=(32, 1)))
    sA = cute.tile_to_shape(sw, (bM, bK), (0, 1))
    sB = cute.tile_to_shape(sw, (bN, bK), (0, 1))
    mma = cute.make_tiled_mma(warp.MmaF16BF16Op(x.element_type, Float32, (16, 8, 16)), cute.make_layout((2, 2, 1)))
    moe_kernel(x, w, out, ids, experts, weights, x.shape[0], top_k, sA, sB, mma).launch(
        grid=[cute.size(experts), cute.ceil_div(w.shape[1], bN), 1], block=[128, 1, 1]
    )


if __name__ == "__main__":
    torch.manual_seed(0)
    T, K, N, E, top_k = 21, 64, 128, 4, 2
    x = torch.randint(-2, 3, (T, K), device="cuda").half()
    w = torch.randint(-2, 3, (E, N, K), device="cuda").half()
    logits = torch.randn(T, E, device="cuda")
    scores, idx = logits.softmax(-1).topk(top_k, dim=-1)
    flat = idx.flatten()
    ids, experts = [], []
    for e in range(E):
        mine = (flat == e).nonzero().flatten().tolist()
        while len(mine) % bM:
            mine.append(T * top_k)
        ids += mine
        experts += [e] * (len(mine) // bM)
    experts.append(-1)
    ids += [T * top_k] * bM
    ids = torch.tensor(ids, dtype=torch.int32, device="cuda")
    experts = torch.tensor(experts, dtype=torch.int32, device="cuda")
    out = torch.zeros(T, N, device="cuda")

    def dyn(t, a=16):
        return from_dlpack(t, assumed_align=a).mark_layout_dynamic()

    xt = (
        from_dlpack(x, assumed_align=16)
        .mark_compact_shape_dynamic(mode=0)
        .mark_compact_shape_dynamic(mode=1, divisibility=32)
    )
    wt = from_dlpack(w, assumed_align=16)
    fn = cute.compile(moe, xt, wt, dyn(out), dyn(ids), dyn(experts), dyn(scores.flatten()), top_k)
    fn(xt, wt, dyn(out), dyn(ids), dyn(experts), dyn(scores.flatten()))
    ref = torch.zeros(T, N)
    for t in range(T):
        for j in range(top_k):
            ref[t] += scores[t, j].item() * (w[idx[t, j]].float() @ x[t].float()).cpu()
    torch.testing.assert_close(out.cpu(), ref, atol=1e-3, rtol=1e-3)
    print("PASS")
