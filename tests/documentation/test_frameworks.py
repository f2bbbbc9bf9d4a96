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
    assert b.element_type is cutlass.Float32 and b.memspace == cute.AddressSpace.gmem
    assert int(b.iterator.toint()) == a.data_ptr() if hasattr(b.iterator, "toint") else True
    assert str(cute.runtime.from_dlpack(a, assumed_align=16).layout) == "(30,20):(20,1)"


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


def test_what_mark_compact_shape_dynamic_refuses():
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
