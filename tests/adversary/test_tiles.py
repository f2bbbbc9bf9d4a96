"""Copies, tiles, atoms and TensorSSA that do not fit together; loops that never end."""

from __future__ import annotations

import os
import signal
import threading

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.cute.nvgpu import common, cpasync, warp
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ConstraintError

F16, F32, I32 = cutlass.Float16, cutlass.Float32, cutlass.Int32


def tensor(*shape, dtype=np.float32):
    return from_dlpack(np.zeros(shape, dtype))


def copy_atom(dtype=F32, bits=128):
    return cute.make_copy_atom(common.CopyUniversalOp(), dtype, num_bits_per_copy=bits)


COPIES = [
    (lambda x, y: cute.autovec_copy(x, y), (4, 8), np.float32, r"\(8,8\):\(8,1\).*\(4,8\):\(8,1\).*differ in size"),
    (lambda x, y: cute.basic_copy(x, y), (4, 8), np.float32, "differ in size"),
    (lambda x, y: cute.autovec_copy(x, y), (8, 8), np.float16, r"without converting.*\.to\(Float16\)"),
    (lambda x, y: cute.copy(copy_atom(), x, y), (4, 8), np.float32, "partition"),
    (lambda x, y: cute.copy(copy_atom(F16), x, y), (8, 8), np.float16, "without converting"),
    (lambda x, y: cute.copy(copy_atom(bits=48), x, y), (8, 8), np.float32, "not a multiple of the 32 bits"),
    (lambda x, y: cute.copy(copy_atom(bits=1024), x, y), (8, 8), np.float32, "not 1024"),
    (lambda x, y: cute.copy(x, y), (8, 8), np.float32, "missing 1 required positional argument: 'dst'"),
    (lambda x, y: cute.copy(None, x, y), (8, 8), np.float32, "takes a copy atom first"),
]


@pytest.mark.parametrize(("copy", "shape", "dtype", "match"), COPIES)
def test_copies(run, refused, copy, shape, dtype, match):
    @cute.kernel
    def body(x: cute.Tensor, y: cute.Tensor):
        copy(x, y)

    text = refused(match, lambda: run(body, tensor(8, 8), tensor(*shape, dtype=dtype)))
    assert __file__ in text


TILES = [
    (lambda x: cute.local_tile(x, (4, 4, 4), (0, 0, 0)), "more modes"),
    (lambda x: cute.local_tile(x, "a", (5, 0)), "tiler"),
    (lambda x: cute.zipped_divide(x, (0, 3)), "zero"),
    (lambda x: cute.composition(x, cute.make_layout((3, 5), stride=(2, 7))), "divisib"),
    (lambda x: cute.make_layout((4.0, 2)), "neither an int nor"),
    (lambda x: cute.make_swizzle(3, 3, 1), "Sw<3,3,1>"),
    (lambda x: cute.recast_tensor(x[None, 0], cutlass.Float64), "aligned"),
    (
        lambda x: cute.copy(
            cute.make_copy_atom(cpasync.CopyG2SOp(), F32, num_bits_per_copy=128), x[0, None], x[1, None]
        ),
        "cp.async|CP_ASYNC",
    ),
    (lambda x: warp.MmaF16BF16Op(F16, F32, (16, 8, 7)), "there are: 16x8x16"),
    (lambda x: warp.MmaF16BF16Op(F32, F32, (16, 8, 16)), "must be Float16 or BFloat16"),
    (lambda x: cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 5), F16), "1, 2 or 4 matrices"),
    (
        lambda x: cute.make_tiled_mma(
            warp.MmaF16BF16Op(F16, F32, (16, 8, 16)), cute.make_layout((2, 2, 1)), permutation_mnk=(17, 8, 16)
        ),
        "17 along M is not a multiple of the 32",
    ),
    (lambda x: cute.gemm(cute.make_tiled_mma(warp.MmaF16BF16Op(F16, F32, (16, 8, 16))), x, x, x, x), "registers"),
    (lambda x: x.load().reduce("sum", 0.0, 0), "ADD, MUL, MAX, MIN"),
    (lambda x: x.load().reduce(cute.ReductionOp.ADD, 0.0, reduction_profile=(None, None, 1)), "profile"),
    (lambda x: x.load()[9, 9], "outside the shape"),
    (lambda x: x.load().to(float), "numeric classes"),
    (lambda x: cute.where(x[0] > 0, "a", 1), "no number"),
    (lambda x: cute.arch.barrier(barrier_id=17, number_of_threads=64), "ids are 0 to 15"),
    (lambda x: cute.arch.barrier(barrier_id=1, number_of_threads=33), "multiple of 32"),
]


@pytest.mark.parametrize(("build", "match"), TILES)
def test_tiles_and_atoms(run, refused, build, match):
    @cute.kernel
    def body(x: cute.Tensor):
        build(x)

    assert __file__ in refused(match, lambda: run(body, tensor(8, 8)))


