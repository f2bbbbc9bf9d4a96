"""After the documentation's page "Integration with frameworks" (framework_integration)."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
import torch

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.cute.runtime import from_dlpack, make_ptr
from tilewright.errors import ArgumentError


def test_explicit_conversion_is_static_and_copies_nothing():
    a = torch.randn(30, 20)
    b = from_dlpack(a)
    assert str(b.layout) == "(30,20):(20,1)" and b.shape == (30, 20) and b.stride == (20, 1)
    assert b.element_type is cutlass.Float32 and str(b.memspace) == "generic"
    assert int(b.iterator.toint()) == a.data_ptr() if hasattr(b.iterator, "toint") else True
    assert str(cute.runtime.from_dlpack(a, assumed_align=16).layout) == "(30,20):(20,1)"


def test_tensors_and_their_attributes_print_as_documented(capsys):
    x = torch.randn(30, 20)
    y = from_dlpack(x)
    print(y.shape, y.stride, y.memspace, y.element_type)
    print(y)
    assert capsys.readouterr().out.splitlines() == [
        "(30, 20) (20, 1) generic Float32",
        f"Tensor<0x{x.data_ptr():016x}@generic o (30, 20):(20, 1)>",
    ]


def test_tensors_print_as_documented_in_staged_functions(capsys):
    @cute.jit
    def show(tensor):
        print(f"tensor.layout: {tensor.layout}")
        print(tensor)
        cute.printf("tensor: {}", tensor)

    a = torch.tensor([1, 2, 3], dtype=torch.uint16)
    show(from_dlpack(a))
    assert capsys.readouterr().out == (
        "tensor.layout: (3):(1)\ntensor<ptr<i16, generic, align<2>> o (3):(1)>\n"
        f"tensor: raw_ptr(0x{a.data_ptr():016x}: i16, generic, align<2>) o (3):(1) = \n  ( 1, 2, 3 )\n"
    )
    show(torch.randn(3, 2, 4))
    assert capsys.readouterr().out.splitlines()[:2] == [
        "tensor.layout: (?,?,?):(?,?,1)",
        "tensor<ptr<f32, generic, align<4>> o (?,?,?):(?,?,1)>",
    ]


def layouts_of_the_page():
    """The page's tensors: one with all strides, one with extents of 1, one with no stride of 1, one broadcast."""
    a = torch.empty(16, 4, 8, 2).permute(2, 1, 0, 3)
    b = torch.empty(32, 1, 1, 1, 4).permute(3, 4, 1, 0, 2)
    return a, b, torch.empty(3, 4)[::2, ::2], torch.empty(3, 1, 1, 5).expand(3, 4, 2, 5)


def test_the_layouts_that_the_page_prints():
    a, b, c, d = layouts_of_the_page()

    def dynamic(x, leading_dim=None, **options):
        return str(from_dlpack(x, **options).mark_layout_dynamic(leading_dim=leading_dim).layout)

    assert dynamic(a) == "(?,?,?,?):(?,?,?,1)" and dynamic(b, 0) == "(?,?,?,?,?):(1,?,?,?,?)"
    assert dynamic(b, 2) == "(?,?,?,?,?):(?,?,1,?,?)" and dynamic(c) == "(?,?):(?,?)"
    assert dynamic(d) == "(?,?,?,?):(?,0,0,1)"
    assert dynamic(b, use_32bit_stride=False) == "(?,?,?,?,?):(?{i64},1,?{i64},?{i64},?{i64})"
    for x, leading_dim, stride in ((a, 1, 16), (b, 3, 4)):
        with pytest.raises(ArgumentError, match=f"has stride {stride}, not 1"):
            dynamic(x, leading_dim)

    def compact(x, mode, divisibility, order=None):
        return from_dlpack(x).mark_compact_shape_dynamic(mode=mode, divisibility=divisibility, stride_order=order)

    assert str(compact(a, 0, 2).layout) == "(?{div=2},4,16,2):(2,?{div=4},?{div=16},1)"
    assert str(compact(a, 1, 2).layout) == "(8,?{div=2},16,2):(2,16,?{div=32},1)"
    both = compact(a, 1, 2).mark_compact_shape_dynamic(mode=3, divisibility=2)
    assert str(both.layout) == "(8,?{div=2},16,?{div=2}):(?{div=2},?{div=16},?{div=32},1)"
    assert str(compact(b, 2, 1, (3, 0, 2, 4, 1)).layout) == "(1,4,?,32,1):(0,1,4,?{div=4},0)"
    assert str(compact(b, 2, 1, (2, 3, 4, 0, 1)).layout) == "(1,4,?,32,1):(0,1,128,4,0)"
    for x, mode, divisibility, order in (
        (a, 3, 5, (0, 1, 2, 3)),
        (b, 0, 4, None),
        (b, 30, 5, (3, 0, 2, 4, 1)),
        (b, 3, 5, (2, 1, 2, 3, 4)),
        (b, 3, 5, (0, 1, 2, 3, 4, 5)),
        (b, 0, 4, b.dim_order()),
        (b, 0, 1, (2, 1, 3, 0, 4)),
    ):
        with pytest.raises(ArgumentError):
            compact(x, mode, divisibility, order)


