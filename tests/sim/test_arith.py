"""Arithmetic against independent oracles: Python integers, exact fractions, float64 and ml_dtypes."""

from __future__ import annotations

import math
import operator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sim.build import Kernel, c, gptr
from tilewright.ir.types import (
    BF16,
    BOOL,
    E4M3,
    E5M2,
    F16,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    TF32,
    U8,
    U16,
    U32,
    U64,
    ScalarType,
    VecType,
)

pytestmark = pytest.mark.usefixtures("values_unchecked")

INTEGERS = [I8, I16, I32, I64, U8, U16, U32, U64]
FLOATS = [F16, BF16, F32, F64]


def wrap(value: int, elem: ScalarType) -> int:
    value &= (1 << elem.width) - 1
    return value - (1 << elem.width) if elem.kind == "int" and value >> (elem.width - 1) else value


def truncated(a: int, b: int) -> int:
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


INTEGER_OPS: dict[str, Any] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "min": min,
    "max": max,
    "floordiv": operator.floordiv,
    "floormod": operator.mod,
    "div": truncated,
    "rem": lambda a, b: a - truncated(a, b) * b,
}


def run_elementwise(build: Any, inputs: list[np.ndarray], elems: list[ScalarType], out: ScalarType) -> np.ndarray:
    """``build(kernel, *values)`` on each element of the inputs, one per thread."""
    n = len(inputs[0])
    k = Kernel(*(gptr(e) for e in elems), gptr(out), I32)
    t = k.global_id()
    with k.if_(k.compare("lt", t, k.args[-1])):
        values = [k.load(k.at(p, t)) for p in k.args[: len(elems)]]
        k.store(k.at(k.args[-2], t), build(k, *values))
    y = np.zeros(n, out.dtype)
    k.run(*inputs, y, n, grid=-(-n // 64), block=64)
    return y


def samples(elem: ScalarType, rng: np.random.Generator, n: int = 150) -> np.ndarray:
    info = np.iinfo(elem.dtype)
    edges = [0, 1, 2, info.max, info.max - 1, info.min, info.min + 1, 7] + ([-1, -2, -7] if elem.kind == "int" else [])
    wide = rng.integers(info.min, info.max, n, dtype=elem.dtype, endpoint=True)
    small = rng.integers(max(info.min, -20), 20, n).astype(elem.dtype)
    return np.concatenate([np.array(edges, elem.dtype), wide, small])


@pytest.mark.parametrize("elem", INTEGERS, ids=str)
@pytest.mark.parametrize("opcode", INTEGER_OPS)
def test_integer_operations_equal_python_integers_wrapped(opcode: str, elem: ScalarType) -> None:
    rng = np.random.default_rng(0)
    a = samples(elem, rng)
    b = rng.permutation(samples(elem, rng))
    if opcode in ("div", "rem", "floordiv", "floormod"):
        b[b == 0] = 3
    y = run_elementwise(lambda k, x, z: k.binary(opcode, x, z), [a, b], [elem, elem], elem)
    want = [wrap(INTEGER_OPS[opcode](int(x), int(z)), elem) for x, z in zip(a, b, strict=True)]
    assert y.tolist() == want


@pytest.mark.parametrize("opcode", ["div", "rem", "floordiv", "floormod"])
@pytest.mark.parametrize("divisor", [1, 2, 3, 16, -1, -4, 7])
def test_division_by_constants(opcode: str, divisor: int) -> None:
    a = np.arange(-70, 70, dtype=np.int32)
    y = run_elementwise(lambda k, x: k.emit(opcode, (x, c(divisor)), (I32,)).result, [a], [I32], I32)
    assert y.tolist() == [INTEGER_OPS[opcode](int(x), divisor) for x in a]


@given(a=st.integers(-(2**31), 2**31 - 1), b=st.integers(-(2**31), 2**31 - 1))
def test_uniform_integers_equal_python_integers_wrapped(a: int, b: int) -> None:
    """Values that are the same for all lanes take another path: NumPy scalars."""
    opcodes = [o for o in INTEGER_OPS if b or "div" not in o and o not in ("rem", "floormod")]
    k = Kernel(gptr(I32), I32, I32)
    for i, opcode in enumerate(opcodes):
        k.store(k.at(k.args[0], i), k.binary(opcode, k.args[1], k.args[2]))
    y = np.zeros(len(opcodes), np.int32)
    k.run(y, a, b)
    assert y.tolist() == [wrap(INTEGER_OPS[o](a, b), I32) for o in opcodes]


def test_shifts() -> None:
    a = np.array([1, -1, 0x40000000, -(2**31), 12345], np.int32)
    for amount in (0, 1, 5, 31):
        left = run_elementwise(lambda k, x, n=amount: k.binary("shl", x, c(n)), [a], [I32], I32)
        right = run_elementwise(lambda k, x, n=amount: k.binary("shr", x, c(n)), [a], [I32], I32)
        assert left.tolist() == [wrap(int(x) << amount, I32) for x in a]
        assert right.tolist() == [int(x) >> amount for x in a]
    u = a.view(np.uint32)
    assert run_elementwise(lambda k, x: k.binary("shr", x, c(4, U32)), [u], [U32], U32).tolist() == [
        int(x) >> 4 for x in u
    ]


def floats(elem: ScalarType, rng: np.random.Generator) -> np.ndarray:
    special = [0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, float(np.finfo(np.float32).tiny), 65504.0, 1e-7, 3e38]
    with np.errstate(all="ignore"):
        return np.concatenate([special, rng.standard_normal(100), rng.standard_normal(100) * 1e4]).astype(elem.dtype)


@pytest.mark.parametrize("elem", FLOATS, ids=str)
@pytest.mark.parametrize("opcode", ["add", "sub", "mul", "div"])
def test_float_operations_are_rounded_once(opcode: str, elem: ScalarType) -> None:
    """The oracle works with exact fractions and rounds once (through f64, which has bits to spare for up to 24)."""
    rng = np.random.default_rng(1)
    a, b = floats(elem, rng), rng.permutation(floats(elem, rng))
    y = run_elementwise(lambda k, x, z: k.binary(opcode, x, z), [a, b], [elem, elem], elem)
    function = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv}[opcode]
    with np.errstate(all="ignore"):
        wide = function(a.astype(np.float64), b.astype(np.float64))
        want = wide.astype(np.float32).astype(elem.dtype) if elem.name == "bf16" else wide.astype(elem.dtype)
    assert np.array_equal(y.astype(np.float64), want.astype(np.float64), equal_nan=True)


def test_minimum_and_maximum_pass_over_a_nan() -> None:
    a = np.array([np.nan, 1, np.nan, 2], np.float32)
    b = np.array([3, np.nan, np.nan, -2], np.float32)
    for opcode, want in (("min", [3, 1, np.nan, -2]), ("max", [3, 1, np.nan, 2])):
        for elem in (F32, F16, BF16):
            y = run_elementwise(
                lambda k, x, z, o=opcode: k.binary(o, x, z),
                [a.astype(elem.dtype), b.astype(elem.dtype)],
                [elem, elem],
                elem,
            )
            assert np.array_equal(y.astype(np.float32), np.array(want, np.float32), equal_nan=True)


@given(st.lists(st.tuples(*[st.floats(width=32, allow_nan=False, allow_infinity=False)] * 3), min_size=1, max_size=20))
def test_fma_rounds_once(triples: list[tuple[float, float, float]]) -> None:
    columns = [np.array(v, np.float32) for v in zip(*triples, strict=True)]
    y = run_elementwise(lambda k, a, b, d: k.fma(a, b, d), columns, [F32] * 3, F32)
    for (a, b, d), got in zip(triples, y, strict=True):
        exact = Fraction(a) * Fraction(b) + Fraction(d)
        assert float(got) == pytest.approx(round_f32(exact), abs=0, rel=0), (a, b, d)


def round_f32(exact: Fraction) -> float:
    """Round to nearest even in f32, by integers."""
    if exact == 0:
        return 0.0
    sign, size = (-1 if exact < 0 else 1), abs(exact)
    exponent = max(math.frexp(float(size))[1] if float(size) not in (0.0, math.inf) else -148, -125)
    while size >= Fraction(2) ** exponent:
        exponent += 1
    while exponent > -125 and size < Fraction(2) ** (exponent - 1):
        exponent -= 1
    unit = Fraction(2) ** (exponent - 24)
    whole = round(size / unit)
    value = whole * unit
    return sign * (math.inf if value >= Fraction(2) ** 128 else float(value))


def test_fma_on_a_tie_that_double_rounding_gets_wrong() -> None:
    a, b = np.float32(1 + 2.0**-12), np.float32(1 + 2.0**-12)
    d = np.float32(2.0**-54)
    columns = [np.array([v], np.float32) for v in (a, b, d)]
    (got,) = run_elementwise(lambda k, *v: k.fma(*v), columns, [F32] * 3, F32)
    assert float(got) == round_f32(Fraction(float(a)) * Fraction(float(b)) + Fraction(float(d)))
    naive = np.float32(np.float64(a) * np.float64(b) + np.float64(d))
    assert got != naive


@pytest.mark.parametrize("elem", [F16, BF16, F64], ids=str)
def test_fma_of_the_other_widths(elem: ScalarType) -> None:
    rng = np.random.default_rng(2)
    columns = [rng.standard_normal(200).astype(elem.dtype) for _ in range(3)]
    y = run_elementwise(lambda k, *v: k.fma(*v), columns, [elem] * 3, elem)
    for a, b, d, got in zip(*columns, y, strict=True):
        exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(d))
        want = float(exact) if elem == F64 else float(np.float64(float(exact)).astype(np.float32).astype(elem.dtype))
        assert float(got) == want


