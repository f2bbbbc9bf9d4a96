"""Blocks and kernels that hand each other data: queues, locks, mailboxes of a cluster, kernels that overlap."""

from __future__ import annotations

import numpy as np

import tilewright as cutlass
from tests.check.pairs import launch, numbers, pair, shared
from tilewright import cute

I32 = np.int32
TWO = numbers(128).reshape(2, 64)


def mailbox(data: bool = False, back: bool = True, scope: str = "gpu", order: str = "release") -> None:
    """Block 0 sends three messages through one place; block 1 answers each before the next one may be written."""

    @cute.kernel
    def kernel(x: cute.Tensor, box: cute.Tensor, flags: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        sent, seen = flags.iterator, flags.iterator + 1
        for k in cutlass.range(3):
            if b == 0:
                if cutlass.const_expr(back):
                    if t == 0:
                        while cute.arch.load(seen, sem="acquire", scope="gpu") < k:
                            pass
                    cute.arch.sync_threads()
                box[t] = x[t] + k
                cute.arch.sync_threads()
                if t == 0:
                    cute.arch.store(sent, k + 1, sem=order, scope=scope)
            else:
                if t == 0:
                    while cute.arch.load(sent, sem="acquire", scope="gpu") < k + 1:
                        pass
                cute.arch.sync_threads()
                y[k, t] = box[t]
                cute.arch.sync_threads()
                if t == 0:
                    cute.arch.store(seen, k + 1, sem="release", scope="gpu")

    launch(kernel, numbers(64), numbers(64), np.zeros(2, I32), np.zeros((3, 64), np.float32), grid=2)


PUT, GET = "box[t] = x[t] + k", "y[k, t] = box[t]"


@pair("data-race", PUT, GET)
def a_message_written_over_before_it_is_read(bug: bool) -> None:
    mailbox(back=not bug)


@pair("data-race", PUT, GET)
def messages_announced_in_the_scope_of_the_cluster(bug: bool) -> None:
    mailbox(scope="cluster" if bug else "gpu")


@pair("data-race", PUT, GET)
def messages_announced_without_a_release(bug: bool) -> None:
    mailbox(order="relaxed" if bug else "release")


def stack(fence: bool = True, acquire: bool = True) -> None:
    """Each block pushes a value: a slot by an atomic, the value, then a count; the last block adds up."""

    @cute.kernel
    def kernel(top: cute.Tensor, values: cute.Tensor, total: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        if t == 0:
            slot = cute.arch.atomic_add(top.iterator, cutlass.Int32(1))
            values[slot] = b + 1
            if cutlass.const_expr(fence):
                cute.arch.threadfence()
            done = cute.arch.atomic_add(top.iterator + 1, cutlass.Int32(1))
            if done == 3:
                if cutlass.const_expr(acquire):
                    cute.arch.threadfence()
                for k in cutlass.range(4):
                    total[0] = total[0] + values[k]

    launch(kernel, np.zeros(2, I32), np.zeros(4, I32), np.zeros(1, I32), grid=4, block=32)


@pair("data-race", "values[slot] = b + 1", "total[0] = total[0] + values[k]")
def values_of_a_stack_that_are_not_published(bug: bool) -> None:
    stack(fence=not bug)


@pair("data-race", "values[slot] = b + 1", "total[0] = total[0] + values[k]")
def values_of_a_stack_read_without_a_fence(bug: bool) -> None:
    stack(acquire=not bug)


@pair("data-race", "cute.arch.atomic_add(count.iterator, cutlass.Int32(1))", "y[b] = count[0]")
def a_plain_read_beside_atomics(bug: bool) -> None:
    @cute.kernel
    def kernel(count: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        cute.arch.atomic_add(count.iterator, cutlass.Int32(1))
        if t == 0:
            if cutlass.const_expr(bug):
                y[b] = count[0]
            else:
                y[b] = cute.arch.load(count.iterator, sem="relaxed", scope="gpu")

    launch(kernel, np.zeros(1, I32), np.zeros(4, I32), grid=4, block=32)


@pair("data-race", "y[i] = y[i - 1] + y[i + 1]")
def a_stencil_whose_output_is_its_input(bug: bool) -> None:
    """The same array is given twice, under two names."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        i = b * 32 + t + 1
        if i < 127:
            if cutlass.const_expr(bug):
                y[i] = y[i - 1] + y[i + 1]
            else:
                y[i] = x[i - 1] + x[i + 1]

    launch(kernel, numbers(128), numbers(128), grid=4, block=32)


@pair("data-race", "y[i] = x[i - 1] + x[i + 1]")
def one_array_as_input_and_output(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        i = b * 32 + t + 1
        if i < 127:
            y[i] = x[i - 1] + x[i + 1]

    x = numbers(128)
    launch(kernel, x, x if bug else x.copy(), grid=4, block=32)


@pair("data-race", "wants[me] = 1", "while wants[1 - me] == 1 and wants[2] != me:")
def petersons_lock_of_plain_variables(bug: bool) -> None:
    """Two warps exclude each other by plain flags; with a lock by atomics there is no race."""

    @cute.kernel
    def kernel(wants: cute.Tensor, critical: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        me = t // 32
        if t % 32 == 0:
            if cutlass.const_expr(bug):
                wants[me] = 1
                wants[2] = 1 - me
                while wants[1 - me] == 1 and wants[2] != me:
                    pass
                critical[0] = critical[0] + 1
                wants[me] = 0
            else:
                while cute.arch.atomic_cas(wants.iterator, cmp=0, val=1, sem="acquire", scope="cta") != 0:
                    pass
                critical[0] = critical[0] + 1
                cute.arch.store(wants.iterator, 0, sem="release", scope="cta")

    launch(kernel, np.zeros(3, I32), np.zeros(1, I32))


@pair("data-race", "y[b, t] = x[b, t] * 2", "z[b, t] = y[b ^ 1, t]")
def a_barrier_of_the_grid_in_the_scope_of_the_block(bug: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor, count: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        y[b, t] = x[b, t] * 2
        cute.arch.sync_threads()
        if t == 0:
            scope = "cta" if cutlass.const_expr(bug) else "gpu"
            cute.arch.atomic_add(count.iterator, cutlass.Int32(1), sem="release", scope="gpu")
            while cute.arch.load(count.iterator, sem="acquire", scope=scope) < 2:
                pass
        cute.arch.sync_threads()
        z[b, t] = y[b ^ 1, t]

    launch(kernel, TWO, np.zeros_like(TWO), np.zeros_like(TWO), np.zeros(1, I32), grid=2)


@pair("data-race", "y[b, t] = x[b, t] + 1", "x[b, t] = y[b ^ 1, t]")
def rounds_of_a_grid_barrier_that_count_from_zero_again(bug: bool) -> None:
    """The second round waits for the count of the first."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor, count: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        for k in cutlass.range(2):
            y[b, t] = x[b, t] + 1
            for half in cutlass.range_constexpr(2):
                if cutlass.const_expr(half == 1):
                    x[b, t] = y[b ^ 1, t]
                cute.arch.sync_threads()
                if t == 0:
                    cute.arch.atomic_add(count.iterator, cutlass.Int32(1), sem="release", scope="gpu")
                    goal = 2 if cutlass.const_expr(bug) else 4 * k + 2 * half + 2
                    while cute.arch.load(count.iterator, sem="acquire", scope="gpu") < goal:
                        pass
                cute.arch.sync_threads()

    launch(kernel, TWO, np.zeros_like(TWO), np.zeros(1, I32), grid=2)


# -- clusters ----------------------------------------------------------------------------------------------------------


def pass_on(first: bool = True, last: bool = True, relaxed: bool = False, own: bool = False) -> None:
    """Each block of four gives its row to the next one, which stores it."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        s = shared(64)
        rank = cute.arch.block_idx_in_cluster()
        if cutlass.const_expr(first):
            cute.arch.cluster_arrive_relaxed()
            cute.arch.cluster_wait()
        theirs = cute.make_tensor(cute.arch.mapa(s.iterator, (rank + 1) % 4), s.layout)
        theirs[t] = x[b, t]
        if cutlass.const_expr(relaxed):
            cute.arch.cluster_arrive_relaxed()
        else:
            cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
        y[b, t] = s[t] if cutlass.const_expr(not own) else theirs[t]
        if cutlass.const_expr(last):
            cute.arch.cluster_arrive()
            cute.arch.cluster_wait()

    launch(kernel, numbers(256).reshape(4, 64), np.zeros((4, 64), np.float32), grid=4, cluster=4)


@pair("unstarted-block", "theirs[t] = x[b, t]")
def a_row_for_a_block_that_may_not_have_begun(bug: bool) -> None:
    pass_on(first=not bug)


@pair("data-race", "theirs[t] = x[b, t]", "y[b, t] = s[t] if cutlass.const_expr(not own) else theirs[t]")
def a_row_passed_on_by_a_relaxed_barrier(bug: bool) -> None:
    pass_on(relaxed=bug)


@pair("exited-block", "y[b, t] = s[t] if cutlass.const_expr(not own) else theirs[t]")
def a_row_read_from_a_block_that_may_have_ended(bug: bool) -> None:
    pass_on(own=True, last=not bug)


def collect(barrier: bool = True, begun: bool = True, count: int = 4) -> None:
    """Every block of a cluster writes into block 0 and arrives at its mbarrier; block 0 adds up."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        full = cute.arch.alloc_smem(cutlass.Int64, 1)
        s = shared(64)
        rank = cute.arch.block_idx_in_cluster()
        if t == 0:
            cute.arch.mbarrier_init(full, count)
            cute.arch.mbarrier_init_fence()
        if cutlass.const_expr(begun):
            cute.arch.cluster_arrive()
            cute.arch.cluster_wait()
        else:
            cute.arch.sync_threads()
        root = cute.make_tensor(cute.arch.mapa(s.iterator, 0), s.layout)
        if t < 16:
            root[rank * 16 + t] = x[b, t]
        if cutlass.const_expr(barrier):
            cute.arch.sync_threads()
        if t == 0:
            cute.arch.mbarrier_arrive(full, 0)
        if rank == 0:
            cute.arch.mbarrier_wait(full, 0)
            y[t] = s[t]
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()

    launch(kernel, numbers(256).reshape(4, 64), np.zeros(64, np.float32), grid=4, cluster=4)


@pair("data-race", "root[rank * 16 + t] = x[b, t]", "y[t] = s[t]")
def one_thread_arrives_for_sixteen_that_write(bug: bool) -> None:
    collect(barrier=not bug)


@pair("unstarted-block | mbarrier-init | mbarrier.arrive on shared-memory offset 0", "root[rank * 16 + t] = x[b, t]")
def an_mbarrier_of_a_block_that_need_not_have_begun(bug: bool) -> None:
    collect(begun=not bug)


@pair("data-race", "root[rank * 16 + t] = x[b, t]", "y[t] = s[t]")
def a_count_of_fewer_blocks_than_write(bug: bool) -> None:
    collect(count=2 if bug else 4)


# -- kernels of one stream ---------------------------------------------------------------------------------------------


@cute.kernel
def produce(x: cute.Tensor, y: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    cute.arch.griddepcontrol_launch_dependents()
    y[t] = x[t] + 1


@cute.kernel
def overwrite(x: cute.Tensor, y: cute.Tensor, waits: cutlass.Constexpr):
    t, _, _ = cute.arch.thread_idx()
    if cutlass.const_expr(waits):
        cute.arch.griddepcontrol_wait()
    y[t] = 0.0


@cute.kernel
def follow(x: cute.Tensor, y: cute.Tensor, who: cutlass.Constexpr):
    t, _, _ = cute.arch.thread_idx()
    if cutlass.const_expr(who == "thread 0"):
        if t == 0:
            cute.arch.griddepcontrol_wait()
    if cutlass.const_expr(who == "warp 0"):
        if t < 32:
            cute.arch.griddepcontrol_wait()
    if cutlass.const_expr(who == "all"):
        cute.arch.griddepcontrol_wait()
    y[t] = x[63 - t]


def overlapping(kernel, *more) -> None:
    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor) -> None:
        produce(x, y).launch(grid=(1, 1, 1), block=(64, 1, 1))
        kernel(y, z, *more).launch(grid=(1, 1, 1), block=(64, 1, 1), use_pdl=True)

    host(numbers(64), np.zeros(64, np.float32), np.zeros(64, np.float32))


@pair("griddepcontrol-wait", "y[t] = x[63 - t]")
def one_warp_waits_for_the_kernel_before(bug: bool) -> None:
    overlapping(follow, "warp 0" if bug else "all")


def written_over(bug: bool, written: bool) -> None:
    """The second kernel writes what the first has written, or what it reads."""

    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor) -> None:
        produce(x, y).launch(grid=(1, 1, 1), block=(64, 1, 1))
        if cutlass.const_expr(written):
            overwrite(x, y, not bug).launch(grid=(1, 1, 1), block=(64, 1, 1), use_pdl=True)
        else:
            overwrite(y, x, not bug).launch(grid=(1, 1, 1), block=(64, 1, 1), use_pdl=True)

    host(numbers(64), np.zeros(64, np.float32))


@pair("griddepcontrol-wait", "y[t] = 0.0")
def a_kernel_writes_what_the_one_before_writes(bug: bool) -> None:
    written_over(bug, written=True)


@pair("griddepcontrol-wait", "y[t] = 0.0")
def a_kernel_writes_what_the_one_before_reads(bug: bool) -> None:
    written_over(bug, written=False)


@pair("data-race", "where[0] = i")
def a_largest_element_and_its_place_in_two_steps(bug: bool) -> None:
    """The largest element comes from an atomic; its place is that of the thread that stores last."""

    @cute.kernel
    def kernel(x: cute.Tensor, best: cute.Tensor, where: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        i = b * 32 + t
        old = cute.arch.atomic_max(best.iterator, x[i])
        if cutlass.const_expr(bug):
            if old < x[i]:
                where[0] = i
        else:
            if old < x[i]:
                cute.arch.atomic_max(where.iterator, i)

    launch(kernel, numbers(64, I32), np.zeros(1, I32), np.zeros(1, I32), grid=2, block=32)


@pair("data-race", "box[t] = x[t]", "y[t] = box[t]")
def half_of_the_threads_wait_for_a_flag(bug: bool) -> None:
    """Each thread waits for itself, so no barrier is needed; with the bug, only the even ones do."""

    @cute.kernel
    def kernel(x: cute.Tensor, box: cute.Tensor, flag: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        if b == 0:
            box[t] = x[t]
            cute.arch.sync_threads()
            if t == 0:
                cute.arch.store(flag.iterator, 1, sem="release", scope="gpu")
        else:
            if t % 2 == 0 or cutlass.const_expr(not bug):
                while cute.arch.load(flag.iterator, sem="acquire", scope="gpu") < 1:
                    pass
            y[t] = box[t]

    launch(kernel, numbers(64), numbers(64), np.zeros(1, I32), numbers(64), grid=2)


def publishers(kind: str, need: int, first: bool = False) -> None:
    """Two blocks write their halves and count; the third waits for a count and reads both halves (or the first)."""

    @cute.kernel
    def kernel(count: cute.Tensor, d: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        if b < 2:
            d[b, t] = b + 1.0
            cute.arch.sync_threads()
            if t == 0:
                if cutlass.const_expr(kind == "add"):
                    cute.arch.atomic_add(count.iterator, cutlass.Int32(1), sem="acq_rel", scope="gpu")
                elif cutlass.const_expr(kind == "or"):
                    cute.arch.atomic_or(count.iterator, cutlass.Int32(1) << b, sem="release", scope="gpu")
                else:
                    cute.arch.atomic_max(count.iterator, b + 1, sem="release", scope="gpu")
        else:
            if t == 0:
                while cute.arch.load(count.iterator, sem="acquire", scope="gpu") < need:
                    pass
            cute.arch.sync_threads()
            y[t] = d[0, t]
            if cutlass.const_expr(not first):
                y[t] += d[1, t]

    launch(kernel, np.zeros(1, I32), np.zeros((2, 64), np.float32), np.zeros(64, np.float32), grid=3)


FILL, TAKE = "d[b, t] = b + 1.0", "y[t] = d[0, t]"


@pair("data-race", FILL, TAKE)
def one_of_two_publishers_is_waited_for_and_any_value_taken(bug: bool) -> None:
    publishers("add", need=1 if bug else 2)


@pair("data-race", FILL, TAKE)
def one_of_two_publishers_is_waited_for_and_the_half_of_one_is_read(bug: bool) -> None:
    publishers("add", need=1 if bug else 2, first=True)


@pair("data-race", FILL, TAKE)
def a_counter_published_by_the_largest_number_instead_of_a_sum(bug: bool) -> None:
    publishers("max" if bug else "add", need=2)


@pair("data-race", FILL, TAKE)
def a_bit_of_each_publisher_and_one_that_is_not_waited_for(bug: bool) -> None:
    publishers("or", need=2 if bug else 3)
