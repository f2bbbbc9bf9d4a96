"""Stages that TMA fills, that MMAs read by their descriptors and threads by loads: both release them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute, pipeline, utils
from tilewright.cute.nvgpu import OperandMajorMode, cpasync, tcgen05
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ConstraintError, TilewrightError
from tilewright.pipeline import Agent, CooperativeGroup, PipelineOp, PipelineTmaMultiConsumersAsync
from tilewright.utils import blackwell_helpers as sm100_utils

TILE, STAGES = (128, 32, 64), 2


class SquaresAndSums:
    """D = A A^T of the first 32 rows by MMAs, and the sums of the rows of A by 128 threads, from the same stages."""

    def __init__(
        self,
        releases: tuple[PipelineOp, ...] = (PipelineOp.TCGen05Mma, PipelineOp.AsyncThread),
        readers: int = 128,
        **options: Any,
    ) -> None:
        self.releases, self.readers, self.options = releases, readers, options

    @cute.jit
    def __call__(self, a: cute.Tensor, d: cute.Tensor, sums: cute.Tensor) -> None:
        major = OperandMajorMode.K
        tiled_mma = sm100_utils.make_trivial_tiled_mma(
            cutlass.Float16, cutlass.Float16, major, major, cutlass.Float32, tcgen05.CtaGroup.ONE, TILE[:2]
        )
        a_smem = sm100_utils.make_smem_layout_a(tiled_mma, TILE, cutlass.Float16, STAGES)
        stage = cute.slice_(a_smem, (None, None, None, 0))
        tma, ta = cute.nvgpu.make_tiled_tma_atom_A(
            cpasync.CopyBulkTensorTileG2SOp(), a, stage, TILE, tiled_mma, (1, 1, 1, 1)
        )
        self.nbytes = cute.size_in_bytes(cutlass.Float16, stage)
        self.kernel(tiled_mma, tma, ta, d, sums, a_smem).launch(grid=(1, 1, 1), block=(192, 1, 1))

    @cute.kernel
    def kernel(
        self,
        tiled_mma: cute.TiledMma,
        tma: cute.CopyAtom,
        ta: cute.Tensor,
        d: cute.Tensor,
        sums: cute.Tensor,
        a_smem: cute.ComposedLayout,
    ) -> None:
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        tidx, _, _ = cute.arch.thread_idx()
        smem = utils.SmemAllocator()
        s_a = smem.allocate_tensor(cutlass.Float16, a_smem.outer, 1024, a_smem.inner)
        one, threads = (CooperativeGroup(Agent.Thread, n) for n in (1, 128))
        ring = PipelineTmaMultiConsumersAsync.create(
            num_stages=STAGES,
            consumer_group_umma=one,
            consumer_group_async=CooperativeGroup(Agent.Thread, self.readers),
            tx_count=16,  # each round says how many bytes it has
            name="loads",
            **self.options,
        )
        producer, consumer, _none = ring.make_participants()
        done = pipeline.PipelineUmmaAsync.create(num_stages=1, consumer_group=threads)
        tmem = utils.TmemAllocator(
            smem.allocate_array(cutlass.Int32, 1), barrier_for_retrieve=pipeline.NamedBarrier(2, 160)
        )
        ga = tiled_mma.get_slice(0).partition_A(cute.local_tile(ta, (TILE[0], TILE[2]), (0, None)))
        to, source = cpasync.tma_partition(
            tma, 0, cute.make_layout(1), cute.group_modes(s_a, 0, 3), cute.group_modes(ga, 0, 3)
        )
        acc_layout = tiled_mma.make_fragment_C(tiled_mma.partition_shape_C(TILE[:2])).layout
        tiles = cute.size(source, mode=[1])
        if warp == 5:
            for i in cutlass.range(tiles):
                handle = producer.acquire_and_advance(expected_tx=self.nbytes)
                cute.copy(tma, source[None, i], to[None, handle.index], tma_bar_ptr=handle.barrier)
            producer.tail()
        elif warp == 4:
            tmem.wait_for_alloc()
            acc = cute.make_tensor(tmem.retrieve_ptr(cutlass.Float32), acc_layout)
            first_rows = cute.make_layout(((TILE[1], 16), 1, 4, STAGES), stride=a_smem.outer.stride)
            frag_a = tiled_mma.make_fragment_A(s_a)
            frag_b = tiled_mma.make_fragment_B(cute.make_tensor(s_a.iterator, first_rows))
            state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, 1)
            done.producer_acquire(state)
            tiled_mma.set(tcgen05.Field.ACCUMULATE, False)
            for _ in cutlass.range(tiles):
                handle = consumer.wait_and_advance()
                for block in cutlass.range_constexpr(4):
                    part = (None, None, block, handle.index)
                    cute.gemm(tiled_mma, acc, frag_a[part], frag_b[part], acc)
                    tiled_mma.set(tcgen05.Field.ACCUMULATE, True)
                if cutlass.const_expr(PipelineOp.TCGen05Mma in self.releases):
                    handle.release()  # that of the MMAs
            done.producer_commit(state)
        else:
            tmem.allocate(32)
            tmem.wait_for_alloc()
            base = tmem.retrieve_ptr(cutlass.Float32)
            total = cutlass.Float32(0.0)
            rows = cute.make_layout((TILE[0], (16, 4), STAGES), stride=(64, (1, 16), 64 * TILE[0]))
            by_row = cute.make_tensor(s_a.iterator, rows)
            for _ in cutlass.range(tiles):
                handle = consumer.wait_and_advance()
                for k in cutlass.range_constexpr(TILE[2]):
                    total += by_row[tidx, k, handle.index].to(cutlass.Float32)
                if cutlass.const_expr(PipelineOp.AsyncThread in self.releases):
                    ring.consumer_release(handle.state, PipelineOp.AsyncThread)
            sums[tidx] = total
            state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, 1)
            done.consumer_wait(state)
            acc = cute.make_tensor(base, acc_layout)[(None, None), 0, 0]
            atom = cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x32), cutlass.Float32)
            t2r = tcgen05.make_tmem_copy(atom, acc).get_slice(tidx)
            out = t2r.partition_D(d)
            registers = cute.make_rmem_tensor(out.shape, cutlass.Float32)
            cute.copy(t2r, t2r.partition_S(acc), registers)
            cute.arch.fence_view_async_tmem_load()
            done.consumer_release(state)
            cute.autovec_copy(registers, out)
            tmem.relinquish_alloc_permit()
            pipeline.NamedBarrier(1, 128).arrive_and_wait()
            tmem.free(base)


def run(program: SquaresAndSums) -> None:
    a = np.random.default_rng(0).integers(-3, 4, (TILE[0], 5 * TILE[2])).astype(np.float16)
    d, sums = np.zeros(TILE[:2], np.float32), np.zeros(TILE[0], np.float32)
    program(*(from_dlpack(x, assumed_align=16) for x in (a, d, sums)))
    wide = a.astype(np.float64)
    np.testing.assert_array_equal(d, wide @ wide[: TILE[1]].T)
    np.testing.assert_array_equal(sums, wide.sum(1))


WAYS = [(128, {}), (4, {}), (128, {"enable_multicast_signaling": True, "tidx": None})]
"""Who releases a stage besides the MMAs: threads, warps by their number, and warps of so many threads."""


@pytest.mark.parametrize(("readers", "options"), WAYS)
def test_mmas_and_threads_read_the_same_stages(readers: int, options: dict[str, Any]) -> None:
    run(SquaresAndSums(readers=readers, **options))


def test_warps_of_a_multiple_of_32_release_where_it_is_said() -> None:
    with pytest.raises(TilewrightError, match="deadlock"):  # four warps arrive, 128 arrivals are waited for
        run(SquaresAndSums(readers=128, force_deprecated_per_lane_signaling=False))


@pytest.mark.parametrize("only", [PipelineOp.TCGen05Mma, PipelineOp.AsyncThread])
def test_a_stage_is_empty_when_both_have_released_it(only: PipelineOp) -> None:
    with pytest.raises(TilewrightError, match="(?s)deadlock.*loads empty"):
        run(SquaresAndSums((only,)))


def test_groups_and_releases_that_do_not_fit() -> None:
    one, pair = CooperativeGroup(Agent.Thread, 1), cute.make_layout((2, 1, 1, 1))
    groups = {"consumer_group_umma": one, "consumer_group_async": CooperativeGroup(Agent.Warp, 2)}

    def stages(clusters: cute.Layout | None, **changed: CooperativeGroup) -> None:
        @cute.kernel
        def kernel() -> None:
            ring = PipelineTmaMultiConsumersAsync.create(
                num_stages=2, tx_count=64, cta_layout_vmnk=clusters, **{**groups, **changed}
            )
            assert ring.sync_object_empty.group.size == 65
            ring.consumer_release(ring.make_consumer().wait_and_advance().state, PipelineOp.TmaLoad)

        @cute.jit
        def host() -> None:
            kernel().launch(grid=(1, 1, 1), block=(96, 1, 1))

        cute.compile(host)

    with pytest.raises(ConstraintError, match=r"a stage is released by PipelineOp\.TCGen05Mma, of the warp"):
        stages(None)
    with pytest.raises(ConstraintError, match="its stages are those of one block"):
        stages(pair)
    with pytest.raises(ConstraintError, match=r"CooperativeGroup\(Agent\.Thread, warps that issue MMAs\)"):
        stages(None, consumer_group_umma=CooperativeGroup(Agent.Warp, 1))
