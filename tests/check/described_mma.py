"""``tcgen05.mma`` by descriptors: collector buffers, the metadata of a sparse A, and operands in tensor memory."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilewright as cutlass
from tests.check.pairs import launch, pair
from tests.check.tensor_memory import allocated, freed
from tilewright import cute
from tilewright.cute.runtime import from_dlpack
from tilewright.experimental import primitives as prims

COLUMNS, METADATA = 64, 32
"""Columns that are allocated: those of D come first; at which one the metadata begins."""


def run(
    bug: bool, first: str | None = None, second: str | None = None, stored: bool = True, early: bool = False
) -> None:
    """Two products of ones with a sparse A, each element of which is then 32. ``first``, ``second``: what is done with
    the collector buffer; ``early``: the metadata is stored again before the commit has arrived."""

    @cute.kernel
    def kernel(y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        base, warp = allocated(COLUMNS)
        done = cute.arch.alloc_smem(cutlass.Int64, 1)
        if t == 0:
            cute.arch.mbarrier_init(done, 1)
        cute.arch.mbarrier_init_fence()
        a, b = (cute.arch.alloc_smem(cutlass.Float16, rows * depth, 128) for rows, depth in ((128, 16), (32, 32)))
        for part, size in ((a, 128 * 16), (b, 32 * 32)):
            ones = cute.make_tensor(part, cute.make_layout(size))
            for i in range(t, size, 128):
                ones[i] = cutlass.Float16(1.0)
        cute.arch.fence_proxy("async.shared", space="cta")
        lanes = base.toint() + (warp << 21)
        metadata = prims.make_tmem_ptr(lanes + METADATA, cutlass.Uint32)
        pairs = cutlass.Vector.from_elements((cutlass.Uint32(0x44444444),), cutlass.Uint32)
        if cutlass.const_expr(stored):
            prims.tcgen05_st("32x32b", metadata, pairs)
            prims.tcgen05_wait("store")
        prims.tcgen05_fence("before_thread_sync")
        cute.arch.sync_threads()
        prims.tcgen05_fence("after_thread_sync")
        if warp == 0:
            how: Any = {"c_dtype": cutlass.Float32, "a_dtype": cutlass.Float16, "b_dtype": cutlass.Float16}
            word = prims.Tcgen05InstrDesc.build(m_dim=128, n_dim=32, sparse=True, **how)
            plain = {"leading_byte_offset": 128, "layout": prims.Tcgen05SmemSwizzle.NONE}
            desc_a = prims.Tcgen05SmemDesc.build(a, stride_byte_offset=256, **plain)
            desc_b = prims.Tcgen05SmemDesc.build(b, stride_byte_offset=512, **plain)
            sums, of_a = (prims.make_tmem_ptr(base.toint() + at, cutlass.Float32) for at in (0, METADATA))
            product = ("f16", "cta_1", sums, desc_a, desc_b, word)
            if prims.elect_sync():
                prims.tcgen05_mma(*product, False, sparse_metadata=of_a, collector_op=first)
                prims.tcgen05_mma(*product, True, sparse_metadata=of_a, collector_op=second)
                prims.tcgen05_commit(done)
            if cutlass.const_expr(early):
                prims.tcgen05_st("32x32b", metadata, pairs)
                prims.tcgen05_wait("store")
        cute.arch.mbarrier_wait(done, 0)
        prims.tcgen05_fence("after_thread_sync")
        loaded = prims.tcgen05_ld("32x32b", prims.make_tmem_ptr(lanes, cutlass.Float32), num=32)
        prims.tcgen05_wait("load")
        y[t] = loaded[0] + loaded[31]
        if cutlass.const_expr(stored and not early):
            prims.tcgen05_st("32x32b", metadata, pairs)
            prims.tcgen05_wait("store")
        freed(base, warp, COLUMNS)

    y = np.zeros(128, np.float32)
    launch(kernel, from_dlpack(y), block=128)
    if not bug:
        np.testing.assert_array_equal(y, 2 * 32)


@pair(
    "tcgen05.mma.sp.cta_group::1.kind::f16 uses collector buffer a, which nothing has filled",
    "prims.tcgen05_mma(*product, True, sparse_metadata=of_a, collector_op=second)",
)
def a_collector_buffer_that_nothing_filled(bug: bool) -> None:
    run(bug, first=None if bug else "fill", second="use")


@pair(
    "tcgen05.mma.sp.cta_group::1.kind::f16 reads metadata of A in tensor memory that nothing has written",
    "prims.tcgen05_mma(*product, False, sparse_metadata=of_a, collector_op=first)",
)
def metadata_that_nothing_wrote(bug: bool) -> None:
    run(bug, stored=not bug)


@pair(
    "tcgen05.st.32x32b.x1 overwrites an operand of a tcgen05.mma that is not done",
    'prims.tcgen05_st("32x32b", metadata, pairs)',
)
def metadata_overwritten_before_the_commit(bug: bool) -> None:
    run(bug, early=bug)
