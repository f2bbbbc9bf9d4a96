"""The Hopper main loop: one warp fills a ring of shared-memory stages by TMA, warpgroups multiply from it by wgmma.

Each stage has two mbarriers: *full*, on which TMA counts the bytes of both operands, and *empty*, on which the
consumers arrive once their wgmma no longer read the stage. The producer runs up to ``stages`` k tiles ahead, also from
one output tile into the next, so that its loads overlap the epilogue.

    producer:  wait empty[s]; expect bytes on full[s]; TMA A, TMA B -> stage s
    consumer:  wait full[s]; wgmma over the k blocks of stage s; wait for those of stage s - 1; arrive on empty[s - 1]

In a cluster, blocks in one row share their tile of A, and blocks in one column their tile of B: each block loads a part
of the tile and multicasts it to the others. A stage is empty when the consumers of all these blocks have arrived.

Read on in ``TmaMainloop.load`` (producer) and ``TmaMainloop.multiply`` (consumer).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import tilewright as cutlass
from tilewright import cute, pipeline
from tilewright.cute.nvgpu import cpasync, warpgroup
from tilewright.gemm.access import VECTOR, AccessRequirement
from tilewright.gemm.config import HopperConfig, Major
from tilewright.gemm.counts import known_count
from tilewright.gemm.mainloop.staged_mma import StagedMma
from tilewright.gemm.mainloop.wgmma import WgmmaMath

SCALES_AHEAD = 3
"""How many stages ahead scales are loaded into registers."""


class NoScales:
    """The scales of a product that has none: its sums are only promoted (added to others in higher precision)."""

    from_memory: ClassVar[bool] = False

    def load(self, stage: Any) -> tuple[cute.Tensor, ...]:
        return ()

    def applied(self, sums: Any, loaded: tuple, block: int) -> Any:
        return sums


NO_SCALES = NoScales()


@dataclass(frozen=True)
class ComingScales:
    """Scales that threads load from global memory (a ``TileScales``), for the main loop: those of the next few stages,
    in registers, as a load takes longer than the wgmma of a stage."""

    scales: Any
    stages: tuple
    next: cute.Tensor
    """The k tile of the tile's that is loaded next."""

    @classmethod
    def of(cls, scales: Any) -> ComingScales:
        """Load those of the first stages of a tile."""
        count = cute.make_rmem_tensor(1, cutlass.Int32)
        count[0] = SCALES_AHEAD
        return cls(scales, tuple(scales.load(i) for i in range(SCALES_AHEAD)), count)

    def load(self, stage: Any) -> tuple[cute.Tensor, ...]:
        """Those of the next stage, and begin to load later ones."""
        found = tuple(cute.make_rmem_tensor_like(one) for one in self.stages[0])
        following = (*self.stages[1:], self.scales.load(self.next[0]))
        for to, of in zip((found, *self.stages), (self.stages[0], *following), strict=True):
            for old, new in zip(to, of, strict=True):
                old.store(new.load())
        self.next[0] = self.next[0] + 1
        return found

    def applied(self, sums: Any, loaded: tuple, block: int) -> Any:
        return self.scales.applied(sums, loaded, block)


def _nothing() -> None:
    pass


@dataclass(frozen=True)
class TmaOperand:
    """One operand as the producer loads it: the copy atom, this block's slices ``g`` (TMA, MN boxes, k tiles, L) of
    global and ``s`` (TMA, boxes of a stage, stages) of shared memory, and the multicast mask. ``mode``: 0 if the boxes
    are chosen by the tile's row index, as those of A, 1 if by its column index. ``descriptor`` points to the tensor map
    if it is not the atom's own."""

    atom: Any
    g: Any
    s: Any
    mask: Any
    mode: int
    descriptor: Any = None


