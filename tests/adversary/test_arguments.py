"""What is not an argument for a kernel, and launches that no machine takes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.cute.runtime import from_dlpack


@cute.kernel
def add_kernel(x: cute.Tensor, y: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    i = bidx * 32 + tidx
    if i < cute.size(x):
        y[i] = x[i] + 1


@cute.jit
def add(x: cute.Tensor, y: cute.Tensor):
    add_kernel(x, y).launch(grid=cute.ceil_div(cute.size(x), 32), block=32)


def floats(*shape):
    return np.zeros(shape, np.float32)


@pytest.mark.parametrize(
    ("value", "match"),
    [
        ([1, 2, 3], "expected a Tensor, got list"),
        ("abc", "expected a Tensor, got 'abc'"),
        (np.array([None, 1], object), "dtype object"),
        (np.array(["a"]), "dtype <U1"),
        (np.zeros(3, np.complex64), "dtype complex64"),
        (torch.zeros(3, dtype=torch.complex64), r"dtype torch\.complex64"),
        (np.zeros(3, np.longdouble), "dtype float128|dtype float96"),
        (np.zeros(3, [("a", "f4")]), "dtype"),
        (np.zeros(3, "M8[s]"), "dtype datetime64"),
        (np.zeros(3, ">f4"), "other order"),
        (np.zeros(3, [("a", "u1"), ("b", "f4")])["b"], "not multiples"),
        (torch.zeros(3, device="meta"), "on meta"),
        (torch.zeros(3).to_sparse(), "no strides"),
        (torch.nested.nested_tensor([torch.zeros(3)]), "a nested tensor"),
    ],
    ids=lambda v: "" if isinstance(v, str) else str(getattr(v, "dtype", type(v).__name__)),
)
def test_non_tensor_arguments_are_refused(refused, value, match):
    refused(match, lambda: add(value, floats(3)))


def test_none_for_a_tensor(refused):
    refused("NoneType", lambda: add(None, floats(3)), "launch(grid=cute.ceil_div(cute.size(x), 32)")


def test_views_of_every_kind():
    x = np.arange(6, dtype=np.float32)
    for source, target in (
        (x[::-1], floats(6)),
        (x, floats(6)[::-1]),
        (x[::2], floats(3)),
        (x[::2], floats(12)[::4]),
        (np.broadcast_to(x[3:4], (6,)), floats(6)),
        (x[:0], floats(0)),
        (x[:1], floats(1)),
    ):
        for convert in (from_dlpack, lambda a: a):
            target[...] = 0
            add(convert(source), convert(target))
            assert (target == source + 1).all()


def test_arrays_without_modes():
    x, y = np.array(3.0, np.float32), np.zeros((), np.float32)
    add(x, y)
    assert y == 4


@pytest.mark.parametrize(
    ("given", "match"),
    [
        (lambda f: f(floats(4)), "'y' is missing|missing a required argument: 'y'"),
        (lambda f: f(floats(4), floats(4), floats(4)), "too many positional|got 3"),
        (lambda f: f(floats(4), z=floats(4)), "'y'"),
        (lambda f: f(floats(4), y=floats(4), z=1), "'z'"),
    ],
)
def test_wrong_numbers_of_arguments(refused, given, match):
    refused(match, lambda: given(add))
    refused(match, lambda: given(cute.compile(add, floats(4), floats(4))))


def test_wrong_numbers_of_kernel_arguments(refused):
    @cute.jit
    def host(x: cute.Tensor):
        add_kernel(x).launch(grid=1, block=32)

    refused("missing a required argument: 'y'", lambda: host(floats(4)), "add_kernel(x).launch(grid=1, block=32)")


class Marked:
    @cute.jit
    def __call__(self, x: cute.Tensor, n: cutlass.Int32 = 4):
        x[0] = n


class Unmarked:
    def __call__(self, x: cute.Tensor):
        x[0] = 1.0


def compiled_for(x):
    return cute.compile(Marked(), x, 3)


def ints(n):
    return np.zeros(n, np.int32)


def test_compiled_for_others(refused):
    dynamic = cute.compile(add, floats(4), floats(4))
    refused("argument 'y': expected .*f32.*got .*f16", lambda: dynamic(floats(4), np.zeros(4, np.float16)))
    static = cute.compile(add, from_dlpack(floats(4)), from_dlpack(floats(4)))
    refused(
        r"argument 'x': expected .*\(4\):\(1\)>, got .*\(5\):\(1\)>",
        lambda: static(from_dlpack(floats(5)), from_dlpack(floats(5))),
    )


@pytest.mark.parametrize(
    ("value", "match"),
    [(1 << 40, "Int32"), (1.5, "Int32"), ("5", "expected a number"), (None, "NoneType"), (float("nan"), "Int32")],
)
def test_numbers_that_do_not_fit(refused, value, match):
    @cute.jit
    def increment(n: cutlass.Int32):
        return n + 1

    refused(match, lambda: increment(value))


def test_numbers_round_to_their_type():
    @cute.jit
    def same(x: cutlass.Float16, y: cutlass.Float32):
        return x, y, x + y

    x, y = float(np.float16(0.1)), float(np.float32(0.1))
    assert same(0.1, 0.1) == (x, y, float(np.float32(x) + np.float32(y)))


def test_floats_convert_to_integers_as_on_the_machine():
    @cute.jit
    def cut(x: cutlass.Float32):
        return cutlass.Int32(x), cutlass.Uint8(x)

    assert [cut(x) for x in (1e20, float("-inf"), float("nan"), -2.7, 300.0)] == [
        (2147483647, 255),
        (-2147483648, 0),
        (0, 0),
        (-2, 0),
        (300, 255),
    ]


def start(**options):
    @cute.kernel
    def body(x: cute.Tensor):
        x[0] = 1.0

    @cute.jit
    def host(x: cute.Tensor):
        body(x).launch(**options)

    x = floats(4)
    host(x)
    return x


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"grid": -1}, "extent of -1"),
        ({"grid": (1, 70000, 1)}, "limits"),
        ({"grid": (1 << 31, 1, 1)}, "limits"),
        ({"grid": (1, 1, 1, 1)}, "one to three"),
        ({"grid": 1.5}, "not an integer"),
        ({"grid": None}, "not an integer"),
        ({"block": 2000}, "2000"),
        ({"block": (32, 33, 1)}, "1056 threads"),
        ({"block": 0}, "extent of 0"),
        ({"block": (1, 1, 65)}, "limits"),
        ({"smem": 300000}, "300000 bytes"),
        ({"smem": -5}, "not a number of bytes"),
        ({"smem": "a"}, "not a number of bytes"),
        ({"stream": "x"}, "not a CUDA stream"),
        ({"min_blocks_per_mp": "a"}, "not a number of blocks"),
        ({"threads": 3}, "threads=3 is not known"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_launches_that_cannot_be(refused, options, match):
    refused(match, lambda: start(**options), "body(x).launch(**options)")


@pytest.mark.parametrize("options", [{"cluster": (3, 1, 1)}, {"grid": 32, "cluster": (32, 1, 1)}])
def test_clusters_that_cannot_be(refused, options):
    refused("cluster", lambda: start(**options))


@pytest.mark.parametrize("extent", [-1, 2000])
def test_run_time_blocks_that_cannot_be(refused, extent):
    @cute.kernel
    def body(x: cute.Tensor):
        x[0] = 1.0

    @cute.jit
    def host(x: cute.Tensor, n: cutlass.Int32):
        body(x).launch(grid=1, block=(n, 1, 1))

    refused(rf"block=\({extent}, 1, 1\)", lambda: host(floats(4), extent))


def test_an_empty_grid_does_nothing():
    assert not start(grid=0).any()


def test_a_kernel_that_is_never_launched(refused):
    @cute.jit
    def host(x: cute.Tensor):
        add_kernel(x, x)

    refused("called but never launched", lambda: host(floats(4)), "add_kernel(x, x)")


def test_types_of_other_libraries(refused):
    wanted = "a numeric type such as Float32 or Int8 is wanted, not torch.float16"
    refused(f"matrix: {wanted}", lambda: cutlass.torch.matrix(1, 4, 8, False, torch.float16))
    refused(f"dtype: {wanted}", lambda: cutlass.torch.dtype(torch.float16))
    refused(f"like: {wanted}", lambda: cutlass.torch.cute_tensor_like(torch.zeros(2, 2), torch.float16, True))
    space = cute.AddressSpace.gmem
    refused(f"make_ptr: {wanted}", lambda: cute.runtime.make_ptr(torch.float16, 64, space, assumed_align=16))
    refused("not 64", lambda: cute.runtime.make_ptr(64, cutlass.Float16, space))
    refused("give the address of the Tensor", lambda: cute.runtime.make_ptr(cutlass.Float32, torch.zeros(4), space))


def test_arguments_of_what_is_timed(refused):
    function, given = cute.compile(add, floats(4), floats(4)), (floats(4), floats(4))
    refused("JitArguments.*, not tuple", lambda: cute.testing.benchmark(function, kernel_arguments=given))
    refused("JitArguments.*, not tuple", lambda: cute.testing.benchmark(function, workspace_generator=lambda: given))
    refused("JitArguments.*, not tuple", lambda: cute.testing.tune(add, {"n": [1]}, kernel_arguments=given))
    refused("options is a text", lambda: cute.compile(add, floats(4), floats(4), options={"opt-level": 2}))


def test_a_kernel_is_no_table(refused):
    @cute.jit
    def host(x: cute.Tensor):
        add_kernel[1, 32](x, x)

    refused(r"launched by add_kernel\(arguments\).launch\(grid=", lambda: host(floats(4)), "add_kernel[1, 32](x, x)")


def test_results_that_are_no_numbers(refused):
    @cute.jit
    def give(x: cute.Tensor):
        return x

    @cute.kernel
    def body(x: cute.Tensor):
        return x[0]

    @cute.jit
    def host(x: cute.Tensor):
        body(x).launch(grid=1, block=1)

    refused("returns Tensor", lambda: give(floats(4)))
    refused("a kernel returns nothing", lambda: host(floats(4)))


def test_compile_refuses_kernels_classes_and_wrong_arguments(refused):
    refused("cannot be compiled alone", lambda: cute.compile(add_kernel, floats(4), floats(4)))
    refused("takes a @cute.jit function", lambda: cute.compile(None))
    refused(r"Marked'>: make an object of it, cute.compile\(Marked\(...\), ...\)", lambda: cute.compile(Marked))
    refused(r"mark Unmarked.__call__ with @cute.jit", lambda: cute.compile(Unmarked(), floats(4)))
    refused(r"Marked.__call__\(self, x, n=4\): missing", lambda: cute.compile(Marked()))
    refused(r"expected cute.Tensor of Float32, .*, got cute.Tensor of Int32", lambda: compiled_for(floats(4))(ints(4)))
    refused(r"expected a number \(Int32\), got '3'", lambda: cute.compile(Marked(), floats(4), 3)(floats(4), "3"))
    refused("can only be launched from", lambda: add_kernel(floats(4), floats(4)).launch(grid=1, block=1))