def test_modes_of_one_element_have_no_stride_when_called():
    """Their documented stride 0 stands for whatever the array has there."""
    seen = []

    @cute.jit
    def read(x: cute.Tensor, out: cute.Tensor):
        seen.append(str(x.layout))
        out[0] = x[0, 2, 0, 3, 0]

    _, b, _, _ = layouts_of_the_page()
    b.copy_(torch.arange(b.numel(), dtype=torch.float32).reshape(b.shape))
    out = np.zeros(1, np.float32)
    order = (3, 0, 2, 4, 1)
    compiled = cute.compile(read, from_dlpack(b).mark_compact_shape_dynamic(2, order), out)
    for given in (b, from_dlpack(b).mark_compact_shape_dynamic(2, order)):
        out[0] = 0
        compiled(given, out)
        assert out[0] == b[0, 2, 0, 3, 0] and seen == ["(1,4,?,32,1):(0,1,4,?{div=4},0)"]


def test_mark_the_tensors_layout_as_dynamic():
    a = torch.empty(8, 4, 16, 2)
    b = torch.empty(8, 1, 1, 2).permute(3, 0, 1, 2)
    assert str(from_dlpack(a).mark_layout_dynamic().layout) == "(?,?,?,?):(?,?,?,1)"
    assert str(from_dlpack(a).mark_layout_dynamic(leading_dim=3).layout) == "(?,?,?,?):(?,?,?,1)"
    assert str(from_dlpack(b).mark_layout_dynamic().layout) == "(?,?,?,?):(1,?,?,?)"
    with pytest.raises(ArgumentError, match="leading_dim"):
        from_dlpack(a).mark_layout_dynamic(leading_dim=0)


def test_several_strides_of_one_need_a_choice():
    b = torch.empty(2, 8, 1, 1).permute(3, 1, 2, 0).contiguous().permute(0, 1, 2, 3)
    ones = torch.empty_strided((4, 1, 1), (1, 1, 1))
    with pytest.raises(ArgumentError, match="leading"):
        from_dlpack(torch.empty_strided((4, 5), (1, 1))).mark_layout_dynamic()
    assert str(from_dlpack(ones).mark_layout_dynamic(leading_dim=0).layout) == "(?,?,?):(1,?,?)"
    assert b.shape == (1, 8, 1, 2)


def test_mark_compact_shape_dynamic():
    a = torch.empty(8, 4, 16, 2)
    t = from_dlpack(a).mark_compact_shape_dynamic(mode=0, divisibility=2)
    assert str(t.layout) == "(?{div=2},4,16,2):(128,32,2,1)"
    t = from_dlpack(a).mark_compact_shape_dynamic(mode=1, divisibility=2)
    assert str(t.layout) == "(8,?{div=2},16,2):(?{div=64},32,2,1)"
    t = t.mark_compact_shape_dynamic(mode=3, divisibility=2)
    assert str(t.layout) == "(8,?{div=2},16,?{div=2}):(?{div=128},?{div=32},?{div=2},1)" or "?{div" in str(t.layout)
    t = from_dlpack(a).mark_compact_shape_dynamic(mode=2, stride_order=(0, 1, 2, 3))
    assert str(t.layout) == "(8,4,?,2):(?{div=8},?{div=2},2,1)"
    t = from_dlpack(a).mark_compact_shape_dynamic(mode=0, stride_order=a.dim_order(), divisibility=8)
    assert str(t.layout) == "(?{div=8},4,16,2):(128,32,2,1)"


