"""Products of different sizes in one launch: persistent blocks that take the output tiles of all of them.

The problems are in a table in global memory, a row of numbers each; the tiles of all problems are numbered through,
problem after problem. Block b takes tiles b, b + blocks, ...; as its tiles only go up, it looks for the problem of the
next tile from that of the last one on.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import tilewright as cutlass
from tilewright import Int32, cute, range
from tilewright.gemm.epilogue.functions import EpilogueFunction
from tilewright.gemm.kernel.group_offsets import GatheredRows, Groups, fill_table
from tilewright.gemm.kernel.group_table import BIAS, EXTENT, FIRST, ITERATION, function_of, matrices, share_of, tiles_of
from tilewright.gemm.kernel.multistage import DATA_PARALLEL, BlockShare, MultistageGemm, ProductTensors
from tilewright.gemm.kernel.overlap import wait_then_let_next_begin
from tilewright.gemm.schedule.group_shares import least_iterations
from tilewright.gemm.tiles import global_to_shared


class GroupedGemm(MultistageGemm):
    """D_i = f(A_i @ B_i, C_i) for each problem i of a table; all are laid out as ``config`` says. K may be 0."""

    @cute.jit
    def __call__(  # type: ignore[override]  # a table in place of matrices
        self,
        table: cute.Tensor,
        blocks: Int32,
        groups: Groups,
        function: EpilogueFunction,
        shares: Any,
        stream: Any = None,
    ) -> None:
        """Launch ``blocks`` blocks for the tiles of the problems in ``table`` (problems + 1, COLUMNS), which ``groups``
        fill in first where they are known on the device alone. With :class:`GroupShares` blocks share tiles."""
        config = self.config
        bM, bN, bK = config.tile
        fill_table(groups, table, config, stream)
        self.kernel(
            table,
            groups.rows,
            function,
            shares,
            self.math.smem_layout(config.a, (bM, bK)),
            self.math.smem_layout(config.b, (bN, bK)),
            global_to_shared(config.a, (bM, bK), config.threads),
            global_to_shared(config.b, (bN, bK), config.threads),
            self.math.tiled_mma(),
        ).launch(grid=(blocks, 1, 1), block=(config.threads, 1, 1), stream=stream, use_pdl=True)

    @cute.kernel
    def kernel(  # type: ignore[override]  # a table in place of matrices
        self,
        table: cute.Tensor,
        rows: Any,
        function: EpilogueFunction,
        shares: Any,
        sA_layout: cutlass.Constexpr,
        sB_layout: cutlass.Constexpr,
        copy_A: cute.TiledCopy,
        copy_B: cute.TiledCopy,
        tiled_mma: cute.TiledMma,
    ) -> None:
        first, _, _ = cute.arch.block_idx()
        blocks, _, _ = cute.arch.grid_dim()
        smem, slices_of = self.shared_memory(sA_layout, sB_layout, copy_A, copy_B)
        wait_then_let_next_begin()
        piece = partial(self.piece_of_group, tiled_mma, smem, slices_of, table, rows, function)
        if cutlass.const_expr(shares is None):
            problem = Int32(0)
            for tile in range(first, tiles_of(table), blocks, unroll=1):
                while table[problem + 1, FIRST] <= tile:
                    problem = problem + 1
                k_tiles = self.k_tiles(table, problem)
                piece(problem, tile - table[problem, FIRST].to(Int32), 0, k_tiles, k_tiles, DATA_PARALLEL)
        else:
            even, begin, end = share_of(table)
            problem = cute.size(table, mode=[0]) - 2
            while end > begin:
                while table[problem, ITERATION] >= end:
                    problem = problem - 1
                k_tiles, before = self.k_tiles(table, problem), table[problem, ITERATION].to(Int32)
                each = least_iterations(k_tiles)
                inside = (end - 1 - before) // each
                start = before + inside * each
                shared = shares.of_problem(even, before, each)
                last = cute.min(end - start, k_tiles)
                piece(problem, inside, cute.max(begin - start, 0), last, k_tiles, shared)
                end = cute.max(begin, start)

    def k_tiles(self, table: cute.Tensor, problem: Any) -> Any:
        """The k tiles of an output tile of ``problem``."""
        return cute.ceil_div(table[problem, EXTENT + 2].to(Int32), self.config.tile[2])

    @cute.jit
    def piece_of_group(
        self,
        tiled_mma: cute.TiledMma,
        smem: Any,
        slices_of: Any,
        table: cute.Tensor,
        rows: Any,
        function: EpilogueFunction,
        problem: Any,
        inside: Any,
        k_begin: Any,
        k_end: Any,
        k_tiles: Any,
        shared: Any,
    ) -> None:
        """K tiles [k_begin, k_end) of tile ``inside`` of one problem."""
        mA, mB, mC, mD = matrices(table, problem, self.config)
        extent = (cute.size(mD, mode=[0]), cute.size(mD, mode=[1]))
        gather = count = None
        if cutlass.const_expr(rows is not None):
            gather, count = self.rows_of_group(rows, table, problem, cute.size(mA, mode=[0])), rows.count
        slices = slices_of(mA, mB, gather, None, count)
        work = BlockShare(tiled_mma, smem, function_of(function, table, problem), shared, extent, k_tiles)
        self.piece(work, ProductTensors(slices, mC, mD), inside, k_begin, k_end)
        cute.arch.sync_threads()  # the next tile's stages take the place of this one's epilogue

    def rows_of_group(self, rows: GatheredRows, table: cute.Tensor, problem: Any, extent: Any) -> cute.Tensor:
        """Where the rows of A of one group are."""
        own = cute.domain_offset((table[problem, BIAS].to(Int32),), rows.index)
        return cute.make_tensor(own.iterator, cute.make_layout(extent, stride=rows.index.stride[0]))
