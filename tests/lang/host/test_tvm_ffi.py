"""Functions compiled ahead of the data and called with arrays of any framework: fake tensors and streams, TVM FFI."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute
from tilewright.cute.runtime import from_dlpack, make_fake_compact_tensor, make_fake_stream, make_ptr
from tilewright.errors import ArgumentError


@cute.kernel
def add_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, alpha: cutlass.Float32, bias) -> None:
    t, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    for j in range(a.shape[1]):
        value = a[block, j] + alpha * b[block, j]
        if cutlass.const_expr(bias is not None):
            value += bias[j]
        if t == 0:
            c[block, j] = value


@cute.jit
def add(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, alpha: cutlass.Float32, bias, stream) -> None:
    add_kernel(a, b, c, alpha, bias).launch(grid=(a.shape[0], 1, 1), block=(32, 1, 1), stream=stream)


def compiled(bias: bool) -> Any:
    m, n = cute.sym_int(), cute.sym_int(divisibility=4)
    fakes = [make_fake_compact_tensor(cutlass.Float32, (m, n), stride_order=(1, 0), assumed_align=16) for _ in range(3)]
    extra = make_fake_compact_tensor(cutlass.Float32, (n,), assumed_align=4) if bias else None
    stream = make_fake_stream(use_tvm_ffi_env_stream=True)
    return cute.compile(add, *fakes, cutlass.Float32(1), extra, stream, options="--enable-tvm-ffi")


def arrays(m: int, n: int) -> list[np.ndarray]:
    a = np.arange(m * n, dtype=np.float32).reshape(m, n)
    return [a, a[::-1].copy(), np.zeros((m, n), np.float32)]


def check(run: Any, bias: bool, as_array: Any = lambda x: x, shapes: Any = ((3, 8), (5, 4))) -> None:
    for m, n in shapes:
        a, b, c = arrays(m, n)
        extra = np.arange(n, dtype=np.float32)
        run(*map(as_array, (a, b, c)), 2.0, *([as_array(extra)] if bias else []))
        np.testing.assert_array_equal(c, a + 2 * b + (extra if bias else 0))


@pytest.mark.parametrize("bias", [True, False])
def test_calls_pass_neither_the_stream_nor_what_was_none(bias: bool) -> None:
    run = compiled(bias)
    check(run, bias)
    a, b, c = arrays(3, 8)
    if not bias:
        run(a, b, c, 1.0, None)
    with pytest.raises(ArgumentError, match="compiled to take|is missing"):
        run(a, b, c)
    with pytest.raises(ArgumentError, match="compiled to take 5 arguments"):
        run(a, b, c, 1.0, None, None)
    with pytest.raises(ArgumentError, match="divisors"):
        run(*arrays(3, 6), 1.0, *([a[0]] if bias else []))


def test_torch_tensors() -> None:
    torch = pytest.importorskip("torch")
    check(compiled(True), True, torch.from_numpy)


def test_through_tvm_ffi() -> None:
    tvm_ffi: Any = pytest.importorskip("tvm_ffi")
    for bias in (True, False):
        run = compiled(bias)
        check(run, bias, tvm_ffi.from_dlpack)
        check(tvm_ffi.convert(run), bias, tvm_ffi.from_dlpack)
        name = f"tilewright.test.add{bias}"
        tvm_ffi.register_global_func(name, run, override=True)
        check(tvm_ffi.get_global_func(name), bias, tvm_ffi.from_dlpack)
    with pytest.raises(Exception, match="argument 'a': expected"):
        tvm_ffi.convert(compiled(False))(tvm_ffi.from_dlpack(np.zeros(3, np.float32)), 1, 2, 3.0)


def test_pointers_to_compile_with() -> None:
    @cute.jit
    def fill(p: cute.Pointer, n: cutlass.Int32, stream) -> None:
        fill_kernel(cute.make_tensor(p, cute.make_layout(n))).launch(grid=(1, 1, 1), block=(n, 1, 1), stream=stream)

    @cute.kernel
    def fill_kernel(x: cute.Tensor) -> None:
        t, _, _ = cute.arch.thread_idx()
        x[t] = t

    fake = make_ptr(cutlass.Int32, 16, cute.AddressSpace.gmem, 16)
    run = cute.compile(fill, fake, cutlass.Int32(1), make_fake_stream(use_tvm_ffi_env_stream=True))
    memory = np.zeros(12, np.int32)
    start = -(memory.ctypes.data // 4) % 4
    run(make_ptr(cutlass.Int32, memory[start:].ctypes.data, cute.AddressSpace.gmem, 16), 8)
    assert memory[start : start + 8].tolist() == list(range(8))


def test_fake_tensors_of_pytorch_are_compiled_with_and_have_no_memory() -> None:
    torch = pytest.importorskip("torch")
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        fakes = [torch.empty(4, 8) for _ in range(3)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        static = [from_dlpack(x) for x in fakes]
        run = cute.compile(add, *fakes, 1.0, None, make_fake_stream())
        fixed = cute.compile(add, *static, 1.0, None, make_fake_stream())
    assert str(static[0].layout) == "(4,8):(8,1)"
    a, b, c = map(torch.from_numpy, arrays(4, 8))
    for compiled_function in (run, fixed):
        c.zero_()
        compiled_function(a, b, c, 2.0, None, cutlass.cuda.default_stream())
        assert (c == a + 2 * b).all()
    check(lambda *x: run(*x, None, 0), False)

