"""A whole GEMM for sm_100a: TMA loads, tcgen05.mma, commit, loads from tensor memory, stores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute, pipeline, utils
from tilewright.cute.nvgpu import cpasync, tcgen05
from tilewright.cute.runtime import from_dlpack
from tilewright.utils import blackwell_helpers

K, MN = tcgen05.OperandMajorMode.K, tcgen05.OperandMajorMode.MN
TILE, STAGES = (128, 64, 64), 3
TILE_M, TILE_N, TILE_K = TILE


@cute.kernel
def gemm_kernel(
    mma: cute.TiledMma,
    load_a: cute.CopyAtom,
    a: cute.Tensor,
    load_b: cute.CopyAtom,
    b: cute.Tensor,
    d: cute.Tensor,
    layout_a: cute.ComposedLayout,
    layout_b: cute.ComposedLayout,
):
    """Warp 0 loads, warp 1 multiplies, and all four store what is in tensor memory."""
    thread, _, _ = cute.arch.thread_idx()
    m, n, _ = cute.arch.block_idx()
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    smem = utils.SmemAllocator()
    s_a = smem.allocate_tensor(cutlass.Float16, layout_a.outer, 1024, layout_a.inner)  # (MMA, MMA_M, MMA_K, STAGE)
    s_b = smem.allocate_tensor(cutlass.Float16, layout_b.outer, 1024, layout_b.inner)
    tmem = utils.TmemAllocator(smem.allocate_array(cutlass.Int32, 1), pipeline.NamedBarrier(1, 128))
    tmem.allocate(TILE_N)
    loads, multiplies = pipeline.PipelineTmaUmma.create(
        num_stages=STAGES,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
        tx_count=2 * TILE_K * (TILE_M + TILE_N),
    ).make_participants()
    sums_producer, sums_consumer = pipeline.PipelineUmmaAsync.create(
        num_stages=1,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 128),
    ).make_participants()

    block = mma.get_slice(0)
    g_a = block.partition_A(cute.local_tile(a, (TILE_M, TILE_K), (m, None)))  # (MMA, MMA_M, MMA_K, RestK)
    g_b = block.partition_B(cute.local_tile(b, (TILE_N, TILE_K), (n, None)))
    g_d = block.partition_C(cute.local_tile(d, (TILE_M, TILE_N), (m, n)))  # (MMA, MMA_M, MMA_N)
    one = cute.make_layout(1)
    to_a, from_a = cpasync.tma_partition(load_a, 0, one, cute.group_modes(s_a, 0, 3), cute.group_modes(g_a, 0, 3))
    to_b, from_b = cpasync.tma_partition(load_b, 0, one, cute.group_modes(s_b, 0, 3), cute.group_modes(g_b, 0, 3))
    part_a, part_b = mma.make_fragment_A(s_a), mma.make_fragment_B(s_b)  # (1, MMA_M, MMA_K, STAGE)
    empty = mma.make_fragment_C(mma.partition_shape_C((TILE_M, TILE_N)))
    tmem.wait_for_alloc()
    base = tmem.retrieve_ptr(cutlass.Float32)
    sums = cute.make_tensor(base, empty.layout)  # (MMA, MMA_M, MMA_N)

    tiles = cute.size(g_a, mode=[3])
    if warp == 0:
        for k in cutlass.range(tiles):
            stage = loads.acquire_and_advance()
            cute.copy(load_a, from_a[None, k], to_a[None, stage.index], tma_bar_ptr=stage.barrier)
            cute.copy(load_b, from_b[None, k], to_b[None, stage.index], tma_bar_ptr=stage.barrier)
        loads.tail()
    elif warp == 1:
        mma.set(tcgen05.Field.ACCUMULATE, False)
        done = sums_producer.acquire_and_advance()
        for _k in cutlass.range(tiles):
            full = multiplies.wait_and_advance()
            for block_k in cutlass.range_constexpr(cute.size(part_a, mode=[2])):
                step = (None, None, block_k, full.index)
                cute.gemm(mma, sums, part_a[step], part_b[step], sums)
                mma.set(tcgen05.Field.ACCUMULATE, True)
            full.release()
        done.commit()

    tmem.relinquish_alloc_permit()
    ready = sums_consumer.wait_and_advance()
    cute.arch.tcgen05_fence_after_thread_sync()
    atom = cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x32), cutlass.Float32)
    tile = sums[(None, None), 0, 0]
    load = tcgen05.make_tmem_copy(atom, tile)
    mine = load.get_slice(thread)
    out = mine.partition_D(g_d[(None, None), 0, 0])
    registers = cute.make_rmem_tensor(out.shape, cutlass.Float32)
    cute.copy(load, mine.partition_S(tile), registers)
    cute.arch.fence_view_async_tmem_load()
    cute.autovec_copy(registers, out)
    ready.release()
    cute.arch.sync_threads()
    tmem.free(base)


@cute.jit
def gemm(a: cute.Tensor, b: cute.Tensor, d: cute.Tensor, majors: cutlass.Constexpr):
    mma = blackwell_helpers.make_trivial_tiled_mma(
        cutlass.Float16, cutlass.Float16, *majors, cutlass.Float32, tcgen05.CtaGroup.ONE, (TILE_M, TILE_N)
    )
    layout_a = blackwell_helpers.make_smem_layout_a(mma, TILE, cutlass.Float16, STAGES)
    layout_b = blackwell_helpers.make_smem_layout_b(mma, TILE, cutlass.Float16, STAGES)
    op, one_stage = cpasync.CopyBulkTensorTileG2SOp(), (None, None, None, 0)
    load_a, tma_a = cute.nvgpu.make_tiled_tma_atom_A(op, a, cute.slice_(layout_a, one_stage), TILE, mma)
    load_b, tma_b = cute.nvgpu.make_tiled_tma_atom_B(op, b, cute.slice_(layout_b, one_stage), TILE, mma)
    gemm_kernel(mma, load_a, tma_a, load_b, tma_b, d, layout_a, layout_b).launch(
        grid=(cute.size(d, mode=[0]) // TILE_M, cute.size(d, mode=[1]) // TILE_N, 1), block=(128, 1, 1)
    )


def operands(m: int, n: int, k: int, majors: Any) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    given = []
    for extent, major in ((m, majors[0]), (n, majors[1])):
        whole = rng.integers(-3, 4, (extent, k)).astype(np.float16)
        given.append(whole if major is K else np.asfortranarray(whole))
    return (*given, np.zeros((m, n), np.float32))


@pytest.mark.parametrize("majors", [(K, K), (MN, K), (K, MN), (MN, MN)], ids=lambda pair: "".join(x.name for x in pair))
def test_the_gemm_is_exact(majors: Any) -> None:
    x, w, y = operands(256, 128, 320, majors)
    gemm(*(from_dlpack(z, assumed_align=16) for z in (x, w, y)), majors)
    np.testing.assert_array_equal(y, x.astype(np.float32) @ w.astype(np.float32).T)


@pytest.mark.parametrize("arch", ["sm_100a", "sm_103a"])
def test_the_gemm_is_compiled(arch: str) -> None:
    pytest.importorskip("cuda.bindings.nvrtc")
    from tilewright.cuda import compile as build

    arrays = [from_dlpack(z, assumed_align=16) for z in operands(128, 64, 128, (K, K))]
    made = build(cute.compile(gemm, *arrays, (K, K)).kernels[0], arch)
    assert made.spills == 0 and not made.warnings
    names = ("tcgen05.mma.", "d.shared::cluster.global", "tcgen05.commit.", "tcgen05.ld.")
    assert not [name for name in names if name not in made.ptx]
