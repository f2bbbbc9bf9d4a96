"""`cutlass.Vector`, raw pointers, and bulk copies of bytes by the names of the NVVM dialect and the primitives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import BFloat16, Float32, Int32, Int64, Uint32, Vector, cute
from tilewright._mlir.dialects import nvvm
from tilewright.base_dsl import typing
from tilewright.errors import ConstraintError
from tilewright.experimental import primitives as prims
from tilewright.testing import per_thread


def test_vectors_of_numbers() -> None:
    assert typing.Vector is Vector and issubclass(Vector, cute.TensorSSA)

    def use(t: Any) -> Any:
        four = Vector.from_elements((t, 2, t + 3, 4), Int32)
        assert four.shape == (4,) and four.dtype is Int32
        low, high = (four * 2).to(Float32).to_elements()[:2]
        halves = Vector.from_elements((Float32(t), 1.0)).to(BFloat16).bitcast(Uint32)
        again = Vector(halves.ir_value(), dtype=Int32)
        return Int32(low) + 10 * Int32(high) + (again[0] & 0) + 100 * Int32(halves.to_elements()[0] >> 16 == 0x3F80)

    assert per_thread(use, 4) == [140 + 2 * t for t in range(4)]


def test_a_vector_keeps_its_type_in_loops_and_branches() -> None:
    @cute.jit
    def use(t: Any) -> Any:
        v = Vector.from_elements((t, 1), Int32)
        for _ in cutlass.range(t):
            v = v + 1
        if t > 2:
            v = Vector(v.ir_value())
        assert isinstance(v, Vector) and not isinstance(cute.full((2, 2), 1, Int32), Vector)
        return v.to_elements()[0] + 10 * v[1]

    assert per_thread(use, 4) == [2 * t + 10 * (t + 1) for t in range(4)]


def test_pairs_of_floats_in_one_integer() -> None:
    def there_and_back(t: Any) -> Any:
        (both,) = Vector.from_elements((Float32(t), Float32(-2.5)), Float32).bitcast(Int64).to_elements()
        first, second = Vector.from_elements((both,), Int64).bitcast(Float32).to_elements()
        return first * second

    assert per_thread(there_and_back, 4, dtype=Float32) == [-2.5 * t for t in range(4)]


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda t: Vector.from_elements((), Int32), "at least one element"),
        (lambda t: Vector(Int32(t)), "a vector in registers is needed, not i32"),
        (lambda t: Vector(Vector.from_elements((t,)), dtype=Int64), "elements of .* as Int64: use bitcast or to"),
    ],
)
def test_wrong_vectors_are_refused(make: Any, why: str) -> None:
    with pytest.raises(ConstraintError, match=why):
        per_thread(lambda t: (make(t), t)[1], 2)


def aligned(values: Any) -> Any:
    """An array that begins at a multiple of 16 bytes, as bulk copies need it."""
    values = np.asarray(values)
    space = np.zeros(values.nbytes + 16, np.uint8)
    found = space[-space.ctypes.data % 16 :][: values.nbytes].view(values.dtype)
    found[:] = values
    return found


COPY_IN = [
    lambda to, of, bar, size, **k: nvvm.cp_async_bulk_shared_cluster_global(
        dst_mem=to.llvm_ptr, src_mem=of.llvm_ptr, mbar=bar.llvm_ptr, size=Int32(size).ir_value(), **k
    ),
    lambda to, of, bar, size, **k: prims.cp_async_bulk_shared_cluster_global(to.raw_ptr(), of, bar, size, **k),
]
COPY_OUT = [
    lambda to, of, size: nvvm.cp_async_bulk_global_shared_cta(dst_mem=to.llvm_ptr, src_mem=of.llvm_ptr, size=size),
    lambda to, of, size: prims.cp_async_bulk_global_shared_cta(to.raw_ptr(), of.raw_ptr(), size),
]


def round_trip(which: int, options: Any) -> tuple[Any, Any]:
    """The kernel and its host function: 64 numbers to shared memory by one bulk copy, and back by another."""

    @cute.kernel
    def kernel(x: cute.Tensor, out: cute.Tensor) -> None:
        t, _, _ = cute.arch.thread_idx()
        tile, bar = cute.arch.alloc_smem(Int32, 64, 128), cute.arch.alloc_smem(Int64, 1, 8)
        if t == 0:
            cute.arch.mbarrier_init(bar, 1)
            cute.arch.mbarrier_init_fence()
            cute.arch.mbarrier_arrive_and_expect_tx(bar, 256)
            COPY_IN[which](tile, x.iterator, bar, 256, **options)
        cute.arch.sync_threads()
        cute.arch.mbarrier_wait(bar, 0)
        held = cute.make_tensor(tile, 64)
        held[t] = held[t] * 3
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_threads()
        if t == 0:
            COPY_OUT[which](out.iterator, tile, 256)
            nvvm.cp_async_bulk_commit_group()
            prims.cp_async_bulk_wait_group(0)

    @cute.jit
    def host(x: cute.Tensor, out: cute.Tensor) -> None:
        kernel(x, out).launch(grid=(1, 1, 1), block=(64, 1, 1), cluster=(1, 1, 1))

    return kernel, host


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("options", [{}, {"multicast_mask": 1}, {"l2_cache_hint": 0x12F0000000000000}])
def test_bytes_go_in_and_out(which: int, options: Any) -> None:
    x, out = aligned(np.arange(64, dtype=np.int32)), aligned(np.zeros(64, np.int32))
    host = round_trip(which, options)[1]
    host(x, out)
    np.testing.assert_array_equal(out, 3 * x)
    (kernel,) = cute.compile(host, x, out).kernels
    assert cutlass.cuda.compile(kernel, "sm_90a").spills == 0


@pytest.mark.gpu
@pytest.mark.parametrize("which", [0, 1])
def test_bytes_on_the_gpu(which: int) -> None:
    torch = pytest.importorskip("torch")
    x = torch.arange(64, dtype=torch.int32, device="cuda")
    out = torch.zeros_like(x)
    round_trip(which, {})[1](x, out)
    np.testing.assert_array_equal(out.cpu().numpy(), 3 * np.arange(64))


def test_sizes_of_bulk_copies_are_known_while_staging() -> None:
    def copy(t: Any, p: Any) -> None:
        prims.cp_async_bulk_shared_cluster_global(
            cute.arch.alloc_smem(Int32, 4, 16), p, cute.arch.alloc_smem(Int64, 1, 8), 16 * (t + 1)
        )

    with pytest.raises(ConstraintError, match="size is a number of bytes known while staging"):
        per_thread(lambda t, p: (copy(t, p), t)[1], 1, memory=[0] * 8)


def test_a_raw_pointer_under_a_swizzle_has_the_address_of_now() -> None:
    def look(t: Any) -> Any:
        tile = cute.make_tensor(
            cute.recast_ptr(cute.arch.alloc_smem(Int32, 256, 1024), cute.make_swizzle(2, 2, 3)), cute.make_layout(256)
        )
        tile[t * 4] = t
        cute.arch.sync_threads()
        return (tile.iterator + 4 * t).raw_ptr().load()

    assert per_thread(look, 32) == list(range(32))