CASTS = [
    (F32, I32),
    (F32, U8),
    (F32, I8),
    (F64, I64),
    (F32, I64),
    (F16, I16),
    (F64, U32),
    (F32, U64),
    (F64, I32),
    (BF16, I32),
]


@pytest.mark.parametrize(("src", "dst"), CASTS, ids=lambda e: str(e))
def test_floats_to_integers_truncate_and_saturate(src: ScalarType, dst: ScalarType) -> None:
    values = [0.0, 0.9, -0.9, 1.5, -1.5, 126.99, 127.0, 128.0, -128.9, -129.0, 255.0, 256.0, 2.0**31,
              2.0**31 - 128, -(2.0**31),
              2.0**63, -(2.0**63), 2.0**64, 1e30, -1e30, np.inf, -np.inf]  # fmt: skip
    with np.errstate(all="ignore"):
        x = np.array(values).astype(src.dtype)
    y = run_elementwise(lambda k, v: k.cast(v, dst), [x], [src], dst)
    low, high = int(np.iinfo(dst.dtype).min), int(np.iinfo(dst.dtype).max)
    wide = x.astype(np.float64)
    want = [high if v == np.inf else low if v == -np.inf else min(max(math.trunc(v), low), high) for v in wide]
    assert y.tolist() == want


