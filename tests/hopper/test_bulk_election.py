"""``cute.copy`` with a bulk copy is called by a whole warp (since CuTe DSL 4.6), by one of its threads, or by threads
that each copy to a place of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cuda
from tests.cuda.build import needs_nvrtc
from tests.machines import MACHINES, OnMachine
from tilewright import Float32, Int64, cute
from tilewright.cute.nvgpu import cpasync
from tilewright.cute.runtime import from_dlpack

ROWS, LENGTH, WARPS = 32, 16, 2
NBYTES = ROWS * LENGTH * 4


@cute.kernel
def through(x: cute.Tensor, y: cute.Tensor, caller: cutlass.Constexpr):
    """y = x: each warp has rows brought to shared memory and stored from there."""
    thread, _, _ = cute.arch.thread_idx()
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    smem = cutlass.utils.SmemAllocator()
    full = smem.allocate_array(Int64, WARPS)
    tiles = smem.allocate_tensor(Float32, cute.make_layout(ROWS * LENGTH * WARPS), 128)
    get = cute.make_copy_atom(cpasync.CopyBulkG2SOp(), Float32)
    put = cute.make_copy_atom(cpasync.CopyBulkS2GOp(), Float32)
    if thread == 0:
        for i in cutlass.range_constexpr(WARPS):
            cute.arch.mbarrier_init(full + i, 1)
            cute.arch.mbarrier_arrive_and_expect_tx(full + i, NBYTES)
        cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()
    lane = thread % 32
    at, length = warp * ROWS * LENGTH, cute.make_layout(ROWS * LENGTH)
    if cutlass.const_expr(caller == "each thread"):
        at, length = at + lane * LENGTH, cute.make_layout(LENGTH)
    source, tile, to = (cute.make_tensor((of.iterator + at).align(16), length) for of in (x, tiles, y))
    if cutlass.const_expr(caller == "a thread"):
        if lane == 7:
            cute.copy(get, source, tile, mbar_ptr=full + warp)
    elif cutlass.const_expr(caller == "elect_one"):
        with cute.arch.elect_one():
            cute.copy(get, source, tile, mbar_ptr=full + warp)
    else:
        cute.copy(get, source, tile, mbar_ptr=full + warp)
    cute.arch.mbarrier_wait(full + warp, 0)
    if cutlass.const_expr(caller == "a thread"):
        if lane == 7:
            cute.copy(put, tile, to)
    elif cutlass.const_expr(caller == "elect_one"):
        with cute.arch.elect_one():
            cute.copy(put, tile, to)
    else:
        cute.copy(put, tile, to)
    cute.arch.cp_async_bulk_commit_group()
    cute.arch.cp_async_bulk_wait_group(0)


@cute.jit
def run(x: cute.Tensor, y: cute.Tensor, caller: cutlass.Constexpr):
    through(x, y, caller).launch(grid=(1, 1, 1), block=(32 * WARPS, 1, 1))


CALLERS = pytest.mark.parametrize("caller", ["warp", "elect_one", "a thread", "each thread"])


def arrays() -> tuple[Any, Any]:
    x = np.arange(WARPS * ROWS * LENGTH, dtype=np.float32)
    return x, np.zeros_like(x)


@MACHINES
@CALLERS
def test_each_byte_is_copied_once(machine: OnMachine, caller: str) -> None:
    """More copies than were announced would end the phase early, and count in the next one."""
    x, y = arrays()
    machine.run(run, x, y, caller)
    np.testing.assert_array_equal(y, x)


@CALLERS
def test_one_thread_is_chosen_where_several_may_be_there(caller: str) -> None:
    needs_nvrtc()
    compiled = cute.compile(run, *(from_dlpack(a, assumed_align=16) for a in arrays()), caller)
    artifact = tilewright.cuda.compile(compiled.kernels[0], "sm_90a")
    assert artifact.spills == 0 and artifact.warnings == []
    assert artifact.ptx.count("match.any.sync") == (0 if caller == "elect_one" else 2)
