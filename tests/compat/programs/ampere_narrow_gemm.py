"""int8 and fp8 GEMM by mma.sync with a per-channel dequantising epilogue."""

import argparse
import cutlass
import cutlass.cute as cute
import cutlass.utils as utils
import cutlass.torch as cutlass_torch
import torch
from cutlass.cute.nvgpu import cpasync, warp
from cutlass.cute.runtime import from_dlpack


class NarrowGemm:
    def __init__(self, ab_dtype, acc_dtype, c_dtype, tile=(64, 64, 64)):
        self.ab, self.acc, self.c = ab_dtype, acc_dtype, c_dtype
        self.tile = tile
        self.num_threads = 128

    @cute.jit
    def __call__(
        self, mA: cute.Tensor, mB: cute.Tensor, sa: cute.Tensor, sb: cute.Tensor, bias: cute.Tensor, mC: cute.Tensor,
        activation: cutlass.Constexpr = lambda x: x,
    ):
        bM, bN, bK = self.tile
        if cutlass.const_expr(self.ab == cutlass.Int8):
            op = warp.MmaI8Op(self.ab, self.ab, (16, 8, 32))
        else:
            op = warp.MmaFP8Op(self.ab, self.acc, (16, 8, 32))
        mma = cute.make_tiled_mma(op, (2, 2, 1), permutation_mnk=(32, 32, 32))
        atom = cute.make_composed_layout(cute.make_swizzle(2, 4, 3), 0, cute.make_ordered_layout((8, 64), order=(1, 0)))
        sA = cute.tile_to_shape(atom, (bM, bK, 2), (0, 1, 2))
        sB = cute.tile_to_shape(atom, (bN, bK, 2), (0, 1, 2))
        g2s = cute.make_copy_atom(
            cpasync.CopyG2SOp(cache_mode=cpasync.LoadCacheMode.GLOBAL), self.ab, num_bits_per_copy=128
        )
        tiled = cute.make_tiled_copy_tv(g2s, cute.make_ordered_layout((32, 4), order=(1, 0)), cute.make_layout((1, 16)))
        self.kernel(mA, mB, sa, sb, bias, mC, mma, tiled, sA, sB, activation).launch(
            grid=cute.ceil_div((*mC.shape, 1), (bM, bN, 1)), block=[self.num_threads, 1, 1]
        )

    @cute.kernel
    def kernel(
        self, mA: cute.Tensor, mB: cute.Tensor, sa: cute.Tensor, sb: cute.Tensor, bias: cute.Tensor, mC: cute.Tensor,
        mma: cute.TiledMma, tiled: cute.TiledCopy, sAl: cute.ComposedLayout, sBl: cute.ComposedLayout,
        activation: cutlass.Constexpr,
    ):
        tidx, _, _ = cute.arch.thread_idx()
        bx, by, _ = cute.arch.block_idx()
        gA = cute.local_tile(mA, self.tile, (bx, by, None), proj=(1, None, 1))
        gB = cute.local_tile(mB, self.tile, (bx, by, None), proj=(None, 1, 1))
        gC = cute.local_tile(mC, self.tile, (bx, by, None), proj=(1, 1, None))

        @cute.struct
        class Storage:
            a: cute.struct.Align[cute.struct.MemRange[self.ab, cute.cosize(sAl)], 1024]
            b: cute.struct.Align[cute.struct.MemRange[self.ab, cute.cosize(sBl)], 1024]

        st = utils.SmemAllocator().allocate(Storage)
        sA, sB = st.a.get_tensor(sAl), st.b.get_tensor(sBl)
        thr = tiled.get_slice(tidx)
        tAgA, tAsA = thr.partition_S(gA), thr.partition_D(sA)
        tBgB, tBsB = thr.partition_S(gB), thr.partition_D(sB)
        thr_mma = mma.get_slice(tidx)
        rA = mma.make_fragment_A(thr_mma.partition_A(sA)[None, None, None, 0])
        rB = mma.make_fragment_B(thr_mma.partition_B(sB)[None, None, None, 0])
        tCgC = thr_mma.partition_C(gC)
        acc = mma.make_fragment_C(tCgC)
        acc.fill(0)
        ldm = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(num_matrices=4), self.ab)
        cA, cB = cute.make_tiled_copy_A(ldm, mma), cute.make_tiled_copy_B(ldm, mma)
        xA, yA = cA.get_slice(tidx).partition_S(sA), cA.retile(rA)
        xB, yB = cB.get_slice(tidx).partition_S(sB), cB.retile(rB)
        kt = cute.size(gA, mode=[2])
        cute.copy(tiled, tAgA[None, None, None, 0], tAsA[None, None, None, 0])
        cute.copy(tiled, tBgB[None, None, None, 0], tBsB[None, None, None, 0])
        cute.arch.cp_async_commit_group()
        for k in range(kt):
            if k + 1 < kt:
                cute.copy(tiled, tAgA[None, None, None, k + 1], tAsA[None, None, None, (k + 1) % 2])
                cute.copy(tiled, tBgB[None, None, None, k + 1], tBsB[None, None, None, (k + 1) % 2])
            cute.arch.cp_async_commit_group()
            cute.arch.cp_async_wait_group(1)
            cute.arch.sync_threads()
            for kb in cutlass.range_constexpr(cute.size(rA, mode=[2])):
                cute.copy(cA, xA[None, None, kb, k % 2], yA[None, None, kb])
                cute.copy(cB, xB[None, None, kb, k % 2], yB[None, None, kb])
                cute.gemm(mma, acc, rA[None, None, kb], rB[None, None, kb], acc)
            cute.arch.sync_threads()
        cC = thr_mma.partition_C(
            cute.local_tile(cute.make_identity_tensor(mC.shape), self.tile, (bx, by, None), proj=(1, 1, None))
        )
        out = cute.make_rmem_tensor(acc.shape, cutlass.Float32)
        for i in cutlass.range_constexpr(cute.size(acc)):
            m, n = cC[i]
            out[i] = cutlass.Float32(acc[i]) * sa[m] * sb[n] + bias[n].to(cutlass.Float32)
        out.store(activation(out.load()))
        tCrC = cute.make_rmem_tensor_like(out, self.c)
        tCrC.store(out.load().to(self.c))
        cute.autovec_copy(tCrC, tCgC)


