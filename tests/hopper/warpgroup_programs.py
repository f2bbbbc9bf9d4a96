"""One wgmma program for all tests: C = A B^T (+ C) of one block, operands brought to shared memory by plain copies."""

from __future__ import annotations

from typing import Any

import tilewright as cutlass
from tilewright import cute, pipeline, utils
from tilewright.atoms.wgmma import WgmmaAtom
from tilewright.cute.nvgpu import warpgroup
from tilewright.ir.types import F16, F32
from tilewright.utils import hopper_helpers


def swizzled_layout(major: str, kind: str, width: int, tile: tuple[int, ...], order: tuple[int, ...]) -> Any:
    """``tile`` (MN, K) or (MN, K, stages) in atoms of ``kind``."""
    from tilewright.layout import make_smem_atom

    return cute.tile_to_shape(make_smem_atom(major, kind, width), tile, order)


class OneGemm:
    """C (M, N) = A (M, K) B (N, K)^T in one block; ``warpgroups`` share M. ``kinds`` are the shared-memory atoms."""

    def __init__(
        self,
        atom: WgmmaAtom,
        warpgroups: int = 1,
        kinds: tuple[str, str] = ("SW128", "SW128"),
        add: bool = False,
        whole: bool = False,
    ) -> None:
        self.atom, self.warpgroups, self.kinds, self.add, self.whole = atom, warpgroups, kinds, add, whole

    @cute.jit
    def __call__(self, mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor):
        tiled_mma = cute.make_tiled_mma(self.atom, (self.warpgroups, 1, 1))
        self.kernel(mA, mB, mC, tiled_mma).launch(grid=(1, 1, 1), block=(128 * self.warpgroups, 1, 1))

    @cute.kernel
    def kernel(self, mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor, tiled_mma: cute.TiledMma):
        tidx, _, _ = cute.arch.thread_idx()
        smem = cutlass.utils.SmemAllocator()
        shared = []
        for x, major, kind in zip((mA, mB), self.atom.majors, self.kinds, strict=True):
            layout = swizzled_layout(major, kind, x.element_type.width, x.shape, (0, 1))
            sX = smem.allocate_tensor(x.element_type, layout, 1024)
            for i in range(tidx, cute.size(x), 128 * self.warpgroups):
                sX[i] = x[i]
            shared.append(sX)
        cute.arch.fence_view_async_shared()
        cute.arch.sync_threads()

        thr_mma = tiled_mma.get_slice(tidx)
        tCsA, tCsB, tCgC = thr_mma.partition_A(shared[0]), thr_mma.partition_B(shared[1]), thr_mma.partition_C(mC)
        tCrA, tCrB = tiled_mma.make_fragment_A(tCsA), tiled_mma.make_fragment_B(tCsB)
        if cutlass.const_expr(self.atom.source == "RS"):
            cute.autovec_copy(tCsA, tCrA)
        acc = tiled_mma.make_fragment_C(tCgC)
        if cutlass.const_expr(self.add):
            cute.autovec_copy(tCgC, acc)
        tiled_mma.set(warpgroup.Field.ACCUMULATE, self.add)
        warpgroup.fence()
        if cutlass.const_expr(self.whole):
            cute.gemm(tiled_mma, acc, tCrA, tCrB, acc)
        else:
            for k in cutlass.range_constexpr(cute.size(tCrA, mode=[2])):
                cute.gemm(tiled_mma, acc, tCrA[None, None, k], tCrB[None, None, k], acc)
                tiled_mma.set(warpgroup.Field.ACCUMULATE, True)
        warpgroup.commit_group()
        warpgroup.wait_group(0)
        cute.autovec_copy(acc, tCgC)


