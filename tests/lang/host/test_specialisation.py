"""What a function is staged again for, what it remembers, and what a compiled one takes in place of a tensor."""

from __future__ import annotations

import dataclasses
import decimal
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import tilewright as cutlass
import tilewright.cute as cute
from tests.lang.host.programs import THREADS, arrays, scale, scale_kernel
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ArgumentError


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
    with pytest.raises(ArgumentError, match=r"argument 'pair\[0\]': expected cute.Tensor .*f32"):
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
    other(*tensors, 5.0)  # marked otherwise, and of the extents that it was compiled for
    assert np.array_equal(y, x * 5)
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
        with pytest.raises(ArgumentError, match="argument 'x': expected .*div=8.*36 is not a multiple of 8"):
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
    with pytest.raises(ArgumentError, match="argument 'x': .*-2 is not between 0 and"):
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


def test_known_divisibility_of_an_argument_specialises_the_kernel():
    known: list[int] = []

    @cute.kernel
    def kernel(y: cute.Tensor, n: cutlass.Int32):
        known.append(n.divisibility)
        y[n % 4] = n

    @cute.jit
    def run(y: cute.Tensor, n: cutlass.Int32):
        kernel(y, n * 4).launch(grid=1, block=1)
        kernel(y, n).launch(grid=1, block=1)
        kernel(y, n * 4 + 8).launch(grid=1, block=1)

    y = np.zeros(4, np.int32)
    compiled = cute.compile(run, from_dlpack(y), 3)
    assert known == [4, 1] and len(compiled.kernels) == 2
    compiled(from_dlpack(y), 3)
    assert y.tolist() == [20, 0, 0, 3]


def test_literals_of_one_type_share_a_kernel():
    """What is known of a literal says which literal it is."""

    @cute.kernel
    def kernel(y: cute.Tensor, pair):
        y[pair[0]] = pair[1]

    @cute.jit
    def run(y: cute.Tensor):
        for i in [1, 2, 3]:
            kernel(y, (cutlass.Int32(i), cutlass.Int32(2 * i))).launch(grid=1, block=1)

    y = np.zeros(4, np.int32)
    compiled = cute.compile(run, y)
    compiled(y)
    assert len(compiled.kernels) == 1 and y.tolist() == [0, 2, 4, 6]


def test_extents_that_no_op_reads_are_told_by_the_names_of_values():
    """Only those of arrays that are passed, and no other number of such a name."""

    @cute.kernel
    def kernel(
        x: cute.Tensor, x_shape: cutlass.Int32, x_shape_k: cutlass.Int32, x_shape1: cutlass.Int32, y: cute.Tensor
    ):
        x[0, 0] = x.shape[1]

    @cute.jit
    def run(x: cute.Tensor, x_shape: cutlass.Int32, x_shape_k: cutlass.Int32, y: cute.Tensor):
        x_shape1 = x_shape + 1
        kernel(x, x_shape, x_shape_k, x_shape1, y).launch(grid=1, block=1)

    x = np.zeros((2, 3), np.int32)
    (function,) = cute.compile(run, x, 5, 6, x).kernels
    assert [(p.hint, at) for p, at in function.extents.items()] == [("x_shape0", (0, 0))]


def test_user_parameter_named_like_an_extent_is_not_an_extent():
    """Accesses of a view with that many elements are not compared with the array's extent."""

    @cute.kernel
    def kernel(x: cute.Tensor, x_shape0: cutlass.Int32):
        view = cute.make_tensor(x.iterator, cute.make_layout(x_shape0))
        view[20] = 1.0

    @cute.jit
    def run(x: cute.Tensor, x_shape0: cutlass.Int32):
        kernel(x, x_shape0).launch(grid=1, block=1)

    x = np.zeros((8, 8), np.float32)
    run(from_dlpack(x).mark_layout_dynamic(), 64)
    assert x.flatten().nonzero()[0].tolist() == [20]


class Equal:
    """Equal to all others with its ``name``."""

    __slots__ = ("factor", "name")

    def __init__(self, factor, name="one"):
        self.factor, self.name = factor, name

    def __eq__(self, other):
        return self.name == other.name

    def __hash__(self):
        return hash(self.name)


@dataclasses.dataclass(frozen=True)
class Uncompared:
    factor: int = dataclasses.field(compare=False)


class Word(str):
    factor: int


class Number(float):
    factor: int


def with_factor(made, factor):
    made.factor = factor
    return made


class Cyclic(Equal):
    def __init__(self, factor):
        super().__init__(factor)
        self.itself = [self]


EQUAL: dict[str, tuple[Callable[[int], Any], Callable[[Any], Any]]] = {
    "of a class with ==": (Equal, lambda c: c.factor),
    "with a field that == leaves out": (Uncompared, lambda c: c.factor),
    "in a tuple": (lambda n: (Equal(n),), lambda c: c[0].factor),
    "in a set": (lambda n: frozenset([Equal(n), Equal(1, "two")]), lambda c: sum(x.factor for x in c)),
    "that hold themselves": (Cyclic, lambda c: c.itself[0].factor),
    "texts with attributes": (lambda n: with_factor(Word("x"), n), lambda c: c.factor),
    "numbers with attributes": (lambda n: with_factor(Number(1), n), lambda c: c.factor),
    "zeros": (lambda n: Number(0.0 if n == 2 else -0.0), lambda c: 2 if str(c) == "0.0" else 3),
    "ranges": (lambda n: range(n, n), lambda c: c.start),
    "decimals": (lambda n: decimal.Decimal("1." + n * "0"), lambda c: len(str(c)) - 2),
}
"""Objects that Python calls equal, and what a program reads of them."""


@pytest.mark.parametrize("case", EQUAL)
def test_equal_constants_that_hold_something_else_make_other_programs(case: str) -> None:
    made, read = EQUAL[case]
    two, three = made(2), made(3)
    assert two == three

    @cute.jit
    def direct(out: cute.Tensor, given: cutlass.Constexpr):
        out[0] = cutlass.Int32(read(given))

    @cute.kernel
    def kernel(out: cute.Tensor, given: cutlass.Constexpr, at: cutlass.Constexpr):
        out[at] = cutlass.Int32(read(given))

    @cute.jit
    def both(out: cute.Tensor):
        kernel(out, two, 0).launch(grid=1, block=1)
        kernel(out, three, 0).launch(grid=1, block=1)

    out = np.zeros(1, np.int32)
    for given in (two, three, made(2), made(3)):
        direct(out, given)
        assert out[0] == read(given)
    assert sum(map(len, direct.cache.values())) == 2, "equal ones that hold the same are one program"
    both(out)
    assert out[0] == read(three)
