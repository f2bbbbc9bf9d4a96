"""Columns of tensor memory that inline PTX allocates, fills from shared memory and frees."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as cutlass
from tests.check.pairs import launch
from tilewright import Int32, Int64, cute
from tilewright._mlir.dialects import llvm
from tilewright.cute.nvgpu import tcgen05
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import SimulationError
from tilewright.experimental import primitives as prims
from tilewright.testing import per_thread

ALLOC = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [$0], 32;"
COPY = """{
  .reg .pred leader;
  elect.sync _|leader, -1;
  @leader tcgen05.cp.cta_group::1.128x256b [$0], $1;
  @leader tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [$2];
}"""
FREE = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 $0, $1;"


def asm(text: str, constraints: str, *operands: object) -> None:
    llvm.inline_asm(None, [x.ir_value() for x in operands], text, constraints, has_side_effects=True)


def run(frees: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Rows of 32 bytes as the kernel gives them back, and as they were."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        holder, done = cute.arch.alloc_smem(Int32, 1), cute.arch.alloc_smem(Int64, 1)
        rows = cute.make_tensor(
            cute.arch.alloc_smem(Int32, 1024, 1024), cute.make_layout(((8, 16), (4, 2)), stride=((4, 64), (1, 32)))
        )
        if warp == 0:
            asm(ALLOC, "r", holder.toint())
            asm("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;", "")
            with cute.arch.elect_one():
                cute.arch.mbarrier_init(done, 1)
        cute.arch.mbarrier_init_fence()
        for column in cutlass.range_constexpr(8):
            rows[t, column] = x[t, column]
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_threads()
        base = cute.arch.retrieve_tmem_ptr(Int32, 16, holder)
        if warp == 0:
            described = prims.Tcgen05SmemDesc.build(
                rows.iterator,
                leading_byte_offset=128,
                stride_byte_offset=256,
                layout=prims.Tcgen05SmemSwizzle.NONE,
            )
            asm(COPY, "r,l,r", base.toint(), Int64(described), done.toint())
        cute.arch.mbarrier_wait(done, 0)
        cute.arch.tcgen05_fence_after_thread_sync()
        memory = cute.make_tensor(base, cute.make_layout((128, 8), stride=(65536, 1)))
        load = tcgen05.make_tmem_copy(cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x8), Int32), memory)
        mine = load.get_slice(t)
        taken = cute.make_rmem_tensor(mine.partition_D(memory).shape, Int32)
        cute.copy(load, mine.partition_S(memory), taken)
        cute.arch.fence_view_async_tmem_load()
        for column in cutlass.range_constexpr(8):
            y[t, column] = taken[column]
        cute.arch.sync_threads()
        if cutlass.const_expr(frees):
            if warp == 0:
                asm(FREE, "r,r", base.toint(), Int32(32))

    x = np.random.default_rng(0).integers(0, 1 << 30, (128, 8)).astype(np.int32)
    y = np.zeros_like(x)
    launch(kernel, from_dlpack(x), from_dlpack(y), block=128)
    return y, x


def test_columns_by_inline_ptx() -> None:
    got, given = run()
    np.testing.assert_array_equal(got, given)


def test_columns_that_are_not_freed() -> None:
    with pytest.raises(SimulationError, match="the 32 columns from 0 on are never freed"):
        run(frees=False)


def test_descriptors_are_numbers_of_the_language() -> None:
    """They keep their class in sums, branches and loops."""

    @cute.jit
    def shifted(desc: Int64) -> Int64:
        return desc >> 4

    @cute.jit
    def at(t: Int32) -> Int64:
        desc = prims.Tcgen05SmemDesc.build(1024 + 64 * t, leading_byte_offset=16, stride_byte_offset=1024, layout=2)
        assert isinstance(desc, Int64) and isinstance(prims.Tcgen05SmemDesc(5), Int64)
        for _ in range(2):
            desc = desc.advance_start_address(32)
        if t > 1:
            desc = desc + 1
        desc = desc.advance_start_address(16)
        return (Int64(desc) & 0x3FFF) + (shifted(desc) & 0)

    assert per_thread(at, 4, dtype=Int64) == [64 + 4 * t + 5 + (t > 1) for t in range(4)]
    word = prims.Tcgen05InstrDesc.build(
        c_dtype=cutlass.Float32, a_dtype=cutlass.Float16, b_dtype=cutlass.Float16, m_dim=128, n_dim=64
    )
    assert isinstance(word, Int32) and word.value == 0x8100010 and type(word | 0) is prims.Tcgen05InstrDesc
