"""Cluster launch control: answers before their mbarrier, and requests after the last answer."""

from __future__ import annotations

import numpy as np

import tilewright as cutlass
from tests.check.pairs import launch, pair
from tilewright import cute
from tilewright.cute.runtime import from_dlpack


def ask(wait: bool = True, again: bool = False) -> None:
    """Each block asks for one other, and once more where it got one; ``again``: also where it got none."""

    @cute.kernel
    def kernel(y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        answer, full = cute.arch.alloc_smem(cutlass.Int32, 4, 16), cute.arch.alloc_smem(cutlass.Int64, 1)
        if t == 0:
            cute.arch.mbarrier_init(full, 1)
        cute.arch.mbarrier_init_fence()
        cute.arch.sync_threads()
        phase, more, taken = cutlass.Int32(0), cutlass.Boolean(True), cutlass.Int32(0)
        while more:
            if t == 0:
                cute.arch.mbarrier_arrive_and_expect_tx(full, 16)
                cute.arch.issue_clc_query(full, answer)
            if cutlass.const_expr(wait):
                cute.arch.mbarrier_wait(full, phase)
            _, _, _, valid = cute.arch.clc_response(answer)
            if cutlass.const_expr(not wait):
                cute.arch.mbarrier_wait(full, phase)
            cute.arch.sync_threads()
            taken += 1
            phase ^= 1
            more = valid != 0
            if cutlass.const_expr(again):
                more = taken < 8
        y[cute.arch.block_idx()[0]] = taken

    y = np.zeros(4, np.int32)
    launch(kernel, from_dlpack(y), grid=4, block=32)


@pair("uninitialised | data-race", "_, _, _, valid = cute.arch.clc_response(answer)")
def an_answer_read_before_its_mbarrier(bug: bool) -> None:
    ask(wait=not bug)


@pair(
    "clusterlaunchcontrol.try_cancel after the answer that no cluster is left to cancel",
    "cute.arch.issue_clc_query(full, answer)",
)
def a_request_after_the_last_answer(bug: bool) -> None:
    ask(again=bug)


def throttled(waits: bool) -> None:
    """Warp 1 lets warp 0 ask by arriving at a named barrier, and arrives for the next request once it has the answer;
    not ``waits``: at once. Warp 0 announces the bytes before the barrier, so the answer alone keeps them apart."""

    @cute.kernel
    def kernel(y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        answers, full = cute.arch.alloc_smem(cutlass.Int32, 8, 16), cute.arch.alloc_smem(cutlass.Int64, 2)
        if t < 2:
            cute.arch.mbarrier_init(full + t, 1)
        cute.arch.mbarrier_init_fence()
        cute.arch.sync_threads()
        for i in cutlass.range_constexpr(2):
            if warp == 0:
                with cute.arch.elect_one():
                    cute.arch.mbarrier_arrive_and_expect_tx(full + i, 16)
                cute.arch.barrier(barrier_id=3, number_of_threads=64)
                with cute.arch.elect_one():
                    cute.arch.issue_clc_query(full + i, answers + 4 * i)
                cute.arch.mbarrier_wait(full + i, 0)
            else:
                cute.arch.barrier_arrive(barrier_id=3, number_of_threads=64)
                if cutlass.const_expr(waits):
                    cute.arch.mbarrier_wait(full + i, 0)
        cute.arch.sync_threads()
        y[cute.arch.block_idx()[0]] = 1

    y = np.zeros(200, np.int32)
    launch(kernel, from_dlpack(y), grid=200, block=64)


@pair("barrier-shared | barrier-twice", "cute.arch.barrier_arrive(barrier_id=3, number_of_threads=64)")
def an_arrival_before_the_answer(bug: bool) -> None:
    throttled(waits=not bug)
