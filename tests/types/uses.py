"""What both type checkers must accept, and the types that they must find."""

from __future__ import annotations

from typing import Any, assert_type

import numpy as np

import tilewright as cutlass
from tilewright import cute
from tilewright.cutlass_dsl import Float32, Int32


@cute.kernel
def scale(x: cute.Tensor, y: cute.Tensor, factor: Float32, width: cutlass.Constexpr[int]) -> None:
    assert_type(x, cute.Tensor)
    assert_type(factor, cutlass.Float32)
    assert_type(width, int)
    i = width * 2 + Int32(3)
    assert_type(i, cutlass.Int32)
    y[i] = x[i] * factor


@cute.jit
def run(x: cute.Tensor, y: cute.Tensor, factor: Float32, width: cutlass.Constexpr[int] = 32) -> None:
    scale(x, y, factor, width).launch(grid=(cute.size(x), 1, 1), block=[width, 1, 1], smem=0)
    scale(x, y, factor=2.0, width=4).launch(grid=1, block=width)


@cute.jit(preprocessor=False)
def twice(n: Int32) -> Int32:
    return n + n


class Program:
    """Kernels as methods, as programs for Hopper have them."""

    def __init__(self, threads: int) -> None:
        self.threads = threads

    @cute.jit
    def __call__(self, x: cute.Tensor, n: Int32, stream: Any = None) -> None:
        self.kernel(x, n).launch(grid=(1, 1, 1), block=(self.threads, 1, 1), stream=stream)
        self.kernel.set_name_prefix("program_")

    @cute.kernel
    def kernel(self, x: cute.Tensor, n: Int32) -> None:
        assert_type(twice(n), cutlass.Int32)


# Numbers and arrays of any framework stand for the types of parameters.
array = np.zeros(4, np.float32)
run(array, array, 2.0)
run(array, array, factor=2, width=8)
assert_type(twice(3), cutlass.Int32)
Program(128)(array, 5)
compiled = cute.compile(run, array, array, 2.0, 32, options="--opt-level 2")
compiled(array, array, 3.0)
cute.compile[cute.OptLevel(2), cute.KeepPTX](Program(128), array, 5)
assert_type(run.__name__, str)
