"""Pipelines between warps on the simulator: exact values under every schedule, and what it says when they are used
wrongly."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.pipeline.programs import Parities, PingPong, SumOfTiles, Transpose, group
from tilewright import pipeline, sim, utils
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ConstraintError, SimulationError

SEEDS = pytest.mark.parametrize("seed", range(4))


def want(blocks: int, n: int, width: int) -> np.ndarray:
    block, i, j = np.ogrid[:blocks, :n, :width]
    return (1000 * block + 100 * i + width - 1 - j).astype(np.float32)


@SEEDS
@pytest.mark.parametrize("how", ["states", "handles", "tokens", "clones"])
@pytest.mark.parametrize(("warps", "stages", "n"), [(1, 3, 8), (2, 2, 5), (1, 1, 4), (1, 4, 2), (1, 2, 0)])
def test_threads_produce_and_consume(seed: int, how: str, warps: int, stages: int, n: int) -> None:
    out = np.full((3, n, 32 * warps), -1, np.float32)
    with sim.options(seed=seed):
        Transpose(warps, stages, how)(from_dlpack(out).mark_layout_dynamic())
    assert (out == want(3, n, 32 * warps)).all()


@SEEDS
@pytest.mark.parametrize(("consumers", "stages", "n"), [(1, 2, 7), (2, 3, 10), (3, 1, 4)])
def test_cp_async_produces_and_several_warps_consume(seed: int, consumers: int, stages: int, n: int) -> None:
    x = np.random.default_rng(0).integers(-9, 9, (n, 128)).astype(np.float32)
    out = np.zeros((consumers, 128), np.float32)
    with sim.options(seed=seed):
        SumOfTiles(consumers, stages)(from_dlpack(x, assumed_align=16), from_dlpack(out))
    assert (out == x.sum(0)).all()


@SEEDS
def test_named_barriers_let_two_halves_take_turns(seed: int) -> None:
    out = np.zeros(6, np.int32)
    with sim.options(seed=seed):
        PingPong()(from_dlpack(out))
    assert out.tolist() == [10, 20] * 3


@SEEDS
def test_a_group_may_be_the_whole_block(seed: int) -> None:
    """Every thread produces and consumes: the neighbour's number, four times through two stages."""

    @cute.kernel
    def kernel(out: cute.Tensor):
        tidx, _, _ = cute.arch.thread_idx()
        ring = utils.SmemAllocator().allocate_tensor(cutlass.Int32, cute.make_layout((96, 2)))
        block = pipeline.CooperativeGroup(pipeline.Agent.ThreadBlock)
        pipe = pipeline.PipelineAsync.create(num_stages=2, producer_group=block, consumer_group=block)
        producer, consumer = pipe.make_participants()
        for i in cutlass.range(4):
            full = producer.acquire_and_advance()
            ring[tidx, full.index] = 100 * i + tidx
            full.commit()
            handle = consumer.wait_and_advance()
            out[i, tidx] = ring[(tidx + 1) % 96, handle.index]
            handle.release()

    @cute.jit
    def run(out: cute.Tensor):
        kernel(out).launch(grid=(1, 1, 1), block=(96, 1, 1))

    out = np.zeros((4, 96), np.int32)
    with sim.options(seed=seed):
        run(from_dlpack(out))
    assert (out == 100 * np.arange(4)[:, None] + (np.arange(96) + 1) % 96).all()


@pytest.mark.tilewright_check("none")  # a race on purpose
@SEEDS
def test_copies_that_no_commit_covers_are_not_waited_for(seed: int) -> None:
    """The consumer reads poison where the producer copies after its commit."""

    @cute.kernel
    def kernel(x: cute.Tensor, out: cute.Tensor, early: cutlass.Constexpr):
        warp, lane = cute.arch.warp_idx(), cute.arch.lane_idx()
        tile = utils.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout(32), 128)
        pipe = pipeline.PipelineCpAsync.create(num_stages=1, producer_group=group(32), consumer_group=group(32))
        producer, consumer = pipe.make_participants()
        atom = cute.make_copy_atom(cute.nvgpu.cpasync.CopyG2SOp(), cutlass.Float32, num_bits_per_copy=32)
        copy = cute.make_tiled_copy_tv(atom, cute.make_layout(32), cute.make_layout(1)).get_slice(lane)
        if warp == 0:
            handle = producer.acquire_and_advance()
            if early:
                handle.commit()
            cute.copy(atom, copy.partition_S(x), copy.partition_D(tile))
            if not early:
                handle.commit()
            producer.tail()
        else:
            handle = consumer.wait_and_advance()
            out[lane] = tile[lane]
            handle.release()

    @cute.jit
    def run(x: cute.Tensor, out: cute.Tensor, early: cutlass.Constexpr):
        kernel(x, out, early).launch(grid=(1, 1, 1), block=(64, 1, 1))

    x, out = np.arange(32, dtype=np.float32), np.zeros((2, 32), np.float32)
    with sim.options(seed=seed):
        for early in (False, True):
            run(from_dlpack(x), from_dlpack(out[int(early)]), early)
    assert (out[0] == x).all() and np.isnan(out[1]).all()


