"""A GEMM with block scales for sm_120 (MXF8, MXF4, NVF4): TMA brings operands and scale factors, eight warps multiply by
``mma.sync``, a ninth one loads."""

import argparse

import cutlass
import cutlass.cute as cute
import cutlass.pipeline as pipeline
import cutlass.utils as utils
import cutlass.utils.blackwell_helpers as sm120_utils
import cutlass.utils.blockscaled_layout as blockscaled_utils
import ml_dtypes
import torch
from cutlass.cute.nvgpu import cpasync, warp
from cutlass.cute.runtime import make_ptr

TILE, STAGES, MMA_WARPS = (128, 128, 128), 2, 8


class Sm120BlockScaledGemm:
    """C (M, N) = (A (M, K) * SFA) * (B (N, K) * SFB), a block a tile."""

    def __init__(self, ab_dtype, sf_dtype, sf_vec_size):
        self.ab_dtype, self.sf_dtype, self.sf_vec_size = ab_dtype, sf_dtype, sf_vec_size

    @cute.jit
    def __call__(self, a_ptr: cute.Pointer, b_ptr: cute.Pointer, sfa_ptr: cute.Pointer, sfb_ptr: cute.Pointer,
                 c_ptr: cute.Pointer, mnk: cutlass.Constexpr):
        m, n, k = mnk
        a = cute.make_tensor(a_ptr, cute.make_layout((m, k), stride=(k, 1)))
        b = cute.make_tensor(b_ptr, cute.make_layout((n, k), stride=(k, 1)))
        c = cute.make_tensor(c_ptr, cute.make_layout((m, n), stride=(n, 1)))
        sfa = cute.make_tensor(sfa_ptr, blockscaled_utils.tile_atom_to_shape_SF((m, k, 1), self.sf_vec_size))
        sfb = cute.make_tensor(sfb_ptr, blockscaled_utils.tile_atom_to_shape_SF((n, k, 1), self.sf_vec_size))

        if cutlass.const_expr(self.ab_dtype.width == 8):
            op = warp.MmaMXF8Op(self.ab_dtype, cutlass.Float32, self.sf_dtype)
        elif cutlass.const_expr(self.sf_vec_size == 32):
            op = warp.MmaMXF4Op(self.ab_dtype, cutlass.Float32, self.sf_dtype)
        else:
            op = warp.MmaMXF4NVF4Op(self.ab_dtype, cutlass.Float32, self.sf_dtype)
        tiled_mma = cute.make_tiled_mma(
            op,
            cute.make_layout((4, 2, 1)),
            permutation_mnk=sm120_utils.get_permutation_mnk(TILE, self.sf_vec_size, self.ab_dtype.width == 8),
        )
        atom = sm120_utils.make_smem_layout_atom(
            sm120_utils.get_smem_layout_atom_ab(cute.nvgpu.OperandMajorMode.K, self.ab_dtype, (TILE[0], TILE[2])),
            self.ab_dtype,
        )
        layout_ab = cute.tile_to_shape(atom, (TILE[0], TILE[2], STAGES), order=(0, 1, 2))
        layout_sfa = blockscaled_utils.sm120_make_smem_layout_sfa(tiled_mma, TILE, self.sf_vec_size, STAGES)
        layout_sfb = blockscaled_utils.sm120_make_smem_layout_sfb(tiled_mma, TILE, self.sf_vec_size, STAGES)
        load = cpasync.CopyBulkTensorTileG2SOp()
        one_stage, box = (None, None, 0), (TILE[0], TILE[2])
        tma_a, g_a = cpasync.make_tiled_tma_atom(load, a, cute.slice_(layout_ab, one_stage), box)
        tma_b, g_b = cpasync.make_tiled_tma_atom(load, b, cute.slice_(layout_ab, one_stage), box)
        tma_sfa, g_sfa = cpasync.make_tiled_tma_atom(
            load, sfa, cute.slice_(layout_sfa, one_stage), box, internal_type=cutlass.Int16
        )
        tma_sfb, g_sfb = cpasync.make_tiled_tma_atom(
            load, sfb, cute.slice_(layout_sfb, one_stage), box, internal_type=cutlass.Int16
        )
        self.kernel(
            tiled_mma, (tma_a, tma_b, tma_sfa, tma_sfb), (g_a, g_b, g_sfa, g_sfb), c, layout_ab, layout_sfa, layout_sfb
        ).launch(grid=(m // TILE[0], n // TILE[1], 1), block=(32 * (MMA_WARPS + 1), 1, 1))

    @cute.kernel
    def kernel(self, tiled_mma: cute.TiledMma, atoms, tensors, c: cute.Tensor, layout_ab: cute.ComposedLayout,
               layout_sfa: cute.Layout, layout_sfb: cute.Layout):
        tidx, _, _ = cute.arch.thread_idx()
        bidx, bidy, _ = cute.arch.block_idx()
        warp_idx = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        smem = utils.SmemAllocator()
        s_a = smem.allocate_tensor(self.ab_dtype, layout_ab.outer, 1024, layout_ab.inner)
        s_b = smem.allocate_tensor(self.ab_dtype, layout_ab.outer, 1024, layout_ab.inner)
        s_sfa = smem.allocate_tensor(self.sf_dtype, layout_sfa, 128)
        s_sfb = smem.allocate_tensor(self.sf_dtype, layout_sfb, 128)
        stage_bytes = sum(
            cute.size_in_bytes(dtype, cute.slice_(layout, (None, None, 0)))
            for dtype, layout in (
                (self.ab_dtype, layout_ab), (self.ab_dtype, layout_ab),
                (self.sf_dtype, layout_sfa), (self.sf_dtype, layout_sfb),
            )
        )
        loads = pipeline.PipelineTmaAsync.create(
            num_stages=STAGES,
            producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, MMA_WARPS),
            tx_count=stage_bytes,
        )
        producer, consumer = loads.make_participants()
        tiles = [
            cute.local_tile(g[None, None, 0] if cute.rank(g) == 3 else g, (TILE[0], TILE[2]), (at, None))
            for g, at in zip(tensors, (bidx, bidy, bidx, bidy))
        ]
        k_tiles = cute.size(tiles[0], mode=[2])

        if warp_idx == MMA_WARPS:
            for k in cutlass.range(k_tiles):
                stage = producer.acquire_and_advance()
                for atom, tile, s in zip(atoms, tiles, (s_a, s_b, s_sfa, s_sfb)):
                    to, of = cpasync.tma_partition(
                        atom, 0, cute.make_layout(1), cute.group_modes(s, 0, 2), cute.group_modes(tile, 0, 2)
                    )
                    cute.copy(
                        atom, cute.filter_zeros(of[None, k]), cute.filter_zeros(to[None, stage.index]),
                        tma_bar_ptr=stage.barrier,
                    )
            producer.tail()
        else:
            thr_mma = tiled_mma.get_slice(tidx)
            c_tile = thr_mma.partition_C(cute.local_tile(c, TILE[:2], (bidx, bidy)))
            acc = cute.make_rmem_tensor(thr_mma.partition_shape_C(TILE[:2]), cutlass.Float32)
            acc.fill(0.0)
            r_a = thr_mma.make_fragment_A(thr_mma.partition_A(s_a)[None, None, None, 0])
            r_b = thr_mma.make_fragment_B(thr_mma.partition_B(s_b)[None, None, None, 0])
            r_sfa = sm120_utils.partition_fragment_SFA(s_sfa[None, None, 0], thr_mma, tidx)
            r_sfb = sm120_utils.partition_fragment_SFB(s_sfb[None, None, 0], thr_mma, tidx)

            ldmatrix = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), self.ab_dtype)
            copy_a, copy_b = cute.make_tiled_copy_A(ldmatrix, tiled_mma), cute.make_tiled_copy_B(ldmatrix, tiled_mma)
            plain = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), self.sf_dtype)
            permutation = tiled_mma.permutation_mnk
            copy_sfa = cute.make_tiled_copy(
                plain, sm120_utils.get_layoutSFA_TV(tiled_mma), (cute.size(permutation[0]), cute.size(permutation[2]))
            )
            copy_sfb = cute.make_tiled_copy(
                plain, sm120_utils.get_layoutSFB_TV(tiled_mma), (cute.size(permutation[1]), cute.size(permutation[2]))
            )
            parts = [
                (copy, copy.get_slice(tidx).partition_S(s), copy.get_slice(tidx).retile(r))
                for copy, s, r in (
                    (copy_a, s_a, r_a), (copy_b, s_b, r_b), (copy_sfa, s_sfa, r_sfa), (copy_sfb, s_sfb, r_sfb)
                )
            ]
            for _k in cutlass.range(k_tiles):
                stage = consumer.wait_and_advance()
                for block in range(cute.size(r_a, mode=[2])):
                    for copy, source, target in parts:
                        cute.copy(
                            copy, cute.filter_zeros(source[None, None, block, stage.index]),
                            cute.filter_zeros(target[None, None, block]),
                        )
                    at = (None, None, block)
                    cute.gemm(tiled_mma, acc, [r_a[at], r_sfa[at]], [r_b[at], r_sfb[at]], acc)
                stage.release()
            cute.copy(cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Float32), acc, c_tile)


