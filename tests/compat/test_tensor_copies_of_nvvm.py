"""Bulk copies of boxes by the names of the NVVM dialect, by the address of a tensor map; pairs of floats in one
integer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tests.check.tensor_maps import aligned
from tilewright import Float32, Int32, Int64, Uint32, cute, utils
from tilewright._mlir.dialects import nvvm
from tilewright.cute.nvgpu import cpasync
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ConstraintError, MachineError
from tilewright.testing import per_thread

BOX = (8, 32)
ROWS = cute.make_layout(BOX, stride=(32, 1))
X = np.arange(32 * 64, dtype=np.float32).reshape(32, 64)
KINDS = nvvm.CVTPackFloatKind


def copies(kind: str, clusters: bool = False, aligned_to: int = 128) -> Any:
    """A host function that brings the box at (row 8, column 32) of x to shared memory, and from there to y's box at
    (row 16, column 0), each by a single thread that names the tensor maps in memory by their addresses."""

    @cute.kernel
    def kernel(load: Any, store: Any, maps: cute.Tensor) -> None:
        t, _, _ = cute.arch.thread_idx()
        rank = cute.arch.block_idx_in_cluster()
        smem = utils.SmemAllocator()
        full = smem.allocate_array(Int64, 1)
        tile = smem.allocate_tensor(Float32, ROWS, 128)
        manager = utils.TensorMapManager(utils.TensorMapUpdateMode.GMEM, 128)
        places = [manager.get_tensormap_ptr(maps[None, i].iterator) for i in range(2)]
        for atom, place in zip((load, store), places, strict=True):
            manager.init_tensormap_from_atom(atom, place, 0)
        manager.fence_tensormap_initialization()
        for i in cutlass.range_constexpr(2):
            manager.fence_tensormap_update(manager.get_tensormap_ptr(maps[None, i].iterator, cute.AddressSpace.generic))
        if t == 0:
            cute.arch.mbarrier_init(full, 1)
            cute.arch.mbarrier_init_fence()
            cute.arch.mbarrier_arrive_and_expect_tx(full, 1024)
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
        box = tile.iterator + (0 if aligned_to == 128 else aligned_to // 4)
        if t == 0 and rank == 0:
            options = {"multicast_mask": 3} if clusters else {"l2_cache_hint": 0x12F0000000000000}
            nvvm.cp_async_bulk_tensor_prefetch(places[0].llvm_ptr, [32, 8], [])
            nvvm.cp_async_bulk_tensor_shared_cluster_global(
                box.llvm_ptr,
                places[0].llvm_ptr,
                [Int32(32).ir_value(), Int32(8).ir_value()],
                full.llvm_ptr,
                [],
                **options,
            )
        cute.arch.mbarrier_wait(full, 0)
        if t == 0:
            if cutlass.const_expr(kind == "store"):
                nvvm.cp_async_bulk_tensor_global_shared_cta(places[1], tile, [32 * rank, 16])
            else:
                operation = nvvm.TMAReduxKind[kind]
                nvvm.cp_async_bulk_tensor_reduce(places[1], tile, operation, [32 * rank, 16])
            nvvm.cp_async_bulk_commit_group()
            nvvm.cp_async_bulk_wait_group(0)

    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor, maps: cute.Tensor) -> None:
        load, _ = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), x, ROWS, BOX)
        store, _ = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), y, ROWS, BOX)
        blocks = 2 if clusters else 1
        kernel(load, store, maps).launch(grid=(blocks, 1, 1), block=(32, 1, 1), cluster=(blocks, 1, 1))

    return host


def expected(kind: str, clusters: bool) -> np.ndarray[Any, Any]:
    y = np.full((32, 64), 700, np.float32)
    for column in (0, 32)[: 2 if clusters else 1]:
        box = X[8:16, 32:64]
        y[16:24, column : column + 32] = box if kind == "store" else np.add(box, 700)
    return y


def arguments(y: np.ndarray[Any, Any]) -> list[Any]:
    maps = from_dlpack(aligned((2, 16)).T, assumed_align=128)
    return [from_dlpack(X, assumed_align=16), from_dlpack(y, assumed_align=16), maps]


@pytest.mark.parametrize(("kind", "clusters"), [("store", False), ("store", True), ("ADD", False)])
def test_a_box_by_the_address_of_its_tensor_map(kind: str, clusters: bool) -> None:
    y = np.full((32, 64), 700, np.float32)
    host = copies(kind, clusters)
    host(*arguments(y))
    np.testing.assert_array_equal(y, expected(kind, clusters))
    (kernel,) = cute.compile(host, *arguments(y)).kernels
    assert cutlass.cuda.compile(kernel, "sm_90a").spills == 0


@pytest.mark.gpu
@pytest.mark.parametrize(("kind", "clusters"), [("store", False), ("store", True), ("ADD", False)])
def test_the_same_on_a_gpu(kind: str, clusters: bool) -> None:
    torch = pytest.importorskip("torch")
    x, y = torch.from_numpy(X).cuda(), torch.full((32, 64), 700.0, device="cuda")
    maps = from_dlpack(torch.zeros(2, 16, dtype=torch.int64, device="cuda").T, assumed_align=128)
    copies(kind, clusters)(from_dlpack(x, assumed_align=16), from_dlpack(y, assumed_align=16), maps)
    np.testing.assert_array_equal(y.cpu().numpy(), expected(kind, clusters))


def test_a_box_that_shared_memory_cannot_take() -> None:
    with pytest.raises(MachineError, match="the box in shared memory begins at byte .*, no multiple of 128"):
        copies("store", aligned_to=64)(*arguments(np.zeros((32, 64), np.float32)))


def test_a_reduction_that_the_tensor_map_in_memory_does_not_have() -> None:
    with pytest.raises(MachineError, match="tma.reduce.max.2d: there is no reduction by 'max' of f32 in a tensor"):
        copies("MAX")(*arguments(np.zeros((32, 64), np.float32)))


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda p: nvvm.cp_async_bulk_tensor_prefetch(p, []), "1 to 5 modes, and 0 coordinates"),
        (lambda p: nvvm.cp_async_bulk_tensor_prefetch(p, [0] * 6), "1 to 5 modes, and 6 coordinates"),
        (lambda p: nvvm.cp_async_bulk_tensor_prefetch(p, [0, 0, 0], [1]), "im2col_offsets are not here"),
        (lambda p: nvvm.cp_async_bulk_tensor_prefetch(p, [0], predicate=True), "call it in an `if`"),
        (lambda p: nvvm.cp_async_bulk_tensor_reduce(p, p, "add", [0]), "red_kind is an nvvm.TMAReduxKind, not 'add'"),
        (lambda p: nvvm.cp_async_bulk_tensor_global_shared_cta(p, p, [0]), "the box must be in shared memory"),
    ],
)
def test_nvvm_tensor_copies_refuse_wrong_operands(call: Any, why: str) -> None:
    with pytest.raises(ConstraintError, match=why):
        per_thread(lambda t, p: (call(p), t)[1], 1, memory=[0] * 32)


# -- pairs of floats ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [("F16x2", "float16"), ("BF16x2", "bfloat16"), ("E4M3x2", "float8_e4m3fn"), ("E5M2x2", "float8_e5m2")],
)
def test_two_floats_in_one_integer(kind: str, dtype: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    of = np.dtype(getattr(ml_dtypes, dtype, dtype))
    found = per_thread(
        lambda t: nvvm.cvt_packfloat_f32(
            None, Float32(t) * 0.7, Float32(-1.7), Int32(0), KINDS[kind], rnd=nvvm.RoundingModeKind.RN
        ),
        6,
    )
    bits = np.array([[-1.7, np.float32(t) * np.float32(0.7)] for t in range(6)], np.float32).astype(of)
    words = bits.view(f"u{of.itemsize}").astype(np.uint64)
    assert [x & 0xFFFFFFFF for x in found] == [int(low | high << 8 * of.itemsize) for low, high in words]


@pytest.mark.parametrize("kind", ["E4M3x2", "E5M2x2"])
def test_every_8_bit_float_as_one_of_16_bits(kind: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    kinds = KINDS[kind], KINDS.F16x2
    found = per_thread(lambda t: Uint32(nvvm.cvt_packfloat(t << 8 | 0x38, Int32(0), *kinds)), 256, dtype=Uint32)
    of = ml_dtypes.float8_e4m3fn if kind == "E4M3x2" else ml_dtypes.float8_e5m2
    low = int(np.array([0x38], np.uint8).view(of).astype(np.float16).view(np.uint16)[0])
    high = np.array(found, np.uint32) >> 16
    assert {x & 0xFFFF for x in found} == {low}
    wide = np.arange(256, dtype=np.uint8).view(of).astype(np.float16)
    np.testing.assert_array_equal(high.astype(np.uint16).view(np.float16), wide)


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda t: nvvm.cvt_packfloat_f32(t, t, Int32(0)), "takes 4 operands, not 3"),
        (lambda t: nvvm.cvt_packfloat_f32(t, t, t, KINDS.F16x2), "the bits above the numbers are 0 here"),
        (lambda t: nvvm.cvt_packfloat_f32(t, t, Int32(0), KINDS.E2M1x2), "E2M1x2.* is not here; F16x2, BF16x2, "),
        (lambda t: nvvm.cvt_packfloat(t, Int32(0), KINDS.F16x2, KINDS.F16x2), "E4M3x2 and E5M2x2 to F16x2"),
        (
            lambda t: nvvm.cvt_packfloat_f32(t, t, Int32(0), KINDS.F16x2, sat=nvvm.SaturationModeKind.SATFINITE),
            "this conversion has SaturationModeKind.NONE",
        ),
        (
            lambda t: nvvm.cvt_packfloat_f32(t, t, Int32(0), KINDS.F16x2, rnd=nvvm.RoundingModeKind.RZ),
            "rounded to the nearest even one",
        ),
    ],
)
def test_conversions_that_are_not_here(call: Any, why: str) -> None:
    with pytest.raises(ConstraintError, match=why):
        per_thread(call, 1)
