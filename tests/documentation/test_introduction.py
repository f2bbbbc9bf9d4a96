"""After the documentation's page "Introduction" (dsl_introduction) and its quick start: decorators, launches, who may
call whom."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import StagingError


@cute.kernel
def hello_kernel():
    tidx, _, _ = cute.arch.thread_idx()
    if tidx == 0:
        cute.printf("Hello world")


@cute.jit
def hello_world():
    cute.printf("hello from the host")
    hello_kernel().launch(grid=(1, 1, 1), block=(32, 1, 1))


def test_hello_world(capfd):
    hello_world()
    assert capfd.readouterr().out.split("\n")[:2] == ["hello from the host", "Hello world"]
    compiled = cute.compile(hello_world)
    assert capfd.readouterr().out == ""
    compiled()
    assert capfd.readouterr().out.split("\n")[:2] == ["hello from the host", "Hello world"]


def test_launch_takes_lists_and_every_documented_option():
    @cute.kernel
    def mark(out: cute.Tensor):
        x, y, _ = cute.arch.block_idx()
        tidx, _, _ = cute.arch.thread_idx()
        out[x, y, tidx] = x * 100 + y * 10 + tidx

    @cute.jit
    def host(out: cute.Tensor):
        mark(out).launch(grid=[2, 3, 1], block=[4, 1, 1], cluster=[1, 1, 1], smem=0, min_blocks_per_mp=1)

    out = np.full((2, 3, 4), -1, np.int32)
    host(from_dlpack(out))
    assert (out == np.fromfunction(lambda x, y, t: x * 100 + y * 10 + t, out.shape)).all()


def test_decorators_with_parentheses_and_without_preprocessor():
    @cute.jit(preprocessor=True)
    def with_it(x: cutlass.Int32):
        if x > 3:
            x = x * 2
        return x

    @cute.jit(preprocessor=False)
    def without_it(x: cutlass.Int32):
        return x + 1

    @cute.jit(preprocessor=False)
    def branches(x: cutlass.Int32):
        if x > 3:
            return x
        return x + 1

    assert (with_it(2), with_it(5), without_it(2)) == (2, 10, 3)
    with pytest.raises(StagingError, match="truth value"):
        branches(3)


def test_a_kernel_is_called_from_jit_only():
    with pytest.raises(StagingError, match="@cute.jit"):
        hello_kernel()


def test_jit_calls_jit_and_kernels_call_jit():
    @cute.jit
    def double(x):
        return x * 2

    @cute.jit
    def twice(x):
        return double(double(x))

    @cute.kernel
    def body(out: cute.Tensor):
        tidx, _, _ = cute.arch.thread_idx()
        out[tidx] = twice(tidx)

    @cute.jit
    def host(out: cute.Tensor, n: cutlass.Int32):
        body(out).launch(grid=(1, 1, 1), block=(double(n), 1, 1))

    out = np.zeros(8, np.int32)
    host(out, 4)
    assert out.tolist() == [0, 4, 8, 12, 16, 20, 24, 28]


def test_methods_as_jit_and_kernel():
    class Adder:
        def __init__(self, threads: int):
            self.threads = threads

        @cute.jit
        def __call__(self, a: cute.Tensor, c: cute.Tensor):
            self.kernel(a, c).launch(grid=(cute.size(a) // self.threads, 1, 1), block=(self.threads, 1, 1))

        @cute.kernel
        def kernel(self, a: cute.Tensor, c: cute.Tensor):
            tidx, _, _ = cute.arch.thread_idx()
            bidx, _, _ = cute.arch.block_idx()
            i = bidx * self.threads + tidx
            c[i] = a[i] + self.threads

    a, c = np.arange(16, dtype=np.int32), np.zeros(16, np.int32)
    Adder(4)(from_dlpack(a), from_dlpack(c))
    assert (c == a + 4).all()
    compiled = cute.compile(Adder(8), from_dlpack(a), from_dlpack(c))
    compiled(from_dlpack(a), from_dlpack(c))
    assert (c == a + 8).all()
