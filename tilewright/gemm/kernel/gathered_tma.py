"""Groups of products whose rows of A are found by index, on GPUs whose TMA gathers rows: sm_100, sm_120 and their like.

One instruction of TMA (``tile::gather4``) brings four rows that are not neighbours, each as wide as a stage. The tensor
map of A has a box of one row, of all rows that there are; each lane of the warp that loads has the numbers of the rows
that it brings, for a whole output tile. Missing rows are out of the tensor map's bounds: zeros.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import tilewright as cutlass
from tilewright import Int32, cute
from tilewright.cute.nvgpu import cpasync
from tilewright.errors import ConstraintError
from tilewright.gemm.config import HopperConfig
from tilewright.gemm.kernel.group_offsets import Groups
from tilewright.gemm.kernel.group_table import EXTENT, ORIGIN, matrices, numbers, stack
from tilewright.gemm.kernel.grouped_hopper import GroupedHopperGemm, GroupWork
from tilewright.gemm.kernel.grouped_sm120 import GroupedSm120Gemm
from tilewright.gemm.kernel.grouped_tensor_memory import GroupedTensorMemoryGemm
from tilewright.gemm.mainloop.mma_sync import MmaSyncMainloop
from tilewright.gemm.mainloop.tcgen05 import TensorMemoryMainloop
from tilewright.gemm.mainloop.tma import TmaMainloop
from tilewright.gemm.schedule.group_shares import GroupPiece
from tilewright.lang.device.bulk_tensors import load_rows

TOGETHER = 4
"""Rows that one instruction brings."""
LANES = 32


@dataclass(frozen=True)
class RowsOperand:
    """A as the lanes of the warp that loads bring it: ``rows`` (4, count) of this lane, the first column ``k``, the
    tensor map, and the ``stages`` (rows, bK, boxes, stages) of shared memory, rows one behind the other."""

    rows: cute.Tensor
    k: Any
    descriptor: Any
    stages: cute.Tensor
    extent: cutlass.Constexpr
    """Rows of a stage, and columns."""
    mode: int = 0

    @cute.jit
    def load(self, full: Any, stage: Any, k_tile: Any) -> None:
        """Issue the copies of one k tile."""
        bM, bK = self.extent
        lane = cute.arch.lane_idx()
        begin = cute.recast_ptr(self.stages.iterator)  # TMA permutes addresses itself
        for i in cutlass.range_constexpr(cute.size(self.rows, mode=[1])):
            first = TOGETHER * (lane + LANES * i)
            if first < bM:
                four = tuple(self.rows[j, i] for j in range(TOGETHER))
                place = begin + (stage * bM + first) * bK
                load_rows(place, self.descriptor, self.k + k_tile * bK, four, full)


class GathersRows(TmaMainloop):
    """The main loop whose A may be :class:`RowsOperand`."""

    def load_operand(self, operand: Any, full: Any, stage: Any, tile: Any, k_tile: Any, batch: Any) -> None:
        if isinstance(operand, RowsOperand):
            operand.load(full, stage, k_tile)
        else:
            super().load_operand(operand, full, stage, tile, k_tile, batch)


class GatheredByTma(GroupedHopperGemm):
    """D_i = f(A[rows_i] @ B_i, C_i) for each problem i of a table."""

    def __init__(self, config: HopperConfig) -> None:
        super().__init__(config)
        if config.cluster_size > 1:
            raise ConstraintError(f"rows of A are gathered by single blocks, not by pairs: {config}")

    def loads(self, operands: tuple, stage_layouts: tuple, cluster: tuple[int, int] = (1, 1)) -> tuple:
        """A by a box of one row."""
        mA, mB = operands
        bK = self.config.tile[2]
        row: Any = cute.make_layout((1, bK), stride=(bK, 1))
        if isinstance(stage_layouts[0], cute.ComposedLayout):
            row = cute.make_composed_layout(stage_layouts[0].inner, 0, row)
        kind = cpasync.CopyBulkTensorTileG2SOp(self.math.group)
        one_row = cpasync.make_tiled_tma_atom(kind, mA[None, None, 0], row, (1, bK))
        return one_row, self.mainloop.tma(mB, stage_layouts[1], 1)

    def mapped(self, table: cute.Tensor, problem: Any, groups: Groups) -> tuple:
        """A is all rows that there are."""
        A, B, _, D = matrices(table, problem, self.config, whole=False)
        rows: Any = groups.rows
        whole = cute.make_layout((rows.count, A.shape[1]), stride=A.stride)
        return cute.make_tensor(A.iterator, whole), stack(B), stack(D)

    @cute.jit
    def operands_of_problem(self, group: GroupWork, one: GroupPiece, descriptors: tuple) -> tuple:
        """What is loaded of a problem: the rows of its A by their numbers, and B."""
        (bM, _, bK), rows = self.config.tile, group.rows
        (m, n, k), (last, _, _) = (numbers(group.table, one.problem, column) for column in (ORIGIN, EXTENT))
        own = cute.make_rmem_tensor((TOGETHER, cute.ceil_div(bM, TOGETHER * LANES)), Int32)
        for i in cutlass.range_constexpr(cute.size(own, mode=[1])):
            for j in cutlass.range_constexpr(TOGETHER):
                row = m + one.place[0] * bM + TOGETHER * (cute.arch.lane_idx() + LANES * i) + j
                index = rows.index[cute.min(row, last - 1)]
                there = (row < last) & (index >= 0) & (index < rows.count)
                own[j, i] = cute.where(there, index, rows.count)
        A = RowsOperand(own, k, descriptors[0], group.stages[0], (bM, bK))
        atom, coordinates = group.loads[1]
        B = self.mainloop.operand(atom, cute.domain_offset((n, k, 0), coordinates), group.stages[1], 1)
        return A, replace(B, descriptor=descriptors[1])


@dataclass(frozen=True)
class GatheredTensorMemoryMainloop(GathersRows, TensorMemoryMainloop):
    """That of tcgen05."""


@dataclass(frozen=True)
class GatheredMmaSyncMainloop(GathersRows, MmaSyncMainloop):
    """That of mma.sync."""


class GatheredTensorMemoryGemm(GatheredByTma, GroupedTensorMemoryGemm):
    """On sm_100a and its like."""

    def make_mainloop(self) -> GatheredTensorMemoryMainloop:
        return GatheredTensorMemoryMainloop(self.config, self.make_math())


class GatheredSm120Gemm(GatheredByTma, GroupedSm120Gemm):
    """On sm_120a and its like."""

    def make_mainloop(self) -> GatheredMmaSyncMainloop:
        return GatheredMmaSyncMainloop(self.config, self.make_math())
