"""Values of a loop that nothing reads are not carried; those that are read are."""

from __future__ import annotations

import numpy as np

import tilewright as cutlass
import tilewright.cute as cute


@cute.kernel
def body(x: cute.Tensor, n: cutlass.Int32):
    total, unread, chained = cutlass.Float32(0), cutlass.Float32(1), cutlass.Int32(0)
    step = cutlass.Int32(1)
    for i in range(n):
        total += x[i]
        unread = unread * 2.0
        chained = chained + step
        step = step + chained
        last = x[i]  # noqa: F841 - never read: what is tested
        if i > 3:
            spare = total * 2.0  # noqa: F841 - never read: what is tested
    for _ in range(n):
        unread += 1.0
    x[0] = total


@cute.jit
def host(x: cute.Tensor):
    body(x, cute.size(x)).launch(grid=1, block=1)


def test_only_variables_read_later_are_carried():
    x = np.arange(1, 6, dtype=np.float32)
    compiled = cute.compile(host, x)
    text = str(compiled.kernels[0])
    assert text.count("for %") == 1
    assert "carry (%total_1 = 0.0:f32) -> f32" in text
    assert " if " not in text and "mul" not in text
    compiled(x)
    assert x[0] == 15


def test_a_value_that_decides_an_effect_is_kept():
    @cute.kernel
    def kernel(x: cute.Tensor, n: cutlass.Int32):
        a, b = cutlass.Int32(0), cutlass.Int32(1)
        for i in range(n):
            a, b = b, a + b
            if a > 4:
                x[i] = 1.0

    @cute.jit
    def host(x: cute.Tensor):
        kernel(x, cute.size(x)).launch(grid=1, block=1)

    x = np.zeros(8, np.float32)
    host(x)
    assert x.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