def gelu(x):
    return 0.5 * x * (1.0 + cute.math.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mnk", default="128,64,192")
    M, N, K = map(int, parser.parse_args().mnk.split(","))
    torch.manual_seed(0)
    sa, sb = torch.rand(M, device="cuda") * 0.1, torch.rand(N, device="cuda") * 0.1
    bias = torch.randn(N, device="cuda", dtype=torch.float16)
    for ab, acc in (
        (cutlass.Int8, cutlass.Int32),
        (cutlass.Float8E4M3FN, cutlass.Float32),
        (cutlass.Float8E5M2, cutlass.Float32),
    ):
        a, b = torch.randint(-4, 5, (M, K)).float(), torch.randint(-4, 5, (N, K)).float()
        mA, at = cutlass_torch.cute_tensor_like(a, ab, is_dynamic_layout=False, assumed_align=16)
        mB, bt = cutlass_torch.cute_tensor_like(b, ab, is_dynamic_layout=False, assumed_align=16)
        c = torch.empty(M, N, device="cuda", dtype=torch.float16)
        ts = [mA, mB, from_dlpack(sa), from_dlpack(sb), from_dlpack(bias), from_dlpack(c, assumed_align=16)]
        fn = cute.compile(NarrowGemm(ab, acc, cutlass.Float16), *ts, gelu)
        fn(*ts)
        ref = (a @ b.T).cuda() * sa[:, None] * sb[None] + bias.float()
        torch.testing.assert_close(c.float(), torch.nn.functional.gelu(ref, approximate="tanh"), atol=1e-2, rtol=1e-2)
        print(ab, "ok")
    print("PASS")


if __name__ == "__main__":
    main()
