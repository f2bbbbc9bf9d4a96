"""``tcgen05.mma`` with operand A in tensor memory, and with accumulators of 16 bits."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilewright as cutlass
from tests.blackwell.test_mma import KINDS, ONE, SMEM, K, in_shared_memory, padded
from tests.blackwell.test_tensor_memory import allocated
from tests.check.pairs import launch
from tilewright import cute
from tilewright.cute.nvgpu import tcgen05
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ConstraintError

TMEM = tcgen05.OperandSource.TMEM
ROWS, COLUMNS, DEPTH = 128, 32, 32


def op_of(acc: Any, source: Any) -> Any:
    return tcgen05.MmaF16BF16Op(cutlass.Float16, acc, (ROWS, COLUMNS), ONE, source, K, K)


def multiply(op: Any, held: Any = cutlass.Float16) -> Any:
    """A kernel of one block: the words of the columns of x * w * 2; A is where ``op`` has it, in elements ``held``."""
    n, acc, per = COLUMNS, op.acc_dtype, 32 // held.width

    @cute.kernel
    def kernel(x: cute.Tensor, w: cute.Tensor, y: cute.Tensor):
        base, warp = allocated(128, acc)
        t, _, _ = cute.arch.thread_idx()
        done = cute.arch.alloc_smem(cutlass.Int64, 1)
        if t == 0:
            cute.arch.mbarrier_init(done, 1)
        cute.arch.mbarrier_init_fence()
        mma = cute.make_tiled_mma(op)
        block = mma.get_slice(0)
        b = in_shared_memory(mma, "B", held, (n, DEPTH), KINDS.K_SW32)
        own_w = block.partition_B(w)
        for i in range(t, cute.size(b), 128):
            b[i] = own_w[i]
        if cutlass.const_expr(op.a_src is TMEM):
            layout = mma.make_fragment_A(mma.partition_shape_A((ROWS, DEPTH))).layout  # (MMA, MMA_M, MMA_K), packed
            place = (base + 64 * 32 // acc.width).with_dtype(held)  # 64 columns on
            part_a = cute.make_tensor(place, layout)
            rows = cute.make_tensor(place, cute.make_layout((ROWS, DEPTH), stride=(per * 65536, 1)))
            atom = cute.make_copy_atom(tcgen05.St32x32bOp(tcgen05.Repetition(DEPTH // per)), held)
            store = tcgen05.make_tmem_copy(atom, rows)
            mine = store.get_slice(t)
            given = cute.make_rmem_tensor(mine.partition_S(x).shape, held)
            cute.autovec_copy(mine.partition_S(x), given)
            cute.copy(store, given, mine.partition_D(rows))
            cute.arch.fence_view_async_tmem_store()
            cute.arch.tcgen05_fence_before_thread_sync()
        else:
            a = in_shared_memory(mma, "A", held, (ROWS, DEPTH), KINDS.K_SW32)
            own_x = block.partition_A(x)
            for i in range(t, cute.size(a), 128):
                a[i] = own_x[i]
            part_a = mma.make_fragment_A(a)
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_threads()
        cute.arch.tcgen05_fence_after_thread_sync()
        sums = cute.make_tensor(base, mma.make_fragment_C(mma.partition_shape_C((ROWS, n))).layout)
        if warp == 0:
            mma.set(tcgen05.Field.ACCUMULATE, False)
            cute.gemm(mma, sums, part_a, mma.make_fragment_B(b), sums)
            mma.set(tcgen05.Field.ACCUMULATE, True)
            cute.gemm(mma, sums, part_a, mma.make_fragment_B(b), sums)
            with cute.arch.elect_one():
                tcgen05.commit(done)
        cute.arch.mbarrier_wait(done, 0)
        cute.arch.tcgen05_fence_after_thread_sync()
        words = cute.make_tensor(base.with_dtype(cutlass.Int32), cute.make_layout((ROWS, n), stride=(65536, 1)))
        load = tcgen05.make_tmem_copy(
            cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition(n)), cutlass.Int32), words
        )
        mine = load.get_slice(t)
        taken = cute.make_rmem_tensor(mine.partition_D(y).shape, cutlass.Int32)
        cute.copy(load, mine.partition_S(words), taken)
        cute.arch.fence_view_async_tmem_load()
        cute.autovec_copy(taken, mine.partition_D(y))
        cute.arch.sync_threads()
        if warp == 0:
            cute.arch.dealloc_tmem(base, 128)

    return kernel


@pytest.mark.parametrize("acc, source", [(cutlass.Float32, TMEM), (cutlass.Float16, SMEM), (cutlass.Float16, TMEM)])
def test_products_of_integers(acc: Any, source: Any) -> None:
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-3, 4, (extent, DEPTH)).astype(np.float16) for extent in (ROWS, COLUMNS))
    y = np.zeros((ROWS, COLUMNS), np.int32)
    launch(multiply(op_of(acc, source)), from_dlpack(x), from_dlpack(w), from_dlpack(y), block=128)
    expected = 2 * (x.astype(np.float32) @ w.astype(np.float32).T)
    found = y.view(np.float32) if acc is cutlass.Float32 else (y & 0xFFFF).astype(np.uint16).view(np.float16)
    np.testing.assert_array_equal(found.astype(np.float32), expected)


@pytest.mark.parametrize("kind", [cutlass.Float4E2M1FN, cutlass.Float6E3M2FN])
def test_numbers_of_4_and_6_bits(kind: Any) -> None:
    """In tensor memory each number of A has a byte, 4 bits are in its middle."""
    op = tcgen05.MmaF8F6F4Op(kind, cutlass.Float4E2M1FN, cutlass.Float32, (ROWS, COLUMNS), ONE, TMEM, K, K)
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-3, 4, (extent, DEPTH)) for extent in (ROWS, COLUMNS))
    four = kind is cutlass.Float4E2M1FN
    numpy_kind = ml_dtypes.float4_e2m1fn if four else ml_dtypes.float6_e3m2fn
    given = x.astype(numpy_kind).view(np.uint8) << (2 if four else 0)
    y = np.zeros((ROWS, COLUMNS), np.int32)
    launch(multiply(op, cutlass.Uint8), *map(from_dlpack, (given, padded(w, 4, K), y)), block=128)
    np.testing.assert_array_equal(y.view(np.float32), 2 * (x @ w.T))


def multiply_in_pairs(m: int) -> Any:
    """A kernel of a pair of blocks, whose A is in the tensor memory of each; 64 rows of a block are there twice."""
    op = tcgen05.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (m, COLUMNS), tcgen05.CtaGroup.TWO, TMEM, K, K)
    rows, per_lane = m // 2, COLUMNS * m // 256

    @cute.kernel
    def kernel(x: cute.Tensor, w: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        rank, warp = cute.arch.block_idx_in_cluster(), cute.arch.make_warp_uniform(cute.arch.warp_idx())
        holder, done = cute.arch.alloc_smem(cutlass.Int32, 1), cute.arch.alloc_smem(cutlass.Int64, 1)
        if warp == 0:
            cute.arch.alloc_tmem(128, holder, True)
        if t == 0:
            cute.arch.mbarrier_init(done, 1)
        cute.arch.mbarrier_init_fence()
        mma = cute.make_tiled_mma(op)
        b = in_shared_memory(mma, "B", cutlass.Float16, (COLUMNS, DEPTH), KINDS.K_SW32)
        own_w = mma.get_slice(rank).partition_B(w)
        for i in range(t, cute.size(b), 128):
            b[i] = own_w[i]
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_threads()
        base = cute.arch.retrieve_tmem_ptr(cutlass.Float32, 16, holder)
        place = (base + 64).with_dtype(cutlass.Float16)  # 64 columns on
        part_a = cute.make_tensor(place, mma.make_fragment_A(mma.partition_shape_A((m, DEPTH))).layout)
        lanes = cute.make_tensor(place, cute.make_layout((128, DEPTH), stride=(2 * 65536, 1)))
        atom = cute.make_copy_atom(tcgen05.St32x32bOp(tcgen05.Repetition.x16), cutlass.Float16)
        store = tcgen05.make_tmem_copy(atom, lanes)
        mine = store.get_slice(t).partition_D(lanes)
        shape = store.get_slice(t).partition_S(cute.make_identity_tensor((128, DEPTH))).shape
        given = cute.make_rmem_tensor(shape, cutlass.Float16)
        for i in cutlass.range_constexpr(DEPTH):
            given[i] = x[rank * rows + t % rows, i]
        cute.copy(store, given, mine)
        cute.arch.fence_view_async_tmem_store()
        cute.arch.tcgen05_fence_before_thread_sync()
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
        cute.arch.tcgen05_fence_after_thread_sync()
        sums = cute.make_tensor(base, mma.make_fragment_C(mma.partition_shape_C((m, COLUMNS))).layout)
        if warp == 0:
            if rank == 0:
                mma.set(tcgen05.Field.ACCUMULATE, False)
                cute.gemm(mma, sums, part_a, mma.make_fragment_B(b), sums)
                with cute.arch.elect_one():
                    tcgen05.commit(done, 0b11, tcgen05.CtaGroup.TWO)
        cute.arch.mbarrier_wait(done, 0)
        cute.arch.tcgen05_fence_after_thread_sync()
        words = cute.make_tensor(base, cute.make_layout((128, per_lane), stride=(65536, 1)))
        load = tcgen05.make_tmem_copy(
            cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition(per_lane)), cutlass.Float32), words
        )
        part = load.get_slice(t).partition_S(words)
        shape = load.get_slice(t).partition_D(cute.make_identity_tensor((128, per_lane))).shape
        taken = cute.make_rmem_tensor(shape, cutlass.Float32)
        cute.copy(load, part, taken)
        cute.arch.fence_view_async_tmem_load()
        for i in cutlass.range_constexpr(per_lane):
            y[rank * rows + t % rows, t // rows * per_lane + i] = taken[i]
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
        if warp == 0:
            cute.arch.dealloc_tmem(base, 128, True)

    return kernel


@pytest.mark.parametrize("m", [128, 256])
def test_a_pair_of_blocks(m: int) -> None:
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-3, 4, (extent, DEPTH)).astype(np.float16) for extent in (m, COLUMNS))
    y = np.zeros((m, COLUMNS), np.float32)
    launch(multiply_in_pairs(m), from_dlpack(x), from_dlpack(w), from_dlpack(y), grid=2, block=128, cluster=2)
    np.testing.assert_array_equal(y, x.astype(np.float32) @ w.astype(np.float32).T)


def test_accumulators_of_16_bits_are_rounded_after_each_instruction() -> None:
    """2049 is 2048 in Float16, and 2049 again with the 1 of the second instruction; exact sums would be 4100."""
    x, w = np.zeros((ROWS, DEPTH), np.float16), np.ones((COLUMNS, DEPTH), np.float16)
    x[:, 0], x[:, 1], x[:, 16] = 2048, 1, 1
    y = np.zeros((ROWS, COLUMNS), np.int32)
    kernel = multiply(op_of(cutlass.Float16, SMEM))
    launch(kernel, from_dlpack(x), from_dlpack(w), from_dlpack(y), block=128)
    np.testing.assert_array_equal((y & 0xFFFF).astype(np.uint16).view(np.float16), 4096)


def test_the_text_with_a_in_tensor_memory_is_assembled() -> None:
    pytest.importorskip("cuda.bindings.nvrtc")
    from tilewright.cuda import compile as build

    kernel = multiply(op_of(cutlass.Float32, TMEM))
    shapes = ((ROWS, DEPTH, np.float16), (COLUMNS, DEPTH, np.float16), (ROWS, COLUMNS, np.int32))
    arrays = [from_dlpack(np.zeros((m, n), dtype)) for m, n, dtype in shapes]

    @cute.jit
    def host(x: cute.Tensor, w: cute.Tensor, y: cute.Tensor):
        kernel(x, w, y).launch(grid=(1, 1, 1), block=(128, 1, 1))

    made = build(cute.compile(host, *arrays).kernels[0], "sm_100a")
    assert made.spills == 0 and "tcgen05.mma.cta_group::1.kind::f16" in made.ptx


def test_refusals() -> None:
    with pytest.raises(ConstraintError, match="A in tensor memory is K-major"):
        tcgen05.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (128, 32), ONE, TMEM, tcgen05.OperandMajorMode.MN, K)

    @cute.kernel
    def kernel(y: cute.Tensor):
        mma = cute.make_tiled_mma(op_of(cutlass.Float32, SMEM))
        a, b = (in_shared_memory(mma, x, cutlass.Float16, (n, 16), KINDS.K_SW32) for x, n in (("A", 128), ("B", 32)))
        sums = mma.make_fragment_C(mma.partition_shape_C((128, 32)))
        wrong = cute.make_tensor(sums.iterator, cute.make_layout(((128, 32), 1, 1), stride=((65536, 2), 0, 0)))
        cute.gemm(mma, wrong, mma.make_fragment_A(a), mma.make_fragment_B(b), wrong)

    with pytest.raises(
        ConstraintError, match="128x32 elements of D are at .* make it with the layout of make_fragment_C"
    ):
        launch(kernel, np.zeros(1, np.float32), block=32)


def test_c_is_d_where_the_same_numbers_name_its_place() -> None:
    """A stage that is chosen at run time may be written twice; another stage is refused."""

    def kernel_of(c_stage: Any) -> Any:
        @cute.kernel
        def kernel(y: cute.Tensor):
            mma = cute.make_tiled_mma(op_of(cutlass.Float32, SMEM))
            a, b = (
                in_shared_memory(mma, x, cutlass.Float16, (n, 16), KINDS.K_SW32) for x, n in (("A", 128), ("B", 32))
            )
            sums = mma.make_fragment_C(cute.append(mma.partition_shape_C((128, 32)), 2))
            stage = cute.arch.block_idx()[0] % 2
            d, c = sums[None, None, None, stage], sums[None, None, None, c_stage(stage)]
            mma.set(tcgen05.Field.ACCUMULATE, False)
            cute.gemm(mma, d, mma.make_fragment_A(a), mma.make_fragment_B(b), c)

        @cute.jit
        def host(y: cute.Tensor):
            kernel(y).launch(grid=(1, 1, 1), block=(32, 1, 1))

        return cute.compile(host, from_dlpack(np.zeros(4, np.float32)))

    assert kernel_of(lambda stage: stage).kernels
    with pytest.raises(ConstraintError, match="C must be D, which is in tensor memory"):
        kernel_of(lambda stage: stage ^ 1)
