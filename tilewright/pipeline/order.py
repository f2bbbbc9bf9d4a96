"""Groups of threads that take turns, such as two warpgroups, one of which multiplies while the other stores.

Each turn has a barrier for each group. A group waits for its own; when it is done it arrives at that of the next group.
"""

from __future__ import annotations

from typing import Any

from tilewright.errors import ConstraintError
from tilewright.ir.core import Value
from tilewright.lang.device.smem import SmemAllocator, name_place
from tilewright.lang.numbers.numeric import Int32, Int64
from tilewright.lang.tensors.tensor_ssa import where
from tilewright.pipeline.agents import CooperativeGroup, PipelineOp
from tilewright.pipeline.initialise import pipeline_init_arrive, pipeline_init_wait
from tilewright.pipeline.mbarrier_array import MbarrierArray
from tilewright.pipeline.state import PipelineState


class PipelineOrder:
    """``length`` groups take turns at ``depth`` sections of code, in the order of their ``group_id``::

    order = pipeline.PipelineOrder.create(depth=2, length=2, group_id=warpgroup, producer_group=group)
    for tile in ...:
        order.wait();  ...multiply...;  order.arrive()     # section 0: one group at a time
        order.wait();  ...store...;     order.arrive()     # section 1: likewise

    Group 0 goes first. Passes through run-time loops.

    >>> import tilewright as cutlass
    >>> from tilewright import pipeline
    >>> @cute.jit
    ... def log(t, p):  # p[0]: how many entries there are
    ...     warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    ...     group = pipeline.CooperativeGroup(pipeline.Agent.Thread, 32)
    ...     order = pipeline.PipelineOrder.create(depth=1, length=2, group_id=warp, producer_group=group)
    ...     for i in cutlass.range(2):
    ...         order.wait()
    ...         if cute.arch.lane_idx() == 0:
    ...             place = cute.arch.load(p)
    ...             cute.arch.store(p + (1 + place), 10 * i + warp)
    ...             cute.arch.store(p, place + 1)
    ...         cute.arch.sync_warp()
    ...         order.arrive()
    >>> per_thread(log, 64, memory=[0] * 5)[1]  # warp 0, warp 1, warp 0, warp 1
    [4, 0, 1, 10, 11]
    """

    __slots__ = ("depth", "group_id", "length", "state", "sync_object_full")

    def __init__(
        self, sync_object_full: MbarrierArray, depth: int, length: int, group_id: Any, state: PipelineState
    ) -> None:
        self.sync_object_full, self.depth, self.length = sync_object_full, depth, length
        self.group_id, self.state = group_id, state

    @staticmethod
    def create(
        *,
        depth: int,
        length: int,
        group_id: Any,
        producer_group: CooperativeGroup,
        barrier_storage: Any = None,
        defer_sync: bool = False,
        name: str = "",
        loc: Any = None,
        ip: Any = None,
    ) -> PipelineOrder:
        """Called by all threads of the block.

        Args:
            depth: how many sections there are, a Python int of at least 1.
            length: how many groups take turns, a Python int of at least 2.
            group_id: the number of this thread's group, from 0.
            producer_group: the threads of one group, each of which arrives.
            barrier_storage: ``depth * length`` Int64 in shared memory; allocated here when it is None.
            defer_sync: leave out the barrier at the end, because the caller has one before the first use.
        """
        if not isinstance(length, int) or length < 2:
            raise ConstraintError(f"PipelineOrder: {length!r} groups; at least two take turns")
        if isinstance(group_id, int) and not 0 <= group_id < length:
            raise ConstraintError(f"PipelineOrder: group {group_id} of {length} groups")
        if not isinstance(depth, int) or depth < 1:
            raise ConstraintError(f"PipelineOrder: a depth of {depth!r}; how many sections there are, at least 1")
        if barrier_storage is None:
            barrier_storage = SmemAllocator().allocate_array(Int64, depth * length)
        barriers = MbarrierArray(barrier_storage, depth * length, (PipelineOp.AsyncThread, producer_group))
        name_place(f"{name} order".lstrip(), barrier_storage)
        if not defer_sync:
            pipeline_init_arrive()
            pipeline_init_wait()
        # The first group passes at once: the phase before the first one counts as complete.
        first: Any = Int32(group_id) == 0
        phase = where(first, Int32(1), Int32(0)) if not first.is_static else Int32(int(first.value))
        return PipelineOrder(barriers, depth, length, Int32(group_id), PipelineState(depth, 0, 0, phase))

    def get_barrier_for_current_stage_idx(self, group_id: Any, *, loc: Any = None, ip: Any = None) -> Any:
        """Which mbarrier is that of ``group_id`` in the current section."""
        return self.state.index * self.length + group_id

    def wait(self, *, loc: Any = None, ip: Any = None) -> None:
        """Wait for this group's turn."""
        self.sync_object_full.wait(self.get_barrier_for_current_stage_idx(self.group_id), self.state.phase)

    def arrive(self, *, loc: Any = None, ip: Any = None) -> None:
        """It is the next group's turn; this one goes to the next section."""
        following = self.group_id + 1
        following = (
            where(following == self.length, Int32(0), following)
            if not following.is_static
            else (Int32(following.value % self.length))
        )
        self.sync_object_full.arrive(self.get_barrier_for_current_stage_idx(following))
        self.state = self.state.clone()
        self.state.advance()

    def __extract_mlir_values__(self) -> list[Value]:
        return self.state.__extract_mlir_values__()

    def __new_from_mlir_values__(self, values: list[Value]) -> PipelineOrder:
        state = self.state.__new_from_mlir_values__(values)
        return PipelineOrder(self.sync_object_full, self.depth, self.length, self.group_id, state)

    def __carry_key__(self) -> Any:
        return self.sync_object_full
