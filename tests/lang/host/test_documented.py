"""What the CuTe DSL's general documentation describes, as programs of our own: control flow, layouts, caching,
arguments."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ArgumentError, StagingError
from tilewright.lang.staging.ranges import range_dynamic

# -- control flow ----------------------------------------------------------------------------------------------------


@cute.jit
def kinds_of_loops(bound: cutlass.Int32):
    n = 3
    for i in cutlass.range_constexpr(n):
        cute.printf("constexpr %d\n", i)
    for i in range(n):
        cute.printf("loop %d\n", i)
    for i in range(bound):
        cute.printf("bound %d\n", i)
    for i in cutlass.range(bound, unroll=2):
        cute.printf("unrolled %d\n", i)


def test_kinds_of_loops(capfd):
    compiled = cute.compile(kinds_of_loops, 1)
    compiled(2)
    lines = capfd.readouterr().out.split("\n")
    expected = [
        *(f"constexpr {i}" for i in range(3)),
        *(f"loop {i}" for i in range(3)),
        *(f"bound {i}" for i in range(2)),
        *(f"unrolled {i}" for i in range(2)),
    ]
    assert [line for line in lines if line] == expected
    loops = [op for op in compiled.host.walk() if op.opcode == "for"]
    assert [op.attrs["unroll"] for op in loops] == [None, None, 2]


@cute.jit
def branches(const_var: cutlass.Constexpr, dynamic_var: cutlass.Int32):
    if cutlass.const_expr(const_var):
        cute.printf("Const branch\n")
    else:
        cute.printf("Const else\n")
    if dynamic_var == 10:
        cute.printf("Dynamic True\n")
    else:
        cute.printf("Dynamic False\n")


def test_branches(capfd):
    branches(True, 10)
    branches(False, 3)
    words = capfd.readouterr().out.split("\n")
    assert [w for w in words if w] == ["Const branch", "Dynamic True", "Const else", "Dynamic False"]
    assert sum(op.opcode == "if" for op in cute.compile(branches, True, 1).host.walk()) == 1


def test_while_loops():
    @cute.jit
    def main(dynamic_var: cutlass.Int32):
        n = 0
        while cutlass.const_expr(n < 10):
            n += 1
        turns = 0
        while dynamic_var < 100:
            dynamic_var = dynamic_var * 2
            turns += 1
        return n, dynamic_var, turns

    assert main(7) == (10, 112, 4)


def test_compile_time_flag_removes_code():
    @cute.kernel
    def body(x: cute.Tensor, do_relu: cutlass.Constexpr):
        value = x[0]
        if cutlass.const_expr(do_relu):
            value = cutlass.max(value, cutlass.Float32(0))
        x[0] = value

    @cute.jit
    def host(x: cute.Tensor, do_relu: cutlass.Constexpr):
        body(x, do_relu).launch(grid=1, block=1)

    x = np.array([-3.0], np.float32)

    def opcodes(flag):
        return [op.opcode for op in cute.compile(host, x, flag).kernels[0].walk()]

    assert "max" not in opcodes(False) and "max" in opcodes(True)
    host(x, False)
    assert x[0] == -3
    host(x, True)
    assert x[0] == 0


def test_dynamic_expr_and_range_dynamic():
    @cute.jit
    def main(n):
        total = 0
        for i in range_dynamic(n):
            total += i
        if cutlass.dynamic_expr(total > 3):
            total = total * 2
        return total

    assert main(4) == 12


# -- static and dynamic layouts --------------------------------------------------------------------------------------


def test_static_layout_is_printed_while_staging(capsys):
    @cute.jit
    def show(tensor):
        print("layout", tensor.layout, cute.size(tensor))

    a = torch.tensor([1, 2, 3], dtype=torch.int16)
    show(from_dlpack(a))
    assert capsys.readouterr().out == "layout (3):(1) 3\n"
    show(from_dlpack(a))  # compiled before: nothing is staged again
    assert capsys.readouterr().out == ""
    show(a)
    assert capsys.readouterr().out == "layout (?):(1) ?\n"


def test_dynamic_layout_is_reused():
    @cute.jit
    def first_and_size(tensor, out: cute.Tensor):
        out[0] = tensor[0, 1] + tensor[1, 0]
        return cute.size(tensor)

    out = np.zeros(1, np.int32)
    a = torch.tensor([[1, 2], [3, 4]], dtype=torch.int32)
    compiled = cute.compile(first_and_size, a, out)
    assert compiled(a, out) == 4 and out[0] == 5
    b = torch.tensor([[11, 12], [13, 14], [15, 16]], dtype=torch.int32)
    assert compiled(b, out) == 6 and out[0] == 25


def test_static_size_decides_a_branch_early(capfd):
    @cute.jit
    def foo(tensor, x: cutlass.Constexpr[int]):
        if cute.size(tensor) > x:
            cute.printf("tensor[2]: {}", tensor[2])
        else:
            cute.printf("tensor size <= {}", x)

    a = torch.tensor([1, 2, 3], dtype=torch.int32)
    b = torch.tensor([1, 2, 3, 4, 5], dtype=torch.int32)
    foo(from_dlpack(a), 3)
    foo(b, 3)
    assert capfd.readouterr().out.split() == ["tensor", "size", "<=", "3", "tensor[2]:", "3"]
    assert not any(op.opcode == "if" for op in cute.compile(foo, from_dlpack(a), 3).host.walk())
    assert any(op.opcode == "if" for op in cute.compile(foo, b, 3).host.walk())


def test_loop_over_a_tensor(capfd):
    @cute.jit
    def foo(tensor):
        for i in range(cute.size(tensor)):
            cute.printf("tensor[{}]: {}", i, tensor[i])

    foo(torch.tensor([4, 5], dtype=torch.int32))
    assert capfd.readouterr().out.split("\n")[:2] == ["tensor[0]: 4", "tensor[1]: 5"]


# -- arguments -------------------------------------------------------------------------------------------------------


def test_static_and_dynamic_arguments(capfd):
    @cute.jit
    def foo(x: cutlass.Int32, y: cutlass.Constexpr):
        print("x =", x, "y =", y)
        cute.printf("x: {}", x)
        cute.printf("y: {}", y)

    foo(2, 2)
    out = capfd.readouterr().out
    assert "x = ? y = 2" in out and "x: 2" in out and "y: 2" in out


def test_epilogue_as_a_constexpr_function():
    @cute.kernel
    def body(x: cute.Tensor, epilogue_op: cutlass.Constexpr):
        frag = cute.make_rmem_tensor(4, cutlass.Float32)
        frag.store(x.load())
        x.store(epilogue_op(frag.load()))

    @cute.jit
    def host(x: cute.Tensor, epilogue_op: cutlass.Constexpr = lambda v: v):
        body(x, epilogue_op).launch(grid=1, block=1)

    x = np.array([-1.0, 2.0, -3.0, 4.0], np.float32)
    host(from_dlpack(x), lambda v: cute.where(v > 0, v, cute.full_like(v, 0)))
    assert x.tolist() == [0, 2, 0, 4]
    host(from_dlpack(x))
    assert x.tolist() == [0, 2, 0, 4]


def test_named_tuples_as_arguments():
    from typing import NamedTuple

    class Vec3(NamedTuple):
        x: cutlass.Int32
        y: cutlass.Int32
        z: cutlass.Int32

    @cute.jit
    def clamp(v: Vec3, out: cute.Tensor):
        out[0] = cutlass.Int32(0) if v.x < cutlass.Int32(0) else v.x
        out[1] = cutlass.Int32(0) if v.y < cutlass.Int32(0) else v.y
        total = cutlass.Int32(0)
        for i in range(v.z):
            total = total + i
        out[2] = total

    out = np.zeros(3, np.int32)
    compiled = cute.compile(clamp, Vec3(*map(cutlass.Int32, (1, 2, 3))), out)
    compiled(Vec3(cutlass.Int32(-4), cutlass.Int32(7), cutlass.Int32(5)), out)
    assert out.tolist() == [0, 7, 10]
    compiled(Vec3(3, -2, 1), out)
    assert out.tolist() == [3, 0, 0]


def test_object_state_that_the_documentation_warns_of():
    class Foo:
        def __init__(self, a):
            self.a = a

        def set_a(self, i):
            self.a = i

        def get_a(self):
            return self.a

    @cute.jit
    def foo(a: cutlass.Int32, res: cute.Tensor):
        thing = Foo(a)
        for i in range(10):
            thing.set_a(i)
        res[0] = thing.get_a()

    res = np.zeros(1, np.int32)
    foo(5, res)
    assert res[0] == 9


def test_types_are_promoted():
    @cute.jit
    def foo(a: cutlass.Int32, b: cutlass.Float32, res: cute.Tensor):
        res[0] = max(a, b)

    res = np.zeros(1, np.float32)
    foo(1, 2.5, res)
    assert res[0] == 2.5
    foo(4, 2.5, res)
    assert res[0] == 4


def test_lists_take_no_run_time_index():
    @cute.jit
    def foo(a: cutlass.Float32, b: cutlass.Float32, i: cutlass.Int32, res: cute.Tensor):
        xs = [a, b]
        res[0] = xs[i]

    with pytest.raises(StagingError, match="cannot be used as a Python index"):
        foo(1.0, 2.0, 0, np.zeros(1, np.float32))


# -- caching ---------------------------------------------------------------------------------------------------------

a = 1
staged = []


@cute.jit
def add(b):
    staged.append(a)
    return a + b


def test_a_changed_global_is_seen():
    global a
    a = 1
    staged.clear()
    assert [add(2), add(3), add(2)] == [3, 4, 3]
    assert len(staged) == 1
    a = 2
    assert add(2) == 4 and len(staged) == 2
    a = 1
    assert add(2) == 3 and len(staged) == 2


def test_compile_does_not_cache():
    global a
    a = 1
    kept = {1: cute.compile(add, 2)}
    a = 2
    kept[2] = cute.compile(add, 2)
    assert (kept[1](2), kept[2](2), kept[1](2)) == (3, 4, 3)


def test_closures_and_called_functions_are_seen():
    def make(step):
        @cute.jit
        def inner(x):
            return x + step

        @cute.jit
        def outer(x):
            return inner(x) * 2

        def change(to):
            nonlocal step
            step = to

        return outer, change

    outer, change = make(1)
    assert outer(3) == 8
    change(10)
    assert outer(3) == 26


def test_objects_whose_attributes_change():
    class Scale:
        def __init__(self, by):
            self.by = by

        @cute.jit
        def __call__(self, x):
            return x * self.by

    thing = Scale(3)
    assert thing(2) == 6
    thing.by = 5
    assert thing(2) == 10


def test_constexpr_values_are_part_of_the_key():
    traced = []

    @cute.jit
    def f(x, k: cutlass.Constexpr):
        traced.append(k)
        return x * k

    assert [f(2, 3), f(2, 4), f(5, 3), f(2, 3.0)] == [6, 8, 15, 6.0]
    assert traced == [3, 4, 3.0]


def test_no_cache_forces_a_fresh_compilation():
    traced = []

    @cute.jit
    def f(x):
        traced.append(x)
        return x

    f(1)
    f(1)
    f(1, no_cache=True)
    assert len(traced) == 2


# -- frameworks ------------------------------------------------------------------------------------------------------


def test_implicit_conversion_keeps_the_leading_stride(capsys):
    @cute.jit
    def foo(src):
        print(src.layout, src.element_type)

    foo(torch.randn(30, 20, 32))
    foo(torch.randn(4, 6).t())
    foo(np.zeros((3, 5), np.float16))
    out = capsys.readouterr().out.split("\n")
    assert out[:3] == ["(?,?,?):(?,?,1) Float32", "(?,?):(1,?) Float32", "(?,?):(?,1) Float16"]


def test_views_and_strides():
    @cute.jit
    def sum_all(x: cute.Tensor, out: cute.Tensor):
        total = cutlass.Float32(0)
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                total += x[i, j]
        out[0] = total

    out = np.zeros(1, np.float32)
    base = torch.arange(48, dtype=torch.float32).reshape(6, 8)
    for view in (base, base.t(), base[1:4, 2:7], base[::2, ::3], base[:1].expand(5, 8)):
        sum_all(view, out)
        assert out[0] == view.sum().item()


def test_arrays_of_two_devices_are_refused():
    from tilewright.ir.runtime import DevicePointer
    from tilewright.lang.arguments.dlpack import HostTensor

    @cute.jit
    def foo(x: cute.Tensor, y: cute.Tensor):
        y[0] = x[0]

    x, y = from_dlpack(np.zeros(4, np.float32)), from_dlpack(np.zeros(4, np.float32))
    far = DevicePointer(0x1000, "cuda:0", 0x1000, 0x2000, None)
    pointer = type(x.iterator)(far, x.iterator.dtype, x.iterator._kind.space, 4)
    compiled = cute.compile(foo, x, y)
    with pytest.raises(ArgumentError, match=r"several devices \(cpu, cuda:0\)"):
        compiled(x, HostTensor(pointer, y.layout, y.array))
