"""The main loop of block-scaled products: factors come by TMA with the stage, and ``tcgen05.cp`` brings them to tensor
memory, where the MMAs of the stage read them.

The copy of the next stage may take the same place: the tensor core does copies and MMAs in the order in which a thread
issues them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tilewright as cutlass
from tilewright import cute
from tilewright.cute.nvgpu import tcgen05
from tilewright.gemm.block_scaled_config import BLOCK_BYTES, BlockScaledConfig
from tilewright.gemm.mainloop.factors import FactorsMainloop, FactorsOperand
from tilewright.gemm.mainloop.staged_mma import StagedMma
from tilewright.gemm.mainloop.tcgen05 import TensorMemoryMainloop, TensorMemoryMath
from tilewright.gemm.mainloop.tma import TmaOperand
from tilewright.utils import blackwell_helpers, blockscaled_layout


@dataclass(frozen=True)
class BlockScaledMath(TensorMemoryMath):
    """As :class:`TensorMemoryMath`, of operands with factors."""

    config: BlockScaledConfig

    def _mma(self, group: Any, shape: tuple[int, int]) -> Any:
        config, along_k = self.config, tcgen05.OperandMajorMode.K
        a, b = config.a.dtype, config.b.dtype
        if a is not b:
            op = tcgen05.MmaMXF8F6F4Op(
                a, b, (*shape, config.vector), group, tcgen05.OperandSource.SMEM, along_k, along_k
            )
            return cute.make_tiled_mma(op)
        make = blackwell_helpers.make_blockscaled_trivial_tiled_mma
        return make(a, along_k, along_k, config.factor, config.vector, group, shape)


@dataclass(frozen=True)
class ScaledFragments:
    """A as the MMA reads it: the descriptors of its stages, the factors of A and of B in shared memory, and where in
    tensor memory these go to; those of the columns of B begin ``shift`` bytes after that."""

    stored: cute.Tensor
    factors: tuple[cute.Tensor, cute.Tensor]
    place: Any = None
    shift: Any = 0


HALF_BLOCK = 8
"""Bytes between the factors of a row and of the 64th row after it, in one lane of tensor memory."""


@dataclass(frozen=True)
class BlockScaledMainloop(FactorsMainloop, TensorMemoryMainloop):
    """sums = (A * factors) @ (B * factors) of k tiles."""

    config: BlockScaledConfig
    math: BlockScaledMath

    def first_box(self, operand: TmaOperand, tile: Any) -> Any:
        """Both blocks of a pair load the factors of all columns of B."""
        of_pair = isinstance(operand, FactorsOperand) and operand.mode == 1
        return super().first_box(operand, tile // self.config.ctas if of_pair else tile)

    def stages_of_factors(self, layout: Any) -> Any:
        """A layout of ``blockscaled_layout``, whose blocks follow each other along the rows first, for the order in
        which TMA fills a stage: along K first."""
        ((of_row, blocks), of_k), of_tile, (inner, along_k), stages = layout.shape
        ((row, _), k), tile, (step, _), _ = layout.stride
        each = BLOCK_BYTES * self.config.factor_blocks
        stride = ((row, each), k), tile, (step, BLOCK_BYTES), each * blocks
        return cute.make_layout((((of_row, blocks), of_k), of_tile, (inner, along_k), stages), stride=stride)

    def in_tensor_memory(self, mma: cute.TiledMma, part: ScaledFragments) -> tuple[tuple, tuple]:
        """The copies of A's and of B's factors to tensor memory, each with what it reads and writes, and the factors
        there, as the MMA reads them."""
        config = self.config
        (bM, bN, bK), vector, place = config.tile, config.vector, part.place
        tile = bM * config.ctas, bN, bK
        atom = cute.make_copy_atom(tcgen05.Cp4x32x128bOp(self.math.group), config.factor)
        copies, read = [], []
        for stages, in_shared, in_tensor in (
            (part.factors[0], blockscaled_layout.make_smem_layout_sfa, blockscaled_layout.make_tmem_layout_sfa),
            (part.factors[1], blockscaled_layout.make_smem_layout_sfb, blockscaled_layout.make_tmem_layout_sfb),
        ):
            layout = self.stages_of_factors(in_shared(mma, tile, vector, config.stages))
            held = cute.make_tensor(cute.recast_ptr(stages.iterator, dtype=config.factor), layout)
            of_stage = cute.slice_(layout, (None, None, None, 0))
            taken = cute.make_tensor(
                cute.recast_ptr(place, dtype=config.factor), in_tensor(mma, tile, vector, of_stage)
            )
            target = cute.filter_zeros(taken)
            copy = tcgen05.make_s2t_copy(atom, target)
            mine = copy.get_slice(0)
            source = tcgen05.get_s2t_smem_desc_tensor(copy, mine.partition_S(cute.filter_zeros(held)))
            copies.append((copy, source, mine.partition_D(target)))
            read.append(taken)
            place = place + tcgen05.find_tmem_tensor_col_offset(taken)
        return tuple(copies), tuple(read)

    @cute.jit
    def multiply_tile(self, staged: StagedMma, sums: cute.Tensor, state: Any, k_tiles: Any) -> Any:
        """sums = the sum over ``k_tiles`` > 0 stages; gives the pipeline's state after them. One warp. ``staged.a`` are
        :class:`ScaledFragments`."""
        mma, ring, stored = staged.tiled_mma, staged.ring, staged.a.stored
        copies, (of_a, of_b) = self.in_tensor_memory(mma, staged.a)
        mma.set(tcgen05.Field.SFA, of_a[None, None, 0].iterator)
        mma.set(tcgen05.Field.SFB, of_b[None, None, 0].iterator)
        mma.set(tcgen05.Field.ACCUMULATE, False)
        for _ in cutlass.range(k_tiles, unroll=1):
            ring.consumer_wait(state)
            for copy, source, target in copies:
                cute.copy(copy, source[None, None, None, None, state.index], target)
            for k_block in cutlass.range_constexpr(cute.size(stored, mode=[2])):
                here = (None, None, k_block, state.index)
                mma.set(tcgen05.Field.SFA, of_a[None, None, k_block].iterator)
                mma.set(tcgen05.Field.SFB, of_b[None, None, k_block].iterator + staged.a.shift)
                cute.gemm(mma, sums, stored[here], staged.b[here], sums)
                mma.set(tcgen05.Field.ACCUMULATE, True)
            ring.consumer_release(state)
            state.advance()
        return state
