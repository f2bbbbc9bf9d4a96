"""C = A B^T on Ampere: cp.async into a ring of swizzled stages, ldmatrix, mma.sync, ragged edges by predicates."""

import argparse
import math

import cutlass
import cutlass.cute as cute
import cutlass.cute.testing as testing
import cutlass.torch as cutlass_torch
import cutlass.utils as utils
import torch
from cutlass.cute.runtime import from_dlpack


class TensorOpGemm:
    def __init__(self, ab_dtype, c_dtype, acc_dtype, atom_layout_mnk=(2, 2, 1)):
        self.ab_dtype, self.c_dtype, self.acc_dtype = ab_dtype, c_dtype, acc_dtype
        self.tile, self.stages, self.atom_layout = (64, 64, 32), 3, atom_layout_mnk
        self.threads = 32 * math.prod(atom_layout_mnk)
        self.mma_shape = (16, 8, 16)
        assert self.tile[0] % (atom_layout_mnk[0] * 16) == 0

    @cute.jit
    def __call__(self, mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor, epilogue: cutlass.Constexpr = lambda x: x):
        self.a_major, self.b_major = utils.LayoutEnum.from_tensor(mA), utils.LayoutEnum.from_tensor(mB)
        bM, bN, bK = self.tile
        sA_layout = self.staged(mA.element_type, self.a_major, (bM, bK, self.stages))
        sB_layout = self.staged(mB.element_type, self.b_major, (bN, bK, self.stages))
        load = cute.make_copy_atom(
            cute.nvgpu.cpasync.CopyG2SOp(cache_mode=cute.nvgpu.cpasync.LoadCacheMode.GLOBAL), self.ab_dtype,
            num_bits_per_copy=128,
        )  # fmt: skip
        copy_A = self.loader(load, self.a_major, bM, bK)
        copy_B = self.loader(load, self.b_major, bN, bK)
        op = cute.nvgpu.warp.MmaF16BF16Op(self.ab_dtype, self.acc_dtype, self.mma_shape)
        permutation = (self.atom_layout[0] * 16, self.atom_layout[1] * 16, 16)
        tiled_mma = cute.make_tiled_mma(op, cute.make_layout(self.atom_layout), permutation_mnk=permutation)
        grid = cute.ceil_div(mC.shape, (bM, bN, 1))
        smem = cute.size_in_bytes(self.ab_dtype, sA_layout) + cute.size_in_bytes(self.ab_dtype, sB_layout)
        self.kernel(mA, mB, mC, sA_layout, sB_layout, copy_A, copy_B, tiled_mma, epilogue).launch(
            grid=grid, block=[self.threads, 1, 1], smem=smem
        )

    def staged(self, dtype, major, shape):
        extent = shape[1] if major == utils.LayoutEnum.ROW_MAJOR else shape[0]
        extent = min(extent, 64)
        bits = min(int(math.log2(extent * dtype.width // 128)), 3)
        atom = cute.make_layout((8, extent), stride=(extent, 1))
        if major == utils.LayoutEnum.COL_MAJOR:
            atom = cute.make_layout((extent, 8), stride=(1, extent))
        return cute.tile_to_shape(cute.make_composed_layout(cute.make_swizzle(bits, 3, 3), 0, atom), shape, (0, 1, 2))

    def loader(self, atom, major, rows, columns):
        vector = 128 // self.ab_dtype.width
        across = (columns if major == utils.LayoutEnum.ROW_MAJOR else rows) // vector
        threads = cute.make_layout((self.threads // across, across), stride=(across, 1))
        values = cute.make_layout((1, vector))
        if major != utils.LayoutEnum.ROW_MAJOR:
            threads = cute.make_layout((across, self.threads // across), stride=(1, across))
            values = cute.make_layout((vector, 1))
        return cute.make_tiled_copy_tv(atom, threads, values)

    @cute.kernel
    def kernel(
        self, mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor, sA_layout: cute.ComposedLayout,
        sB_layout: cute.ComposedLayout, copy_A: cute.TiledCopy, copy_B: cute.TiledCopy, tiled_mma: cute.TiledMma,
        epilogue: cutlass.Constexpr,
    ):  # fmt: skip
        tidx, _, _ = cute.arch.thread_idx()
        m, n, batch = cute.arch.block_idx()
        place = (m, n, None)
        gA = cute.local_tile(mA[None, None, batch], tiler=self.tile, coord=place, proj=(1, None, 1))  # (bM, bK, k)
        gB = cute.local_tile(mB[None, None, batch], tiler=self.tile, coord=place, proj=(None, 1, 1))
        gC = cute.local_tile(mC[None, None, batch], tiler=self.tile, coord=place, proj=(1, 1, None))
        cA = cute.local_tile(
            cute.make_identity_tensor(mA.layout.shape)[None, None, batch], self.tile, place, proj=(1, None, 1)
        )
        cB = cute.local_tile(
            cute.make_identity_tensor(mB.layout.shape)[None, None, batch], self.tile, place, proj=(None, 1, 1)
        )
        smem = cutlass.utils.SmemAllocator()
        sA = smem.allocate_tensor(mA.element_type, sA_layout, 16)
        sB = smem.allocate_tensor(mB.element_type, sB_layout, 16)
        thr_A, thr_B = copy_A.get_slice(tidx), copy_B.get_slice(tidx)
        tAgA, tAsA, tAcA = thr_A.partition_S(gA), thr_A.partition_D(sA), thr_A.partition_S(cA)
        tBgB, tBsB, tBcB = thr_B.partition_S(gB), thr_B.partition_D(sB), thr_B.partition_S(cB)

        def inside(tc, limit):
            pred = cute.make_rmem_tensor(
                cute.make_layout(
                    (tc.shape[0][1], cute.size(tc, mode=[1]), cute.size(tc, mode=[2])),
                    stride=(cute.size(tc, mode=[1]), 1, 0),
                ),
                cutlass.Boolean,
            )
            for v in cutlass.range_constexpr(pred.shape[0]):
                for i in cutlass.range_constexpr(pred.shape[1]):
                    pred[v, i, 0] = cute.elem_less(tc[(0, v), i, 0, 0][0], limit)
            return pred

        pA, pB = inside(tAcA, mA.shape[0]), inside(tBcB, mB.shape[0])
        k_tiles = cute.size(tAgA, mode=[3])

        tAsA.fill(0)
        tBsB.fill(0)
        cute.arch.sync_threads()
        for stage in cutlass.range_constexpr(self.stages - 1):
            if stage < k_tiles:
                cute.copy(copy_A, tAgA[None, None, None, stage], tAsA[None, None, None, stage], pred=pA)
                cute.copy(copy_B, tBgB[None, None, None, stage], tBsB[None, None, None, stage], pred=pB)
            cute.arch.cp_async_commit_group()

        thr_mma = tiled_mma.get_slice(tidx)
        tCgC = thr_mma.partition_C(gC)
        tCrA = tiled_mma.make_fragment_A(thr_mma.partition_A(sA)[None, None, None, 0])
        tCrB = tiled_mma.make_fragment_B(thr_mma.partition_B(sB)[None, None, None, 0])
        tCrC = tiled_mma.make_fragment_C(tCgC)
        tCrC.fill(0.0)
        read_A = cute.make_copy_atom(
            cute.nvgpu.warp.LdMatrix8x8x16bOp(self.a_major != utils.LayoutEnum.ROW_MAJOR, 4), mA.element_type
        )
        read_B = cute.make_copy_atom(
            cute.nvgpu.warp.LdMatrix8x8x16bOp(self.b_major != utils.LayoutEnum.ROW_MAJOR, 4), mB.element_type
        )
        s2r_A, s2r_B = cute.make_tiled_copy_A(read_A, tiled_mma), cute.make_tiled_copy_B(read_B, tiled_mma)
        thr_s2r_A, thr_s2r_B = s2r_A.get_slice(tidx), s2r_B.get_slice(tidx)
        tXsA, tXrA = thr_s2r_A.partition_S(sA), thr_s2r_A.retile(tCrA)
        tXsB, tXrB = thr_s2r_B.partition_S(sB), thr_s2r_B.retile(tCrB)
        k_blocks = cute.size(tCrA, mode=[2])
        read, write = cutlass.Int32(0), cutlass.Int32(self.stages - 1)
        for tile in range(k_tiles):
            cute.arch.cp_async_wait_group(self.stages - 2)
            cute.arch.sync_threads()
            coming = tile + self.stages - 1
            if coming < k_tiles:
                cute.copy(copy_A, tAgA[None, None, None, coming], tAsA[None, None, None, write], pred=pA)
                cute.copy(copy_B, tBgB[None, None, None, coming], tBsB[None, None, None, write], pred=pB)
            cute.arch.cp_async_commit_group()
            for block in cutlass.range(k_blocks, unroll_full=True):
                cute.copy(s2r_A, tXsA[None, None, block, read], tXrA[None, None, block])
                cute.copy(s2r_B, tXsB[None, None, block, read], tXrB[None, None, block])
                cute.gemm(tiled_mma, tCrC, tCrA[None, None, block], tCrB[None, None, block], tCrC)
            write = read
            read = read + 1 if read + 1 < self.stages else cutlass.Int32(0)
        cute.arch.cp_async_wait_group(0)

        tCrD = cute.make_fragment_like(tCrC, self.c_dtype)
        tCrD[None] = epilogue(tCrC.load()).to(self.c_dtype)
        cC = cute.local_tile(
            cute.make_identity_tensor(mC.layout.shape)[None, None, batch], self.tile, place, proj=(1, 1, None)
        )
        tCcC = thr_mma.partition_C(cC)
        for i in cutlass.range_constexpr(cute.size(tCrD)):
            if cute.elem_less(tCcC[i][:2], mC.shape[:2]):
                tCgC[i] = tCrD[i]


def tensor(batch, rows, columns, major_first, dtype):
    shape, order = ((batch, columns, rows), (2, 1, 0)) if major_first else ((batch, rows, columns), (1, 2, 0))
    made = torch.randint(-2, 3, shape, dtype=torch.int32).to(cutlass_torch.dtype(dtype)).permute(order).cuda()
    seen = from_dlpack(made, assumed_align=16).mark_layout_dynamic(leading_dim=0 if major_first else 1)
    seen = seen.mark_compact_shape_dynamic(
        mode=0 if major_first else 1, stride_order=(2, 1, 0) if major_first else (2, 0, 1),
        divisibility=128 // dtype.width,
    )  # fmt: skip
    return seen, made


def run(mnkl, majors, dtype=cutlass.Float16):
    m, n, k, batch = mnkl
    mA, a = tensor(batch, m, k, majors[0] == "m", dtype)
    mB, b = tensor(batch, n, k, majors[1] == "n", dtype)
    mC, c = tensor(batch, m, n, majors[2] == "m", dtype)
    gemm = TensorOpGemm(dtype, dtype, cutlass.Float32)
    compiled = cute.compile(gemm, mA, mB, mC, lambda x: x * 0.5)
    compiled(mA, mB, mC)
    reference = torch.einsum("mkl,nkl->mnl", a.float(), b.float()) * 0.5
    torch.testing.assert_close(c.cpu().float(), reference.cpu(), atol=1e-2, rtol=1e-3)
    arguments = testing.JitArguments(mA, mB, mC)
    took = testing.benchmark(compiled, kernel_arguments=arguments, iterations=1, warmup_iterations=0)
    print(f"{mnkl} {majors}: verified, {'timed' if took > 0 else 'untimed'}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--mnkl", default="136,72,96,2")
    args = parser.parse_args()
    run(tuple(map(int, args.mnkl.split(","))), "kkn")
    run((64, 128, 64, 1), "mnm", cutlass.BFloat16)
    print("PASS")
