"""The main loop of mma.sync on stages that TMA fills: ldmatrix brings one step of K to registers while the step before
is multiplied, also from one stage into the next.

    wait full[s]; ldmatrix of step 0
    every stage: ldmatrix of step k + 1 (behind the last one: wait full[s + 1], its step 0); mma.sync of step k
                 arrive on empty[s] when the last step's fragments have been used
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import tilewright as cutlass
from tilewright import cute
from tilewright.cute.nvgpu import warp
from tilewright.gemm.config import Major, Operand
from tilewright.gemm.mainloop.math import tensor_core_op
from tilewright.gemm.mainloop.staged_mma import StagedMma
from tilewright.gemm.mainloop.tma import TmaMainloop, _nothing
from tilewright.gemm.mainloop.wgmma import WgmmaMath
from tilewright.gemm.sm120_config import PERMUTATION, WARPS, Sm120Config


@dataclass(frozen=True)
class MmaSyncMath(WgmmaMath):
    """mma.sync by the four warps of a warpgroup; stages are swizzled as those of wgmma, which suits ldmatrix."""

    config: Sm120Config

    def tiled_mma(self, columns: int | None = None, warpgroups: int = 1) -> Any:
        """One warpgroup's, whatever the columns: each thread has sums of all parts."""
        op = self.op()
        return cute.make_tiled_mma(op, (*WARPS, 1), (*PERMUTATION, op.shape_mnk[2]))

    def op(self) -> Any:
        """The instruction."""
        a, b, acc = self.config.a.dtype, self.config.b.dtype, self.config.acc_dtype
        if a is b:
            return tensor_core_op(a, acc)
        return warp.MmaFP8Op(a, acc, (16, 8, 32), b_dtype=b)

    def to_registers(self, operand: Operand) -> cute.CopyAtom:
        """ldmatrix of four matrices."""
        op = warp.LdMatrix8x8x16bOp(transpose=operand.major is Major.MN, num_matrices=4)
        return cute.make_copy_atom(op, operand.dtype)


@dataclass(frozen=True)
class Fragment:
    """What a thread multiplies: ``registers`` (MMA, MMA_MN, MMA_K), and what fills them: (tiled copy, source (CPY,
    CPY_MN, CPY_K, stages), target (CPY, CPY_MN, CPY_K))."""

    registers: Any
    copy: tuple

    def fill(self, k_block: int, stage: Any) -> None:
        """Bring one step of K to registers."""
        copy, source, target = self.copy
        cute.copy(copy, source[None, None, k_block, stage], target[None, None, k_block])

    def step(self, k_block: int, stage: Any) -> Any:
        """What the instruction takes for one step of K of a stage."""
        return self.registers[None, None, k_block]


@dataclass(frozen=True)
class MmaSyncMainloop(TmaMainloop):
    """acc = A[:, k tiles] @ B[:, k tiles]; ``StagedMma.a`` and ``b`` are :class:`Fragment` s."""

    config: Sm120Config
    math: MmaSyncMath

    BY: ClassVar[str] = "ldmatrix with TMA"

    @cute.jit
    def multiply(
        self, mma: StagedMma, acc: cute.Tensor, state: Any, k_tiles: Any, issued: Callable[[], None] = _nothing
    ) -> Any:
        """acc = the sum over ``k_tiles`` > 0 stages; gives the pipeline's state after them. One warpgroup."""
        acc.fill(0)
        mma.ring.consumer_wait(state)
        self.fill(mma, 0, state.index)
        for _ in cutlass.range(1, k_tiles, unroll=1):
            state = self.multiply_step(mma, acc, state, True)
        issued()
        return self.multiply_step(mma, acc, state, False)

    @cute.jit
    def multiply_promoted(self, mma: StagedMma, acc: cute.Tensor, state: Any, k_tiles: Any, scales: Any) -> Any:
        """As :meth:`multiply`, but the sums of each stage are multiplied by their ``scales`` (a ``TileScales``), which
        are loaded while it is multiplied, and then added to ``acc``."""
        acc.fill(0)
        short = cute.make_rmem_tensor_like(acc)
        mma.ring.consumer_wait(state)
        self.fill(mma, 0, state.index)
        for following in cutlass.range(1, k_tiles, unroll=1):
            state = self.add_stage_of(mma, acc, short, state, scales, following - 1, True)
        return self.add_stage_of(mma, acc, short, state, scales, k_tiles - 1, False)

    def add_stage_of(
        self, mma: StagedMma, acc: cute.Tensor, short: cute.Tensor, state: Any, scales: Any, k_tile: Any, more: bool
    ) -> Any:
        """acc += one stage by its scales, as :meth:`multiply_step`."""
        loaded = scales.load(k_tile)
        short.fill(0)
        state = self.multiply_step(mma, short, state, more)
        acc.store(acc.load() + scales.applied_to_all(short.load(), loaded))
        return state

    @cute.jit
    def multiply_step(self, mma: StagedMma, acc: cute.Tensor, state: Any, more: cutlass.Constexpr) -> Any:
        """acc += one stage, whose first step is in registers; where there is ``more`` the next stage's first step then
        is."""
        release = state.clone()
        state.advance()
        blocks = cute.size(mma.a.registers, mode=[2])
        for block in cutlass.range_constexpr(blocks):
            if cutlass.const_expr(block + 1 < blocks):
                self.fill(mma, block + 1, release.index)
            elif cutlass.const_expr(more):
                mma.ring.consumer_wait(state)
                self.fill(mma, 0, state.index)
            cute.gemm(mma.tiled_mma, acc, mma.a.step(block, release.index), mma.b.step(block, release.index), acc)
        mma.ring.consumer_release(release)
        return state

    def fill(self, mma: StagedMma, k_block: int, stage: Any) -> None:
        """Bring one step of A and of B to registers."""
        mma.a.fill(k_block, stage)
        mma.b.fill(k_block, stage)
