"""Dependent launches, cooperative launches, CUDA graphs, tuned configurations."""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import cutlass.cute.testing as testing
import torch
from cutlass.base_dsl.runtime.cuda import checkCudaErrors
from cutlass.cute.runtime import from_dlpack


@cute.kernel
def first(x: cute.Tensor, y: cute.Tensor):
    i = cute.arch.block_idx()[0] * 64 + cute.arch.thread_idx()[0]
    y[i] = x[i] * 2
    cute.arch.griddepcontrol_launch_dependents()


@cute.kernel
def second(y: cute.Tensor, z: cute.Tensor):
    i = cute.arch.block_idx()[0] * 64 + cute.arch.thread_idx()[0]
    cute.arch.griddepcontrol_wait()
    z[i] = y[i] + 1


@cute.jit
def chain(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor, stream: cuda.CUstream, pdl: cutlass.Constexpr = True):
    grid = (cute.size(x) // 64, 1, 1)
    first(x, y).launch(grid=grid, block=(64, 1, 1), stream=stream, use_pdl=pdl)
    second(y, z).launch(grid=grid, block=(64, 1, 1), stream=stream, use_pdl=pdl)


@cute.kernel
def all_sum(x: cute.Tensor, count: cute.Tensor, out: cute.Tensor):
    """Every block adds up what all blocks wrote: they meet at a counter, so they all must be resident."""
    t, _, _ = cute.arch.thread_idx()
    b, _, _ = cute.arch.block_idx()
    blocks, _, _ = cute.arch.grid_dim()
    if t == 0:
        out[b, 0] = x[b]
        cute.arch.fence_acq_rel_gpu()
        cute.arch.atomic_add(count.iterator, cutlass.Int32(1), sem="release", scope="gpu")
        seen = cutlass.Int32(0)
        while seen < blocks:
            seen = cute.arch.load(count.iterator, cutlass.Int32, sem="acquire", scope="gpu")
        total = cutlass.Float32(0)
        for i in range(blocks):
            total += out[i, 0]
        out[b, 1] = total


@cute.jit
def meet(x: cute.Tensor, count: cute.Tensor, out: cute.Tensor):
    all_sum(x, count, out).launch(grid=(cute.size(x), 1, 1), block=(32, 1, 1), cooperative=True)


@cute.kernel
def scale_kernel(x: cute.Tensor, factor: cutlass.Constexpr):
    i = cute.arch.block_idx()[0] * cute.arch.block_dim()[0] + cute.arch.thread_idx()[0]
    if i < cute.size(x):
        x[i] = x[i] * factor


@testing.autotune_jit(params_dict={"threads": [32, 64]}, update_on_change=["n"], warmup_iterations=1, iterations=1)
@cute.jit
def tuned(x: cute.Tensor, n: cutlass.Int32, threads: cutlass.Constexpr = 32):
    scale_kernel(x, 1.0).launch(grid=(cute.ceil_div(n, threads), 1, 1), block=(threads, 1, 1))


def main():
    x = torch.arange(256.0, device="cuda")
    y, z = torch.zeros_like(x), torch.zeros_like(x)
    tensors = [from_dlpack(t, assumed_align=16) for t in (x, y, z)]
    stream = cuda.CUstream(torch.cuda.current_stream().cuda_stream)
    for pdl in (True, False):
        z.zero_()
        compiled = cute.compile(chain, *tensors, stream, pdl)
        compiled(*tensors, stream)
        torch.testing.assert_close(z.cpu(), x.cpu() * 2 + 1)

    n = 4
    out, count = torch.zeros(n, 2, device="cuda"), torch.zeros(1, dtype=torch.int32, device="cuda")
    meet(from_dlpack(x[:n]), from_dlpack(count), from_dlpack(out))
    assert out[:, 1].tolist() == [6.0] * n

    graph, side = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    with torch.cuda.graph(graph, stream=side):
        compiled(*tensors, cuda.CUstream(torch.cuda.current_stream().cuda_stream))
    z.zero_()
    graph.replay()
    torch.cuda.synchronize()
    torch.testing.assert_close(z.cpu(), x.cpu() * 2 + 1)

    own = checkCudaErrors(cuda.cuStreamCreate(cuda.CUstream_flags.CU_STREAM_NON_BLOCKING))
    mode = cuda.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
    z.zero_()
    checkCudaErrors(cuda.cuStreamBeginCapture(own, mode))
    compiled(*tensors, own)
    captured = checkCudaErrors(cuda.cuStreamEndCapture(own))
    assert z.sum().item() == 0
    runnable = checkCudaErrors(cuda.cuGraphInstantiate(captured, 0))
    checkCudaErrors(cuda.cuGraphLaunch(runnable, own))
    checkCudaErrors(cuda.cuStreamSynchronize(own))
    torch.testing.assert_close(z.cpu(), x.cpu() * 2 + 1)
    took = testing.benchmark(
        compiled, kernel_arguments=testing.JitArguments(*tensors, own), stream=own, use_cuda_graphs=True,
        warmup_iterations=1, iterations=2,
    )
    checkCudaErrors(cuda.cuStreamDestroy(own))

    tuned(from_dlpack(x), 256)

    def make(t, threads):
        launch = cute.compile(tuned.__wrapped__, t, 256, threads)
        return lambda: launch(t, 256)

    best = testing.tune(
        make, params_dict={"threads": [32, 128]}, kernel_arguments=testing.JitArguments(from_dlpack(x)),
        warmup_iterations=0, iterations=1,
    )
    assert took > 0 and best["threads"] in (32, 128)
    print("PASS")


if __name__ == "__main__":
    main()