def test_a_nan_as_an_integer() -> None:
    nan = np.array([np.nan], np.float32)
    assert run_elementwise(lambda k, v: k.cast(v, I32), [nan], [F32], I32)[0] == 0
    assert run_elementwise(lambda k, v: k.cast(v, I64), [nan], [F32], I64)[0] == -(2**63)
    assert run_elementwise(lambda k, v: k.cast(v, I32), [nan.astype(np.float64)], [F64], I32)[0] == -(2**31)
    assert run_elementwise(lambda k, v: k.cast(v, U8), [nan.astype(np.float64)], [F64], U8)[0] == 0
    assert run_elementwise(lambda k, v: k.cast(v, I8), [nan.astype(np.float64)], [F64], I8)[0] == -128


def test_integer_casts_wrap_and_booleans_test() -> None:
    x = np.array([0, 1, -1, 255, 256, 300, -129, 2**31 - 1, -(2**31)], np.int32)
    for dst in INTEGERS:
        y = run_elementwise(lambda k, v, d=dst: k.cast(v, d), [x], [I32], dst)
        assert y.tolist() == [wrap(int(v), dst) for v in x]
    assert run_elementwise(lambda k, v: k.cast(v, BOOL), [x], [I32], BOOL).tolist() == [bool(v) for v in x]


@pytest.mark.parametrize(("dst", "top"), [(E4M3, 448.0), (E5M2, 57344.0)], ids=str)
def test_eight_bit_floats_saturate_and_round_to_even(dst: ScalarType, top: float) -> None:
    x = np.array([0, 1, -1.0625, 1.1875, 1e6, -1e6, np.inf, -np.inf, np.nan, top, 0.017], np.float32)
    y = run_elementwise(lambda k, v: k.cast(v, dst), [x], [F32], dst).astype(np.float32)
    assert y[4] == y[6] == top and y[5] == y[7] == -top and np.isnan(y[8]) and y[9] == top
    assert np.array_equal(y[:4], x[:4].astype(dst.dtype).astype(np.float32))


def test_tf32_keeps_ten_bits_and_rounds_ties_away() -> None:
    ulp = 2.0**-10
    x = np.array([1 + ulp / 2, -(1 + ulp / 2), 1 + ulp / 2 - 2.0**-23, np.inf, 3.0], np.float32)
    y = run_elementwise(lambda k, v: k.cast(v, TF32), [x], [F32], TF32)
    assert y.tolist() == [1 + ulp, -(1 + ulp), 1.0, np.inf, 3.0]


FUNCTIONS = {
    "exp": math.exp,
    "log": math.log,
    "sqrt": math.sqrt,
    "sin": math.sin,
    "cos": math.cos,
    "tanh": math.tanh,
    "erf": math.erf,
    "exp2": lambda v: 2.0**v,
    "rsqrt": lambda v: 1 / math.sqrt(v),
    "rcp": lambda v: 1 / v,
    "floor": math.floor,
    "ceil": math.ceil,
    "round": round,
    "trunc": math.trunc,
    "log2": math.log2,
    "log10": math.log10,
    "atan": math.atan,
}


