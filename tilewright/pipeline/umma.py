"""Pipelines whose stages ``tcgen05.mma`` reads or fills (sm_100a): it signals by ``tcgen05.commit``.

    operands:     TMA or threads fill a stage -> the MMA warp waits, multiplies, releases: when the MMAs have read it
    accumulators: the MMA warp acquires, multiplies, commits -> threads wait (until the MMAs are done), load, release

The methods of the MMA's side are called by one whole warp, the one that issues the MMAs.
"""

from __future__ import annotations

from typing import Any, ClassVar

from tilewright.errors import ConstraintError
from tilewright.lang.device.tensor_memory import tcgen05_fence_after_thread_sync, tcgen05_fence_before_thread_sync
from tilewright.layout import Layout
from tilewright.pipeline.agents import Agent, CooperativeGroup, PipelineOp
from tilewright.pipeline.initialise import blocks
from tilewright.pipeline.mbarrier_array import MbarrierArray
from tilewright.pipeline.state import PipelineState
from tilewright.pipeline.threads import PipelineAsync
from tilewright.pipeline.tma import ONE, PipelineTmaAsync


class _ReadByMma:
    """The consumer is the warp that issues MMAs."""

    sync_object_empty: MbarrierArray

    def consumer_release(self, state: PipelineState, *, loc: Any = None, ip: Any = None) -> None:
        """The stage is empty when the MMAs that this warp has issued are done."""
        self.sync_object_empty.recast_to_new_op_type(PipelineOp.TCGen05Mma).arrive(state.index)


class PipelineTmaUmma(_ReadByMma, PipelineTmaAsync):
    """TMA fills the stages, ``tcgen05.mma`` reads them. Make one with :meth:`create`.

    >>> import tilewright as cutlass
    >>> from tilewright import cute, pipeline
    >>> from tilewright.testing import per_thread
    >>> @cute.jit
    ... def two_stages(t):
    ...     ring = pipeline.PipelineTmaUmma.create(num_stages=2, tx_count=16)
    ...     return cutlass.Int32(ring.num_stages)
    >>> per_thread(two_stages, 32)[0]
    2
    """

    @classmethod
    def create(  # type: ignore[override]  # other parameters, as documented
        cls, *, num_stages: int, producer_group: CooperativeGroup = ONE, consumer_group: CooperativeGroup = ONE,
        tx_count: int, barrier_storage: Any = None, cta_layout_vmnk: Layout | None = None, defer_sync: bool = False,
        loc: Any = None, ip: Any = None,
    ) -> PipelineTmaUmma:  # fmt: skip
        """As :meth:`PipelineTmaAsync.create`. ``consumer_group``: the one warp that issues the MMAs, whose commit
        is one arrival. ConstraintError for clusters of several blocks, which are not here yet."""
        _one_block(cls, cta_layout_vmnk)
        _one_arrival(cls, "consumer_group", consumer_group)
        return super().create(  # type: ignore[return-value]  # of this class, as cls says
            num_stages=num_stages, producer_group=producer_group, consumer_group=ONE, tx_count=tx_count,
            barrier_storage=barrier_storage, defer_sync=defer_sync,
        )  # fmt: skip


class PipelineAsyncUmma(_ReadByMma, PipelineAsync):
    """Threads fill the stages (operands in shared or tensor memory), ``tcgen05.mma`` reads them. The fences
    ``tcgen05.fence`` that stages in tensor memory need are in its methods.

    >>> import tilewright as cutlass
    >>> from tilewright import cute, pipeline
    >>> from tilewright.testing import per_thread
    >>> @cute.jit
    ... def two_rounds(t):
    ...     one_warp = pipeline.CooperativeGroup(pipeline.Agent.Thread, 32)
    ...     ring = pipeline.PipelineAsyncUmma.create(num_stages=1, producer_group=one_warp)
    ...     producer, consumer = ring.make_participants()
    ...     for _round in cutlass.range(2):
    ...         if t < 32:
    ...             producer.acquire_and_advance().commit()  # the operands are written in between
    ...         else:
    ...             consumer.wait_and_advance().release()  # the MMAs are issued in between
    ...     return t
    >>> per_thread(two_rounds, 64)[:3]
    [0, 1, 2]
    """

    @classmethod
    def create(  # type: ignore[override]  # other parameters, as documented
        cls, *, num_stages: int, producer_group: CooperativeGroup, consumer_group: CooperativeGroup = ONE,
        barrier_storage: Any = None, cta_layout_vmnk: Layout | None = None, defer_sync: bool = False,
        loc: Any = None, ip: Any = None,
    ) -> PipelineAsyncUmma:  # fmt: skip
        """As :meth:`PipelineAsync.create`. ``consumer_group``: the one warp that issues the MMAs. ConstraintError for
        clusters of several blocks, which are not here yet."""
        _one_block(cls, cta_layout_vmnk)
        _one_arrival(cls, "consumer_group", consumer_group)
        return super().create(  # type: ignore[return-value]  # of this class, as cls says
            num_stages=num_stages, producer_group=producer_group, consumer_group=consumer_group,
            barrier_storage=barrier_storage, defer_sync=defer_sync,
        )  # fmt: skip

    def producer_acquire(
        self, state: PipelineState, try_acquire_token: Any = None, *, loc: Any = None, ip: Any = None
    ) -> None:
        """Wait until the MMAs have read the stage."""
        super().producer_acquire(state, try_acquire_token)
        tcgen05_fence_after_thread_sync()

    def producer_commit(self, state: PipelineState, *, loc: Any = None, ip: Any = None) -> None:
        """This thread has written its part of the stage."""
        tcgen05_fence_before_thread_sync()
        super().producer_commit(state)

    def consumer_wait(
        self, state: PipelineState, try_wait_token: Any = None, *, loc: Any = None, ip: Any = None
    ) -> None:
        """Wait until all threads have written the stage."""
        super().consumer_wait(state, try_wait_token)
        tcgen05_fence_after_thread_sync()


