"""A block-scaled GEMM written for the CuTe DSL's documentation: TMA brings operands and factors in stages, the warp that
multiplies copies the factors to tensor memory before the MMAs that read them. MXF8 and NVF4."""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import cutlass.pipeline as pipeline
import cutlass.utils as utils
import cutlass.utils.blackwell_helpers as sm100_utils
import cutlass.utils.blockscaled_layout as blockscaled_utils
import torch
from cutlass.cute.nvgpu import OperandMajorMode, cpasync, tcgen05
from cutlass.cute.runtime import from_dlpack


class BlockScaledGemm:
    """C (M, N) = (A (M, K) * SFA) * (B (N, K) * SFB), a block a tile."""

    epilogue_warps, mma_warp, load_warp = (0, 1, 2, 3), 4, 5
    stages = 2

    def __init__(self, ab_dtype, sf_dtype, sf_vec_size, mma_tiler):
        self.ab_dtype, self.sf_dtype, self.sf_vec_size = ab_dtype, sf_dtype, sf_vec_size
        self.mma_tiler, self.threads = mma_tiler, 32 * 6

    @cute.jit
    def __call__(
        self,
        a_bytes: cute.Tensor,
        b_bytes: cute.Tensor,
        sfa_bytes: cute.Tensor,
        sfb_bytes: cute.Tensor,
        c: cute.Tensor,
        stream: cuda.CUstream,
    ):
        a, b = cute.recast_tensor(a_bytes, self.ab_dtype), cute.recast_tensor(b_bytes, self.ab_dtype)
        sfa = cute.make_tensor(
            cute.recast_ptr(sfa_bytes.iterator, dtype=self.sf_dtype),
            blockscaled_utils.tile_atom_to_shape_SF((*a.shape, 1), self.sf_vec_size),
        )
        sfb = cute.make_tensor(
            cute.recast_ptr(sfb_bytes.iterator, dtype=self.sf_dtype),
            blockscaled_utils.tile_atom_to_shape_SF((*b.shape, 1), self.sf_vec_size),
        )
        tiled_mma = sm100_utils.make_blockscaled_trivial_tiled_mma(
            self.ab_dtype,
            OperandMajorMode.K,
            OperandMajorMode.K,
            self.sf_dtype,
            self.sf_vec_size,
            tcgen05.CtaGroup.ONE,
            self.mma_tiler[:2],
        )
        tiler, vec = self.mma_tiler, self.sf_vec_size
        cluster_layout_vmnk = cute.tiled_divide(cute.make_layout((1, 1, 1)), (tiled_mma.thr_id.shape,))
        a_smem = sm100_utils.make_smem_layout_a(tiled_mma, tiler, self.ab_dtype, self.stages)
        b_smem = sm100_utils.make_smem_layout_b(tiled_mma, tiler, self.ab_dtype, self.stages)
        sfa_smem = blockscaled_utils.make_smem_layout_sfa(tiled_mma, tiler, vec, self.stages)
        sfb_smem = blockscaled_utils.make_smem_layout_sfb(tiled_mma, tiler, vec, self.stages)
        shape, one = cluster_layout_vmnk.shape, (None, None, None, 0)
        op_a = sm100_utils.cluster_shape_to_tma_atom_A((1, 1), tiled_mma.thr_id)
        op_b = sm100_utils.cluster_shape_to_tma_atom_B((1, 1), tiled_mma.thr_id)
        op_sfb = sm100_utils.cluster_shape_to_tma_atom_SFB((1, 1), tiled_mma.thr_id)
        make_a, make_b = cute.nvgpu.make_tiled_tma_atom_A, cute.nvgpu.make_tiled_tma_atom_B
        tma_a, ta = make_a(op_a, a, cute.slice_(a_smem, one), tiler, tiled_mma, shape)
        tma_b, tb = make_b(op_b, b, cute.slice_(b_smem, one), tiler, tiled_mma, shape)
        tma_sfa, tsfa = make_a(
            op_a, sfa, cute.slice_(sfa_smem, one), tiler, tiled_mma, shape, internal_type=cutlass.Int16
        )
        tma_sfb, tsfb = make_b(
            op_sfb, sfb, cute.slice_(sfb_smem, one), tiler, tiled_mma, shape, internal_type=cutlass.Int16
        )
        self.num_tma_load_bytes = sum(
            cute.size_in_bytes(dtype, cute.slice_(layout, one))
            for dtype, layout in (
                (self.ab_dtype, a_smem),
                (self.ab_dtype, b_smem),
                (self.sf_dtype, cute.filter_zeros(sfa_smem)),
                (self.sf_dtype, cute.filter_zeros(sfb_smem)),
            )
        )
        grid = (*cute.ceil_div(c.shape, self.mma_tiler[:2]), 1)
        self.kernel(
            tiled_mma, tma_a, ta, tma_b, tb, tma_sfa, tsfa, tma_sfb, tsfb, c, a_smem, b_smem, sfa_smem, sfb_smem
        ).launch(grid=grid, block=[self.threads, 1, 1], stream=stream)

    @cute.kernel
    def kernel(
        self,
        tiled_mma: cute.TiledMma,
        tma_a: cute.CopyAtom,
        ta: cute.Tensor,
        tma_b: cute.CopyAtom,
        tb: cute.Tensor,
        tma_sfa: cute.CopyAtom,
        tsfa: cute.Tensor,
        tma_sfb: cute.CopyAtom,
        tsfb: cute.Tensor,
        c: cute.Tensor,
        a_smem: cute.ComposedLayout,
        b_smem: cute.ComposedLayout,
        sfa_smem: cute.Layout,
        sfb_smem: cute.Layout,
    ):
        warp_idx = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        tidx, _, _ = cute.arch.thread_idx()
        m, n, _ = cute.arch.block_idx()
        smem = utils.SmemAllocator()
        s_a = smem.allocate_tensor(self.ab_dtype, a_smem.outer, 1024, a_smem.inner)
        s_b = smem.allocate_tensor(self.ab_dtype, b_smem.outer, 1024, b_smem.inner)
        s_sfa = smem.allocate_tensor(self.sf_dtype, sfa_smem, 128)
        s_sfb = smem.allocate_tensor(self.sf_dtype, sfb_smem, 128)
        ab_producer, ab_consumer = pipeline.PipelineTmaUmma.create(
            barrier_storage=smem.allocate_array(cutlass.Int64, 2 * self.stages),
            num_stages=self.stages,
            producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
            tx_count=self.num_tma_load_bytes,
        ).make_participants()
        acc_producer, acc_consumer = pipeline.PipelineUmmaAsync.create(
            barrier_storage=smem.allocate_array(cutlass.Int64, 2),
            num_stages=1,
            producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 32 * len(self.epilogue_warps)),
        ).make_participants()
        tmem = utils.TmemAllocator(
            smem.allocate_array(cutlass.Int32, 1),
            barrier_for_retrieve=pipeline.NamedBarrier(barrier_id=2, num_threads=32 * 5),
            allocator_warp_id=self.epilogue_warps[0],
        )
        tile_a, tile_b = cute.slice_(self.mma_tiler, (None, 0, None)), cute.slice_(self.mma_tiler, (0, None, None))
        thr_mma = tiled_mma.get_slice(0)
        tcga = thr_mma.partition_A(cute.local_tile(ta, tile_a, (m, None)))  # (MMA, MMA_M, MMA_K, k)
        tcgb = thr_mma.partition_B(cute.local_tile(tb, tile_b, (n, None)))
        tcgsfa = thr_mma.partition_A(cute.local_tile(tsfa, tile_a, (m, None, 0)))
        tcgsfb = thr_mma.partition_B(cute.local_tile(tsfb, tile_b, (n, None, 0)))
        tcgc = thr_mma.partition_C(cute.local_tile(c, self.mma_tiler[:2], (m, n)))
        k_tiles = cute.size(tcga, mode=[3])
        acc_like = tiled_mma.make_fragment_C(tiled_mma.partition_shape_C(self.mma_tiler[:2]))

        if warp_idx == self.load_warp:
            one = cute.make_layout(1)
            tasa, taga = cpasync.tma_partition(tma_a, 0, one, cute.group_modes(s_a, 0, 3), cute.group_modes(tcga, 0, 3))
            tbsb, tbgb = cpasync.tma_partition(tma_b, 0, one, cute.group_modes(s_b, 0, 3), cute.group_modes(tcgb, 0, 3))
            tass, tags = cpasync.tma_partition(
                tma_sfa, 0, one, cute.group_modes(s_sfa, 0, 3), cute.group_modes(tcgsfa, 0, 3)
            )
            tbss, tbgs = cpasync.tma_partition(
                tma_sfb, 0, one, cute.group_modes(s_sfb, 0, 3), cute.group_modes(tcgsfb, 0, 3)
            )
            tass, tags, tbss, tbgs = (cute.filter_zeros(x) for x in (tass, tags, tbss, tbgs))
            for k in cutlass.range(k_tiles, unroll=1):
                handle = ab_producer.acquire_and_advance()
                to = (None, handle.index)
                cute.copy(tma_a, taga[None, k], tasa[to], tma_bar_ptr=handle.barrier)
                cute.copy(tma_b, tbgb[None, k], tbsb[to], tma_bar_ptr=handle.barrier)
                cute.copy(tma_sfa, tags[None, k], tass[to], tma_bar_ptr=handle.barrier)
                cute.copy(tma_sfb, tbgs[None, k], tbss[to], tma_bar_ptr=handle.barrier)
            ab_producer.tail()

        if warp_idx == self.mma_warp:
            tmem.wait_for_alloc()
            acc = cute.make_tensor(tmem.retrieve_ptr(cutlass.Float32), acc_like.layout)
            stage = (None, None, None, 0)
            sfa_ptr = cute.recast_ptr(acc.iterator + tcgen05.find_tmem_tensor_col_offset(acc), dtype=self.sf_dtype)
            t_sfa = cute.make_tensor(
                sfa_ptr,
                blockscaled_utils.make_tmem_layout_sfa(
                    tiled_mma, self.mma_tiler, self.sf_vec_size, cute.slice_(sfa_smem, stage)
                ),
            )
            columns = tcgen05.find_tmem_tensor_col_offset(acc) + tcgen05.find_tmem_tensor_col_offset(t_sfa)
            t_sfb = cute.make_tensor(
                cute.recast_ptr(acc.iterator + columns, dtype=self.sf_dtype),
                blockscaled_utils.make_tmem_layout_sfb(
                    tiled_mma, self.mma_tiler, self.sf_vec_size, cute.slice_(sfb_smem, stage)
                ),
            )
            copy_sfa, from_sfa, to_sfa = self.s2t_copy_and_partition(s_sfa, t_sfa)
            copy_sfb, from_sfb, to_sfb = self.s2t_copy_and_partition(s_sfb, t_sfb)
            frag_a, frag_b = tiled_mma.make_fragment_A(s_a), tiled_mma.make_fragment_B(s_b)
            acc_handle = acc_producer.acquire_and_advance()
            tiled_mma.set(tcgen05.Field.ACCUMULATE, False)
            for _ in cutlass.range(k_tiles, unroll=1):
                handle = ab_consumer.wait_and_advance()
                staged = (None, None, None, None, handle.index)
                cute.copy(copy_sfa, from_sfa[staged], to_sfa)
                cute.copy(copy_sfb, from_sfb[staged], to_sfb)
                for block in cutlass.range_constexpr(cute.size(frag_a, mode=[2])):
                    part = (None, None, block, handle.index)
                    tiled_mma.set(tcgen05.Field.SFA, t_sfa[None, None, block].iterator)
                    tiled_mma.set(tcgen05.Field.SFB, t_sfb[None, None, block].iterator)
                    cute.gemm(tiled_mma, acc, frag_a[part], frag_b[part], acc)
                    tiled_mma.set(tcgen05.Field.ACCUMULATE, True)
                handle.release()
            acc_handle.commit()
            acc_producer.tail()

        if warp_idx < self.mma_warp:
            tmem.allocate(256)
            tmem.wait_for_alloc()
            base = tmem.retrieve_ptr(cutlass.Float32)
            acc = cute.make_tensor(base, acc_like.layout)[(None, None), 0, 0]
            out = tcgc[(None, None), 0, 0]
            atom = cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x16), cutlass.Float32)
            t2r = tcgen05.make_tmem_copy(atom, acc)
            mine = t2r.get_slice(tidx)
            to = mine.partition_D(out)
            registers = cute.make_rmem_tensor(to.shape, cutlass.Float32)
            handle = acc_consumer.wait_and_advance()
            cute.copy(t2r, mine.partition_S(acc), registers)
            cute.arch.fence_view_async_tmem_load()
            handle.release()
            cute.autovec_copy(registers, to)
            tmem.relinquish_alloc_permit()
            pipeline.NamedBarrier(barrier_id=1, num_threads=32 * len(self.epilogue_warps)).arrive_and_wait()
            tmem.free(base)

    def s2t_copy_and_partition(self, s_sf, t_sf):
        """The copy of factors from shared to tensor memory, what it reads of each stage, and what it writes."""
        atom = cute.make_copy_atom(tcgen05.Cp4x32x128bOp(tcgen05.CtaGroup.ONE), self.sf_dtype)
        compact = cute.filter_zeros(t_sf)
        copy = tcgen05.make_s2t_copy(atom, compact)
        mine = copy.get_slice(0)
        source = tcgen05.get_s2t_smem_desc_tensor(copy, mine.partition_S(cute.filter_zeros(s_sf)))
        return copy, source, mine.partition_D(compact)


