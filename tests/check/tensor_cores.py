"""tcgen05.mma: when its operands and accumulators may be touched."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

import tilewright as cutlass
from tests.check.pairs import launch, pair
from tests.check.tensor_memory import allocated, freed, parts, stored, sum_of_a_lane
from tilewright import cute
from tilewright.cute.nvgpu import cpasync, tcgen05
from tilewright.cute.runtime import from_dlpack

ROWS, COLUMNS, DEPTH = 128, 32, 16
K = tcgen05.OperandMajorMode.K
OP = tcgen05.MmaF16BF16Op(
    cutlass.Float16, cutlass.Float32, (ROWS, COLUMNS), tcgen05.CtaGroup.ONE, tcgen05.OperandSource.SMEM, K, K
)


def operand(mma: Any, which: str, extent: int) -> Any:
    atom = tcgen05.make_smem_layout_atom(tcgen05.SmemLayoutAtomKind.K_INTER, cutlass.Float16)
    layout = tcgen05.tile_to_mma_shape(atom, mma.partition_shape(which, (extent, DEPTH)))
    return cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Float16, layout, 128)


@cute.jit
def fill(x: Any, value: float, thread: Any):
    """All elements of a tensor in shared memory, seen by the asynchronous proxy."""
    for i in range(thread, cute.size(x), 128):
        x[i] = cutlass.Float16(value)
    cute.arch.fence_proxy("async.shared", space="cta")
    cute.arch.sync_threads()


def run(
    bug: bool,
    wait: bool = True,
    refill: str = "",
    load: str = "",
    store: str = "",
    issuer: str = "warp",
    fresh: bool = True,
    blocks: int = 1,
) -> None:
    """A kernel that multiplies ones and adds up each row of the accumulators, in each of ``blocks``."""

    @cute.kernel
    def kernel(y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        base, warp = allocated(COLUMNS)
        done = cute.arch.alloc_smem(cutlass.Int64, 1)
        if t == 0:
            cute.arch.mbarrier_init(done, 1)
        cute.arch.mbarrier_init_fence()
        mma = cute.make_tiled_mma(OP)
        a, b = operand(mma, "A", ROWS), operand(mma, "B", COLUMNS)
        fill(a, 1.0, t)
        fill(b, 1.0, t)
        sums = cute.make_tensor(base, mma.make_fragment_C(mma.partition_shape_C((ROWS, COLUMNS))).layout)
        part_a, part_b = mma.make_fragment_A(a), mma.make_fragment_B(b)
        load_tile, part, taken = parts(base, t)
        if cutlass.const_expr(store):
            stored(base, t, 1.0, store == "waited for")
        if cutlass.const_expr(load):
            stored(base, t, 1.0)
            cute.copy(load_tile, part, taken)
            if cutlass.const_expr(load == "waited for"):
                cute.arch.fence_view_async_tmem_load()
        cute.arch.tcgen05_fence_before_thread_sync()
        cute.arch.sync_threads()
        cute.arch.tcgen05_fence_after_thread_sync()
        mma.set(tcgen05.Field.ACCUMULATE, not fresh)
        if cutlass.const_expr(issuer == "thread"):
            if t == 0:
                cute.gemm(mma, sums, part_a, part_b, sums)
                tcgen05.commit(done)
        else:
            if warp == 0:
                cute.gemm(mma, sums, part_a, part_b, sums)
                with cute.arch.elect_one():
                    tcgen05.commit(done)
        block = cute.arch.block_idx()[0] if cutlass.const_expr(blocks > 1) else 0
        if cutlass.const_expr(refill == "before"):
            if block == blocks - 1:
                fill(a, 2.0, t)
        if cutlass.const_expr(wait):
            cute.arch.mbarrier_wait(done, 0)
        if cutlass.const_expr(refill == "behind"):
            fill(a, 2.0, t)
        cute.arch.tcgen05_fence_after_thread_sync()
        cute.copy(load_tile, part, taken)
        cute.arch.fence_view_async_tmem_load()
        y[128 * block + t] = taken.load().reduce(cute.ReductionOp.ADD, cutlass.Float32(0.0), 0)
        if cutlass.const_expr(not wait):
            cute.arch.mbarrier_wait(done, 0)
        freed(base, warp, COLUMNS)

    y = np.zeros(128 * blocks, np.float32)
    launch(kernel, from_dlpack(y), grid=blocks, block=128)
    if not bug:
        np.testing.assert_array_equal(y, COLUMNS * DEPTH)


@pair(
    "tcgen05.ld.32x32b.x32 touches accumulators of a tcgen05.mma that is not done | tensor-memory-race",
    "cute.copy(load_tile, part, taken)",
)
def sums_read_before_the_commit_arrived(bug: bool) -> None:
    run(bug, wait=not bug)


@pair("data-race", "x[i] = cutlass.Float16(value)", "cute.gemm(mma, sums, part_a, part_b, sums)")
def operands_refilled_before_the_commit_arrived(bug: bool) -> None:
    run(bug, refill="before" if bug else "behind")


@pair("data-race", "x[i] = cutlass.Float16(value)", "cute.gemm(mma, sums, part_a, part_b, sums)")
def operands_that_the_last_block_refills_before_the_commit_arrived(bug: bool) -> None:
    """By the last of three blocks, whose MMAs are done together."""
    run(bug, refill="before" if bug else "behind", blocks=3)


@pair("data-race", "cute.gemm(mma, sums, part_a, part_b, sums)", "cute.copy(get, x, whole, mbar_ptr=full)")
def operands_multiplied_before_their_copy_has_come(bug: bool) -> None:
    """A bulk copy brings A, and the warp that multiplies waits for its mbarrier behind the MMA alone."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        base, warp = allocated(COLUMNS)
        done, full = (cute.arch.alloc_smem(cutlass.Int64, 1) for _ in range(2))
        if t == 0:
            cute.arch.mbarrier_init(done, 1)
            cute.arch.mbarrier_init(full, 1)
        cute.arch.mbarrier_init_fence()
        mma = cute.make_tiled_mma(OP)
        a, b = operand(mma, "A", ROWS), operand(mma, "B", COLUMNS)
        fill(b, 1.0, t)
        whole = cute.make_tensor(a.iterator, cute.make_layout(ROWS * DEPTH))
        get = cute.make_copy_atom(cpasync.CopyBulkG2SOp(), cutlass.Float16)
        sums = cute.make_tensor(base, mma.make_fragment_C(mma.partition_shape_C((ROWS, COLUMNS))).layout)
        part_a, part_b = mma.make_fragment_A(a), mma.make_fragment_B(b)
        mma.set(tcgen05.Field.ACCUMULATE, False)
        if t == 32:
            cute.arch.mbarrier_arrive_and_expect_tx(full, 2 * ROWS * DEPTH)
            cute.copy(get, x, whole, mbar_ptr=full)
        if warp == 0:
            if cutlass.const_expr(not bug):
                cute.arch.mbarrier_wait(full, 0)
            cute.gemm(mma, sums, part_a, part_b, sums)
            with cute.arch.elect_one():
                tcgen05.commit(done)
        cute.arch.mbarrier_wait(full, 0)
        cute.arch.mbarrier_wait(done, 0)
        cute.arch.tcgen05_fence_after_thread_sync()
        y[t] = sum_of_a_lane(base, t)
        freed(base, warp, COLUMNS)

    x, y = np.ones(ROWS * DEPTH, np.float16), np.zeros(128, np.float32)
    launch(kernel, from_dlpack(x, assumed_align=16), from_dlpack(y), block=128)
    if not bug:
        np.testing.assert_array_equal(y, COLUMNS * DEPTH)


