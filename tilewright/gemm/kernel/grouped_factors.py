"""Groups of block-scaled products: groups of rows of A, each times a matrix of a stack.

Tables, tensor maps and roles are those of the kernels for groups; factors come beside A and B as in the dense kernels.
The factors of each group fill whole blocks of 128 rows, so the blocks of a group begin where as many tiles of 128 rows
have gone before, wherever in A its rows begin.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from tilewright import Int32, cute
from tilewright.errors import ConstraintError
from tilewright.gemm.block_scaled_config import ROWS
from tilewright.gemm.epilogue.functions import EpilogueFunction
from tilewright.gemm.kernel.block_scaled import BlockScaledGemm
from tilewright.gemm.kernel.block_scaled_sm120 import BlockScaledSm120Gemm
from tilewright.gemm.kernel.factors import FactorsGemm
from tilewright.gemm.kernel.group_offsets import Groups
from tilewright.gemm.kernel.group_table import EXTENT, FIRST
from tilewright.gemm.kernel.grouped_hopper import GroupedHopperGemm, GroupWork
from tilewright.gemm.kernel.grouped_sm120 import GroupedSm120Gemm
from tilewright.gemm.kernel.grouped_tensor_memory import GroupedTensorMemoryGemm
from tilewright.gemm.mainloop.factors import FactorsOperand
from tilewright.gemm.mainloop.tma import TmaOperand
from tilewright.gemm.schedule.group_shares import GroupPiece


class GroupedFactorsGemm(GroupedHopperGemm, FactorsGemm):
    """D_i = f((A_i * factors) @ (B_i * factors)) for the groups i of the rows of A, and as many matrices B."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        if config.tile[0] != ROWS or config.transposed:
            raise ConstraintError(
                f"groups of rows with factors have tiles of {ROWS} rows, not transposed: not {config}"
            )

    @cute.jit
    def __call__(  # type: ignore[override]  # factors beside the matrices
        self,
        mA: cute.Tensor,
        mB: cute.Tensor,
        mSFA: cute.Tensor,
        mSFB: cute.Tensor,
        mD: cute.Tensor,
        table: cute.Tensor,
        maps: cute.Tensor,
        blocks: Int32,
        groups: Groups,
        function: EpilogueFunction,
        shares: Any,
        stream: Any = None,
    ) -> None:
        """As the kernel of Hopper. ``mSFA`` (blocks of 128 rows, words, 1) has the factors of all groups, ``mSFB``
        (blocks, words, groups) those of the matrices B."""
        a, b = cute.recast_tensor(mA, self.config.a.dtype), cute.recast_tensor(mB, self.config.b.dtype)
        self.launch_groups((a, b, mSFA, mSFB), mD, table, maps, blocks, groups, function, shares, stream)

    @cute.jit
    def operands_of_problem(self, group: GroupWork, one: GroupPiece, descriptors: tuple) -> tuple[TmaOperand, ...]:
        """A, B and their factors. A table row behind the last group has K = 0, so its factors are never read."""
        matrices = super().operands_of_problem(group, one, descriptors)
        across = cute.ceil_div(group.table[one.problem, EXTENT + 1].to(Int32), self.config.tile[1])
        block = group.table[one.problem, FIRST].to(Int32) // across
        begins = (block, 0, 0), (0, 0, cute.min(one.problem, cute.size(group.loads[3][1], mode=[2]) - 1))
        factors = []
        for mode, begin in enumerate(begins):
            atom, coordinates = group.loads[2 + mode]
            moved = cute.domain_offset(begin, coordinates)
            found = self.mainloop.operand(atom, moved, group.stages[2 + mode], mode)
            factors.append(FactorsOperand(*(getattr(found, field.name) for field in fields(found))))
        return *matrices, *factors


class GroupedBlockScaledGemm(GroupedFactorsGemm, GroupedTensorMemoryGemm, BlockScaledGemm):
    """As :class:`GroupedFactorsGemm`, on sm_100a and its like."""


class GroupedBlockScaledSm120Gemm(GroupedFactorsGemm, GroupedSm120Gemm, BlockScaledSm120Gemm):
    """The same on sm_120a and its like."""
