"""The second kernel of parallel split-K: adds up the slices' outputs, and makes D of them."""

from __future__ import annotations

from typing import Any

import tilewright as cutlass
from tilewright import cute
from tilewright.gemm.addressing import aligned_pointer
from tilewright.gemm.epilogue.functions import EpilogueFunction, applied, stores_result
from tilewright.gemm.epilogue.tile import EpilogueTile
from tilewright.gemm.kernel.overlap import wait_then_let_next_begin
from tilewright.ir.target import MOST_GRID

THREADS = 128
READ_AT_ONCE = 8
"""Slices that are on their way before the first is added."""


class ReduceSplitK:
    """D = f(the sum of the slices, C), element by element: slices (M, N, S) with rows that begin at multiples of 16
    bytes, C and D (M, N, 1).

    The slices are added in order, so results do not change from run to run. A warp reads a row's 32 vectors of 16
    bytes; what it writes need not be aligned. ``transposed``: M and N are the user's N and M.
    """

    MOST_ROWS = MOST_GRID[1] * THREADS // 32
    """Most rows of one launch: a warp's row comes from the grid's y."""

    def __init__(self, acc_dtype: Any, transposed: bool = False) -> None:
        self.acc_dtype, self.transposed = acc_dtype, transposed
        self.vector = 128 // int(acc_dtype.width)

    @cute.jit
    def __call__(
        self,
        slices: cute.Tensor,
        mC: cute.Tensor,
        mD: cute.Tensor,
        function: EpilogueFunction,
        scatter: Any = None,
        stream: Any = None,
    ) -> None:
        """``scatter``: None, or the row of D and C for each row of the slices."""
        rows, columns = THREADS // 32, 32 * self.vector
        grid = cute.ceil_div(cute.size(mD, mode=[1]), columns), cute.ceil_div(cute.size(slices, mode=[0]), rows), 1
        self.kernel(slices, mC, mD, function, scatter).launch(
            grid=grid, block=(THREADS, 1, 1), stream=stream, use_pdl=True
        )

    @cute.kernel
    def kernel(
        self, slices: cute.Tensor, mC: cute.Tensor, mD: cute.Tensor, function: EpilogueFunction, scatter: Any
    ) -> None:
        tidx, _, _ = cute.arch.thread_idx()
        bidx, bidy, _ = cute.arch.block_idx()
        extent = (cute.size(slices, mode=[0]), cute.size(mD, mode=[1]))
        vector = self.vector
        m, group = bidy * (THREADS // 32) + tidx // 32, bidx * 32 + tidx % 32
        wait_then_let_next_begin()
        if (m < extent[0]) & (group * vector < extent[1]):
            at = (m, group)
            cD = cute.local_tile(cute.make_identity_tensor(extent), (1, vector), at)  # (1, vector)
            row = m if scatter is None else scatter[m]
            gC, gD = (cute.local_tile(x[None, None, 0], (1, vector), (row, group)) for x in (mC, mD))  # (1, vector)
            sums = cute.make_rmem_tensor((1, vector), self.acc_dtype)
            sums.fill(0)
            base, (step, _, apart) = slices.iterator, slices.stride
            for number in cutlass.range(0, cute.size(slices, mode=[2]), unroll=READ_AT_ONCE):
                # In 64 bits: all slices together may have more than 2**31 elements.
                offset = cutlass.Int64(number) * apart + (cutlass.Int64(m) * step + group * vector)
                here = cute.make_tensor(aligned_pointer(base + offset, 16), cute.make_layout((1, vector)))
                fetched = cute.make_rmem_tensor((1, vector), self.acc_dtype)
                cute.autovec_copy(here, fetched)
                sums.store(sums.load() + fetched.load())

            def read_source() -> Any:
                source = cute.make_rmem_tensor((1, vector), mC.element_type)
                source.fill(0)
                for i in cutlass.range_constexpr(vector):
                    if group * vector + i < extent[1]:
                        source[i] = gC[i]
                return source.load()

            sums = applied(function, sums, EpilogueTile(cD, extent, read_source, self.transposed))
            for i in cutlass.range_constexpr(vector if stores_result(function) else 0):
                if group * vector + i < extent[1]:
                    gD[i] = mD.element_type(sums[i])
