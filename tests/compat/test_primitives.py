"""What libraries call of ``cutlass.experimental.primitives``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import Float32, cute
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
