"""Attention over sequences of different lengths (cu_seqlens, domain_offset), grouped heads, a sliding window."""

import math
import cutlass
import cutlass.cute as cute
import cutlass.utils as utils
import torch
from cutlass import Float32, Int32, const_expr
from cutlass.cute.nvgpu import cpasync, warp
from cutlass.cute.runtime import from_dlpack


class SeqlenInfo:
    def __init__(self, offset: Int32, length: Int32):
        self.offset, self.length = offset, length

    @staticmethod
    @cute.jit
    def create(batch: Int32, cu_seqlens: cute.Tensor):
        start = cu_seqlens[batch]
        return SeqlenInfo(start, cu_seqlens[batch + 1] - start)


class SoftmaxState:
    def __init__(self, rows: int, scale_log2: Float32):
        self.row_max = cute.make_rmem_tensor(rows, Float32)
        self.row_sum = cute.make_rmem_tensor(rows, Float32)
        self.scale_log2 = scale_log2

    def reset(self):
        self.row_max.fill(-Float32.inf)
        self.row_sum.fill(0.0)

    @cute.jit
    def online(self, acc_mn: cute.Tensor, out_mn: cute.Tensor):
        for r in cutlass.range(cute.size(self.row_max), unroll_full=True):
            row = acc_mn[r, None].load()
            m = row.reduce(cute.ReductionOp.MAX, self.row_max[r], 0)
            m = cute.arch.warp_reduction_max(m, threads_in_group=4)
            safe = 0.0 if m == -Float32.inf else m
            p = cute.math.exp2(row * self.scale_log2 - safe * self.scale_log2, fastmath=True)
            scale = cute.math.exp2((self.row_max[r] - safe) * self.scale_log2, fastmath=True)
            self.row_sum[r] = self.row_sum[r] * scale + p.reduce(cute.ReductionOp.ADD, 0.0, 0)
            self.row_max[r] = m
            acc_mn[r, None].store(p)
            out_mn[r, None].store(out_mn[r, None].load() * scale)


def as_mn(acc: cute.Tensor) -> cute.Tensor:
    """((2,2), M, N) -> ((2, M), (2, N)): rows and columns"""
    l = acc.layout
    s, d = l.shape, l.stride
    new = cute.make_layout(((s[0][1], s[1]), (s[0][0], s[2])), stride=((d[0][1], d[1]), (d[0][0], d[2])))
    return cute.make_tensor(acc.iterator, new)


