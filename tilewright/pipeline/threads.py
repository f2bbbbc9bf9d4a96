"""Pipelines between threads: the producers' stores, or their ``cp.async`` copies, fill the stages.

Each stage has two mbarriers. *Full*: all producers have committed. *Empty*: all consumers have released.

    producer:  acquire (wait for empty) -> write the stage -> commit (arrive at full)
    consumer:  wait (for full) -> read the stage -> release (arrive at empty)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tilewright.lang.device.barriers import sync_threads
from tilewright.lang.device.smem import SmemAllocator, name_place
from tilewright.lang.numbers.numeric import Int64
from tilewright.lang.staging.generate import if_generate, not_
from tilewright.pipeline.agents import CooperativeGroup, PipelineOp, PipelineUserType
from tilewright.pipeline.mbarrier_array import MbarrierArray
from tilewright.pipeline.participants import PipelineConsumer, PipelineProducer
from tilewright.pipeline.state import PipelineState, make_pipeline_state


@dataclass(frozen=True, eq=False)
class PipelineAsync:
    """Threads write the stages themselves. Make one with :meth:`create`, in code that all threads of the block run.
    A dataclass, so that pipelines of a program's own may add fields to it.

    ``producer_mask``, ``consumer_mask``: the rank in the cluster of the block whose barriers are signalled by commits
    and releases; None: the own one.

    >>> import tilewright as cutlass
    >>> from tilewright import pipeline, utils
    >>> @cute.jit
    ... def running_sum(t):
    ...     warp, lane, total = cute.arch.warp_idx(), cute.arch.lane_idx(), cutlass.Int32(0)
    ...     ring = utils.SmemAllocator().allocate_tensor(cutlass.Int32, cute.make_layout((32, 2)))  # two stages
    ...     one_warp = pipeline.CooperativeGroup(pipeline.Agent.Thread, 32)
    ...     pipe = pipeline.PipelineAsync.create(num_stages=2, producer_group=one_warp, consumer_group=one_warp)
    ...     producer, consumer = pipe.make_participants()
    ...     if warp == 0:
    ...         for i in cutlass.range(5):
    ...             empty = producer.acquire_and_advance()
    ...             ring[lane, empty.index] = 10 * i + lane
    ...             empty.commit()
    ...         producer.tail()
    ...     else:
    ...         for i in cutlass.range(5):
    ...             full = consumer.wait_and_advance()
    ...             total += ring[lane, full.index]
    ...             full.release()
    ...     return total
    >>> per_thread(running_sum, 64)[32:36]
    [100, 105, 110, 115]
    """

    sync_object_full: MbarrierArray
    sync_object_empty: MbarrierArray
    num_stages: int
    producer_mask: Any
    consumer_mask: Any
    producer_op: ClassVar[PipelineOp] = PipelineOp.AsyncThread

    @classmethod
    def create(
        cls,
        *,
        num_stages: int,
        producer_group: CooperativeGroup,
        consumer_group: CooperativeGroup,
        barrier_storage: Any = None,
        producer_mask: Any = None,
        consumer_mask: Any = None,
        defer_sync: bool = False,
        name: str = "",
        loc: Any = None,
        ip: Any = None,
    ) -> PipelineAsync:
        """A pipeline whose stages are all empty.

        The groups say who commits and who releases: every thread of them, once a stage; the mbarriers' counts follow
        from that.

        Args:
            num_stages: stages of the pipeline, a Python int of at least 1.
            producer_group: the threads that commit.
            consumer_group: the threads that release.
            barrier_storage: ``2 * num_stages`` Int64 in shared memory; allocated here when it is None.
            producer_mask: the rank in the cluster of the block whose barriers commits signal; None: the own one.
            consumer_mask: the same, of releases.
            defer_sync: leave out the barrier of the block at the end, because the caller has one before the first use.
            name: goes before ``full`` and ``empty``, the names of the mbarriers in what the simulator reports.
        """
        if barrier_storage is None:
            barrier_storage = SmemAllocator().allocate_array(Int64, 2 * num_stages)
        full = MbarrierArray(barrier_storage, num_stages, (cls.producer_op, producer_group))
        empty = MbarrierArray(barrier_storage + num_stages, num_stages, (PipelineOp.AsyncThread, consumer_group))
        name_stages(name, barrier_storage, num_stages)
        if not defer_sync:
            sync_threads()
        return cls(full, empty, num_stages, producer_mask, consumer_mask)

    @staticmethod
    def _make_sync_object(
        barrier_storage: Any, num_stages: int, agent: tuple[PipelineOp, CooperativeGroup], tx_count: int = 0
    ) -> MbarrierArray:
        """The mbarriers of the stages; pipelines that libraries derive from this one ask for them by this name."""
        return MbarrierArray(barrier_storage, num_stages, agent, tx_count)

    # -- the producers' side -------------------------------------------------------------------------------------------

    def producer_acquire(
        self, state: PipelineState, try_acquire_token: Any = None, *, loc: Any = None, ip: Any = None
    ) -> None:
        """Wait until the stage is empty, unless ``try_acquire_token`` says that it is."""
        wait_unless(try_acquire_token, self.sync_object_empty, state)

    def producer_try_acquire(self, state: PipelineState, *, loc: Any = None, ip: Any = None) -> Any:
        """Whether the stage is empty: a token for :meth:`producer_acquire`."""
        return self.sync_object_empty.try_wait(state.index, state.phase)

    def producer_commit(self, state: PipelineState, *, loc: Any = None, ip: Any = None) -> None:
        """This thread has written its part of the stage."""
        self.sync_object_full.arrive(state.index, self.producer_mask)

    def producer_tail(self, state: PipelineState, *, loc: Any = None, ip: Any = None) -> None:
        """Wait until the consumers have released every stage. ``state`` stays where it is.

        The last releases then arrive at a block that is still there, which matters in a cluster.
        """
        ahead = state.clone()
        for _stage in range(self.num_stages):
            self.producer_acquire(ahead)
            ahead.advance()

    def producer_get_barrier(self, state: PipelineState, *, loc: Any = None, ip: Any = None) -> Any:
        """The mbarrier that says that the stage is full."""
        return self.sync_object_full.get_barrier(state.index)

    def consumer_get_barrier(self, state: PipelineState, *, loc: Any = None, ip: Any = None) -> Any:
        """The mbarrier that says that the stage is empty."""
        return self.sync_object_empty.get_barrier(state.index)

    # -- the consumers' side -------------------------------------------------------------------------------------------

    def consumer_wait(
        self, state: PipelineState, try_wait_token: Any = None, *, loc: Any = None, ip: Any = None
    ) -> None:
        """Wait until the stage is full, unless ``try_wait_token`` says that it is."""
        wait_unless(try_wait_token, self.sync_object_full, state)

    def consumer_try_wait(self, state: PipelineState, *, loc: Any = None, ip: Any = None) -> Any:
        """Whether the stage is full: a token for :meth:`consumer_wait`."""
        return self.sync_object_full.try_wait(state.index, state.phase)

    def consumer_release(self, state: PipelineState, *, loc: Any = None, ip: Any = None) -> None:
        """This thread has read its part of the stage."""
        self.sync_object_empty.arrive(state.index, self.consumer_mask)

    # -- both, with their states ---------------------------------------------------------------------------------------

    def make_producer(self, *, loc: Any = None, ip: Any = None) -> PipelineProducer:
        """The producers' side with a state of its own."""
        return PipelineProducer(self, make_pipeline_state(PipelineUserType.Producer, self.num_stages))

    def make_consumer(self, *, loc: Any = None, ip: Any = None) -> PipelineConsumer:
        """The consumers' side with a state of its own."""
        return PipelineConsumer(self, make_pipeline_state(PipelineUserType.Consumer, self.num_stages))

    def make_participants(self, *, loc: Any = None, ip: Any = None) -> tuple[PipelineProducer, PipelineConsumer]:
        """Both sides."""
        return self.make_producer(), self.make_consumer()


