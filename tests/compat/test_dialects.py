"""What libraries use of ``cutlass._mlir.dialects``: numbers against NumPy, and errors for the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tilewright.base_dsl.enums import Arch

from tilewright import Float32, Int16, Int32, Int64, Uint32, cute, cutlass_dsl
from tilewright._mlir import ir
from tilewright._mlir.dialects import arith, llvm, math, nvvm, vector
from tilewright.base_dsl import BaseDSL, dsl
from tilewright.cutlass_dsl import CuTeDSL, T
from tilewright.errors import ConstraintError
from tilewright.testing import per_thread


def each(function: Callable[[Any], Any], dtype: Any = Int32, threads: int = 8) -> Any:
    return per_thread(function, threads, dtype=dtype)


def value(x: Any) -> Any:
    return x.ir_value()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("addi", lambda a, b: a + b),
        ("subi", lambda a, b: a - b),
        ("muli", lambda a, b: a * b),
        ("divsi", lambda a, b: int(a / b)),
        ("remsi", lambda a, b: a - b * int(a / b)),
        ("andi", lambda a, b: a & b),
        ("ori", lambda a, b: a | b),
        ("xori", lambda a, b: a ^ b),
        ("shli", lambda a, b: a << b),
        ("shrsi", lambda a, b: a >> b),
        ("shrui", lambda a, b: (a % 2**32) >> b),
        ("maxsi", max),
        ("minsi", min),
        ("divui", lambda a, b: (a % 2**32) // b),
        ("remui", lambda a, b: (a % 2**32) % b),
        ("maxui", lambda a, b: max(a % 2**32, b)),
        ("minui", lambda a, b: min(a % 2**32, b)),
    ],
)
def test_integers(name: str, expected: Callable[[int, int], int]) -> None:
    operation = getattr(arith, name)
    got = each(lambda t: operation(value(t - 4), arith.constant(T.i32(), 3)))
    assert [x % 2**32 for x in got] == [expected(t - 4, 3) % 2**32 for t in range(8)]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("addf", np.add),
        ("subf", np.subtract),
        ("mulf", np.multiply),
        ("divf", np.divide),
        ("maxnumf", np.fmax),
        ("minnumf", np.fmin),
    ],
)
def test_floats(name: str, expected: Any) -> None:
    operation = getattr(arith, name)
    got = each(lambda t: operation(value(Float32(t)), arith.constant(T.f32(), 2.5)), Float32)
    np.testing.assert_array_equal(got, expected(np.arange(8, dtype=np.float32), np.float32(2.5)))


def test_extremes_that_pass_a_nan_on() -> None:
    """LLVM's maximum and minimum give a NaN where one of both is, those of maxnum and minnum the number."""
    nan = float("nan")
    pairs = [(1.0, 2.0), (nan, 2.0), (1.0, nan), (-0.0, 0.0), (nan, nan), (-3.0, -4.0)]
    for name, expected in (("maximumf", np.maximum), ("minimumf", np.minimum), ("maxnumf", np.fmax)):
        operation = getattr(arith, name)
        for a, b in pairs:
            (got,) = each(lambda t, a=a, b=b, f=operation: f(value(Float32(a) + t), value(Float32(b) + t)), Float32, 1)
            np.testing.assert_array_equal(got, expected(np.float32(a), np.float32(b)))


def test_absolute_values_and_rounding_by_their_other_names() -> None:
    assert cute.math.abs(-2.5) == 2.5 and cute.math.roundeven(3.5) == 4.0
    found = each(lambda t: cute.math.roundeven(Float32(t) * 0.5) + cute.math.abs(t - 4), Float32)
    assert found == [round(t * 0.5) + abs(t - 4) for t in range(8)]
    whole = each(lambda t: cute.math.abs(cute.full(2, Float32(-1.0) - t, Float32))[1], Float32, 2)
    assert whole == [1, 2]


