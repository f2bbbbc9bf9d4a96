"""Functions compiled ahead of the data and called with arrays of any framework: fake tensors and streams, TVM FFI."""

from __future__ import annotations

import ctypes
import warnings
from typing import Any, NamedTuple

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
def test_tvm_ffi_calls_omit_stream_and_none_arguments(bias: bool) -> None:
    run = compiled(bias)
    check(run, bias)
    a, b, c = arrays(3, 8)
    if not bias:
        run(a, b, c, 1.0, None)
    with pytest.raises(ArgumentError, match="compiled to take|is missing"):
        run(a, b, c)
    with pytest.raises(ArgumentError, match="compiled to take 5 arguments"):
        run(a, b, c, 1.0, None, None)
    with pytest.raises(ArgumentError, match="6 is not a multiple of 4"):
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


class Device(NamedTuple):
    a: cute.Tensor
    b: cute.Tensor
    c: cutlass.Float32 = cutlass.Float32(1)


class Host(NamedTuple):
    a: Any
    b: Any
    c: float = 1


@cute.kernel
def one_kernel(a: cute.Tensor, b: cute.Tensor, c: cutlass.Float32) -> None:
    t, _, _ = cute.arch.thread_idx()
    if t < a.shape[0]:
        b[t] = a[t] + c


@cute.jit
def by_tuple(given: tuple[cute.Tensor, cute.Tensor, cutlass.Float32]) -> None:
    one_kernel(*given).launch(grid=(1, 1, 1), block=(32, 1, 1))


@cute.jit
def by_name(given: Device) -> None:
    one_kernel(given.a, given.b, given.c).launch(grid=(1, 1, 1), block=(32, 1, 1))


@cute.jit
def by_position(a: cute.Tensor, b: cute.Tensor, /, c: cutlass.Float32 = cutlass.Float32(1)) -> None:  # noqa: B008 - immutable
    one_kernel(a, b, c).launch(grid=(1, 1, 1), block=(32, 1, 1))


def fakes(divisor: int = 1) -> tuple[Any, Any]:
    n = cute.sym_int(divisibility=divisor)
    space = cute.AddressSpace.gmem
    a, b = (make_fake_compact_tensor(cute.Float32, (n,), memspace=space, assumed_align=16) for _ in "ab")
    return a, b


def test_tuples_named_tuples_and_defaults() -> None:
    a, b = np.arange(10, dtype=np.float32), np.zeros(10, np.float32)
    for run, args, expected in (
        (cute.compile(by_tuple, (*fakes(), cute.Float32(4))), ((a, b, 5),), a + 5),
        (cute.compile(by_name, Device(*fakes())), (Host(a, b),), a + 1),
        (cute.compile(by_name, Device(*fakes())), ((a, b, 3.0),), a + 3),
        (cute.compile(by_position, *fakes()), (a, b), a + 1),
        (cute.compile(by_position, *fakes()), (a, b, 7), a + 7),
    ):
        b[:] = 0
        run(*args)
        np.testing.assert_array_equal(b, expected)
    cute.compile(by_position, *fakes())(a, b, c=2)
    np.testing.assert_array_equal(b, a + 2)
    with pytest.raises(ArgumentError, match="argument 'given': expected"):
        cute.compile(by_tuple, (*fakes(), cute.Float32(4)))((a, b))


def test_promises_of_fake_tensors_are_checked() -> None:
    run = cute.compile(by_position, *fakes(16), options="--enable-tvm-ffi")
    whole = np.zeros(132, np.float32)
    start = -(whole.ctypes.data // 4) % 4
    a, b = whole[start : start + 128], np.zeros(128, np.float32)
    with pytest.raises(TypeError, match="argument 'b': expected"):
        run(a, 1)
    with pytest.raises(ValueError, match="'b_shape.*': 112.*'a_shape.*' is 128|one symbol"):
        run(a, b[:112])
    with pytest.raises(ValueError, match="126 is not a multiple of 16"):
        run(a[:126], b[:126])
    with pytest.raises(ValueError, match="multiple of 16 bytes"):
        run(whole[start + 1 : start + 129], b)
    run(a, b)
    assert (b[:32] == 1).all()
    pair = cute.compile(by_tuple, (*fakes(), cute.Float32(4)))
    with pytest.raises(ValueError, match="one symbol"):
        pair((a, b[:64], 1))


def test_addresses_of_other_kinds() -> None:
    class Opaque:
        def __init__(self, address: int) -> None:
            self.address = address

        def __tvm_ffi_opaque_ptr__(self) -> int:
            return self.address

    @cute.kernel
    def kernel(x: cute.Tensor) -> None:
        t, _, _ = cute.arch.thread_idx()
        x[t] = t

    @cute.jit
    def fill(p: cute.Pointer) -> None:
        kernel(cute.make_tensor(p, cute.make_layout(8))).launch(grid=(1, 1, 1), block=(8, 1, 1))

    run = cute.compile(fill, make_ptr(cutlass.Int32, 16, cute.AddressSpace.gmem, 4))
    for kind in (ctypes.c_void_p, Opaque):
        memory = np.zeros(8, np.int32)
        run(kind(memory.ctypes.data))
        assert memory.tolist() == list(range(8))
    with pytest.raises(TypeError, match="argument 'p': expected"):
        run("here")
    with pytest.raises(ArgumentError, match="multiple of 4 bytes"):
        run(ctypes.c_void_p(memory.ctypes.data + 2))


def test_a_launch_that_no_machine_can_do_fails_at_the_call() -> None:
    @cute.jit
    def wrong(a: cute.Tensor, b: cute.Tensor) -> None:
        one_kernel(a, b, 1.0).launch(grid=(1, 1, 1), block=(4096, 1, 1))

    run = cute.compile(wrong, *fakes(), options="--enable-tvm-ffi")
    for _ in range(2):
        with pytest.raises(RuntimeError, match="4096 threads; a block holds 1024"):
            run(np.zeros(4, np.float32), np.zeros(4, np.float32))
    with pytest.raises(RuntimeError, match="4096 threads; a block holds 1024"):
        cute.compile(wrong, *fakes())
