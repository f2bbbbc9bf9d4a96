"""The multistage main loop: cp.async into a ring of shared-memory stages, registers double-buffered, any math.

The software pipeline, per k block of the current tile:

    last block of a tile:  wait until the next tile has landed, barrier
    every block:           shared -> registers for block + 1
    first block of a tile: issue cp.async for the tile ``stages - 1`` ahead
    every block:           multiply block

Single elements of less than 4 bytes, which cp.async cannot copy, go through registers: they are loaded in the first
block and stored in the last.

Source of the scheme: CUTLASS "Efficient GEMM in CUDA", section Pipelining.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tilewright as cutlass
from tilewright import cute
from tilewright.errors import ConstraintError
from tilewright.gemm.config import GemmConfig, Operand
from tilewright.gemm.mainloop.granules import GranuleLoader
from tilewright.gemm.mainloop.loader import TileLoader
from tilewright.gemm.mainloop.math import SimtMath, TensorOpMath


@dataclass(frozen=True)
class OperandSlices:
    """One operand as a thread block loads it: ``matrix`` (MN, K), its tile's slices ``g`` (MN, K, k tiles) and their
    coordinates ``c``, the ``extent`` of MN, the shared-memory stages ``s`` (MN, K, stages), and the copy that fills
    them."""

    matrix: Any
    g: Any
    c: Any
    extent: Any
    s: Any
    copy: Any
    gather: Any = None
    count: Any = None
    metadata: Any = None  # of a sparse A: those of the whole matrix, and the tile's number along M

    @staticmethod
    def of(
        matrix: Any, tile: tuple[int, int], index: Any, stages: Any, copy: Any, gather: Any = None, count: Any = None
    ) -> OperandSlices:
        """The slices of tile ``index`` along MN. K is shifted so that only the first k tile may be partial. ``gather``:
        the indices of the rows to load; ``count``: the number of rows of the matrix, if the indices were not
        checked."""
        if gather is not None:  # tiles are of the rows that the indices name; the loader moves each to its place
            shape = (cute.size(gather), cute.size(matrix, mode=[1]))
            matrix = cute.make_tensor(matrix.iterator, cute.make_layout(shape, stride=matrix.stride))
        extent, K = cute.size(matrix, mode=[0]), cute.size(matrix, mode=[1])
        residue = K - cute.ceil_div(K, tile[1]) * tile[1]
        g, c = (
            cute.local_tile(cute.domain_offset((0, residue), tensor), tile, (index, None))
            for tensor in (matrix, cute.make_identity_tensor(matrix.shape))
        )  # (MN, K, k tiles)
        return OperandSlices(matrix, g, c, extent, stages, copy, gather, count)


@dataclass(frozen=True)
class MultistageMainloop:
    """acc += A[:, k tiles] @ B[:, k tiles], by all threads of the block."""

    config: GemmConfig
    math: TensorOpMath | SimtMath

    @cute.jit
    def run(
        self,
        tiled_mma: cute.TiledMma,
        tidx: Any,
        acc: cute.Tensor,
        A: OperandSlices,
        B: OperandSlices,
        k_begin: Any,
        k_end: Any,
    ) -> None:
        """Multiply k tiles ``k_begin`` to ``k_end``; shared memory must be free and is so again in the end."""
        stages = self.config.stages
        loader_A = self.loader(self.config.a, A, tidx, k_begin)
        loader_B = self.loader(self.config.b, B, tidx, k_begin)
        thr_mma = tiled_mma.get_slice(tidx)
        tCrA = thr_mma.make_fragment_A(thr_mma.partition_A(A.s[None, None, 0]))  # (MMA, MMA_M, MMA_K)
        tCrB = thr_mma.make_fragment_B(thr_mma.partition_B(B.s[None, None, 0]))  # (MMA, MMA_N, MMA_K)
        to_rA = self.math.to_registers_A(tiled_mma)
        to_rB = self.math.to_registers_B(tiled_mma)
        tXsA = to_rA.get_slice(tidx).partition_S(A.s)  # (CPY, CPY_M, CPY_K, stages)
        tXrA = to_rA.retile(tCrA)  # (CPY, CPY_M, CPY_K)
        tXsB = to_rB.get_slice(tidx).partition_S(B.s)  # (CPY, CPY_N, CPY_K, stages)
        tXrB = to_rB.retile(tCrB)  # (CPY, CPY_N, CPY_K)
        k_blocks = double_buffered(cute.size(tCrA, mode=[2]) // self.steps, self.config.tile[2])

        if k_end > k_begin:
            # Fill all stages but one. A short K leaves stages that hold zeros and are never multiplied.
            loader_A.load_first(0)
            loader_B.load_first(0)
            cute.arch.cp_async_commit_group()
            for stage in cutlass.range_constexpr(1, stages - 1):
                if k_begin + stage >= k_end:
                    loader_A.stop()
                    loader_B.stop()
                loader_A.load(cute.min(k_begin + stage, k_end - 1), stage)
                loader_B.load(cute.min(k_begin + stage, k_end - 1), stage)
                cute.arch.cp_async_commit_group()
            if k_begin + (stages - 1) >= k_end:
                loader_A.stop()
                loader_B.stop()

            cute.arch.cp_async_wait_group(stages - 2)
            cute.arch.sync_threads()
            self.fill(to_rA, tXsA, tXrA, 0, 0)
            self.fill(to_rB, tXsB, tXrB, 0, 0)
            more = self.first_metadata(tiled_mma, A, B, tidx, k_begin)

            read = cutlass.Int32(0)
            write = cutlass.Int32(stages - 1)
            for k_tile in cutlass.range(k_begin, k_end, unroll=1):
                ahead = cute.min(k_tile + (stages - 1), k_end - 1)
                for k_block in cutlass.range_constexpr(k_blocks):
                    if cutlass.const_expr(k_block == k_blocks - 1):  # the next fragment comes from the next stage
                        loader_A.finish(write)
                        loader_B.finish(write)
                        write = advance(write, stages)
                        read = advance(read, stages)
                        cute.arch.cp_async_wait_group(stages - 2)
                        cute.arch.sync_threads()
                    following = (k_block + 1) % k_blocks
                    self.fill(to_rA, tXsA, tXrA, following, read)
                    self.fill(to_rB, tXsB, tXrB, following, read)
                    if cutlass.const_expr(k_block == 0):
                        loader_A.begin(ahead, write)
                        loader_B.begin(ahead, write)
                        cute.arch.cp_async_commit_group()
                    self.multiply(tiled_mma, acc, tCrA, tCrB, k_block, more)
                self.next_metadata(more, k_tile + 1)
            cute.arch.cp_async_wait_group(0)

    @property
    def steps(self) -> int:
        """The number of instructions along K in one k block."""
        return 1

    def fill(self, copy: Any, source: cute.Tensor, target: cute.Tensor, block: int, stage: Any) -> None:
        """Copy a k block from a stage in shared memory to registers."""
        cute.copy(copy, source[None, None, block, stage], target[None, None, block])

    def first_metadata(
        self, tiled_mma: cute.TiledMma, A: OperandSlices, B: OperandSlices, tidx: Any, k_begin: Any
    ) -> Any:
        """What the first k tile's products need beside A and B: the metadata of a sparse A; None for a dense one."""
        return None

    def next_metadata(self, more: Any, k_tile: Any) -> None:
        """Replace ``more`` by that of k tile ``k_tile``."""

    def multiply(
        self, tiled_mma: cute.TiledMma, acc: cute.Tensor, tCrA: cute.Tensor, tCrB: cute.Tensor, k_block: int, more: Any
    ) -> None:
        cute.gemm(tiled_mma, acc, tCrA[None, None, k_block], tCrB[None, None, k_block], acc)

    def loader(self, operand: Operand, slices: OperandSlices, tidx: Any, k_begin: Any) -> TileLoader | GranuleLoader:
        g, c, s, extent = slices.g, slices.c, slices.s, slices.extent
        if slices.gather is None and self.config.granular(operand):
            return GranuleLoader(operand, slices.copy, tidx, g, c, s, extent, k_begin, slices.matrix)
        stride = slices.matrix.stride[0]
        return TileLoader(operand, slices.copy, tidx, g, c, s, extent, k_begin, slices.gather, stride, slices.count)


def double_buffered(k_blocks: int, bK: int) -> int:
    """``k_blocks``, which must be two at least: while one is multiplied, the registers of another are filled."""
    if k_blocks < 2:
        raise ConstraintError(
            f"a K tile of {bK} is one step of the MMA; the pipeline fills one step while it multiplies another: "
            f"take a K tile of at least {2 * bK}"
        )
    return k_blocks


@cute.jit
def advance(stage: cutlass.Int32, stages: cutlass.Constexpr) -> cutlass.Int32:
    """The next stage of the ring, without a division."""
    return cutlass.Int32(0) if stage + 1 == stages else stage + 1