@pytest.mark.parametrize("name", ["exp", "exp2", "log", "log2", "log10", "sin", "cos", "tanh", "sqrt", "atan", "rsqrt"])
@pytest.mark.parametrize("fastmath", [None, "afn"])
def test_functions_of_one_float(name: str, fastmath: Any) -> None:
    expected = (
        1 / np.sqrt(np.arange(1.0, 9))
        if name == "rsqrt"
        else getattr(np, {"atan": "arctan"}.get(name, name))(np.arange(1.0, 9))
    )
    found = each(lambda t: Float32(getattr(math, name)(value(Float32(t) + 1.0), fastmath=fastmath)), Float32)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_other_functions_of_floats() -> None:
    assert each(lambda t: Float32(math.absf(value(Float32(t) - 4.0))), Float32) == [4, 3, 2, 1, 0, 1, 2, 3]
    square = each(lambda t: Float32(math.fma(value(Float32(t)), value(Float32(t)), value(Float32(1.0)))), Float32)
    assert square == [t * t + 1 for t in range(8)]
    with pytest.raises(ConstraintError, match="math.exp2: a float is needed, not Int32"):
        each(lambda t: Float32(math.exp2(value(t))), Float32)


def test_conversions() -> None:
    assert each(lambda t: arith.fptosi(T.i32(), value(Float32(t) * 1.5))) == [int(t * 1.5) for t in range(8)]
    wide = each(lambda t: arith.trunci(T.i32(), arith.shrui(arith.extui(T.i64(), value(t - 1)), _i64(1))))
    assert [x % 2**32 for x in wide] == [(2**32 - 1) >> 1, *[t >> 1 for t in range(7)]]
    signed = each(lambda t: arith.trunci(T.i32(), arith.shrsi(arith.extsi(T.i64(), value(t - 1)), _i64(1))))
    assert signed == [(t - 1) >> 1 for t in range(8)]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda t: arith.extf(T.i32(), value(Float32(t))),
        lambda t: arith.trunci(T.i64(), value(t)),
        lambda t: arith.extsi(T.i32(), value(t)),
        lambda t: arith.sitofp(T.f32(), value(Float32(t))),
        lambda t: arith.fptosi(T.vector(2, T.i32()), value(Float32(t))),
    ],
    ids=["float to integer", "to more bits", "to as many bits", "of a float", "to a vector"],
)
def test_conversions_refuse_types_outside_their_name(wrong: Callable[[Any], Any]) -> None:
    with pytest.raises(ConstraintError, match=r"arith\.\w+: from \w+ to "):
        each(lambda t: (wrong(t), t)[1])


def _i64(n: int) -> Any:
    return arith.constant(T.i64(), n)


def test_the_same_bits() -> None:
    bits = np.arange(8, dtype=np.float32).view(np.int32).tolist()
    assert each(lambda t: Int32(llvm.bitcast(T.i32(), value(Float32(t))))) == bits
    assert each(lambda t: Int32(arith.bitcast(T.i32(), value(Float32(t))))) == bits


def _leading_zeros(x: int, bits: int) -> int:
    return bits - (x % 2**bits).bit_length()


@pytest.mark.parametrize("dtype", [Int16, Int32, Int64, Uint32], ids=str)
def test_leading_zeros_on_the_host_and_in_a_kernel(dtype: Any) -> None:
    numbers = [0, 1, 2, 3, 127, 128, 255, 4096, 2**15 - 1]
    numbers += [] if dtype is Int16 else [2**16, 2**30 + 5, 2**31 - 1]
    numbers += [2**31, 2**32 - 1] if dtype is Uint32 else [-1, -4096]
    expected = [_leading_zeros(x, dtype.width) for x in numbers]

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor, of_the_host: Int32) -> None:
        t, _, _ = cute.arch.thread_idx()
        y[t] = Int32(llvm.intr_ctlz(x[t].ir_value(), False))
        y[len(numbers)] = of_the_host

    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor, number: dtype) -> None:
        count = Int32(llvm.intr_ctlz(number.ir_value(), False))
        kernel(x, y, count).launch(grid=(1, 1, 1), block=(len(numbers), 1, 1))

    x, y = np.array(numbers).astype(dtype.numpy_dtype), np.zeros(len(numbers) + 1, np.int32)
    for number, zeros in zip(numbers, expected, strict=True):
        host(x, y, dtype(number))
        assert y.tolist() == [*expected, zeros]


def _pair_through_64_bits(t: Any) -> Any:
    pair = vector.from_elements(T.vector(2, T.f32()), (value(Float32(t)), value(Float32(t) + 0.5)))
    word = vector.extract(vector.bitcast(T.vector(1, T.i64()), pair), dynamic_position=[], static_position=[0])
    again = vector.bitcast(T.vector(2, T.f32()), vector.from_elements(T.vector(1, T.i64()), (word,)))
    return Float32(vector.extract(again, [], [0])) * 100.0 + Float32(vector.extract(again, [], [1]))


