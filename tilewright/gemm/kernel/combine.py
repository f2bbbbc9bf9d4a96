"""Rows of a matrix, picked by index and weighted, added up in a fixed order: what experts give to each token."""

from __future__ import annotations

from typing import Any

from tilewright import Constexpr, Float32, Int64, cute, range
from tilewright.gemm.addressing import aligned_pointer
from tilewright.gemm.kernel.overlap import wait_then_let_next_begin

THREADS = 128


@cute.jit
def combine(
    source: cute.Tensor,
    places: cute.Tensor,
    weights: cute.Tensor,
    result: cute.Tensor,
    vector: Constexpr,
    stream: Any = None,
) -> None:
    """``result[t, n]`` = the sum over i of ``weights[t, i] * source[places[t, i], n]``, in the order of i, in float32;
    indices outside of ``source`` are skipped.

    ``source`` (rows, N), ``places`` and ``weights`` (tokens, experts of a token), ``result`` (tokens, N). ``vector``
    elements of a row are read at once: N and the rows' strides are multiples of it.
    """
    tokens, columns = result.shape
    sum_rows(source, places, weights, result, vector).launch(
        grid=(cute.ceil_div(columns, THREADS * vector), tokens, 1), block=(THREADS, 1, 1), stream=stream, use_pdl=True
    )


@cute.kernel
def sum_rows(
    source: cute.Tensor, places: cute.Tensor, weights: cute.Tensor, result: cute.Tensor, vector: Constexpr
) -> None:
    """A block makes ``THREADS`` vectors of one row."""
    block, token, _ = cute.arch.block_idx()
    column = (block * THREADS + cute.arch.thread_idx()[0]) * vector
    wait_then_let_next_begin()
    if column < cute.size(result, mode=[1]):
        rows = cute.size(source, mode=[0])
        total = cute.make_rmem_tensor(vector, Float32)
        total.fill(0)
        for i in range(cute.size(places, mode=[1]), unroll=4):
            row = places[token, i]
            if (row >= 0) & (row < rows):
                here = cute.make_rmem_tensor(vector, source.element_type)
                cute.autovec_copy(vector_at(source, row, column, vector), here)
                total.store(total.load() + here.load().to(Float32) * weights[token, i])
        written = cute.make_rmem_tensor(vector, result.element_type)
        written.store(total.load().to(result.element_type))
        cute.autovec_copy(written, vector_at(result, token, column, vector))


def vector_at(matrix: cute.Tensor, row: Any, column: Any, vector: int) -> cute.Tensor:
    """``vector`` elements of a row."""
    whole = cute.assume(row.to(Int64) * matrix.stride[0] + column, divby=vector)  # the host chooses ``vector`` so
    place = aligned_pointer(matrix.iterator + whole, vector * matrix.element_type.width // 8)
    return cute.make_tensor(place, cute.make_layout(vector))
