"""A convolution as a matrix product: the activation is seen through the layout ((Q,P,N),(C,S,R)), nothing is copied."""

import cutlass
import cutlass.cute as cute
import cutlass.utils as utils
import torch
from cutlass.cute.nvgpu import warp, cpasync
from cutlass.cute.runtime import from_dlpack


class ImplicitGemmConv:
    bM, bN, bK = 64, 64, 32
    stages = 3

    def __init__(self, dtype, stride=(1, 1), dilation=(1, 1)):
        self.dtype = dtype
        self.stride, self.dilation = stride, dilation

    @cute.jit
    def __call__(self, act: cute.Tensor, flt: cute.Tensor, out: cute.Tensor):
        # act: (N, H, W, C) padded already; flt: (K, R, S, C); out: (N, P, Q, K)
        N, H, W, C = act.shape
        K, R, S, _ = flt.shape
        _, P, Q, _ = out.shape
        sN, sH, sW, sC = act.stride
        im2col = cute.make_layout(
            ((Q, P, N), (C, S, R)),
            stride=((sW * self.stride[1], sH * self.stride[0], sN), (sC, sW * self.dilation[1], sH * self.dilation[0])),
        )
        mA = cute.make_tensor(act.iterator, im2col)
        fN, fR, fS, fC = flt.stride
        mB = cute.make_tensor(flt.iterator, cute.make_layout((K, (C, S, R)), stride=(fN, (fC, fS, fR))))
        oN, oP, oQ, oK = out.stride
        mC = cute.make_tensor(out.iterator, cute.make_layout(((Q, P, N), K), stride=((oQ, oP, oN), oK)))
        print("im2col:", mA.layout)
        sw = cute.make_composed_layout(cute.make_swizzle(2, 3, 3), 0, cute.make_layout((8, 32), stride=(32, 1)))
        sA = cute.tile_to_shape(sw, (self.bM, self.bK, self.stages), (0, 1, 2))
        sB = cute.tile_to_shape(sw, (self.bN, self.bK, self.stages), (0, 1, 2))
        atom = cute.make_copy_atom(cpasync.CopyG2SOp(), self.dtype, num_bits_per_copy=128)
        tc = cute.make_tiled_copy_tv(atom, cute.make_layout((32, 4), stride=(4, 1)), cute.make_layout((1, 8)))
        mma = cute.make_tiled_mma(
            warp.MmaF16BF16Op(self.dtype, cutlass.Float32, (16, 8, 16)),
            cute.make_layout((2, 2, 1)),
            permutation_mnk=(32, 32, 16),
        )
        self.kernel(mA, mB, mC, sA, sB, tc, mma).launch(
            grid=(cute.ceil_div(cute.size(mA, mode=[0]), self.bM), cute.ceil_div(K, self.bN), 1), block=(128, 1, 1)
        )

    @cute.kernel
    def kernel(
        self, mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor, sAl: cute.ComposedLayout, sBl: cute.ComposedLayout,
        tc: cute.TiledCopy, mma: cute.TiledMma,
    ):
        tidx, _, _ = cute.arch.thread_idx()
        bm, bn, _ = cute.arch.block_idx()
        smem = utils.SmemAllocator()
        sA = smem.allocate_tensor(self.dtype, sAl, 128)
        sB = smem.allocate_tensor(self.dtype, sBl, 128)
        gA = cute.local_tile(mA, (self.bM, self.bK), (bm, None))
        gB = cute.local_tile(mB, (self.bN, self.bK), (bn, None))
        gC = cute.local_tile(mC, (self.bM, self.bN), (bm, bn))
        cA = cute.local_tile(
            cute.make_identity_tensor((cute.size(mA, mode=[0]), cute.size(mA, mode=[1]))),
            (self.bM, self.bK),
            (bm, None),
        )
        cC = cute.local_tile(
            cute.make_identity_tensor((cute.size(mC, mode=[0]), cute.size(mC, mode=[1]))), (self.bM, self.bN), (bm, bn)
        )
        cB = cute.local_tile(
            cute.make_identity_tensor((cute.size(mB, mode=[0]), cute.size(mB, mode=[1]))),
            (self.bN, self.bK),
            (bn, None),
        )
        thr = tc.get_slice(tidx)
        tAgA, tAsA, tAcA = thr.partition_S(gA), thr.partition_D(sA), thr.partition_S(cA)
        tBgB, tBsB, tBcB = thr.partition_S(gB), thr.partition_D(sB), thr.partition_S(cB)
        pA = cute.make_rmem_tensor(
            cute.make_layout((1, cute.size(tAsA, mode=[1]), cute.size(tAsA, mode=[2])), stride=(0, 1, 0)),
            cutlass.Boolean,
        )
        pB = cute.make_rmem_tensor(
            cute.make_layout((1, cute.size(tBsB, mode=[1]), cute.size(tBsB, mode=[2])), stride=(0, 1, 0)),
            cutlass.Boolean,
        )
        for i in cutlass.range_constexpr(cute.size(pA, mode=[1])):
            pA[0, i, 0] = tAcA[0, i, 0, 0][0] < cute.size(mA, mode=[0])
        for i in cutlass.range_constexpr(cute.size(pB, mode=[1])):
            pB[0, i, 0] = tBcB[0, i, 0, 0][0] < cute.size(mB, mode=[0])
        tAsA.fill(0)
        tBsB.fill(0)
        cute.arch.barrier()
        thr_mma = mma.get_slice(tidx)
        tCsA, tCsB, tCgC, tCcC = (
            thr_mma.partition_A(sA),
            thr_mma.partition_B(sB),
            thr_mma.partition_C(gC),
            thr_mma.partition_C(cC),
        )
        rA = mma.make_fragment_A(tCsA[None, None, None, 0])
        rB = mma.make_fragment_B(tCsB[None, None, None, 0])
        rC = mma.make_fragment_C(tCgC)
        rC.fill(0.0)
        ld = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), self.dtype)
        cpA, cpB = cute.make_tiled_copy_A(ld, mma), cute.make_tiled_copy_B(ld, mma)
        xsA, xrA = cpA.get_slice(tidx).partition_S(sA), cpA.get_slice(tidx).retile(rA)
        xsB, xrB = cpB.get_slice(tidx).partition_S(sB), cpB.get_slice(tidx).retile(rB)
        kt = cute.size(gA, mode=[2])
        for s in cutlass.range_constexpr(self.stages - 1):
            if s < kt:
                cute.copy(tc, tAgA[None, None, None, s], tAsA[None, None, None, s], pred=pA)
                cute.copy(tc, tBgB[None, None, None, s], tBsB[None, None, None, s], pred=pB)
            cute.arch.cp_async_commit_group()
        for k in cutlass.range(kt, unroll=1):
            cute.arch.cp_async_wait_group(self.stages - 2)
            cute.arch.barrier()
            nk = k + self.stages - 1
            if nk < kt:
                cute.copy(tc, tAgA[None, None, None, nk], tAsA[None, None, None, nk % self.stages], pred=pA)
                cute.copy(tc, tBgB[None, None, None, nk], tBsB[None, None, None, nk % self.stages], pred=pB)
            cute.arch.cp_async_commit_group()
            for kk in cutlass.range_constexpr(cute.size(rA, mode=[2])):
                cute.copy(cpA, xsA[None, None, kk, k % self.stages], xrA[None, None, kk])
                cute.copy(cpB, xsB[None, None, kk, k % self.stages], xrB[None, None, kk])
                cute.gemm(mma, rC, rA[None, None, kk], rB[None, None, kk], rC)
        cute.arch.cp_async_wait_group(0)
        out = cute.make_fragment_like(rC, mC.element_type)
        out.store(rC.load().to(mC.element_type))
        for i in cutlass.range_constexpr(cute.size(out)):
            if cute.elem_less(tCcC[i], (cute.size(mC, mode=[0]), cute.size(mC, mode=[1]))):
                tCgC[i] = out[i]