class VarlenAttention:
    def __init__(self, d, window=None, m=64, n=32):
        self.d, self.window, self.m, self.n = d, window, m, n

    @cute.jit
    def __call__(
        self,
        q: cute.Tensor,
        k: cute.Tensor,
        v: cute.Tensor,
        o: cute.Tensor,
        cu_q: cute.Tensor,
        cu_k: cute.Tensor,
        max_q: Int32,
        scale: Float32,
    ):
        t = q.element_type
        atom = cute.make_composed_layout(cute.make_swizzle(3, 3, 3), 0, cute.make_layout((8, 64), stride=(64, 1)))
        sQ = cute.tile_to_shape(atom, (self.m, self.d), (0, 1))
        sKV = cute.tile_to_shape(atom, (self.n, self.d), (0, 1))
        g2s = cute.make_copy_atom(cpasync.CopyG2SOp(), t, num_bits_per_copy=128)
        tc = cute.make_tiled_copy_tv(g2s, cute.make_layout((16, 8), stride=(8, 1)), cute.make_layout((1, 8)))
        mma = cute.make_tiled_mma(warp.MmaF16BF16Op(t, Float32, (16, 8, 16)), (4, 1, 1), permutation_mnk=(64, 16, 16))
        self.kernel(q, k, v, o, cu_q, cu_k, scale * math.log2(math.e), sQ, sKV, tc, mma).launch(
            grid=(cute.ceil_div(max_q, self.m), q.shape[1], cu_q.shape[0] - 1), block=(128, 1, 1)
        )

    @cute.kernel
    def kernel(
        self,
        q: cute.Tensor,
        k: cute.Tensor,
        v: cute.Tensor,
        o: cute.Tensor,
        cu_q: cute.Tensor,
        cu_k: cute.Tensor,
        scale_log2: Float32,
        sQl: cute.ComposedLayout,
        sKVl: cute.ComposedLayout,
        tc: cute.TiledCopy,
        mma: cute.TiledMma,
    ):
        tid, _, _ = cute.arch.thread_idx()
        mb, head, b = cute.arch.block_idx()
        kv_head = head // (q.shape[1] // k.shape[1])
        sq, sk = SeqlenInfo.create(b, cu_q), SeqlenInfo.create(b, cu_k)
        if mb * self.m < sq.length:
            # this sequence's rows
            mQ = cute.domain_offset((sq.offset, 0), q[None, head, None])
            mK = cute.domain_offset((sk.offset, 0), k[None, kv_head, None])
            mV = cute.domain_offset((sk.offset, 0), v[None, kv_head, None])
            mO = cute.domain_offset((sq.offset, 0), o[None, head, None])
            gQ = cute.local_tile(mQ, (self.m, self.d), (mb, 0))
            gO = cute.local_tile(mO, (self.m, self.d), (mb, 0))
            smem = utils.SmemAllocator()
            t = q.element_type
            sQ = smem.allocate_tensor(t, sQl, 1024)
            sK = smem.allocate_tensor(t, sKVl, 1024)
            sV = smem.allocate_tensor(t, sKVl, 1024)
            sVt = cute.composition(sV, cute.make_ordered_layout((self.d, self.n), order=(1, 0)))
            thr = tc.get_slice(tid)
            cQ = thr.partition_S(cute.make_identity_tensor((self.m, self.d)))
            tQgQ, tQsQ = thr.partition_S(gQ), thr.partition_D(sQ)
            for i in cutlass.range_constexpr(cute.size(tQsQ, mode=[1])):
                if mb * self.m + cQ[0, i, 0][0] < sq.length:
                    cute.copy(tc, tQgQ[None, i, None], tQsQ[None, i, None])
                else:
                    tQsQ[None, i, None].fill(0)
            tm = mma.get_slice(tid)
            rQ = mma.make_fragment_A(tm.partition_A(sQ))
            rK = mma.make_fragment_B(tm.partition_B(sK))
            rV = mma.make_fragment_B(tm.partition_B(sVt))
            ld = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), t)
            ldt = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(True, 4), t)
            lq, lk, lv = (
                cute.make_tiled_copy_A(ld, mma),
                cute.make_tiled_copy_B(ld, mma),
                cute.make_tiled_copy_B(ldt, mma),
            )
            accO = cute.make_rmem_tensor(mma.partition_shape_C((self.m, self.d)), Float32)
            accO.fill(0.0)
            O_mn = as_mn(accO)
            sm = SoftmaxState(const_expr(cute.size(O_mn, mode=[0])), scale_log2)
            sm.reset()
            # the diagonal ends at the end of the keys
            shift = sk.length - sq.length
            last = cutlass.min(sk.length, (mb + 1) * self.m + shift)
            first = Int32(0)
            if const_expr(self.window is not None):
                first = cutlass.max(mb * self.m + shift - self.window, 0) // self.n
            cS = tm.partition_C(cute.make_identity_tensor((self.m, self.n)))
            for nb in cutlass.range(first, cute.ceil_div(last, self.n), unroll=1):
                gK = cute.local_tile(mK, (self.n, self.d), (nb, 0))
                gV = cute.local_tile(mV, (self.n, self.d), (nb, 0))
                tKg, tKs, tVg, tVs = thr.partition_S(gK), thr.partition_D(sK), thr.partition_S(gV), thr.partition_D(sV)
                for i in cutlass.range_constexpr(cute.size(tKs, mode=[1])):
                    if nb * self.n + cQ[0, i, 0][0] < sk.length:
                        cute.copy(tc, tKg[None, i, None], tKs[None, i, None])
                        cute.copy(tc, tVg[None, i, None], tVs[None, i, None])
                    else:
                        tVs[None, i, None].fill(0)
                        tKs[None, i, None].fill(0)
                cute.arch.cp_async_commit_group()
                cute.arch.cp_async_wait_group(0)
                cute.arch.sync_threads()
                accS = cute.make_rmem_tensor(mma.partition_shape_C((self.m, self.n)), Float32)
                accS.fill(0.0)
                for kk in cutlass.range_constexpr(cute.size(rQ, mode=[2])):
                    cute.copy(
                        lq,
                        lq.get_slice(tid).partition_S(sQ)[None, None, kk],
                        lq.get_slice(tid).retile(rQ)[None, None, kk],
                    )
                    cute.copy(
                        lk,
                        lk.get_slice(tid).partition_S(sK)[None, None, kk],
                        lk.get_slice(tid).retile(rK)[None, None, kk],
                    )
                    cute.gemm(mma, accS, rQ[None, None, kk], rK[None, None, kk], accS)
                for i in cutlass.range_constexpr(cute.size(accS)):
                    row = mb * self.m + cS[i][0] + shift
                    col = nb * self.n + cS[i][1]
                    keep = col <= row and col < sk.length
                    if const_expr(self.window is not None):
                        keep = keep and row - col <= self.window
                    accS[i] = accS[i] if keep else -Float32.inf
                sm.online(as_mn(accS), O_mn)
                rP = cute.make_fragment_like(accS, t)
                rP.store(accS.load().to(t))
                lay = cute.logical_divide(rP.layout, (None, None, 2))
                rP = cute.make_tensor(
                    rP.iterator,
                    cute.make_layout(
                        ((lay.shape[0], lay.shape[2][0]), lay.shape[1], lay.shape[2][1]),
                        stride=((lay.stride[0], lay.stride[2][0]), lay.stride[1], lay.stride[2][1]),
                    ),
                )
                for kk in cutlass.range_constexpr(cute.size(rP, mode=[2])):
                    cute.copy(
                        lv,
                        lv.get_slice(tid).partition_S(sVt)[None, None, kk],
                        lv.get_slice(tid).retile(rV)[None, None, kk],
                    )
                    cute.gemm(mma, accO, rP[None, None, kk], rV[None, None, kk], accO)
                cute.arch.sync_threads()
            for r in cutlass.range_constexpr(cute.size(sm.row_sum)):
                total = cute.arch.warp_reduction_sum(sm.row_sum[r], threads_in_group=4)
                inv = 1.0 / total if total > 0.0 else Float32(0.0)
                O_mn[r, None].store(O_mn[r, None].load() * inv)
            tOgO = tm.partition_C(gO)
            cO = tm.partition_C(cute.make_identity_tensor((self.m, self.d)))
            for i in cutlass.range_constexpr(cute.size(accO)):
                if mb * self.m + cO[i][0] < sq.length:
                    tOgO[i] = accO[i].to(t)


