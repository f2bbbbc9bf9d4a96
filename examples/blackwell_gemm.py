"""A GEMM for clusters of sm_100a, by MMAs of one block or of pairs of blocks, in the simulator.

    python examples/blackwell_gemm.py [--cluster 4 2] [--ctas 2]

Two blocks of a pair work on one MMA: each has half of the rows of A and of the accumulators, and half of the columns of
B, in its own shared and tensor memory; the block of even rank issues. So each block loads half of B only. Blocks side
by side in the cluster load parts of what they share, and multicast them. ``docs/blackwell.md`` explains the program
for one block, from which this one differs in its clusters alone.

Needs Tilewright. No GPU of this kind has run or timed it.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import tilewright as cutlass
from tilewright import cute, pipeline, utils
from tilewright.cute.nvgpu import cpasync, tcgen05
from tilewright.cute.runtime import from_dlpack
from tilewright.utils import blackwell_helpers

K = tcgen05.OperandMajorMode.K
THREADS = 128


class Gemm:
    """D (M, N) = A (M, K) * B (N, K) of Float16 into Float32 by clusters; ``tile`` is that of one MMA's blocks."""

    def __init__(self, tile: tuple[int, int, int], cluster: tuple[int, int], ctas: int, stages: int = 2) -> None:
        self.tile, self.cluster, self.ctas, self.stages = tile, (*cluster, 1), ctas, stages

    @cute.jit
    def __call__(self, a: cute.Tensor, b: cute.Tensor, d: cute.Tensor):
        group = tcgen05.CtaGroup.TWO if self.ctas == 2 else tcgen05.CtaGroup.ONE
        mma = blackwell_helpers.make_trivial_tiled_mma(
            cutlass.Float16, cutlass.Float16, K, K, cutlass.Float32, group, self.tile[:2]
        )
        layout_a = blackwell_helpers.make_smem_layout_a(mma, self.tile, cutlass.Float16, self.stages)
        layout_b = blackwell_helpers.make_smem_layout_b(mma, self.tile, cutlass.Float16, self.stages)
        self.vmnk = cute.tiled_divide(cute.make_layout(self.cluster), (mma.thr_id.shape,))
        op_a = blackwell_helpers.cluster_shape_to_tma_atom_A(self.cluster, mma.thr_id)
        op_b = blackwell_helpers.cluster_shape_to_tma_atom_B(self.cluster, mma.thr_id)
        one = (None, None, None, 0)
        load_a, tma_a = cute.nvgpu.make_tiled_tma_atom_A(
            op_a, a, cute.slice_(layout_a, one), self.tile, mma, self.vmnk.shape
        )
        load_b, tma_b = cute.nvgpu.make_tiled_tma_atom_B(
            op_b, b, cute.slice_(layout_b, one), self.tile, mma, self.vmnk.shape
        )
        grid = (cute.size(d, mode=[0]) // self.tile[0] * self.ctas, cute.size(d, mode=[1]) // self.tile[1], 1)
        self.kernel(mma, load_a, tma_a, load_b, tma_b, d, layout_a, layout_b).launch(
            grid=grid, block=(THREADS, 1, 1), cluster=self.cluster
        )

    @cute.kernel
    def kernel(
        self,
        mma: cute.TiledMma,
        load_a: cute.CopyAtom,
        a: cute.Tensor,
        load_b: cute.CopyAtom,
        b: cute.Tensor,
        d: cute.Tensor,
        layout_a: cute.ComposedLayout,
        layout_b: cute.ComposedLayout,
    ):
        """Warp 0 of each block loads its part, warp 1 of a leader multiplies, and all warps store."""
        thread, _, _ = cute.arch.thread_idx()
        bm, n, _ = cute.arch.block_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        rank = cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster())
        coord = self.vmnk.get_flat_coord(rank)  # (V, M, N, K)
        m, leads = bm // self.ctas, coord[0] == 0
        smem = utils.SmemAllocator()
        s_a = smem.allocate_tensor(cutlass.Float16, layout_a.outer, 1024, layout_a.inner)  # (MMA, MMA_M, MMA_K, STAGE)
        s_b = smem.allocate_tensor(cutlass.Float16, layout_b.outer, 1024, layout_b.inner)
        tmem = utils.TmemAllocator(
            smem.allocate_array(cutlass.Int32, 1),
            pipeline.NamedBarrier(1, THREADS),
            is_two_cta=self.ctas == 2,
            two_cta_tmem_dealloc_mbar_ptr=smem.allocate_array(cutlass.Int64, 1),
        )
        along_m, along_n = self.cluster[0] // self.ctas, self.cluster[1]
        loads, multiplies = pipeline.PipelineTmaUmma.create(
            num_stages=self.stages,
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, along_m + along_n - 1),
            tx_count=2 * self.tile[2] * (self.tile[0] + self.tile[1]),
            cta_layout_vmnk=self.vmnk,
            defer_sync=True,
        ).make_participants()
        sums_producer, sums_consumer = pipeline.PipelineUmmaAsync.create(
            num_stages=1,
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, THREADS * self.ctas),
            cta_layout_vmnk=self.vmnk,
            defer_sync=True,
        ).make_participants()
        pipeline.pipeline_init_arrive(self.vmnk, is_relaxed=True)
        pipeline.pipeline_init_wait(self.vmnk)
        tmem.allocate(max(32, self.tile[1]))

        part = mma.get_slice(coord[0])
        g_a = part.partition_A(cute.local_tile(a, (self.tile[0], self.tile[2]), (m, None)))  # (MMA, MMA_M, MMA_K, K)
        g_b = part.partition_B(cute.local_tile(b, (self.tile[1], self.tile[2]), (n, None)))
        g_d = part.partition_C(cute.local_tile(d, self.tile[:2], (m, n)))  # (MMA, MMA_M, MMA_N)
        across_a = cute.make_layout(cute.slice_(self.vmnk, (0, 0, None, 0)).shape)
        across_b = cute.make_layout(cute.slice_(self.vmnk, (0, None, 0, 0)).shape)
        to_a, from_a = cpasync.tma_partition(
            load_a, coord[2], across_a, cute.group_modes(s_a, 0, 3), cute.group_modes(g_a, 0, 3)
        )
        to_b, from_b = cpasync.tma_partition(
            load_b, coord[1], across_b, cute.group_modes(s_b, 0, 3), cute.group_modes(g_b, 0, 3)
        )
        mask_a, mask_b = None, None
        if cutlass.const_expr(along_n > 1):
            mask_a = cpasync.create_tma_multicast_mask(self.vmnk, coord, mcast_mode=2)
        if cutlass.const_expr(along_m > 1):
            mask_b = cpasync.create_tma_multicast_mask(self.vmnk, coord, mcast_mode=1)
        part_a, part_b = mma.make_fragment_A(s_a), mma.make_fragment_B(s_b)  # (1, MMA_M, MMA_K, STAGE)
        empty = mma.make_fragment_C(mma.partition_shape_C(self.tile[:2]))
        tmem.wait_for_alloc()
        base = tmem.retrieve_ptr(cutlass.Float32)
        sums = cute.make_tensor(base, empty.layout)  # (MMA, MMA_M, MMA_N)

        tiles = cute.size(g_a, mode=[3])
        if warp == 0:
            for k in cutlass.range(tiles):
                stage = loads.acquire_and_advance()
                cute.copy(
                    load_a, from_a[None, k], to_a[None, stage.index], tma_bar_ptr=stage.barrier, mcast_mask=mask_a
                )
                cute.copy(
                    load_b, from_b[None, k], to_b[None, stage.index], tma_bar_ptr=stage.barrier, mcast_mask=mask_b
                )
            loads.tail()
        elif warp == 1:
            if leads:
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
        atom = cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x16), cutlass.Float32)
        load = tcgen05.make_tmem_copy(atom, sums[(None, None), 0, 0])
        mine = load.get_slice(thread)
        out = mine.partition_D(g_d[(None, None), 0, 0])
        registers = cute.make_rmem_tensor(out.shape, cutlass.Float32)
        cute.copy(load, mine.partition_S(sums[(None, None), 0, 0]), registers)
        cute.arch.fence_view_async_tmem_load()
        cute.autovec_copy(registers, out)
        ready.release()
        if warp == 1:
            sums_producer.tail()  # the threads of both blocks have released the accumulators
        cute.arch.sync_threads()
        tmem.free(base)


def operands(gemm: Gemm, tiles_k: int = 3) -> Any:
    """A, B and D of one cluster: small integers, so that the product is exact."""
    m, n, k = gemm.tile
    rows, columns = m * gemm.cluster[0] // gemm.ctas, n * gemm.cluster[1]
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, (extent, k * tiles_k)).astype(np.float16) for extent in (rows, columns))
    return a, b, np.zeros((rows, columns), np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--cluster", type=int, nargs=2, default=(2, 1), metavar=("M", "N"))
    parser.add_argument("--ctas", type=int, choices=(1, 2), default=2, help="blocks that work on one MMA")
    given = parser.parse_args()
    gemm = Gemm((128 * given.ctas, 64, 64), tuple(given.cluster), given.ctas)
    a, b, d = operands(gemm)
    gemm(*(from_dlpack(x, assumed_align=16) for x in (a, b, d)))
    np.testing.assert_array_equal(d, a.astype(np.float32) @ b.astype(np.float32).T)
    print(f"{d.shape[0]}x{d.shape[1]}x{a.shape[1]} in a cluster of {given.cluster[0]}x{given.cluster[1]} blocks: right")


if __name__ == "__main__":
    main()
