"""One mbarrier for each stage of a pipeline."""

from __future__ import annotations

from typing import Any

from tilewright.errors import ConstraintError
from tilewright.lang.device import mbarriers
from tilewright.lang.device.smem import SmemAllocator, SmemPartition
from tilewright.lang.device.tensor_memory import tcgen05_commit
from tilewright.lang.device.threads import lane_idx, warp_idx
from tilewright.lang.device.warps import elect_one
from tilewright.lang.numbers.numeric import Int64, as_numeric
from tilewright.lang.staging.with_block import inside, only_if
from tilewright.lang.tensors.pointer import Pointer, element_bytes
from tilewright.location_keywords import takes_location
from tilewright.pipeline.agents import CooperativeGroup, PipelineOp
from tilewright.pipeline.sync_object import SyncObject

_ARRIVING = (PipelineOp.AsyncThread, PipelineOp.AsyncLoad, PipelineOp.TmaLoad, PipelineOp.TCGen05Mma)


def alloc_reserved_mbarrier(num_mbarriers: int, *, loc: Any = None, ip: Any = None) -> Pointer:
    """Memory for ``num_mbarriers`` mbarriers (Int64) in the part of shared memory that is for small objects.

    >>> per_thread(lambda t: alloc_reserved_mbarrier(3).alignment)[0]
    1024
    """
    return SmemAllocator().allocate_array(Int64, num_mbarriers, partition=SmemPartition.RESERVED)


