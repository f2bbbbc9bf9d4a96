"""``cpasync.CopyDsmemStoreOp``: vectors that blocks of a cluster store in each other's shared memory (``st.async``)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cuda
from tests.cuda.build import needs_nvrtc
from tests.machines import MACHINES, OnMachine
from tilewright import BFloat16, Float32, Int64, cute
from tilewright.cute.nvgpu import cpasync
from tilewright.errors import ConstraintError
from tilewright.testing import per_thread

BLOCKS, LENGTH, STEPS = 4, 8, 2


@cute.kernel
def greatest(x: cute.Tensor, y: cute.Tensor, by_tiled: cutlass.Constexpr):
    """y (LENGTH, BLOCKS): in each block the greatest of all blocks, by exchanges with block ^ 1 and block ^ 2."""
    thread, _, _ = cute.arch.thread_idx()
    block = cute.arch.block_idx_in_cluster()
    atom = cute.make_copy_atom(cpasync.CopyDsmemStoreOp(), Float32, num_bits_per_copy=128)
    tiled = cute.make_tiled_copy(atom, cute.make_ordered_layout((2, 4), order=(1, 0)), (LENGTH,))
    mine = tiled.get_slice(thread)
    layout = cute.make_layout((LENGTH, STEPS), stride=(STEPS, 1))
    buffer = cute.make_tensor(cute.arch.alloc_smem(Float32, LENGTH * STEPS, 16), layout)
    bars = cute.arch.alloc_smem(Int64, STEPS, 8)
    if thread == 0:
        for step in cutlass.range_constexpr(STEPS):
            cute.arch.mbarrier_init(bars + step, 1)
            cute.arch.mbarrier_arrive_and_expect_tx(bars + step, 4 * LENGTH)
    cute.arch.mbarrier_init_fence()
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()
    received = mine.partition_D(buffer)  # (CPY, CPY_M, STEPS)
    values = cute.make_rmem_tensor(received[None, None, 0].shape, Float32)
    values.store(mine.partition_S(x[None, block]).load())
    for step in cutlass.range_constexpr(STEPS):
        there, peer = received[None, None, step], block ^ (1 << step)
        to = cute.make_tensor(cute.arch.map_dsmem_ptr(there.iterator, peer), there.layout)
        how = tiled if cutlass.const_expr(by_tiled) else atom
        cute.copy(how, values, to, mbar_ptr=cute.arch.map_dsmem_ptr(bars + step, peer))
        cute.arch.mbarrier_wait(bars + step, 0)
        for i in cutlass.range_constexpr(cute.size(values)):
            values[i] = cute.arch.fmax(values[i], there[i])
    mine.partition_D(y[None, block]).store(values.load())
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()


@cute.jit
def run(x: cute.Tensor, y: cute.Tensor, by_tiled: cutlass.Constexpr):
    greatest(x, y, by_tiled).launch(grid=(BLOCKS, 1, 1), block=(2, 1, 1), cluster=(BLOCKS, 1, 1))


def arrays() -> tuple[Any, Any]:
    x = np.random.default_rng(0).standard_normal((BLOCKS, LENGTH)).astype(np.float32).T
    return x, np.zeros((BLOCKS, LENGTH), np.float32).T


@MACHINES
@pytest.mark.parametrize("by_tiled", [False, True])
def test_blocks_exchange_vectors(machine: OnMachine, by_tiled: bool) -> None:
    x, y = arrays()
    machine.run(run, x, y, by_tiled)
    np.testing.assert_array_equal(y, np.broadcast_to(x.max(1, keepdims=True), x.shape))


def test_narrow_elements_go_by_words() -> None:
    def exchange(t: Any) -> Any:
        own = cute.arch.block_idx_in_cluster()
        buffer, bar = cute.arch.alloc_smem(BFloat16, 8, 16), cute.arch.alloc_smem(Int64, 1, 8)
        cute.arch.mbarrier_init(bar, 1)
        cute.arch.mbarrier_arrive_and_expect_tx(bar, 16)
        cute.arch.mbarrier_init_fence()
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
        values = cute.make_rmem_tensor(8, BFloat16)
        for i in range(8):
            values[i] = BFloat16(Float32(100 * own + i))
        atom = cute.make_copy_atom(cpasync.CopyDsmemStoreOp(), BFloat16, num_bits_per_copy=128)
        to = cute.make_tensor(cute.arch.map_dsmem_ptr(buffer, own ^ 1), cute.make_layout(8))
        cute.copy(atom, values, to, mbar_ptr=cute.arch.map_dsmem_ptr(bar, own ^ 1))
        cute.arch.mbarrier_wait(bar, 0)
        total = Float32(0.0)
        for i in range(8):
            total += cute.make_tensor(buffer, 8)[i].to(Float32) * (i + 1)
        return total

    each = sum(i * (i + 1) for i in range(8))
    assert per_thread(exchange, 1, blocks=2, cluster=2, dtype=Float32) == [100 * 36 + each, each]


def test_its_text() -> None:
    needs_nvrtc()
    kernel = cute.compile(run, *(cute.runtime.from_dlpack(z) for z in arrays()), False).kernels[0]
    ptx = tilewright.cuda.compile(kernel, "sm_90a").ptx
    assert ptx.count("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 ") == 4 * STEPS


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("own block", "needs the destination in the shared memory of a block of the cluster, which .*map_dsmem_ptr"),
        ("no mbarrier", "needs mbar_ptr in the shared memory of a block of the cluster, .*, not None"),
        ("half", "stores words of 32 bits, but the elements of .* are not contiguous in steps of 2"),
        ("size", "differ in size or type"),
        ("bits", "num_bits_per_copy is 128 at most, not 256"),
    ],
)
def test_mistakes(how: str, message: str) -> None:
    from tilewright import Float16

    def stores(t: Any) -> Any:
        kind = Float16 if how == "half" else Float32
        atom = cute.make_copy_atom(cpasync.CopyDsmemStoreOp(), kind, num_bits_per_copy=256 if how == "bits" else 0)
        buffer, bar = cute.arch.alloc_smem(kind, 8, 16), cute.arch.alloc_smem(Int64, 1, 8)
        values = cute.make_rmem_tensor(4, kind)
        values.fill(1.0)
        place = buffer if how == "own block" else cute.arch.map_dsmem_ptr(buffer, 0)
        where = None if how == "no mbarrier" else cute.arch.map_dsmem_ptr(bar, 0)
        to = cute.make_tensor(place, cute.make_layout(2 if how == "size" else 4, stride=2 if how == "half" else 1))
        cute.copy(atom, values, to, mbar_ptr=where)
        return t

    with pytest.raises(ConstraintError, match=message):
        per_thread(stores, 1)
