"""A prepared weight written out as floats, for products of many rows; and rows of 8-bit floats in 16 bits.

The weight is read once and written once, one to four times as large: next to a product of thousands of rows that is
little.
"""

from __future__ import annotations

from typing import Any

from tilewright import Constexpr, Float8E4M3FN, Float16, Float32, Int32, Int64, const_expr, cute, range_constexpr
from tilewright.gemm.addressing import aligned_pointer
from tilewright.gemm.kernel.mixed_small_m import PreparedOperand
from tilewright.gemm.kernel.overlap import wait_then_let_next_begin
from tilewright.gemm.kernel.small_m import STEP, VECTOR
from tilewright.gemm.mainloop.prepared_weight import widened
from tilewright.gemm.mixed_config import COLUMNS, DEPTH, KINDS, LANES, WORDS

TILES = 8
"""Tiles of 8 x 128 numbers of a block, one for each warp."""


@cute.jit
def widen(weight: PreparedOperand, dense: cute.Tensor, depth: Constexpr, kind: Constexpr, stream: Any = None) -> None:
    """``dense`` (N, K) = the weight of ``KINDS[kind]`` times its scales, one for ``depth`` elements of K; of
    Float8E4M3FN the numbers without their scales, all of which it has (``NARROW``)."""
    tiles, groups = cute.size(dense, mode=[1]) // DEPTH, cute.size(weight.words, mode=[3])
    widen_tiles(weight, dense, depth, kind).launch(
        grid=(cute.ceil_div(tiles, TILES), groups, 1), block=(TILES * LANES, 1, 1), stream=stream, use_pdl=True
    )


@cute.kernel
def widen_tiles(weight: PreparedOperand, dense: cute.Tensor, depth: Constexpr, kind: Constexpr) -> None:
    """Each warp writes 8 rows and 128 elements of K: a lane four times 8 of them."""
    block, group, _ = cute.arch.block_idx()
    lane, warp = cute.arch.lane_idx(), cute.arch.warp_idx()
    tiles, pieces = cute.size(dense, mode=[1]) // DEPTH, KINDS[kind].width // 4
    tile, row = block * TILES + warp, group * COLUMNS + lane // 4
    wait_then_let_next_begin()
    if tile < tiles:
        words = cute.make_rmem_tensor((WORDS, pieces), Int32)
        for piece in range_constexpr(pieces):
            at = ((group * tiles + tile) * pieces + piece) * LANES + lane % 4 * COLUMNS + lane // 4
            source = aligned_pointer(weight.words.iterator + at * WORDS, 16)
            cute.autovec_copy(cute.make_tensor(source, cute.make_layout(WORDS)), words[None, piece])
        for step in range_constexpr(WORDS):
            piece, chunk = divmod(step, WORDS // pieces)
            at, zeros = (row, (tile * DEPTH + step * STEP) // depth), None
            if const_expr(weight.zeros is not None):
                zeros = cute.make_rmem_tensor(WORDS, Int32)
                zeros.fill(weight.zeros[at].to(Int32))
            written = cute.make_rmem_tensor(VECTOR, dense.element_type)
            if const_expr(dense.element_type is Float8E4M3FN):
                eight = widened(KINDS[kind], words[None, piece], chunk, Float16, zeros=zeros)
                written.store(eight.load().to(dense.element_type))
            else:
                eight = widened(KINDS[kind], words[None, piece], chunk, dense.element_type, zeros=zeros)
                written.store((eight.load().to(Float32) * weight.scales[at].to(Float32)).to(dense.element_type))
            at = row.to(Int64) * cute.assume(dense.stride[0], VECTOR) + (tile * DEPTH + step * STEP + lane % 4 * VECTOR)
            target = aligned_pointer(dense.iterator + at, VECTOR * dense.element_type.width // 8)
            cute.autovec_copy(written, cute.make_tensor(target, cute.make_layout(VECTOR)))


THREADS, ELEMENTS = 256, 16
"""The threads of a block that converts rows, and the elements of a thread."""


@cute.jit
def widen_rows(rows: cute.Tensor, wide: cute.Tensor, stream: Any = None) -> None:
    """``wide`` = ``rows``, (M, K) of 8-bit floats, in a type of 16 bits that has all of these; K in 128s."""
    m, k = rows.shape
    grid = cute.ceil_div(m * (k // ELEMENTS), THREADS)
    widen_vectors(rows, wide).launch(grid=(grid, 1, 1), block=(THREADS, 1, 1), stream=stream, use_pdl=True)


@cute.kernel
def widen_vectors(rows: cute.Tensor, wide: cute.Tensor) -> None:
    """Each thread 16 neighbours of a row."""
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    m, k = rows.shape
    row, at = (block * THREADS + thread) // (k // ELEMENTS), (block * THREADS + thread) % (k // ELEMENTS)
    wait_then_let_next_begin()
    if row < m:
        source, target = (
            aligned_pointer(x.iterator + (row.to(Int64) * cute.assume(x.stride[0], ELEMENTS) + at * ELEMENTS), 16)
            for x in (rows, wide)
        )
        eight = cute.make_rmem_tensor(ELEMENTS, rows.element_type)
        cute.autovec_copy(cute.make_tensor(source, cute.make_layout(ELEMENTS)), eight)
        found = cute.make_rmem_tensor(ELEMENTS, wide.element_type)
        found.store(eight.load().to(Float16).to(wide.element_type))  # cvt has no BFloat16 there
        cute.autovec_copy(found, cute.make_tensor(target, cute.make_layout(ELEMENTS)))
