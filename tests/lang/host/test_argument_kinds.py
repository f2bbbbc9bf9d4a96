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
from tilewright.errors import ArgumentError
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
