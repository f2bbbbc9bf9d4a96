"""The Hopper main loop for a weight of 4 or 8 bits: words come by TMA with the stage, go to registers, are converted
there to floats of 16 bits, scaled, and enter wgmma as its A.

A group of wgmma multiplies 16 elements of K, and two sets of registers for A take turns: when all groups but the last
have been waited for, the set of the one before is free, and is filled while the last one is multiplied.

    words of stage s -> registers
    8 times:  wait for the group before last; convert into its registers; fence; wgmma; commit
    a stage is released when the second group of the next one is about to be converted: then its last one is done
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tilewright as cutlass
from tilewright import Float8E4M3FN, Float32, Int32, cute
from tilewright.cute.nvgpu import warpgroup
from tilewright.gemm.config import HopperConfig
from tilewright.gemm.mainloop.prepared_weight import LOW_BITS, widened
from tilewright.gemm.mainloop.staged_mma import StagedMma
from tilewright.gemm.mainloop.tma import TmaMainloop
from tilewright.gemm.mainloop.wgmma import WgmmaMath
from tilewright.gemm.mixed_config import BLOCK, COLUMNS, DEPTH, LANES, WORDS, MixedHopperConfig

HALVES = 2
"""The tiles of 8 rows that a warp has of the 64 rows of an instruction."""


@dataclass(frozen=True)
class MixedMath(WgmmaMath):
    """wgmma with A from registers."""

    config: HopperConfig

    def tiled_mma(self, columns: int | None = None, warpgroups: int = 1) -> Any:
        config, source = self.config, warpgroup.OperandSource.RMEM
        shape, major = (BLOCK, columns or config.part[1], config.instruction_k), warpgroup.OperandMajorMode.K
        if config.b.dtype.width == 16:
            op: Any = warpgroup.MmaF16BF16Op(config.b.dtype, config.acc_dtype, shape, source, major, major)
        else:
            op = warpgroup.MmaF8Op(Float8E4M3FN, config.b.dtype, config.acc_dtype, shape, source, major, major)
        return cute.make_tiled_mma(op, cute.make_layout((warpgroups, 1, 1)))


@dataclass(frozen=True)
class HeldWeight:
    """A k tile of a warpgroup's rows of the weight in the registers of a thread: ``words`` (4, loads, half, 64 rows),
    ``factors`` (2, half, 64 rows, groups of K), each scale twice, ``zeros`` (half, 64 rows, groups of K)."""

    words: cute.Tensor
    factors: cute.Tensor
    zeros: Any


def vector_fragment(config: MixedHopperConfig, tensor: cute.Tensor, first: Any) -> cute.Tensor:
    """The scales or zero points of a thread's rows, (half, 64 rows, groups of K, stages), in the stages ``tensor``;
    ``first`` is its first row."""
    layout = cute.make_layout(
        (HALVES, config.part[0] // BLOCK, config.groups, config.stages),
        stride=(COLUMNS, BLOCK, config.tile[0], config.vector_stride(tensor.element_type)),
    )
    return cute.make_tensor(tensor.iterator + first, layout)


@dataclass(frozen=True)
class MixedFragments:
    """A prepared weight as a thread reads it from the stages: ``words`` (4, loads, half, 64 rows, stages), ``scales``
    and ``zeros`` (half, 64 rows, groups of K, stages)."""

    config: MixedHopperConfig
    words: cute.Tensor
    scales: cute.Tensor
    zeros: Any

    @classmethod
    def of(cls, config: MixedHopperConfig, stages: tuple, part: Any) -> MixedFragments:
        """``part``: which rows of the tile the warpgroup has."""
        thread = cute.arch.thread_idx()[0] % 128
        warp, lane = thread // LANES, thread % LANES
        rows, each = config.part[0], config.words[1]
        blocks = rows // BLOCK
        first = part * (rows // COLUMNS) + warp * HALVES  # of the 8 rows
        words = cute.make_layout(
            (WORDS, config.loads, HALVES, blocks, config.stages),
            stride=(LANES, LANES * WORDS, each, BLOCK // COLUMNS * each, config.words[0] * each),
        )
        vectors = [vector_fragment(config, x, first * COLUMNS + lane // 4) for x in stages[2:]]
        words_of_thread = cute.make_tensor(stages[0].iterator + (first * each + lane), words)
        return cls(config, words_of_thread, vectors[0], vectors[1] if config.zeros else None)

    def load(self, stage: Any) -> HeldWeight:
        """The words, scales and zero points of one stage."""
        words = cute.make_rmem_tensor(self.words.shape[:-1], Int32)
        cute.autovec_copy(self.words[None, None, None, None, stage], words)
        scales = self.scales[None, None, None, stage]
        factors = cute.make_rmem_tensor((2, *scales.shape), scales.element_type)
        zeros = None if self.zeros is None else cute.make_rmem_tensor(scales.shape, Int32)
        for i in cutlass.range_constexpr(cute.size(scales)):
            scale = scales[i]
            factors[2 * i], factors[2 * i + 1] = scale, scale
            if zeros is not None:
                zeros[i] = self.zeros[None, None, None, stage][i].to(Int32)
        return HeldWeight(words, factors, zeros)

    def converted(self, held: HeldWeight, k_block: int, mask: Any, target: cute.Tensor) -> None:
        """``target``, A of wgmma (MMA, MMA_M), = 16 elements of K of the weight times their scales; ``mask`` is
        ``LOW_BITS`` in a register."""
        config, blocks = self.config, self.words.shape[3]
        dtype, loads = config.b.dtype, config.loads
        load, chunk = divmod(k_block // 2, WORDS // loads)
        # Of each row, and of the one 8 rows below, the pairs of two chunks: the order of A's registers.
        words = cute.make_tensor(
            held.words.iterator + (WORDS * load + 2 * (k_block % 2)),
            cute.make_layout((HALVES, 2, blocks), stride=(WORDS * loads, 1, HALVES * WORDS * loads)),
        )
        group = k_block * config.instruction_k // config.scale_k
        zeros = held.zeros
        if zeros is not None:
            shape = cute.make_layout((HALVES, 2, blocks), stride=(1, 0, HALVES))
            zeros = cute.make_tensor(zeros.iterator + group * HALVES * blocks, shape)
        numbers = widened(config.a.dtype, words, chunk, dtype, mask, zeros)
        factors = cute.make_tensor(
            held.factors.iterator + 2 * group * HALVES * blocks,
            cute.make_layout((2, HALVES, 2, blocks), stride=(1, 2, 0, 2 * HALVES)),
        )
        flat = cute.make_tensor(target.iterator, cute.make_layout(cute.size(target)))
        factor = cute.make_rmem_tensor(cute.size(target), config.scale_dtype)
        for i in cutlass.range_constexpr(cute.size(target)):
            factor[i] = factors[i]
        if cutlass.const_expr(config.scale_dtype is dtype):
            flat.store(numbers.load() * factor.load())
        else:
            flat.store((numbers.load().to(Float32) * factor.load().to(Float32)).to(dtype))


@dataclass(frozen=True)
class MixedTmaMainloop(TmaMainloop):
    """acc = A[:, k tiles] @ B[:, k tiles] for a prepared weight A."""

    @cute.jit
    def multiply_stages(
        self, mma: StagedMma, acc: cute.Tensor, state: Any, k_tiles: Any, issued: Callable[[], None]
    ) -> Any:
        """acc = the sum over ``k_tiles`` > 0 stages; ``mma.a`` are :class:`MixedFragments`."""
        shape = (2, 2, 2), self.config.part[0] // BLOCK
        sets = [cute.make_rmem_tensor(shape, self.config.b.dtype) for _ in range(2)]  # (MMA, MMA_M)
        # There are k tiles, so this is LOW_BITS. ptxas does not know, and would move a constant to a register for each
        # lop3 again.
        mask = LOW_BITS | (k_tiles >> 31)
        release = state.clone()
        mma.tiled_mma.set(warpgroup.Field.ACCUMULATE, False)
        self.multiply_mixed_stage(mma, acc, sets, mask, state, None)
        for _ in cutlass.range(1, k_tiles, unroll=1):
            self.multiply_mixed_stage(mma, acc, sets, mask, state, release)
        issued()
        warpgroup.wait_group(0)
        mma.ring.consumer_release(release)
        return state

    def multiply_mixed_stage(
        self, mma: StagedMma, acc: cute.Tensor, sets: list, mask: Any, state: Any, release: Any
    ) -> None:
        """Multiply a stage, and release the one before it, at ``release``."""
        mma.ring.consumer_wait(state)
        held = mma.a.load(state.index)
        for k_block in cutlass.range_constexpr(DEPTH // self.config.instruction_k):
            registers = sets[k_block % 2]
            warpgroup.wait_group(1)
            if release is not None and k_block == 1:
                mma.ring.consumer_release(release)
                release.advance()
            mma.a.converted(held, k_block, mask, registers)
            warpgroup.fence()
            cute.gemm(mma.tiled_mma, acc, registers, mma.b[None, None, k_block, state.index], acc)
            mma.tiled_mma.set(warpgroup.Field.ACCUMULATE, True)
            warpgroup.commit_group()
        state.advance()