def test_vectors() -> None:
    assert each(_pair_through_64_bits, Float32) == [100 * t + t + 0.5 for t in range(8)]

    def filled(t: Any) -> Any:
        made = llvm.mlir_undef(ir.VectorType.get([3], Int32.mlir_type))
        for i in range(3):
            made = vector.insert(value(t + i), made, dynamic_position=[], static_position=[i])
        return Int32(vector.extract(made, [], [0])) * 100 + Int32(vector.extract(made, [], [2]))

    assert each(filled) == [100 * t + t + 2 for t in range(8)]


def test_slices_and_rows_of_vectors() -> None:
    """Element i is i; what is asked for is a decimal number whose digits are elements."""

    def digits(vector_: Any) -> Any:
        (n,) = ir.VectorType(vector_.type).shape
        return sum((Int32(vector.extract(vector_, [], [i])) * 10 ** (n - 1 - i) for i in range(n)), Int32(0))

    def of(n: int) -> Any:
        return ir.VectorType.get([n], T.i32())

    def counted() -> Any:
        return vector.from_elements(of(6), [value(Int32(i)) for i in range(6)])

    def rows(shape: Any, place: Any) -> Any:
        return vector.extract(vector.shape_cast(ir.VectorType.get(shape, T.i32()), counted()), [], place)

    def sliced(n: int, first: int) -> Any:
        return vector.extract_strided_slice(of(n), counted(), offsets=[first], sizes=[n], strides=[1])

    def inserted(first: int) -> Any:
        return vector.insert_strided_slice(sliced(2, 4), counted(), offsets=[first], strides=[1])

    for make, expected in (
        (lambda: digits(rows([3, 2], [1])), 23),
        (lambda: Int32(rows([3, 2], [2, 1])), 5),
        (lambda: digits(vector.extract(rows([3, 2, 1], [2]), [], [1])), 5),
        (lambda: digits(sliced(3, 2)), 234),
        (lambda: digits(inserted(1)), 45345),
    ):
        assert each(lambda t, make=make: make() + 0 * t) == [expected] * 8
    for make in (lambda: sliced(3, 4), lambda: inserted(5), lambda: rows([4, 2], [1]), lambda: rows([3, 2], [3])):
        with pytest.raises(ConstraintError, match=r"vector\."):
            each(lambda t, make=make: make())


def test_atomics_with_and_without_the_type_of_the_result() -> None:
    def add(t: Any, p: Any) -> Any:
        nvvm.atomicrmw(T.i32(), nvvm.AtomicOpKind.ADD, p.llvm_ptr, value(Int32(1)))
        nvvm.atomicrmw(op=nvvm.AtomicOpKind.ADD, ptr=p.llvm_ptr, a=value(Int32(10)))
        return Int32(nvvm.atomicrmw(res=T.i32(), op=nvvm.AtomicOpKind.MAX, ptr=p.llvm_ptr, a=value(Int32(3))))

    assert per_thread(add, 4, memory=[0])[1] == [44]

    def largest(t: Any, p: Any) -> Any:
        nvvm.atomicrmw(op=nvvm.AtomicOpKind.UMAX, ptr=p.llvm_ptr, a=value(t - 1))
        return t

    assert per_thread(largest, 4, memory=[5])[1] == [-1], "unsigned: -1 is the greatest"

    def swap(t: Any, p: Any) -> Any:
        kind, scope = nvvm.AtomicOpKind.CAS, nvvm.MemScopeKind.CTA
        return Int32(nvvm.atomicrmw(op=kind, ptr=p.llvm_ptr, a=value(t), b=value(t + 1), syncscope=scope))

    assert per_thread(swap, 4, memory=[0]) == ([0, 1, 2, 3], [4])

    def floats(t: Any, p: Any) -> Any:
        nvvm.atomicrmw(op=nvvm.AtomicOpKind.FADD, ptr=p.llvm_ptr, a=value(Float32(0.5)))
        return t

    assert per_thread(floats, 4, dtype=Float32, memory=[1.0])[1] == [3.0]


