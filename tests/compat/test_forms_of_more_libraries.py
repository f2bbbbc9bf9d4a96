"""Forms that Liger-Kernel, FlashAttention 4 with quack 0.6 and their like use."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import Boolean, Float32, Int32, Int64, Uint32, cute, pipeline
from tilewright._mlir.dialects import llvm
from tilewright.cute.nvgpu.common import CacheEvictionPriority, MemoryOrder
from tilewright.cute.runtime import from_dlpack
from tilewright.cutlass_dsl import T
from tilewright.errors import ConstraintError, StagingError
from tilewright.experimental import primitives as prims
from tilewright.lang.staging.ranges import HintWarning
from tilewright.testing import per_thread


def test_names_of_modules() -> None:
    helpers = importlib.import_module("tilewright.pipeline.helpers")
    assert helpers.pipeline_init_arrive is cutlass.pipeline.pipeline_init_arrive
    assert cute.ReductionKind is cute.ReductionOp


# -- copies ------------------------------------------------------------------------------------------------------------


def rows_of_eight(ops: tuple[Any, Any], last: int, **hints: Any) -> Any:
    """Copy 4 x 8 numbers, a row a thread, by instructions of four: both of a row have its predicate, ``row < last``."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor) -> None:
        t, _, _ = cute.arch.thread_idx()
        load, store = (cute.make_copy_atom(op, Float32, num_bits_per_copy=128, **hints) for op in ops)
        source, target = (
            cute.make_tensor(a.iterator + 8 * t, cute.make_layout(((8, 1), 1, 1), stride=((1, 0), 0, 0)))
            for a in (x, y)
        )
        held = cute.make_fragment_like(source)
        held.fill(-1.0)
        pred = cute.make_rmem_tensor(cute.make_layout((1, 1, 1), stride=(1, 0, 1)), Boolean)
        pred[0] = t < last
        cute.copy(load, source, held, pred=pred)
        cute.copy(store, held, target)

    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor) -> None:
        kernel(x, y).launch(grid=(1, 1, 1), block=(4, 1, 1))

    x, y = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    host(from_dlpack(x, assumed_align=16), from_dlpack(y, assumed_align=16))
    return x.reshape(4, 8), y.reshape(4, 8)


BOTH_WAYS = (cute.nvgpu.CopyG2ROp(), cute.nvgpu.CopyR2GOp())


@pytest.mark.parametrize("last", [0, 3, 4])
def test_one_predicate_for_neighbours_that_take_two_instructions(last: int) -> None:
    x, y = rows_of_eight(BOTH_WAYS, last)
    np.testing.assert_array_equal(y, np.where(np.arange(4)[:, None] < last, x, -1))


def test_hints_of_copies_warn_and_orders_are_refused() -> None:
    with pytest.warns(HintWarning, match=r"make_copy_atom: the cache hints .*EVICT_FIRST are not followed"):
        x, y = rows_of_eight(BOTH_WAYS, 4, l1c_evict_priority=CacheEvictionPriority.EVICT_FIRST)
    np.testing.assert_array_equal(y, x)
    universal = (cute.nvgpu.CopyUniversalOp(),) * 2
    weak = {"l1c_evict_priority": CacheEvictionPriority.EVICT_NORMAL, "memory_order": MemoryOrder.WEAK}
    rows_of_eight(universal, 4, **weak)  # without a warning: pytest makes them errors
    with pytest.raises((ConstraintError, StagingError), match="memory_order=MemoryOrder.ACQUIRE is not here"):
        rows_of_eight(universal, 4, memory_order=MemoryOrder.ACQUIRE)


@pytest.mark.parametrize(
    ("ops", "why"),
    [
        ((cute.nvgpu.CopyR2GOp(),) * 2, "the source of CopyR2GOp is in rmem, not in gmem"),
        ((cute.nvgpu.CopyG2ROp(),) * 2, "the source of CopyG2ROp is in gmem, not in rmem"),
    ],
)
def test_copies_of_another_direction(ops: Any, why: str) -> None:
    with pytest.raises((ConstraintError, StagingError), match=why):
        rows_of_eight(ops, 4)