class PipelineUmmaAsync(PipelineAsync):
    """``tcgen05.mma`` fills the stages, accumulators in tensor memory; threads read them. The fences ``tcgen05.fence``
    that this needs are in its methods.

    >>> import tilewright as cutlass
    >>> from tilewright import cute, pipeline
    >>> from tilewright.testing import per_thread
    >>> @cute.jit
    ... def two_tiles(t):
    ...     one_warp = pipeline.CooperativeGroup(pipeline.Agent.Thread, 32)
    ...     sums = pipeline.PipelineUmmaAsync.create(num_stages=1, consumer_group=one_warp)
    ...     producer, consumer = sums.make_participants()
    ...     for _tile in cutlass.range(2):
    ...         if t < 32:
    ...             producer.acquire_and_advance().commit()  # the MMAs are issued in between
    ...         else:
    ...             consumer.wait_and_advance().release()  # the accumulators are loaded in between
    ...     return t
    >>> per_thread(two_tiles, 64)[:3]
    [0, 1, 2]
    """

    producer_op: ClassVar[PipelineOp] = PipelineOp.TCGen05Mma

    @classmethod
    def create(  # type: ignore[override]  # other parameters, as documented
        cls, *, num_stages: int, producer_group: CooperativeGroup = ONE, consumer_group: CooperativeGroup,
        barrier_storage: Any = None, cta_layout_vmnk: Layout | None = None, defer_sync: bool = False,
        loc: Any = None, ip: Any = None,
    ) -> PipelineUmmaAsync:  # fmt: skip
        """As :meth:`PipelineAsync.create`. ``producer_group``: the one warp that issues the MMAs. ConstraintError for
        clusters of several blocks, which are not here yet."""
        _one_block(cls, cta_layout_vmnk)
        _one_arrival(cls, "producer_group", producer_group)
        return super().create(  # type: ignore[return-value]  # of this class, as cls says
            num_stages=num_stages, producer_group=producer_group, consumer_group=consumer_group,
            barrier_storage=barrier_storage, defer_sync=defer_sync,
        )  # fmt: skip

    def producer_acquire(
        self, state: PipelineState, try_acquire_token: Any = None, *, loc: Any = None, ip: Any = None
    ) -> None:
        """Wait until the accumulators have been read."""
        super().producer_acquire(state, try_acquire_token)
        tcgen05_fence_after_thread_sync()

    def consumer_wait(
        self, state: PipelineState, try_wait_token: Any = None, *, loc: Any = None, ip: Any = None
    ) -> None:
        """Wait until the MMAs are done."""
        super().consumer_wait(state, try_wait_token)
        tcgen05_fence_after_thread_sync()

    def consumer_release(self, state: PipelineState, *, loc: Any = None, ip: Any = None) -> None:
        """This thread has loaded its part of the accumulators."""
        tcgen05_fence_before_thread_sync()
        super().consumer_release(state)


def _one_block(cls: type, cta_layout_vmnk: Layout | None) -> None:
    if cta_layout_vmnk is not None and blocks(cta_layout_vmnk) > 1:
        raise ConstraintError(
            f"{cls.__name__}: a cluster {cta_layout_vmnk} of several blocks is not here yet; leave cta_layout_vmnk out"
        )


def _one_arrival(cls: type, name: str, group: CooperativeGroup) -> None:
    if group.agent is not Agent.Thread or group.size != 1:
        raise ConstraintError(
            f"{cls.__name__}: {name} is {group}; one warp issues the MMAs, and its commit is one arrival: "
            "CooperativeGroup(Agent.Thread)"
        )
