"""After the documentation's pages "JIT argument generation" (dsl_jit_arg_generation) and "Struct-like JIT arguments"
(dsl_struct_types)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ArgumentError


def test_annotations_check_types():
    @cute.jit
    def foo(x: cute.Tensor, y: cutlass.Float16):
        x[0] = cutlass.Float32(y)

    a = np.zeros(1, np.float32)
    foo(from_dlpack(a), 0.1)
    assert a[0] == np.float32(np.float16(0.1))
    with pytest.raises(ArgumentError, match=r"x\b"):
        foo(3.0, 0.1)
    with pytest.raises(ArgumentError, match=r"y\b"):
        foo(from_dlpack(a), from_dlpack(a))


def test_a_type_with_the_documented_protocols():
    class MyData:
        def __init__(self, data: np.ndarray, scale: int):
            self.tensor, self.scale = from_dlpack(data), cutlass.Int32(scale)

        def __get_mlir_types__(self) -> list[Any]:
            return [*self.tensor.__get_mlir_types__(), *self.scale.__get_mlir_types__()]

        def __c_pointers__(self) -> list[Any]:
            return [*self.tensor.__c_pointers__(), *self.scale.__c_pointers__()]

        def __extract_mlir_values__(self) -> list[Any]:
            return [*cutlass.extract_mlir_values(self.tensor), *cutlass.extract_mlir_values(self.scale)]

        def __new_from_mlir_values__(self, values: list[Any]) -> MyData:
            made = object.__new__(MyData)
            made.tensor = cutlass.new_from_mlir_values(self.tensor, values[:-1])
            made.scale = cutlass.new_from_mlir_values(self.scale, values[-1:])
            return made

    @cute.jit
    def run(data: MyData, times: cutlass.Int32):
        for _ in range(times):
            data.tensor[0] = data.tensor[0] + data.scale

    a = np.zeros(1, np.int32)
    run(MyData(a, 3), 4)
    assert a[0] == 12
    run(MyData(a, 5), 2)
    assert a[0] == 22


def test_an_adapter_for_a_foreign_type():
    class Matrix:
        """A framework's object: rows of numbers."""

        def __init__(self, rows):
            self.array = np.array(rows, np.float32)

    @cutlass.register_jit_arg_adapter(Matrix)
    class MatrixAdapter:
        def __init__(self, arg: Matrix):
            self.arg = from_dlpack(arg.array)

        def __c_pointers__(self):
            return self.arg.__c_pointers__()

        def __get_mlir_types__(self):
            return self.arg.__get_mlir_types__()

        def __new_from_mlir_values__(self, values):
            return cutlass.new_from_mlir_values(self.arg, values)

    @cute.jit
    def trace(m, out: cute.Tensor):
        total = cutlass.Float32(0)
        for i in cutlass.range_constexpr(m.shape[0]):
            total += m[i, i]
        out[0] = total

    out = np.zeros(1, np.float32)
    trace(Matrix([[1, 2], [3, 4]]), out)
    assert out[0] == 5
    trace(Matrix([[1, 2], [3, 40]]), out)
    assert out[0] == 41


class Vec3(NamedTuple):
    x: cutlass.Int32
    y: cutlass.Int32
    z: cutlass.Int32


class Pair(NamedTuple):
    first: Vec3
    factor: cutlass.Float32


def test_named_tuples_print_and_nest(capfd):
    @cute.jit
    def print_vec(v: Vec3):
        cute.printf("x=%d y=%d z=%d\n", v.x, v.y, v.z)

    v = Vec3(x=cutlass.Int32(1), y=cutlass.Int32(2), z=cutlass.Int32(3))
    cute.compile(print_vec, v)(v)
    assert capfd.readouterr().out.strip() == "x=1 y=2 z=3"

    @cute.jit
    def weigh(p: Pair, out: cute.Tensor):
        out[0] = p.factor * (p.first.x + p.first.y + p.first.z)

    out = np.zeros(1, np.float32)
    weigh(Pair(v, cutlass.Float32(0.5)), out)
    assert out[0] == 3
    weigh(Pair(Vec3(4, 5, 6), 2.0), out)
    assert out[0] == 30


def test_named_tuples_are_replaced_in_branches_and_reach_kernels():
    @cute.kernel
    def body(v: Vec3, out: cute.Tensor):
        moved = v
        if v.x > 10:
            moved = Vec3(v.x - 10, v.y, v.z)
        out[0], out[1], out[2] = moved.x, moved.y, moved.z

    @cute.jit
    def host(v: Vec3, out: cute.Tensor):
        body(v, out).launch(grid=(1, 1, 1), block=(1, 1, 1))

    out = np.zeros(3, np.int32)
    host(Vec3(12, 5, 6), out)
    assert out.tolist() == [2, 5, 6]
    host(Vec3(2, 5, 6), out)
    assert out.tolist() == [2, 5, 6]


@dataclass(frozen=True)
class Problem:
    a: cute.Tensor
    rows: cutlass.Int32
    alpha: cutlass.Float32


def test_frozen_dataclasses():
    @cute.kernel
    def body(p: Problem):
        tidx, _, _ = cute.arch.thread_idx()
        if tidx < p.rows:
            p.a[tidx] = p.a[tidx] * p.alpha

    @cute.jit
    def host(p: Problem):
        body(p).launch(grid=(1, 1, 1), block=(8, 1, 1))

    a = np.ones(8, np.float32)
    host(Problem(from_dlpack(a), cutlass.Int32(3), cutlass.Float32(4.0)))
    assert a.tolist() == [4, 4, 4, 1, 1, 1, 1, 1]


def test_dataclasses_whose_fields_are_constants():
    @dataclass(frozen=True)
    class Config:
        threads: int
        scale: cutlass.Float32

    @cute.jit
    def host(config: cutlass.Constexpr, a: cute.Tensor):
        for i in cutlass.range_constexpr(config.threads):
            a[i] = config.scale

    a = np.zeros(4, np.float32)
    host(Config(2, cutlass.Float32(1.5)), a)
    assert a.tolist() == [1.5, 1.5, 0, 0]


def test_none_and_optional_arguments():
    @cute.jit
    def scale(x: cute.Tensor, bias: cute.Tensor | None = None):
        for i in cutlass.range_constexpr(4):
            if cutlass.const_expr(bias is not None):
                x[i] = x[i] + bias[i]
            else:
                x[i] = -x[i]

    x, bias = np.arange(4, dtype=np.float32), np.full(4, 10, np.float32)
    scale(from_dlpack(x), from_dlpack(bias))
    assert x.tolist() == [10, 11, 12, 13]
    scale(from_dlpack(x))
    assert x.tolist() == [-10, -11, -12, -13]


def test_lists_and_dicts_of_tensors():
    @cute.jit
    def add_all(xs: list, named: dict, out: cute.Tensor):
        total = cutlass.Float32(0)
        for x in xs:
            total += x[0]
        out[0] = total + named["last"][0]

    ones = [np.full(1, n, np.float32) for n in (1, 2, 3)]
    out = np.zeros(1, np.float32)
    add_all([from_dlpack(x) for x in ones], {"last": from_dlpack(np.full(1, 10, np.float32))}, from_dlpack(out))
    assert out[0] == 16
