"""Kernels whose mistake needs a certain order: warps stopped between two steps, copies that arrive early."""

from __future__ import annotations

import numpy as np

import tilewright as cutlass
from tilewright import cute, pipeline
from tilewright.cute.nvgpu import cpasync, warpgroup
from tilewright.gemm.mainloop.tma import TmaMainloop


@cute.jit
def take(lock: cute.Pointer) -> None:
    while cute.arch.atomic_cas(lock, cmp=cutlass.Int32(0), val=cutlass.Int32(1), sem="acquire", scope="cta") != 0:
        pass


@cute.jit
def give(lock: cute.Pointer) -> None:
    cute.arch.atomic_exch(lock, cutlass.Int32(0), sem="release", scope="cta")


@cute.kernel
def two_locks(a: cute.Tensor, same: cutlass.Constexpr):
    """Two warps take two locks, ``same`` or not in the same order."""
    t, _, _ = cute.arch.thread_idx()
    first, second = a.iterator, a.iterator + 1
    if t == 0:
        take(first)
        take(second)
        a[2] = a[2] + 1
        give(second)
        give(first)
    if t == 32:
        take(first if cutlass.const_expr(same) else second)
        take(second if cutlass.const_expr(same) else first)
        a[2] = a[2] + 1
        give(second)
        give(first)


@cute.kernel
def lost_update(a: cute.Tensor):
    """Two warps add 1, not atomically."""
    t, _, _ = cute.arch.thread_idx()
    if t % 32 == 0:
        a[0] = a[0] + 1


@cute.kernel
def counted(a: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    if t == 0:
        cute.arch.atomic_add(a.iterator, cutlass.Int32(1))


@cute.kernel
def copied_over(x: cute.Tensor, y: cute.Tensor):
    """Stores to where a cp.async is still to arrive: as late as it can, the copy comes last."""
    t, _, _ = cute.arch.thread_idx()
    s = cute.make_tensor(cute.arch.alloc_smem(cute.Float32, 32, 16), cute.make_layout(32))
    atom = cute.make_copy_atom(cute.nvgpu.cpasync.CopyG2SOp(), cute.Float32, num_bits_per_copy=32)
    cute.copy(atom, cute.local_tile(x, (1,), (t,)), cute.local_tile(s, (1,), (t,)))
    s[t] = cutlass.Float32(0)
    cute.arch.cp_async_commit_group()
    cute.arch.cp_async_wait_group(0)
    y[t] = s[t]


@cute.kernel
def lost_phase(y: cute.Tensor):
    """Warp 0 completes two phases of an mbarrier; warp 1 waits for the first, warp 2 watches so that the engine sees
    a warp that waits for it."""
    t, _, _ = cute.arch.thread_idx()
    full = cute.arch.alloc_smem(cutlass.Int64, 1)
    seen = cute.arch.alloc_smem(cutlass.Int64, 1)
    if t == 0:
        cute.arch.mbarrier_init(full, 1)
        cute.arch.mbarrier_init(seen, 1)
        cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()
    if t == 0:
        cute.arch.mbarrier_arrive(full)
        cute.arch.mbarrier_wait(seen, 0)
        cute.arch.mbarrier_arrive(full)
    if t // 32 == 1:
        cute.arch.mbarrier_wait(full, 0)
    if t == 64:
        cute.arch.mbarrier_wait(full, 0)
        cute.arch.mbarrier_arrive(seen)
    y[t] = t


@cute.kernel
def stages_passed_over(x: cute.Tensor, together: cutlass.Constexpr):
    """Warp 4 fills a stage three times; the warpgroup releases it unread, by one thread, behind the barrier
    ``together``."""
    K = warpgroup.OperandMajorMode.K
    op = warpgroup.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (64, 8, 16), warpgroup.OperandSource.SMEM, K, K)
    stage = cute.make_tensor(cute.arch.alloc_smem(cutlass.Float32, 4, 16), cute.make_layout((4, 1)))
    ring = pipeline.PipelineTmaAsync.create(
        num_stages=1, consumer_group=cute.make_tiled_mma(op), stage_tensors=(stage,)
    )
    atom = cute.make_copy_atom(cpasync.CopyBulkG2SOp(), cutlass.Float32)
    if cute.arch.warp_idx() == 4:
        filled = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, 1)
        for _ in cutlass.range(3, unroll=1):
            ring.producer_acquire(filled)
            cute.copy(atom, x, stage[None, 0], mbar_ptr=ring.producer_get_barrier(filled))
            filled.advance()
    else:
        state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, 1)
        TmaMainloop.pass_over(None, ring, state, 3, together)


class NoBarrier:
    def arrive_and_wait(self) -> None: ...


WARPGROUP = pipeline.NamedBarrier(barrier_id=1, num_threads=128)


@cute.jit
def run_stages_passed_over(x: cute.Tensor, together: cutlass.Constexpr):
    stages_passed_over(x, together).launch(grid=(1, 1, 1), block=(160, 1, 1))


@cute.jit
def run_two_locks(a: cute.Tensor, same: cutlass.Constexpr):
    two_locks(a, same).launch(grid=(1, 1, 1), block=(64, 1, 1))


@cute.jit
def run_lost_update(a: cute.Tensor):
    lost_update(a).launch(grid=(1, 1, 1), block=(64, 1, 1))


@cute.jit
def run_many_blocks(a: cute.Tensor):
    counted(a).launch(grid=(300, 1, 1), block=(64, 1, 1))


@cute.jit
def run_copied_over(x: cute.Tensor, y: cute.Tensor):
    copied_over(x, y).launch(grid=(1, 1, 1), block=(32, 1, 1))


@cute.jit
def run_lost_phase(y: cute.Tensor):
    lost_phase(y).launch(grid=(1, 1, 1), block=(96, 1, 1))


def counters() -> np.ndarray:
    return np.zeros(3, np.int32)
