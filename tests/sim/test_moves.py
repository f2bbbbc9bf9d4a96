"""Fast ways through memory give the same bits, faults and profiles as the slow one, lane by lane."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute, sim
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import SimulationError
from tilewright.sim.events import Observer, observing


class Listening(Observer):
    """Wants every offset, so that no access takes a short cut."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, int, int]] = []

    def access(self, verb: str, buffer: Any, group: Any, off: Any, access: Any, mask: Any, values: Any) -> None:
        self.heard.append((verb, off.size, access.nbytes))


@cute.kernel
def scaled(x: cute.Tensor, y: cute.Tensor, crd: cute.Tensor, shape: cute.Shape, thr: cute.Layout, val: cute.Layout):
    tidx, _, _ = cute.arch.thread_idx()
    block = ((None, None), cute.arch.block_idx()[0])
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), x.element_type)
    thread = cute.make_tiled_copy_tv(atom, thr, val).get_slice(tidx)
    source, target, where = (thread.partition_S(t[block]) for t in (x, y, crd))
    held = cute.make_fragment_like(source)
    held.fill(-1)
    inside = cute.make_rmem_tensor(where.shape, cutlass.Boolean)
    for i in cutlass.range_constexpr(cute.size(inside)):
        inside[i] = cute.elem_less(where[i], shape)
    cute.copy(atom, source, held, pred=inside)
    held.store(held.load() * 3 + 1)
    cute.copy(atom, held, target, pred=inside)


@cute.jit
def scale(x: cute.Tensor, y: cute.Tensor, rows: cutlass.Constexpr, columns: cutlass.Constexpr):
    thr = cute.make_ordered_layout((4, 16), order=(1, 0))
    val = cute.make_ordered_layout((2, 8), order=(1, 0))
    tiler, tv = cute.make_layout_tv(thr, val)
    tiled = [cute.zipped_divide(t, tiler) for t in (x, y, cute.make_identity_tensor(y.shape))]
    scaled(*tiled, (rows, columns), thr, val).launch(
        grid=[cute.size(tiled[1], mode=[1]), 1, 1], block=[cute.size(tv, mode=[0]), 1, 1]
    )


def run(x: np.ndarray, rows: int, columns: int) -> np.ndarray:
    y = np.full_like(x, -7)
    scale(*(from_dlpack(t, assumed_align=16) for t in (x, y)), rows, columns)
    return y


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8], ids=str)
@pytest.mark.parametrize(("rows", "columns"), [(64, 512), (61, 509), (64, 505)], ids=str)
def test_neighbours_are_moved_together(dtype: Any, rows: int, columns: int) -> None:
    x = np.random.default_rng(0).integers(-20, 20, (64, 512)).astype(dtype)
    want = np.full_like(x, -7)
    want[:rows, :columns] = x[:rows, :columns] * 3 + 1
    with sim.options(check="none"):
        fast = run(x, rows, columns)
        listener = Listening()
        with observing(lambda name, config: listener):
            slow = run(x, rows, columns)
    np.testing.assert_array_equal(fast, want)
    np.testing.assert_array_equal(slow, want)
    assert {nbytes for _, _, nbytes in listener.heard} <= {x.itemsize}  # one instruction for each element
    assert sum(size for verb, size, _ in listener.heard if verb == "load") == rows * columns


def test_profiles_count_instructions_and_not_moves() -> None:
    x = np.zeros((64, 512), np.float32)
    counts = []
    for slowly in (False, True):
        with sim.options(check="none"), sim.profile() as report:
            if slowly:
                with observing(lambda name, config: Listening()):
                    run(x, 61, 509)
            else:
                run(x, 61, 509)
        kernel = report.kernels[0]
        counts.append((kernel.bytes, kernel.accesses, kernel.instructions, kernel.requests, kernel.wavefronts))
    assert counts[0] == counts[1]


@cute.kernel
def exchange(x: cute.Tensor, y: cute.Tensor, stride: cutlass.Constexpr):
    t, _, _ = cute.arch.thread_idx()
    shared = cute.make_tensor(
        cute.arch.alloc_smem(cutlass.Float32, 128 * 4 * stride), cute.make_layout((128, 4), stride=(stride * 4, 1))
    )
    held = cute.make_rmem_tensor(4, cutlass.Float32)
    cute.autovec_copy(x[t, None], held)
    for i in cutlass.range_constexpr(4):
        shared[t, i] = held[i]
    cute.arch.sync_threads()
    for i in cutlass.range_constexpr(4):
        y[t, i] = shared[127 - t, 3 - i]


@cute.jit
def exchanged(x: cute.Tensor, y: cute.Tensor, stride: cutlass.Constexpr):
    exchange(x, y, stride).launch(grid=(1, 1, 1), block=(128, 1, 1))


@pytest.mark.parametrize(("stride", "ways"), [(1, 4), (2, 8)])
def test_bank_conflicts_of_pointers_that_share_offsets(stride: int, ways: int) -> None:
    """Lanes 16 (32) bytes apart: 4 (8) of them want each bank, for every one of the four stores and loads."""
    x = np.arange(512, dtype=np.float32).reshape(128, 4)
    y = np.zeros_like(x)
    with sim.options(check="none"), sim.profile() as report:
        exchanged(from_dlpack(x), from_dlpack(y), stride)
    np.testing.assert_array_equal(y, x[::-1, ::-1])
    kernel = report.kernels[0]
    assert sum(kernel.requests.values()) == 2 * 4 * 4  # stores and loads, elements, warps
    assert sum(kernel.wavefronts.values()) == ways * 2 * 4 * 4


@cute.kernel
def beyond(x: cute.Tensor, y: cute.Tensor, move: cutlass.Constexpr):
    t, _, _ = cute.arch.thread_idx()
    held = cute.make_rmem_tensor(4, cutlass.Float32)
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Float32, num_bits_per_copy=32)
    cute.copy(atom, cute.make_tensor(x.iterator + 4 * t + move, cute.make_layout(4)), held)
    cute.copy(atom, held, cute.make_tensor(y.iterator + 4 * t, cute.make_layout(4)))


@cute.jit
def go_beyond(x: cute.Tensor, y: cute.Tensor, move: cutlass.Constexpr):
    beyond(x, y, move).launch(grid=(1, 1, 1), block=(64, 1, 1))


@pytest.mark.parametrize("move", [1, 3, -1])
def test_one_element_outside_is_a_fault(move: int) -> None:
    whole = np.arange(300, dtype=np.float32)
    x, y = whole[20:276], np.zeros(256, np.float32)  # what lies around x is not a part of it
    go_beyond(whole[: 256 + move] if move > 0 else whole[:256], y, 0 if move < 0 else move)
    with pytest.raises(SimulationError, match="global load of f32 .4 bytes. out of bounds"):
        go_beyond(x, y, move)


@pytest.mark.parametrize("start", [0, 1, 2])
def test_alignment_of_an_array_decides_the_width(start: int) -> None:
    whole = np.arange(300, dtype=np.float32)
    y = np.zeros(256, np.float32)
    go_beyond(whole[start : start + 256], y, 0)
    np.testing.assert_array_equal(y, whole[start : start + 256])
