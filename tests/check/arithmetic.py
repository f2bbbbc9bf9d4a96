"""Integers that leave their range."""

from __future__ import annotations

import numpy as np

import tilewright as cutlass
from tests.check.pairs import launch, pair
from tilewright import cute

I32, I64 = np.int32, np.int64
RULE = "overflow"


def compute(function, dtype: type = I32, values: tuple[float, ...] = (1.0,)) -> None:
    """``y[t] = function(t, x[0])`` in one warp."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        y[t] = function(t, x[0])

    launch(kernel, np.array(values, np.float32), np.zeros(32, dtype), block=32)


@pair(RULE, "return cutlass.Int64(n * n)")
def a_product_that_leaves_32_bits(bug: bool) -> None:
    def function(t, x):
        n = t + 100_000
        if cutlass.const_expr(bug):
            return cutlass.Int64(n * n)
        return cutlass.Int64(n) * cutlass.Int64(n)

    compute(function, I64)


@pair(RULE, "compute(lambda t, x: x.to(cutlass.Int32) + (8 * t if bug else t), I32, (2147483520.0,))")
def a_sum_that_leaves_32_bits(bug: bool) -> None:
    compute(lambda t, x: x.to(cutlass.Int32) + (8 * t if bug else t), I32, (2147483520.0,))


@pair(RULE, "compute(lambda t, x: cutlass.Int32(3) << (t + 8 if bug else t))")
def a_shift_by_the_width(bug: bool) -> None:
    """Bits that a shift drops are not a mistake: programs make masks so."""
    compute(lambda t, x: cutlass.Int32(3) << (t + 8 if bug else t))


@pair(RULE, "compute(lambda t, x: cutlass.Int32(1024) >> (t - 1 if bug else t))")
def a_shift_by_a_negative_number(bug: bool) -> None:
    compute(lambda t, x: cutlass.Int32(1024) >> (t - 1 if bug else t))


@pair(RULE, "compute(lambda t, x: (x * 3.0e9).to(cutlass.Int32), I32, (1.0 if bug else 0.5,))")
def a_float_that_no_int_holds(bug: bool) -> None:
    compute(lambda t, x: (x * 3.0e9).to(cutlass.Int32), I32, (1.0 if bug else 0.5,))


@pair(RULE, 'compute(lambda t, x: x.to(cutlass.Int32), I32, (float("nan") if bug else 2.0,))')
def a_nan_converted_to_an_integer(bug: bool) -> None:
    compute(lambda t, x: x.to(cutlass.Int32), I32, (float("nan") if bug else 2.0,))


@pair(RULE, "compute(lambda t, x: -(x.to(cutlass.Int32)), I32, (-2147483648.0 if bug else -2147483520.0,))")
def the_least_integer_negated(bug: bool) -> None:
    compute(lambda t, x: -(x.to(cutlass.Int32)), I32, (-2147483648.0 if bug else -2147483520.0,))


@pair(RULE, "compute(lambda t, x: abs(x.to(cutlass.Int32)), I32, (-2147483648.0 if bug else -2147483520.0,))")
def the_least_integer_without_its_sign(bug: bool) -> None:
    compute(lambda t, x: abs(x.to(cutlass.Int32)), I32, (-2147483648.0 if bug else -2147483520.0,))


@pair(RULE, "compute(lambda t, x: x.to(cutlass.Int32) // (t - 32), I32, (-2147483648.0 if bug else 5.0,))")
def the_least_integer_divided_by_minus_one(bug: bool) -> None:
    compute(lambda t, x: x.to(cutlass.Int32) // (t - 32), I32, (-2147483648.0 if bug else 5.0,))


@pair(RULE, "return n * n")
def a_product_that_leaves_64_bits(bug: bool) -> None:
    def function(t, x):
        n = cutlass.Int64(t) + (1 << (33 if bug else 30))
        return n * n

    compute(function, I64)


@pair(RULE, "y[t] = n * n")
def a_product_of_one_number_by_few_threads(bug: bool) -> None:
    """The number is that of all threads; the finding names the first that multiplies."""

    @cute.kernel
    def kernel(y: cute.Tensor, n: cutlass.Int32):
        t, _, _ = cute.arch.thread_idx()
        if t > 4:
            y[t] = n * n

    @cute.jit
    def host(y: cute.Tensor, n: cutlass.Int32):
        kernel(y, n).launch(grid=(1, 1, 1), block=(32, 1, 1))

    host(np.zeros(32, I32), 1 << (16 if bug else 15))
