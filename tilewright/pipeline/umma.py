"""Pipelines whose stages ``tcgen05.mma`` reads or fills (sm_100a): it signals by ``tcgen05.commit``.

    operands:     TMA or threads fill a stage -> the MMA warp waits, multiplies, releases: when the MMAs have read it
    accumulators: the MMA warp acquires, multiplies, commits -> threads wait (until the MMAs are done), load, release

The methods of the MMA's side are called by one whole warp, the one that issues the MMAs.

Of a pair of blocks (mode V of ``cta_layout_vmnk`` is 2) the block of even rank, the leader, issues for both: its full
barrier counts the bytes that TMA brings to both, its MMAs' commits arrive in both, and the threads of both that read
accumulators release them at its barrier.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from tilewright.atoms.tcgen05_sync import Tcgen05Fence
from tilewright.errors import ConstraintError
from tilewright.lang.device.calls import call
from tilewright.lang.device.tensor_memory import CtaGroup
from tilewright.lang.device.threads import WARP_SIZE, block_idx_in_cluster, thread_idx
from tilewright.lang.device.warps import make_warp_uniform
from tilewright.lang.numbers.numeric import Boolean, Int32
from tilewright.lang.staging.generate import if_generate
from tilewright.layout import Layout, size
from tilewright.pipeline.agents import Agent, CooperativeGroup, PipelineOp
from tilewright.pipeline.counts import check_cluster, peers
from tilewright.pipeline.initialise import blocks, pipeline_init_arrive, pipeline_init_wait
from tilewright.pipeline.mbarrier_array import MbarrierArray
from tilewright.pipeline.state import PipelineState
from tilewright.pipeline.threads import PipelineAsync, wait_unless
from tilewright.pipeline.tma import ONE, PipelineTmaAsync, tma_stages
from tilewright.tiled.tma.cluster import commit_mask

if TYPE_CHECKING:
    from tilewright.pipeline.participants import PipelineConsumer, PipelineProducer


class _Cluster(NamedTuple):
    """The place of a block in the cluster of a pipeline. ``leads``: whether this block issues the MMAs; ``leader``:
    the rank of the block that does; ``pair``: the mask of the blocks of one MMA. The last three are None where each
    block has MMAs of its own."""

    ctas: int = 1
    leads: Any = None
    leader: Any = None
    pair: Any = None

    @classmethod
    def of(cls, cta_layout_vmnk: Layout | None) -> _Cluster:
        check_cluster(cta_layout_vmnk, (1, 1))
        ctas = 1 if cta_layout_vmnk is None else int(size(cta_layout_vmnk[0]))
        if ctas == 1:
            return cls()
        if ctas != 2:
            raise ConstraintError(f"cta_layout_vmnk is {cta_layout_vmnk}; 1 or 2 blocks (mode V) work on one MMA")
        rank = make_warp_uniform(block_idx_in_cluster())
        leader = rank // 2 * 2
        return cls(2, rank % 2 == 0, leader, Int32(3) << leader)


@dataclass(frozen=True, eq=False)
class _OfMma:
    """Pipelines with an MMA on one of their sides."""

    cluster: _Cluster = field(default_factory=_Cluster, kw_only=True)

    @property
    def is_leader_cta(self) -> Any:
        """Whether this block issues the MMAs: a Boolean."""
        return Boolean(True) if self.cluster.leads is None else self.cluster.leads

    @property
    def cta_group(self) -> CtaGroup:
        """The blocks of one MMA."""
        return CtaGroup(self.cluster.ctas)

    def _if_leads(self, then: Callable[[], Any]) -> None:
        """What only the block that issues the MMAs does."""
        if self.cluster.leads is None:
            then()
        else:
            if_generate(self.cluster.leads, then)


@dataclass(frozen=True, eq=False)
class _ReadByMma(_OfMma):
    """The consumer is the warp that issues MMAs. ``release_mask``: the blocks of the cluster that may fill a stage
    again when these are done."""

    release_mask: Any = field(default=None, kw_only=True)

    def consumer_release(self, state: PipelineState, *, loc: Any = None, ip: Any = None) -> None:
        """The stage is empty when the MMAs that this warp has issued are done."""
        empty: MbarrierArray = self.sync_object_empty  # type: ignore[attr-defined]  # of the pipeline
        empty.recast_to_new_op_type(PipelineOp.TCGen05Mma).arrive(state.index, self.release_mask, self.cluster.ctas)


@dataclass(frozen=True, eq=False)
class _FencedWaits(_OfMma, PipelineAsync):
    """Threads on one side, MMAs on the other. Tensor memory is reached by tcgen05 instructions only, and a wait alone
    does not order those: a ``tcgen05.fence`` behind it does."""

    def producer_acquire(
        self, state: PipelineState, try_acquire_token: Any = None, *, loc: Any = None, ip: Any = None
    ) -> None:
        """Wait until the stage has been read, by the MMAs or of accumulators by the threads."""
        super().producer_acquire(state, try_acquire_token)
        call(Tcgen05Fence("after", written=False))

    def consumer_wait(
        self, state: PipelineState, try_wait_token: Any = None, *, loc: Any = None, ip: Any = None
    ) -> None:
        """Wait until the stage is full: the threads have written it, or the MMAs of accumulators are done."""
        super().consumer_wait(state, try_wait_token)
        call(Tcgen05Fence("after", written=False))


@dataclass(frozen=True, eq=False)
class PipelineTmaUmma(_ReadByMma, PipelineTmaAsync):
    """TMA fills the stages, ``tcgen05.mma`` reads them. Make one with :meth:`create`.

    >>> import tilewright as cutlass
    >>> from tilewright import pipeline
    >>> @cute.jit
    ... def two_stages(t):
    ...     ring = pipeline.PipelineTmaUmma.create(num_stages=2, tx_count=16)
    ...     return cutlass.Int32(ring.num_stages)
    >>> per_thread(two_stages, 32)[0]
    2
    """

    @classmethod
    def create(  # type: ignore[override]  # other parameters, as documented
        cls,
        *,
        num_stages: int,
        producer_group: CooperativeGroup = ONE,
        consumer_group: CooperativeGroup = ONE,
        tx_count: int,
        barrier_storage: Any = None,
        cta_layout_vmnk: Layout | None = None,
        mcast_mode_mn: tuple[int, int] = (1, 1),
        enable_multicast_signaling: bool = False,
        defer_sync: bool = False,
        name: str = "",
        loc: Any = None,
        ip: Any = None,
    ) -> PipelineTmaUmma:
        """As :meth:`PipelineTmaAsync.create`. ``consumer_group``: the commits that make a stage empty, those of all
        MMAs of the cluster that read what this block loads: one, or with multicast as many as blocks along M and N
        that share an operand, less one; ``enable_multicast_signaling``: that number follows from the cluster.
        Where several warps issue MMAs that read a stage, each of them commits. ``tx_count``: the bytes of a stage of
        all blocks of one MMA."""
        cluster = _Cluster.of(cta_layout_vmnk)
        release_mask, arrivals = None, 1
        if cta_layout_vmnk is not None and blocks(cta_layout_vmnk) > 1:
            coord = cta_layout_vmnk.get_flat_coord(make_warp_uniform(block_idx_in_cluster()))
            release_mask, arrivals = (
                commit_mask(cta_layout_vmnk, coord, mcast_mode_mn),
                peers(cta_layout_vmnk, mcast_mode_mn),
            )
        if not enable_multicast_signaling:
            _arrivals(cls, "consumer_group", consumer_group, arrivals)
            arrivals = consumer_group.size
        made: Any = super().create(
            num_stages=num_stages,
            producer_group=producer_group,
            consumer_group=CooperativeGroup(Agent.Thread, arrivals),
            tx_count=tx_count,
            barrier_storage=barrier_storage,
            defer_sync=True,
            name=name,
        )
        if not defer_sync:
            _meet(cta_layout_vmnk)
        return dataclasses.replace(made, release_mask=release_mask, cluster=cluster)

    def producer_acquire(
        self,
        state: PipelineState,
        try_acquire_token: Any = None,
        *,
        expected_tx: Any = None,
        loc: Any = None,
        ip: Any = None,
    ) -> None:
        """Wait until the MMAs have read the stage; the block that issues them expects the bytes. A whole warp.
        ``expected_tx``: the bytes of this round, where they are not ``tx_count``."""
        wait_unless(try_acquire_token, self.sync_object_empty, state)
        full = self.sync_object_full
        bytes_ = full.tx_count if expected_tx is None else expected_tx
        self._if_leads(lambda: full.arrive_and_expect_tx(state.index, bytes_))


@dataclass(frozen=True, eq=False)
class PipelineTmaMultiConsumersAsync(PipelineTmaUmma):
    """TMA fills the stages; ``tcgen05.mma`` reads them, and threads do. Make one with :meth:`create`.

    >>> import tilewright as cutlass
    >>> from tilewright import pipeline
    >>> @cute.jit
    ... def arrivals(t):
    ...     threads = pipeline.CooperativeGroup(pipeline.Agent.Thread, 128)
    ...     one_warp = pipeline.CooperativeGroup(pipeline.Agent.Thread)
    ...     ring = pipeline.PipelineTmaMultiConsumersAsync.create(
    ...         num_stages=2, tx_count=16, consumer_group_umma=one_warp, consumer_group_async=threads
    ...     )
    ...     return cutlass.Int32(ring.sync_object_empty.group.size)
    >>> per_thread(arrivals, 192)[0]
    129
    """

    @classmethod
    def create(  # type: ignore[override]  # other parameters, as documented
        cls,
        *,
        num_stages: int,
        producer_group: CooperativeGroup = ONE,
        consumer_group_umma: CooperativeGroup,
        consumer_group_async: CooperativeGroup,
        tx_count: int,
        barrier_storage: Any = None,
        cta_layout_vmnk: Layout | None = None,
        mcast_mode_mn: tuple[int, int] = (1, 1),
        tidx: Any = None,
        enable_multicast_signaling: bool = False,
        defer_sync: bool = False,
        force_deprecated_per_lane_signaling: bool | None = None,
        name: str = "",
        loc: Any = None,
        ip: Any = None,
    ) -> PipelineTmaMultiConsumersAsync:
        """As :meth:`PipelineTmaUmma.create`, for stages that one block loads for itself. ``consumer_group_umma``: the
        warps that issue MMAs, one arrival each, by their commits.

        ``consumer_group_async``: who releases a stage besides. A number of threads that is a multiple of 32 is these
        threads, each of which arrives; ``force_deprecated_per_lane_signaling=False`` and other numbers are the warps,
        of which one lane arrives. ``enable_multicast_signaling``: it is the threads of the block, by warps.
        ``tidx``: the thread's index, ``thread_idx()[0]`` by default."""
        check_cluster(cta_layout_vmnk, mcast_mode_mn)
        if blocks(cta_layout_vmnk) > 1:
            raise ConstraintError(
                f"{cls.__name__}: cta_layout_vmnk is {cta_layout_vmnk}; threads wait for the bytes of their own block, "
                "so its stages are those of one block. Give the MMAs a PipelineTmaUmma, and the threads copies of "
                "their own with a PipelineTmaAsync"
            )
        if consumer_group_umma.agent is not Agent.Thread:
            raise ConstraintError(
                f"{cls.__name__}: consumer_group_umma is {consumer_group_umma}; each warp that issues MMAs arrives "
                "once, by its commit: CooperativeGroup(Agent.Thread, warps that issue MMAs)"
            )
        count = consumer_group_async.arrivals
        per_lane = count % WARP_SIZE == 0 and not enable_multicast_signaling
        if force_deprecated_per_lane_signaling is not None:
            per_lane = force_deprecated_per_lane_signaling
        if enable_multicast_signaling and not per_lane:
            count = -(-count // WARP_SIZE)
        full, empty = tma_stages(
            barrier_storage, num_stages, producer_group, consumer_group_umma.size + count, tx_count, name=name
        )
        if not defer_sync:
            _meet(cta_layout_vmnk)
        thread = Int32(thread_idx()[0] if tidx is None else tidx)
        return cls(full, empty, num_stages, None, None, None if per_lane else thread % WARP_SIZE == 0)

    @property
    def sync_object_empty_umma(self) -> MbarrierArray:
        """The empty barriers as the MMAs signal them."""
        return self.sync_object_empty.recast_to_new_op_type(PipelineOp.TCGen05Mma)

    @property
    def sync_object_empty_async(self) -> MbarrierArray:
        """The empty barriers as the threads signal them."""
        return self.sync_object_empty

    def consumer_release(
        self,
        state: PipelineState,
        op_type: PipelineOp = PipelineOp.TCGen05Mma,
        *,
        loc: Any = None,
        ip: Any = None,
    ) -> None:
        """``PipelineOp.TCGen05Mma``: the stage has been read when the MMAs that this warp has issued are done;
        ``PipelineOp.AsyncThread``: this thread has read its part."""
        if op_type is PipelineOp.TCGen05Mma:
            super().consumer_release(state)
        elif op_type is not PipelineOp.AsyncThread:
            raise ConstraintError(
                f"consumer_release: op_type is {op_type}; a stage is released by PipelineOp.TCGen05Mma, of the warp "
                "that issues MMAs, and by PipelineOp.AsyncThread, of the other threads"
            )
        elif self.is_signalling_thread is None:
            self.sync_object_empty_async.arrive(state.index)
        else:
            PipelineTmaAsync.consumer_release(self, state)

    def make_participants(  # type: ignore[override]  # three, as documented
        self, *, loc: Any = None, ip: Any = None
    ) -> tuple[PipelineProducer, PipelineConsumer, None]:
        """The producer and the warp that issues MMAs; the other threads have a state and ``consumer_release``."""
        return self.make_producer(), self.make_consumer(), None


@dataclass(frozen=True, eq=False)
class PipelineAsyncUmma(_ReadByMma, _FencedWaits):
    """Threads fill the stages (operands in shared or tensor memory), ``tcgen05.mma`` reads them. The fences
    ``tcgen05.fence`` that stages in tensor memory need are in its methods.

    >>> import tilewright as cutlass
    >>> from tilewright import pipeline
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
        cls,
        *,
        num_stages: int,
        producer_group: CooperativeGroup,
        consumer_group: CooperativeGroup = ONE,
        barrier_storage: Any = None,
        cta_layout_vmnk: Layout | None = None,
        defer_sync: bool = False,
        name: str = "",
        loc: Any = None,
        ip: Any = None,
    ) -> PipelineAsyncUmma:
        """As :meth:`PipelineAsync.create`. ``consumer_group``: the one warp that issues the MMAs. ``producer_group``:
        the threads of all blocks of one MMA that write a stage."""
        cluster = _Cluster.of(cta_layout_vmnk)
        _arrivals(cls, "consumer_group", consumer_group, 1)
        made: Any = super().create(
            num_stages=num_stages,
            producer_group=producer_group,
            consumer_group=consumer_group,
            barrier_storage=barrier_storage,
            producer_mask=cluster.leader,
            defer_sync=True,
            name=name,
        )
        if not defer_sync:
            _meet(cta_layout_vmnk)
        return dataclasses.replace(made, release_mask=cluster.pair, cluster=cluster)

    def producer_commit(self, state: PipelineState, *, loc: Any = None, ip: Any = None) -> None:
        """This thread has written its part of the stage."""
        call(Tcgen05Fence("before", written=False))
        super().producer_commit(state)


@dataclass(frozen=True, eq=False)
class PipelineUmmaAsync(_FencedWaits):
    """``tcgen05.mma`` fills the stages, accumulators in tensor memory; threads read them. The fences ``tcgen05.fence``
    that this needs are in its methods.

    >>> import tilewright as cutlass
    >>> from tilewright import pipeline
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
        cls,
        *,
        num_stages: int,
        producer_group: CooperativeGroup = ONE,
        consumer_group: CooperativeGroup,
        barrier_storage: Any = None,
        cta_layout_vmnk: Layout | None = None,
        defer_sync: bool = False,
        name: str = "",
        loc: Any = None,
        ip: Any = None,
    ) -> PipelineUmmaAsync:
        """As :meth:`PipelineAsync.create`. ``producer_group``: the one warp that issues the MMAs. ``consumer_group``:
        the threads of all blocks of one MMA that release a stage."""
        cluster = _Cluster.of(cta_layout_vmnk)
        _arrivals(cls, "producer_group", producer_group, 1)
        made: Any = super().create(
            num_stages=num_stages,
            producer_group=producer_group,
            consumer_group=consumer_group,
            barrier_storage=barrier_storage,
            producer_mask=cluster.pair,
            consumer_mask=cluster.leader,
            defer_sync=True,
            name=name,
        )
        if not defer_sync:
            _meet(cta_layout_vmnk)
        return dataclasses.replace(made, cluster=cluster)

    def producer_commit(self, state: PipelineState, *, loc: Any = None, ip: Any = None) -> None:
        """The accumulators are there when the MMAs that this warp has issued are done."""
        self.sync_object_full.arrive(state.index, self.producer_mask, self.cluster.ctas)

    def producer_tail(self, state: PipelineState, *, loc: Any = None, ip: Any = None) -> None:
        """Wait until all accumulators have been read, in the block that issues MMAs. ``state`` stays where it is."""
        self._if_leads(lambda: super(PipelineUmmaAsync, self).producer_tail(state))

    def consumer_release(self, state: PipelineState, *, loc: Any = None, ip: Any = None) -> None:
        """This thread has loaded its part of the accumulators."""
        call(Tcgen05Fence("before", written=False))
        super().consumer_release(state)


def _meet(cta_layout_vmnk: Layout | None) -> None:
    """All threads that use the mbarriers."""
    pipeline_init_arrive(cta_layout_vmnk, is_relaxed=True)
    pipeline_init_wait(cta_layout_vmnk)


def _arrivals(cls: type, name: str, group: CooperativeGroup, arrivals: int) -> None:
    """Refuse a group that is not one of warps that issue MMAs: each of them commits, which is one arrival at the
    mbarriers of ``arrivals`` blocks."""
    warps = group.size // arrivals
    if group.agent is not Agent.Thread or warps * arrivals != group.size or not 1 <= warps < WARP_SIZE:
        why = "" if arrivals == 1 else f" of each of the {arrivals} MMAs of the cluster that read what this block loads"
        raise ConstraintError(
            f"{cls.__name__}: {name} is {group}; one warp issues the MMAs, and its commit is one arrival{why}: "
            f"CooperativeGroup(Agent.Thread{f', {arrivals}' if arrivals > 1 else ''}), or as many times more as there "
            "are such warps"
        )
