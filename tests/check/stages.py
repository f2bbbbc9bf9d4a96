"""Slices at run-time coordinates: a stage that a ring does not have. Its bytes are of the tensor that follows it."""

from __future__ import annotations

import numpy as np

import tilewright as cutlass
from tests.check.pairs import launch, numbers, pair
from tilewright import cute
from tilewright.cute.nvgpu import cpasync
from tilewright.cute.runtime import from_dlpack

STAGES, TILES = 3, 4


def ring_of_threads(next_stage: str, guarded: bool = False) -> None:
    """Threads fill stages and read them; behind the ring lies another tensor, which is written, too."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        memory = cute.arch.alloc_smem(cutlass.Float32, 32 * (STAGES + 1))
        every = cute.make_tensor(memory, cute.make_layout((32, STAGES + 1)))
        ring = cute.make_tensor(memory, cute.make_layout((32, STAGES)))
        for k in cutlass.range(TILES):
            every[t, k] = x[k, t]
        for k in cutlass.range(TILES):
            stage = ring[None, k if cutlass.const_expr(next_stage == "k") else k % STAGES]
            if k < STAGES or cutlass.const_expr(not guarded):
                y[k, t] = stage[t]

    x = numbers(32 * TILES).reshape(TILES, 32)
    launch(kernel, x, np.zeros_like(x), block=32)


@pair("bounds", "y[k, t] = stage[t]", 'stage = ring[None, k if cutlass.const_expr(next_stage == "k") else k % STAGES]')
def a_stage_that_the_ring_does_not_have(bug: bool) -> None:
    ring_of_threads("k" if bug else "k % STAGES")


@pair("bounds", "y[k, t] = stage[t]")
def a_stage_past_the_ring_that_is_used_without_its_condition(bug: bool) -> None:
    """A slice past the end may be made: it is the use that reads other memory."""
    ring_of_threads("k", guarded=not bug)


def ring_of_copies(bug: bool, predicated: bool) -> None:
    """``cp.async`` into stages. Later stages are issued before the first has come."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        memory = cute.arch.alloc_smem(cutlass.Float32, 128 * (STAGES + 1), 16)
        ring = cute.make_tensor(memory, cute.make_layout((4, 32, STAGES), stride=(1, 4, 128)))
        get = cute.make_copy_atom(cpasync.CopyG2SOp(), cutlass.Float32, num_bits_per_copy=128)
        allowed = cute.make_rmem_tensor(1, cutlass.Boolean)
        for k in cutlass.range(STAGES if cutlass.const_expr(not bug and not predicated) else TILES):
            if cutlass.const_expr(predicated):
                allowed[0] = cutlass.Boolean(True) if cutlass.const_expr(bug) else k < STAGES
                cute.copy(get, x[None, t, k], ring[None, t, k], pred=allowed)
            else:
                cute.copy(get, x[None, t, k], ring[None, t, k])
        cute.arch.cp_async_commit_group()
        cute.arch.cp_async_wait_group(0)
        y[t] = ring[0, t, STAGES - 1]

    x = from_dlpack(np.asfortranarray(numbers(128 * TILES).reshape(4, 32, TILES)), assumed_align=16)
    launch(kernel, x, numbers(32), block=32)


@pair("bounds", "cute.copy(get, x[None, t, k], ring[None, t, k])")
def an_asynchronous_copy_into_a_stage_past_the_ring(bug: bool) -> None:
    ring_of_copies(bug, predicated=False)


@pair("bounds", "cute.copy(get, x[None, t, k], ring[None, t, k], pred=allowed)")
def an_asynchronous_copy_past_the_ring_without_its_predicate(bug: bool) -> None:
    ring_of_copies(bug, predicated=True)


@pair("bounds", "cute.copy(get, x[None, k], ring[None, k], mbar_ptr=full)")
def a_bulk_copy_into_a_stage_past_the_ring(bug: bool) -> None:
    """One thread issues it, and another unit writes the bytes later."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        full = cute.arch.alloc_smem(cutlass.Int64, 1)
        memory = cute.arch.alloc_smem(cutlass.Float32, 32 * (STAGES + 1), 128)
        ring = cute.make_tensor(memory, cute.make_layout((32, STAGES)))
        get = cute.make_copy_atom(cpasync.CopyBulkG2SOp(), cutlass.Float32)
        count = TILES if cutlass.const_expr(bug) else STAGES
        if t == 0:
            cute.arch.mbarrier_init(full, 1)
            cute.arch.mbarrier_init_fence()
            cute.arch.mbarrier_arrive_and_expect_tx(full, 128 * count)
            for k in cutlass.range(count):
                cute.copy(get, x[None, k], ring[None, k], mbar_ptr=full)
        cute.arch.sync_threads()
        cute.arch.mbarrier_wait(full, 0)
        y[t] = ring[t, STAGES - 1]

    x = from_dlpack(np.asfortranarray(numbers(32 * TILES).reshape(32, TILES)), assumed_align=16)
    launch(kernel, x, numbers(32), block=32)
