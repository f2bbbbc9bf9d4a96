"""Arguments of every kind: groups, users' classes, adapters, pointers, streams, and what annotations say of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.lang.host.programs import THREADS, arrays, scale_kernel
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ArgumentError, StagingError
from tilewright.ir.runtime import DevicePointer
from tilewright.ir.types import F32, MemSpace, PtrType
from tilewright.lang.launch.machine import register_machine


class Point(NamedTuple):
    a: Any
    b: Any


@dataclass
class Problem:
    x: Any
    factor: float
    name: str
    tile: cutlass.Constexpr[int] = 4


def test_arguments_in_groups():
    @cute.jit
    def group(problem: Problem, pair: Point, table: dict, y: cute.Tensor):
        assert problem.name == "p" and problem.tile == 4
        scale_kernel(problem.x, y, problem.factor + table["bias"], pair.a + pair.b).launch(grid=1, block=THREADS)
        return pair.b

    x, y = arrays(8)
    compiled = cute.compile(group, Problem(x, 1.0, "p"), Point(1, 2), {"bias": 0.5}, y)
    assert compiled(Problem(x, 2.0, "p"), Point(3, 4), {"bias": 1.0}, y) == 4
    assert y.tolist() == [0, 3, 6, 9, 12, 15, 18, 0]
    with pytest.raises(ArgumentError, match="argument 'problem.name'|argument 'problem'"):
        compiled(Problem(x, 2.0, "q"), Point(3, 4), {"bias": 1.0}, y)
    with pytest.raises(ArgumentError, match="argument 'table'"):
        compiled(Problem(x, 2.0, "p"), Point(3, 4), {"other": 1.0}, y)


class Scaled:
    """A user's class with the documented protocol."""

    def __init__(self, tensor: Any, factor: Any) -> None:
        self.tensor, self.factor = tensor, factor

    def __get_mlir_types__(self):
        return [*self.tensor.__get_mlir_types__(), *self.factor.__get_mlir_types__()]

    def __c_pointers__(self):
        return [*self.tensor.__c_pointers__(), *self.factor.__c_pointers__()]

    def __extract_mlir_values__(self):
        return [*self.tensor.__extract_mlir_values__(), *self.factor.__extract_mlir_values__()]

    def __new_from_mlir_values__(self, values):
        *tensor, factor = values
        return Scaled(self.tensor.__new_from_mlir_values__(tensor), self.factor.__new_from_mlir_values__([factor]))