def test_extremes_and_registers() -> None:
    a = each(lambda t: Float32(nvvm.fmax(T.f32(), value(Float32(t)), value(Float32(2.5)), c=None)), Float32)
    assert a == [max(t, 2.5) for t in range(8)]
    b = each(lambda t: Float32(nvvm.fmin(value(Float32(t)), value(Float32(5.5)), c=value(Float32(3.0)))), Float32)
    assert b == [min(t, 3.0) for t in range(8)]
    assert each(lambda t: nvvm.read_ptx_sreg_tid_x(T.i32()) * 2 + nvvm.read_ptx_sreg_ctaid_y(T.i32())) == [
        2 * t for t in range(8)
    ]


def test_types_by_their_text() -> None:
    struct = ir.Type.parse("!llvm.struct<(i32, vector<2xf16>)>")
    assert [str(t) for t in struct.body] == ["i32", "vec<f16, 2>"] and isinstance(T.f32(), ir.Type)

    def two(t: Any) -> Any:
        pair = llvm.inline_asm(
            ir.Type.parse("!llvm.struct<(i32, i32)>"),
            [value(t)],
            "{ add.s32 $0, $2, 1; add.s32 $1, $2, 2; }",
            "=r,=r,r",
        )
        return Int32(llvm.extractvalue(T.i32(), pair, [0])) * Int32(llvm.extractvalue(T.i32(), pair, [1]))

    assert each(two) == [(t + 1) * (t + 2) for t in range(8)]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda t: arith.addi(value(t), value(Float32(t))),
        lambda t: arith.addf(value(t), value(t)),
        lambda t: llvm.bitcast(T.i64(), value(t)),
        lambda t: arith.constant("i32", 1),
        lambda t: vector.extract(vector.from_elements(T.vector(1, T.i32()), [value(t)]), [], [1]),
        lambda t: vector.from_elements(T.vector(2, T.i32()), [value(t)]),
        lambda t: nvvm.atomicrmw(op="add", ptr=None, a=value(t)),
        lambda t: ir.Type.parse("!cute.ptr<f32>"),
        lambda t: llvm.intr_ctlz(value(Float32(t)), False),
        lambda t: nvvm.fmax(value(Float32(t))),
        lambda t: nvvm.fmax(value(Float32(t)), value(Float32(t)), a=1),
    ],
)
def test_dialect_ops_refuse_wrong_types(wrong: Callable[[Any], Any]) -> None:
    with pytest.raises(ConstraintError):
        each(lambda t: (wrong(t), t)[1])


def test_settings_that_programs_ask_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_100f")
    assert BaseDSL._get_dsl() is CuTeDSL._get_dsl() is dsl.BaseDSL._get_dsl()
    assert BaseDSL._get_dsl().get_arch_enum() is Arch.sm_100f
    assert Arch.sm_103a.is_family_of(Arch.sm_100f) and not Arch.sm_100f.is_family_of(Arch.sm_103a)
    import tilewright

    assert tilewright.CUDA_VERSION >= (12, 0) and tilewright.CUDA_VERSION.major >= 12


def test_the_value_protocol_as_functions() -> None:
    from tilewright.base_dsl.typing import get_c_pointers, get_mlir_types

    assert [str(t) for t in get_mlir_types((Int32(1), Float32(2.0)))] == ["i32", "f32"]
    assert get_c_pointers((1, (2.5, None))) == [1, 2.5]

    def both(t: Any) -> Any:
        yes = cutlass_dsl.and_(t > 1, t < 5)
        return cutlass_dsl.if_generate(cutlass_dsl.or_(yes, t == 7), lambda: Int32(1), lambda: Int32(0))

    assert each(both) == [0, 0, 1, 1, 1, 0, 0, 1]


def test_threads_of_tiled_operations() -> None:
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), Float32)
    tiled = cute.make_tiled_copy_tv(atom, cute.make_layout((4, 8), stride=(8, 1)), cute.make_layout((1, 4)))
    mma = cute.make_tiled_mma(cute.nvgpu.warp.MmaF16BF16Op(cute.Float16, Float32, (16, 8, 16)), (2, 2, 1))
    assert cute.size(tiled) == 32 and cute.size(mma) == 128
    assert Uint32.zero == 0 and cute.Float.zero == 0.0 and cute.Float.one == 1.0 and cute.Integer.zero == 0
