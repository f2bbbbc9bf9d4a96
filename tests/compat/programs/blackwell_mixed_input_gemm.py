"""A GEMM of narrow weights and Float16 activations: four warps convert the weights, from where the MMA reads them as
operand A: in tensor memory, or for weights that are contiguous along M in shared memory. TMA brings weights, scales
and activations to shared memory. Int8 weights count as they are, Int4 weights times a scale for each row and GROUP columns."""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import cutlass.pipeline as pipeline
import cutlass.utils as utils
import cutlass.utils.blackwell_helpers as sm100_utils
import cutlass.utils.mixed_input_helpers as mixed
import torch
from cutlass.cute.nvgpu import CopyUniversalOp, OperandMajorMode, cpasync, tcgen05
from cutlass.cute.runtime import from_dlpack
from cutlass.utils.mixed_input_helpers import TransformMode

TILE, LOADED, CONVERTED = (128, 64, 64), 3, 2
CONVERTERS = 128
GROUP = 32  # columns that share a scale


class MixedInputGemm:
    """D (M, N, 1) = (W (M, K, 1) * scale) * B (N, K, 1), a block for each 128 rows and 64 columns."""

    def __init__(self, narrow, rows=TILE[0], tma_store=False):
        self.narrow, self.tile, self.tma_store = narrow, (rows, *TILE[1:]), tma_store
        self.parts = 2 if tma_store else 1  # of a tile of D, along N
        self.epi_tile = (rows, TILE[1] // self.parts)

    @cute.jit
    def __call__(
        self, w: cute.Tensor, scale: cute.Tensor | None, b: cute.Tensor, d: cute.Tensor, stream: cuda.CUstream
    ):
        if cutlass.const_expr(self.narrow is cutlass.Int4):
            w = cute.recast_tensor(w, self.narrow)
        self.mode = TransformMode.ConvertOnly if cutlass.const_expr(scale is None) else TransformMode.ConvertScale
        major = utils.LayoutEnum.from_tensor(w).mma_major_mode()
        self.source = mixed.get_transform_a_source(major)
        self.c_layout, self.dtype = utils.LayoutEnum.from_tensor(d), b.element_type
        tiled_mma = sm100_utils.make_trivial_tiled_mma(
            self.dtype,
            self.dtype,
            major,
            OperandMajorMode.K,
            cutlass.Float32,
            tcgen05.CtaGroup.ONE,
            self.tile[:2],
            self.source,
        )
        vmnk = cute.tiled_divide(cute.make_layout((1, 1, 1)), (tiled_mma.thr_id.shape,))
        a_smem, to_smem, b_smem = mixed.compute_smem_layout(
            tiled_mma, self.tile, w.element_type, self.dtype, LOADED, CONVERTED
        )
        stage = (None, None, None, 0)
        tma_a, ta = cute.nvgpu.make_tiled_tma_atom_A(
            mixed.get_tma_atom_kind(False, False, is_b=False),
            w,
            cute.slice_(a_smem, stage),
            self.tile,
            tiled_mma,
            vmnk.shape,
        )
        tma_b, tb = cute.nvgpu.make_tiled_tma_atom_B(
            mixed.get_tma_atom_kind(False, False, is_b=True),
            b,
            cute.slice_(b_smem, stage),
            self.tile,
            tiled_mma,
            vmnk.shape,
        )
        self.nbytes = cute.size_in_bytes(w.element_type, cute.slice_(a_smem, stage))
        self.b_bytes = cute.size_in_bytes(self.dtype, cute.slice_(b_smem, stage))
        tma_s, ts, s_smem = None, None, None
        if cutlass.const_expr(scale is not None):
            assert mixed.is_valid_scale_granularity(1, GROUP, w.element_type, w.shape[1], self.tile[2])
            groups_major = utils.LayoutEnum.from_tensor(scale).mma_major_mode()
            spread = mixed.get_gmem_layout_scale(w.shape, 1, GROUP, groups_major)
            self.scale_tile, one, s_smem = mixed.get_smem_layout_scale(
                self.tile, False, 1, GROUP, groups_major, scale.element_type, LOADED
            )
            tma_s, ts = cpasync.make_tiled_tma_atom(
                mixed.get_tma_atom_kind(False, False, is_b=False),
                cute.make_tensor(scale.iterator, spread),
                one,
                self.scale_tile,
            )
            self.nbytes += cute.size_in_bytes(scale.element_type, cute.filter_zeros(one))
        tma_d, td, d_smem = None, None, None
        if cutlass.const_expr(self.tma_store):
            d_smem = sm100_utils.make_smem_layout_epi(d.element_type, self.c_layout, self.epi_tile, self.parts)
            tma_d, td = cpasync.make_tiled_tma_atom(
                cpasync.CopyBulkTensorTileS2GOp(), d, cute.slice_(d_smem, (None, None, 0)), self.epi_tile
            )
        copy_in = cute.make_copy_atom(CopyUniversalOp(), w.element_type)
        copy_out = mixed.get_copy_atom_a_transform(
            self.dtype, False, self.source, tiled_mma.partition_shape_A((self.tile[0], self.tile[2])), w.element_type
        )
        self.kernel(
            tiled_mma,
            tma_a,
            ta,
            tma_b,
            tb,
            tma_s,
            ts,
            tma_d,
            d if td is None else td,
            a_smem,
            to_smem,
            b_smem,
            s_smem,
            d_smem,
            copy_in,
            copy_out,
        ).launch(
            grid=(w.shape[0] // self.tile[0], d.shape[1] // self.tile[1], 1),
            block=(CONVERTERS + 64, 1, 1),
            stream=stream,
        )

    @cute.kernel
    def kernel(
        self,
        tiled_mma: cute.TiledMma,
        tma_a: cute.CopyAtom,
        ta: cute.Tensor,
        tma_b: cute.CopyAtom,
        tb: cute.Tensor,
        tma_s: cute.CopyAtom | None,
        ts: cute.Tensor | None,
        tma_d: cute.CopyAtom | None,
        d: cute.Tensor,
        a_smem: cute.ComposedLayout,
        to_smem: cute.ComposedLayout,
        b_smem: cute.ComposedLayout,
        s_smem: cute.Layout | None,
        d_smem: cute.ComposedLayout | None,
        copy_in: cute.CopyAtom,
        copy_out: cute.CopyAtom,
    ):
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        tidx, _, _ = cute.arch.thread_idx()
        m, n, _ = cute.arch.block_idx()
        in_tmem = cutlass.const_expr(self.source == tcgen05.OperandSource.TMEM)
        scaled = cutlass.const_expr(self.mode is TransformMode.ConvertScale)
        smem = utils.SmemAllocator()
        s_a = smem.allocate_tensor(copy_in.value_type, a_smem.outer, 1024, a_smem.inner)
        s_b = smem.allocate_tensor(self.dtype, b_smem.outer, 1024, b_smem.inner)
        one, threads = (pipeline.CooperativeGroup(pipeline.Agent.Thread, x) for x in (1, CONVERTERS))
        a_producer, a_consumer = pipeline.PipelineTmaAsync.create(
            barrier_storage=smem.allocate_array(cutlass.Int64, 2 * LOADED),
            num_stages=LOADED,
            producer_group=one,
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, CONVERTERS // 32),
            tx_count=self.nbytes,
        ).make_participants()
        b_producer, b_consumer = pipeline.PipelineTmaUmma.create(
            barrier_storage=smem.allocate_array(cutlass.Int64, 2 * LOADED),
            num_stages=LOADED,
            producer_group=one,
            consumer_group=one,
            tx_count=self.b_bytes,
        ).make_participants()
        to_producer, to_consumer = pipeline.PipelineAsyncUmma.create(
            barrier_storage=smem.allocate_array(cutlass.Int64, 2 * CONVERTED),
            num_stages=CONVERTED,
            producer_group=threads,
            consumer_group=one,
        ).make_participants()
        acc_producer, acc_consumer = pipeline.PipelineUmmaAsync.create(
            barrier_storage=smem.allocate_array(cutlass.Int64, 2),
            num_stages=1,
            producer_group=one,
            consumer_group=threads,
        ).make_participants()
        tmem = utils.TmemAllocator(
            smem.allocate_array(cutlass.Int32, 1), barrier_for_retrieve=pipeline.NamedBarrier(2, CONVERTERS + 32)
        )
        k_tiles = cute.size(ta, mode=[1]) // self.tile[2]
        thr_mma = tiled_mma.get_slice(0)
        acc_like = tiled_mma.make_fragment_C(cute.append(tiled_mma.partition_shape_C(self.tile[:2]), 1))
        if in_tmem:
            a_like = tiled_mma.make_fragment_A(to_smem.outer)
            s_to = None
        else:
            s_to = smem.allocate_tensor(self.dtype, to_smem.outer, 1024, to_smem.inner)
        s_d = None
        if cutlass.const_expr(tma_d is not None):
            s_d = smem.allocate_tensor(cutlass.Float32, d_smem.outer, 1024, d_smem.inner)
        s_s = None
        if scaled:
            s_s = thr_mma.partition_A(smem.allocate_tensor(cutlass.Float16, s_smem, 128))

        if warp == 5:
            ga = thr_mma.partition_A(cute.local_tile(ta, (self.tile[0], self.tile[2]), (m, None, 0)))
            gb = thr_mma.partition_B(cute.local_tile(tb, (self.tile[1], self.tile[2]), (n, None, 0)))
            tasa, taga = cpasync.tma_partition(
                tma_a, 0, cute.make_layout(1), cute.group_modes(s_a, 0, 3), cute.group_modes(ga, 0, 3)
            )
            tbsb, tbgb = cpasync.tma_partition(
                tma_b, 0, cute.make_layout(1), cute.group_modes(s_b, 0, 3), cute.group_modes(gb, 0, 3)
            )
            if scaled:
                gs = thr_mma.partition_A(cute.local_tile(ts, self.scale_tile, (m, None, 0)))
                tsss, tsgs = mixed.scale_tma_partition(s_s, gs, tma_s, (0, 0, 0, 0), cute.make_layout(1))
            for k in cutlass.range(k_tiles):
                handle = a_producer.acquire_and_advance()
                cute.copy(tma_a, taga[None, k], tasa[None, handle.index], tma_bar_ptr=handle.barrier)
                if scaled:
                    cute.copy(tma_s, tsgs[None, k], tsss[None, handle.index], tma_bar_ptr=handle.barrier)
                handle = b_producer.acquire_and_advance()
                cute.copy(tma_b, tbgb[None, k], tbsb[None, handle.index], tma_bar_ptr=handle.barrier)
            a_producer.tail()
            b_producer.tail()

        if warp == 4:
            tmem.wait_for_alloc()
            base = tmem.retrieve_ptr(cutlass.Float32)
            acc = cute.make_tensor(base, acc_like.layout)[None, None, None, 0]
            if in_tmem:
                frag_a = cute.make_tensor((base + self.tile[1]).with_dtype(self.dtype), a_like.layout)
            else:
                frag_a = tiled_mma.make_fragment_A(s_to)
            frag_b = tiled_mma.make_fragment_B(s_b)
            done = acc_producer.acquire_and_advance()
            tiled_mma.set(tcgen05.Field.ACCUMULATE, False)
            for _ in cutlass.range(k_tiles):
                of_b, of_a = b_consumer.wait_and_advance(), to_consumer.wait_and_advance()
                for block in cutlass.range_constexpr(cute.size(frag_b, mode=[2])):
                    from_a, from_b = frag_a[None, None, block, of_a.index], frag_b[None, None, block, of_b.index]
                    cute.gemm(tiled_mma, acc, from_a, from_b, acc)
                    tiled_mma.set(tcgen05.Field.ACCUMULATE, True)
                of_b.release()
                of_a.release()
            done.commit()
            acc_producer.tail()

        if warp < 4:
            tmem.allocate(128)
            tmem.wait_for_alloc()
            base = tmem.retrieve_ptr(cutlass.Float32)
            converted = s_to
            if in_tmem:
                converted = cute.make_tensor((base + self.tile[1]).with_dtype(self.dtype), a_like.layout)
            src_copy, dst_copy, parts, to = mixed.transform_partition(
                self.source, self.mode, copy_in, copy_out, s_a, converted, tidx
            )
            part = (None, None, None, None)
            narrow = cute.make_rmem_tensor(parts[(*part, 0)].shape, parts.element_type)
            wide = cute.make_rmem_tensor(parts[(*part, 0)].shape, self.dtype)
            if scaled:
                copy_s, scales, of_groups, of_elements = mixed.scale_partition(src_copy, s_s, tidx, cutlass.Float16)
            for _ in cutlass.range(k_tiles):
                handle = a_consumer.wait_and_advance()
                cute.autovec_copy(parts[(*part, handle.index)], narrow)
                values = mixed.cvt_tensor_a(narrow, self.dtype, False)
                if scaled:
                    cute.copy(copy_s, cute.filter_zeros(scales[(*part, handle.index)]), of_groups)
                    values = values * of_elements.load()
                wide.store(values)
                handle.release()
                handle = to_producer.acquire_and_advance()
                mixed.store_transformed_a(wide, to[(*part, handle.index)], dst_copy)
                if in_tmem:
                    cute.arch.fence_view_async_tmem_store()
                else:
                    cute.arch.fence_proxy("async.shared", space="cta")
                handle.commit()
            gd = thr_mma.partition_C(cute.local_tile(d, self.tile[:2], (None, None, None)))
            t2r, accs, sums = mixed.epilog_tmem_copy_and_partition(
                self.tile,
                self.c_layout,
                cutlass.Float32,
                cutlass.Float32,
                tidx,
                cute.make_tensor(base, acc_like.layout),
                gd,
                self.epi_tile,
                False,
            )
            if cutlass.const_expr(tma_d is None):
                by_threads = (None, t2r, None, gd, self.epi_tile, None)
                _, _, _, store, of_d = mixed.epilog_gmem_copy_and_partition(cutlass.Float32, tidx, *by_threads)
            else:
                by_tma = (tma_d, None, gd, None, self.epi_tile, s_d)
                _, from_s, to_d, _, _ = mixed.epilog_gmem_copy_and_partition(cutlass.Float32, tidx, *by_tma)
                r2s, to_store, of_s = mixed.epilog_smem_copy_and_partition(
                    self.c_layout, cutlass.Float32, cutlass.Float32, t2r, sums, tidx, s_d
                )
            handle = acc_consumer.wait_and_advance()
            for part in cutlass.range_constexpr(self.parts):
                cute.copy(t2r, accs[None, None, None, 0, part, 0], sums)
                cute.arch.fence_view_async_tmem_load()
                if cutlass.const_expr(tma_d is None):
                    cute.copy(store, sums, of_d[None, None, None, 0, part, m, n, 0])
                else:
                    cute.copy(r2s, to_store, of_s[None, None, None, part])
                    cute.arch.fence_proxy("async.shared", space="cta")
                    pipeline.NamedBarrier(1, CONVERTERS).arrive_and_wait()
                    if warp == 0:
                        cute.copy(tma_d, from_s[None, part], to_d[None, 0, part, m, n, 0])
            handle.release()
            if cutlass.const_expr(tma_d is not None):
                if warp == 0:
                    cute.arch.cp_async_bulk_commit_group()
                    cute.arch.cp_async_bulk_wait_group(0, read=True)
            tmem.relinquish_alloc_permit()
            pipeline.NamedBarrier(1, CONVERTERS).arrive_and_wait()
            tmem.free(base)


def run(m, n, k, narrow, scaled=False, along_m=False, rows=TILE[0], tma_store=False):
    values = torch.randint(-8, 8, (m, k, 1), dtype=torch.int8)
    w = values.permute(2, 1, 0).contiguous().permute(2, 1, 0) if along_m else values
    if narrow is cutlass.Int4:
        w = ((w[:, ::2] & 15) | (w[:, 1::2] << 4)).view(torch.uint8)  # the first in the low half
    w, values = w.cuda(), values.cuda()
    b = torch.randint(-2, 3, (n, k, 1)).half().cuda()
    d = torch.zeros(m, n, 1).cuda()
    scale, want = None, values[:, :, 0].float() @ b[:, :, 0].float().T
    if scaled:
        factors = (2.0 ** torch.randint(-2, 3, (1, k // GROUP, m))).half().cuda().permute(2, 1, 0)
        want = (values[:, :, 0].float() * factors[:, :, 0].float().repeat_interleave(GROUP, 1)) @ b[:, :, 0].float().T
        scale = from_dlpack(factors, assumed_align=16)
    stream = cuda.CUstream(torch.cuda.current_stream().cuda_stream)
    w, b, to = (from_dlpack(x, assumed_align=16) for x in (w, b, d))
    MixedInputGemm(narrow, rows, tma_store)(w, scale, b, to, stream)
    torch.cuda.synchronize()
    assert torch.equal(d[:, :, 0], want), (m, n, k, scaled, along_m)


if __name__ == "__main__":
    torch.manual_seed(0)
    run(256, 64, 256, cutlass.Int8)
    run(128, 128, 128, cutlass.Int4, scaled=True, tma_store=True)
    run(128, 64, 128, cutlass.Int8, along_m=True)
    run(64, 64, 64, cutlass.Int8, rows=64)
    print("PASS")
