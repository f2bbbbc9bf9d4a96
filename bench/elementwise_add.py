"""C = A + B element by element, by a thread-value layout of 128 threads with 16 values each."""

from __future__ import annotations

import tilewright as cutlass
from tilewright import cute


@cute.kernel
def add_kernel(
    gA: cute.Tensor,
    gB: cute.Tensor,
    gC: cute.Tensor,
    cC: cute.Tensor,
    shape: cute.Shape,
    threads: cute.Layout,
    values: cute.Layout,
) -> None:
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    block = ((None, None), bidx)
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), gA.element_type)
    thread = cute.make_tiled_copy_tv(atom, threads, values).get_slice(tidx)
    tA, tB, tC, where = (thread.partition_S(x[block]) for x in (gA, gB, gC, cC))
    rA, rB, rC = (cute.make_fragment_like(t) for t in (tA, tB, tC))
    inside = cute.make_rmem_tensor(where.shape, cutlass.Boolean)
    for i in cutlass.range_constexpr(cute.size(inside)):
        inside[i] = cute.elem_less(where[i], shape)
    cute.copy(atom, tA, rA, pred=inside)
    cute.copy(atom, tB, rB, pred=inside)
    rC.store(rA.load() + rB.load())
    cute.copy(atom, rC, tC, pred=inside)


@cute.jit
def add(mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor) -> None:
    threads = cute.make_ordered_layout((4, 32), order=(1, 0))
    values = cute.make_ordered_layout((4, 4), order=(1, 0))
    tiler, tv = cute.make_layout_tv(threads, values)
    gA, gB, gC = (cute.zipped_divide(x, tiler) for x in (mA, mB, mC))
    cC = cute.zipped_divide(cute.make_identity_tensor(mC.shape), tiler=tiler)
    add_kernel(gA, gB, gC, cC, mC.shape, threads, values).launch(
        grid=[cute.size(gC, mode=[1]), 1, 1], block=[cute.size(tv, mode=[0]), 1, 1]
    )
