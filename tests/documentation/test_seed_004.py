"""After a reader's notes on TMA, multicast and PipelineTmaAsync: the pieces shown there, in the order in which they are
explained, with only their imports changed, inside a dense GEMM of one role; its numbers on every cluster."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
import tilewright.utils as utils
from tests.machines import MACHINES
from tilewright import cuda, pipeline
from tilewright.cute.nvgpu import OperandMajorMode, warpgroup
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import TilewrightError
from tilewright.utils import LayoutEnum
from tilewright.utils import hopper_helpers as sm90_utils


class HopperWgmmaGemmKernel:
    """C = A B^T for A (M, K, L), B (N, K, L), C (M, N, L), all K-major (C: N-major), extents multiples of the tile.

    ``wrong``: arrivals too many in the consumer group.
    """

    def __init__(self, tile_shape_mnk=(64, 64, 64), cluster_shape_mn=(1, 1), ab_stage=2, wrong=0):
        self.tile_shape_mnk, self.cluster_shape_mn, self.ab_stage = tile_shape_mnk, cluster_shape_mn, ab_stage
        self.threads_per_cta = 128 * (tile_shape_mnk[0] // 64)
        self.num_mcast_ctas_a, self.num_mcast_ctas_b = cluster_shape_mn[1], cluster_shape_mn[0]
        self.is_a_mcast, self.is_b_mcast = self.num_mcast_ctas_a > 1, self.num_mcast_ctas_b > 1
        self.wrong = wrong

    @cute.jit
    def __call__(self, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
        self.a_dtype, self.b_dtype = a.element_type, b.element_type
        row = LayoutEnum.ROW_MAJOR
        self.a_smem_layout_staged = sm90_utils.make_smem_layout_a(row, self.tile_shape_mnk, self.a_dtype, self.ab_stage)
        self.b_smem_layout_staged = sm90_utils.make_smem_layout_b(row, self.tile_shape_mnk, self.b_dtype, self.ab_stage)
        op = warpgroup.MmaF16BF16Op(
            self.a_dtype,
            cutlass.Float32,
            (64, self.tile_shape_mnk[1], 16),
            warpgroup.OperandSource.SMEM,
            OperandMajorMode.K,
            OperandMajorMode.K,
        )
        tiled_mma = cute.make_tiled_mma(op, cute.make_layout((self.tile_shape_mnk[0] // 64, 1, 1)))
        self.cta_layout_mnk = cute.make_layout((*self.cluster_shape_mn, 1))

        @cute.struct
        class SharedStorage:
            mainloop_pipeline_array_ptr: cute.struct.MemRange[cutlass.Int64, self.ab_stage * 2]
            sA: cute.struct.Align[cute.struct.MemRange[self.a_dtype, cute.cosize(self.a_smem_layout_staged)], 1024]
            sB: cute.struct.Align[cute.struct.MemRange[self.b_dtype, cute.cosize(self.b_smem_layout_staged)], 1024]

        self.shared_storage = SharedStorage
        tma_atom_a, tma_tensor_a = self._make_tma_atoms_and_tensors(
            a,
            self.a_smem_layout_staged,
            (self.tile_shape_mnk[0], self.tile_shape_mnk[2]),
            self.cluster_shape_mn[1],
        )
        tma_atom_b, tma_tensor_b = self._make_tma_atoms_and_tensors(
            b,
            self.b_smem_layout_staged,
            (self.tile_shape_mnk[1], self.tile_shape_mnk[2]),
            self.cluster_shape_mn[0],
        )
        grid = (a.shape[0] // self.tile_shape_mnk[0], b.shape[0] // self.tile_shape_mnk[1], a.shape[2])
        self.kernel(
            tma_atom_a,
            tma_tensor_a,
            tma_atom_b,
            tma_tensor_b,
            c,
            tiled_mma,
            self.cta_layout_mnk,
            self.a_smem_layout_staged,
            self.b_smem_layout_staged,
        ).launch(grid=grid, block=(self.threads_per_cta, 1, 1), cluster=(*self.cluster_shape_mn, 1))

    @staticmethod
    def _make_tma_atoms_and_tensors(
        tensor: cute.Tensor,
        smem_layout_staged: cute.ComposedLayout,
        smem_tile: tuple[int, int],
        mcast_dim: int,
    ) -> tuple[cute.CopyAtom, cute.Tensor]:
        op = (
            cute.nvgpu.cpasync.CopyBulkTensorTileG2SOp()
            if mcast_dim == 1
            else cute.nvgpu.cpasync.CopyBulkTensorTileG2SMulticastOp()
        )

        # (M, K, NumStage) -> (M, K)
        smem_layout = cute.slice_(smem_layout_staged, (None, None, 0))
        tma_atom, tma_tensor = cute.nvgpu.cpasync.make_tiled_tma_atom(
            op,
            tensor,
            smem_layout,
            smem_tile,
            num_multicast=mcast_dim,
        )
        return tma_atom, tma_tensor

    @cute.kernel
    def kernel(
        self,
        tma_atom_a: cute.CopyAtom,
        mA_mkl: cute.Tensor,
        tma_atom_b: cute.CopyAtom,
        mB_nkl: cute.Tensor,
        mC_mnl: cute.Tensor,
        tiled_mma: cute.TiledMma,
        cta_layout_mnk: cute.Layout,
        a_smem_layout_staged: cute.ComposedLayout,
        b_smem_layout_staged: cute.ComposedLayout,
    ):
        warp_idx = cute.arch.make_warp_uniform(cute.arch.warp_idx())

        if warp_idx == 0:
            cute.nvgpu.cpasync.prefetch_descriptor(tma_atom_a)
            cute.nvgpu.cpasync.prefetch_descriptor(tma_atom_b)

        tidx, _, _ = cute.arch.thread_idx()
        bidx, bidy, bidz = cute.arch.block_idx()
        cta_rank_in_cluster = cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster())
        cluster_coord_mnk = cta_layout_mnk.get_flat_coord(cta_rank_in_cluster)

        tile_coord_mnkl = (bidx, bidy, None, bidz)
        # (bM, bK, RestK)
        gA_mkl = cute.local_tile(mA_mkl, self.tile_shape_mnk, tile_coord_mnkl, proj=(1, None, 1))
        gB_nkl = cute.local_tile(mB_nkl, self.tile_shape_mnk, tile_coord_mnkl, proj=(None, 1, 1))
        gC_mnl = cute.local_tile(mC_mnl, self.tile_shape_mnk, tile_coord_mnkl, proj=(1, 1, None))

        smem = utils.SmemAllocator()
        storage = smem.allocate(self.shared_storage)
        sA = storage.sA.get_tensor(a_smem_layout_staged.outer, swizzle=a_smem_layout_staged.inner)
        sB = storage.sB.get_tensor(b_smem_layout_staged.outer, swizzle=b_smem_layout_staged.inner)

        a_cta_layout = cute.make_layout(cute.slice_(cta_layout_mnk, (0, None, 0)).shape)
        a_cta_crd = cluster_coord_mnk[1]
        sA_for_tma_partition = cute.group_modes(sA, 0, 2)
        gA_for_tma_partition = cute.group_modes(gA_mkl, 0, 2)
        tAsA, tAgA_mkl = cute.nvgpu.cpasync.tma_partition(
            tma_atom_a,
            a_cta_crd,
            a_cta_layout,
            sA_for_tma_partition,
            gA_for_tma_partition,
        )
        b_cta_layout = cute.make_layout(cute.slice_(cta_layout_mnk, (None, 0, 0)).shape)
        b_cta_crd = cluster_coord_mnk[0]
        tBsB, tBgB_nkl = cute.nvgpu.cpasync.tma_partition(
            tma_atom_b, b_cta_crd, b_cta_layout, cute.group_modes(sB, 0, 2), cute.group_modes(gB_nkl, 0, 2)
        )

        a_smem_layout = cute.slice_(a_smem_layout_staged, (None, None, 0))
        b_smem_layout = cute.slice_(b_smem_layout_staged, (None, None, 0))
        tma_copy_bytes = cute.size_in_bytes(self.a_dtype, a_smem_layout) + cute.size_in_bytes(
            self.b_dtype, b_smem_layout
        )

        mainloop_pipeline_producer_group = pipeline.CooperativeGroup(pipeline.Agent.Thread, 1)
        mcast_size = self.num_mcast_ctas_a + self.num_mcast_ctas_b - 1
        num_warps = self.threads_per_cta // 32
        consumer_arrive_cnt = mcast_size * num_warps + self.wrong
        mainloop_pipeline_consumer_group = pipeline.CooperativeGroup(pipeline.Agent.Thread, consumer_arrive_cnt)

        cta_layout_vmnk = cute.make_layout((1, *cta_layout_mnk.shape))
        mainloop_pipeline_array_ptr = storage.mainloop_pipeline_array_ptr.data_ptr()
        mainloop_pipeline = pipeline.PipelineTmaAsync.create(
            barrier_storage=mainloop_pipeline_array_ptr,
            num_stages=self.ab_stage,
            producer_group=mainloop_pipeline_producer_group,
            consumer_group=mainloop_pipeline_consumer_group,
            tx_count=tma_copy_bytes,
            cta_layout_vmnk=cta_layout_vmnk,
        )

        if cute.size(self.cluster_shape_mn) > 1:
            cute.arch.cluster_arrive_relaxed()
            cute.arch.cluster_wait()
        else:
            cute.arch.sync_threads()

        thr_mma = tiled_mma.get_slice(cute.arch.make_warp_uniform(tidx // 128) * 128)
        tCrA = tiled_mma.make_fragment_A(thr_mma.partition_A(sA))  # (MMA, MMA_M, MMA_K, stages)
        tCrB = tiled_mma.make_fragment_B(thr_mma.partition_B(sB))
        accumulators = cute.make_rmem_tensor(
            tiled_mma.get_slice(tidx).partition_shape_C(self.tile_shape_mnk[:2]), cutlass.Float32
        )

        a_mcast_mask = cute.make_layout_image_mask(cta_layout_mnk, cluster_coord_mnk, mode=1) if self.is_a_mcast else 0
        b_mcast_mask = cute.make_layout_image_mask(cta_layout_mnk, cluster_coord_mnk, mode=0) if self.is_b_mcast else 0
        mainloop_producer_state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, self.ab_stage)
        mainloop_consumer_state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, self.ab_stage)
        k_tile_cnt = cute.size(gA_mkl, mode=[2])
        if warp_idx == 0:
            for _ in cutlass.range(cutlass.min(self.ab_stage, k_tile_cnt), unroll=1):
                mainloop_pipeline.producer_acquire(mainloop_producer_state)
                mbar_ptr = mainloop_pipeline.producer_get_barrier(mainloop_producer_state)
                k, stage = mainloop_producer_state.count, mainloop_producer_state.index
                cute.copy(
                    tma_atom_a, tAgA_mkl[(None, k)], tAsA[(None, stage)], tma_bar_ptr=mbar_ptr, mcast_mask=a_mcast_mask
                )
                cute.copy(
                    tma_atom_b, tBgB_nkl[(None, k)], tBsB[(None, stage)], tma_bar_ptr=mbar_ptr, mcast_mask=b_mcast_mask
                )
                mainloop_pipeline.producer_commit(mainloop_producer_state)
                mainloop_producer_state.advance()

        k_pipe_mmas = 0
        tiled_mma.set(warpgroup.Field.ACCUMULATE, False)
        for _k_tile in cutlass.range(k_pipe_mmas, k_tile_cnt, 1, unroll=1):
            mainloop_pipeline.consumer_wait(mainloop_consumer_state)
            warpgroup.fence()
            for k_block in cutlass.range_constexpr(cute.size(tCrA, mode=[2])):
                here = (None, None, k_block, mainloop_consumer_state.index)
                cute.gemm(tiled_mma, accumulators, tCrA[here], tCrB[here], accumulators)
                tiled_mma.set(warpgroup.Field.ACCUMULATE, True)
            warpgroup.commit_group()
            warpgroup.wait_group(0)
            mainloop_pipeline.consumer_release(mainloop_consumer_state)
            mainloop_consumer_state.advance()

            if warp_idx == 0 and mainloop_producer_state.count < k_tile_cnt:
                mainloop_pipeline.producer_acquire(mainloop_producer_state)
                tAgA_k = tAgA_mkl[(None, mainloop_producer_state.count)]
                tAsA_pipe = tAsA[(None, mainloop_producer_state.index)]
                tBgB_k = tBgB_nkl[(None, mainloop_producer_state.count)]
                tBsB_pipe = tBsB[(None, mainloop_producer_state.index)]

                mbar_ptr = mainloop_pipeline.producer_get_barrier(mainloop_producer_state)
                cute.copy(
                    tma_atom_a,
                    tAgA_k,
                    tAsA_pipe,
                    tma_bar_ptr=mbar_ptr,
                    mcast_mask=a_mcast_mask,
                )
                cute.copy(
                    tma_atom_b,
                    tBgB_k,
                    tBsB_pipe,
                    tma_bar_ptr=mbar_ptr,
                    mcast_mask=b_mcast_mask,
                )
                mainloop_pipeline.producer_commit(mainloop_producer_state)
                mainloop_producer_state.advance()

        tCgC = tiled_mma.get_slice(tidx).partition_C(gC_mnl)
        cute.autovec_copy(accumulators, tCgC)
        if warp_idx == 0:
            mainloop_pipeline.producer_tail(mainloop_producer_state)


def matrices(m: int, n: int, k: int, batch: int = 1) -> list[np.ndarray]:
    """A (M, K, L) and B (N, K, L) of small integers, the batch outermost in memory, and C of NaNs."""
    rng = np.random.default_rng(m + n + k)
    a, b = (rng.integers(-3, 4, (batch, rows, k)).astype(np.float16) for rows in (m, n))
    return [x.transpose(1, 2, 0) for x in (a, b, np.full((batch, m, n), np.nan, np.float32))]


# Every pair of a tile with a number of k tiles and with a cluster: fewer than the stages, as many, more.
DENSE = [
    ((64, 64, 64), (1, 1), 5),
    ((64, 64, 64), (2, 1), 1),
    ((64, 64, 64), (1, 2), 2),
    ((64, 64, 64), (2, 2), 5),
    ((64, 64, 64), (4, 1), 2),
    ((128, 32, 64), (1, 1), 1),
    ((128, 32, 64), (2, 1), 5),
    ((128, 32, 64), (1, 2), 5),
    ((128, 32, 64), (2, 2), 2),
    ((128, 32, 64), (4, 1), 1),
]


@MACHINES
@pytest.mark.parametrize(("tile", "cluster", "k_tiles"), DENSE, ids=str)
def test_the_dense_gemm(tile, cluster, k_tiles, machine):
    a, b, c = matrices(tile[0] * cluster[0] * 2, tile[1] * cluster[1], tile[2] * k_tiles, batch=2)
    machine.run(HopperWgmmaGemmKernel(tile, cluster), a, b, c)
    expected = np.einsum("mkl,nkl->mnl", a.astype(np.float64), b.astype(np.float64))
    np.testing.assert_array_equal(c, expected)


@pytest.mark.parametrize("wrong", [-1, 1])
def test_a_number_of_arrivals_that_cannot_be_is_an_error(wrong):
    a, b, c = matrices(128, 64, 64)
    with pytest.raises(TilewrightError, match="arriv"):
        HopperWgmmaGemmKernel(cluster_shape_mn=(2, 1), wrong=wrong)(*map(from_dlpack, (a, b, c)))


@pytest.mark.parametrize("cluster", [(1, 1), (2, 1), (1, 2), (2, 2), (4, 2), (3, 5)], ids=str)
def test_masks_and_arrivals_as_the_notes_derive_them(cluster):
    """A is multicast to the blocks of a row, B to those of a column; a stage is released by the blocks of both."""
    m, n = cluster
    cta_layout_mnk = cute.make_layout((m, n, 1))
    for rank in range(m * n):
        coord = cta_layout_mnk.get_flat_coord(rank)
        assert coord == (rank % m, rank // m, 0)
        row = sum(1 << r for r in range(m * n) if r % m == coord[0])
        column = sum(1 << r for r in range(m * n) if r // m == coord[1])
        assert cute.make_layout_image_mask(cta_layout_mnk, coord, mode=1) == row
        assert cute.make_layout_image_mask(cta_layout_mnk, coord, mode=0) == column
        assert (row | column).bit_count() == n + m - 1 and (row & column) == 1 << rank


@MACHINES
@pytest.mark.parametrize("cluster", [1, 2, 4])
def test_each_block_of_a_row_loads_its_part_of_the_tile(cluster, machine):
    """tma_partition with a CTA's coordinate: the blocks' parts of one stage are disjoint and make up the whole tile."""

    class Parts:
        @cute.jit
        def __call__(self, a: cute.Tensor, out: cute.Tensor):
            layout = cute.make_layout((64, 32, 1), stride=(32, 1, 0))
            op = (
                cute.nvgpu.cpasync.CopyBulkTensorTileG2SOp()
                if cluster == 1
                else cute.nvgpu.cpasync.CopyBulkTensorTileG2SMulticastOp()
            )
            atom, tensor = cute.nvgpu.cpasync.make_tiled_tma_atom(
                op, a, cute.slice_(layout, (None, None, 0)), (64, 32), num_multicast=cluster
            )
            grid = (1, cluster, 1)
            self.kernel(atom, tensor, out, layout).launch(grid=grid, block=(32, 1, 1), cluster=grid)

        @cute.kernel
        def kernel(self, atom: cute.CopyAtom, mA: cute.Tensor, out: cute.Tensor, layout: cutlass.Constexpr):
            lane, rank = cute.arch.thread_idx()[0], cute.arch.block_idx_in_cluster()
            smem = utils.SmemAllocator()
            full = smem.allocate_array(cutlass.Int64, 1)
            sA = smem.allocate_tensor(cutlass.Float32, layout, 128)
            for i in cutlass.range(lane, 64 * 32, 32):
                sA[i] = -1.0
            gA = cute.local_tile(mA, (64, 32), (0, None))
            tAsA, tAgA = cute.nvgpu.cpasync.tma_partition(
                atom, rank, cute.make_layout(cluster), cute.group_modes(sA, 0, 2), cute.group_modes(gA, 0, 2)
            )
            if lane == 0:
                cute.arch.mbarrier_init(full, 1)
                cute.arch.mbarrier_init_fence()
            cute.arch.fence_proxy("async.shared", space="cta")
            cute.arch.sync_warp()
            if lane == 0:
                cute.arch.mbarrier_arrive_and_expect_tx(full, 64 * 32 * 4 // cluster)
            # Only to itself: what is there afterwards is this block's part.
            mask = cutlass.Int16(1) << rank if cutlass.const_expr(cluster > 1) else 0
            cute.copy(atom, tAgA[(None, 0)], tAsA[(None, 0)], tma_bar_ptr=full, mcast_mask=mask)
            cute.arch.mbarrier_wait(full, 0)
            for i in cutlass.range(lane, 64 * 32, 32):
                out[i // 32, i % 32, rank] = sA[(i // 32, i % 32, 0)]

    a = np.arange(64 * 32, dtype=np.float32).reshape(64, 32)
    out = np.full((64, 32, cluster), np.nan, np.float32)
    machine.run(Parts(), a, out)
    mine = out != -1
    assert (mine.sum(axis=2) == 1).all() and (mine.sum(axis=(0, 1)) == 64 * 32 // cluster).all()
    assert (out.max(axis=2) == a).all()


@pytest.mark.parametrize("cluster", [(1, 1), (2, 2)], ids=str)
def test_wgmma_gemm_compiles_for_hopper(cluster):
    arrays = matrices(64 * cluster[0], 64 * cluster[1], 128)
    program = cute.compile(HopperWgmmaGemmKernel(cluster_shape_mn=cluster), *map(from_dlpack, arrays))
    artifact = cuda.compile(program.kernels[0], "sm_90a")
    assert artifact.spills == 0 and "serializ" not in artifact.log
    assert "wgmma.mma_async" in artifact.ptx and "cp.async.bulk.tensor" in artifact.ptx
    assert ("multicast::cluster" in artifact.ptx) == (cluster != (1, 1))
