"""What libraries call of ``cutlass.experimental.primitives``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tests.cuda.build import needs_nvrtc
from tilewright import Float32, cute
from tilewright.cuda import emit
from tilewright.errors import ConstraintError, SimulationError
from tilewright.experimental import primitives as prims
from tilewright.testing import per_thread


def aligned(values: Any, dtype: Any) -> Any:
    """An array that begins at a multiple of 16 bytes, as bulk copies need it."""
    values = np.asarray(values, dtype)
    space = np.zeros(values.nbytes + 16, np.uint8)
    found = space[-space.ctypes.data % 16 :][: values.nbytes].view(dtype)
    found[:] = values
    return found


def stored(out: Any, dtype: Any, issue: Any, waits: bool = True) -> Any:
    """``out`` after one thread has issued ``issue(destination, source, bytes)`` for 0, 1, 2, ... in shared memory."""
    n = len(out)

    @cute.kernel
    def kernel(out: cute.Tensor) -> None:
        t, _, _ = cute.arch.thread_idx()
        part = cutlass.utils.SmemAllocator().allocate_tensor(dtype, cute.make_layout(n), 16)
        if t < n:
            part[t] = dtype(t)
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_threads()
        if t == 0:
            issue(out.iterator.to_llvm_ptr(), part.iterator.to_llvm_ptr(), n * dtype.width // 8)
            cute.arch.cp_async_bulk_commit_group()
            if cutlass.const_expr(waits):
                cute.arch.cp_async_bulk_wait_group(0)

    @cute.jit
    def host(out: cute.Tensor) -> None:
        kernel(out).launch(grid=(1, 1, 1), block=(32, 1, 1))

    host(out)
    return out.tolist()


def test_bulk_stores() -> None:
    assert stored(aligned([9] * 8, np.int32), cutlass.Int32, prims.cp_async_bulk_global_shared_cta) == list(range(8))


@pytest.mark.parametrize(
    ("op", "type", "dtype", "before", "expected"),
    [
        ("add", "f32", Float32, [0.5] * 8, [0.5 + i for i in range(8)]),
        ("add", "f16", cutlass.Float16, [2] * 8, [2 + i for i in range(8)]),
        ("max", "s32", cutlass.Int32, [3] * 8, [max(3, i) for i in range(8)]),
        ("min", "u32", cutlass.Uint32, [3] * 8, [min(3, i) for i in range(8)]),
        ("xor", "b32", cutlass.Int32, [5] * 8, [5 ^ i for i in range(8)]),
    ],
)
def test_bulk_reductions(op: str, type: str, dtype: Any, before: list[Any], expected: list[Any]) -> None:
    how = {"op": prims.CpReduceOp(op), "type": prims.CpReduceType(type), "noftz": type == "f16"}
    out = aligned(before, dtype.numpy_dtype)
    found = stored(out, dtype, lambda *given: prims.cp_reduce_async_bulk_global_shared_cta(*given, **how))
    assert found == expected


@pytest.mark.parametrize(
    "how",
    [
        {"op": "add", "type": prims.CpReduceType.F32},
        {"op": prims.CpReduceOp.ADD, "type": "f32"},
        {"op": prims.CpReduceOp.ADD, "type": prims.CpReduceType.F16},
        {"op": prims.CpReduceOp.MAX, "type": prims.CpReduceType.F16, "noftz": True},
    ],
)
def test_reductions_that_do_not_exist_are_refused(how: dict[str, Any]) -> None:
    with pytest.raises(ConstraintError, match="cp_reduce_async_bulk_global_shared_cta"):
        stored(
            aligned([0] * 8, np.float32),
            Float32,
            lambda *given: prims.cp_reduce_async_bulk_global_shared_cta(*given, **how),
        )


def test_a_store_without_a_wait_is_a_finding() -> None:
    with pytest.raises(SimulationError, match="bulk"):
        stored(aligned([9] * 8, np.int32), cutlass.Int32, prims.cp_async_bulk_global_shared_cta, waits=False)


def test_dependent_launches() -> None:
    @cute.kernel
    def kernel(x: cute.Tensor) -> None:
        prims.griddepcontrol(prims.GridDepAction.WAIT)
        x[0] = 1
        prims.griddepcontrol(prims.GridDepAction.LAUNCH_DEPENDENTS)

    @cute.jit
    def host(x: cute.Tensor) -> None:
        kernel(x).launch(grid=(1, 1, 1), block=(1, 1, 1), use_pdl=True)

    text = str(cute.compile(host, np.zeros(1, np.int32)).kernels[0])
    assert 0 < text.index("griddepcontrol.wait") < text.index("griddepcontrol.launch_dependents")
    with pytest.raises(ConstraintError, match="a member of GridDepAction is needed, not 'wait'"):
        per_thread(lambda t: (prims.griddepcontrol("wait"), t)[1], 1)


def test_the_same_bits() -> None:
    found = per_thread(lambda t: prims.mov_b32(Float32(t), target_type=cutlass.Int32), 8)
    assert found == np.arange(8, dtype=np.float32).view(np.int32).tolist()
    with pytest.raises(ConstraintError, match="mov_b32: Float32, Int32 or Uint32"):
        per_thread(lambda t: prims.mov_b32(cutlass.Int64(t), target_type=Float32), 1)


@pytest.mark.parametrize(
    ("shape", "offset", "message"),
    [
        ("16x32bx2", 8, "offset=8: its halves are 4 columns apart here"),
        ("32x32b", 4, "offset=4: leave it out"),
        ("16x32bx2", 4, ""),
    ],
)
def test_halves_of_a_shape_that_are_apart(shape: str, offset: int, message: str) -> None:
    """Loads and stores of tensor memory whose offset would have no effect are refused."""

    def through(t: Any) -> Any:
        held = cute.arch.alloc_smem(cutlass.Int32, 1)
        prims.tcgen05_alloc(held, 32)
        prims.tcgen05_relinquish_alloc_permit()
        cute.arch.sync_warp()
        place = prims.make_tmem_ptr(held.load(), Float32)
        numbers = cutlass.Vector.from_elements(tuple(i * t for i in range(4)), Float32)
        prims.tcgen05_st(shape, place, numbers, offset=offset)
        prims.tcgen05_wait("store")
        loaded = prims.tcgen05_ld(shape, place, num=4, offset=offset)
        prims.tcgen05_wait("load")
        cute.arch.sync_warp()
        prims.tcgen05_dealloc(place, 32)
        return loaded[3]

    if message:
        with pytest.raises(ConstraintError, match=message):
            per_thread(through, 32, dtype=Float32)
    else:
        assert per_thread(through, 32, dtype=Float32) == [3.0 * t for t in range(32)]


def test_tensor_maps_fill_with_zeros_alone() -> None:
    from tilewright.experimental import cuda

    @cute.jit
    def host(x: cute.Tensor) -> None:
        cuda.create_tensor_map_tiled_from_view(x, box_dims=(8, 8), stride_order=(1, 0), oob_fill="nan")

    with pytest.raises(ConstraintError, match="oob_fill='nan': elements outside of the tensor are zeros here"):
        cute.compile(host, np.zeros((16, 16), np.float16))


def test_fences_of_tensor_maps_and_prefetches_as_text() -> None:
    @cute.kernel
    def kernel(x: cute.Tensor) -> None:
        place = x.iterator.align(128)
        prims.cp_async_bulk_prefetch(place, 64)
        prims.cp_async_bulk_prefetch(place, 64, l2_cache_hint=cutlass.Int64(7))
        prims.fence_proxy_release(prims.MemScope.GPU)
        prims.fence_proxy_acquire(prims.MemScope.CTA, place, 128)

    @cute.jit
    def host(x: cute.Tensor) -> None:
        kernel(x).launch(grid=(1, 1, 1), block=(1, 1, 1))

    built = cute.compile(host, np.zeros(64, np.float32)).kernels[0]
    text = emit(built, "sm_90a").text
    assert [line.split('"')[1] for line in text.splitlines() if 'asm volatile("' in line] == [
        "cp.async.bulk.prefetch.L2.global [%0], 64;",
        "cp.async.bulk.prefetch.L2.global.L2::cache_hint [%0], 64, %1;",
        "fence.proxy.tensormap::generic.release.gpu;",
        "fence.proxy.tensormap::generic.acquire.gpu [%0], 128;",
    ]
    needs_nvrtc()
    from tilewright.cuda import compile as build

    assert "cp.async.bulk.prefetch.L2.global" in build(built, "sm_90a").ptx


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t, p: prims.cp_async_bulk_prefetch(p, 24), "multiple of 16 bytes, not 24"),
        (lambda t, p: prims.cp_async_bulk_prefetch(p, t), "known while staging"),
        (lambda t, p: prims.fence_proxy_release("sys"), "CTA, CLUSTER and GPU"),
        (lambda t, p: prims.fence_proxy_release("gpu", to_proxy="async"), "from GENERIC to ASYNC"),
        (lambda t, p: prims.fence_proxy_acquire("gpu", p, 64), "size is 128"),
        (lambda t, p: prims.cp_async_bulk_shared_cluster_shared_cta(p, p, p, 16), r"mapa\(ptr, rank\)"),
    ],
)
def test_what_the_bytes_and_fences_refuse(call: Any, message: str) -> None:
    with pytest.raises(ConstraintError, match=message):
        per_thread(call, 1, memory=[0] * 4)


def test_a_prefetch_from_between_two_multiples_of_16_bytes_is_a_fault() -> None:
    with pytest.raises(SimulationError, match="not a multiple of 16 bytes"):
        per_thread(lambda t, p: prims.cp_async_bulk_prefetch(p + 1, 16), 1, memory=[0] * 8)


@pytest.mark.parametrize("rank_of_bar", [None, 0])
def test_bytes_to_another_block_and_its_mbarrier(rank_of_bar: int | None) -> None:
    @cute.jit
    def body(t: Any) -> Any:
        own = cute.arch.block_idx_in_cluster()
        sent, got = (cute.arch.alloc_smem(cutlass.Int32, 32, 16) for _ in range(2))
        bar = cute.arch.alloc_smem(cutlass.Int64, 1, 8)
        cute.arch.store(sent + t, 100 * own + t)
        cute.arch.fence_proxy("async.shared", space="cta")
        if t == 0:
            prims.mbarrier_init(bar, 1)
            prims.mbarrier_arrive_expect_tx(bar, 64)
        prims.fence_mbarrier_init()
        prims.barrier_cluster_arrive()
        prims.barrier_cluster_wait()
        other = own ^ 1
        if t == 0:
            to, at = prims.mapa(got + 8, other), prims.mapa(bar, other if rank_of_bar is None else rank_of_bar)
            prims.cp_async_bulk_shared_cluster_shared_cta(to, sent + 4, at, 64)
        while not prims.mbarrier_try_wait_parity(bar, 0):
            pass
        prims.barrier_cluster_arrive()
        prims.barrier_cluster_wait()
        value = cutlass.Int32(-1)
        if t >= 8 and t < 24:
            value = cute.arch.load(got + t)
        return value

    if rank_of_bar is not None:
        with pytest.raises(ConstraintError, match="with one rank"):
            per_thread(body, 32, blocks=2, cluster=2)
        return
    rows = np.array(per_thread(body, 32, blocks=2, cluster=2)).reshape(2, 32)
    for own, row in enumerate(rows):
        assert row[8:24].tolist() == [100 * (1 - own) + i for i in range(4, 20)]


@pytest.mark.parametrize("space", [None, prims.SharedSpace.shared_cta])
def test_red_of_shared_memory(space: Any) -> None:
    @cute.jit
    def body(t: Any) -> Any:
        sums = cute.arch.alloc_smem(Float32, 2, 8)
        if t < 2:
            cute.arch.store(sums + t, Float32(0))
        prims.barrier()
        how = {"mem_order": prims.MemOrder.RELAXED, "mem_scope": prims.MemScope.CTA, "shared_space": space}
        prims.red(prims.ReductionOp.ADD, prims.ReductionType.F32, sums + t % 2, Float32(t), **how)
        prims.barrier(1, 64)
        return cutlass.Int32(cute.arch.load(sums + t % 2))

    assert per_thread(body, 64)[:2] == [sum(range(0, 64, 2)), sum(range(1, 64, 2))]