TYPES = {
    cutlass.Float8E4M3FN: ml_dtypes.float8_e4m3fn,
    cutlass.Float4E2M1FN: ml_dtypes.float4_e2m1fn,
    cutlass.Float8E8M0FNU: ml_dtypes.float8_e8m0fnu,
}


def as_bytes(values: torch.Tensor, dtype) -> torch.Tensor:
    """Numbers of 4 bits two in a byte, the first one in its lower half."""
    codes = torch.from_numpy(values.cpu().numpy().astype(TYPES[dtype]).view("uint8"))
    return codes[:, 0::2] | codes[:, 1::2] << 4 if dtype.width == 4 else codes


def in_atoms(scales: torch.Tensor) -> torch.Tensor:
    """(rows, factors) in blocks of 128 rows and 4 factors, 512 contiguous bytes each."""
    rows, factors = scales.shape
    return scales.reshape(rows // 128, 4, 32, factors // 4, 4).permute(0, 3, 2, 1, 4).contiguous()


def run(mnk, ab_dtype, sf_dtype, sf_vec_size):
    torch.manual_seed(1)
    m, n, k = mnk
    a, b = (torch.randint(-2, 3, (rows, k)).float() for rows in (m, n))
    sfa, sfb = (2.0 ** torch.randint(-2, 3, (rows, k // sf_vec_size)) for rows in (m, n))
    if sf_dtype is cutlass.Float8E4M3FN:
        sfa = sfa * 1.5
    c = torch.zeros(m, n, device="cuda")
    data = [as_bytes(x, ab_dtype).contiguous().cuda() for x in (a, b)]
    data += [in_atoms(as_bytes(x, sf_dtype)).cuda() for x in (sfa, sfb)]
    kinds = (ab_dtype, ab_dtype, sf_dtype, sf_dtype)
    pointers = [make_ptr(kind, x.data_ptr(), cute.AddressSpace.gmem, 128) for kind, x in zip(kinds, data)]
    gemm = Sm120BlockScaledGemm(ab_dtype, sf_dtype, sf_vec_size)
    gemm(*pointers, make_ptr(cutlass.Float32, c.data_ptr(), cute.AddressSpace.gmem, 16), mnk)
    wide = [x.double() * s.double().repeat_interleave(sf_vec_size, 1) for x, s in ((a, sfa), (b, sfb))]
    torch.testing.assert_close(c.cpu().double(), wide[0] @ wide[1].T, atol=0, rtol=0)
    print(f"{m}x{n}x{k} {ab_dtype.__name__} by {sf_dtype.__name__} of {sf_vec_size}: PASS")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--mnk", type=lambda text: [int(x) for x in text.split(",")], default=[128, 256, 256])
    arguments = parser.parse_args()
    for kinds in (
        (cutlass.Float8E4M3FN, cutlass.Float8E8M0FNU, 32),
        (cutlass.Float4E2M1FN, cutlass.Float8E8M0FNU, 32),
        (cutlass.Float4E2M1FN, cutlass.Float8E4M3FN, 16),
    ):
        run(arguments.mnk, *kinds)
