"""The simulator's TMA is as late as the program allows, so that what a program does not wait for shows at once."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute, utils
from tilewright.cute.nvgpu import cpasync
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import SimulationError
from tilewright.sim import options

TILE = cute.make_layout((8, 32), stride=(32, 1))


class Program:
    """Loads a tile and stores it, overwriting shared memory after the store; each step of waiting can be left out."""

    def __init__(self, *left_out: str) -> None:
        self.left_out = left_out

    @cute.jit
    def __call__(self, a: cute.Tensor, b: cute.Tensor, seen: cute.Tensor):
        load = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), a, TILE, (8, 32))
        store = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), b, TILE, (8, 32))
        self.kernel(*load, *store, b, seen).launch(grid=(1, 1, 1), block=(64, 1, 1))

    @cute.kernel
    def kernel(
        self,
        load: cute.CopyAtom,
        a: cute.Tensor,
        store: cute.CopyAtom,
        tma_b: cute.Tensor,
        b: cute.Tensor,
        seen: cute.Tensor,
    ):
        lane, _, _ = cute.arch.thread_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        smem = utils.SmemAllocator()
        full, tile = smem.allocate_array(cutlass.Int64, 1), smem.allocate_tensor(cutlass.Float32, TILE, 128)
        if lane == 0:
            cute.arch.mbarrier_init(full, 1)
            cute.arch.mbarrier_init_fence()
        cute.arch.sync_threads()
        one, grouped = cute.make_layout(1), cute.group_modes(tile, 0, 2)
        tAs, tAg = cpasync.tma_partition(load, 0, one, grouped, cute.group_modes(a, 0, 2))
        tBs, tBg = cpasync.tma_partition(store, 0, one, grouped, cute.group_modes(tma_b, 0, 2))
        if warp == 0:
            with cute.arch.elect_one():
                cute.arch.mbarrier_arrive_and_expect_tx(full, 1024)
            cute.copy(load, tAg, tAs, tma_bar_ptr=full)
            if cutlass.const_expr("mbarrier" not in self.left_out):
                cute.arch.mbarrier_wait(full, 0)
            cute.copy(store, tBs, tBg)
            cute.arch.cp_async_bulk_commit_group()
        waiter = 1 if cutlass.const_expr("own warp" in self.left_out) else 0
        if warp == waiter:
            if cutlass.const_expr("read" not in self.left_out):
                cute.arch.cp_async_bulk_wait_group(0, read=True)
        cute.arch.sync_threads()
        if cutlass.const_expr("overwrite" not in self.left_out):
            tile[0, lane % 32] = cutlass.Float32(-1)
            cute.arch.sync_threads()
        if warp == waiter:
            if cutlass.const_expr("write" not in self.left_out and "read" not in self.left_out):
                cute.arch.cp_async_bulk_wait_group(0)
        cute.arch.sync_threads()
        if lane < 32:
            seen[lane] = b[0, lane]


def run(*left_out: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    a = np.arange(256, dtype=np.float32).reshape(8, 32) + 1
    b, seen = np.zeros_like(a), np.full(32, -2, np.float32)
    Program(*left_out)(*(from_dlpack(x, assumed_align=16) for x in (a, b, seen)))
    return a, b, seen


def test_with_all_waits() -> None:
    a, b, seen = run()
    assert (a == b).all() and (seen == a[0]).all()
    a, b, _ = run("overwrite")
    assert (a == b).all()


def test_writing_is_late() -> None:
    with options(check="none"):  # which would call it the race that it is
        a, b, seen = run("write")
    assert (a == b).all() and (seen == 0).all()  # read in time, but not there when it was looked at


@pytest.mark.parametrize("left_out", ["mbarrier", "own warp", "read"])
def test_copies_without_a_wait(left_out: str) -> None:
    """Nothing forces the copy (a wait of another warp does not), until its block has ended."""
    with pytest.raises(SimulationError, match="reaches the shared memory of a block whose threads have all ended"):
        run(left_out)


def test_what_comes_after_its_block_may_be_let_pass() -> None:
    with options(check="none,-exits"):
        _, b, _ = run("read")
    assert b.any()


@cute.kernel
def by_some(load: cute.CopyAtom, x: cute.Tensor):
    """All blocks but the second one wait for their box."""
    block, _, _ = cute.arch.block_idx()
    full = cute.arch.alloc_smem(cutlass.Int64, 1, 8)
    tile = cute.make_tensor(cute.arch.alloc_smem(cutlass.Float32, 64, 128), cute.make_layout((64, 1)))
    with cute.arch.elect_one():
        cute.arch.mbarrier_init(full, 1)
        cute.arch.mbarrier_init_fence()
        cute.arch.mbarrier_arrive_and_expect_tx(full, 256)
    cute.arch.sync_warp()
    to, source = cpasync.tma_partition(load, 0, cute.make_layout(1), tile, cute.local_tile(x, (64, 1), (0, None)))
    cute.copy(load, source[None, 0, block], to[None, 0], tma_bar_ptr=full)
    if block != 1:
        cute.arch.mbarrier_wait(full, 0)


def test_the_block_whose_copy_comes_too_late_is_named() -> None:
    @cute.jit
    def launch(x: cute.Tensor):
        load = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), x, cute.make_layout((64, 1)), (64, 1))
        by_some(*load).launch(grid=(3, 1, 1), block=(32, 1, 1))

    x = from_dlpack(np.zeros((3, 64), np.float32).T, assumed_align=16)
    with pytest.raises(SimulationError, match=r"threads have all ended\n.*\n  block \(1, 0, 0\), thread \(0, 0, 0\)"):
        launch(x)
