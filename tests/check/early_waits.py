"""Waits for too few: by the time of the poll more has come than was waited for, in this schedule."""

from __future__ import annotations

import numpy as np

import tilewright as cutlass
from tests.check.pairs import launch, numbers, pair, shared
from tilewright import cute

I32 = np.int32


@pair("data-race", "ring[i * 32 + t] = x[i * 32 + t]", "y[i * 32 + t] = ring[i * 32 + t]")
def the_head_of_a_queue_one_too_early(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, ring: cute.Tensor, head: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        if b == 0:
            for i in cutlass.range(4):
                ring[i * 32 + t] = x[i * 32 + t]
                cute.arch.sync_warp()
                if t == 0:
                    cute.arch.store(head.iterator, i + 1, sem="release", scope="gpu")
        else:
            for i in cutlass.range(4):
                least = i if cutlass.const_expr(bug) else i + 1
                if t == 0:
                    while cute.arch.load(head.iterator, sem="acquire", scope="gpu") < least:
                        pass
                cute.arch.sync_warp()
                y[i * 32 + t] = ring[i * 32 + t]

    launch(kernel, numbers(128), numbers(128), np.zeros(1, I32), numbers(128), grid=2, block=32)


@pair("data-race", "s[i * 32 + lane] = x[i * 32 + lane]", "y[i * 32 + lane] = s[i * 32 + 31 - lane]")
def a_relaxed_poll_and_a_fence_in_shared_memory(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        lane = t % 32
        s, made = shared(96), shared(1, cutlass.Int32)
        if t == 0:
            made[0] = 0
        cute.arch.sync_threads()
        if t < 32:
            for i in cutlass.range(3):
                s[i * 32 + lane] = x[i * 32 + lane]
                cute.arch.sync_warp()
                if lane == 0:
                    cute.arch.atomic_add(made.iterator, 1, sem="release", scope="cta")
        else:
            least = cutlass.Int32(2 if cutlass.const_expr(bug) else 3)
            while least > cute.arch.load(made.iterator, sem="relaxed", scope="cta"):
                pass
            cute.arch.fence_acq_rel_cta()
            for i in cutlass.range(3):
                y[i * 32 + lane] = s[i * 32 + 31 - lane]

    launch(kernel, numbers(96), numbers(96))


@pair("data-race", "ring[i] = x[i]", "y[t] = ring[t]")
def each_lane_waits_for_a_count_of_its_own(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, ring: cute.Tensor, head: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        if b == 0:
            if t == 0:
                for i in cutlass.range(32):
                    ring[i] = x[i]
                    cute.arch.store(head.iterator, i + 1, sem="release", scope="gpu")
        else:
            least = t if cutlass.const_expr(bug) else t + 1
            while cute.arch.load(head.iterator, sem="acquire", scope="gpu") < least:
                pass
            y[t] = ring[t]

    launch(kernel, numbers(32), numbers(32), np.zeros(1, I32), numbers(32), grid=2, block=32)


@pair("data-race", "data[t] = x[t] + i", "y[i * 32 + t] = data[t]")
def the_flag_of_a_round_before(bug: bool) -> None:
    """The twin raises and lowers one flag several times: a thread that has lowered it cannot read the value before."""

    @cute.kernel
    def kernel(x: cute.Tensor, data: cute.Tensor, flag: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        for i in cutlass.range(3):
            if b == 0:
                if t == 0:
                    while cute.arch.load(flag.iterator, sem="acquire", scope="gpu") != 0:
                        pass
                cute.arch.sync_warp()
                data[t] = x[t] + i
                cute.arch.sync_warp()
                if t == 0:
                    cute.arch.store(flag.iterator, 1, sem="release", scope="gpu")
            else:
                if t == 0:
                    while cute.arch.load(flag.iterator, sem="acquire", scope="gpu") != 1:
                        pass
                    if cutlass.const_expr(bug):
                        cute.arch.store(flag.iterator, 0, sem="release", scope="gpu")
                cute.arch.sync_warp()
                y[i * 32 + t] = data[t]
                cute.arch.sync_warp()
                if cutlass.const_expr(not bug):
                    if t == 0:
                        cute.arch.store(flag.iterator, 0, sem="release", scope="gpu")

    launch(kernel, numbers(32), numbers(32), np.zeros(1, I32), numbers(96), grid=2, block=32)


def slots(form: str, bug: bool) -> None:
    """Block 0 fills four slots and counts them; block 1 waits for each, and reads it; with the bug for one too few."""

    @cute.kernel
    def kernel(x: cute.Tensor, box: cute.Tensor, count: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        for k in cutlass.range(4):
            if b == 0:
                box[k, t] = x[t] + k
                cute.arch.sync_threads()
                if t == 0:
                    cute.arch.store(count.iterator, k + 1, sem="release", scope="gpu")
            else:
                if t == 0:
                    less = 1 if cutlass.const_expr(bug) else 0
                    if cutlass.const_expr(form == "computed in the condition"):
                        while cute.arch.load(count.iterator, sem="acquire", scope="gpu") < k + 1 - less:
                            pass
                    if cutlass.const_expr(form == "turns are counted"):
                        turns = cutlass.Int32(0)
                        while cute.arch.load(count.iterator, sem="acquire", scope="gpu") < k + 1 - less:
                            turns = turns + 1
                    if cutlass.const_expr(form == "read before the loop"):
                        seen = cute.arch.load(count.iterator, sem="acquire", scope="gpu")
                        goal = k + 1 - less
                        while seen < goal:
                            seen = cute.arch.load(count.iterator, sem="acquire", scope="gpu")
                    if cutlass.const_expr(form == "until"):
                        while not (cute.arch.load(count.iterator, sem="acquire", scope="gpu") >= k + 1 - less):
                            pass
                    if cutlass.const_expr(form == "in 64 bits"):
                        goal = cutlass.Int64(k + 1 - less)
                        while cutlass.Int64(cute.arch.load(count.iterator, sem="acquire", scope="gpu")) < goal:
                            pass
                cute.arch.sync_threads()
                y[k, t] = box[k, t]

    rows = [np.zeros((4, 64), np.float32) for _ in range(2)]
    launch(kernel, numbers(64), rows[0], np.zeros(1, np.int32), rows[1], grid=2)


FILL, READ = "box[k, t] = x[t] + k", "y[k, t] = box[k, t]"


@pair("data-race", FILL, READ)
def a_bound_that_is_computed_in_the_condition(bug: bool) -> None:
    slots("computed in the condition", bug)


@pair("data-race", FILL, READ)
def a_poll_that_counts_its_turns(bug: bool) -> None:
    slots("turns are counted", bug)


@pair("data-race", FILL, READ)
def a_poll_whose_first_read_stands_before_the_loop(bug: bool) -> None:
    slots("read before the loop", bug)


@pair("data-race", FILL, READ)
def a_poll_in_64_bits(bug: bool) -> None:
    slots("in 64 bits", bug)


@pair("data-race", FILL, READ)
def a_poll_until_a_count_is_reached(bug: bool) -> None:
    slots("until", bug)
