"""Products of different sizes in one launch: persistent blocks that take the output tiles of all of them.

The problems stand in a table in global memory, a row of numbers each; the tiles of all problems are numbered through,
problem after problem. Block b takes tiles b, b + blocks, ...; as its tiles only go up, it looks for the problem of the
next tile from that of the last one on.
"""

from __future__ import annotations

from typing import Any

import tilewright as cutlass
from tilewright import Int32, cute, range
from tilewright.gemm.config import Major, Operand
from tilewright.gemm.epilogue.functions import EpilogueFunction
from tilewright.gemm.kernel.multistage import DATA_PARALLEL, MultistageGemm
from tilewright.gemm.tiles import aligned, global_to_shared

ADDRESS, PITCH, EXTENT, FIRST, COLUMNS = 0, 4, 8, 11, 12
"""Columns of the table, of Int64: addresses of A, B, C and D; elements from one row (or column) of each to the next; M,
N and K; the number of the problem's first tile. One more row has the number of all tiles as its first."""


class GroupedGemm(MultistageGemm):
    """D_i = f(A_i @ B_i, C_i) for each problem i of a table; all are laid out as ``config`` says. K may be 0."""

    @cute.jit
    def __call__(  # type: ignore[override]
        self, table: cute.Tensor, tiles: Int32, blocks: Int32, function: EpilogueFunction, stream: Any = None
    ) -> None:
        """Launch ``blocks`` blocks for the ``tiles`` tiles of the problems in ``table`` (problems + 1, COLUMNS)."""
        config = self.config
        bM, bN, bK = config.tile
        self.kernel(
            table, tiles, function,
            self.math.smem_layout(config.a, (bM, bK)),
            self.math.smem_layout(config.b, (bN, bK)),
            global_to_shared(config.a, (bM, bK), config.threads),
            global_to_shared(config.b, (bN, bK), config.threads),
            self.math.tiled_mma(),
        ).launch(grid=(blocks, 1, 1), block=(config.threads, 1, 1), stream=stream)  # fmt: skip

    @cute.kernel
    def kernel(  # type: ignore[override]
        self, table: cute.Tensor, tiles: Int32, function: EpilogueFunction,
        sA_layout: cutlass.Constexpr, sB_layout: cutlass.Constexpr,
        copy_A: cute.TiledCopy, copy_B: cute.TiledCopy, tiled_mma: cute.TiledMma,
    ) -> None:  # fmt: skip
        first, _, _ = cute.arch.block_idx()
        blocks, _, _ = cute.arch.grid_dim()
        smem, slices_of = self.shared_memory(sA_layout, sB_layout, copy_A, copy_B)
        problem = Int32(0)
        for tile in range(first, tiles, blocks, unroll=1):
            while table[problem + 1, FIRST] <= tile:
                problem = problem + 1
            mA, mB, mC, mD = self.matrices(table, problem)
            k_tiles = cute.ceil_div(cute.size(mA, mode=[1]), self.config.tile[2])
            inside = tile - table[problem, FIRST].to(Int32)
            extent = (cute.size(mD, mode=[0]), cute.size(mD, mode=[1]))
            self.piece(
                tiled_mma, slices_of(mA, mB), mC, mD, smem, function, DATA_PARALLEL, extent, None, k_tiles,
                inside, 0, k_tiles,
            )  # fmt: skip
            cute.arch.sync_threads()  # the next tile's stages take the place of this one's epilogue

    def matrices(self, table: cute.Tensor, problem: Any) -> tuple[Any, Any, Any, Any]:
        """A (M, K), B (N, K), C and D (M, N) of a problem."""
        m, n, k = (table[problem, EXTENT + mode].to(Int32) for mode in (0, 1, 2))
        config = self.config
        shapes = (((m, k), config.a), ((n, k), config.b), ((m, n), config.c), ((m, n), config.c))
        return tuple(  # type: ignore[return-value]
            matrix(table[problem, ADDRESS + i], table[problem, PITCH + i].to(Int32), shape, operand)
            for i, (shape, operand) in enumerate(shapes)
        )


def matrix(address: Any, pitch: Any, shape: tuple[Any, Any], operand: Operand) -> Any:
    """The matrix at an address, contiguous along the operand's major."""
    align = max(operand.copy_bits, operand.dtype.width) // 8
    pointer = cute.make_ptr(operand.dtype, address, cute.AddressSpace.gmem, assumed_align=align)
    stride = (pitch, 1) if operand.major is Major.K else (1, pitch)
    return aligned(cute.make_tensor(pointer, cute.make_layout(shape, stride=stride)), operand)
