"""result = op(*inputs), where op is any function of vectors; edges by predicates, the shape given at run time or not."""

import argparse
import operator
from collections.abc import Callable
from functools import partial

import cutlass
import cutlass.cute as cute
import cutlass.cute.testing as testing
import cutlass.torch as cutlass_torch
import torch
from cuda.bindings import driver as cuda
from cutlass.cute.runtime import from_dlpack


@cute.kernel
def apply_kernel(
    op: cutlass.Constexpr[Callable],
    inputs: list[cute.Tensor],
    gC: cute.Tensor,
    cC: cute.Tensor,
    shape: cute.Shape,
    tv_layout: cute.Layout,  # (tid, vid) -> logical coord
):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()

    # a block's tile: (TileM, TileN)
    cta_coord = ((None, None), bidx)
    ctaInputs = [t[cta_coord] for t in inputs]
    ctaC = gC[cta_coord]
    ctaCrd = cC[cta_coord]
    print("[DSL INFO] Sliced Tensors per thread block:")
    for i in cutlass.range_constexpr(len(ctaInputs)):
        print(f"[DSL INFO]   ctaInputs{i} = {ctaInputs[i].type}")

    # composed with the thread-value layout, then this thread's row: (vid)
    thrInputs = [cute.composition(t, tv_layout)[tidx, None] for t in ctaInputs]
    tidfrgC = cute.composition(ctaC, tv_layout)
    tidfrgCrd = cute.composition(ctaCrd, tv_layout)
    thrC = tidfrgC[(tidx, None)]
    thrCrd = tidfrgCrd[tidx, cute.repeat_like(None, tidfrgCrd[1])] if cute.rank(tidfrgCrd) == 1 else tidfrgCrd[tidx, None]

    frgPred = cute.make_rmem_tensor(thrCrd.shape, cutlass.Boolean)
    for i in cutlass.range(cute.size(frgPred), unroll_full=True):
        frgPred[i] = cute.elem_less(thrCrd[i], shape)

    if cute.elem_less(thrCrd[cute.size(thrCrd) - 1], shape):
        # the last of a thread's elements is inside, so all are: vectors
        result = op(*[thrInput.load() for thrInput in thrInputs])
        thrC.store(result.to(gC.element_type))
    else:
        for i in cutlass.range_constexpr(cute.size(frgPred)):
            if frgPred[i]:
                fragments = [cute.make_rmem_tensor(1, t.element_type) for t in thrInputs]
                for f, t in zip(fragments, thrInputs):
                    f[0] = t[i]
                thrC[i] = op(*[f.load() for f in fragments]).to(gC.element_type)[0]


@cute.jit
def elementwise_apply(op: cutlass.Constexpr, inputs, result: cute.Tensor, stream: cuda.CUstream):
    # 128 bits for each thread and access
    thr_layout = cute.make_ordered_layout((4, 32), order=(1, 0))
    val_layout = cute.make_ordered_layout((4, 128 // result.element_type.width), order=(1, 0))
    tiler_mn, tv_layout = cute.make_layout_tv(thr_layout, val_layout)
    print("[DSL INFO] Tiler:", tiler_mn, "TV:", tv_layout)

    mInputs = [cute.zipped_divide(t, tiler_mn) for t in inputs]
    mC = cute.zipped_divide(result, tiler_mn)  # ((TileM,TileN),(RestM,RestN))
    cC = cute.zipped_divide(cute.make_identity_tensor(result.shape), tiler=tiler_mn)

    # blocks by rows of tiles
    remap_block = cute.make_ordered_layout(
        cute.select(mInputs[0].shape[1], mode=[1, 0]), order=(1, 0)
    )
    for i, t in enumerate(mInputs):
        print(f"[DSL INFO] gmem of operand {i}: {t.type}")
        mInputs[i] = cute.composition(t, (None, remap_block)) if cutlass.const_expr(cute.is_static(t.shape)) else t
    if cutlass.const_expr(cute.is_static(mC.shape)):
        mC = cute.composition(mC, (None, remap_block))
        cC = cute.composition(cC, (None, remap_block))
    apply_kernel(op, mInputs, mC, cC, result.shape, tv_layout).launch(
        grid=[cute.size(mC, mode=[1]), 1, 1],
        block=[cute.size(tv_layout, mode=[0]), 1, 1],
        stream=stream,
    )


def leaky_relu(x, alpha):
    return cute.where(x > 0, x, alpha * x)


def leaky_relu_ref(x, alpha):
    return torch.where(x > 0, x, alpha * x)


def run_and_verify(op, M, N, dtype, skip_ref_check=False, benchmark=False, dynamic=True, warmup=1, iterations=2):
    if not torch.cuda.is_available():
        raise RuntimeError("a GPU is required to run this program")
    torch_stream = torch.cuda.Stream()
    current_stream = cuda.CUstream(torch_stream.cuda_stream)

    num_inputs = 1 if op == "leaky_relu" else 2
    inputs = [torch.randn(M, N, device="cuda", dtype=cutlass_torch.dtype(dtype)) for _ in range(num_inputs)]
    c = torch.empty_like(inputs[0])

    def wrap(t):
        t = from_dlpack(t)
        return t.mark_layout_dynamic() if dynamic else t

    elems = [wrap(t) for t in inputs]
    if op == "leaky_relu":
        device_op, host_op = partial(leaky_relu, alpha=0.01), partial(leaky_relu_ref, alpha=0.01)
    elif op == "fma":
        device_op = host_op = lambda a, b: a * 2.0 + b
    else:
        device_op = host_op = getattr(operator, op)

    with torch.cuda.stream(torch_stream):
        compiled = cute.compile(elementwise_apply, device_op, elems, wrap(c), current_stream)
        compiled(elems, wrap(c), current_stream)
    torch_stream.synchronize()
    if not skip_ref_check:
        torch.testing.assert_close(host_op(*inputs), c)
        print(f"{op} {M}x{N}: results verified")
    if benchmark:
        took = testing.benchmark(
            compiled,
            workspace_generator=lambda: testing.JitArguments(
                [wrap(torch.randn_like(t)) for t in inputs], wrap(torch.empty_like(c)), current_stream
            ),
            workspace_count=2,
            use_cuda_graphs=False,
            stream=current_stream,
            warmup_iterations=warmup,
            iterations=iterations,
        )
        total = (num_inputs + 1) * c.numel() * dtype.width // 8
        print(f"{'finite' if total / took > 0 else 'no'} bandwidth")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="element-wise operations on tensors of any shape")
    parser.add_argument("--M", default=45, type=int)
    parser.add_argument("--N", default=264, type=int)
    parser.add_argument("--op", default="add", choices=["add", "sub", "mul", "leaky_relu", "fma"])
    args = parser.parse_args()
    run_and_verify(args.op, args.M, args.N, cutlass.Float32, benchmark=True)
    run_and_verify("leaky_relu", 16, 512, cutlass.Float16, dynamic=False)
    run_and_verify("fma", 17, 130, cutlass.Float32)
    print("\nPASS")