class Streamed:
    """C = A B^T, warp-specialised: one warpgroup fills a ring of stages, ``consumers`` warpgroups multiply.

    The tile is (64 * consumers, N); M and N of the arrays are whole tiles, one a block; K is whole steps of 64. The
    accumulators stay in flight from one step to the next: a stage is released one step late.
    """

    STEP = 64

    def __init__(self, n: int = 256, consumers: int = 2, stages: int = 4, first: str = "field") -> None:
        self.n, self.consumers, self.stages, self.first = n, consumers, stages, first
        self.atom = WgmmaAtom((64, n, 16), F32, F16, F16)
        self.threads = 128 * (consumers + 1)

    @property
    def tile(self) -> tuple[int, int, int]:
        return (64 * self.consumers, self.n, self.STEP)

    @cute.jit
    def __call__(self, mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor):
        tiled_mma = cute.make_tiled_mma(self.atom, (self.consumers, 1, 1))
        m, n, _ = self.tile
        grid = (mC.shape[0] // m, mC.shape[1] // n, 1)
        self.kernel(mA, mB, mC, tiled_mma).launch(grid=grid, block=(self.threads, 1, 1))

    @cute.kernel
    def kernel(self, mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor, tiled_mma: cute.TiledMma):
        m, n, k = self.tile
        warpgroup_idx = cute.arch.make_warp_uniform(cute.arch.thread_idx()[0] // 128)
        bidm, bidn, _ = cute.arch.block_idx()
        gA, gB = cute.local_tile(mA, (m, k), (bidm, None)), cute.local_tile(mB, (n, k), (bidn, None))
        gC = cute.local_tile(mC, (m, n), (bidm, bidn))
        smem = cutlass.utils.SmemAllocator()
        sA = smem.allocate_tensor(
            cutlass.Float16, swizzled_layout("K", "SW128", 16, (m, k, self.stages), (0, 1, 2)), 1024
        )
        sB = smem.allocate_tensor(
            cutlass.Float16, swizzled_layout("K", "SW128", 16, (n, k, self.stages), (0, 1, 2)), 1024
        )
        pipe = pipeline.PipelineAsync.create(
            num_stages=self.stages,
            producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 128),
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 128 * self.consumers),
        )
        if warpgroup_idx == self.consumers:
            self.produce(pipe, gA, gB, sA, sB)
        else:
            self.consume(pipe, tiled_mma, warpgroup_idx, sA, sB, gC, cute.size(gA, mode=[2]))

    @cute.jit
    def produce(self, pipe: Any, gA: cute.Tensor, gB: cute.Tensor, sA: cute.Tensor, sB: cute.Tensor):
        state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, self.stages)
        tidx = cute.arch.thread_idx()[0] % 128
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Float16, num_bits_per_copy=128)
        copy = cute.make_tiled_copy_tv(atom, cute.make_layout((16, 8), stride=(8, 1)), cute.make_layout((1, 8)))
        thread = copy.get_slice(tidx)
        pairs = [(thread.partition_S(g), thread.partition_D(s)) for g, s in ((gA, sA), (gB, sB))]
        for step in cutlass.range(cute.size(gA, mode=[2])):
            pipe.producer_acquire(state)
            for source, target in pairs:
                cute.copy(copy, source[None, None, None, step], target[None, None, None, state.index])
            cute.arch.fence_view_async_shared()
            pipe.producer_commit(state)
            state.advance()
        pipe.producer_tail(state)

    @cute.jit
    def consume(
        self,
        pipe: Any,
        tiled_mma: cute.TiledMma,
        warpgroup_idx: Any,
        sA: cute.Tensor,
        sB: cute.Tensor,
        gC: cute.Tensor,
        steps: Any,
    ):
        thr_mma = tiled_mma.get_slice(warpgroup_idx * 128)
        tCrA = tiled_mma.make_fragment_A(thr_mma.partition_A(sA))
        tCrB = tiled_mma.make_fragment_B(thr_mma.partition_B(sB))
        tCgC = tiled_mma.get_slice(cute.arch.thread_idx()[0] % (128 * self.consumers)).partition_C(gC)
        acc = tiled_mma.make_fragment_C(tCgC)
        read = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, self.stages)
        release = read.clone()
        if cutlass.const_expr(self.first == "peeled"):
            pipe.consumer_wait(read)
            tiled_mma.set(warpgroup.Field.ACCUMULATE, False)
            self.multiply(tiled_mma, acc, tCrA, tCrB, read.index)
            read.advance()
            for _ in cutlass.range(steps - 1):
                pipe.consumer_wait(read)
                self.multiply(tiled_mma, acc, tCrA, tCrB, read.index)
                warpgroup.wait_group(1)
                pipe.consumer_release(release)
                read.advance()
                release.advance()
        else:
            if cutlass.const_expr(self.first == "zeros"):
                acc.fill(0)
                tiled_mma.set(warpgroup.Field.ACCUMULATE, True)
            else:
                tiled_mma.set(warpgroup.Field.ACCUMULATE, False)
            for step in cutlass.range(steps):
                pipe.consumer_wait(read)
                self.multiply(tiled_mma, acc, tCrA, tCrB, read.index)
                warpgroup.wait_group(1)
                if step > 0:
                    pipe.consumer_release(release)
                    release.advance()
                read.advance()
        warpgroup.wait_group(0)
        pipe.consumer_release(release)
        cute.autovec_copy(acc, tCgC)

    @cute.jit
    def multiply(self, tiled_mma: cute.TiledMma, acc: cute.Tensor, tCrA: cute.Tensor, tCrB: cute.Tensor, stage: Any):
        warpgroup.fence()
        for k in cutlass.range_constexpr(cute.size(tCrA, mode=[2])):
            cute.gemm(tiled_mma, acc, tCrA[None, None, k, stage], tCrB[None, None, k, stage], acc)
            tiled_mma.set(warpgroup.Field.ACCUMULATE, True)
        warpgroup.commit_group()


