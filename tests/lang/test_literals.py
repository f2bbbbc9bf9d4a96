"""What operators make of numbers of the host, and of counts of shifts: never a float for a whole number, never fewer
bits than were given."""

from __future__ import annotations

import operator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilewright as cutlass
from tilewright import Float32, Int8, Int16, Int32, Int64, Uint8, Uint32, cute
from tilewright.errors import StagingError
from tilewright.testing import per_thread

LARGE = 16777217  # no float of 32 bits holds it


@pytest.mark.parametrize("number", [np.int8(1), np.int64(1), np.uint32(1), np.bool_(True), 1, True])
def test_integers_of_numpy_are_literals(number: Any) -> None:
    a = Int32(LARGE)
    for found in (a * number, number * a, a // number, a & ~Int32(0) * number, cutlass.max(a, number)):
        assert repr(found) == f"Int32({LARGE})"
    assert not (a - (LARGE - 1) == type(number)(0)).value
    assert per_thread(lambda t: (t + LARGE) * number, 2) == [LARGE, LARGE + 1]
    row = per_thread(lambda t: (cute.full(4, t + LARGE, Int32) * number + np.int64(0))[1], 2)
    assert row == [LARGE, LARGE + 1]
    assert type(Int8(3) << np.int8(2)) is Int8 and type(Float32(1) + np.float64(0.1)) is Float32


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1, 10**30])
def test_literals_that_no_integer_holds(number: int) -> None:
    """They were cut to the bits of the operand beside them."""
    for use in (lambda t: t + number, lambda t: number - t, lambda t: Int32(t < number), lambda t: t & number):
        with pytest.raises(StagingError, match=f"no integer of 64 bits holds {number}"):
            per_thread(use, 1)


@pytest.mark.parametrize("kind", [Int8, Uint8, Int16, Int32, Uint32])
@pytest.mark.parametrize("count", [Int16, Int32, Int64, cutlass.Uint64])
def test_a_count_of_more_bits_than_the_number(kind: Any, count: Any) -> None:
    """256 in a type of 8 bits is 0, 2^32 in one of 32: the shift did nothing where it shifts all out."""
    counts = np.array([0, 3, 5, 256, -1, 65536, 2**32, 2**32 + 1]).astype(count.ir_type.dtype)
    number = np.array([-7 if kind.ir_type.kind == "int" else 100], kind.ir_type.dtype)

    @cute.kernel
    def kernel(x: cute.Tensor, n: cute.Tensor, out: cute.Tensor) -> None:
        vector = n.load()
        for i in cutlass.range_constexpr(8):
            out[0, i], out[1, i] = x[0] << n[i], x[0] >> n[i]
            out[2, i], out[3, i] = (x[0] << vector)[i], (cute.full(8, x[0], kind) >> vector)[i]

    @cute.jit
    def host(x: cute.Tensor, n: cute.Tensor, out: cute.Tensor) -> None:
        kernel(x, n, out).launch(grid=1, block=1)

    out = np.zeros((4, 8), np.int64)
    host(number, cute.runtime.from_dlpack(counts), cute.runtime.from_dlpack(out))
    width, value = kind.width, int(number[0])
    left = [kind(value << int(n)).value if 0 <= n < width else 0 for n in counts]
    right = [value >> int(n) if 0 <= n < width else min(value, 0) and -1 for n in counts]
    assert out.tolist() == [left, right, left, right]


def test_counts_known_while_staging() -> None:
    for shift in (lambda: Int8(1) << 256, lambda: Int32(1) << Int64(2**32), lambda: Uint8(200) >> Int16(256)):
        with pytest.raises(StagingError, match="it can be shifted by 0 to"):
            shift()
    with pytest.raises(StagingError, match="a shift of Int32 by 40: it can be shifted by 0 to 31 bits"):
        per_thread(lambda t: (cute.full(2, t, Int32) << 40)[0], 1)
    assert repr(1 << Int64(40)) == f"Int64({1 << 40})" and repr(True << Int32(3)) == "Int32(8)"
    assert per_thread(lambda t: Int32((1 << (Int64(t) + 39)) >> 38), 2) == [2, 4]
    # The number says whether it has a sign, not the count.
    assert per_thread(lambda t: (cute.full(2, t - 8, Int32) >> Uint32(1))[0], 1) == [-4]


@pytest.mark.parametrize("bits", [-1, -2, 0x7F800001, 0x7FC12345])
def test_bits_of_a_nan_that_is_known_while_staging(bits: int) -> None:
    """Python's floats keep one NaN."""
    pattern = Int32(bits).value
    assert per_thread(lambda t: Int32(bits).bitcast(Float32).bitcast(Int32), 1) == [pattern]
    assert per_thread(lambda t: Int32(bits).bitcast(Float32), 1, dtype=Float32)[0] != 0


@pytest.mark.parametrize(("literal", "kept"), [(1000.0, False), (-np.inf, False), (0.1, True), (448, True)])
def test_a_literal_that_a_storage_format_does_not_hold(literal: float, kept: bool) -> None:
    """It became 448 beside numbers of 8 bits, where it now makes Float32 of them, as it does beside one number."""

    @cute.kernel
    def kernel(x: cute.Tensor, out: cute.Tensor) -> None:
        v = x.load()
        chosen = cute.where(v > 1.0, v, literal)
        assert (chosen.dtype is cutlass.Float8E4M3FN) == kept
        out.store(chosen.to(Float32))

    @cute.jit
    def host(x: cute.Tensor, out: cute.Tensor) -> None:
        kernel(x, out).launch(grid=1, block=1)

    x, out = np.array([0, 2], ml_dtypes.float8_e4m3fn), np.zeros(2, np.float32)
    host(cute.runtime.from_dlpack(x), cute.runtime.from_dlpack(out))
    assert out.tolist() == [float(ml_dtypes.float8_e4m3fn(literal)) if kept else literal, 2]


BEYOND = [-(2**63), -(2**40), -1, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**63, 2**64 - 1]


@pytest.mark.parametrize("kind", [Int32, Uint32, Int64, Int8], ids=lambda kind: kind.__name__)
def test_comparisons_with_any_literal_are_pythons(kind: Any) -> None:
    """The type in which the two would compute made a large number of one below zero."""
    numbers = [-5, -1, 0, 1, 7] if kind.signed else [0, 1, 7, 5, 2**32 - 1]
    signs = [operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge]
    for literal in BEYOND:

        def each(t: Any, literal: int = literal) -> Any:
            whole = kind(t.to(Int64) * 0 + 1) * 0
            number = [kind(x) + whole for x in numbers]
            vector = cute.full(2, number[0], kind)
            bits = Int64(0)
            for i, x in enumerate(number):
                for j, sign in enumerate(signs):
                    bits |= Int64(sign(x, literal)) << (i * len(signs) + j)
            for j, sign in enumerate(signs):
                bits |= Int64(sign(vector, literal)[1]) << (len(numbers) * len(signs) + j)
            exact = cutlass.min(number[0], literal) == min(numbers[0], literal)
            exact = exact & (cutlass.max(literal, vector)[0] == max(numbers[0], literal))
            return cutlass.select_(exact, bits, Int64(-1))

        places = [sign(x, literal) for x in (*numbers, numbers[0]) for sign in signs]
        assert per_thread(each, 1, dtype=Int64) == [sum(1 << i for i, truth in enumerate(places) if truth)]