def conv(x, w, stride, padding, dilation, dynamic):
    n, c, h, wd = x.shape
    k, _, r, s = w.shape
    xp = torch.nn.functional.pad(x, (padding,) * 4).permute(0, 2, 3, 1).contiguous()
    wp = w.permute(0, 2, 3, 1).contiguous()
    p = (h + 2 * padding - dilation * (r - 1) - 1) // stride + 1
    q = (wd + 2 * padding - dilation * (s - 1) - 1) // stride + 1
    out = torch.empty(n, p, q, k, device=x.device, dtype=x.dtype)
    op = ImplicitGemmConv(cutlass.Float16, (stride, stride), (dilation, dilation))
    if dynamic:

        def conv_t(t):
            return from_dlpack(t, assumed_align=16).mark_compact_shape_dynamic(mode=0, stride_order=(0, 1, 2, 3))
    else:

        def conv_t(t):
            return from_dlpack(t, assumed_align=16)

    args = [conv_t(t) for t in (xp, wp, out)]
    cute.compile(op, *args)(*args)
    return out.permute(0, 3, 1, 2)


if __name__ == "__main__":
    torch.manual_seed(0)
    for stride, padding, dilation, dynamic in ((1, 1, 1, False), (2, 1, 1, True), (1, 2, 2, True)):
        x = torch.randint(-2, 3, (2, 32, 8 * stride, 8 * stride), device="cuda").half()
        w = torch.randint(-2, 3, (72, 32, 3, 3), device="cuda").half()
        got = conv(x, w, stride, padding, dilation, dynamic)
        ref = torch.nn.functional.conv2d(x.float(), w.float(), None, stride, padding, dilation)
        torch.testing.assert_close(got.float(), ref)
    print("PASS")
