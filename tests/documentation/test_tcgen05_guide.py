"""Forms that the CuTe DSL's guide to tcgen05 shows: staged layouts for TMA, what its result carries, tiles of the
kernel where an instruction's are meant, names of its own for columns and modules."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import Float4E2M1FN, Float8E4M3FN, Float8E8M0FNU, Float16, Float32, Int16, cute, pipeline, utils
from tilewright.cute.nvgpu import OperandMajorMode, cpasync, tcgen05
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ConstraintError
from tilewright.utils import blackwell_helpers as sm100_utils
from tilewright.utils import blockscaled_layout as blockscaled_utils

K, MN = OperandMajorMode.K, OperandMajorMode.MN
ONE, SMEM = tcgen05.CtaGroup.ONE, tcgen05.OperandSource.SMEM
TILER, STAGES, THREADS = (128, 64, 64), 2, 128


@cute.struct
class Storage:
    ab: cute.struct.MemRange[cutlass.Int64, 2 * STAGES]
    acc: cute.struct.MemRange[cutlass.Int64, 2]
    columns: cutlass.Int32


@cute.kernel
def kernel(tiled_mma: cute.TiledMma, tma_a: cpasync.TmaInfo, tma_b: cpasync.TmaInfo, mC: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    m, n, _ = cute.arch.block_idx()
    coord = (m, n, None)
    smem = utils.SmemAllocator()
    storage = smem.allocate(Storage)
    sA, sB = (
        smem.allocate_tensor(Float16, info.smem_layout.outer, 128, swizzle=info.smem_layout.inner)
        for info in (tma_a, tma_b)
    )
    tmem = utils.TmemAllocator(storage.columns, pipeline.NamedBarrier(barrier_id=1, num_threads=THREADS))
    tmem.allocate(num_cols=64)
    one = pipeline.CooperativeGroup(pipeline.Agent.Thread)
    ab_producer, ab_consumer = cutlass.pipeline.sm100.PipelineTmaUmma.create(
        num_stages=STAGES,
        producer_group=one,
        consumer_group=one,
        tx_count=(TILER[0] + TILER[1]) * TILER[2] * 2,
        barrier_storage=storage.ab.data_ptr(),
    ).make_participants()
    acc_producer, acc_consumer = cutlass.pipeline.sm100.PipelineUmmaAsync.create(
        num_stages=1,
        producer_group=one,
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, THREADS),
        barrier_storage=storage.acc.data_ptr(),
    ).make_participants()
    gA = cute.local_tile(tma_a.tma_tensor, TILER, coord, proj=(1, None, 1))
    gB = cute.local_tile(tma_b.tma_tensor, TILER, coord, proj=(None, 1, 1))
    gC = cute.local_tile(mC, TILER, coord, proj=(1, 1, None))
    thr_mma = tiled_mma.get_slice(0)
    tCgC = thr_mma.partition_C(gC)
    tCrA, tCrB = tiled_mma.make_fragment_A(sA), tiled_mma.make_fragment_B(sB)
    tCtAcc = tiled_mma.make_fragment_C(TILER[:2])  # the tile, not the shape of its partition
    tmem.wait_for_alloc()
    base = tmem.retrieve_ptr(Float32)
    tCtAcc = cute.make_tensor(base, tCtAcc.layout)
    tAsA, tAgA = cpasync.tma_partition(
        tma_a.atom, 0, cute.make_layout(1), cute.group_modes(sA, 0, 3), cute.group_modes(thr_mma.partition_A(gA), 0, 3)
    )
    tBsB, tBgB = cpasync.tma_partition(
        tma_b.atom, 0, cute.make_layout(1), cute.group_modes(sB, 0, 3), cute.group_modes(thr_mma.partition_B(gB), 0, 3)
    )
    if cute.arch.make_warp_uniform(cute.arch.warp_idx()) == 0:
        acc_empty = acc_producer.acquire_and_advance()
        for k in cutlass.range(cute.size(gA, mode=[2])):
            ab_empty = ab_producer.acquire_and_advance()
            cute.copy(tma_a.atom, tAgA[None, ab_empty.count], tAsA[None, ab_empty.index], tma_bar_ptr=ab_empty.barrier)
            cute.copy(tma_b.atom, tBgB[None, ab_empty.count], tBsB[None, ab_empty.index], tma_bar_ptr=ab_empty.barrier)
            ab_full = ab_consumer.wait_and_advance()
            tiled_mma.set(tcgen05.Field.ACCUMULATE, k != 0)
            tile_crd = (None, None, None, ab_full.index)
            cute.gemm(tiled_mma, tCtAcc, tCrA[tile_crd], tCrB[tile_crd], tCtAcc)
            ab_full.release()
        acc_empty.commit()
    acc_full = acc_consumer.wait_and_advance()
    atom = cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x16), Float32)
    t2r = tcgen05.make_tmem_copy(atom, tCtAcc[(None, None), 0, 0])
    thr_t2r = t2r.get_slice(tidx)
    tTR_tAcc = thr_t2r.partition_S(tCtAcc[(None, None), 0, 0])  # (T2R, T2R_M, tiles)
    tTR_gC = thr_t2r.partition_D(tCgC[(None, None), 0, 0])
    tTR_rAcc = cute.make_rmem_tensor(tTR_gC[None, None, 0].shape, Float32)
    for i in cutlass.range(cute.size(tTR_tAcc, mode=[2])):
        cute.copy(t2r, tTR_tAcc[None, None, i], tTR_rAcc)
        cute.autovec_copy(tTR_rAcc, tTR_gC[None, None, i])
    acc_full.release()
    pipeline.sync(barrier_id=1)
    tmem.free(base)


@cute.jit
def gemm(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    tiled_mma = sm100_utils.make_trivial_tiled_mma(Float16, Float16, K, K, Float32, ONE, TILER)
    copy_op = cpasync.CopyBulkTensorTileG2SOp(ONE)
    # The layouts have a mode of stages, which TMA's boxes do not have.
    tma_a = cute.nvgpu.make_tiled_tma_atom_A(
        copy_op, a, sm100_utils.make_smem_layout_a(tiled_mma, TILER, Float16, STAGES), TILER, tiled_mma
    )
    tma_b = cute.nvgpu.make_tiled_tma_atom_B(
        copy_op, b, sm100_utils.make_smem_layout_b(tiled_mma, TILER, Float16, STAGES), TILER, tiled_mma
    )
    grid = cute.ceil_div((*c.layout.shape, 1), TILER[:2])
    kernel(tiled_mma, tma_a, tma_b, c).launch(grid=grid, block=(THREADS, 1, 1))


def test_the_whole_gemm():
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, (rows, 192)).astype(np.float16) for rows in (256, 128))
    c = np.zeros((256, 128), np.float32)
    gemm(*map(from_dlpack, (a, b, c)))
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.T.astype(np.float32))


@cute.jit
def staged_scales(factors: cute.Pointer, found: cutlass.Constexpr):
    tiler = (128, 128, 256)
    mma = sm100_utils.make_blockscaled_trivial_tiled_mma(Float4E2M1FN, K, K, Float8E8M0FNU, 32, ONE, tiler)
    scales = cute.make_tensor(factors, blockscaled_utils.tile_atom_to_shape_SF((256, 512, 1), 32))
    staged = blockscaled_utils.make_smem_layout_sfa(mma, tiler, 32, 3)
    info = cute.nvgpu.make_tiled_tma_atom_A(
        cpasync.CopyBulkTensorTileG2SOp(ONE), scales, staged, tiler, mma, internal_type=Int16
    )
    one = cute.slice_(info.smem_layout, (None, None, None, 0))
    found.extend([info.smem_layout == staged, blockscaled_utils.make_tmem_layout_sfa(mma, tiler, 32, one)])


def test_the_layout_of_scale_factors_keeps_its_stages():
    found: list[object] = []
    factors = np.zeros(256 * 16, np.uint8)
    staged_scales(cute.runtime.make_ptr(Float8E8M0FNU, factors.ctypes.data & ~127, cute.AddressSpace.gmem, 128), found)
    assert found[0] is True
    assert cute.size(found[1]) == 4 * 128 * 256, "the factors of a warp's 32 lanes are in those of all four warps"


def test_names_and_forms_of_operations():
    op = tcgen05.MmaF16BF16Op(Float16, Float32, (128, 256, 16), ONE, SMEM, K, K)
    mma = cute.make_tiled_mma(cute.make_mma_atom(op), (2, 2, 1))
    assert mma.partition_shape_C((256, 512)) == ((128, 256), 1, 1)
    with_k_major = sm100_utils.make_smem_layout_a(cute.make_tiled_mma(op), (128, 256, 64), Float16, 3)
    as_mn_major = sm100_utils.make_smem_layout_a(cute.make_tiled_mma(op), (128, 256, 64), Float16, 3, is_k_major=False)
    assert str(with_k_major) == "Sw<3,4,3> o 0 o ((128,16),1,4,3):((64,1),0,16,8192)"
    assert str(as_mn_major) == "Sw<3,4,3> o 0 o (((64,2),16),1,4,3):(((1,4096),64),0,1024,8192)"
    mxf8 = tcgen05.MmaMXF8F6F4Op(Float8E4M3FN, (128, 256, 32), ONE, SMEM, K, K)  # one type for A and B
    assert mxf8 == tcgen05.MmaMXF8Op(Float8E4M3FN, (128, 256, 32), ONE, SMEM, K, K)
    atom = sm100_utils.make_smem_layout_atom(sm100_utils.get_smem_layout_atom_ab(K, Float16, (128, 64)), Float16)
    tile = cute.make_tiled_mma(op).partition_shape_A((128, 64))
    assert tcgen05.tile_to_mma_shape(atom, tile, order=(1, 2, 3)) == tcgen05.tile_to_mma_shape(atom, tile, (0, 1))
    with pytest.raises(ConstraintError, match="takes the layout that make_smem_layout_atom gives"):
        tcgen05.tile_to_mma_shape(cute.make_swizzle(3, 4, 3), tile)
