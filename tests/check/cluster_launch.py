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
