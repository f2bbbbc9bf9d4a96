"""What depends on the GPU: blocks that wait for blocks which need not be resident, instructions that it has not."""

from __future__ import annotations

import numpy as np

import tilewright as cutlass
from tests.check.pairs import launch, pair
from tilewright import cute, sim

I32 = np.int32


def chain(towards: int, sms: int) -> None:
    """Each block waits for the block beside it: the next (1) or the one before (-1)."""

    @cute.kernel
    def kernel(flags: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        if t == 0:
            other = b + towards
            if other >= 0 and other < 96:
                while cute.arch.load(flags.iterator + other, sem="acquire") == 0:
                    pass
            cute.arch.store(flags.iterator + b, cutlass.Int32(1), sem="release")
        y[b] = 1

    with sim.options(sms=sms):
        launch(kernel, np.zeros(96, I32), np.zeros(96, I32), grid=96, block=1024)


POLL = 'while cute.arch.load(flags.iterator + other, sem="acquire") == 0:'


@pair("residency", POLL, 'cute.arch.store(flags.iterator + b, cutlass.Int32(1), sem="release")')
def blocks_that_wait_for_the_next_one(bug: bool) -> None:
    chain(1 if bug else -1, 16)


COUNT = "cute.arch.atomic_add(count.iterator, cutlass.Int32(1))"


@pair("residency", "while cute.arch.load(count.iterator) < 96:", COUNT)
def a_grid_barrier_of_more_blocks_than_fit(bug: bool) -> None:
    @cute.kernel
    def kernel(count: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        if t == 0:
            cute.arch.atomic_add(count.iterator, cutlass.Int32(1))
            while cute.arch.load(count.iterator) < 96:
                pass
        y[b] = 1

    with sim.options(sms=40 if bug else 48):
        launch(kernel, np.zeros(1, I32), np.zeros(96, I32), grid=96, block=1024)


@pair("architecture", "cute.arch.mbarrier_expect_tx(full, 0)")
def an_instruction_that_the_target_has_not(bug: bool) -> None:
    @cute.kernel
    def kernel(y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        full = cute.arch.alloc_smem(cutlass.Int64, 1)
        if t == 0:
            cute.arch.mbarrier_init(full, 1)
            cute.arch.mbarrier_expect_tx(full, 0)
        y[t] = 1

    with sim.options(arch="sm_80" if bug else "sm_90a"):
        launch(kernel, np.zeros(32, I32), block=32)