class WithEpilogue:
    """C = A B^T of 128x128 by two warpgroups; the accumulators go to shared memory (stmatrix where C has 16 bits) and
    from there to C, a tile of 32 columns at a time."""

    def __init__(self, order: str) -> None:
        self.order = utils.LayoutEnum.ROW_MAJOR if order == "row" else utils.LayoutEnum.COL_MAJOR

    @cute.jit
    def __call__(self, mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor):
        k_major = cute.nvgpu.OperandMajorMode.K
        f16, f32 = cutlass.Float16, cutlass.Float32
        tiled_mma = hopper_helpers.make_trivial_tiled_mma(
            f16, f16, k_major, k_major, f32, (2, 1, 1), tiler_mn=(64, 128)
        )
        self.kernel(mA, mB, mC, tiled_mma).launch(grid=(1, 1, 1), block=(256, 1, 1))

    @cute.kernel
    def kernel(self, mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor, tiled_mma: cute.TiledMma):
        tidx, _, _ = cute.arch.thread_idx()
        tile = (mA.shape[0], mB.shape[0], mA.shape[1])
        row = utils.LayoutEnum.ROW_MAJOR
        layout_a = hopper_helpers.make_smem_layout_a(row, tile, mA.element_type, 1)
        layout_b = hopper_helpers.make_smem_layout_b(row, tile, mB.element_type, 1)
        epi_tile = hopper_helpers.compute_tile_shape_or_override(tile, mC.element_type, is_cooperative=True)
        layout_d = hopper_helpers.make_smem_layout_epi(mC.element_type, self.order, epi_tile, 2)
        smem = utils.SmemAllocator()
        sA = smem.allocate_tensor(mA.element_type, layout_a.outer, 1024, swizzle=layout_a.inner)
        sB = smem.allocate_tensor(mB.element_type, layout_b.outer, 1024, swizzle=layout_b.inner)
        sD = smem.allocate_tensor(mC.element_type, layout_d.outer, 1024, swizzle=layout_d.inner)
        for x, sX in ((mA, sA), (mB, sB)):
            for i in range(tidx, cute.size(x), 256):
                sX[i] = x[i]
        cute.arch.fence_view_async_shared()
        cute.arch.sync_threads()
        thr_mma = tiled_mma.get_slice(tidx)
        tCrA = tiled_mma.make_fragment_A(thr_mma.partition_A(sA))
        tCrB = tiled_mma.make_fragment_B(thr_mma.partition_B(sB))
        acc = cute.make_rmem_tensor(tiled_mma.partition_shape_C(tile[:2]), cutlass.Float32)
        tiled_mma.set(warpgroup.Field.ACCUMULATE, False)
        warpgroup.fence()
        for k in cutlass.range_constexpr(cute.size(tCrA, mode=[2])):
            cute.gemm(tiled_mma, acc, tCrA[None, None, k, 0], tCrB[None, None, k, 0], acc)
            tiled_mma.set(warpgroup.Field.ACCUMULATE, True)
        warpgroup.commit_group()
        warpgroup.wait_group(0)
        self.store(tiled_mma, acc, sD, cute.flat_divide(mC, epi_tile), tidx)

    @cute.jit
    def store(self, tiled_mma: cute.TiledMma, acc: cute.Tensor, sD: cute.Tensor, gD: cute.Tensor, tidx: Any):
        dtype = gD.element_type
        atom = hopper_helpers.sm90_get_smem_store_op(self.order, elem_ty_d=dtype, elem_ty_acc=cutlass.Float32)
        matrix = cute.make_copy_atom(cute.nvgpu.warp.StMatrix8x8x16bOp(self.order.is_m_major_c(), 4), cutlass.Float16)
        copy = cute.make_tiled_copy_S(atom, cute.make_tiled_copy_C_atom(matrix, tiled_mma))
        thread = copy.get_slice(tidx)
        tRS_sD = thread.partition_D(sD)  # (R2S, R2S_M, R2S_N, STAGE)
        tRS_rAcc = copy.retile(acc)  # (R2S, R2S_M, R2S_N)
        shape = cute.shape(thread.partition_S(sD))[:3]
        tRS_rD = cute.make_rmem_tensor(shape, dtype)
        count = cute.size(tRS_rD)
        for i in cutlass.range_constexpr(cute.size(gD, mode=[3])):
            for v in cutlass.range_constexpr(count):
                tRS_rD[v] = tRS_rAcc[i * count + v].to(dtype)
            cute.copy(copy, tRS_rD, tRS_sD[None, None, None, i % 2])
            cute.arch.sync_threads()
            source, target = sD[None, None, i % 2], gD[None, None, 0, i]
            for e in range(tidx, cute.size(target), 256):
                target[e] = source[e]


