"""Products of narrow types on Hopper, a tile a block, a warp that loads and two warpgroups that multiply.

``two_accumulators``: e4m3 by e4m3, whose sums of a few k tiles are added up outside of the tensor core. ``mixed``: A has
8 bits, B 16; A goes from shared memory to registers, becomes B's type there, and enters wgmma from registers.
Split along K: the parts add up in D by TMA reduction."""

from typing import Tuple, Type

import cutlass
import cutlass.cute as cute
import cutlass.pipeline as pipeline
import cutlass.torch as cutlass_torch
import cutlass.utils as utils
import cutlass.utils.hopper_helpers as sm90_utils
import torch
from cutlass.cute.nvgpu import cpasync, warpgroup
from cutlass.cute.runtime import from_dlpack
from cutlass.utils.tensor_helpers import create_cute_tensor_for_fp8, is_fp8_dtype


class NarrowGemm:
    def __init__(self, tile_shape_mn: Tuple[int, int], split_k: int, promotion_interval: int):
        self.tile_shape_mn = tile_shape_mn
        self.split_k = split_k
        self.promotion_interval = promotion_interval
        self.warp_groups = tile_shape_mn[0] // 64
        self.threads_per_cta = 128 * (self.warp_groups + 1)
        self.stages = 4
        self.shared_storage = None

    @cute.jit
    def __call__(self, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, stream):
        self.a_dtype, self.b_dtype, self.c_dtype = a.element_type, b.element_type, c.element_type
        self.mixed = self.a_dtype.width < self.b_dtype.width
        self.mma_dtype = self.b_dtype if self.mixed else self.a_dtype
        row = utils.LayoutEnum.ROW_MAJOR
        k_major = cute.nvgpu.OperandMajorMode.K
        source = warpgroup.OperandSource.RMEM if self.mixed else warpgroup.OperandSource.SMEM
        tiled_mma = sm90_utils.make_trivial_tiled_mma(
            self.mma_dtype,
            self.b_dtype,
            k_major,
            k_major,
            cutlass.Float32,
            (self.warp_groups, 1, 1),
            tiler_mn=(64, self.tile_shape_mn[1]),
            a_source=source,
        )
        tile_k = 4 * cute.size(tiled_mma.shape_mnk, mode=[2])
        self.tile_shape_mnk = (*self.tile_shape_mn, tile_k)
        a_smem = sm90_utils.make_smem_layout_a(row, self.tile_shape_mnk, self.a_dtype, self.stages)
        b_smem = sm90_utils.make_smem_layout_b(row, self.tile_shape_mnk, self.b_dtype, self.stages)
        c_smem = sm90_utils.make_smem_layout_epi(self.c_dtype, row, self.tile_shape_mn, 1)
        load = cpasync.CopyBulkTensorTileG2SOp()
        tma_a, tensor_a = cpasync.make_tiled_tma_atom(
            load, a, cute.select(a_smem, mode=[0, 1]), (self.tile_shape_mnk[0], tile_k)
        )
        tma_b, tensor_b = cpasync.make_tiled_tma_atom(
            load, b, cute.select(b_smem, mode=[0, 1]), (self.tile_shape_mnk[1], tile_k)
        )
        store = cpasync.CopyBulkTensorTileS2GOp()
        if cutlass.const_expr(self.split_k > 1):
            store = cpasync.CopyReduceBulkTensorTileS2GOp(cute.ReductionOp.ADD)
        tma_c, tensor_c = cpasync.make_tiled_tma_atom(store, c, cute.select(c_smem, mode=[0, 1]), self.tile_shape_mn)

        @cute.struct
        class SharedStorage:
            barriers: cute.struct.MemRange[cutlass.Int64, self.stages * 2]
            a: cute.struct.Align[cute.struct.MemRange[self.a_dtype, cute.cosize(a_smem)], 1024]
            b: cute.struct.Align[cute.struct.MemRange[self.b_dtype, cute.cosize(b_smem)], 1024]
            c: cute.struct.Align[cute.struct.MemRange[self.c_dtype, cute.cosize(c_smem)], 1024]

        self.shared_storage = SharedStorage
        tiles = cute.ceil_div((c.shape[0], c.shape[1]), self.tile_shape_mn)
        self.kernel(tma_a, tensor_a, tma_b, tensor_b, tma_c, tensor_c, tiled_mma, a_smem, b_smem, c_smem).launch(
            grid=(*tiles, self.split_k), block=(self.threads_per_cta, 1, 1), stream=stream
        )

    @cute.kernel
    def kernel(
        self,
        tma_a: cute.CopyAtom,
        mA: cute.Tensor,
        tma_b: cute.CopyAtom,
        mB: cute.Tensor,
        tma_c: cute.CopyAtom,
        mC: cute.Tensor,
        tiled_mma: cute.TiledMma,
        a_smem: cute.ComposedLayout,
        b_smem: cute.ComposedLayout,
        c_smem: cute.ComposedLayout,
    ):
        tidx, _, _ = cute.arch.thread_idx()
        bidm, bidn, split = cute.arch.block_idx()
        warp_idx = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        storage = utils.SmemAllocator().allocate(self.shared_storage)
        sA = storage.a.get_tensor(a_smem.outer, swizzle=a_smem.inner)
        sB = storage.b.get_tensor(b_smem.outer, swizzle=b_smem.inner)
        sC = storage.c.get_tensor(c_smem.outer, swizzle=c_smem.inner)
        m, n, k = self.tile_shape_mnk
        gA, gB = cute.local_tile(mA, (m, k), (bidm, None)), cute.local_tile(mB, (n, k), (bidn, None))
        gC = cute.local_tile(mC, (m, n), (bidm, bidn))
        one = cute.make_layout(1)
        tAsA, tAgA = cpasync.tma_partition(tma_a, 0, one, cute.group_modes(sA, 0, 2), cute.group_modes(gA, 0, 2))
        tBsB, tBgB = cpasync.tma_partition(tma_b, 0, one, cute.group_modes(sB, 0, 2), cute.group_modes(gB, 0, 2))
        nbytes = cute.size_in_bytes(self.a_dtype, cute.select(a_smem, mode=[0, 1]))
        nbytes += cute.size_in_bytes(self.b_dtype, cute.select(b_smem, mode=[0, 1]))
        mainloop = pipeline.PipelineTmaAsync.create(
            num_stages=self.stages,
            producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 4 * self.warp_groups),
            tx_count=nbytes,
            barrier_storage=storage.barriers.data_ptr(),
        )
        k_tiles = cute.size(gA, mode=[2])
        share = cute.ceil_div(k_tiles, self.split_k)
        first, last = split * share, cutlass.min((split + 1) * share, k_tiles)
        if warp_idx >= 4 * self.warp_groups:
            cute.arch.setmaxregister_decrease(40)
            if warp_idx == 4 * self.warp_groups:
                state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, self.stages)
                for k_tile in cutlass.range(first, last, unroll=1):
                    mainloop.producer_acquire(state)
                    barrier = mainloop.producer_get_barrier(state)
                    cute.copy(tma_a, tAgA[None, k_tile], tAsA[None, state.index], tma_bar_ptr=barrier)
                    cute.copy(tma_b, tBgB[None, k_tile], tBsB[None, state.index], tma_bar_ptr=barrier)
                    state.advance()
                mainloop.producer_tail(state)
        else:
            cute.arch.setmaxregister_increase(232)
            thr_mma = tiled_mma.get_slice(tidx)
            tCrB = tiled_mma.make_fragment_B(thr_mma.partition_B(sB))
            acc = cute.make_rmem_tensor(thr_mma.partition_shape_C(self.tile_shape_mn), cutlass.Float32)
            state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, self.stages)
            if cutlass.const_expr(self.mixed):
                self.multiply_mixed(mainloop, state, tiled_mma, thr_mma.partition_A(sA), tCrB, acc, last - first)
            else:
                tCrA = tiled_mma.make_fragment_A(thr_mma.partition_A(sA))
                self.multiply_promoted(mainloop, state, tiled_mma, tCrA, tCrB, acc, last - first)
            self.store(tiled_mma, acc, sC, gC, tma_c, tidx, warp_idx)

    @cute.jit
    def multiply_promoted(self, mainloop, state, tiled_mma, tCrA, tCrB, acc, count):
        acc.fill(0.0)
        part = cute.make_fragment_like(acc)
        release = state.clone()
        since = cutlass.Int32(0)
        tiled_mma.set(warpgroup.Field.ACCUMULATE, False)
        for _ in cutlass.range(count, unroll=1):
            mainloop.consumer_wait(state)
            warpgroup.fence()
            for block in cutlass.range_constexpr(cute.size(tCrA, mode=[2])):
                at = (None, None, block, state.index)
                cute.gemm(tiled_mma, part, tCrA[at], tCrB[at], part)
                tiled_mma.set(warpgroup.Field.ACCUMULATE, True)
            warpgroup.commit_group()
            warpgroup.wait_group(0)
            mainloop.consumer_release(release)
            release.advance()
            state.advance()
            since += 1
            if since == self.promotion_interval:
                acc.store(acc.load() + part.load())
                since = 0
                tiled_mma.set(warpgroup.Field.ACCUMULATE, False)
        if since > 0:
            acc.store(acc.load() + part.load())

    @cute.jit
    def multiply_mixed(self, mainloop, state, tiled_mma, tCsA, tCrB, acc, count):
        narrow = cute.make_rmem_tensor(tCsA[None, None, None, 0].shape, self.a_dtype)
        wide = cute.make_rmem_tensor_like(narrow, self.mma_dtype)
        tiled_mma.set(warpgroup.Field.ACCUMULATE, False)
        for _ in cutlass.range(count, unroll=1):
            mainloop.consumer_wait(state)
            cute.autovec_copy(tCsA[None, None, None, state.index], narrow)
            if cutlass.const_expr(is_fp8_dtype(self.a_dtype)):
                wide.store(narrow.load().to(cutlass.Float32).to(self.mma_dtype))
            else:
                wide.store(narrow.load().to(self.mma_dtype))
            warpgroup.fence()
            for block in cutlass.range_constexpr(cute.size(wide, mode=[2])):
                b = tCrB[None, None, block, state.index]
                cute.gemm(tiled_mma, acc, wide[None, None, block], b, acc)
                tiled_mma.set(warpgroup.Field.ACCUMULATE, True)
            warpgroup.commit_group()
            warpgroup.wait_group(0)
            mainloop.consumer_release(state)
            state.advance()

    @cute.jit
    def store(self, tiled_mma, acc, sC, gC, tma_c, tidx, warp_idx):
        atom = sm90_utils.sm90_get_smem_store_op(utils.LayoutEnum.ROW_MAJOR, self.c_dtype, cutlass.Float32)
        copy = cute.make_tiled_copy_C(atom, tiled_mma)
        out = cute.make_rmem_tensor_like(acc, self.c_dtype)
        out.store(acc.load().to(self.c_dtype))
        cute.copy(copy, copy.retile(out), copy.get_slice(tidx).partition_D(sC[None, None, 0]))
        cute.arch.fence_view_async_shared()
        pipeline.arrive_and_wait(barrier_id=1, num_threads=128 * self.warp_groups)
        tCsC, tCgC = cpasync.tma_partition(
            tma_c, 0, cute.make_layout(1), cute.group_modes(sC[None, None, 0], 0, 2), cute.group_modes(gC, 0, 2)
        )
        if warp_idx == 0:
            cute.copy(tma_c, tCsC, tCgC)
            cute.arch.cp_async_bulk_commit_group()
            cute.arch.cp_async_bulk_wait_group(0, read=True)