# -- addresses ---------------------------------------------------------------------------------------------------------


@cute.jit
def peer_sum(t: Any, text: cutlass.Constexpr) -> Any:
    """Numbers t and t + 32 of the other block's buffer, by their addresses in inline PTX."""
    own = cute.arch.block_idx_in_cluster()
    buffer = cute.arch.alloc_smem(Float32, 64)
    buffer[t], buffer[t + 32] = Float32(100 * own + t), Float32(0.5)
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()
    base = Int32(
        llvm.inline_asm(
            T.i32(),
            [llvm.ptrtoint(T.i32(), buffer.llvm_ptr), Int32(own ^ 1).ir_value()],
            "mapa.shared::cluster.u32 $0, $1, $2;",
            "=r,r,r",
        )
    )
    first = llvm.inline_asm(T.f32(), [(base + 4 * t).ir_value()], text, "=f,r", has_side_effects=True)
    second = llvm.inline_asm(T.f32(), [(4 * t + base + 128).ir_value()], text, "=f,r", has_side_effects=True)
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()
    return Float32(first) + Float32(second)


def test_loads_from_another_block_in_inline_ptx() -> None:
    found = per_thread(
        lambda t: peer_sum(t, "ld.shared::cluster.f32 $0, [$1];"), 32, blocks=2, cluster=2, dtype=Float32
    )
    assert found == [100.5 + t for t in range(32)] + [0.5 + t for t in range(32)]


def test_other_loads_in_inline_ptx() -> None:
    @cute.jit
    def shared(t: Any) -> Any:
        buffer = cute.arch.alloc_smem(Int32, 64)
        buffer[t] = 10 * t
        cute.arch.sync_warp()
        address = llvm.ptrtoint(T.i32(), buffer.llvm_ptr)
        return Uint32(llvm.inline_asm(T.i32(), [address + 4 * (31 - t)], "ld.shared.b32 $0, [$1];", "=r,r"))

    @cute.jit
    def from_global(t: Any, p: Any) -> Any:
        address = llvm.ptrtoint(T.i64(), (p + t).llvm_ptr)
        return Int32(llvm.inline_asm(T.i32(), [address + 4], "ld.global.s32 $0, [$1];", "=r,l"))

    assert per_thread(shared, 32) == [10 * (31 - t) for t in range(32)]
    assert per_thread(from_global, 3, memory=[5, 6, 7, 8])[0] == [6, 7, 8]


def test_pointers_to_global_memory_and_generic_ones() -> None:
    @cute.jit
    def read(t: Any, p: Any) -> Any:
        for space in cutlass.range_constexpr(2):
            p = cute.make_ptr(Int32, llvm.addrspacecast(llvm.PointerType.get(space), p.llvm_ptr), p.memspace)
        return cute.make_tensor(p, 4)[t]

    assert per_thread(read, 3, memory=[5, 6, 7, 8])[0] == [5, 6, 7]
    gmem = llvm.PointerType.get(cute.AddressSpace.gmem.value)
    with pytest.raises(ConstraintError, match="a pointer to smem cannot become one to gmem"):
        per_thread(lambda t: (llvm.addrspacecast(gmem, cute.arch.alloc_smem(Int32, 4).llvm_ptr), t)[1], 1)
    with pytest.raises(ConstraintError, match="no memory has the number 9"):
        llvm.PointerType.get(9)


# -- numbers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", [0x00, 0xFF, 0x80, 0xFE, 0x96, 0xCA, 0xEA, 0x1B])
def test_every_function_of_three_bits(table: int) -> None:
    a, b, c = 0b11110000, 0b11001100, 0b10101010
    assert [x & 0xFF for x in per_thread(lambda t: cute.arch.lop3(a + 0 * t, b, c, table), 1)] == [table]
    with pytest.raises(ConstraintError, match="lut is a Python int of 8 bits, not 256"):
        per_thread(lambda t: cute.arch.lop3(a, b, c, 256), 1)


