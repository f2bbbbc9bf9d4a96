"""Scales of blocks in the stages of the Hopper main loop, beside the operands that they belong to.

A second warp of the warpgroup that loads copies the scales of a stage by cp.async, four bytes a lane, and each lane's
copies arrive at the stage's mbarrier *full* when they have landed (``cp.async.mbarrier.arrive.noinc``). So scales have
as long as operands to come from memory, and a thread holds those of one stage. All warps that multiply read scales,
so each of them releases the stage.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tilewright import Constexpr, Float32, cute, range, range_constexpr, utils
from tilewright.cute.nvgpu import cpasync
from tilewright.gemm.config import HopperConfig
from tilewright.gemm.epilogue.scales import BlockScales
from tilewright.gemm.epilogue.tile import EpilogueTile

LOADERS = 32
"""Lanes that copy scales."""


@dataclass(frozen=True)
class StagedScales:
    """The scales of blocks for a warpgroup's part of an output tile, as the main loop asks for them. ``scales`` are
    those of the block's tile in all stages; ``tile`` has the places of the thread's accumulators in that tile."""

    scales: BlockScales
    tile: EpilogueTile

    from_memory: ClassVar[bool] = False

    def load(self, stage: Any) -> tuple[cute.Tensor, ...]:
        """Those of a stage, in registers."""
        return self.scales.load(self.tile, stage)

    def applied(self, sums: Any, loaded: tuple, block: int) -> Any:
        """The ``sums`` of the ``block``-th 64 rows of a stage by their factors, from the result of :meth:`load`."""
        return sums * self.scales.weights(self.tile, loaded, (None, block, 0))


@dataclass(frozen=True)
class ScaleStages:
    """Shared memory for the scales of a block's tile: ``held.a`` (rows, stages) and ``held.b`` (columns, stages), with
    one element for each ``held.rows`` rows and ``held.columns`` columns of the tile."""

    held: BlockScales
    shape: Constexpr

    @classmethod
    def create(cls, config: HopperConfig) -> ScaleStages | None:
        """None where the configuration has no scales of blocks."""
        if config.block_scales is None:
            return None
        smem, groups, found = utils.SmemAllocator(), [config.scale_group(mode) for mode in (0, 1)], []
        for extent, group in zip(config.tile[:2], groups, strict=True):
            lines = cute.make_layout((extent // group, config.stages))
            found.append(cute.make_tensor(smem.allocate_array(Float32, cute.size(lines)), lines))
        return cls(BlockScales(*found, *groups), config.tile[:2])

    def of_part(self, tile: EpilogueTile) -> StagedScales:
        """For the accumulators of ``tile``, whose coordinates count from the first row and column of the block's."""
        return StagedScales(self.held, tile)

    @cute.jit
    def fill(self, scales: BlockScales, ring: Any, first: tuple, k_begin: Any, k_end: Any, state: Any) -> Any:
        """Copy the ``scales`` of one output tile, whose first row and column are ``first``, by one warp; return the
        pipeline state after its k tiles."""
        for k_tile in range(k_begin, k_end, unroll=1):
            ring.sync_object_empty.wait(state.index, state.phase)
            self.copy(scales, first, k_tile, state.index)
            cute.arch.cp_async_mbarrier_arrive_noinc(ring.producer_get_barrier(state))
            state.advance()
        return state

    @cute.jit
    def copy(self, scales: BlockScales, first: tuple, k_tile: Any, stage: Any) -> None:
        """Issue the copies of one stage, by one warp."""
        copy_lines(scales.a[None, k_tile], self.held.a[None, stage], first[0], scales.rows, self.held.rows)
        copy_lines(scales.b[None, k_tile], self.held.b[None, stage], first[1], scales.columns, self.held.columns)


@cute.jit
def copy_lines(source: cute.Tensor, target: cute.Tensor, first: Any, group: Constexpr, step: Constexpr) -> None:
    """target[i] = the scale of line ``first + i * step``, of which ``group`` lines share one in ``source``; beyond the
    last line, the last one."""
    atom = cute.make_copy_atom(cpasync.CopyG2SOp(), Float32, num_bits_per_copy=32)
    count, one = cute.size(target), cute.make_layout(1)
    for begin in range_constexpr(0, count, LOADERS):
        i = cute.arch.lane_idx() + begin
        if i < count:
            line = cute.min((first + i * step) // group, cute.size(source) - 1)
            there = cute.make_tensor(cute.domain_offset((line,), source).iterator, one)
            cute.copy(atom, there, cute.make_tensor(target.iterator + i, one))
