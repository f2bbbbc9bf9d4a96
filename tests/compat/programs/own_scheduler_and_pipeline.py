"""Classes of a program's own beside those of the library: a scheduler out of a file next to it, a pipeline with one more
field whose calls are generated branches; sides and handles as annotated arguments and results."""

import os
import sys
from dataclasses import dataclass
from typing import Optional

import cutlass
import cutlass.cute as cute
import torch
from cutlass.cute.runtime import from_dlpack
from cutlass.cutlass_dsl import Boolean, Int32, if_generate
from cutlass.pipeline import (
    Agent,
    CooperativeGroup,
    MbarrierArray,
    PipelineAsync,
    PipelineConsumer,
    PipelineOp,
    PipelineProducer,
    PipelineState,
    agent_sync,
)

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "helpers"))
from rows_scheduler import RowsParams, RowsScheduler


@dataclass(frozen=True)
class OneReleases(PipelineAsync):
    """One lane of the consumers releases a stage."""

    releases: Boolean

    @staticmethod
    def create(*, num_stages: int, producers: CooperativeGroup, barrier_storage: cute.Pointer, lane: Int32):
        storage = barrier_storage.align(min_align=8)
        full = MbarrierArray(storage, num_stages, (PipelineOp.AsyncThread, producers))
        empty = MbarrierArray(
            storage + num_stages, num_stages, (PipelineOp.AsyncThread, CooperativeGroup(Agent.Thread, 1))
        )
        cute.arch.mbarrier_init_fence()
        agent_sync(Agent.ThreadBlock)
        return OneReleases(full, empty, num_stages, None, None, lane == 0)

    def producer_acquire(self, state: PipelineState, try_acquire_token: Optional[Boolean] = None):
        if_generate(
            try_acquire_token is None or try_acquire_token == 0,
            lambda: self.sync_object_empty.wait(state.index, state.phase),
        )

    def consumer_release(self, state: PipelineState):
        cute.arch.sync_warp()
        if_generate(self.releases, lambda: self.sync_object_empty.arrive(state.index, self.consumer_mask))


class DoubleRows:
    @cute.jit
    def __call__(self, x: cute.Tensor, y: cute.Tensor, persistent: cutlass.Constexpr):
        params = RowsParams(persistent, (cute.size(x, mode=[0]), 1, 1))

        @cute.struct
        class Storage:
            barriers: cute.struct.MemRange[cutlass.Int64, 4]
            ring: cute.struct.Align[cute.struct.MemRange[cutlass.Float32, 64], 128]

        self.storage = Storage
        self.kernel(x, y, params).launch(grid=params.grid(), block=[64, 1, 1])

    @cute.kernel
    def kernel(self, x: cute.Tensor, y: cute.Tensor, params: RowsParams):
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        lane = cute.arch.lane_idx()
        storage = cutlass.utils.SmemAllocator().allocate(self.storage)
        ring = storage.ring.get_tensor(cute.make_layout((32, 2)))
        pipe = OneReleases.create(
            num_stages=2,
            producers=CooperativeGroup(Agent.Thread, 32),
            barrier_storage=storage.barriers.data_ptr(),
            lane=lane,
        )
        producer, consumer = pipe.make_participants()
        scheduler = RowsScheduler(params, cute.arch.block_idx()[0])
        work = scheduler.get_current_work()
        if warp == 0:
            while work.is_valid_tile:
                handle = self.load(producer, x[work.tile_idx[0], None], ring, lane)
                handle.commit()
                scheduler.advance_to_next_work()
                work = scheduler.get_current_work()
            producer.tail()
        else:
            while work.is_valid_tile:
                consumer, value = self.read(consumer, ring, lane)
                y[work.tile_idx[0], lane] = value
                scheduler.advance_to_next_work()
                work = scheduler.get_current_work()

    @cute.jit
    def load(
        self, producer: PipelineProducer, row: cute.Tensor, ring: cute.Tensor, lane: Int32
    ) -> PipelineProducer.ImmutableResourceHandle:
        handle = producer.acquire_and_advance()
        ring[lane, handle.index] = row[lane]
        return handle

    @cute.jit
    def read(self, consumer: PipelineConsumer, ring: cute.Tensor, lane: Int32):
        handle = consumer.wait_and_advance()
        value = ring[lane, handle.index] * 2.0
        self.free(handle)
        return consumer, value

    @cute.jit
    def free(self, handle: PipelineConsumer.ImmutableResourceHandle):
        handle.release()


def run(persistent: bool):
    x = torch.arange(7 * 32).float().reshape(7, 32).cuda()
    y = torch.zeros_like(x)
    tensors = [from_dlpack(t).mark_layout_dynamic() for t in (x, y)]
    cute.compile(DoubleRows(), *tensors, persistent)(*tensors)
    torch.testing.assert_close(y.cpu(), 2 * x.cpu())


if __name__ == "__main__":
    run(True)
    run(False)
    print("PASS")
