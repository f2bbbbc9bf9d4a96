"""Programs with pipelines that the simulator's and the GPU's tests share. Each takes arrays and returns nothing."""

from __future__ import annotations

from typing import Any

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import pipeline, utils

STAGES = 3


def group(threads: int) -> pipeline.CooperativeGroup:
    return pipeline.CooperativeGroup(pipeline.Agent.Thread, threads)


class Transpose:
    """Producer warps write ``n`` tiles of ``width`` numbers into a ring of stages; consumer warps read them reversed.

    out[block, i, j] = 1000 * block + 100 * i + (width - 1 - j), where ``width`` is the threads of one side.
    """

    def __init__(self, warps: int = 1, stages: int = STAGES, how: str = "states") -> None:
        self.width, self.stages, self.how = 32 * warps, stages, how

    @cute.jit
    def __call__(self, out: cute.Tensor):
        self.kernel(out).launch(grid=(out.shape[0], 1, 1), block=(2 * self.width, 1, 1))

    @cute.kernel
    def kernel(self, out: cute.Tensor):
        tidx, _, _ = cute.arch.thread_idx()
        bidx, _, _ = cute.arch.block_idx()
        smem = utils.SmemAllocator()
        barriers = smem.allocate_array(cutlass.Int64, 2 * self.stages)
        ring = smem.allocate_tensor(cutlass.Float32, cute.make_layout((self.width, self.stages)), 128)
        pipe = pipeline.PipelineAsync.create(
            num_stages=self.stages,
            producer_group=group(self.width),
            consumer_group=group(self.width),
            barrier_storage=barriers,
        )
        if cutlass.const_expr(self.how == "clones"):
            self.with_clones(pipe, ring, out, tidx, bidx)
        elif cutlass.const_expr(self.how == "states"):
            self.with_states(pipe, ring, out, tidx, bidx)
        elif cutlass.const_expr(self.how == "handles"):
            self.with_handles(pipe, ring, out, tidx, bidx)
        else:
            self.with_tokens(pipe, ring, out, tidx, bidx)

    @cute.jit
    def with_states(self, pipe: Any, ring: cute.Tensor, out: cute.Tensor, tidx: cutlass.Int32, bidx: cutlass.Int32):
        n = out.shape[1]
        if tidx < self.width:
            state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, self.stages)
            for i in cutlass.range(n):
                pipe.producer_acquire(state)
                ring[tidx, state.index] = (1000 * bidx + 100 * i + tidx).to(cutlass.Float32)
                pipe.producer_commit(state)
                state.advance()
            pipe.producer_tail(state)
        else:
            state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, self.stages)
            for _ in cutlass.range(n):
                pipe.consumer_wait(state)
                value = ring[2 * self.width - 1 - tidx, state.index]
                pipe.consumer_release(state)
                out[bidx, state.count, tidx - self.width] = value
                state.advance()

    @cute.jit
    def with_handles(self, pipe: Any, ring: cute.Tensor, out: cute.Tensor, tidx: cutlass.Int32, bidx: cutlass.Int32):
        producer, consumer = pipe.make_participants()
        if tidx < self.width:
            for i in cutlass.range(out.shape[1]):
                handle = producer.acquire_and_advance()
                ring[tidx, handle.index] = (1000 * bidx + 100 * i + tidx).to(cutlass.Float32)
                handle.commit()
            producer.tail()
        else:
            for _ in cutlass.range(out.shape[1]):
                handle = consumer.wait_and_advance()
                out[bidx, handle.count, tidx - self.width] = ring[2 * self.width - 1 - tidx, handle.index]
                handle.release()

    @cute.jit
    def with_clones(self, pipe: Any, ring: cute.Tensor, out: cute.Tensor, tidx: cutlass.Int32, bidx: cutlass.Int32):
        """Two sides of each kind go through one loop: a clone of the consumer names the stage to write to ``out``."""
        producer, consumer = pipe.make_participants()
        if tidx < self.width:
            for i in cutlass.range(out.shape[1]):
                handle = producer.acquire_and_advance()
                ring[tidx, handle.index] = (1000 * bidx + 100 * i + tidx).to(cutlass.Float32)
                handle.commit()
            producer.tail()
        else:
            ahead = consumer.clone()
            for _ in cutlass.range(out.shape[1]):
                handle = consumer.wait_and_advance()
                value = ring[2 * self.width - 1 - tidx, handle.index]
                again = ahead.wait_and_advance()
                out[bidx, again.count, tidx - self.width] = value
                handle.release()

    @cute.jit
    def with_tokens(self, pipe: Any, ring: cute.Tensor, out: cute.Tensor, tidx: cutlass.Int32, bidx: cutlass.Int32):
        producer, consumer = pipe.make_participants()
        if tidx < self.width:
            for i in cutlass.range(out.shape[1]):
                handle = producer.acquire(producer.try_acquire())
                ring[tidx, handle.index] = (1000 * bidx + 100 * i + tidx).to(cutlass.Float32)
                producer.commit()
                producer.advance()
        else:
            token = consumer.try_wait()
            for i in cutlass.range(out.shape[1]):
                handle = consumer.wait_and_advance(token)
                out[bidx, i, tidx - self.width] = ring[2 * self.width - 1 - tidx, handle.index]
                handle.release()
                token = cutlass.Boolean(False)
                if i + 1 < out.shape[1]:
                    token = consumer.try_wait()


