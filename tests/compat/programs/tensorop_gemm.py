"""C = A B on tensor cores, as the guide to warp-level MMAs has it: swizzled bytes, one place for operands and result,
blocks in a raster of columns, 128-bit stores from shared memory."""

import argparse
import math
from typing import Callable, Tuple, Type

import cuda.bindings.driver as cuda
import torch
import cutlass
import cutlass.cute as cute
import cutlass.torch as cutlass_torch
import cutlass.utils as utils
from cutlass.cute.runtime import make_ptr


class TensorOpGemm:
    def __init__(self, ab_dtype: Type[cutlass.Numeric], c_dtype, acc_dtype, atom_layout_mnk: Tuple[int, int, int],
                 cta_tiler: Tuple[int, int, int] = (64, 64, 32)):
        self.ab_dtype, self.c_dtype, self.acc_dtype = ab_dtype, c_dtype, acc_dtype
        self.cta_tiler, self.num_stages = cta_tiler, 3
        self.atom_layout_mnk, self.mma_inst_shape = atom_layout_mnk, (16, 8, 16)
        self.num_threads = math.prod(atom_layout_mnk) * 32
        self.bM, self.bN, self.bK = self.cta_tiler

    @cute.jit
    def __call__(self, mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor,
                 epilogue_op: cutlass.Constexpr[Callable] = lambda x: x,
                 stream: cuda.CUstream = cuda.CUstream(cuda.CUstream_flags.CU_STREAM_DEFAULT)):
        self.a_major_mode, self.b_major_mode, self.c_major_mode = (utils.LayoutEnum.from_tensor(t) for t in (mA, mB, mC))
        ab_copy_bits = 128
        sA_layout, sA_swizzle = self._make_smem_layout_AB(
            mA.element_type, self.a_major_mode, ab_copy_bits, (self.bM, self.bK, self.num_stages))
        sB_layout, sB_swizzle = self._make_smem_layout_AB(
            mB.element_type, self.b_major_mode, ab_copy_bits, (self.bN, self.bK, self.num_stages))
        sC_layout, sC_swizzle = self._make_smem_layout_C(mC.element_type, self.c_major_mode, 128, (self.bM, self.bN))

        @cute.struct
        class SharedStorageAB:
            a: cute.struct.Align[cute.struct.MemRange[mA.element_type, cute.cosize(sA_layout)], 1024]
            b: cute.struct.Align[cute.struct.MemRange[mB.element_type, cute.cosize(sB_layout)], 1024]

        @cute.struct
        class SharedStorageC:
            c: cute.struct.Align[cute.struct.MemRange[mC.element_type, cute.cosize(sC_layout)], 1024]

        smem_size = max(SharedStorageAB.size_in_bytes(), SharedStorageC.size_in_bytes())
        atom_async_copy = cute.make_copy_atom(
            cute.nvgpu.cpasync.CopyG2SOp(cache_mode=cute.nvgpu.cpasync.LoadCacheMode.GLOBAL),
            mA.element_type, num_bits_per_copy=ab_copy_bits)
        tiled_copy_A = self._make_gmem_tiled_copy(atom_async_copy, mA.element_type, self.a_major_mode, self.bM, self.bK)
        tiled_copy_B = self._make_gmem_tiled_copy(atom_async_copy, mB.element_type, self.b_major_mode, self.bN, self.bK)
        atom_sync_copy = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), mC.element_type, num_bits_per_copy=128)
        tiled_copy_C = self._make_gmem_tiled_copy(atom_sync_copy, mC.element_type, self.c_major_mode, self.bM, self.bN)

        op = cute.nvgpu.warp.MmaF16BF16Op(self.ab_dtype, self.acc_dtype, self.mma_inst_shape)
        permutation_mnk = (
            self.atom_layout_mnk[0] * self.mma_inst_shape[0],
            self.atom_layout_mnk[1] * self.mma_inst_shape[1] * 2,
            self.atom_layout_mnk[2] * self.mma_inst_shape[2],
        )
        tiled_mma = cute.make_tiled_mma(op, cute.make_layout(self.atom_layout_mnk), permutation_mnk=permutation_mnk)

        grid_dim = cute.ceil_div(mC.shape, (self.bM, self.bN, 1))
        raster_factor = 1
        if cute.size(grid_dim[1]) > 1:
            raster_factor = 2
        rasterization_remap_grid_dim = (
            cute.size(grid_dim[0]) * raster_factor,
            (cute.size(grid_dim[1]) + raster_factor - 1) // raster_factor,
            cute.size(grid_dim[2]),
        )
        self.kernel(mA, mB, mC, sA_layout, sA_swizzle, sB_layout, sB_swizzle, sC_layout, sC_swizzle, SharedStorageAB,
                    SharedStorageC, tiled_copy_A, tiled_copy_B, tiled_copy_C, tiled_mma, raster_factor, epilogue_op,
                    ).launch(grid=rasterization_remap_grid_dim, block=[self.num_threads, 1, 1], smem=smem_size,
                             stream=stream)

    def _make_smem_layout_AB(self, dtype, major_mode, copy_bits, smem_tiler):
        major_mode_size = smem_tiler[1] if major_mode == utils.LayoutEnum.ROW_MAJOR else smem_tiler[0]
        major_mode_size = 64 if major_mode_size >= 64 else major_mode_size
        swizzle_bits = min(int(math.log2(major_mode_size * dtype.width // copy_bits)), 3)
        layout_atom_outer = (
            cute.make_layout((8, major_mode_size), stride=(major_mode_size, 1))
            if major_mode == utils.LayoutEnum.ROW_MAJOR
            else cute.make_layout((major_mode_size, 8), stride=(1, major_mode_size))
        )
        # a swizzle of bytes, kept apart from the layout
        return cute.tile_to_shape(layout_atom_outer, smem_tiler, (0, 1, 2)), cute.make_swizzle(swizzle_bits, 4, 3)

    def _make_smem_layout_C(self, dtype, major_mode, copy_bits, smem_tiler):
        major_mode_size = smem_tiler[1] if major_mode == utils.LayoutEnum.ROW_MAJOR else smem_tiler[0]
        swizzle_bits = min(int(math.log2(major_mode_size * dtype.width // copy_bits)), 3)
        layout_atom_outer = (
            cute.make_layout((8, major_mode_size), stride=(major_mode_size, 1))
            if major_mode == utils.LayoutEnum.ROW_MAJOR
            else cute.make_layout((major_mode_size, 8), stride=(1, major_mode_size))
        )
        layout = cute.tile_to_shape(layout_atom_outer, smem_tiler, order=(1, 0) if major_mode == utils.LayoutEnum.COL_MAJOR else (0, 1))
        return layout, cute.make_swizzle(swizzle_bits, 4, 4 if dtype.width == 32 else 3)

    def _make_gmem_tiled_copy(self, atom_copy, dtype, major_mode, rows, columns):
        copy_elems = 128 // dtype.width
        if major_mode == utils.LayoutEnum.ROW_MAJOR:
            across = columns // copy_elems
            thread_layout = cute.make_layout((self.num_threads // across, across), stride=(across, 1))
            value_layout = cute.make_layout((1, copy_elems))
        else:
            across = rows // copy_elems
            thread_layout = cute.make_layout((across, self.num_threads // across), stride=(1, across))
            value_layout = cute.make_layout((copy_elems, 1))
        return cute.make_tiled_copy_tv(atom_copy, thread_layout, value_layout)

    @staticmethod
    def raster_tile(i, j, f):
        return i // f, (i % f) + (j * f)

    @cute.kernel
    def kernel(self, mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor, sA_layout: cute.Layout, sA_swizzle: cute.Swizzle,
               sB_layout: cute.Layout, sB_swizzle: cute.Swizzle, sC_layout: cute.Layout, sC_swizzle: cute.Swizzle,
               SharedStorageAB: cutlass.Constexpr, SharedStorageC: cutlass.Constexpr, tiled_copy_A: cute.TiledCopy,
               tiled_copy_B: cute.TiledCopy, tiled_copy_C: cute.TiledCopy, tiled_mma: cute.TiledMma,
               rasterization_factor: cutlass.Int32, epilogue_op: cutlass.Constexpr):
        tidx, _, _ = cute.arch.thread_idx()
        bidx, bidy, bidz = cute.arch.block_idx()
        grid_dim = cute.ceil_div(mC.shape, (self.bM, self.bN, 1))
        offset_tile_x, offset_tile_y = self.raster_tile(bidx, bidy, rasterization_factor)
        # blocks of the remapped grid that have no tile
        if grid_dim[0] <= offset_tile_x or grid_dim[1] <= offset_tile_y:
            pass
        else:
            tiler_coord = (offset_tile_x, offset_tile_y, None)
            gA = cute.local_tile(mA[None, None, bidz], tiler=self.cta_tiler, coord=tiler_coord, proj=(1, None, 1))
            gB = cute.local_tile(mB[None, None, bidz], tiler=self.cta_tiler, coord=tiler_coord, proj=(None, 1, 1))
            gC = cute.local_tile(mC[None, None, bidz], tiler=self.cta_tiler, coord=tiler_coord, proj=(1, 1, None))
            # the ragged tile of K comes first
            residual_k = cute.size(mA, mode=[1]) - cutlass.Int32(self.bK) * cute.size(gA, mode=[2])
            gA = cute.domain_offset((0, residual_k, 0), gA)
            gB = cute.domain_offset((0, residual_k, 0), gB)
            gA = cute.make_tensor(gA.iterator.align(16), gA.layout)
            gB = cute.make_tensor(gB.iterator.align(16), gB.layout)
            mcA, mcB = cute.make_identity_tensor(mA.layout.shape), cute.make_identity_tensor(mB.layout.shape)
            cA = cute.domain_offset((0, residual_k, 0), cute.local_tile(
                mcA[None, None, bidz], tiler=self.cta_tiler, coord=tiler_coord, proj=(1, None, 1)))
            cB = cute.domain_offset((0, residual_k, 0), cute.local_tile(
                mcB[None, None, bidz], tiler=self.cta_tiler, coord=tiler_coord, proj=(None, 1, 1)))

            smem = cutlass.utils.SmemAllocator()
            storage = smem.allocate(
                max(SharedStorageC.size_in_bytes(), SharedStorageAB.size_in_bytes()), byte_alignment=1024)
            sA = SharedStorageAB(storage).a.get_tensor(sA_layout, swizzle=sA_swizzle)
            sB = SharedStorageAB(storage).b.get_tensor(sB_layout, swizzle=sB_swizzle)
            sC = SharedStorageC(storage).c.get_tensor(sC_layout, swizzle=sC_swizzle)

            thr_copy_A, thr_copy_B = tiled_copy_A.get_slice(tidx), tiled_copy_B.get_slice(tidx)
            thr_copy_C = tiled_copy_C.get_slice(tidx)
            tAgA, tAsA, tAcA = thr_copy_A.partition_S(gA), thr_copy_A.partition_D(sA), thr_copy_A.partition_S(cA)
            tBgB, tBsB, tBcB = thr_copy_B.partition_S(gB), thr_copy_B.partition_D(sB), thr_copy_B.partition_S(cB)
            tCsC_epilogue, tCgC_epilogue = thr_copy_C.partition_S(sC), thr_copy_C.partition_D(gC)

            def predicates(tc, shape):
                pred = cute.make_rmem_tensor(
                    cute.make_layout(
                        (tc.shape[0][1], cute.size(tc, mode=[1]), cute.size(tc, mode=[2])),
                        stride=(cute.size(tc, mode=[1]), 1, 0)),
                    cutlass.Boolean)
                for rest_v in range(pred.shape[0]):
                    for m in range(pred.shape[1]):
                        pred[rest_v, m, 0] = cute.elem_less(tc[(0, rest_v), m, 0, 0][0], shape)
                return pred

            tApA, tBpB = predicates(tAcA, mA.shape[0]), predicates(tBcB, mB.shape[0])
            tAsA.fill(0)
            tBsB.fill(0)
            cute.arch.sync_threads()
            num_smem_stages = cute.size(tAsA, mode=[3])
            k_tile_count = cute.size(tAgA, mode=[3])
            k_tile_index = cutlass.Int32(0)
            for k in range(tApA.shape[2]):
                if cute.elem_less(cutlass.Int32(-1), tAcA[0, 0, k, 0][1]):
                    cute.copy(tiled_copy_A, tAgA[None, None, k, k_tile_index], tAsA[None, None, k, 0],
                              pred=tApA[None, None, k])
            for k in range(tBpB.shape[2]):
                if cute.elem_less(cutlass.Int32(-1), tBcB[0, 0, k, 0][1]):
                    cute.copy(tiled_copy_B, tBgB[None, None, k, k_tile_index], tBsB[None, None, k, 0],
                              pred=tBpB[None, None, k])
            k_tile_index = k_tile_index + 1
            cute.arch.cp_async_commit_group()
            for k_tile in range(1, num_smem_stages - 1):
                if k_tile == k_tile_count:
                    tApA.fill(0)
                    tBpB.fill(0)
                cute.copy(tiled_copy_A, tAgA[None, None, None, k_tile_index], tAsA[None, None, None, k_tile], pred=tApA)
                cute.copy(tiled_copy_B, tBgB[None, None, None, k_tile_index], tBsB[None, None, None, k_tile], pred=tBpB)
                k_tile_index = k_tile_index + 1
                cute.arch.cp_async_commit_group()

            thr_mma = tiled_mma.get_slice(tidx)
            tCsA, tCsB, tCsC = thr_mma.partition_A(sA), thr_mma.partition_B(sB), thr_mma.partition_C(sC)
            tCgC = thr_mma.partition_C(gC)
            tCrA = tiled_mma.make_fragment_A(tCsA[None, None, None, 0])
            tCrB = tiled_mma.make_fragment_B(tCsB[None, None, None, 0])
            tCrC = tiled_mma.make_fragment_C(tCgC)
            tCrC.fill(0.0)

            atom_copy_s2r_A = cute.make_copy_atom(
                cute.nvgpu.warp.LdMatrix8x8x16bOp(self.a_major_mode != utils.LayoutEnum.ROW_MAJOR, 4), mA.element_type)
            atom_copy_s2r_B = cute.make_copy_atom(
                cute.nvgpu.warp.LdMatrix8x8x16bOp(self.b_major_mode != utils.LayoutEnum.ROW_MAJOR, 4), mB.element_type)
            tiled_copy_s2r_A = cute.make_tiled_copy_A(atom_copy_s2r_A, tiled_mma)
            tiled_copy_s2r_B = cute.make_tiled_copy_B(atom_copy_s2r_B, tiled_mma)
            thr_copy_ldmatrix_A, thr_copy_ldmatrix_B = tiled_copy_s2r_A.get_slice(tidx), tiled_copy_s2r_B.get_slice(tidx)
            tCsA_copy_view, tCrA_copy_view = thr_copy_ldmatrix_A.partition_S(sA), thr_copy_ldmatrix_A.retile(tCrA)
            tCsB_copy_view, tCrB_copy_view = thr_copy_ldmatrix_B.partition_S(sB), thr_copy_ldmatrix_B.retile(tCrB)

            smem_pipe_read = 0
            smem_pipe_write = num_smem_stages - 1
            tCsA_p = tCsA_copy_view[None, None, None, smem_pipe_read]
            tCsB_p = tCsB_copy_view[None, None, None, smem_pipe_read]
            num_k_block = cute.size(tCrA, mode=[2])
            if num_k_block > 1:
                cute.arch.cp_async_wait_group(num_smem_stages - 2)
                cute.arch.sync_threads()
                cute.copy(tiled_copy_s2r_A, tCsA_p[None, None, 0], tCrA_copy_view[None, None, 0])
                cute.copy(tiled_copy_s2r_B, tCsB_p[None, None, 0], tCrB_copy_view[None, None, 0])

            for k_tile in range(k_tile_count):
                for k_block in cutlass.range(num_k_block):
                    if k_block == num_k_block - 1:
                        tCsA_p = tCsA_copy_view[None, None, None, smem_pipe_read]
                        tCsB_p = tCsB_copy_view[None, None, None, smem_pipe_read]
                        cute.arch.cp_async_wait_group(num_smem_stages - 2)
                        cute.arch.sync_threads()
                    k_block_next = (k_block + 1) % num_k_block
                    cute.copy(tiled_copy_s2r_A, tCsA_p[None, None, k_block_next], tCrA_copy_view[None, None, k_block_next])
                    cute.copy(tiled_copy_s2r_B, tCsB_p[None, None, k_block_next], tCrB_copy_view[None, None, k_block_next])
                    if k_block == 0:
                        if k_tile + num_smem_stages - 1 < k_tile_count:
                            cute.copy(tiled_copy_A, tAgA[None, None, None, k_tile_index],
                                      tAsA[None, None, None, smem_pipe_write], pred=tApA)
                    cute.gemm(tiled_mma, tCrC, tCrA[None, None, k_block], tCrB[None, None, k_block], tCrC)
                    if k_block == 0:
                        if k_tile + num_smem_stages - 1 < k_tile_count:
                            cute.copy(tiled_copy_B, tBgB[None, None, None, k_tile_index],
                                      tBsB[None, None, None, smem_pipe_write], pred=tBpB)
                        k_tile_index = k_tile_index + 1
                        cute.arch.cp_async_commit_group()
                        smem_pipe_write = smem_pipe_read
                        smem_pipe_read = smem_pipe_read + 1
                        if smem_pipe_read == num_smem_stages:
                            smem_pipe_read = 0

            cute.arch.cp_async_wait_group(0)
            cute.arch.sync_threads()
            tCrD = cute.make_fragment_like(tCrC, self.c_dtype)
            tCrD[None] = epilogue_op(tCrC.load()).to(self.c_dtype)
            cute.autovec_copy(tCrD, tCsC)
            ceilM, ceilN, _ = cute.ceil_div(mC.shape, (self.bM, self.bN, 1))
            mcC = cute.make_identity_tensor(
                (cute.size(ceilM) * self.cta_tiler[0], cute.size(ceilN) * self.cta_tiler[1], 1))
            cC = cute.local_tile(mcC[None, None, 0], tiler=self.cta_tiler, coord=tiler_coord, proj=(1, 1, None))
            tCcC = thr_copy_C.partition_S(cC)
            tCrC_epilogue = cute.make_fragment_like(tCsC_epilogue)
            cute.arch.sync_threads()
            cute.autovec_copy(tCsC_epilogue, tCrC_epilogue)
            tCpC = cute.make_rmem_tensor(
                cute.make_layout(
                    (tCgC_epilogue.shape[0][1], cute.size(tCgC_epilogue, mode=[1]), cute.size(tCgC_epilogue, mode=[2])),
                    stride=(cute.size(tCgC_epilogue, mode=[1]), 1, 0)),
                cutlass.Boolean)
            for rest_v in range(tCpC.shape[0]):
                for m in range(tCpC.shape[1]):
                    tCpC[rest_v, m, 0] = cute.elem_less(tCcC[(0, rest_v), m, 0][0], mC.shape[0])
            for rest_v in range(tCpC.shape[0]):
                for n in range(tCpC.shape[2]):
                    if cute.elem_less(tCcC[(0, rest_v), 0, n][1], mC.shape[1]):
                        cute.copy(tiled_copy_C, tCrC_epilogue[None, None, n], tCgC_epilogue[None, None, n],
                                  pred=tCpC[None, None, n])


@cute.jit
def tensor_op_gemm_wrapper(a_ptr: cute.Pointer, b_ptr: cute.Pointer, c_ptr: cute.Pointer, m: cutlass.Int32,
                           n: cutlass.Int32, k: cutlass.Int32, l: cutlass.Int32):
    print("\ntracing tensor_op_gemm")
    m = cute.assume(m, divby=8)
    n = cute.assume(n, divby=8)
    k = cute.assume(k, divby=8)
    mA = cute.make_tensor(a_ptr, layout=cute.make_ordered_layout((m, k, l), order=(0, 1, 2)))
    mB = cute.make_tensor(b_ptr, layout=cute.make_ordered_layout((n, k, l), order=(1, 0, 2)))
    mC = cute.make_tensor(c_ptr, layout=cute.make_ordered_layout((m, n, l), order=(1, 0, 2)))
    gemm = TensorOpGemm(a_ptr.value_type, c_ptr.value_type, cutlass.Float32, (2, 2, 1))
    gemm(mA, mB, mC, lambda x: x * 0.5)


def run_tensor_op_gemm_wrapper(mnkl: Tuple[int, int, int, int]):
    m, n, k, l = mnkl
    a = torch.randint(-2, 3, (l, k, m), dtype=torch.int32, device="cuda").to(torch.float16).permute(2, 1, 0)
    b = torch.randint(-2, 3, (l, n, k), dtype=torch.int32, device="cuda").to(torch.float16).permute(1, 2, 0)
    c = torch.zeros(l, m, n, dtype=torch.float16, device="cuda").permute(1, 2, 0)
    a_ptr, b_ptr, c_ptr = (
        make_ptr(cutlass.Float16, t.data_ptr(), cutlass.AddressSpace.gmem, assumed_align=16) for t in (a, b, c)
    )
    tensor_op_gemm_wrapper(a_ptr, b_ptr, c_ptr, m, n, k, l)
    torch.cuda.synchronize()
    ref = torch.einsum("mkl,nkl->mnl", a.float(), b.float()) * 0.5
    torch.testing.assert_close(c.cpu().float(), ref.cpu(), atol=1e-05, rtol=1e-05)
    print(f"{mnkl}, {cutlass_torch.dtype(cutlass.Float16)}: verified")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--mnkl", default="72,136,104,2", type=lambda s: tuple(map(int, s.split(","))))
    run_tensor_op_gemm_wrapper(parser.parse_args().mnkl)
    print("PASS")