def test_a_tile_that_the_tensor_does_not_fill(run, refused):
    @cute.kernel
    def body(x: cute.Tensor):
        mma = cute.make_tiled_mma(warp.MmaF16BF16Op(F16, F32, (16, 8, 16)), cute.make_layout((2, 2, 1)))
        tidx, _, _ = cute.arch.thread_idx()
        thread = mma.get_slice(tidx)
        out = thread.partition_C(x)
        fragment = thread.make_fragment_C(out)
        fragment.fill(1.0)
        cute.autovec_copy(fragment, out)

    refused("out of bounds", lambda: run(body, tensor(8, 8), block=128), "cute.autovec_copy(fragment, out)")


def test_registers_out_of_range(run, refused):
    @cute.kernel
    def body(x: cute.Tensor):
        tidx, _, _ = cute.arch.thread_idx()
        fragment = cute.make_rmem_tensor(4, F32)
        fragment.fill(1.0)
        x[0] = fragment[tidx]

    @cute.kernel
    def dynamic(x: cute.Tensor):
        cute.make_rmem_tensor(x.shape, F32)

    refused("register 4 of a fragment of 4", lambda: run(body, tensor(8), block=8), "x[0] = fragment[tidx]")
    refused("static layout", lambda: run(dynamic, np.zeros(8, np.float32)), "cute.make_rmem_tensor(x.shape, F32)")


def test_threads_that_wait_for_one_another(run, refused):
    @cute.kernel
    def body(x: cute.Tensor):
        if cute.arch.warp_idx() == 0:
            cute.arch.barrier(barrier_id=1, number_of_threads=64)

    refused("deadlock.*", lambda: run(body, tensor(8), block=64), "cute.arch.barrier(barrier_id=1")


def test_an_instruction_of_another_architecture(refused):
    @cute.kernel
    def body(x: cute.Tensor):
        smem = cutlass.utils.SmemAllocator().allocate_tensor(F16, cute.make_layout((8, 8)), 16)
        fragment = cute.make_rmem_tensor(2, F16)
        fragment.fill(1.0)
        tidx, _, _ = cute.arch.thread_idx()
        row = cute.make_tensor(smem.iterator + tidx % 8 * 8, cute.make_layout(8))
        cute.copy(cute.make_copy_atom(warp.StMatrix8x8x16bOp(False, 1), F16), fragment, row)

    @cute.jit
    def host(x: cute.Tensor):
        body(x).launch(grid=1, block=32)

    from tilewright import cuda

    kernel = cute.compile(host, tensor(8)).kernels[0]
    refused("sm_90", lambda: cuda.compile(kernel, arch="sm_80"))


def test_compile_options(refused):
    @cute.jit
    def host(n: I32):
        return n

    for options in ("--opt-level 7", "--opt-level", "--nope", "'", "opt-level 2"):
        refused("option|opt-level|quotation", lambda options=options: cute.compile(host, 1, options=options))
    refused("takes options such as", lambda: cute.compile[3](host, 1))


def spin(x):
    @cute.kernel
    def endless(x: cute.Tensor):
        while x[0] < 1.0:
            x[1] = x[1] + 1

    @cute.kernel
    def long(x: cute.Tensor):
        for _ in range((1 << 31) - 1):
            x[1] = x[1] + 1

    @cute.jit
    def on_the_host(n: I32):
        total = I32(0)
        while n > total % 2:  # what it waits for changes in each turn
            total = total + 1
        return total

    @cute.jit
    def launch(x: cute.Tensor, which: cutlass.Constexpr):
        (endless, long)[which](x).launch(grid=1, block=1)

    return [lambda: launch(x, 0), lambda: launch(x, 1), lambda: on_the_host(3)]


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals reach the main thread")
@pytest.mark.parametrize("which", range(3), ids=["while", "for", "host"])
def test_long_loops_can_be_interrupted(run, which):
    # A shell that starts the tests in the background has them ignore the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    @cute.kernel
    def after(x: cute.Tensor):
        x[0] = 3.0

    call, over = spin(np.zeros(4, np.float32))[which], threading.Event()

    def interrupt() -> None:
        # Again and again: Python drops an exception that a signal raises inside a destructor.
        pause = 0.4
        while not over.wait(pause):
            os.kill(os.getpid(), signal.SIGINT)
            pause = 1.5

    timer = threading.Thread(target=interrupt, daemon=True)
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        try:
            call()
        finally:
            over.set()
            timer.join()
            signal.signal(signal.SIGINT, before)
    assert run(after, np.zeros(1, np.float32))[0] == 3


def test_constraint_errors_are_value_errors():
    with pytest.raises(ValueError, match="1, 2 or 4"):
        cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 5), F16)
    assert issubclass(ConstraintError, ValueError)
