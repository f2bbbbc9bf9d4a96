"""Copies of matrices between memory of any alignment and rows that TMA can take."""

from __future__ import annotations

from typing import Any

import tilewright as cutlass
from tilewright import cute
from tilewright.gemm.kernel.overlap import wait_then_let_next_begin

THREADS = 256
EACH = 16
"""Elements of one thread: all are loaded before the first is written."""

WIDE, NARROW = 512, 128
"""Columns of a block's tile; a narrow tile has more rows instead."""


class PackMatrices:
    """target = source for pairs of (M, K, L) matrices in one launch, each pair of one element type.

    Threads go along the second mode, one element each: neither side need be aligned. ``columns`` of a block's tile:
    ``WIDE``, or ``NARROW`` for matrices of few columns.
    """

    def __init__(self, columns: int = WIDE) -> None:
        self.tile = THREADS * EACH // columns, columns

    @cute.jit
    def __call__(self, pairs: tuple, stream: Any = None) -> None:
        rows, columns = self.tile
        counts = []  # of tiles of each pair, all batches
        for i in cutlass.range_constexpr(len(pairs)):
            m, k, batch = pairs[i][1].shape
            counts.append(cute.ceil_div(m, rows) * cute.ceil_div(k, columns) * batch)
        total = counts[0]
        for i in cutlass.range_constexpr(1, len(counts)):
            total = total + counts[i]
        self.kernel(pairs, tuple(counts)).launch(grid=(total, 1, 1), block=(THREADS, 1, 1), stream=stream, use_pdl=True)

    @cute.kernel
    def kernel(self, pairs: tuple, counts: tuple) -> None:
        block, _, _ = cute.arch.block_idx()
        wait_then_let_next_begin()
        for i in cutlass.range_constexpr(len(pairs)):
            if (block >= 0) & (block < counts[i]):
                self.copy_tile(pairs[i][0], pairs[i][1], block)
            block = block - counts[i]

    @cute.jit
    def copy_tile(self, source: cute.Tensor, target: cute.Tensor, block: Any) -> None:
        """Tile ``block`` of one matrix: the columns of a row of tiles first, the batches last."""
        rows, columns = self.tile
        m, k, _ = target.shape
        across, down = cute.ceil_div(k, columns), cute.ceil_div(m, rows)
        at = (block // across % down, block % across)
        batch = block // (across * down)
        # Threads go along K, so that a warp reads neighbours; in a narrow tile they cover several rows at once.
        threads = cute.make_layout(
            (THREADS // columns, columns) if columns < THREADS else (1, THREADS),
            stride=(columns, 1) if columns < THREADS else (0, 1),
        )
        tidx, _, _ = cute.arch.thread_idx()
        mine = []
        for tensor in (source[None, None, batch], target[None, None, batch], cute.make_identity_tensor((m, k))):
            mine.append(cute.local_partition(cute.local_tile(tensor, self.tile, at), threads, tidx))
        from_, to, coordinates = mine  # (rows, columns) of one thread
        # All loads are issued before the first store waits for its element.
        held = cute.make_rmem_tensor(EACH, target.element_type)
        for e in cutlass.range_constexpr(EACH):
            if cute.elem_less(coordinates[e], (m, k)):
                held[e] = from_[e]
        for e in cutlass.range_constexpr(EACH):
            if cute.elem_less(coordinates[e], (m, k)):
                to[e] = held[e]
