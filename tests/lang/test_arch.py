"""cute.arch on the simulator: indices, warp exchange, atomics, barriers, single instructions."""

from __future__ import annotations

from types import FunctionType

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ConstraintError

arch = cute.arch


def run(body, *out, grid=(1, 1, 1), block=(32, 1, 1)):
    """``body(thread, *tensors)`` in every thread; the tensors are over the arrays ``out``."""

    @cute.kernel
    def kernel(tensors: list):
        t, _, _ = arch.thread_idx()
        body(t, *tensors)

    @cute.jit
    def host(tensors: list):
        kernel(tensors).launch(grid=grid, block=block)

    host([from_dlpack(x) for x in out])
    return out if len(out) > 1 else out[0]


def ints(n: int) -> np.ndarray:
    return np.zeros(n, np.int32)


def test_indices() -> None:
    def body(_, out):
        x, y, z = arch.thread_idx()
        bx, by, bz = arch.block_idx()
        dx, dy, _ = arch.block_dim()
        gx, gy, _ = arch.grid_dim()
        thread = x + dx * (y + dy * z)
        block = bx + gx * (by + gy * bz)
        out[block, thread] = arch.warp_idx() * 100 + arch.lane_idx()

    out = run(body, np.zeros((6, 64), np.int32), grid=(3, 2, 1), block=(8, 4, 2))
    np.testing.assert_array_equal(out, np.tile(np.arange(64) // 32 * 100 + np.arange(64) % 32, (6, 1)))


@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.float64, np.float16, np.int8])
def test_shuffles(dtype) -> None:
    kind = from_dlpack(np.zeros(1, dtype)).element_type

    def body(t, out):
        x = kind(t)
        out[0, t] = arch.shuffle_sync(x, 5)
        out[1, t] = arch.shuffle_sync_up(x, 3)
        out[2, t] = arch.shuffle_sync_down(x, 3)
        out[3, t] = arch.shuffle_sync_bfly(x, 9)

    lane = np.arange(32)
    want = [np.full(32, 5), np.where(lane < 3, lane, lane - 3), np.where(lane > 28, lane, lane + 3), lane ^ 9]
    np.testing.assert_array_equal(run(body, np.zeros((4, 32), dtype)), np.array(want).astype(dtype))


def test_shuffle_of_vectors() -> None:
    def body(t, out):
        x = cute.full((2,), t, cutlass.Int32) * cute.full((2,), 2, cutlass.Int32)
        out[t, None].store(arch.shuffle_sync_bfly(x, 1))

    np.testing.assert_array_equal(run(body, np.zeros((32, 2), np.int32))[:, 1], 2 * (np.arange(32) ^ 1))


