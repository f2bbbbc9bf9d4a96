"""The Hopper main loop for a weight of 4 or 8 bits and rows of 8-bit floats: numbers become Float8E4M3FN in registers,
without their scales, and the sums of a group of K are multiplied by these when they are added to others.

As in ``mixed``, two sets of registers for A take turns, here for 32 elements of K each. The tensor cores begin a group
when the sums of the one before have been added; meanwhile they multiply for the other warpgroup.

    words of stage s -> registers
    4 times:  wait for the wgmma before last; convert into its registers
              where a group begins: wait for the last wgmma; add its sums; release stage s - 1
              fence; wgmma; commit
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tilewright as cutlass
from tilewright import Float8E4M3FN, Float32, Int32, cute
from tilewright.cute.nvgpu import warpgroup
from tilewright.gemm.addressing import aligned_pointer
from tilewright.gemm.mainloop.mixed import HALVES, vector_fragment
from tilewright.gemm.mainloop.prepared_weight import BYTES, POWERS, narrowed
from tilewright.gemm.mainloop.staged_mma import StagedMma
from tilewright.gemm.mainloop.tma import TmaMainloop
from tilewright.gemm.mixed_config import BLOCK, COLUMNS, DEPTH, LANES, WORDS, MixedHopperConfig

PIECES = 2
"""Words of two pairs are four neighbours of K: a thread has two such pieces of 32 elements of K of a row."""


@dataclass(frozen=True)
class NarrowWeight:
    """A k tile of a thread's rows of the weight in its registers: ``words`` (2, loads, piece, half), ``factors`` and
    ``zeros`` (half, groups of K): Float32, and bytes that are four times the zero point."""

    words: cute.Tensor
    factors: cute.Tensor
    zeros: Any


@dataclass(frozen=True)
class NarrowFragments:
    """A prepared weight as a thread reads it from the stages: ``words`` (2, loads, piece, half, stages), ``scales`` and
    ``zeros`` (half, 64 rows, groups of K, stages)."""

    config: MixedHopperConfig
    words: cute.Tensor
    scales: cute.Tensor
    zeros: Any

    @classmethod
    def of(cls, config: MixedHopperConfig, stages: tuple, part: Any) -> NarrowFragments:
        """``part``: which 64 rows of the tile the warpgroup has."""
        thread = cute.arch.thread_idx()[0] % 128
        warp, lane = thread // LANES, thread % LANES
        row, place = lane // 4, lane % 4
        first = part * (BLOCK // COLUMNS) + warp * HALVES  # of the 8 rows
        each = config.words[1]
        # wgmma gives place t of a row elements 4t to 4t + 3, and 16 more, of 32: of a chunk of 8 it has two pairs.
        at = first * each + place // 2 * (COLUMNS * WORDS) + row * WORDS + place % 2 * 2
        words = cute.make_layout(
            (2, config.loads, PIECES, HALVES, config.stages),
            stride=(1, LANES * WORDS, 2 * COLUMNS * WORDS, each, config.words[0] * each),
        )
        vectors = [vector_fragment(config, x, first * COLUMNS + row) for x in stages[2:]]
        words_of_thread = cute.make_tensor(aligned_pointer(stages[0].iterator + at, 8), words)
        return cls(config, words_of_thread, vectors[0], vectors[1] if config.zeros else None)

    def load(self, stage: Any) -> NarrowWeight:
        """The words, scales and zero points of one stage."""
        words = cute.make_rmem_tensor(self.words.shape[:-1], Int32)
        cute.autovec_copy(self.words[None, None, None, None, stage], words)
        scales = self.scales[None, 0, None, stage]
        factors = cute.make_rmem_tensor(scales.shape, Float32)
        zeros = None if self.zeros is None else cute.make_rmem_tensor(scales.shape, Int32)
        for i in cutlass.range_constexpr(cute.size(scales)):
            factors[i] = scales[i].to(Float32)
            if zeros is not None:
                zeros[i] = self.zeros[None, 0, None, stage][i].to(Int32) * BYTES
        return NarrowWeight(words, factors, zeros)

    def convert(self, held: NarrowWeight, k_block: int, target: cute.Tensor) -> None:
        """``target``, A of wgmma, = 32 elements of K of the weight."""
        config = self.config
        load, chunk = divmod(k_block, WORDS // config.loads)
        group = k_block * config.instruction_k // config.scale_k
        pairs = cute.recast_tensor(target, Int32)
        for piece in cutlass.range_constexpr(PIECES):
            for half in cutlass.range_constexpr(HALVES):
                low, high = (held.words[i, load, piece, half] for i in range(2))
                zeros = None if held.zeros is None else held.zeros[half, group]
                pairs[HALVES * piece + half] = narrowed(config.a.dtype, low, high, chunk, zeros)


@dataclass(frozen=True)
class Due:
    """The sums of a group of K that are to be added, ``short`` (MMA), and the scales of the thread's two rows."""

    short: cute.Tensor
    factors: cute.Tensor

    def add(self, acc: cute.Tensor) -> None:
        """acc += short * scales, (MMA) = ((2, half, columns / 8))."""
        for i in cutlass.range_constexpr(cute.size(acc)):
            acc[i] += self.short[i] * self.factors[i // 2 % HALVES]


@dataclass(frozen=True)
class NarrowMixedMainloop(TmaMainloop):
    """acc = A[:, k tiles] @ B[:, k tiles] for a prepared weight A and B of 8-bit floats."""

    config: MixedHopperConfig

    @cute.jit
    def multiply_promoted(self, mma: StagedMma, acc: cute.Tensor, state: Any, k_tiles: Any, scales: Any) -> Any:
        """acc = the sum over ``k_tiles`` > 0 stages; ``mma.a`` are :class:`NarrowFragments`, which have the scales."""
        acc.fill(0)
        rows = acc[None, 0, 0]  # (MMA)
        due = Due(cute.make_rmem_tensor_like(rows), cute.make_rmem_tensor(HALVES, Float32))
        sets = [cute.make_rmem_tensor(((4, HALVES, PIECES),), Float8E4M3FN) for _ in range(2)]
        release = state.clone()
        self.multiply_narrow_stage(mma, rows, due, sets, state, None)
        for _ in cutlass.range(1, k_tiles, unroll=1):
            self.multiply_narrow_stage(mma, rows, due, sets, state, release)
        warpgroup.wait_group(0)
        mma.ring.consumer_release(release)
        due.add(rows)
        rows.store(rows.load() * 2.0 ** POWERS[self.config.a.dtype])
        return state

    def multiply_narrow_stage(
        self, mma: StagedMma, acc: cute.Tensor, due: Due, sets: list, state: Any, release: Any
    ) -> None:
        """Multiply a stage, add the sums of its groups but the last, and those of the stage before it, which is let go
        of, at ``release``; None: this is the first stage of a tile."""
        mma.ring.consumer_wait(state)
        held, in_group = mma.a.load(state.index), self.config.scale_k // self.config.instruction_k
        for k_block in cutlass.range_constexpr(DEPTH // self.config.instruction_k):
            registers = sets[k_block % 2]
            warpgroup.wait_group(1)
            mma.a.convert(held, k_block, registers)
            if k_block % in_group == 0:
                if k_block > 0 or release is not None:
                    warpgroup.wait_group(0)
                    if k_block == 0:
                        mma.ring.consumer_release(release)
                        release.advance()
                    due.add(acc)
                for half in range(HALVES):
                    due.factors[half] = held.factors[half, k_block // in_group]
                mma.tiled_mma.set(warpgroup.Field.ACCUMULATE, False)
            warpgroup.fence()
            cute.gemm(mma.tiled_mma, due.short, registers, mma.b[None, 0, k_block, state.index], due.short)
            mma.tiled_mma.set(warpgroup.Field.ACCUMULATE, True)
            warpgroup.commit_group()
        state.advance()
