"""C = A + B by vectors, with predicates at the ragged edges; timed with cold caches."""

import argparse

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import cutlass.cute.testing as testing
import cutlass.torch as cutlass_torch
import torch
from cutlass.cute.runtime import from_dlpack


@cute.kernel
def add_kernel(
    gA: cute.Tensor, gB: cute.Tensor, gC: cute.Tensor, cC: cute.Tensor, shape: cute.Shape,
    thr_layout: cute.Layout, val_layout: cute.Layout,
):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    blk = ((None, None), bidx)
    load = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), gA.element_type)
    store = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), gC.element_type)
    copy_a = cute.make_tiled_copy_tv(load, thr_layout, val_layout)
    copy_c = cute.make_tiled_copy_tv(store, thr_layout, val_layout)
    thr_a, thr_c = copy_a.get_slice(tidx), copy_c.get_slice(tidx)
    tA, tB, tC, tcC = (t.partition_S(g[blk]) for t, g in ((thr_a, gA), (thr_a, gB), (thr_c, gC), (thr_c, cC)))
    fA, fB, fC = cute.make_fragment_like(tA), cute.make_fragment_like(tB), cute.make_fragment_like(tC)
    pred = cute.make_rmem_tensor(tcC.shape, cutlass.Boolean)
    for i in range(0, cute.size(pred), 1):
        pred[i] = cute.elem_less(tcC[i], shape)
    cute.copy(load, tA, fA, pred=pred)
    cute.copy(load, tB, fB, pred=pred)
    fC.store(fA.load() + fB.load())
    cute.copy(store, fC, tC, pred=pred)


@cute.jit
def add(mA, mB, mC, stream: cuda.CUstream, copy_bits: cutlass.Constexpr = 128):
    vector = copy_bits // mA.element_type.width
    thr_layout = cute.make_ordered_layout((4, 32), order=(1, 0))
    val_layout = cute.make_ordered_layout((4, vector), order=(1, 0))
    tiler_mn, tv_layout = cute.make_layout_tv(thr_layout, val_layout)
    print(f"tiler {tiler_mn}, tv layout {tv_layout}")
    gA, gB, gC = (cute.zipped_divide(t, tiler_mn) for t in (mA, mB, mC))
    cC = cute.zipped_divide(cute.make_identity_tensor(mC.shape), tiler=tiler_mn)
    add_kernel(gA, gB, gC, cC, mC.shape, thr_layout, val_layout).launch(
        grid=[cute.size(gC, mode=[1]), 1, 1], block=[cute.size(tv_layout, mode=[0]), 1, 1], stream=stream
    )


def run(M, N, dtype: type[cutlass.Numeric], warmup: int, iterations: int):
    torch_dtype = cutlass_torch.dtype(dtype)
    shape = (M, N)
    if dtype.is_integer:
        a, b = (torch.randint(0, 10, shape, device=torch.device("cuda"), dtype=torch_dtype) for _ in range(2))
    else:
        a, b = (torch.randn(shape, device=torch.device("cuda"), dtype=torch_dtype) for _ in range(2))
    c = torch.zeros_like(a)
    stream = cutlass_torch.current_stream()
    tensors = [from_dlpack(t).mark_layout_dynamic() for t in (a, b, c)]
    compiled = cute.compile(add, *tensors, stream, options="--generate-line-info")
    compiled(*tensors, stream)
    torch.testing.assert_close(a + b, c)

    def workspace():
        fresh = [torch.empty(shape, device="cuda", dtype=torch_dtype) for _ in range(3)]
        return testing.JitArguments(*[from_dlpack(t).mark_layout_dynamic() for t in fresh], stream)

    took = testing.benchmark(
        compiled, workspace_generator=workspace, workspace_count=2, warmup_iterations=warmup, iterations=iterations,
        stream=stream,
    )
    print(f"verified; {'timed' if took > 0 else 'not timed'}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--M", default=61, type=int)
    parser.add_argument("--N", default=192, type=int)
    parser.add_argument("--warmup_iterations", default=1, type=int)
    parser.add_argument("--iterations", default=2, type=int)
    args = parser.parse_args()
    if not torch.cuda.is_available():
        raise RuntimeError("a GPU is required")
    run(args.M, args.N, cutlass.Float16, args.warmup_iterations, args.iterations)
    run(args.M, args.N, cutlass.Int32, 0, 1)
    print("\nPASS")