def test_reductions_and_votes() -> None:
    def body(t, out):
        out[0, t] = arch.warp_reduction_sum(t)
        out[1, t] = arch.warp_reduction_max(t, threads_in_group=8)
        out[2, t] = arch.vote_ballot_sync(t % 3 == 0)
        out[3, t] = cutlass.Int32(arch.vote_any_sync(t == 40)) + 2 * cutlass.Int32(arch.vote_all_sync(t < 40))
        out[4, t] = arch.popc(arch.vote_ballot_sync(t % 3 == 0))
        out[5, t] = arch.make_warp_uniform(arch.warp_idx() + 1)
        out[6, t] = cutlass.Int32(arch.vote_uni_sync(t > 3))

    out = run(body, np.zeros((7, 32), np.int32))
    ballot = sum(1 << i for i in range(0, 32, 3))
    want = [[496] * 32, [i // 8 * 8 + 7 for i in range(32)], [ballot] * 32, [2] * 32, [11] * 32, [1] * 32, [0] * 32]
    np.testing.assert_array_equal(out, np.array(want, np.int32))


def test_elect_one() -> None:
    def body(t, out):
        with arch.elect_one():
            arch.atomic_add(out.iterator, 1)

    assert run(body, ints(1), block=(128, 1, 1))[0] == 4


def test_atomics() -> None:
    def body(t, out, floats):
        arch.atomic_add(out.iterator, t)
        arch.atomic_max(out.iterator + 1, t)
        arch.atomic_min(out.iterator + 2, -t)
        arch.atomic_or(out.iterator + 3, 1 << (t % 8))
        arch.atomic_exch((out.iterator + 4).llvm_ptr, 9)
        arch.atomic_cas(out.iterator + 5, cmp=t, val=t + 1)
        arch.atomic_add(floats.iterator, 0.5)

    out, floats = run(body, ints(8), np.zeros(1, np.float32))
    assert out.tolist() == [496, 31, -31, 255, 9, 32, 0, 0] and floats[0] == 16


def test_barriers_and_ordered_access() -> None:
    @cute.jit
    def body(t, out):
        smem = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Int32, cute.make_layout(64))
        smem[t] = t
        arch.barrier(barrier_id=1, number_of_threads=64)
        out[t] = smem[63 - t]
        arch.sync_warp()
        arch.sync_threads()
        arch.threadfence()
        arch.fence_acq_rel_cta()
        if t == 0:
            arch.store(out.iterator, arch.load(out.iterator + 1, sem="acquire"), sem="release")

    out = run(body, ints(64), block=(64, 1, 1))
    assert out.tolist() == [62, *range(62, -1, -1)]


def test_single_instructions() -> None:
    def body(t, out, floats):
        out[t, 0] = arch.popc(t)
        out[t, 1] = arch.prmt(t + 0x01020380, 0x0A0B0C0D, 0x7081)
        floats[t, 0] = arch.fmax(cutlass.Float32(t), 3.0) + arch.fmin(cutlass.Float32(t), 3.0)
        floats[t, 1] = arch.rcp_approx(cutlass.Float32(t + 1))
        floats[t, 2] = arch.exp2(cutlass.Float32(t) * 0.25)

    out, floats = run(body, np.zeros((32, 2), np.int32), np.zeros((32, 3), np.float32))
    t = np.arange(32)
    np.testing.assert_array_equal(out[:, 0], [int(i).bit_count() for i in t])
    low = (0x80 + t) & 0xFF
    np.testing.assert_array_equal(out[:, 1].view(np.uint32), 0x0A00FF03 + low * 0 + (low << 16))
    np.testing.assert_allclose(floats, np.stack([t + 3, 1 / (t + 1), 2 ** (t / 4)], 1), rtol=1e-5)


def test_wrong_use(stage) -> None:
    with pytest.raises(ConstraintError, match="power of two up to 32"):
        arch.warp_reduction_sum(cutlass.Float32(stage.x), threads_in_group=3)
    with pytest.raises(ConstraintError, match="a pointer"):
        arch.atomic_add(3, 4)
    with pytest.raises(ConstraintError, match=r"not a number \(Int32\): tensor.iterator \+ i points to the element"):
        arch.atomic_add(cutlass.Int32(stage.x), 4)
    with pytest.raises(ConstraintError, match="number_of_threads"):
        arch.barrier_arrive(barrier_id=1)
    for shuffle in (arch.shuffle_sync_down, arch.shuffle_sync_up, arch.shuffle_sync_bfly, arch.shuffle_sync):
        for offset in (32, -1, cutlass.Int32(40)):  # the hardware would take the low five bits
            with pytest.raises(ConstraintError, match="outside a warp: take 0 to 31"):
                shuffle(cutlass.Float32(1.0), offset)


def test_atomics_without_readers_give_nothing() -> None:
    @cute.kernel
    def kernel(x: cute.Tensor):
        arch.atomic_add(x.iterator, 1)
        x[1] = arch.atomic_add(x.iterator + 2, 1)

    @cute.jit
    def host(x: cute.Tensor):
        kernel(x).launch(grid=(1, 1, 1), block=(1, 1, 1))

    (function,) = cute.compile(host, from_dlpack(ints(4))).kernels
    calls = [op for op in function.walk() if op.opcode == "call"]
    assert [len(op.results) for op in calls] == [0, 1]


def test_every_function_of_the_device_has_an_example_that_runs() -> None:
    """Doctest runs them; the two of bulk groups need a TMA store, which docs and tests of TMA show."""
    functions = {name: f for name in arch.__all__ if isinstance(f := getattr(arch, name), FunctionType)}
    bare = {name for name, f in functions.items() if ".device." in f.__module__ and ">>> " not in (f.__doc__ or "")}
    assert bare <= {"cp_async_bulk_commit_group", "cp_async_bulk_wait_group"}
    assert len(functions) > 60