@SEEDS
def test_parities(seed: int) -> None:
    out = np.zeros((5, 32), np.int32)
    with sim.options(seed=seed):
        Parities()(from_dlpack(out))
    assert out[:4].tolist() == [[value] * 32 for value in (0, 1, 1, 0)]
    assert out[4].tolist() == [0] * 16 + [1] * 16


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_the_programs_compile_for_gpus(arch: str) -> None:
    cuda = pytest.importorskip("tilewright.cuda.compiler")
    pytest.importorskip("cuda.bindings.nvrtc")
    f32, i32 = np.zeros((2, 4, 128), np.float32), np.zeros((5, 128), np.int32)
    x = from_dlpack(np.zeros((4, 128), np.float32), assumed_align=16)
    compiled = [
        *(cute.compile(Transpose(2, 3, how), from_dlpack(f32)) for how in ("states", "handles", "tokens")),
        cute.compile(SumOfTiles(2, 3), x, from_dlpack(f32[0])),
        cute.compile(PingPong(), from_dlpack(i32[0])),
        cute.compile(Parities(), from_dlpack(i32)),
    ]
    for executor in compiled:
        for kernel in executor.kernels:
            assert cuda.compile(kernel, arch).cubin


def test_a_state_counts_stages_and_parities() -> None:
    state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, 3)
    seen = []
    for _ in range(7):
        seen.append((int(state.count), int(state.index), int(state.phase)))
        state.advance()
    assert seen == [(0, 0, 0), (1, 1, 0), (2, 2, 0), (3, 0, 1), (4, 1, 1), (5, 2, 1), (6, 0, 0)]
    other = state.clone()
    other.advance()
    state.reset_count()
    assert (int(state.count), int(state.index), int(other.count), int(other.index)) == (0, 1, 8, 2)


# -- used wrongly ------------------------------------------------------------------------------------------------------


class Broken:
    """One producer and one consumer warp, five tiles through two stages, with one thing wrong."""

    def __init__(self, fault: str) -> None:
        self.fault = fault

    @cute.jit
    def __call__(self, out: cute.Tensor):
        self.kernel(out).launch(grid=(1, 1, 1), block=(64, 1, 1))

    @cute.kernel
    def kernel(self, out: cute.Tensor):
        tidx, _, _ = cute.arch.thread_idx()
        ring = utils.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout((32, 2)))
        pipe = pipeline.PipelineAsync.create(
            num_stages=2,
            producer_group=group(16 if self.fault == "count" else 32),
            consumer_group=group(32),
            defer_sync=self.fault == "sync",
        )
        producer, consumer = pipe.make_participants()
        if tidx < 32:
            for i in cutlass.range(5):
                handle = producer.acquire_and_advance()
                ring[tidx, handle.index] = (i + 1).to(cutlass.Float32)
                if cutlass.const_expr(self.fault != "commit"):
                    handle.commit()
        else:
            if cutlass.const_expr(self.fault == "parity"):
                wrong = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, 2)
                consumer = pipeline.PipelineConsumer(pipe, wrong)
            for i in cutlass.range(5):
                handle = consumer.wait_and_advance()
                out[i, tidx - 32] = ring[tidx - 32, handle.index]
                if cutlass.const_expr(self.fault != "release"):
                    handle.release()


def outcome(fault: str, seed: int) -> str:
    out = np.full((5, 32), -1, np.float32)
    with sim.options(seed=seed):
        try:
            Broken(fault)(from_dlpack(out))
        except SimulationError as error:
            return str(error)
    return "right" if (out == np.arange(1, 6)[:, None]).all() else "wrong values"


@SEEDS
def test_the_program_that_is_not_broken(seed: int) -> None:
    assert outcome("nothing", seed) == "right"


@SEEDS
def test_a_missing_commit_is_a_deadlock(seed: int) -> None:
    text = outcome("commit", seed)
    assert text.startswith("deadlock in kernel") and "test_pipelines.py:" in text
    assert "warp 1 (threads 32-63): waiting for the phase of parity 0 of the mbarrier full[0] (in phase" in text
    assert "(in phase 0: 0 of 32 arrivals)" in text


@SEEDS
def test_a_missing_release_is_a_deadlock(seed: int) -> None:
    text = outcome("release", seed)
    assert text.startswith("deadlock in kernel") and "warp 0 (threads 0-31): waiting for the phase of parity 0" in text


@SEEDS
def test_a_wrong_parity_is_found(seed: int) -> None:
    """The consumer does not wait in the first round: it reads unwritten memory, and then the two fall out of step."""
    text = outcome("parity", seed)
    assert text.startswith("deadlock in kernel") and "waiting for the phase of parity 1" in text


@SEEDS
def test_a_wrong_group_is_found(seed: int) -> None:
    assert "32 more arrivals than it expects" not in outcome("nothing", seed)
    assert "mbarrier.arrive: 32 more arrivals than it expects at the mbarrier" in outcome("count", seed)


@SEEDS
def test_a_missing_barrier_after_create_is_found(seed: int) -> None:
    assert "where no mbarrier has been initialised" in outcome("sync", seed)


def test_barriers_and_groups_refuse_wrong_counts() -> None:
    with pytest.raises(ConstraintError, match="0 to 15"):
        pipeline.NamedBarrier(16, 32)
    with pytest.raises(ConstraintError, match="whole warps"):
        pipeline.NamedBarrier(1, 33)
    with pytest.raises(ConstraintError, match="a whole number of at least 1"):
        group(0)
    with pytest.raises(ConstraintError, match="not a multiple of the alignment 4"):
        pipeline.CooperativeGroup(pipeline.Agent.Thread, 6, 4)
    with pytest.raises(ConstraintError, match="stages=0"):
        pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, 0).advance()
    with pytest.raises(ConstraintError, match="belong to one block"):
        _ = pipeline.CooperativeGroup(pipeline.Agent.ThreadBlockCluster).arrivals
    with pytest.raises(ConstraintError, match="a pointer to Int64 in shared memory"):
        pipeline.MbarrierArray(None, 2, (pipeline.PipelineOp.AsyncThread, group(1)))
