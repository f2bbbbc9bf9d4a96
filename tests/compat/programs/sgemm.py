"""C = A B on the FMA units: cp.async of single numbers or vectors into three stages, K's ragged tile first."""

import argparse
import time

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import cutlass.cute.testing as testing
import cutlass.utils as utils
import torch
from cutlass.cute.runtime import from_dlpack


class SGemm:
    def __init__(self, cta_tiler: tuple[int, int, int] = (64, 64, 8), num_stages: int = 3, num_threads: int = 64):
        self._cta_tiler = cta_tiler
        self._num_stages = num_stages
        self._num_threads = num_threads
        assert num_threads % 16 == 0, "multiples of 16 threads"
        self._bM, self._bN, self._bK = self._cta_tiler
        assert self._bM % 16 == 0 and self._bN % 16 == 0
        assert self._num_stages >= 3, "num_stages must be at least 3"

    @cute.jit
    def __call__(
        self,
        mA: cute.Tensor,
        mB: cute.Tensor,
        mC: cute.Tensor,
        epilogue_op: cutlass.Constexpr = lambda x: x,
        stream: cuda.CUstream = cuda.CUstream(cuda.CUstream_flags.CU_STREAM_DEFAULT),
    ):
        self.a_major_mode = utils.LayoutEnum.from_tensor(mA)
        self.b_major_mode = utils.LayoutEnum.from_tensor(mB)
        self.c_major_mode = utils.LayoutEnum.from_tensor(mC)

        # shared memory: M (or N) fastest; rows of a K-major operand are padded against bank conflicts
        padding_a = 4 if self.a_major_mode == utils.LayoutEnum.ROW_MAJOR else 0
        padding_b = 4 if self.b_major_mode == utils.LayoutEnum.ROW_MAJOR else 0
        sA_layout = cute.make_layout(
            (self._bM, self._bK, self._num_stages),
            stride=(1, (self._bM + padding_a), self._bK * (self._bM + padding_a)),
        )
        sB_layout = cute.make_layout(
            (self._bN, self._bK, self._num_stages),
            stride=(1, (self._bN + padding_b), self._bK * (self._bN + padding_b)),
        )

        # one number for each access of a K-major operand, four of the others
        tA = cute.make_layout((self._num_threads // self._bK, self._bK), stride=(self._bK, 1))
        tB = cute.make_layout((self._num_threads // self._bK, self._bK), stride=(self._bK, 1))
        vA = cute.make_layout((1, 1))
        vB = cute.make_layout((1, 1))
        atom_async_copy_A = cute.make_copy_atom(
            cute.nvgpu.cpasync.CopyG2SOp(), mA.element_type, num_bits_per_copy=mA.element_type.width
        )
        atom_async_copy_B = cute.make_copy_atom(
            cute.nvgpu.cpasync.CopyG2SOp(), mB.element_type, num_bits_per_copy=mB.element_type.width
        )
        if cutlass.const_expr(self.a_major_mode == utils.LayoutEnum.COL_MAJOR):
            num_vectorized = 4 if (mA.layout.max_alignment % 16 == 0) else 1
            atom_async_copy_A = cute.make_copy_atom(
                cute.nvgpu.cpasync.CopyG2SOp(),
                mA.element_type,
                num_bits_per_copy=mA.element_type.width * num_vectorized,
            )
            major_mode_size = self._bM // num_vectorized
            tA = cute.make_layout((major_mode_size, self._num_threads // major_mode_size), stride=(1, major_mode_size))
            vA = cute.make_layout((num_vectorized, 1))
        if cutlass.const_expr(self.b_major_mode == utils.LayoutEnum.COL_MAJOR):
            num_vectorized = 4 if (mB.layout.max_alignment % 16 == 0) else 1
            atom_async_copy_B = cute.make_copy_atom(
                cute.nvgpu.cpasync.CopyG2SOp(),
                mB.element_type,
                num_bits_per_copy=mB.element_type.width * num_vectorized,
            )
            major_mode_size = self._bN // num_vectorized
            tB = cute.make_layout((major_mode_size, self._num_threads // major_mode_size), stride=(1, major_mode_size))
            vB = cute.make_layout((num_vectorized, 1))
        tiled_copy_A = cute.make_tiled_copy_tv(atom_async_copy_A, tA, vA)
        tiled_copy_B = cute.make_tiled_copy_tv(atom_async_copy_B, tB, vB)

        atoms_layout = cute.make_layout((self._num_threads // 16, 16, 1), stride=(16, 1, 0))
        if cutlass.const_expr(self.c_major_mode == utils.LayoutEnum.COL_MAJOR):
            atoms_layout = cute.make_layout((16, self._num_threads // 16, 1), stride=(1, 16, 0))
        op = cute.nvgpu.MmaUniversalOp(cutlass.Float32)
        # four neighbours of M and of N for each thread, so that shared memory is read by vectors
        permutation_tiler_M = cute.make_layout((atoms_layout.shape[0], 4), stride=(4, 1))
        permutation_tiler_N = cute.make_layout((atoms_layout.shape[1], 4), stride=(4, 1))
        tiled_mma = cute.make_tiled_mma(
            op, atoms_layout, permutation_mnk=(permutation_tiler_M, permutation_tiler_N, None)
        )

        grid_dim = *cute.ceil_div(mC.shape, (self._bM, self._bN)), 1
        self.kernel(
            mA, mB, mC, sA_layout, sB_layout, tiled_copy_A, tiled_copy_B, tiled_mma, epilogue_op
        ).launch(grid=grid_dim, block=[cute.size(atoms_layout), 1, 1], stream=stream)

    @cute.kernel
    def kernel(
        self,
        mA: cute.Tensor,
        mB: cute.Tensor,
        mC: cute.Tensor,
        sA_layout: cute.Layout,
        sB_layout: cute.Layout,
        tiled_copy_A: cute.TiledCopy,
        tiled_copy_B: cute.TiledCopy,
        tiled_mma: cute.TiledMma,
        epilogue_op: cutlass.Constexpr = lambda x: x,
    ):
        tidx, tidy, tidz = cute.arch.thread_idx()
        bidx, bidy, bidz = cute.arch.block_idx()
        tiler_coord = (bidx, bidy, None)
        thr_mma = tiled_mma.get_slice(tidx)

        gA = cute.local_tile(mA, tiler=self._cta_tiler, coord=tiler_coord, proj=(1, None, 1))
        gB = cute.local_tile(mB, tiler=self._cta_tiler, coord=tiler_coord, proj=(None, 1, 1))
        gC = cute.local_tile(mC, tiler=self._cta_tiler, coord=tiler_coord, proj=(1, 1, None))

        # the tiles move back along K, so that the first one is the ragged one
        residue_k = mA.shape[1] - cutlass.Int32(self._bK) * gA.shape[2]
        gA = cute.domain_offset((0, residue_k, 0), gA)
        gB = cute.domain_offset((0, residue_k, 0), gB)

        smem = cutlass.utils.SmemAllocator()
        sA = smem.allocate_tensor(mA.element_type, sA_layout, 16)
        sB = smem.allocate_tensor(mB.element_type, sB_layout, 16)
        thr_copy_A = tiled_copy_A.get_slice(tidx)
        thr_copy_B = tiled_copy_B.get_slice(tidx)
        tAgA = thr_copy_A.partition_S(gA)
        tAsA = thr_copy_A.partition_D(sA)
        tBgB = thr_copy_B.partition_S(gB)
        tBsB = thr_copy_B.partition_D(sB)

        mcA = cute.make_identity_tensor(mA.shape)
        mcB = cute.make_identity_tensor(mB.shape)
        cA = cute.local_tile(mcA, tiler=self._cta_tiler, coord=tiler_coord, proj=(1, None, 1))
        cB = cute.local_tile(mcB, tiler=self._cta_tiler, coord=tiler_coord, proj=(None, 1, 1))
        cA = cute.domain_offset((0, residue_k, 0), cA)
        cB = cute.domain_offset((0, residue_k, 0), cB)
        tAcA = thr_copy_A.partition_S(cA)
        tBcB = thr_copy_B.partition_S(cB)

        tApA = cute.make_rmem_tensor(
            cute.make_layout(
                (tAsA.shape[0][1], cute.size(tAsA, mode=[1]), cute.size(tAsA, mode=[2])),
                stride=(cute.size(tAsA, mode=[1]), 1, 0),
            ),
            cutlass.Boolean,
        )
        tBpB = cute.make_rmem_tensor(
            cute.make_layout(
                (tBsB.shape[0][1], cute.size(tBsB, mode=[1]), cute.size(tBsB, mode=[2])),
                stride=(cute.size(tBsB, mode=[1]), 1, 0),
            ),
            cutlass.Boolean,
        )
        # of the ragged tile K is checked too, so its predicates differ along K
        tApA_residue_k = cute.make_rmem_tensor(
            cute.make_layout(
                (tAsA.shape[0][1], cute.size(tAsA, mode=[1]), cute.size(tAsA, mode=[2])),
                stride=(
                    cute.size(tAsA, mode=[1]) * cute.size(tAsA, mode=[2]),
                    cute.size(tAsA, mode=[2]),
                    1,
                ),
            ),
            cutlass.Boolean,
        )
        tBpB_residue_k = cute.make_rmem_tensor(
            cute.make_layout(
                (tBsB.shape[0][1], cute.size(tBsB, mode=[1]), cute.size(tBsB, mode=[2])),
                stride=(
                    cute.size(tBsB, mode=[1]) * cute.size(tBsB, mode=[2]),
                    cute.size(tBsB, mode=[2]),
                    1,
                ),
            ),
            cutlass.Boolean,
        )
        for rest_v in range(tApA.shape[0]):
            for m in range(tApA.shape[1]):
                tApA[rest_v, m, 0] = cute.elem_less(tAcA[(0, rest_v), m, 0, 0][0], mA.shape[0])
        for rest_v in range(tBpB.shape[0]):
            for n in range(tBpB.shape[1]):
                tBpB[rest_v, n, 0] = cute.elem_less(tBcB[(0, rest_v), n, 0, 0][0], mB.shape[0])
        for rest_v in range(tApA_residue_k.shape[0]):
            for m in range(tApA_residue_k.shape[1]):
                for k in range(tApA_residue_k.shape[2]):
                    coord_A = tAcA[(0, rest_v), m, k, 0]
                    tApA_residue_k[rest_v, m, k] = cute.elem_less((coord_A[0], cutlass.Int32(-1)), (mA.shape[0], coord_A[1]))
        for rest_v in range(tBpB_residue_k.shape[0]):
            for n in range(tBpB_residue_k.shape[1]):
                for k in range(tBpB_residue_k.shape[2]):
                    coord_B = tBcB[(0, rest_v), n, k, 0]
                    tBpB_residue_k[rest_v, n, k] = cute.elem_less((coord_B[0], cutlass.Int32(-1)), (mB.shape[0], coord_B[1]))

        # prologue: all stages but one
        k_pipe_max = cute.size(tAsA, mode=[3])
        k_tile_count = cute.size(tAgA, mode=[3])
        gmem_pipe_read = cutlass.Int32(0)
        cute.copy(
            tiled_copy_A,
            tAgA[None, None, None, gmem_pipe_read],
            tAsA[None, None, None, 0],
            pred=tApA_residue_k,
        )
        cute.copy(
            tiled_copy_B,
            tBgB[None, None, None, gmem_pipe_read],
            tBsB[None, None, None, 0],
            pred=tBpB_residue_k,
        )
        cute.arch.cp_async_commit_group()
        gmem_pipe_read = (
            gmem_pipe_read + 1 if gmem_pipe_read + 1 < k_tile_count else cutlass.Int32(0)
        )
        for k_tile in range(1, k_pipe_max - 1):
            if k_tile < k_tile_count:
                cute.copy(
                    tiled_copy_A, tAgA[None, None, None, gmem_pipe_read], tAsA[None, None, None, k_tile], pred=tApA
                )
                cute.copy(
                    tiled_copy_B, tBgB[None, None, None, gmem_pipe_read], tBsB[None, None, None, k_tile], pred=tBpB
                )
            gmem_pipe_read = (
                gmem_pipe_read + 1 if gmem_pipe_read + 1 < k_tile_count else cutlass.Int32(0)
            )
            cute.arch.cp_async_commit_group()
        if k_tile_count < k_pipe_max:
            for rest_v in range(tApA.shape[0]):
                for m in range(tApA.shape[1]):
                    tApA[rest_v, m, 0] = cutlass.Boolean(0)
            for rest_v in range(tBpB.shape[0]):
                for n in range(tBpB.shape[1]):
                    tBpB[rest_v, n, 0] = cutlass.Boolean(0)

        tCsA = thr_mma.partition_A(sA)
        tCsB = thr_mma.partition_B(sB)
        tCgC = thr_mma.partition_C(gC)
        tCrA = tiled_mma.make_fragment_A(tCsA[None, None, None, 0])
        tCrB = tiled_mma.make_fragment_B(tCsB[None, None, None, 0])
        tCrC = tiled_mma.make_fragment_C(tCgC)
        tCrC.fill(0.0)

        smem_pipe_read = cutlass.Int32(0)
        smem_pipe_write = cutlass.Int32(k_pipe_max - 1)
        tCsA_p = tCsA[None, None, None, smem_pipe_read]
        tCsB_p = tCsB[None, None, None, smem_pipe_read]

        k_block_max = cute.size(tCrA, mode=[2])
        if k_block_max > 1:
            cute.arch.cp_async_wait_group(k_pipe_max - 2)
            cute.arch.barrier()
            cute.autovec_copy(tCsA_p[None, None, 0], tCrA[None, None, 0])
            cute.autovec_copy(tCsB_p[None, None, 0], tCrB[None, None, 0])

        for _ in range(k_tile_count):
            for k_block in range(k_block_max, unroll_full=True):
                if k_block == k_block_max - 1:
                    tCsA_p = tCsA[None, None, None, smem_pipe_read]
                    tCsB_p = tCsB[None, None, None, smem_pipe_read]
                    cute.arch.cp_async_wait_group(k_pipe_max - 2)
                    cute.arch.barrier()
                k_block_next = (k_block + 1) % k_block_max  # static
                cute.autovec_copy(tCsA_p[None, None, k_block_next], tCrA[None, None, k_block_next])
                cute.autovec_copy(tCsB_p[None, None, k_block_next], tCrB[None, None, k_block_next])
                if k_block == 0:
                    cute.copy(
                        tiled_copy_A,
                        tAgA[None, None, None, gmem_pipe_read],
                        tAsA[None, None, None, smem_pipe_write],
                        pred=tApA,
                    )
                cute.gemm(tiled_mma, tCrC, tCrA[None, None, k_block], tCrB[None, None, k_block], tCrC)
                if k_block == 0:
                    cute.copy(
                        tiled_copy_B,
                        tBgB[None, None, None, gmem_pipe_read],
                        tBsB[None, None, None, smem_pipe_write],
                        pred=tBpB,
                    )
                    cute.arch.cp_async_commit_group()
                    smem_pipe_write = smem_pipe_read
                    smem_pipe_read = smem_pipe_read + 1
                    if smem_pipe_read == k_pipe_max:
                        smem_pipe_read = cutlass.Int32(0)
                    gmem_pipe_read = (
                        gmem_pipe_read + 1 if gmem_pipe_read + 1 < k_tile_count else cutlass.Int32(1)
                    )

        cute.arch.cp_async_wait_group(0)
        cute.arch.barrier()
        tCrC.store(epilogue_op(tCrC.load()))
        cC = cute.make_identity_tensor(gC.shape)
        tCpC = thr_mma.partition_C(cC)
        predC = cute.make_rmem_tensor(tCrC.layout, cutlass.Boolean)
        residue_m = mC.shape[0] - cutlass.Int32(self._bM) * bidx
        residue_n = mC.shape[1] - cutlass.Int32(self._bN) * bidy
        for i in range(cute.size(tCrC.shape)):
            predC[i] = cute.elem_less(tCpC[i], (residue_m, residue_n))
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), mC.element_type)
        cute.copy(atom, tCrC, tCgC, pred=predC)


def create_and_permute_tensor(mode0, mode1, is_mode0_major, dtype):
    shape = (mode1, mode0) if is_mode0_major else (mode0, mode1)
    permute_order = (1, 0) if is_mode0_major else (0, 1)
    return torch.empty(*shape, dtype=torch.int32).random_(-5, 5).to(dtype=dtype).permute(permute_order).cuda()


def main(mnk, a_major: str, b_major: str, c_major: str, static_shape: bool, iterations: int):
    print(f"mnk: {mnk}, majors {a_major}{b_major}{c_major}, static shape: {static_shape}")
    M, N, K = mnk
    a = create_and_permute_tensor(M, K, a_major == "m", torch.float32)
    b = create_and_permute_tensor(N, K, b_major == "n", torch.float32)
    c = create_and_permute_tensor(M, N, c_major == "m", torch.float32)
    divisibility_a = a.shape[1] if a_major == "k" else a.shape[0]
    a_tensor = (
        from_dlpack(a, assumed_align=16)
        .mark_layout_dynamic(leading_dim=(1 if a_major == "k" else 0))
        .mark_compact_shape_dynamic(mode=(1 if a_major == "k" else 0), divisibility=divisibility_a)
    )
    b_tensor = (
        from_dlpack(b, assumed_align=16)
        .mark_layout_dynamic(leading_dim=(1 if b_major == "k" else 0))
        .mark_compact_shape_dynamic(mode=(1 if b_major == "k" else 0), divisibility=b.shape[1 if b_major == "k" else 0])
    )
    c_tensor = from_dlpack(c, assumed_align=16)
    if not static_shape:
        c_tensor = c_tensor.mark_layout_dynamic(leading_dim=(1 if c_major == "n" else 0))

    torch_stream = torch.cuda.Stream()
    current_stream = cuda.CUstream(torch_stream.cuda_stream)
    sgemm = SGemm()
    start_time = time.time()
    gemm = cute.compile(sgemm, a_tensor, b_tensor, c_tensor, stream=current_stream)
    print("compiled" if time.time() > start_time else "")
    gemm(a_tensor, b_tensor, c_tensor)
    torch.cuda.synchronize()
    ref = torch.einsum("mk,nk->mn", a, b)
    torch.testing.assert_close(c.cpu(), ref.cpu())
    print("Results verified successfully!")
    if iterations:
        avg_time_us = testing.benchmark(
            gemm,
            kernel_arguments=testing.JitArguments(a_tensor, b_tensor, c_tensor, current_stream),
            warmup_iterations=0,
            iterations=iterations,
            stream=current_stream,
        )
        print("timed" if avg_time_us > 0 else "not timed")


if __name__ == "__main__":

    def parse_comma_separated_ints(s: str):
        try:
            return tuple(int(x.strip()) for x in s.split(","))
        except ValueError:
            raise argparse.ArgumentTypeError("Invalid format. Expected comma-separated integers.")

    parser = argparse.ArgumentParser()
    parser.add_argument("--mnk", type=parse_comma_separated_ints, default=(136, 68, 43))
    parser.add_argument("--a_major", choices=["k", "m"], default="m")
    parser.add_argument("--b_major", choices=["k", "n"], default="k")
    parser.add_argument("--c_major", choices=["n", "m"], default="n")
    parser.add_argument("--static_shape", action="store_true")
    parser.add_argument("--iterations", type=int, default=1)
    args = parser.parse_args()
    torch.manual_seed(1024)
    main(args.mnk, args.a_major, args.b_major, args.c_major, args.static_shape, args.iterations)
    main((64, 72, 20), "k", "n", "m", True, 0)
    print("PASS")