def main():
    torch.manual_seed(0)
    H, KV, D = 4, 2, 64
    lq, lk = [40, 5], [40, 70]

    def cu(ls):
        return torch.tensor([0] + list(torch.tensor(ls).cumsum(0)), dtype=torch.int32, device="cuda")

    q = torch.randn(sum(lq), H, D, device="cuda", dtype=torch.bfloat16)
    k = torch.randn(sum(lk), KV, D, device="cuda", dtype=torch.bfloat16)
    v = torch.randn_like(k)
    for window in (None, 16):
        o = torch.zeros_like(q)
        T = [
            from_dlpack(t, assumed_align=16)
            .mark_layout_dynamic(leading_dim=2)
            .mark_compact_shape_dynamic(mode=2, stride_order=(0, 1, 2), divisibility=D)
            for t in (q, k, v, o)
        ]
        cuq, cuk = (from_dlpack(cu(l), assumed_align=4).mark_layout_dynamic() for l in (lq, lk))
        fn = cute.compile(VarlenAttention(D, window), *T, cuq, cuk, max(lq), 1 / math.sqrt(D))
        fn(*T, cuq, cuk, max(lq), 1 / math.sqrt(D))
        aq = ak = 0
        for a, b in zip(lq, lk):
            qq = q[aq : aq + a].float().transpose(0, 1)
            kk = k[ak : ak + b].float().repeat_interleave(H // KV, 1).transpose(0, 1)
            vv = v[ak : ak + b].float().repeat_interleave(H // KV, 1).transpose(0, 1)
            s = qq @ kk.transpose(1, 2) / math.sqrt(D)
            i = torch.arange(a)[:, None] + b - a
            j = torch.arange(b)[None]
            mask = j > i
            if window is not None:
                mask = mask | (i - j > window)
            ref = s.masked_fill(mask.to(s.device), float("-inf")).softmax(-1) @ vv
            torch.testing.assert_close(o[aq : aq + a].float().transpose(0, 1), ref, atol=2e-2, rtol=2e-2)
            aq, ak = aq + a, ak + b
    print("PASS")


if __name__ == "__main__":
    main()