@takes_location
class MbarrierArray(SyncObject):
    """``num_stages`` mbarriers that follow each other from ``barrier_storage`` on (Int64, in shared memory).

    ``agent``: how a stage is signalled, and by whom: each phase waits for one arrival of every thread of the group, and
    with ``PipelineOp.TmaLoad`` for ``tx_count`` bytes that each arrival expects.
    Making the array initialises the mbarriers, by the first lane of ``initializing_warp``; others may use them after a
    barrier of the block.
    """

    __slots__ = ("group", "initializing_warp", "num_stages", "op_type", "storage", "tx_count")

    def __init__(
        self,
        barrier_storage: Any,
        num_stages: int,
        agent: tuple[PipelineOp, CooperativeGroup],
        tx_count: int = 0,
        *,
        initialise: bool = True,
        initializing_warp: int = 0,
        loc: Any = None,
        ip: Any = None,
    ) -> None:
        if not isinstance(num_stages, int) or num_stages < 1:
            raise ConstraintError(f"a pipeline of {num_stages!r} stages; their number is a Python int of at least 1")
        if not isinstance(barrier_storage, Pointer) or element_bytes(barrier_storage.dtype) != 8:
            raise ConstraintError(
                f"barrier_storage is {barrier_storage}; a pipeline needs a pointer to Int64 in shared memory: "
                "storage.barriers.data_ptr() of a cute.struct.MemRange[Int64, 2 * num_stages]"
            )
        self.storage, self.num_stages = barrier_storage, num_stages
        self.op_type, self.group = agent
        self.tx_count = tx_count
        self.initializing_warp = initializing_warp
        if self.op_type not in _ARRIVING:
            raise ConstraintError(f"MbarrierArray: {self.op_type} does not arrive at mbarriers here")
        if tx_count and self.op_type is not PipelineOp.TmaLoad:
            raise ConstraintError(
                f"MbarrierArray: tx_count={tx_count} with {self.op_type}; the bytes of a phase, for TmaLoad alone"
            )
        if initialise:
            self.mbarrier_init()

    def recast_to_new_op_type(self, new_op_type: PipelineOp) -> MbarrierArray:
        """The same mbarriers, signalled in another way."""
        count = self.tx_count if new_op_type is PipelineOp.TmaLoad else 0
        return MbarrierArray(self.storage, self.num_stages, (new_op_type, self.group), count, initialise=False)

    def mbarrier_init(self, *, loc: Any = None, ip: Any = None) -> None:
        """The first lane of the initialising warp initialises all mbarriers."""
        first = (warp_idx() == self.initializing_warp) & (lane_idx() == 0)
        arrivals = self.group.arrivals
        with only_if(as_numeric(first).ir_value(), "initialisation of mbarriers"):
            for stage in range(self.num_stages):
                mbarriers.mbarrier_init(self.storage + stage, arrivals)
            mbarriers.mbarrier_init_fence()

    def get_barrier(self, index: Any, *, loc: Any = None, ip: Any = None) -> Pointer:
        """The mbarrier of stage ``index``."""
        return self.storage + index

    def arrive(self, index: Any, dst: Any = None, cta_group: Any = 1, *, loc: Any = None, ip: Any = None) -> None:
        """Signal stage ``index`` in the way of this array; ``dst``: in the block of this rank in the cluster, or by
        MMAs (of ``cta_group``) in those of this mask."""
        if self.op_type is PipelineOp.AsyncLoad:
            self.arrive_cp_async_mbarrier(index)
        elif self.op_type is PipelineOp.TmaLoad:
            if not self.tx_count:
                raise ConstraintError(
                    "MbarrierArray.arrive with PipelineOp.TmaLoad: how many bytes the phase waits for is not known; "
                    "make the array with tx_count=, or call arrive_and_expect_tx(index, tx_count)"
                )
            self.arrive_and_expect_tx(index, self.tx_count)
        elif self.op_type is PipelineOp.TCGen05Mma:
            self.arrive_tcgen05mma(index, dst, cta_group)
        else:
            self.arrive_mbarrier(index, dst)

    def arrive_mbarrier(self, index: Any, dst_rank: Any = None, *, loc: Any = None, ip: Any = None) -> None:
        """This thread arrives."""
        mbarriers.mbarrier_arrive(self.get_barrier(index), dst_rank)

    def arrive_cp_async_mbarrier(self, index: Any, *, loc: Any = None, ip: Any = None) -> None:
        """This thread arrives once its ``cp.async`` so far have landed."""
        mbarriers.cp_async_mbarrier_arrive_noinc(self.get_barrier(index))

    def arrive_and_expect_tx(self, index: Any, tx_count: Any, *, loc: Any = None, ip: Any = None) -> None:
        """One lane of this warp arrives, and the phase waits for ``tx_count`` bytes besides (sm_90)."""
        with elect_one():
            mbarriers.mbarrier_arrive_and_expect_tx(self.get_barrier(index), tx_count)

    def arrive_and_expect_tx_with_dst(
        self, index: Any, tx_count: Any, dst: Any = None, *, loc: Any = None, ip: Any = None
    ) -> None:
        """The same at the mbarrier of the block of rank ``dst`` in the cluster; None: the own one."""
        with elect_one():
            mbarriers.mbarrier_arrive_and_expect_tx(self.get_barrier(index), tx_count, dst)

    def arrive_tcgen05mma(
        self, index: Any, mask: Any = None, cta_group: Any = 1, *, loc: Any = None, ip: Any = None
    ) -> None:
        """One arrival when the ``tcgen05.mma`` that this warp has issued are done (sm_100a), in the blocks of the
        cluster that ``mask`` names, or the own one."""
        ctas = int(getattr(cta_group, "value", cta_group))
        if inside("elect_one block"):
            tcgen05_commit(self.get_barrier(index), mask, ctas)
        else:
            with elect_one():
                tcgen05_commit(self.get_barrier(index), mask, ctas)

    def try_wait(self, index: Any, phase: Any, *, loc: Any = None, ip: Any = None) -> Any:
        """Whether the phase of parity ``phase`` of stage ``index`` is complete."""
        return mbarriers.mbarrier_try_wait(self.get_barrier(index), phase)

    def test_wait(self, index: Any, phase: Any, *, loc: Any = None, ip: Any = None) -> Any:
        """:meth:`try_wait` without a rest."""
        return mbarriers.mbarrier_test_wait(self.get_barrier(index), phase)

    def wait(self, index: Any, phase: Any, *, loc: Any = None, ip: Any = None) -> None:
        """Wait until the phase of parity ``phase`` of stage ``index`` is complete."""
        mbarriers.mbarrier_wait(self.get_barrier(index), phase)

    def arrive_and_wait(self, index: Any, phase: Any, dst: Any = None, *, loc: Any = None, ip: Any = None) -> None:
        self.arrive(index, dst)
        self.wait(index, phase)

    def max(self, *, loc: Any = None, ip: Any = None) -> int:
        """The most arrivals that an mbarrier counts."""
        return (1 << 20) - 1