def test_two_exponentials() -> None:
    found = per_thread(lambda t: cute.arch.exp_packed_f32x2((Float32(t), -Float32(t)))[1], 5, dtype=Float32)
    np.testing.assert_allclose(found, np.exp(-np.arange(5.0)), rtol=1e-6)


def test_bytes_and_halves_by_the_names_of_the_primitives() -> None:
    picked = per_thread(lambda t: prims.prmt(0x33221100, 0x4132, prims.PermuteMode.DEFAULT, hi=0x77665544), 1)
    assert picked == [0x44113322]
    both = per_thread(lambda t: prims.convert_and_pack_integer(t * 30000, 5 - t, T.i16(), is_signed=True), 3)
    assert [x & 0xFFFFFFFF for x in both] == [0x00000005, 0x75300004, 0x7FFF0003]
    unsigned = per_thread(lambda t: prims.convert_and_pack_integer(70000, t - 1, T.i16(), is_signed=False), 2)
    assert [x & 0xFFFFFFFF for x in unsigned] == [0xFFFF0000, 0xFFFF0000]
    for call in (
        lambda t: prims.prmt(t, 0, prims.PermuteMode.DEFAULT),
        lambda t: prims.redux_sync(t, "add"),
        lambda t: prims.redux_sync(t, prims.ReductionKind.ADD, abs=True),
        lambda t: prims.convert_and_pack_integer(t, t, T.i32()),
    ):
        with pytest.raises(ConstraintError, match=r"is here, not|is needed, not|of 16 bits, T.i16\(\), not"):
            per_thread(call, 32)


@pytest.mark.parametrize(
    ("kind", "expected"), [("ADD", -48), ("MIN", -17), ("MAX", 14), ("UMIN", 0), ("UMAX", -1), ("XOR", -32)]
)
def test_one_number_of_a_warp(kind: str, expected: int) -> None:
    assert per_thread(lambda t: prims.redux_sync(t - 17, prims.ReductionKind[kind])) == [expected] * 32


def test_decorated_functions_keep_python_attributes() -> None:
    @cute.jit
    def marked(x: Any, times: int = 3, *, step: int = 4) -> Any:
        return x * times + step

    assert marked.__defaults__ == (3,) and marked.__kwdefaults__ == {"step": 4}
    assert marked.__code__.co_varnames[0] == "x" and marked.__globals__ is globals() and marked.__closure__ is None


def test_mbarrier_array_with_bytes_given_at_each_arrival() -> None:
    group = pipeline.CooperativeGroup(pipeline.Agent.Thread, 1)

    @cute.jit
    def use(t: Any, p: Any, told: cutlass.Constexpr = True) -> Any:
        array = pipeline.MbarrierArray(cute.arch.alloc_smem(Int64, 1), 1, (pipeline.PipelineOp.TmaLoad, group))
        cute.arch.mbarrier_init_fence()
        tile = cute.arch.alloc_smem(Int32, 4, 16)
        if cutlass.const_expr(told):
            array.arrive_and_expect_tx(0, 16)
        else:
            array.arrive(0)
        if t == 0:
            prims.cp_async_bulk_shared_cluster_global(tile, p, array.get_barrier(0), 16)
        array.wait(0, 0)
        return cute.make_tensor(tile, 4)[t % 4]

    assert per_thread(use, 32, memory=[5, 6, 7, 8])[0] == [5, 6, 7, 8] * 8
    with pytest.raises(ConstraintError, match="how many bytes the phase waits for is not known; make the array with"):
        per_thread(lambda t, p: use(t, p, False), 32, memory=[5, 6, 7, 8])
    assert cute.fast_divmod_create_divisor_v2 is cute.fast_divmod_create_divisor
