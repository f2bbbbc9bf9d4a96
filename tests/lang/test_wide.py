"""Int128 and Uint128 in kernels: arguments, arithmetic, comparisons and conversions, against Python's integers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tilewright as cutlass
import tilewright.cuda
from tilewright import Float32, Float64, Int32, Int64, Int128, Uint64, Uint128, cute
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ArgumentError, StagingError

# What it is in the language, and in Python (`//` and `%` round down in both).
SIGNED: list[tuple[Callable[..., Any], Callable[..., int]]] = [
    (lambda a, b, n: a + b, lambda a, b, n: a + b),
    (lambda a, b, n: a - b, lambda a, b, n: a - b),
    (lambda a, b, n: a * b, lambda a, b, n: a * b),
    (lambda a, b, n: -a, lambda a, b, n: -a),
    (lambda a, b, n: a // b, lambda a, b, n: a // b),
    (lambda a, b, n: a % b, lambda a, b, n: a % b),
    (lambda a, b, n: a // 1000, lambda a, b, n: a // 1000),
    (lambda a, b, n: a % 64, lambda a, b, n: a % 64),
    (lambda a, b, n: a << n, lambda a, b, n: a << n),
    (lambda a, b, n: a >> n, lambda a, b, n: a >> n),
    (lambda a, b, n: a << 70, lambda a, b, n: a << 70),
    (lambda a, b, n: a & b, lambda a, b, n: a & b),
    (lambda a, b, n: a | b, lambda a, b, n: a | b),
    (lambda a, b, n: a ^ ~b, lambda a, b, n: a ^ ~b),
    (lambda a, b, n: cutlass.min(a, b), lambda a, b, n: min(a, b)),
    (lambda a, b, n: cutlass.max(a, b), lambda a, b, n: max(a, b)),
    (lambda a, b, n: abs(a), lambda a, b, n: abs(a)),
    (lambda a, b, n: a * a + n, lambda a, b, n: a * a + n),
    (lambda a, b, n: cute.where(a < b, a, b + 1), lambda a, b, n: a if a < b else b + 1),
    (lambda a, b, n: Int128(a <= b) + Int128(a == b) * 2, lambda a, b, n: (a <= b) + (a == b) * 2),
    (lambda a, b, n: Int128(a.to(Int64)), lambda a, b, n: wrapped(a, 64)),
    (lambda a, b, n: Int128(a.to(Int32) + n), lambda a, b, n: wrapped(wrapped(a, 32) + n, 32)),
    (lambda a, b, n: Int128(a.bitcast(Uint128) >> 100), lambda a, b, n: a % 2**128 >> 100),
    (lambda a, b, n: Int128(Float64(a)), lambda a, b, n: min(int(float(a)), 2**127 - 1)),
    (lambda a, b, n: Int128(Uint64(b)) + Int128(n), lambda a, b, n: b % 2**64 + n),
    (lambda a, b, n: a + (1 << 100), lambda a, b, n: a + (1 << 100)),
]
LARGEST = 2**127 - 1


def wrapped(x: int, bits: int = 128) -> int:
    return (x + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


@cute.kernel
def each(out: cute.Tensor, a: Int128, b: Int128, n: Int32) -> None:
    tidx, _, _ = cute.arch.thread_idx()
    for i in cutlass.range_constexpr(len(SIGNED)):
        uniform = SIGNED[i][0](a, b, n)
        varying = SIGNED[i][0](a + tidx, b, n)
        if tidx < 2:
            out[tidx, i, 0] = uniform.to(Uint64)
            out[tidx, i, 1] = (uniform >> 64).to(Uint64)
            out[tidx, i, 2] = varying.to(Uint64)
            out[tidx, i, 3] = (varying >> 64).to(Uint64)


@cute.jit
def run(out: cute.Tensor, a: Int128, b: Int128, n: Int32) -> None:
    each(out, a, b, n).launch(grid=(1, 1, 1), block=(32, 1, 1))


def number(low: Any, high: Any) -> int:
    return wrapped(int(low) | int(high) << 64)


def check(out: Any, a: int, b: int, n: int) -> None:
    for thread in range(2):
        for i, (_, python) in enumerate(SIGNED):
            low, high, low_of_thread, high_of_thread = out[thread, i]
            assert number(low, high) == wrapped(python(a, b, n)), (i, a, b, n)
            assert number(low_of_thread, high_of_thread) == wrapped(python(wrapped(a + thread), b, n)), (i, a, b, n)


WIDE = st.integers(-(2**127), LARGEST - 1)


@settings(max_examples=15, deadline=None)
@given(a=WIDE, b=WIDE.filter(bool), n=st.integers(0, 127))
@example(a=-(2**127), b=-1, n=127)
@example(a=LARGEST - 1, b=LARGEST, n=0)
@example(a=-1, b=2**64, n=64)
def test_every_operation_against_pythons_integers(a: int, b: int, n: int) -> None:
    out = np.zeros((2, len(SIGNED), 4), np.uint64)
    run(out, a, b, n)
    check(out, a, b, n)


@pytest.mark.gpu
def test_every_operation_on_a_gpu() -> None:
    torch = pytest.importorskip("torch")
    for a, b, n in ((-(2**127), -1, 127), (LARGEST - 1, LARGEST, 0), (-1, 2**64, 64), (3**70, -(5**40), 31)):
        out = torch.zeros((2, len(SIGNED), 4), dtype=torch.uint64, device="cuda")
        run(from_dlpack(out), a, b, n)
        check(out.cpu().numpy(), a, b, n)


def test_their_machine_code() -> None:
    out = from_dlpack(np.zeros((2, len(SIGNED), 4), np.uint64))
    kernel = tilewright.cuda.compile(cute.compile(run, out, 1, 1, 1).kernels[0], "sm_90a")
    assert kernel.spills == 0 and "tw::int128 a, tw::int128 b" in kernel.cuda


@cute.kernel
def unsigned(out: cute.Tensor, reals: cute.Tensor, u: Uint128) -> None:
    out[0], out[1] = (u + 1).to(Uint64), ((u + 1) >> 64).to(Uint64)
    out[2], out[3] = (u // 7).to(Uint64), ((u // 7) >> 64).to(Uint64)
    out[4] = Uint64(u > Uint128(1 << 127))
    for i in cutlass.range_constexpr(3):
        whole = Uint128(reals[i])
        out[5 + 2 * i], out[6 + 2 * i] = whole.to(Uint64), (whole >> 64).to(Uint64)
    reals[0], reals[1] = Float64(u), Float64(u.to(Float32))
    total = Uint128(0)
    for digit in cutlass.range(Int32(reals[3])):  # carried from turn to turn
        total = total * 10 + digit
    if total > u:
        total = total - u
    out[11], out[12] = total.to(Uint64), (total >> 64).to(Uint64)


@cute.jit
def run_unsigned(out: cute.Tensor, reals: cute.Tensor, u: Uint128) -> None:
    twice = u * 2  # host code
    if twice != 0:
        unsigned(out, reals, u).launch(grid=(1, 1, 1), block=(1, 1, 1))


@pytest.mark.parametrize("u", [2**128 - 2, 2**127 + 3**50, 5])
def test_unsigned_numbers_floats_and_loops(u: int) -> None:
    out, reals = np.zeros(13, np.uint64), np.array([-2.5, 1e60, 2.0**100 + 2.0**60, 35.0])
    run_unsigned(out, reals, u)
    found = [int(low) | int(high) << 64 for low, high in zip(out[0:4:2], out[1:4:2], strict=True)]
    assert found == [(u + 1) % 2**128, u // 7] and out[4] == (u > 2**127)
    assert [int(out[i]) | int(out[i + 1]) << 64 for i in (5, 7, 9)] == [0, 2**128 - 1, 2**100 + 2**60]
    with np.errstate(over="ignore"):
        assert reals[0] == float(u) and reals[1] == np.float32(float(u))
    total = 0
    for digit in range(35):
        total = (total * 10 + digit) % 2**128
    total -= u if total > u else 0
    assert int(out[11]) | int(out[12]) << 64 == total


def test_arguments_that_do_not_fit() -> None:
    with pytest.raises(ArgumentError, match="Uint128"):
        run_unsigned(np.zeros(13, np.uint64), np.zeros(4), -1)
    with pytest.raises(ArgumentError, match="Int128"):
        run(np.zeros((2, len(SIGNED), 4), np.uint64), 1 << 127, 1, 1)


def test_wide_integers_are_not_exported_to_c(tmp_path: Path) -> None:
    executor = cute.compile(run, np.zeros((2, len(SIGNED), 4), np.uint64), 1, 1, 1)
    with pytest.raises(ArgumentError, match="run has numbers of 128 bits in host code, .* C has no type"):
        executor.export_to_c(str(tmp_path), "wide")
    assert not list(tmp_path.iterdir())


def test_loops_do_not_count_in_128_bits() -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, n: Int128) -> None:
        for i in range(n):
            x[i] = Float32(i)

    @cute.jit
    def host(x: cute.Tensor, n: Int128) -> None:
        kernel(x, n).launch(grid=(1, 1, 1), block=(1, 1, 1))

    with pytest.raises(StagingError, match=r"test_wide.py:\d+: range counts in 64 bits at most: convert the Int128"):
        host(np.zeros(4, np.float32), 3)