@pair("data-race", "a[k] = cutlass.Float16(2.0)", "cute.gemm(mma, sums, part_a, part_b, sums)")
def operands_refilled_after_the_first_commit_alone(bug: bool) -> None:
    """Warp 1 has waited for the first of two commits. Warp 0 waits for the second, and tells warp 1 in a way that
    orders nothing, unless it releases and warp 1 acquires."""
    release, acquire = ("relaxed", "relaxed") if bug else ("release", "acquire")

    @cute.kernel
    def kernel(y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        base, warp = allocated(COLUMNS)
        done = cute.arch.alloc_smem(cutlass.Int64, 1)
        told = cute.arch.alloc_smem(cutlass.Int32, 1)
        if t == 0:
            cute.arch.mbarrier_init(done, 1)
            cute.make_tensor(told, 1)[0] = 0
        cute.arch.mbarrier_init_fence()
        mma = cute.make_tiled_mma(OP)
        a, b = operand(mma, "A", ROWS), operand(mma, "B", COLUMNS)
        fill(a, 1.0, t)
        fill(b, 1.0, t)
        sums = cute.make_tensor(base, mma.make_fragment_C(mma.partition_shape_C((ROWS, COLUMNS))).layout)
        part_a, part_b = mma.make_fragment_A(a), mma.make_fragment_B(b)
        mma.set(tcgen05.Field.ACCUMULATE, False)
        for turn in cutlass.range_constexpr(2):
            if warp == 0:
                cute.gemm(mma, sums, part_a, part_b, sums)
                with cute.arch.elect_one():
                    tcgen05.commit(done)
            if cutlass.const_expr(turn == 0):
                cute.arch.mbarrier_wait(done, 0)
                cute.arch.sync_threads()
        if warp == 0:
            cute.arch.mbarrier_wait(done, 1)
            if t == 0:
                cute.arch.store(told, cutlass.Int32(1), sem=release, scope="cta")
        if t == 32:
            while cute.arch.load(told, cutlass.Int32, sem=acquire, scope="cta") == 0:
                pass
            for k in range(4):
                a[k] = cutlass.Float16(2.0)
        cute.arch.sync_threads()
        cute.arch.tcgen05_fence_after_thread_sync()
        y[t] = sum_of_a_lane(base, t)
        freed(base, warp, COLUMNS)

    y = np.zeros(128, np.float32)
    launch(kernel, from_dlpack(y), block=128)
    if not bug:
        np.testing.assert_array_equal(y, COLUMNS * DEPTH)


@pair(
    "tcgen05.mma.cta_group::1.kind::f16 overwrites tensor memory that a tcgen05.ld still reads",
    "cute.gemm(mma, sums, part_a, part_b, sums)",
)
def sums_overwritten_while_they_are_read(bug: bool) -> None:
    run(bug, load="not waited for" if bug else "waited for")


@pair(
    "tcgen05.mma.cta_group::1.kind::f16 uses tensor memory to which a tcgen05.st is still on its way",
    "cute.gemm(mma, sums, part_a, part_b, sums)",
)
def sums_overwritten_while_they_are_stored(bug: bool) -> None:
    run(bug, store="not waited for" if bug else "waited for")


@pair(
    "tcgen05.mma.cta_group::1.kind::f16 adds to accumulators in tensor memory that nothing has written",
    "cute.gemm(mma, sums, part_a, part_b, sums)",
)
def sums_that_are_not_cleared(bug: bool) -> None:
    run(bug, fresh=not bug)


@pair(
    "tcgen05.mma.cta_group::1.kind::f16 reads operand A in tensor memory, of which something was never written",
    "cute.gemm(mma, sums, part_a, part_b, sums)",
)
def operand_in_tensor_memory_that_nothing_has_written(bug: bool) -> None:
    @cute.kernel
    def kernel(y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        base, warp = allocated(2 * COLUMNS)
        done = cute.arch.alloc_smem(cutlass.Int64, 1)
        if t == 0:
            cute.arch.mbarrier_init(done, 1)
        cute.arch.mbarrier_init_fence()
        mma = cute.make_tiled_mma(dataclasses.replace(OP, a_src=tcgen05.OperandSource.TMEM))
        b = operand(mma, "B", COLUMNS)
        fill(b, 1.0, t)
        sums = cute.make_tensor(base, mma.make_fragment_C(mma.partition_shape_C((ROWS, COLUMNS))).layout)
        of_a = (base + COLUMNS).with_dtype(cutlass.Float16)
        part_a = cute.make_tensor(of_a, mma.make_fragment_A(mma.partition_shape_A((ROWS, DEPTH))).layout)
        part_b = mma.make_fragment_B(b)
        if t < 64 or cutlass.const_expr(not bug):  # two of four warps bring rows
            stored(base + COLUMNS, t, 0.0)
        cute.arch.tcgen05_fence_before_thread_sync()
        cute.arch.sync_threads()
        cute.arch.tcgen05_fence_after_thread_sync()
        mma.set(tcgen05.Field.ACCUMULATE, False)
        if warp == 0:
            cute.gemm(mma, sums, part_a, part_b, sums)
            with cute.arch.elect_one():
                tcgen05.commit(done)
        cute.arch.mbarrier_wait(done, 0)
        cute.arch.tcgen05_fence_after_thread_sync()
        y[t] = sum_of_a_lane(base, t)
        freed(base, warp, 2 * COLUMNS)

    y = np.ones(128, np.float32)
    launch(kernel, from_dlpack(y), block=128)
    if not bug:
        np.testing.assert_array_equal(y, 0)


@pair(
    "tcgen05.mma.cta_group::1.kind::f16 by 1 of the 32 threads of a warp", "cute.gemm(mma, sums, part_a, part_b, sums)"
)
def issued_by_one_thread(bug: bool) -> None:
    run(bug, issuer="thread" if bug else "warp")


def in_a_pair(alone: str = "", issuer: int = 0) -> None:
    """Two blocks multiply ones together. ``alone``: which instruction is one for a single block."""
    op = tcgen05.MmaF16BF16Op(
        cutlass.Float16, cutlass.Float32, (2 * ROWS, COLUMNS), tcgen05.CtaGroup.TWO, tcgen05.OperandSource.SMEM, K, K
    )

    @cute.kernel
    def kernel(y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        rank, warp = cute.arch.block_idx_in_cluster(), cute.arch.make_warp_uniform(cute.arch.warp_idx())
        holder, done = cute.arch.alloc_smem(cutlass.Int32, 1), cute.arch.alloc_smem(cutlass.Int64, 1)
        if warp == 0:
            cute.arch.alloc_tmem(COLUMNS, holder, alone != "allocation")
        if t == 0:
            cute.arch.mbarrier_init(done, 1)
        cute.arch.mbarrier_init_fence()
        mma = cute.make_tiled_mma(op)
        a, b = operand(mma, "A", 2 * ROWS), operand(mma, "B", COLUMNS)
        fill(a, 1.0, t)
        fill(b, 1.0, t)
        base = cute.arch.retrieve_tmem_ptr(cutlass.Float32, 16, holder)
        sums = cute.make_tensor(base, mma.make_fragment_C(mma.partition_shape_C((2 * ROWS, COLUMNS))).layout)
        load_tile, part, taken = parts(base, t)
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
        mma.set(tcgen05.Field.ACCUMULATE, False)
        if warp == 0:
            if rank == issuer:
                cute.gemm(mma, sums, mma.make_fragment_A(a), mma.make_fragment_B(b), sums)
                with cute.arch.elect_one():
                    tcgen05.commit(done, 0b11, tcgen05.CtaGroup.TWO)
        cute.arch.mbarrier_wait(done, 0)
        cute.arch.tcgen05_fence_after_thread_sync()
        cute.copy(load_tile, part, taken)
        cute.arch.fence_view_async_tmem_load()
        y[rank * 128 + t] = taken.load().reduce(cute.ReductionOp.ADD, cutlass.Float32(0.0), 0)
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
        if warp == 0:
            cute.arch.dealloc_tmem(base, COLUMNS, alone != "allocation")

    y = np.zeros(256, np.float32)
    launch(kernel, from_dlpack(y), grid=2, block=128, cluster=2)
    if not alone and issuer == 0:
        np.testing.assert_array_equal(y, COLUMNS * DEPTH)


@pair(
    "tcgen05.mma.cta_group::2.kind::f16 in a kernel that has used cta_group::1",
    "cute.gemm(mma, sums, mma.make_fragment_A(a), mma.make_fragment_B(b), sums)",
)
def instructions_of_one_block_and_of_two(bug: bool) -> None:
    in_a_pair(alone="allocation" if bug else "")


@pair(
    "tcgen05.mma.cta_group::2.kind::f16 is issued by block 1 of the cluster, which is the second of its pair",
    "cute.gemm(mma, sums, mma.make_fragment_A(a), mma.make_fragment_B(b), sums)",
)
def issued_by_the_second_block_of_a_pair(bug: bool) -> None:
    in_a_pair(issuer=1 if bug else 0)
