"""A kernel that scales an array, for tests of calls."""

from __future__ import annotations

import numpy as np

import tilewright as cutlass
import tilewright.cute as cute

THREADS = 64


@cute.kernel
def scale_kernel(x: cute.Tensor, y: cute.Tensor, factor: cutlass.Float32, count: cutlass.Int32):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    i = bidx * THREADS + tidx
    if i < count:
        y[i] = x[i] * factor


@cute.jit
def scale(x: cute.Tensor, y: cute.Tensor, factor: cutlass.Float32 = 2.0, twice: cutlass.Constexpr = False):
    count = cute.size(x)
    if cutlass.const_expr(twice):
        factor = factor * 2.0
    scale_kernel(x, y, factor, count).launch(grid=(cute.ceil_div(count, THREADS), 1, 1), block=(THREADS, 1, 1))


def arrays(n=100, dtype=np.float32):
    return np.arange(n, dtype=dtype), np.zeros(n, dtype)
