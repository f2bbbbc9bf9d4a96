"""The multistage main loop for a 2:4 sparse A: mma.sp, with the metadata from global memory to registers.

A word of metadata of each lane serves 16 rows and 64 elements of K (32 of tf32), and lies beside those of the other
lanes: a warp loads 128 bytes for them, one k tile ahead of their multiplication, and nothing goes through shared
memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tilewright as cutlass
from tilewright import Int32, cute
from tilewright.atoms.sparsity import word_k
from tilewright.gemm.mainloop.multistage import MultistageMainloop, OperandSlices

ROWS, LANES = 16, 32


@dataclass(frozen=True)
class ComingMetadata:
    """The calling thread's words (1, MMA_M, bK / 64) of the k tile that is multiplied, and of the next one."""

    now: cute.Tensor
    next: cute.Tensor
    matrix: cute.Tensor  # (128 * M / 64, K / 64)
    first: Any  # where the first 16 rows' words are
    apart: int  # words from one 16 rows of the warp to the next
    shift: Any  # (K / 64 words) before the first k tile, which begins before the matrix where K is not whole tiles

    @cute.jit
    def load(self, into: cute.Tensor, k_tile: Any) -> None:
        """The words of a k tile; of the nearest one that there is, where A is zeros."""
        _, rows, words = into.shape
        last, k_last = cute.size(self.matrix, mode=[0]) - LANES, cute.size(self.matrix, mode=[1]) - 1
        lane = cute.arch.lane_idx()
        for m in cutlass.range_constexpr(rows):
            row = cute.min(self.first + m * self.apart, last) + lane
            for k in cutlass.range_constexpr(words):
                word = cute.min(cute.max(k_tile * words + k + self.shift, 0), k_last)
                into[0, m, k] = self.matrix[row, word]


@dataclass(frozen=True)
class SparseMultistageMainloop(MultistageMainloop):
    """acc += A[:, k tiles] @ B[:, k tiles] for a sparse A."""

    @property
    def steps(self) -> int:
        """Instructions along K that a word of metadata serves."""
        return self.word_k * self.config.a.dtype.width // 512

    @property
    def word_k(self) -> int:
        return word_k(self.config.a.dtype.width)

    def fill(self, copy: Any, source: cute.Tensor, target: cute.Tensor, block: int, stage: Any) -> None:
        for step in range(block * self.steps, (block + 1) * self.steps):
            cute.copy(copy, source[None, None, step, stage], target[None, None, step])

    def first_metadata(
        self, tiled_mma: cute.TiledMma, A: OperandSlices, B: OperandSlices, tidx: Any, k_begin: Any
    ) -> ComingMetadata:
        (bM, _, bK), (warps, _) = self.config.tile, self.config.warps
        matrix, tile_m = A.metadata
        shape = 1, bM // (ROWS * warps), bK // self.word_k
        now, following = cute.make_rmem_tensor(shape, Int32), cute.make_rmem_tensor(shape, Int32)
        K = cute.size(B.matrix, mode=[1])
        shift = K // self.word_k - cute.ceil_div(K, bK) * (bK // self.word_k)
        first = (tile_m * (bM // ROWS) + tidx // LANES % warps) * LANES
        found = ComingMetadata(now, following, matrix, first, warps * LANES, shift)
        found.load(found.now, k_begin)
        found.load(found.next, k_begin + 1)
        return found

    def next_metadata(self, more: ComingMetadata, k_tile: Any) -> None:
        more.now.store(more.next.load())
        more.load(more.next, k_tile + 1)

    def multiply(
        self,
        tiled_mma: cute.TiledMma,
        acc: cute.Tensor,
        tCrA: cute.Tensor,
        tCrB: cute.Tensor,
        k_block: int,
        more: ComingMetadata,
    ) -> None:
        a, b = (cute.logical_divide(x, (None, None, self.steps))[None, None, (None, k_block)] for x in (tCrA, tCrB))
        words = cute.local_tile(more.now, (1, more.now.shape[1], 1), (0, 0, k_block))
        cute.gemm(tiled_mma, acc, (a, words), b, acc)