def test_mark_compact_shape_dynamic_refuses_wrong_modes_and_orders():
    a = torch.empty(8, 4, 16, 2)
    with pytest.raises(ArgumentError, match="mode"):
        from_dlpack(a).mark_compact_shape_dynamic(mode=5)
    with pytest.raises(ArgumentError, match="divisib"):
        from_dlpack(a).mark_compact_shape_dynamic(mode=0, divisibility=3)
    with pytest.raises(ArgumentError, match="order"):
        from_dlpack(a).mark_compact_shape_dynamic(mode=0, stride_order=(0, 1))
    with pytest.raises(ArgumentError):
        from_dlpack(torch.empty(8, 8)[:, ::2]).mark_compact_shape_dynamic(mode=0)


@cute.kernel
def naive_gemm_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    tidx, tidy, _ = cute.arch.thread_idx()
    m, k = a.shape
    acc = cutlass.Float32(0)
    for i in range(k):
        acc += cutlass.Float32(a[tidx, i]) * cutlass.Float32(b[tidy, i])
    c[tidx, tidy] = acc


@cute.jit
def from_raw_pointers(
    a_ptr: cute.Pointer, b_ptr: cute.Pointer, c_ptr: cute.Pointer, m: cutlass.Int32, n: cutlass.Int32, k: cutlass.Int32
):
    ma = cute.make_tensor(a_ptr, layout=cute.make_ordered_layout((m, k), order=(0, 1)))
    mb = cute.make_tensor(b_ptr, layout=cute.make_ordered_layout((n, k), order=(1, 0)))
    mc = cute.make_tensor(c_ptr, layout=cute.make_ordered_layout((m, n), order=(1, 0)))
    naive_gemm_kernel(ma, mb, mc).launch(grid=(1, 1, 1), block=(m, n, 1))


def test_bypassing_dlpack_with_pointers():
    m, n, k = 4, 6, 8
    rng = np.random.default_rng(1)
    a = np.asfortranarray(rng.integers(-3, 4, (m, k)).astype(np.float16))
    b = rng.integers(-3, 4, (n, k)).astype(np.float16)
    c = np.zeros((m, n), np.float32)
    pointers = [
        make_ptr(dtype, array.ctypes.data, cute.AddressSpace.gmem, assumed_align=4)
        for dtype, array in ((cutlass.Float16, a), (cutlass.Float16, b), (cutlass.Float32, c))
    ]
    for p, array in zip(pointers, (a, b, c), strict=True):
        assert p.dtype is not None and array.ctypes.data % 4 == 0
    keep = [from_dlpack(x) for x in (b, c)]
    from_raw_pointers(*pointers, m, n, k)
    assert (c == a.astype(np.float32) @ b.astype(np.float32).T).all() and len(keep) == 2


def test_pointers_of_ctypes_memory():
    memory = (ctypes.c_float * 4)(1, 2, 3, 4)

    @cute.jit
    def double(p: cute.Pointer, n: cutlass.Int32):
        x = cute.make_tensor(p, cute.make_layout(n))
        for i in range(n):
            x[i] = x[i] * 2

    double(make_ptr(cutlass.Float32, ctypes.addressof(memory), cute.AddressSpace.gmem), 4)
    assert list(memory) == [2, 4, 6, 8]


def test_a_pointers_memory_chooses_code(capfd):
    @cute.jit
    def create_tensor_from_ptr(ptr: cute.Pointer):
        tensor = cute.make_tensor(ptr, cute.make_layout((2, 3), stride=(3, 1)))
        if ptr.memspace == cute.runtime.AddressSpace.generic:
            cute.printf("generic tensor")
            tensor.fill(1)
            cute.print_tensor(tensor)
        elif ptr.memspace == cute.runtime.AddressSpace.gmem:
            cute.printf("gmem tensor")

    a = torch.zeros(2, 3)
    create_tensor_from_ptr(make_ptr(cutlass.Float32, a.data_ptr(), cute.AddressSpace.generic, assumed_align=4))
    create_tensor_from_ptr(make_ptr(cutlass.Float32, a.data_ptr(), cute.AddressSpace.gmem))
    assert a.sum() == 6 and capfd.readouterr().out == (
        "generic tensor\n"
        f"tensor(raw_ptr(0x{a.data_ptr():016x}: f32, generic, align<4>) o (2,3):(3,1), data=\n"
        "       [[1.000000, 1.000000, 1.000000],\n        [1.000000, 1.000000, 1.000000]])\ngmem tensor\n"
    )