@pytest.mark.parametrize("opcode", FUNCTIONS)
@pytest.mark.parametrize("elem", FLOATS, ids=str)
def test_functions_are_close_to_the_mathematical_ones(opcode: str, elem: ScalarType) -> None:
    x = np.random.default_rng(3).uniform(0.1, 6, 60).astype(elem.dtype)
    x[:3] = [0.5, 1.5, 2.5]
    y = run_elementwise(lambda k, v: k.unary(opcode, v), [x], [elem], elem)
    eps = {"f16": 2.0**-11, "bf16": 2.0**-8, "f32": 2.0**-22, "f64": 2.0**-51}[elem.name]
    want = np.array([FUNCTIONS[opcode](float(v)) for v in x])
    assert np.allclose(y.astype(np.float64), want, rtol=eps, atol=eps)


def test_unary_and_predicates() -> None:
    x = np.array([1.5, -2.0, np.nan, np.inf, -np.inf, 0.0], np.float32)
    assert np.array_equal(run_elementwise(lambda k, v: k.unary("neg", v), [x], [F32], F32), -x, equal_nan=True)
    assert run_elementwise(lambda k, v: k.predicate("isnan", v), [x], [F32], BOOL).tolist() == [0, 0, 1, 0, 0, 0]
    assert run_elementwise(lambda k, v: k.predicate("isinf", v), [x], [F32], BOOL).tolist() == [0, 0, 0, 1, 1, 0]
    i = np.array([5, -6, 0], np.int32)
    assert run_elementwise(lambda k, v: k.unary("not", v), [i], [I32], I32).tolist() == [-6, 5, -1]
    assert run_elementwise(lambda k, v: k.unary("abs", v), [i], [I32], I32).tolist() == [5, 6, 0]


def test_vectors() -> None:
    """Build, concat, extract, shuffle, splat, reduce in order, select by element; uniform and per-lane parts mixed."""
    k = Kernel(gptr(I32), I32)
    t = k.tid()
    v = k.build([t, k.args[1], c(9), k.mul(t, 2)])
    w = k.concat([v, k.splat(t, 2), k.args[1]])
    x = k.shuffle(w, [6, 3, 0, 0])
    total = k.reduce(w, "add", [range(7)], c(1000))
    pairs = k.reduce(w, "max", [[0, 1], [2, 3], [4, 5]])
    uniform = k.reduce(k.splat(k.args[1], 4), "mul", [range(4)])
    chosen = k.select(k.compare("gt", x, k.splat(c(5), 4)), x, k.splat(c(-1), 4))
    for i, value in enumerate(
        [total, uniform, k.extract(x, 1)]
        + [k.extract(chosen, e) for e in range(4)]
        + [k.extract(pairs, e) for e in range(3)]
    ):
        k.store(k.at(k.args[0], k.add(k.mul(t, 10), i)), value)
    y = np.zeros(320, np.int32)
    k.run(y, 7)
    for t, row in enumerate(y.reshape(32, 10).tolist()):
        w = [t, 7, 9, 2 * t, t, t, 7]
        x = [7, 2 * t, t, t]
        assert row == [1000 + sum(w), 7**4, 2 * t, *(e if e > 5 else -1 for e in x), max(t, 7), max(9, 2 * t), t]


def test_vector_reduction_goes_from_left_to_right() -> None:
    x = np.array([1e8, 1.0, -1e8, 1.0], np.float32)
    k = Kernel(gptr(F32, 16), gptr(F32))
    k.store(k.args[1], k.reduce(k.load(k.args[0], 4), "add", [range(4)]))
    y = np.zeros(1, np.float32)
    k.run(x, y)
    assert y[0] == 1.0


def test_bitcasts() -> None:
    x = np.array([1.0, -2.5, np.nan, 1e-40], np.float32)
    y = run_elementwise(lambda k, v: k.bitcast(v, I32), [x], [F32], I32)
    assert np.array_equal(y, x.view(np.int32))
    halves = run_elementwise(lambda k, v: k.extract(k.bitcast(v, VecType(F16, 2)), 1), [x], [F32], F16)
    assert np.array_equal(halves.view(np.uint16), x.view(np.uint16)[1::2])
    back = run_elementwise(lambda k, v: k.bitcast(k.bitcast(v, VecType(U8, 4)), I32), [x], [F32], I32)
    assert np.array_equal(back, x.view(np.int32))
