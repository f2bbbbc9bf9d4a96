"""Stores by TMA out of a ring of shared-memory buffers (sm_90). There is no consumer but the TMA unit.

acquire (the oldest store has read its buffer) -> write the buffer, fence_proxy, barrier -> TMA store -> commit
"""

from __future__ import annotations

from typing import Any

from tilewright.errors import ConstraintError
from tilewright.lang.device.bulk import cp_async_bulk_commit_group, cp_async_bulk_wait_group
from tilewright.pipeline.agents import CooperativeGroup
from tilewright.pipeline.sync_object import SyncObject


class TmaStoreFence(SyncObject):
    """Groups of bulk stores in place of barriers: ``num_stages`` of them may be on their way."""

    __slots__ = ("num_stages",)

    def __init__(self, num_stages: int) -> None:
        if not isinstance(num_stages, int) or num_stages < 1:
            raise ConstraintError(f"TmaStoreFence: {num_stages!r} buffers; a Python int of at least 1")
        self.num_stages = num_stages

    def arrive(self, *, loc: Any = None, ip: Any = None) -> None:
        """The stores issued since the last one form a group."""
        cp_async_bulk_commit_group()

    def wait(self, *, loc: Any = None, ip: Any = None) -> None:
        """Wait until one buffer can be written again: all but ``num_stages - 1`` groups have read theirs."""
        cp_async_bulk_wait_group(self.num_stages - 1, read=True)

    def arrive_and_wait(self, *, loc: Any = None, ip: Any = None) -> None:
        """Close a group, then wait for a buffer."""
        self.arrive()
        self.wait()

    def tail(self, *, loc: Any = None, ip: Any = None) -> None:
        """Wait until all groups have read their buffers."""
        cp_async_bulk_wait_group(0, read=True)

    def get_barrier(self, *, loc: Any = None, ip: Any = None) -> None:
        """TMA stores need no barrier: a thread waits for its own stores."""

    def max(self, *, loc: Any = None, ip: Any = None) -> None:
        """No limit."""


class PipelineTmaStore:
    """``num_stages`` buffers that TMA stores read. All methods are called by the warp that issues the stores; the other
    warps that write a buffer learn through a barrier that it is free::

    store = pipeline.PipelineTmaStore.create(num_stages=2, producer_group=threads)
    for i in ...:
        if warp == 0: store.producer_acquire()
        barrier.arrive_and_wait()                    # the buffer i % 2 is free
        ...write it...; cute.arch.fence_proxy("async.shared", space="cta")
        barrier.arrive_and_wait()                    # it is written
        if warp == 0:
            cute.copy(tma_atom, sD[None, i % 2], gD[None, i])
            store.producer_commit()
    if warp == 0: store.producer_tail()
    """

    __slots__ = ("producer_group", "sync_object")

    def __init__(self, sync_object: TmaStoreFence, producer_group: CooperativeGroup | None = None) -> None:
        self.sync_object, self.producer_group = sync_object, producer_group

    @staticmethod
    def create(
        *, num_stages: int, producer_group: CooperativeGroup | None = None, loc: Any = None, ip: Any = None
    ) -> PipelineTmaStore:
        """``producer_group``: the threads that write the buffers, for the reader of the program: no barrier counts
        them."""
        if producer_group is not None and not isinstance(producer_group, CooperativeGroup):
            raise ConstraintError(f"PipelineTmaStore: producer_group is {producer_group!r}, no CooperativeGroup")
        return PipelineTmaStore(TmaStoreFence(num_stages), producer_group)

    @property
    def num_stages(self) -> int:
        return self.sync_object.num_stages

    def producer_acquire(self, *, loc: Any = None, ip: Any = None) -> None:
        """Wait until the next buffer can be written."""
        self.sync_object.wait()

    def producer_commit(self, *, loc: Any = None, ip: Any = None) -> None:
        """The stores issued since the last commit belong to this buffer."""
        self.sync_object.arrive()

    def producer_tail(self, *, loc: Any = None, ip: Any = None) -> None:
        """Wait until all buffers have been read: before the block ends, or its shared memory serves something else."""
        self.sync_object.tail()