def matrix(rows: int, columns: int, dtype: Type[cutlass.Numeric], low: int, high: int):
    numbers = torch.randint(low, high, (rows, columns)).float()
    if is_fp8_dtype(dtype):
        # the bits, which every framework keeps; the type is said to CuTe
        bits = torch.empty(rows, columns, dtype=torch.uint8, device="cuda")
        return numbers, create_cute_tensor_for_fp8(bits, dtype, 1, source_f32_tensor=numbers.cuda()), bits
    data = numbers.to(cutlass_torch.dtype(dtype)).cuda()
    tensor = from_dlpack(data, assumed_align=16).mark_layout_dynamic(leading_dim=1)
    return numbers, tensor.mark_compact_shape_dynamic(mode=1, divisibility=16), data


def run(mnk, a_dtype, b_dtype, c_dtype, tile_shape_mn, split_k=1, promotion_interval=2):
    m, n, k = mnk
    torch.manual_seed(2)
    (a, tensor_a, _), (b, tensor_b, _) = matrix(m, k, a_dtype, -3, 4), matrix(n, k, b_dtype, -3, 4)
    _, tensor_c, c = matrix(m, n, c_dtype, 0, 1)
    stream = cutlass_torch.current_stream()
    gemm = cute.compile(NarrowGemm(tile_shape_mn, split_k, promotion_interval), tensor_a, tensor_b, tensor_c, stream)
    gemm(tensor_a, tensor_b, tensor_c, stream)
    torch.cuda.synchronize()
    torch.testing.assert_close(c.cpu().float(), (a @ b.T).to(c.dtype).float(), atol=0, rtol=0)
    print(mnk, a_dtype, b_dtype, "split", split_k)


if __name__ == "__main__":
    e4m3, f16, bf16, f32 = cutlass.Float8E4M3FN, cutlass.Float16, cutlass.BFloat16, cutlass.Float32
    run((136, 80, 656), e4m3, e4m3, f32, (128, 64))
    run((64, 64, 512), cutlass.Float8E5M2, e4m3, f16, (64, 64), promotion_interval=3)
    run((128, 128, 192), cutlass.Int8, f16, f32, (128, 128), split_k=2)
    run((64, 80, 80), e4m3, bf16, f32, (64, 64))
    print("PASS")
