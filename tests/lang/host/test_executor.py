"""Compiled functions: what they take, what they refuse, what they remember."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ArgumentError, MachineError
from tilewright.lang.launch.machine import machine_of, register_machine

THREADS = 64


@cute.kernel
def scale_kernel(x: cute.Tensor, y: cute.Tensor, factor: cutlass.Float32, count: cutlass.Int32):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    i = bidx * THREADS + tidx
    if i < count:
        y[i] = x[i] * factor


@cute.jit
def scale(x: cute.Tensor, y: cute.Tensor, factor: cutlass.Float32 = 2.0, twice: cutlass.Constexpr = False):
    count = cute.size(x)
    if cutlass.const_expr(twice):
        factor = factor * 2.0
    scale_kernel(x, y, factor, count).launch(grid=(cute.ceil_div(count, THREADS), 1, 1), block=(THREADS, 1, 1))


def arrays(n=100, dtype=np.float32):
    return np.arange(n, dtype=dtype), np.zeros(n, dtype)


def test_compile_then_call_with_run_time_arguments_only():
    x, y = arrays()
    compiled = cute.compile(scale, x, y, 3.0, True)
    compiled(x, y, 1.5)
    assert np.array_equal(y, x * 3.0)
    with pytest.raises(ArgumentError, match="takes? 3 arguments .x, y, factor., got 4; Constexpr"):
        compiled(x, y, 1.5, True)


def test_bound_calls_read_their_arguments_once():
    x, y = arrays()
    compiled = cute.compile(scale, x, y)
    bound = compiled.bind(y=y, x=x, factor=3)
    for _ in range(2):
        y[:] = 0
        bound()
        assert np.array_equal(y, x * 3.0)
    with pytest.raises(ArgumentError, match="the argument 'y' is missing"):
        compiled.bind(x)
    with pytest.raises(ArgumentError, match="argument 'y': expected"):
        compiled.bind(x, y.astype(np.int32))


def test_defaults_and_keywords():
    x, y = arrays()
    compiled = cute.compile(scale, x, y)
    compiled(x, y)
    assert np.array_equal(y, x * 2.0)
    compiled(y=y, x=x, factor=5)
    assert np.array_equal(y, x * 5.0)
    with pytest.raises(ArgumentError, match="the argument 'y' is missing"):
        compiled(x)
    with pytest.raises(ArgumentError, match="no run-time argument 'z'"):
        compiled(x, y, z=1)


def test_one_program_for_all_shapes_of_plain_arrays():
    x, y = arrays(10)
    compiled = cute.compile(scale, x, y, 2.0)
    for n in (1, 63, 64, 65, 1000):
        a, b = arrays(n)
        compiled(a, b, 0.5)
        assert np.array_equal(b, a * 0.5)
    base = np.arange(40, dtype=np.float32)
    compiled(base[20:], base[:20], 1.0)
    assert np.array_equal(base[:20], base[20:])


def test_torch_and_numpy_meet_in_one_executor():
    x, y = torch.arange(50, dtype=torch.float32), torch.zeros(50)
    compiled = cute.compile(scale, x, y, 2.0)
    compiled(x, y, 4.0)
    assert torch.equal(y, x * 4)
    a, b = arrays(30)
    compiled(a, b, 4.0)
    assert np.array_equal(b, a * 4)


@pytest.mark.parametrize(
    "make, match",
    [
        (lambda x, y: (x.double(), y, 1.0), "argument 'x': expected .*f32.*, got .*f64"),
        (lambda x, y: (x, y.reshape(5, 10), 1.0), r"argument 'y': expected .*\(\?\):\(1\).*, got .*\(\?,\?\)"),
        (lambda x, y: (x[::2], y, 1.0), r"argument 'x': expected .*\(\?\):\(1\).*, got .*\(\?\):\(\?\)"),
        (lambda x, y: (x, y, "fast"), "argument 'factor': expected a number .Float32., got fast"),
        (lambda x, y: (x, y, None), "argument 'factor': expected a number .Float32., got None"),
        (lambda x, y: (x, 7, 1.0), "argument 'y': "),
    ],
)
@pytest.mark.parametrize("library", ["torch", "numpy"])
def test_arguments_that_do_not_fit(make, match, library):
    x, y = torch.arange(50, dtype=torch.float32), torch.zeros(50)
    compiled = cute.compile(scale, x, y, 2.0)
    args = make(x, y)
    if library == "numpy":
        args = tuple(a.numpy() if isinstance(a, torch.Tensor) else a for a in args)
    with pytest.raises(ArgumentError, match=match):
        compiled(*args)


def test_static_layouts_are_part_of_the_program():
    x, y = arrays(64)
    compiled = cute.compile(scale, from_dlpack(x), from_dlpack(y), 2.0)
    assert "64" in compiled.source or "1, 1, 1" in compiled.source
    compiled(from_dlpack(x), from_dlpack(y), 3.0)
    assert np.array_equal(y, x * 3)
    a, b = arrays(65)
    with pytest.raises(ArgumentError, match=r"argument 'x': expected .*\(64\):\(1\).*, got .*\(65\):\(1\)"):
        compiled(from_dlpack(a), from_dlpack(b), 3.0)


def test_alignment_and_divisibility_are_checked():
    memory = np.zeros(129, np.float32)
    at = next(i for i in range(4) if (memory.ctypes.data + 4 * i) % 16 == 0)
    x = memory[at : at + 64]
    compiled = cute.compile(scale, from_dlpack(x, assumed_align=16), from_dlpack(x, assumed_align=16), 1.0)
    off = memory[at + 1 : at + 65]
    with pytest.raises(ArgumentError, match="argument 'x': expected .*align<16>.*, got .*align<4>"):
        compiled(from_dlpack(off), from_dlpack(off), 1.0)
    even = from_dlpack(x).mark_compact_shape_dynamic(0, divisibility=16)
    compiled = cute.compile(scale, even, even, 1.0)
    odd = from_dlpack(memory[:60]).mark_compact_shape_dynamic(0, divisibility=4)
    with pytest.raises(ArgumentError, match="argument 'x': expected .*div=16"):
        compiled(odd, odd, 1.0)


def test_integers_out_of_range():
    @cute.jit
    def double(n: cutlass.Int32, m: cutlass.Uint8):
        return n * 2, m

    compiled = cute.compile(double, 1, 2)
    assert compiled(7, 200) == (14, 200)
    with pytest.raises(ArgumentError, match="argument 'n': expected Int32"):
        compiled(1 << 31, 2)
    with pytest.raises(ArgumentError, match="argument 'm': expected Uint8 .0 to 255."):
        compiled(1, -1)


def test_results_of_host_functions():
    @cute.jit
    def numbers(n, x, flag, name: cutlass.Constexpr):
        total = 0
        for i in range(n):
            total += i
        if flag:
            total = -total
        return total, {"half": x / 2, "name": name}, (n > 3, 5)

    assert numbers(5, 3.0, True, "a") == (-10, {"half": 1.5, "name": "a"}, (True, 5))
    assert cute.compile(numbers, 1, 1.0, False, "b")(2, 5.0, False) == (1, {"half": 2.5, "name": "b"}, (False, 5))


def test_host_arithmetic_is_that_of_the_machine():
    @cute.jit
    def arithmetic(a: cutlass.Int32, b: cutlass.Int32, x: cutlass.Float32):
        return (
            a // b, a % b, a + b, a * b, a << 3, a >> 1, a & b, a | b, a ^ b, -a, ~a, abs(a), min(a, b), max(a, b),
            cutlass.Int8(a), cutlass.Uint8(a), cutlass.Int64(a) * b, x * x, x / 3, cutlass.Int32(x), cutlass.Float16(x),
            cute.math.sqrt(x), a if x > 1.0 else b,
        )  # fmt: skip

    compiled = cute.compile(arithmetic, 1, 1, 1.0)
    f32 = np.float32
    for a, b, x in ((7, 3, 2.5), (-7, 3, 0.1), (2_000_000_011, -5, 1e-3), (-200, 7, 9.0)):
        wrap = lambda v, t=np.int32: int(np.array(v & ((1 << 64) - 1), np.uint64).astype(t))  # noqa: E731
        expected = (
            a // b, a % b, wrap(a + b), wrap(a * b), wrap(a << 3), a >> 1, a & b, a | b, a ^ b, -a, ~a, abs(a), min(a,
            b), max(a, b), wrap(a, np.int8), wrap(a, np.uint8), a * b, float(f32(x) * f32(x)), float(f32(x) / f32(3)),
            int(f32(x)), float(np.float16(f32(x))), float(np.sqrt(f32(x))), a if f32(x) > 1 else b,
        )  # fmt: skip
        assert compiled(a, b, float(f32(x))) == expected


def test_control_flow_on_the_host_decides_launches():
    @cute.jit
    def some(x: cute.Tensor, y: cute.Tensor, n: cutlass.Int32):
        for i in range(n):
            if i % 2 == 0:
                scale_kernel(x, y, 3.0, 4).launch(grid=1, block=THREADS)
            else:
                scale_kernel(y, x, 1.0, cute.size(x)).launch(grid=1, block=THREADS)

    x, y = arrays(8)
    some(x, y, 1)
    assert y.tolist() == [0, 3, 6, 9, 0, 0, 0, 0]
    compiled = cute.compile(some, x, y, 1)
    compiled(x, y, 2)
    assert x.tolist() == [0, 3, 6, 9, 0, 0, 0, 0]


def test_empty_grids_are_not_launched():
    x, y = np.zeros(0, np.float32), np.zeros(0, np.float32)
    scale(x, y, 1.0)


def test_equal_specialisations_share_a_kernel():
    @cute.jit
    def three(x: cute.Tensor, y: cute.Tensor):
        for factor in [1.0, 2.0, 3.0]:
            scale_kernel(x, y, factor, 4).launch(grid=1, block=THREADS)
        scale_kernel(x, y, 4.0, 4).launch(grid=1, block=32)

    x, y = arrays(8)
    compiled = cute.compile(three, x, y)
    assert [(k.name, k.attrs["max_threads"]) for k in compiled.kernels] == [
        ("scale_kernel", 64),
        ("scale_kernel_1", 32),
    ]
    compiled(x, y)
    assert y[3] == 12


def test_kernels_are_clean_and_bear_the_users_names():
    x, y = arrays(8)
    text = str(cute.compile(scale, x, y, 1.0).kernels[0])
    assert (
        "kernel @scale_kernel(%x: ptr<f32, gmem, align 4>, %y: ptr<f32, gmem, align 4>, %factor: f32, %count: i32)"
        in text
    )
    assert "%tidx = sreg {name='tid.x'}" in text
    assert "ctaid.y" not in text  # nobody reads it


def test_locations_are_the_users_lines():
    import inspect

    x, y = arrays(8)
    kernel = cute.compile(scale, x, y, 1.0).kernels[0]
    lines, first = inspect.getsourcelines(scale_kernel.function)
    store = next(op for op in kernel.walk() if op.opcode == "store")
    assert store.loc.file == __file__
    assert "y[i] = x[i] * factor" in lines[store.loc.line - first]


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


def test_machines_are_found_by_name():
    assert machine_of("cpu") is machine_of("cpu:0")
    with pytest.raises(MachineError, match="no machine runs kernels on 'mps' arrays"):
        machine_of("mps")


def test_a_call_costs_a_few_microseconds():
    x = torch.zeros(64, 64)
    y, z = torch.zeros(64, 64), torch.zeros(64, 64)

    @cute.kernel
    def add(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
        tidx, _, _ = cute.arch.thread_idx()
        c[tidx, 0] = a[tidx, 0] + b[tidx, 0]

    @cute.jit
    def host(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
        add(a, b, c).launch(grid=(cute.ceil_div(a.shape[0], 64), a.shape[1], 1), block=64)

    compiled = cute.compile(host, x, y, z)
    compiled._loaded["cpu"] = [lambda config, args: None]  # the host's part alone

    def spent() -> float:
        started = time.process_time()
        for _ in range(2000):
            compiled(x, y, z)
        return (time.process_time() - started) / 2000

    assert min(spent() for _ in range(5)) < 12e-6


def test_options():
    x, y = arrays(8)
    plain = cute.compile(scale, x, y, 1.0)
    assert "options" not in plain.kernels[0].attrs
    made = cute.compile[cute.OptLevel(2), cute.KeepPTX](scale, x, y, 1.0)
    assert made.options.opt_level == 2 and made.options.keep_ptx
    text = cute.compile(scale, x, y, 1.0, options="--opt-level 1 --ptxas-options '--verbose' --generate-line-info")
    assert (text.options.opt_level, text.options.ptxas_options, text.options.generate_line_info) == (
        1,
        "--verbose",
        True,
    )
    with pytest.raises(ArgumentError, match="unknown option '--opt-lvl'"):
        cute.compile(scale, x, y, 1.0, options="--opt-lvl 2")
    with pytest.raises(ArgumentError, match="opt-level is 0, 1, 2 or 3"):
        cute.OptLevel(7)
    with pytest.raises(ArgumentError, match="takes options such as KeepPTX"):
        cute.compile["--keep-ptx"]


def test_what_can_be_compiled():
    with pytest.raises(ArgumentError, match="cannot be compiled alone"):
        cute.compile(scale_kernel, 1)
    with pytest.raises(ArgumentError, match="takes a @cute.jit function"):
        cute.compile(3)
    with pytest.raises(ArgumentError, match="missing a required argument"):
        cute.compile(scale)
    with pytest.raises(ArgumentError, match="returns HostTensor|returns Tensor|results that are tensors"):
        cute.compile(lambda_like, np.zeros(3))


@cute.jit
def lambda_like(x):
    return x


def test_direct_calls_find_their_specialisation():
    traced = []

    @cute.jit
    def f(x, k, mode: cutlass.Constexpr = "a"):
        traced.append(mode)
        return k * 2 if mode == "a" else k * 3

    x, y = torch.zeros(3), torch.zeros(4)
    assert [f(x, 1), f(y, 5), f(x, 2.5), f(x, True), f(x, 7)] == [2, 10, 5.0, 2, 14]
    assert [f(x, 1, "b"), f(x, 1), f(x, 2, "b"), f(x, mode="b", k=4)] == [3, 2, 6, 12]
    assert f(x.double(), 1) == 2 and f(x.numpy(), 2) == 4
    assert traced == ["a", "a", "a", "b", "a"]


def test_direct_calls_look_into_groups():
    traced = []

    @cute.jit
    def f(pair):
        traced.append(type(pair[0]).__name__)
        return pair[0]

    assert [f((1, 2)), f((3, 4)), f((2.0, 1)), f((True, 1)), f((5, 6))] == [1, 3, 2.0, True, 5]
    assert traced == ["Int32", "Float32", "Boolean"]
    x = np.arange(4, dtype=np.float32)
    shapes = []

    @cute.jit
    def g(pair):
        shapes.append(str(pair[0].layout))

    for tensor in (from_dlpack(x), from_dlpack(x), x, from_dlpack(x)):
        g((tensor, 1))
    assert shapes == ["(4):(1)", "(?):(1)"]


def test_compiled_functions_do_not_keep_arrays_alive():
    import gc
    import weakref

    @cute.jit
    def f(pair, y: cute.Tensor):
        scale_kernel(pair[0], y, 2.0, 4).launch(grid=1, block=THREADS)

    x, y = torch.ones(8), torch.zeros(8)
    dead = [weakref.ref(x), weakref.ref(y)]
    f((x, x), from_dlpack(y))
    compiled = cute.compile(f, (x, x), from_dlpack(y))
    compiled((x, x), from_dlpack(y))
    assert y[3] == 2
    del x, y
    gc.collect()
    assert [ref() for ref in dead] == [None, None]
    x, y = torch.ones(8), torch.zeros(8)
    compiled((x, x), from_dlpack(y))
    f((x, x), from_dlpack(y))
    assert y[3] == 2
    with pytest.raises(ArgumentError, match=r"argument 'pair\[0\]': expected HostTensor .*f32"):
        compiled((x.double(), x), from_dlpack(y))


def test_tensors_that_were_passed_before_are_read_at_once():
    x, y = arrays(64)
    tensors = [from_dlpack(a).mark_layout_dynamic() for a in (x, y)]
    compiled = cute.compile(scale, *tensors, 2.0)
    compiled(*tensors, 3.0)
    assert tensors[0].passed[1] and np.array_equal(y, x * 3)
    compiled(*tensors, 4.0)
    assert np.array_equal(y, x * 4)
    other = cute.compile(scale, from_dlpack(x), from_dlpack(y), 2.0)
    with pytest.raises(ArgumentError, match="argument 'x'"):
        other(*tensors, 5.0)
    integers = from_dlpack(x.view(np.int32)).mark_layout_dynamic()
    with pytest.raises(ArgumentError, match="argument 'x'.*i32"):
        compiled(integers, tensors[1], 2.0)
    integers.element_type = cutlass.Float32
    compiled(integers, tensors[1], 6.0)
    assert np.array_equal(y, x * 6)


def test_threads_stage_side_by_side():
    from concurrent.futures import ThreadPoolExecutor

    def work(k):
        @cute.jit
        def f(n):
            total = k
            for i in range(n):
                if i % 2 == 0:
                    total += i
            return total

        return [f(n) for n in range(6)]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(16))) == [[k, k, k, k + 2, k + 2, k + 6] for k in range(16)]


def test_tensors_that_a_loop_only_reads_do_not_travel():
    @cute.kernel
    def body(x: cute.Tensor, y: cute.Tensor):
        row = x[3, None]
        last = cute.domain_offset((1, 2), x)
        total = cutlass.Float32(0)
        for i in range(cute.size(row)):
            if i > 0:
                total += row[i] + last[0, 0]
        y[0] = total

    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor):
        body(x, y).launch(grid=1, block=1)

    x, y = np.arange(20, dtype=np.float32).reshape(4, 5), np.zeros(1, np.float32)
    compiled = cute.compile(host, x, y)
    loop = next(op for op in compiled.kernels[0].walk() if op.opcode == "for")
    assert [result.hint for result in loop.results] == ["total"]
    compiled(x, y)
    assert y[0] == 16 + 17 + 18 + 19 + 4 * 7


def test_plain_arrays_for_a_function_compiled_with_tensors():
    x, y = arrays(64)
    dynamic = [from_dlpack(a).mark_compact_shape_dynamic(0, divisibility=8) for a in (x, y)]
    compiled = cute.compile(scale, *dynamic, 2.0)
    for make in (np.asarray, torch.from_numpy):
        a, b = arrays(32)
        compiled(make(a), make(b), 3.0)
        assert np.array_equal(b, a * 3)
        a, b = arrays(36)
        with pytest.raises(ArgumentError, match="argument 'x': expected .*div=8.*known divisors"):
            compiled(make(a), make(b), 3.0)
    static = cute.compile(scale, from_dlpack(x), from_dlpack(y), 2.0)
    static(x, y, 5.0)
    assert np.array_equal(y, x * 5)
    with pytest.raises(ArgumentError, match=r"argument 'x': .*\(64\):\(1\)>, got ndarray of float32, shape \(32,\)"):
        static(x[:32], y, 5.0)
    with pytest.raises(ArgumentError, match="argument 'y': expected .*f32.*, got ndarray of int64"):
        static(x, y.astype(np.int64), 5.0)


def test_plain_arrays_must_be_what_the_tensors_promised():
    @cute.jit
    def host(x: cute.Tensor):
        scale_kernel(x, x, 1.0, 0).launch(grid=1, block=32)

    memory = np.zeros(128, np.float32)
    static = cute.compile(host, from_dlpack(memory.reshape(2, 64)))
    with pytest.raises(ArgumentError, match=r"argument 'x': .*\(2,64\):\(64,1\).*shape \(1, 64\)"):
        static(memory[:64].reshape(1, 64))  # one row where two are read
    single = cute.compile(host, from_dlpack(memory[:1].reshape(1, 1)))
    single(np.lib.stride_tricks.as_strided(memory, (1, 1), (12, 20)))  # the strides of a single element do not matter
    dynamic = cute.compile(host, from_dlpack(memory[::2]).mark_layout_dynamic())
    with pytest.raises(ArgumentError, match="argument 'x': .*known divisors"):
        dynamic(memory[::-2])  # a stride that was known not to be negative
    vast = np.lib.stride_tricks.as_strided(memory, (1 << 16, 1 << 16), (1 << 18, 4))
    narrow = cute.compile(host, from_dlpack(memory.reshape(2, 64)).mark_all_dynamic(1))
    narrow(memory.reshape(4, 32))
    with pytest.raises(ArgumentError, match="argument 'x': .*offsets of 32 bits"):
        narrow(vast)


def test_compiling_ahead_of_the_data():
    fake = cute.runtime.make_fake_compact_tensor(cutlass.Float32, (64,))
    compiled = cute.compile(scale, fake, fake, 1.0)
    x, y = arrays(64)
    compiled(x, y, 3.0)
    assert np.array_equal(y, x * 3)
