"""Numerics: promotion, eager values, the ops they append, and the facts they keep."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ConstraintError, StagingError
from tilewright.ir.builder import Builder
from tilewright.ir.core import Block, Function, Value
from tilewright.ir.types import F32, I32
from tilewright.ir.verify import verify
from tilewright.lang.numbers.facts import Facts
from tilewright.lang.numbers.numeric import (
    BFloat16,
    Boolean,
    Float8E4M3FN,
    Float16,
    Float32,
    Float64,
    Int8,
    Int32,
    Int64,
    Uint8,
    Uint32,
    as_numeric,
    wrap,
)

pytestmark = pytest.mark.usefixtures("values_unchecked")


@pytest.fixture
def staged():
    """A function with run-time ``n`` (Int32) and ``x`` (Float32); gives (builder, n, x)."""
    n, x = Value(I32, "n"), Value(F32, "x")
    builder = Builder(Block([n, x]))
    with builder.activate():
        yield builder, Int32(n), Float32(x)
        verify(Function("f", "kernel", builder.block))


def opcodes(builder: Builder) -> list[str]:
    return [op.opcode for op in builder.block.ops]


@pytest.mark.parametrize(
    ("value", "kind", "number"),
    [
        (Int32(7) // -2, Int32, -4),
        (Int32(7) % -3, Int32, -2),
        (Int32(7) / 2, Float32, 3.5),
        (Int64(7) / 2, Float64, 3.5),
        (Int8(100) + Int8(100), Int8, -56),
        (Int8(5) + 1000, Int32, 1005),
        (Int8(1) + Int32(1), Int32, 2),
        (Int32(-1) + Uint32(0), Uint32, 2**32 - 1),
        (Float16(1) + BFloat16(1), Float32, 2.0),
        (Float16(1) + Int32(1), Float16, 2.0),
        (Float16(2) * 2.5, Float16, 5.0),
        (Float8E4M3FN(2) + Float8E4M3FN(2), Float32, 4.0),
        (Boolean(True) + Boolean(True), Int32, 2),
        (Boolean(True) & Boolean(False), Boolean, False),
        (~Boolean(True), Boolean, False),
        (Int32(3) ** 4, Int32, 81),
        (1 << Int32(5), Int32, 32),
        (Uint8(300), Uint8, 44),
        (Float32(1) / 0, Float32, float("inf")),
        (Int32(3.9), Int32, 3),
        (Boolean(2), Boolean, True),
        (Float32(1.0).bitcast(Int32), Int32, 0x3F800000),
    ],
)
def test_eager(value, kind, number) -> None:
    assert type(value) is kind
    assert value.value == number


def test_class_attributes() -> None:
    assert (Float16.width, Int32.is_integer, Float16.is_float, Int8.min, Int8.max) == (16, True, True, -128, 127)
    assert Float32.inf == float("inf") and Float32.zero == 0.0 and Float16.max == 65504.0
    assert Int8.is_same_kind(Uint32) and not Int8.is_same_kind(Float32)
    assert str(Float16) == "Float16" and Float32.mlir_type is F32
    with pytest.raises(AttributeError):
        _ = Float8E4M3FN.inf


def test_static_division_by_zero_is_pythons() -> None:
    with pytest.raises(ZeroDivisionError):
        Int32(1) // 0


def test_literals_take_the_other_type(staged) -> None:
    _, n, x = staged
    assert type(n + 1) is Int32 and type(n + 1.5) is Float32 and type(x * 2) is Float32
    assert type(Int64(n) + 1) is Int64 and type(Float16(x) * 2.0) is Float16


def test_division_is_pythons_unless_both_sides_are_known_non_negative(staged) -> None:
    builder, n, _ = staged
    _ = n // 4, n % 4
    assert opcodes(builder) == ["floordiv", "floormod"]
    m = n.assume_nonneg()
    _ = m // 4, m % 4
    assert opcodes(builder)[2:] == ["div", "rem"]


def test_facts_remove_ops(staged) -> None:
    builder, _, _ = staged
    tid = wrap(builder.sreg("tid.x"), Facts(True, 1, 128))
    lane = tid % 32
    before = len(builder.block.ops)
    assert (lane % 32) is lane and (lane // 32).value == 0 and (tid < 128).value is True
    assert len(builder.block.ops) == before
    assert (lane // 4 * 8).facts[:3] == (True, 8, 57)


def test_constants_fold(staged) -> None:
    builder, n, _ = staged
    assert (n * 0).value == 0 and (n + 0).value is n.value and (Int32(2) * 3).value == 6
    assert opcodes(builder) == []


def test_divisibility(staged) -> None:
    _, n, _ = staged
    m = n.with_divisibility(8)
    assert (m * 2).divisibility == 16 and (m + 4).divisibility == 4 and (m // 4).divisibility == 2


def test_run_time_values_have_no_truth_and_no_index(staged) -> None:
    _, n, x = staged
    with pytest.raises(StagingError, match="const_expr"):
        bool(n < 3)
    with pytest.raises(StagingError, match="known when the kernel runs"):
        [1, 2, 3][n]
    with pytest.raises(StagingError):
        float(x)


def test_protocol_round_trip(staged) -> None:
    builder, n, _ = staged
    values = n.__extract_mlir_values__()
    again = n.__new_from_mlir_values__(values)
    assert type(again) is Int32 and again.value is n.value
    assert n.__get_mlir_types__() == [I32]


def test_as_numeric() -> None:
    assert [type(as_numeric(x)) for x in (True, 1, 1 << 40, 1.0)] == [Boolean, Int32, Int64, Float32]


def test_comparison_with_other_things_is_false() -> None:
    assert (Int32(3) == None) is False  # noqa: E711 - == is what is tested
    assert Int32(3) != "3"


@pytest.mark.parametrize("source", ["Float16", "BFloat16", "Float32", "Float64"])
def test_conversions_known_now_are_those_of_the_machine(source) -> None:
    names = "Int8 Int16 Int32 Int64 Uint8 Uint16 Uint32 Uint64 Float16 BFloat16 TFloat32 Float8E4M3FN Float8E5M2"
    kinds = [getattr(cutlass, name) for name in [*names.split(), "Boolean", "Float32", "Float64"]]
    finite = [0.0, -0.0, 1.5, -2.5, 127.5, 200, -200, 300, 3e9, -3e9, 1e19, -1e19, 470, 61000, 1e-10, 1.00048828125]
    numbers = [*finite, float("inf"), -float("inf"), float("nan")]
    cls = getattr(cutlass, source)

    @cute.kernel
    def kernel(x: cute.Tensor, out: cute.Tensor):
        i, _, _ = cute.arch.thread_idx()
        for j in cutlass.range_constexpr(len(kinds)):
            number = kinds[j](cls(x[i]))
            out[i, j] = cutlass.Int64(number) if kinds[j].is_integer else cutlass.Float64(number).bitcast(cutlass.Int64)

    @cute.jit
    def run(x: cute.Tensor, out: cute.Tensor):
        kernel(x, out).launch(grid=1, block=len(numbers))

    out = np.zeros((len(numbers), len(kinds)), np.int64)
    run(np.array(numbers), out)
    for number, row in zip(numbers, out, strict=True):
        for kind, bits in zip(kinds, row, strict=True):
            here = cls(number)
            if kind.is_float:
                assert repr(float(kind(here).value)) == repr(float(bits.view(np.float64))), (number, kind)
            elif np.isfinite(here.value):
                assert kind(here).value == kind(int(bits)).value, (number, kind)


def test_float_arithmetic_known_now_is_that_of_the_machine() -> None:
    numbers = [0.0, 1.0, -1.0, 2.5, -2.5, 0.1, 7.0, float("inf"), -float("inf"), float("nan"), 1e38, 3.0, -8.0, 0.5]
    actions = [
        lambda a, b: a + b,
        lambda a, b: a - b,
        lambda a, b: a * b,
        lambda a, b: a / b,
        lambda a, b: a // b,
        lambda a, b: a % b,
        lambda a, b: a**b,
        cutlass.min,
        cutlass.max,
        lambda a, b: abs(a),
        lambda a, b: -a,
    ]
    count = len(numbers)

    @cute.kernel
    def kernel(x: cute.Tensor, out: cute.Tensor):
        i, j, _ = cute.arch.thread_idx()
        for k in cutlass.range_constexpr(len(actions)):
            out[k, i, j] = actions[k](x[i], x[j])

    @cute.jit
    def run(x: cute.Tensor, out: cute.Tensor):
        kernel(x, out).launch(grid=1, block=(count, count, 1))

    out = np.zeros((len(actions), count, count), np.float32)
    run(np.array(numbers, np.float32), out)
    for k, action in enumerate(actions):
        for i, a in enumerate(numbers):
            for j, b in enumerate(numbers):
                here = np.float32(action(cutlass.Float32(a), cutlass.Float32(b)).value)
                assert np.allclose(here, out[k, i, j], rtol=3e-7, atol=0, equal_nan=True), (k, a, b)


def test_extremes_of_known_numbers_are_promoted_as_run_time_ones_are() -> None:
    found: list[object] = []

    @cute.kernel
    def kernel(x: cute.Tensor, out: cute.Tensor):
        small, large, minus, seven = cutlass.Int8(100), Int32(5), cutlass.Int8(-1), cutlass.Uint16(7)
        found.extend([max(small, large), max(minus, seven), min(minus, seven)])
        found.extend([cutlass.max(small, large), max(3, small)])
        out[0] = max(cutlass.Int8(x[0]), Int32(x[1])) + cutlass.Int8(100)
        out[1] = max(cutlass.Int8(x[2]), cutlass.Uint16(x[3]))

    @cute.jit
    def run(x: cute.Tensor, out: cute.Tensor):
        kernel(x, out).launch(grid=1, block=1)

    out = np.zeros(2, np.int32)
    run(np.array([100, 5, -1, 7], np.int32), out)
    assert [repr(x) for x in found] == ["Int32(100)", "Uint16(65535)", "Uint16(7)", "Int32(100)", "Int8(100)"]
    assert out.tolist() == [200, 65535]


def test_round_goes_to_even_in_a_kernel() -> None:
    numbers = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 2.4, 2.6, 3e10, np.inf, np.nan], np.float32)

    @cute.kernel
    def kernel(x: cute.Tensor, out: cute.Tensor):
        thread, _, _ = cute.arch.thread_idx()
        out[thread] = round(x[thread])

    @cute.jit
    def run(x: cute.Tensor, out: cute.Tensor):
        kernel(x, out).launch(grid=1, block=len(numbers))

    out = np.zeros_like(numbers)
    run(numbers, out)
    np.testing.assert_array_equal(out, np.rint(numbers))
    assert [float(round(Float32(x))) for x in numbers[:8]] == [float(round(float(x))) for x in numbers[:8]]
    with pytest.raises(StagingError, match="whole numbers only"):
        round(Float32(2.55), 1)


@pytest.mark.parametrize("value", [lambda x: x[0], lambda x: 2.5, lambda x: Float32(2)])
@pytest.mark.parametrize("fill", [False, True])
def test_a_float_is_not_cut_off_silently_in_a_tensor_of_integers(value, fill) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, out: cute.Tensor):
        if cutlass.const_expr(fill):
            out[0, None].fill(value(x))
        else:
            out[0, 0] = value(x)

    @cute.jit
    def run(x: cute.Tensor, out: cute.Tensor):
        kernel(x, out).launch(grid=1, block=1)

    with pytest.raises(ConstraintError, match=r"the fraction would be lost; convert it with \.to\(Int32\)"):
        run(np.zeros(1, np.float32), from_dlpack(np.zeros((1, 2), np.int32)))


@pytest.mark.parametrize("bits", [1.5, 2.0, Float32(2)])
@pytest.mark.parametrize("shift", [operator.lshift, operator.rshift])
def test_a_shift_counts_in_whole_bits(shift, bits) -> None:
    with pytest.raises(TypeError, match="is not defined on f32"):
        shift(Int32(4), bits)
    assert shift(Int32(4), Int8(1)).value == shift(4, 1)


def test_bits_of_floats_are_refused(staged) -> None:
    """What is meant is most often a condition: ``a > b & c < d`` compares with ``b & c``."""

    _, n, x = staged
    with pytest.raises(StagingError, match=r"`&` of Float32 and Int32: .* write \(a == b\) & \(c < d\), or `and`"):
        x & n
    with pytest.raises(StagingError, match=r"`\|` of Int32 and Float32"):
        n | x
