"""Small kernels with synchronisation operations of every family."""

from __future__ import annotations

import numpy as np

import tilewright as cutlass
from tilewright import cute

N = 64


@cute.kernel
def reversing(x: cute.Tensor, y: cute.Tensor):
    """Of the two barriers, one is needed; the last branch is never taken."""
    t, _, _ = cute.arch.thread_idx()
    s = cute.make_tensor(cute.arch.alloc_smem(cute.Float32, N), cute.make_layout(N))
    s[t] = x[t]
    cute.arch.sync_threads()  # needed
    y[t] = s[N - 1 - t]
    cute.arch.sync_threads()  # not needed
    if x[0] > 1000.0:
        cute.arch.sync_threads()  # not executed


@cute.kernel
def handed_over(x: cute.Tensor, y: cute.Tensor):
    """Warp 0 writes, arrives at an mbarrier and goes on; warp 1 waits for it and reads."""
    t, _, _ = cute.arch.thread_idx()
    s = cute.make_tensor(cute.arch.alloc_smem(cute.Float32, 32), cute.make_layout(32))
    full = cute.arch.alloc_smem(cutlass.Int64, 1)
    if t == 0:
        cute.arch.mbarrier_init(full, 32)
        cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()
    if t < 32:
        s[t] = x[t]
        cute.arch.mbarrier_arrive(full)
    else:
        cute.arch.mbarrier_wait(full, 0)
        y[t - 32] = s[63 - t]


@cute.kernel
def copied(x: cute.Tensor, y: cute.Tensor):
    """cp.async, its group and its wait; the flag of a release and an acquire."""
    t, _, _ = cute.arch.thread_idx()
    s = cute.make_tensor(cute.arch.alloc_smem(cute.Float32, N, 16), cute.make_layout(N))
    atom = cute.make_copy_atom(cute.nvgpu.cpasync.CopyG2SOp(), cute.Float32, num_bits_per_copy=32)
    cute.copy(atom, cute.local_tile(x, (1,), (t,)), cute.local_tile(s, (1,), (t,)))
    cute.arch.cp_async_commit_group()
    cute.arch.cp_async_wait_group(0)
    cute.arch.sync_threads()
    y[t] = s[N - 1 - t]


@cute.kernel
def ticketed(x: cute.Tensor, y: cute.Tensor, ticket: cute.Tensor):
    """Two blocks write; the second to come adds up what both have written."""
    t, _, _ = cute.arch.thread_idx()
    b, _, _ = cute.arch.block_idx()
    last = cute.make_tensor(cute.arch.alloc_smem(cutlass.Int32, 1), cute.make_layout(1))
    y[b * 32 + t] = x[b * 32 + t]
    cute.arch.sync_threads()
    if t == 0:
        last[0] = cute.arch.atomic_add(ticket.iterator, cutlass.Int32(1), sem="acq_rel", scope="gpu")
    cute.arch.sync_threads()
    if last[0] == 1:
        y[64 + t] = y[t] + y[32 + t]


@cute.jit
def run_reversing(x: cute.Tensor, y: cute.Tensor):
    reversing(x, y).launch(grid=(1, 1, 1), block=(N, 1, 1))


@cute.jit
def run_handed_over(x: cute.Tensor, y: cute.Tensor):
    handed_over(x, y).launch(grid=(1, 1, 1), block=(N, 1, 1))


@cute.jit
def run_copied(x: cute.Tensor, y: cute.Tensor):
    copied(x, y).launch(grid=(1, 1, 1), block=(N, 1, 1))


@cute.jit
def run_ticketed(x: cute.Tensor, y: cute.Tensor, ticket: cute.Tensor):
    ticketed(x, y, ticket).launch(grid=(2, 1, 1), block=(32, 1, 1))


def floats() -> np.ndarray:
    return np.arange(N, dtype=np.float32)
