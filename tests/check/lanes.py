"""Races between the lanes of one warp."""

from __future__ import annotations

import numpy as np

import tilewright as cutlass
from tests.check.pairs import launch, numbers, pair, shared
from tilewright import cute

I32 = np.int32


@pair("data-race", "s[lane] = s[lane] + s[lane + step]")
def a_warps_tree_reduction_without_sync_warp(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        lane, _, _ = cute.arch.thread_idx()
        s = shared(32)
        s[lane] = x[lane]
        cute.arch.sync_warp()
        for step in cutlass.range_constexpr(5):
            step = 16 >> step
            if lane < step:
                s[lane] = s[lane] + s[lane + step]
            if cutlass.const_expr(not bug):
                cute.arch.sync_warp()
        if lane == 0:
            y[0] = s[0]

    launch(kernel, numbers(32), numbers(1), block=32)


@pair("data-race", "s[0] = x[5]", "y[lane] = s[0]")
def lane_0_broadcasts_without_sync_warp(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        lane, _, _ = cute.arch.thread_idx()
        s = shared(1)
        if lane == 0:
            s[0] = x[5]
        if cutlass.const_expr(not bug):
            cute.arch.sync_warp()
        y[lane] = s[0]

    launch(kernel, numbers(32), numbers(32), block=32)


@pair("data-race", "s[0] = x[0]", "y[lane] = s[0]")
def the_elected_lane_writes_for_all(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        lane, _, _ = cute.arch.thread_idx()
        s = shared(1)
        with cute.arch.elect_one():
            s[0] = x[0]
        if cutlass.const_expr(not bug):
            cute.arch.sync_warp()
        y[lane] = s[0]

    launch(kernel, numbers(32), numbers(32), block=32)


@pair("data-race", "s[lane] = x[lane]", "y[lane] = s[31 - lane]")
def a_shuffle_does_not_order_memory(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        lane, _, _ = cute.arch.thread_idx()
        s = shared(32)
        s[lane] = x[lane]
        other = cute.arch.shuffle_sync(lane, 0)
        if cutlass.const_expr(not bug):
            cute.arch.sync_warp()
        y[lane] = s[31 - lane]
        y[lane] = y[lane] + other

    launch(kernel, numbers(32), numbers(32), block=32)


@pair("data-race", "s[t] = x[t]", "y[t] = s[t ^ 16]")
def a_sync_warp_of_half_the_lanes(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = shared(32)
        s[t] = x[t]
        if t < 16:
            cute.arch.sync_warp(0x0000FFFF)
        else:
            cute.arch.sync_warp(0xFFFF0000 - (1 << 32))
        if cutlass.const_expr(not bug):
            cute.arch.sync_warp()
        y[t] = s[t ^ 16]

    launch(kernel, numbers(32), numbers(32), block=32)


@pair("data-race", "y[t] = s[31 - t]", "s[t] = x[t + 32]")
def a_second_round_without_sync_warp(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = shared(32)
        s[t] = x[t]
        cute.arch.sync_warp()
        y[t] = s[31 - t]
        if cutlass.const_expr(not bug):
            cute.arch.sync_warp()
        s[t] = x[t + 32]

    launch(kernel, numbers(64), numbers(32), block=32)


@pair("data-race", "s[lane] = x[lane]", "total += s[i]")
def one_lane_adds_what_the_others_wrote(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        lane, _, _ = cute.arch.thread_idx()
        s = shared(32)
        s[lane] = x[lane]
        if cutlass.const_expr(not bug):
            cute.arch.sync_warp()
        if lane == 0:
            total = cutlass.Float32(0)
            for i in cutlass.range(32):
                total += s[i]
            y[0] = total

    launch(kernel, numbers(32), numbers(1), block=32)


@pair("data-race", "s[lane] = s[lane - step] + s[lane]")
def a_warps_scan_in_place(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        lane, _, _ = cute.arch.thread_idx()
        s = shared(32)
        s[lane] = x[lane]
        for k in cutlass.range_constexpr(5):
            step = 1 << k
            cute.arch.sync_warp()
            if cutlass.const_expr(bug):
                if lane >= step:
                    s[lane] = s[lane - step] + s[lane]
            else:
                add = cutlass.Float32(0)
                if lane >= step:
                    add = s[lane - step]
                cute.arch.sync_warp()
                s[lane] = s[lane] + add
        y[lane] = s[lane]

    launch(kernel, numbers(32), numbers(32), block=32)


@pair("data-race", "s[slot] = lane")
def lanes_that_collide_in_one_statement(bug: bool) -> None:
    @cute.kernel
    def kernel(y: cute.Tensor):
        lane, _, _ = cute.arch.thread_idx()
        s = shared(32, cutlass.Int32)
        slot = lane // 2 if cutlass.const_expr(bug) else lane
        s[slot] = lane
        cute.arch.sync_warp()
        y[lane] = s[slot]

    launch(kernel, numbers(32, I32), block=32)


@pair("data-race", "s[key[lane]] = s[key[lane]] + 1")
def a_histogram_without_atomics(bug: bool) -> None:
    @cute.kernel
    def kernel(key: cute.Tensor, y: cute.Tensor):
        lane, _, _ = cute.arch.thread_idx()
        s = shared(8, cutlass.Int32)
        if lane < 8:
            s[lane] = 0
        cute.arch.sync_warp()
        if cutlass.const_expr(bug):
            s[key[lane]] = s[key[lane]] + 1
        else:
            cute.arch.atomic_add(s.iterator + key[lane], cutlass.Int32(1))
        cute.arch.sync_warp()
        if lane < 8:
            y[lane] = s[lane]

    launch(kernel, numbers(32, I32) % 8, numbers(8, I32), block=32)


@pair("data-race", "s[lane] = x[lane]", "y[0] = s[31]")
def divergent_branches_exchange(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        lane, _, _ = cute.arch.thread_idx()
        s = shared(32)
        if lane >= 16:
            s[lane] = x[lane]
        if cutlass.const_expr(not bug):
            cute.arch.sync_warp()
        if lane == 0:
            y[0] = s[31]

    launch(kernel, numbers(32), numbers(1), block=32)


@pair("data-race", "g[lane] = x[lane]", "y[lane] = g[(lane + 1) % 32]")
def lanes_exchange_through_global_memory(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, g: cute.Tensor, y: cute.Tensor):
        lane, _, _ = cute.arch.thread_idx()
        g[lane] = x[lane]
        if cutlass.const_expr(not bug):
            cute.arch.sync_warp()
        y[lane] = g[(lane + 1) % 32]

    launch(kernel, numbers(32), numbers(32), numbers(32), block=32)


@pair("data-race", "warps[t // 32] = x[t]", "y[t] = warps[t // 32]")
def a_warps_part_result_read_by_its_own_lanes(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        warps = shared(2)
        if t % 32 == 31:
            warps[t // 32] = x[t]
        if cutlass.const_expr(not bug):
            cute.arch.sync_warp()
        y[t] = warps[t // 32]

    launch(kernel, numbers(64), numbers(64))


@pair("data-race", "flag[0] = 1", "while flag[0] == 0:")
def a_lane_spins_on_a_plain_flag(bug: bool) -> None:
    @cute.kernel
    def kernel(y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        flag = shared(1, cutlass.Int32)
        if t == 0:
            flag[0] = 0
        cute.arch.sync_threads()
        if cutlass.const_expr(bug):
            if t == 32:
                flag[0] = 1
            if t == 0:
                while flag[0] == 0:
                    pass
                y[0] = 1
        else:
            if t == 32:
                cute.arch.store(flag.iterator, cutlass.Int32(1), sem="release", scope="cta")
            if t == 0:
                while cute.arch.load(flag.iterator, sem="acquire", scope="cta") == 0:
                    pass
                y[0] = 1

    launch(kernel, numbers(1, I32))


def flagged(before: bool = True, after: bool = True) -> None:
    """A warp of block 0 writes and fences, one lane raises a flag; a lane of block 1 polls it, and its warp fences."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor, flag: cute.Tensor):
        lane, _, _ = cute.arch.thread_idx()
        if cute.arch.block_idx()[0] == 0:
            x[lane] = lane + 1
            cute.arch.threadfence()
            if cutlass.const_expr(before):
                cute.arch.sync_warp()
            if lane == 0:
                cute.arch.store(flag.iterator, cutlass.Int32(1), sem="relaxed", scope="gpu")
        else:
            if lane == 0:
                while cute.arch.load(flag.iterator, sem="relaxed", scope="gpu") == 0:
                    pass
            if cutlass.const_expr(after):
                cute.arch.sync_warp()
            cute.arch.threadfence()
            y[lane] = x[31 - lane]

    launch(kernel, numbers(32, I32), numbers(32, I32), np.zeros(1, I32), grid=2, block=32)


@pair("data-race", "x[lane] = lane + 1", "y[lane] = x[31 - lane]")
def a_flag_by_a_lane_whose_warp_has_fenced_and_not_synchronised(bug: bool) -> None:
    flagged(before=not bug)


@pair("data-race", "x[lane] = lane + 1", "y[lane] = x[31 - lane]")
def a_fence_of_lanes_that_have_not_read_the_flag(bug: bool) -> None:
    flagged(after=not bug)