def name_stages(name: str, barrier_storage: Any, num_stages: int, full: str = "full") -> None:
    """Name the mbarriers of a pipeline in messages of the simulator."""
    before = f"{name} " if name else ""
    name_place(before + full, barrier_storage)
    name_place(f"{before}empty", barrier_storage + num_stages)


class PipelineCpAsync(PipelineAsync):
    """Threads fill the stages with ``cp.async``: a commit arrives when the thread's copies so far have landed. No
    commit groups, no ``cp_async_wait_group``: the consumers' wait covers the copies.

    >>> import tilewright as cutlass
    >>> from tilewright import pipeline, utils
    >>> @cute.jit
    ... def fetch(t, p):
    ...     warp, lane, result = cute.arch.warp_idx(), cute.arch.lane_idx(), cutlass.Int32(0)
    ...     buffer = utils.SmemAllocator().allocate_tensor(cutlass.Int32, cute.make_layout(32))
    ...     atom = cute.make_copy_atom(cute.nvgpu.cpasync.CopyG2SOp(), cutlass.Int32, num_bits_per_copy=32)
    ...     one_warp = pipeline.CooperativeGroup(pipeline.Agent.Thread, 32)
    ...     pipe = pipeline.PipelineCpAsync.create(num_stages=1, producer_group=one_warp, consumer_group=one_warp)
    ...     producer, consumer = pipe.make_participants()
    ...     if warp == 0:
    ...         empty = producer.acquire_and_advance()
    ...         cute.copy(atom, cute.make_tensor(p + lane, 1), cute.make_tensor(buffer.iterator + lane, 1))
    ...         empty.commit()  # counts once the copy has landed: there is no cp_async_wait_group
    ...     else:
    ...         full = consumer.wait_and_advance()
    ...         result = buffer[31 - lane]
    ...         full.release()
    ...     return result
    >>> per_thread(fetch, 64, memory=range(32))[0][32:36]
    [31, 30, 29, 28]
    """

    producer_op: ClassVar[PipelineOp] = PipelineOp.AsyncLoad


def wait_unless(token: Any, barriers: MbarrierArray, state: PipelineState) -> None:
    """Wait for the stage and phase of ``state``, unless ``token`` says that it is complete."""
    if token is None:
        barriers.wait(state.index, state.phase)
    else:
        if_generate(not_(token), lambda: barriers.wait(state.index, state.phase))
