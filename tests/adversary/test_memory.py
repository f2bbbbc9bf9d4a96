"""Indices, slices, values and memory that do not fit."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.cute.runtime import from_dlpack

F32, I32 = cutlass.Float32, cutlass.Int32


def floats(*shape):
    return np.zeros(shape, np.float32)


@cute.kernel
def one_too_far(x: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    x[tidx + 1] = 1.0


@pytest.mark.parametrize("convert", [from_dlpack, lambda x: x], ids=["static", "dynamic"])
def test_index_out_of_bounds(run, refused, convert):
    refused(
        r"(?s)store of f32 .* out of bounds: byte offset 32 in an array of 32 bytes.*thread \(7, 0, 0\)",
        lambda: run(one_too_far, convert(floats(8)), block=8),
        "x[tidx + 1] = 1.0",
    )


@pytest.mark.parametrize(("index", "offset"), [(-1, -4), (100, 400)])
def test_one_place_out_of_bounds(run, refused, index, offset):
    @cute.kernel
    def body(x: cute.Tensor):
        x[index] = 1.0

    refused(f"byte offset {offset} in an array of 32 bytes", lambda: run(body, floats(8)), "x[index] = 1.0")
    refused(f"the coordinate {index} is outside", lambda: run(body, from_dlpack(floats(8))), "x[index] = 1.0")


@pytest.mark.parametrize(
    ("coord", "match"),
    [
        ((0, 0, 0), "does not fit the shape"),
        ((None, 0, 0), "does not fit"),
        (1.5, "not a coordinate"),
        ("a", "not a coordinate"),
        ((slice(1, 2), 0), "slice"),
    ],
)
def test_wrong_coordinates_are_refused(run, refused, coord, match):
    @cute.kernel
    def body(x: cute.Tensor):
        return x[coord] and None

    refused(match, lambda: run(body, floats(8, 8)), "return x[coord]")


def test_slices_outside_of_their_tensor(run, refused):
    """An access would reach the next row, stage or tensor. A slice that nothing uses is allowed."""

    @cute.kernel
    def row(x: cute.Tensor):
        tile = cute.local_tile(x, (2, 4), (0, 0))
        x[0, None].store(tile[2, None].load())

    @cute.kernel
    def stage(x: cute.Tensor):
        stages = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout((4, 2)))
        cute.autovec_copy(x[0, None], stages[None, 2])

    @cute.kernel
    def number(x: cute.Tensor):
        x[0, 0] = x.load()[5, 0]

    @cute.kernel
    def unused(x: cute.Tensor):
        tiles = cute.zipped_divide(x, (2, 4))
        for k in cutlass.range_constexpr(2):
            following = tiles[(None, None), (k + 1, 0)]
            if cutlass.const_expr(k == 0):
                following.fill(7.0)

    x = from_dlpack(np.ones((4, 4), np.float32))
    refused(r"\(2,_\) is outside", lambda: run(row, x), "store(tile[2, None].load())")
    refused(r"\(_,2\) is outside", lambda: run(stage, x), "stages[None, 2])")
    refused(r"\(5,0\) is outside the shape \(4,4\)", lambda: run(number, x), "x.load()[5, 0]")
    np.testing.assert_array_equal(run(unused, x).numpy(), [[1] * 4] * 2 + [[7] * 4] * 2)


def test_tiles_and_slices_of_registers_outside_of_their_tensor(run, refused):
    """One error each, at the line that uses the elements; a tile that nothing uses is allowed."""

    @cute.kernel
    def tile(x: cute.Tensor):
        part = cute.local_tile(x, (2, 4), (2, 0))
        x[0, None].store(part[0, None].load())

    @cute.kernel
    def projected(x: cute.Tensor):
        part = cute.local_tile(x, (2, 9, 2), (1, 5, 2), proj=(1, None, 1))
        part.fill(1.0)

    @cute.kernel
    def fragment(x: cute.Tensor):
        values = cute.make_rmem_tensor((4, 3), cutlass.Float32)
        values.fill(1.0)
        x[0, None].store(values[None, 3].load())

    @cute.kernel
    def element(x: cute.Tensor):
        values = cute.make_rmem_tensor((4, 3), cutlass.Float32)
        values[None, 4][1] = 1.0

    @cute.kernel
    def inside(x: cute.Tensor):
        values = cute.make_rmem_tensor((4, 3), cutlass.Float32)
        values.fill(7.0)
        for k in cutlass.range_constexpr(3):
            part, following = cute.local_tile(x, (2, 4), (k, 0)), values[None, k + 1]
            if cutlass.const_expr(k == 1):
                part[0, None].store(following.load())

    x = from_dlpack(np.ones((4, 4), np.float32))
    refused(r"the tile \(2,0\) is outside .* has \(2,1\) tiles", lambda: run(tile, x), "store(part[0, None].load())")
    refused(r"the tile \(1,2\) is outside .* has \(2,2\) tiles", lambda: run(projected, x), "part.fill(1.0)")
    refused(r"\(_,3\) is outside", lambda: run(fragment, x), "store(values[None, 3].load())")
    refused(r"\(_,4\) is outside", lambda: run(element, x), "values[None, 4][1] = 1.0")
    np.testing.assert_array_equal(run(inside, x).numpy(), [[1] * 4] * 2 + [[7] * 4] + [[1] * 4])


@pytest.mark.parametrize("index", [16, -1, (4, 0), (0, 4), (4, None)])
def test_elements_of_the_host_outside_of_their_tensor(refused, index):
    x = from_dlpack(np.zeros((4, 4), np.float32))
    refused("is outside", lambda: x[index])
    refused("is outside", lambda: x.__setitem__(index, 1.0))
    assert not x.numpy().any()


@pytest.mark.parametrize("value", ["hello", None, [1.0]])
def test_values_that_are_no_numbers(run, refused, value):
    @cute.kernel
    def body(x: cute.Tensor):
        x[0] = value

    refused("takes a number", lambda: run(body, floats(8)), "x[0] = value")


def test_filling_a_dynamic_tensor(run, refused):
    @cute.kernel
    def body(x: cute.Tensor):
        x[None] = 1.0

    refused(r"needs a static shape; this tensor's is \(\?\)", lambda: run(body, floats(8)), "x[None] = 1.0")


def test_stores_of_another_type_or_shape(run, refused):
    @cute.kernel
    def store(x: cute.Tensor, y: cute.Tensor):
        x.store(y.load())

    @cute.kernel
    def add(x: cute.Tensor, y: cute.Tensor):
        x.store(x.load() + y.load())

    x = from_dlpack(floats(8))
    refused(r"convert it with \.to\(Float32\)", lambda: run(store, x, from_dlpack(np.zeros(8, np.int8))), "x.store(y")
    refused(r"\(8\) and \(4\) do not broadcast", lambda: run(add, x, from_dlpack(floats(4))), "x.store(x.load() + y")


def test_a_read_only_array_is_not_written(run, refused):
    @cute.kernel
    def copy(y: cute.Tensor, x: cute.Tensor):
        tidx, _, _ = cute.arch.thread_idx()
        y[tidx] = x[tidx] + 1

    fixed, free = floats(4), floats(4)
    fixed.flags.writeable = False
    assert run(copy, free, fixed, block=4).tolist() == [1, 1, 1, 1]
    refused("read-only", lambda: run(copy, fixed, free, block=4), "y[tidx] = x[tidx] + 1")
    refused("read-only", lambda: run(copy, np.broadcast_to(floats(1), (4,)), free, block=4))
    assert not fixed.any()
    seen = fixed.view()
    assert run(copy, free, seen, block=4).tolist() == [1, 1, 1, 1]


def test_a_barrier_that_some_threads_miss(run, refused):
    @cute.kernel
    def body(x: cute.Tensor):
        tidx, _, _ = cute.arch.thread_idx()
        if tidx < 13:
            cute.arch.sync_threads()
        x[tidx] = 1.0

    refused("only 13 of the warp's threads", lambda: run(body, floats(64), block=64), "cute.arch.sync_threads()")


def test_too_much_shared_memory(run, refused):
    @cute.kernel
    def body(x: cute.Tensor):
        tile = cutlass.utils.SmemAllocator().allocate_tensor(F32, cute.make_layout(100000))
        x[0] = tile[0]

    refused("400000 bytes of shared memory", lambda: run(body, floats(4)))


def test_division_by_zero(run, refused):
    @cute.kernel
    def at_run_time(x: cute.Tensor):
        tidx, _, _ = cute.arch.thread_idx()
        x[0] = 5 // tidx

    @cute.kernel
    def while_staging(x: cute.Tensor):
        x[0] = I32(5) // 0

    @cute.jit
    def on_the_host(a: I32, b: I32):
        return a // b, a % b

    refused("division by zero", lambda: run(at_run_time, floats(4), block=2), "x[0] = 5 // tidx")
    refused("division by zero", lambda: run(while_staging, floats(4)), "x[0] = I32(5) // 0")
    refused("division by zero", lambda: on_the_host(1, 0), "return a // b, a % b")
    assert on_the_host(-7, 2) == (-4, 1)


def test_an_assertion_of_the_kernel(run, refused):
    @cute.kernel
    def body(x: cute.Tensor):
        tidx, _, _ = cute.arch.thread_idx()
        assert x[tidx] > 5, "x is small"

    refused("assertion failed: x is small", lambda: run(body, floats(4), block=4), 'assert x[tidx] > 5, "x is small"')


def test_offsets_beyond_32_bits_are_caught(run, refused):
    @cute.kernel
    def body(x: cute.Tensor, n: I32):
        x[n + n] = 1.0

    refused("out of bounds", lambda: run(body, floats(4), I32(1 << 30)), "x[n + n] = 1.0")