class TwoGemms:
    """O = sum over blocks of (Q K_j^T) V_j: the accumulators of the first product are A of the second, in registers.

    Q (64, D), K (blocks * 64, D), V (blocks * 64, D); with ``overlap`` the first product of the next block is in flight
    while the second of this one is.
    """

    def __init__(self, d: int = 64, overlap: bool = False) -> None:
        self.d, self.overlap = d, overlap

    @cute.jit
    def __call__(self, mQ: cute.Tensor, mK: cute.Tensor, mV: cute.Tensor, mO: cute.Tensor):
        f16, f32 = cutlass.Float16, cutlass.Float32
        k_major, mn_major = cute.nvgpu.OperandMajorMode.K, cute.nvgpu.OperandMajorMode.MN
        make = hopper_helpers.make_trivial_tiled_mma
        first = make(f16, f16, k_major, k_major, f32, (1, 1, 1), (64, 64))
        second = make(f16, f16, k_major, mn_major, f32, (1, 1, 1), (64, self.d), a_source=warpgroup.OperandSource.RMEM)
        self.kernel(mQ, mK, mV, mO, first, second).launch(grid=(1, 1, 1), block=(128, 1, 1))

    @cute.kernel
    def kernel(
        self,
        mQ: cute.Tensor,
        mK: cute.Tensor,
        mV: cute.Tensor,
        mO: cute.Tensor,
        first: cute.TiledMma,
        second: cute.TiledMma,
    ):
        tidx, _, _ = cute.arch.thread_idx()
        blocks = mK.shape[0] // 64
        smem = utils.SmemAllocator()
        tile = swizzled_layout("K", "SW128", 16, (64, self.d), (0, 1))
        sQ = smem.allocate_tensor(cutlass.Float16, tile, 1024)
        sK = smem.allocate_tensor(cutlass.Float16, swizzled_layout("K", "SW128", 16, (64, self.d, blocks), (0, 1, 2)))
        sV = smem.allocate_tensor(cutlass.Float16, swizzled_layout("MN", "SW128", 16, (self.d, 64, blocks), (1, 0, 2)))
        gK, gV = cute.flat_divide(mK, (64, self.d)), cute.flat_divide(mV, (64, self.d))
        for i in range(tidx, cute.size(mQ), 128):
            sQ[i] = mQ[i]
        for i in range(tidx, cute.size(mK), 128):
            row, column, block = i % 64, i // 64 % self.d, i // (64 * self.d)
            sK[row, column, block] = gK[row, column, block, 0]
            sV[column, row, block] = gV[row, column, block, 0]
        cute.arch.fence_view_async_shared()
        cute.arch.sync_threads()
        one, two = first.get_slice(tidx), second.get_slice(tidx)
        rQ, rK = first.make_fragment_A(one.partition_A(sQ)), first.make_fragment_B(one.partition_B(sK))
        rV = second.make_fragment_B(two.partition_B(sV))
        score = cute.make_rmem_tensor(first.partition_shape_C((64, 64)), cutlass.Float32)
        weights = cute.make_rmem_tensor(second.partition_shape_A((64, 64)), cutlass.Float16)
        out = cute.make_rmem_tensor(second.partition_shape_C((64, self.d)), cutlass.Float32)
        out.fill(0)
        self.multiply(first, score, rQ, rK[None, None, None, 0], False)
        warpgroup.wait_group(0)
        for block in cutlass.range(blocks, unroll=1):
            weights.store(score.load().to(cutlass.Float16).reshape(weights.shape))
            ahead = block + 1
            if cutlass.const_expr(self.overlap):
                self.multiply(first, score, rQ, rK[None, None, None, ahead % blocks], False)
                self.multiply(second, out, weights, rV[None, None, None, block], True)
                warpgroup.wait_group(1)
                score.store(score.load() * 1.0)
                warpgroup.wait_group(0)
            else:
                self.multiply(second, out, weights, rV[None, None, None, block], True)
                warpgroup.wait_group(0)
                if ahead < blocks:
                    self.multiply(first, score, rQ, rK[None, None, None, ahead], False)
                    warpgroup.wait_group(0)
        cute.autovec_copy(out, two.partition_C(mO))

    @cute.jit
    def multiply(self, mma: cute.TiledMma, acc: cute.Tensor, a: cute.Tensor, b: cute.Tensor, add: cutlass.Constexpr):
        warpgroup.fence()
        mma.set(warpgroup.Field.ACCUMULATE, add)
        cute.gemm(mma, acc, a, b, acc)
        warpgroup.commit_group()