@cute.kernel
def scaled_kernel(scaled: Scaled, y: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    if tidx < cute.size(y):
        y[tidx] = scaled.tensor[tidx] * scaled.factor


@cute.jit
def run_scaled(scaled: Scaled, y: cute.Tensor):
    scaled_kernel(scaled, y).launch(grid=1, block=32)


def test_users_classes_by_the_protocol():
    x, y = arrays(8)
    compiled = cute.compile(run_scaled, Scaled(from_dlpack(x), cutlass.Float32(2)), y)
    compiled(Scaled(from_dlpack(x), cutlass.Float32(5)), y)
    assert np.array_equal(y, x * 5)


class Foreign:
    def __init__(self, array, factor):
        self.array, self.factor = array, factor


@cutlass.register_jit_arg_adapter(Foreign)
class ForeignAdapter:
    def __init__(self, arg):
        self.arg = Scaled(from_dlpack(arg.array), cutlass.Float32(arg.factor))

    def __c_pointers__(self):
        return self.arg.__c_pointers__()

    def __get_mlir_types__(self):
        return self.arg.__get_mlir_types__()

    def __new_from_mlir_values__(self, values):
        return self.arg.__new_from_mlir_values__(values)


def test_adapters():
    x, y = arrays(8)
    compiled = cute.compile(run_scaled.function, Foreign(x, 2.0), y)
    compiled(Foreign(x, 7.0), y)
    assert np.array_equal(y, x * 7)


class Gemm:
    """A kernel in an object, the documented way."""

    def __init__(self, threads: int) -> None:
        self.threads = threads

    @cute.jit
    def __call__(self, x: cute.Tensor, y: cute.Tensor, stream: Any = None):
        self.count = cute.size(x)
        self.kernel(x, y, self.count).launch(grid=1, block=self.threads, stream=stream)

    @cute.kernel
    def kernel(self, x: cute.Tensor, y: cute.Tensor, count: cutlass.Int32):
        tidx, _, _ = cute.arch.thread_idx()
        for i in range(tidx, count, self.threads):
            y[i] = x[i] + self.helper(i)

    @cute.jit
    def helper(self, i):
        if i > 3:
            result = i * 10
        else:
            result = i
        return result


def test_objects_with_methods():
    x, y = arrays(40)
    gemm = Gemm(32)
    expected = x + np.where(np.arange(40) > 3, np.arange(40) * 10, np.arange(40))
    compiled = cute.compile(gemm, x, y)
    compiled(x, y)
    assert np.array_equal(y, expected)
    y[:] = 0
    gemm(x, y)
    assert np.array_equal(y, expected)
    again = cute.compile(gemm.__call__, x, y, 0)
    again(x, y, 0)
    assert [kernel.name for kernel in again.kernels] == ["Gemm_kernel"]  # a method bears its class


def test_annotations_are_checked():
    @cute.jit
    def typed(x: cute.Tensor, y: cutlass.Float16):
        pass

    a = np.zeros((10, 10), np.float16)
    typed(a, 32)
    with pytest.raises(ArgumentError, match="argument 'x': expected a Tensor, got Python int 32"):
        typed(32, a)


def test_pointers():
    @cute.kernel
    def fill(p: cute.Pointer, n: cutlass.Int32):
        tidx, _, _ = cute.arch.thread_idx()
        tensor = cute.make_tensor(p, cute.make_layout(n))
        if tidx < n:
            tensor[tidx] = tidx

    @cute.jit
    def host(p: cute.Pointer, n: cutlass.Int32):
        fill(p + 1, n - 1).launch(grid=1, block=32)

    y = np.zeros(8, np.int32)
    pointer = cute.runtime.make_ptr(cutlass.Int32, y.ctypes.data, cute.AddressSpace.gmem, assumed_align=4)
    cute.compile(host, pointer, 8)(pointer, 8)
    assert y.tolist() == [0, 0, 1, 2, 3, 4, 5, 6]


def test_streams_are_taken_in_every_form():
    class CUstream:
        def __int__(self):
            return 17

    seen = []

    class Recorder:
        def load(self, function, options):
            return lambda config, args: seen.append((config, args))

    class Module:
        @staticmethod
        def machine():
            return Recorder()

    @cute.jit
    def host(x: cute.Tensor, stream):
        scale_kernel(x, x, 1.0, 1).launch(grid=1, block=32, cluster=(1, 1, 1), smem=100, stream=stream)

    import sys

    sys.modules["recording_machine"] = Module
    register_machine("cpu", "recording_machine")
    try:
        x = np.zeros(4, np.float32)
        compiled = cute.compile(host, x, CUstream())
        for stream in (CUstream(), 23):
            compiled(x, stream)
    finally:
        register_machine("cpu", "tilewright.sim.machine")
    assert [c.stream for c, _ in seen] == [17, 23]
    assert seen[0][0].smem == 100 and seen[0][0].grid == (1, 1, 1) and seen[0][0].block == (32, 1, 1)


def test_a_users_pointer_must_keep_the_alignment_of_its_type():
    class Promise:
        """Says 16 bytes, whatever ``array`` is."""

        def __init__(self, array: Any) -> None:
            self.array = array

        def __c_pointers__(self):
            address = self.array.ctypes.data
            return [DevicePointer(address, "cpu", address, address + self.array.nbytes, self.array)]

        def __get_mlir_types__(self):
            return [PtrType(F32, MemSpace.GMEM, 16)]

        def __new_from_mlir_values__(self, values):
            return values[0]

    @cute.jit
    def run(x):
        return 1

    room = np.zeros(12, np.float32)
    start = -(room.ctypes.data // 4) % 4
    run(Promise(room[start:]))
    compiled = cute.compile(run, Promise(room[start:]))
    with pytest.raises(ArgumentError, match="expected an address that is a multiple of 16 bytes"):
        compiled(Promise(room[start + 1 :]))


def test_kernel_arguments_take_the_type_of_their_parameter():
    seen = []

    @cute.jit
    def inlined(n: cutlass.Int16):
        seen.append(type(n))
        return n

    @cute.kernel
    def body(y: cute.Tensor, n: cutlass.Int32, x: cutlass.Float16, b: cutlass.Boolean, i: int, f: float):
        seen.extend(type(v) for v in (n, x, b, i, f))
        y[0], y[1], y[2], y[3], y[4], y[5] = n, x, b, i, f, inlined(n)

    @cute.jit
    def host(y: cute.Tensor, n: cutlass.Int64, x: cutlass.Float32):
        body(y, n, x, n, n, n).launch(grid=1, block=1)
        body(y, cutlass.Int64(70000), 2, True, n, 1.5).launch(grid=1, block=1)

    y = np.zeros(6, np.float64)
    cute.compile(host, y, 1, 1.0)(y, 7, 0.1)
    assert y.tolist() == [70000, 2, 1, 7, 1.5, 70000 - 65536]
    kinds = [cutlass.Int32, cutlass.Float16, cutlass.Boolean, cutlass.Int64, cutlass.Float32, cutlass.Int16]
    assert seen[:6] == kinds

    @cute.kernel
    def first(y: cute.Tensor, n: cutlass.Int32, x: cutlass.Float16):
        y[0], y[1] = n, x

    @cute.jit
    def wide(y: cute.Tensor, n: cutlass.Int64, x: cutlass.Float32):
        first(y, n, x).launch(grid=1, block=1)

    wide(y, (1 << 32) + 5, 0.1)
    assert y[:2].tolist() == [5, float(np.float16(0.1))]


@pytest.mark.parametrize("value", (2.5, cutlass.Float32(2)))
def test_a_fraction_is_no_count(value):
    @cute.kernel
    def body(n: cutlass.Int32):
        pass

    @cute.jit
    def inlined(n: int):
        return n

    @cute.jit
    def host(launch: cutlass.Constexpr):
        body(value).launch(grid=1, block=1) if launch else inlined(value)

    for launch in (True, False):
        with pytest.raises(StagingError, match=r"argument 'n': expected Int32, got .*; convert it: Int32\(...\)"):
            host(launch)


def test_integers_of_shapes_and_layouts_stay_static():
    seen = []

    @cute.jit
    def host(shape: cute.Shape, tile: cute.typing.Tiler | None, plain: tuple, coord: cute.Coord, n: cute.Stride):
        seen.append((shape, tile, plain, coord, n))

    for _ in range(2):
        host((4, (2, cutlass.Int32(3))), (8, 8), (1, 2), (0, None), 5)
    ((shape, tile, plain, coord, n),) = seen  # staged once
    assert shape[0] == 4 and shape[1][0] == 2 and isinstance(shape[1][1], cutlass.Int32)
    assert type(shape[0]) is type(shape[1][0]) is int and not shape[1][1].is_static
    assert tile == (8, 8) and coord == (0, None) and n == 5 and type(n) is int
    assert all(isinstance(i, cutlass.Int32) for i in plain)
    host((4, (2, cutlass.Int32(7))), (8, 8), (1, 2), (0, None), 5)
    assert len(seen) == 1
    host((6, (2, cutlass.Int32(3))), (8, 8), (1, 2), (0, None), 5)
    assert len(seen) == 2 and seen[1][0][0] == 6
    compiled = cute.compile(host, (4, (2, 3)), None, (1, 2), (0, None), 5)
    with pytest.raises(ArgumentError, match="argument 'shape': expected .* with which the function was compiled"):
        compiled((4, (2, 5)), None, (1, 2), (0, None), 5)