@dataclass(frozen=True)
class TmaMainloop:
    """acc = A[:, k tiles] @ B[:, k tiles] of one output tile after another."""

    config: HopperConfig
    math: WgmmaMath

    ACCESS = AccessRequirement("TMA", step=VECTOR, least_stride=1)
    """The requirement on 16-bit operands. TMA fills with zeros past the ends of rows, so rows may have any length."""

    BY: ClassVar[str] = "wgmma with TMA"
    """The instructions that read the stages, for messages."""

    @classmethod
    def access(cls, dtype: Any) -> AccessRequirement:
        """The requirement on an operand of ``dtype``: only 16-bit elements are transposed on the way from a stage."""
        return cls.ACCESS if dtype.width == 16 else replace(cls.ACCESS, by=cls.BY, along=(Major.K,))

    def tma(self, matrix: Any, smem_layout: Any, sharers: int) -> tuple[Any, Any]:
        """The TMA atom of an operand, and its (MN, K, L) coordinate tensor; ``sharers`` blocks of a cluster use the
        same boxes."""
        kind = cpasync.CopyBulkTensorTileG2SOp if sharers == 1 else cpasync.CopyBulkTensorTileG2SMulticastOp
        box = cute.slice_(smem_layout, (None, None, 0, 0))  # (rows, bK)
        tile = cute.size(box, mode=[0]), cute.size(box, mode=[1])
        pair: Any = cpasync.make_tiled_tma_atom(kind(self.math.group), matrix, box, tile, num_multicast=sharers)
        return pair

    def operand(
        self, atom: Any, matrix: Any, stages: Any, mode: int, rank: Any = 0, sharers: int = 1, mask: Any = 0
    ) -> TmaOperand:
        """The operand as block ``rank`` of ``sharers`` blocks copies it. ``matrix`` is the coordinate tensor,
        ``stages`` the shared tensor (rows, bK, boxes, stages)."""
        box = cute.size(stages, mode=[0]), cute.size(stages, mode=[1])
        tiles = cute.local_tile(matrix, box, (None, None))  # (rows, bK, MN boxes, k tiles, L)
        s, g = cpasync.tma_partition(
            atom, rank, cute.make_layout(sharers), cute.group_modes(stages, 0, 2), cute.group_modes(tiles, 0, 2)
        )  # (TMA, boxes, stages), (TMA, MN boxes, k tiles, L)
        return TmaOperand(atom, g, s, mask, mode)

    @cute.jit
    def load(
        self,
        operands: tuple[TmaOperand, ...],
        ring: pipeline.PipelineTmaAsync,
        state: Any,
        tile_m: Any,
        tile_n: Any,
        batch: Any,
        k_begin: Any,
        k_end: Any,
        empty: bool | None = None,
    ) -> Any:
        """Issue the loads of one output tile, by one warp; return the pipeline state after them. ``empty=True``: the
        stages are known to be empty, so there is no wait for each."""
        for k_tile in cutlass.range(k_begin, k_end, unroll=1):
            ring.producer_acquire(state, empty)
            full = ring.producer_get_barrier(state)
            for operand in operands:
                self.load_operand(operand, full, state.index, (tile_m, tile_n)[operand.mode], k_tile, batch)
            ring.producer_commit(state)
            state.advance()
        return state

    def load_operand(self, operand: TmaOperand, full: Any, stage: Any, tile: Any, k_tile: Any, batch: Any) -> None:
        """Issue the copies of one k tile of an operand; ``full`` counts their bytes."""
        boxes, first = cute.size(operand.s, mode=[1]), self.first_box(operand, tile)
        for box in cutlass.range_constexpr(boxes):
            cute.copy(
                operand.atom,
                operand.g[None, first + box, k_tile, batch],
                operand.s[None, box, stage],
                tma_bar_ptr=full,
                mcast_mask=operand.mask,
                tma_desc_ptr=operand.descriptor,
            )

    def first_box(self, operand: TmaOperand, tile: Any) -> Any:
        """The first of the boxes of a tile."""
        return tile * cute.size(operand.s, mode=[1])

    def landed(self) -> None:
        """A hook: what the consumers do when a stage is full. Nothing, as TMA has filled it for wgmma to read."""

    @cute.jit
    def multiply(
        self, mma: StagedMma, acc: cute.Tensor, state: Any, k_tiles: Any, issued: Callable[[], None] = _nothing
    ) -> Any:
        """acc = the sum over ``k_tiles`` > 0 stages, by one warpgroup; return the pipeline state after them.

        One group of wgmma stays in flight: a stage is released when the group of the next stage has been issued.
        ``issued`` is called after the last group has been issued and before the wait for it; with ``config.promote``
        after the wait.
        """
        every = self.config.promote
        if cutlass.const_expr(every == 0):
            state = self.multiply_stages(mma, acc, state, k_tiles, issued)
        elif cutlass.const_expr(every == 1):
            state = self.multiply_promoted(mma, acc, state, k_tiles, NO_SCALES)
            issued()
        else:
            short = cute.make_rmem_tensor_like(acc)
            acc.fill(0)
            for done in cutlass.range(0, known_count(k_tiles), every, unroll=1):
                count = cute.min(k_tiles - done, every)
                state = self.multiply_stages(mma, short, state, count, _nothing)
                acc.store(acc.load() + short.load())
            issued()
        return state

    @cute.jit
    def multiply_promoted(self, mma: StagedMma, acc: cute.Tensor, state: Any, k_tiles: Any, scales: Any) -> Any:
        """As :meth:`multiply`, but the sums of each stage are multiplied by their ``scales`` (``StagedScales``,
        ``TileScales`` or ``NO_SCALES``) and then added to ``acc``. If there are registers for the sums of two stages,
        those of one stage are added while the next one is multiplied; else 64 rows at a time, while another warpgroup
        multiplies."""
        acc.fill(0)
        if cutlass.const_expr(scales.from_memory):
            scales = ComingScales.of(scales)
        if cutlass.const_expr(self.config.promotes_in_turn):
            state = self.add_stages_in_turn(mma, acc, state, k_tiles, scales)
        else:
            short = cute.make_rmem_tensor_like(acc[None, 0, 0])
            for _ in cutlass.range(0, known_count(k_tiles), unroll=1):
                self.add_stage(mma, acc, short, state, scales)
                state.advance()
        return state

    @cute.jit
    def add_stages_in_turn(self, mma: StagedMma, acc: cute.Tensor, state: Any, k_tiles: Any, scales: Any) -> Any:
        """acc += the sums of ``k_tiles`` > 0 stages, which use two sets of registers in turn. The loop is over pairs of
        stages, so that the set of each wait is known while staging."""
        sets = tuple(cute.make_rmem_tensor_like(acc[None, 0, 0]) for _ in range(2))
        loaded: list[tuple] = []  # the scales of the sums of each set

        def issue_first(stage: Any) -> None:
            first = scales.load(stage)
            loaded.extend((first, tuple(cute.make_rmem_tensor_like(one) for one in first)))
            self.multiply_rows(mma, sets[0], 0, stage)

        def issue(i: int, stage: Any) -> None:
            for old, new in zip(loaded[i], scales.load(stage), strict=True):
                old.store(new.load())
            self.multiply_rows(mma, sets[i], 0, stage)

        pairs = (k_tiles - 1) // 2
        release = self.first_stage(mma, issue_first, state)
        for _ in cutlass.range(0, known_count(pairs), unroll=1):
            for i in cutlass.range_constexpr(2):
                self.next_stage(mma, partial(issue, 1 - i), state, release)
                self.add_rows(acc, sets[i], 0, scales, loaded[i])
        if 2 * pairs + 1 < k_tiles:
            self.next_stage(mma, partial(issue, 1), state, release)
            self.add_rows(acc, sets[0], 0, scales, loaded[0])
            warpgroup.wait_group(0)
            self.add_rows(acc, sets[1], 0, scales, loaded[1])
        else:
            warpgroup.wait_group(0)
            self.add_rows(acc, sets[0], 0, scales, loaded[0])
        mma.ring.consumer_release(release)
        return state

    @cute.jit
    def add_stage(self, mma: StagedMma, acc: cute.Tensor, short: cute.Tensor, state: Any, scales: Any) -> None:
        """acc += the sums of one stage, 64 rows at a time; release the stage."""
        mma.ring.consumer_wait(state)
        # Scales that are read behind the first wgmma cost 6 to 10 % (H200): ptxas puts their loads between the others.
        loaded, blocks = scales.load(state.index), cute.size(acc, mode=[1])
        for block in cutlass.range_constexpr(blocks):
            self.multiply_rows(mma, short, block, state.index)
            warpgroup.wait_group(0)
            if cutlass.const_expr(block == blocks - 1):
                mma.ring.consumer_release(state)
            self.add_rows(acc, short, block, scales, loaded)

    def multiply_rows(self, mma: StagedMma, short: cute.Tensor, block: int, stage: Any) -> None:
        """Issue the wgmma of the ``block``-th 64 rows of a stage, whose sums are ``short``, as one group."""
        mma.tiled_mma.set(warpgroup.Field.ACCUMULATE, False)
        rows = cute.logical_divide(mma.a, (None, 1))[None, (None, block), None, None]  # (MMA, 1, MMA_K, STAGE)
        self.multiply_stage(replace(mma, a=rows), short, stage)

    def add_rows(self, acc: cute.Tensor, short: cute.Tensor, block: int, scales: Any, loaded: Any) -> None:
        """Add the sums of the ``block``-th 64 rows of a stage, multiplied by the ``loaded`` scales."""
        rows = acc[None, block, 0]
        rows.store(rows.load() + scales.applied(short.load(), loaded, block))

    @cute.jit
    def multiply_stages(
        self, mma: StagedMma, acc: cute.Tensor, state: Any, k_tiles: Any, issued: Callable[[], None]
    ) -> Any:
        """acc = the sum over ``k_tiles`` > 0 stages, all of it in the accumulators of wgmma."""
        issue = partial(self.multiply_stage, mma, acc)
        release = self.first_stage(mma, issue, state)
        for _ in cutlass.range(1, k_tiles, unroll=1):
            self.next_stage(mma, issue, state, release)
        issued()
        warpgroup.wait_group(0)
        mma.ring.consumer_release(release)
        return state

    @cute.jit
    def pass_over(self, ring: pipeline.PipelineTmaAsync, state: Any, k_tiles: Any, together: Any) -> Any:
        """Release ``k_tiles`` stages unread, by one warpgroup; return the pipeline state after them. One thread
        releases a stage for the warpgroup, all of which has waited for it by then (``together``, its barrier): a warp
        that came two phases later would wait for the parity of another one."""
        for _ in cutlass.range(k_tiles, unroll=1):
            ring.consumer_wait(state)
            together.arrive_and_wait()
            ring.consumer_release(state)
            state.advance()
        return state

    def first_stage(self, mma: StagedMma, issue: Callable[[Any], None], state: Any) -> Any:
        """Wait for the first stage and ``issue`` its wgmma, which overwrite the accumulators. Return a second pipeline
        state, one stage behind ``state``: the stage that the wgmma in flight may still read."""
        release = state.clone()
        mma.tiled_mma.set(warpgroup.Field.ACCUMULATE, False)
        mma.ring.consumer_wait(state)
        issue(state.index)
        mma.tiled_mma.set(warpgroup.Field.ACCUMULATE, True)
        state.advance()
        return release

    def next_stage(self, mma: StagedMma, issue: Callable[[Any], None], state: Any, release: Any) -> None:
        """Wait for a stage and ``issue`` its wgmma as one group; wait for the group before it; release its stage."""
        mma.ring.consumer_wait(state)
        issue(state.index)
        warpgroup.wait_group(1)
        mma.ring.consumer_release(release)
        release.advance()
        state.advance()

    def skip(self, state: Any, k_tiles: Any) -> Any:
        """The pipeline state ``k_tiles`` >= 0 stages after ``state``; others use the stages between.

        A parity distinguishes a phase from the next one only. So the caller may wait on the new state only after the
        others have waited for their stages.
        """
        stages = state.stages
        laps = k_tiles // stages  # by a constant: no division
        index = state.index + (k_tiles - laps * stages)
        around = index >= stages
        phase = state.phase ^ (laps & 1)
        return pipeline.PipelineState(
            stages,
            state.count + k_tiles,
            cute.where(around, index - stages, index),
            cute.where(around, phase ^ 1, phase),
        )

    @cute.jit
    def multiply_and_load(
        self,
        mma: StagedMma,
        acc: cute.Tensor,
        operands: tuple[TmaOperand, ...],
        producer: Any,
        consumer: Any,
        loads: Any,
        tile_m: Any,
        tile_n: Any,
        batch: Any,
        k_begin: Any,
        k_end: Any,
    ) -> tuple[Any, Any]:
        """acc = the sum over one output tile's k tiles, k_end > k_begin. All warps multiply; a warp whose ``loads`` is
        true also loads, ``stages - 1`` k tiles ahead. Return the producer's and the consumer's pipeline state.

        When k tile k is multiplied, the stage of k - 1 is released; k tile k + stages - 1 is loaded into it.
        """
        ahead = self.config.stages - 1
        first = cute.min(k_begin + ahead, k_end)
        if loads:
            producer = self.load(operands, mma.ring, producer, tile_m, tile_n, batch, k_begin, first)
        issue = partial(self.multiply_stage, mma, acc)
        release = self.first_stage(mma, issue, consumer)
        if loads:  # into the stage that this tile has not used yet
            producer = self.load(operands, mma.ring, producer, tile_m, tile_n, batch, first, cute.min(first + 1, k_end))
        for k_tile in cutlass.range(k_begin + 1, k_end, unroll=1):
            self.next_stage(mma, issue, consumer, release)
            if loads:
                following = cute.min(k_tile + ahead, k_end)
                producer = self.load(
                    operands, mma.ring, producer, tile_m, tile_n, batch, following, cute.min(following + 1, k_end)
                )
        warpgroup.wait_group(0)
        mma.ring.consumer_release(release)
        return producer, consumer

    @cute.jit
    def multiply_stage(self, mma: StagedMma, acc: cute.Tensor, stage: Any) -> None:
        """Issue the wgmma of one stage as one group."""
        self.landed()
        # Other instructions may have written the accumulators since the last wgmma (PTX ISA, "wgmma.fence").
        warpgroup.fence()
        here = (None, None, None, stage)
        cute.gemm(mma.tiled_mma, acc, mma.a[here], mma.b[here], acc)  # all k blocks of the stage
        mma.tiled_mma.set(warpgroup.Field.ACCUMULATE, True)
        warpgroup.commit_group()