class SumOfTiles:
    """One warp copies tiles of 128 numbers with cp.async, the others (all of them read every tile) add them up.

    out[warp, j] = sum over i of x[i, j].
    """

    def __init__(self, consumers: int = 2, stages: int = STAGES) -> None:
        self.consumers, self.stages = consumers, stages

    @cute.jit
    def __call__(self, x: cute.Tensor, out: cute.Tensor):
        self.kernel(x, out).launch(grid=(1, 1, 1), block=(32 * (1 + self.consumers), 1, 1))

    @cute.kernel
    def kernel(self, x: cute.Tensor, out: cute.Tensor):
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        lane = cute.arch.lane_idx()
        smem = utils.SmemAllocator()
        ring = smem.allocate_tensor(cutlass.Float32, cute.make_layout((128, self.stages)), 128)
        pipe = pipeline.PipelineCpAsync.create(
            num_stages=self.stages, producer_group=group(32), consumer_group=group(32 * self.consumers)
        )
        producer, consumer = pipe.make_participants()
        atom = cute.make_copy_atom(cute.nvgpu.cpasync.CopyG2SOp(), cutlass.Float32, num_bits_per_copy=128)
        copy = cute.make_tiled_copy_tv(atom, cute.make_layout(32), cute.make_layout(4)).get_slice(lane)
        if warp == 0:
            for i in cutlass.range(x.shape[0]):
                handle = producer.acquire_and_advance()
                cute.copy(atom, copy.partition_S(x[i, None]), copy.partition_D(ring[None, handle.index]))
                handle.commit()
            producer.tail()
        else:
            total = cute.make_rmem_tensor(4, cutlass.Float32)
            total.fill(0.0)
            for _ in cutlass.range(x.shape[0]):
                handle = consumer.wait_and_advance()
                for k in cutlass.range_constexpr(4):
                    total[k] = total[k] + ring[lane + 32 * k, handle.index]
                handle.release()
            for k in cutlass.range_constexpr(4):
                out[warp - 1, lane + 32 * k] = total[k]


class PingPong:
    """Two halves of a block take turns through two named barriers: out[i] is who wrote the i-th turn."""

    @cute.jit
    def __call__(self, out: cute.Tensor):
        self.kernel(out).launch(grid=(1, 1, 1), block=(128, 1, 1))

    @cute.kernel
    def kernel(self, out: cute.Tensor):
        tidx, _, _ = cute.arch.thread_idx()
        turns = utils.SmemAllocator().allocate_tensor(cutlass.Int32, cute.make_layout(1))
        mine = pipeline.NamedBarrier(barrier_id=1, num_threads=128)
        other = pipeline.NamedBarrier(barrier_id=2, num_threads=128)
        if tidx == 0:
            turns[0] = 0
        pipeline.sync(barrier_id=3)
        if tidx < 64:
            for _ in cutlass.range(out.shape[0] // 2):
                if tidx == 0:
                    out[turns[0]] = 10
                    turns[0] = turns[0] + 1
                mine.arrive()
                other.wait()
        else:
            for _ in cutlass.range(out.shape[0] // 2):
                mine.arrive_and_wait()
                if tidx == 64:
                    out[turns[0]] = 20
                    turns[0] = turns[0] + 1
                other.arrive()
        pipeline.arrive_and_wait(barrier_id=4, num_threads=128)


class Parities:
    """What try_wait and its conditional form say of a fresh mbarrier, and after one phase."""

    @cute.jit
    def __call__(self, out: cute.Tensor):
        self.kernel(out).launch(grid=(1, 1, 1), block=(32, 1, 1))

    @cute.kernel
    def kernel(self, out: cute.Tensor):
        tidx, _, _ = cute.arch.thread_idx()
        bar = utils.SmemAllocator().allocate_array(cutlass.Int64, 1)
        if tidx == 0:
            cute.arch.mbarrier_init(bar, 32)
            cute.arch.mbarrier_init_fence()
        cute.arch.sync_threads()
        for phase in cutlass.range_constexpr(2):
            out[phase, tidx] = cute.arch.mbarrier_try_wait(bar, phase).to(cutlass.Int32)
        cute.arch.sync_threads()
        cute.arch.mbarrier_arrive(bar)
        cute.arch.mbarrier_wait(bar, 0)
        for phase in cutlass.range_constexpr(2):
            out[2 + phase, tidx] = cute.arch.mbarrier_try_wait(bar, phase).to(cutlass.Int32)
        skip = cute.arch.mbarrier_conditional_try_wait(tidx < 16, bar, 1)
        out[4, tidx] = skip.to(cutlass.Int32)