def factors(exponents, sf_dtype):
    """Powers of two (rows, K / vec) as bytes in the order of the hardware: (row block, K block, row % 32, row / 32 % 4,
    factor)."""
    rows, count = exponents.shape
    bits = exponents + 127 if sf_dtype is cutlass.Float8E8M0FNU else exponents + 7 << 3
    blocks = bits.to(torch.uint8).reshape(rows // 128, 4, 32, count // 4, 4)
    return blocks.permute(0, 3, 2, 1, 4).reshape(-1).contiguous().cuda()


def packed(values, ab_dtype):
    """Integers from -2 to 2 as bytes: one of Float8E4M3FN each, or two of Float4E2M1FN."""
    if ab_dtype is cutlass.Float8E4M3FN:
        return values.float().to(torch.float8_e4m3fn).view(torch.uint8).cuda()
    codes = torch.tensor([0b1100, 0b1010, 0b0000, 0b0010, 0b0100], dtype=torch.uint8)[values + 2]
    return (codes[:, ::2] | codes[:, 1::2] << 4).cuda()


def run(mnk, ab_dtype, sf_dtype, sf_vec_size, mma_tiler):
    m, n, k = mnk
    a, b = torch.randint(-2, 3, (m, k)), torch.randint(-2, 3, (n, k))
    sfa, sfb = (torch.randint(-2, 3, (rows, k // sf_vec_size)) for rows in (m, n))
    c = torch.zeros(m, n).cuda()
    given = packed(a, ab_dtype), packed(b, ab_dtype), factors(sfa, sf_dtype), factors(sfb, sf_dtype), c
    stream = cuda.CUstream(torch.cuda.current_stream().cuda_stream)
    BlockScaledGemm(ab_dtype, sf_dtype, sf_vec_size, mma_tiler)(
        *(from_dlpack(x, assumed_align=16) for x in given), stream
    )
    torch.cuda.synchronize()
    wide_a, wide_b = (x.float() * (2.0**s).repeat_interleave(sf_vec_size, 1) for x, s in ((a, sfa), (b, sfb)))
    assert torch.equal(c.cpu(), wide_a @ wide_b.T), mnk


if __name__ == "__main__":
    torch.manual_seed(0)
    run((128, 256, 384), cutlass.Float8E4M3FN, cutlass.Float8E8M0FNU, 32, (128, 128, 128))
    run((256, 128, 512), cutlass.Float4E2M1FN, cutlass.Float8E4M3FN, 16, (128, 128, 256))
    print("PASS")
