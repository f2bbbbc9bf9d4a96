"""y = x / rms(x) * w (or with the mean taken off: layer norm), rows shared by the blocks of a cluster: each writes its
sums into the shared memory of all others, whose mbarrier counts the bytes."""

import argparse
import math
import operator
from functools import partial
from typing import Optional, Type

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import cutlass.cute.testing as testing
import torch
from cutlass import Float32, Int32, Int64, const_expr
from cutlass.cute.runtime import from_dlpack
from cutlass.cutlass_dsl import dsl_user_op


@dsl_user_op
def elem_pointer(x: cute.Tensor, coord, *, loc=None, ip=None) -> cute.Pointer:
    return x.iterator + cute.crd2idx(coord, x.layout, loc=loc, ip=ip)


@cute.jit
def row_reduce(
    x: cute.TensorSSA,
    op: cute.ReductionOp,
    threads_per_row: cutlass.Constexpr[int],
    buffer: cute.Tensor,
    mbar_ptr: Optional[cute.Pointer],
    phase: Optional[Int32],
    init_val: cutlass.Constexpr = 0.0,
):
    """The sum over the row of all threads of all blocks. ``buffer``: (rows, (warps of a row, blocks))"""
    val = x.reduce(op, init_val=init_val, reduction_profile=0)
    warp_op = {cute.ReductionOp.ADD: operator.add, cute.ReductionOp.MAX: cute.arch.fmax}[op]
    val = cute.arch.warp_reduction(val, warp_op, threads_in_group=min(threads_per_row, cute.arch.WARP_SIZE))
    rows, (warps_per_row, cluster_n) = buffer.shape
    if const_expr(warps_per_row == 1 and cluster_n == 1):
        return val
    lane, warp = cute.arch.lane_idx(), cute.arch.warp_idx()
    row, column = warp // warps_per_row, warp % warps_per_row
    if const_expr(cluster_n == 1):
        if lane == 0:
            buffer[row, column] = val
        cute.arch.barrier()
    else:
        rank = cute.arch.block_idx_in_cluster()
        if warp == 0:
            with cute.arch.elect_one():
                nbytes = rows * warps_per_row * cluster_n * Float32.width // 8
                cute.arch.mbarrier_arrive_and_expect_tx(mbar_ptr, nbytes)
        if lane < cluster_n:
            cute.arch.store_shared_remote(
                val, elem_pointer(buffer, (row, (column, rank))), mbar_ptr, peer_cta_rank_in_cluster=lane
            )
        cute.arch.mbarrier_wait(mbar_ptr, phase=phase)
    total = Float32(init_val)
    for i in cutlass.range_constexpr(math.ceil(warps_per_row * cluster_n / cute.arch.WARP_SIZE)):
        at = lane + i * cute.arch.WARP_SIZE
        if at < warps_per_row * cluster_n:
            total = warp_op(total, buffer[row, at])
    return cute.arch.warp_reduction(total, warp_op)


class Norm:
    def __init__(self, dtype: Type[cutlass.Numeric], N: int, cluster_n: int, layer_norm: bool):
        self.dtype, self.N, self.cluster_n, self.layer_norm = dtype, N, cluster_n, layer_norm
        self.num_threads = 128
        self.threads_per_row = 64
        self.vec = 128 // dtype.width

    @cute.jit
    def __call__(self, mX: cute.Tensor, mW: cute.Tensor, mY: cute.Tensor, stream: cuda.CUstream, eps: Float32 = 1e-6):
        rows = self.num_threads // self.threads_per_row
        blocks = cute.ceil_div(cute.ceil_div(self.N // self.vec, self.threads_per_row), self.cluster_n)
        tiler_mn = (rows, self.vec * blocks * self.threads_per_row)
        tv_layout = cute.make_layout(
            ((self.threads_per_row, rows), (self.vec, blocks)),
            stride=((self.vec * rows, 1), (rows, rows * self.vec * self.threads_per_row)),
        )
        # one row of W for all rows of the tile
        mW = cute.make_tensor(mW.iterator, cute.prepend(mW.layout, cute.make_layout((rows,), stride=(0,))))
        self.kernel(mX, mW, mY, eps, tv_layout, tiler_mn).launch(
            grid=[cute.ceil_div(mX.shape[0], rows), self.cluster_n, 1],
            block=[self.num_threads, 1, 1],
            cluster=[1, self.cluster_n, 1] if const_expr(self.cluster_n > 1) else None,
            stream=stream,
        )

    @cute.kernel
    def kernel(
        self,
        mX: cute.Tensor,
        mW: cute.Tensor,
        mY: cute.Tensor,
        eps: Float32,
        tv_layout: cute.Layout,
        tiler_mn: cute.Shape,
    ):
        tidx, _, _ = cute.arch.thread_idx()
        bidx, part, _ = cute.arch.block_idx()
        smem = cutlass.utils.SmemAllocator()
        sX = smem.allocate_tensor(
            mX.element_type, cute.make_ordered_layout(tiler_mn, order=(1, 0)), byte_alignment=16
        )
        warps_per_row = self.threads_per_row // cute.arch.WARP_SIZE
        buffer = smem.allocate_tensor(
            Float32,
            cute.make_ordered_layout((tiler_mn[0], (warps_per_row, self.cluster_n)), order=(1, 0)),
            byte_alignment=8,
        )
        mbar_ptr = None
        if const_expr(self.cluster_n > 1):
            mbar_ptr = smem.allocate_array(Int64, num_elems=1)
            if tidx == 0:
                cute.arch.mbarrier_init(mbar_ptr, 1)
            cute.arch.mbarrier_init_fence()
            cute.arch.cluster_arrive_relaxed()

        idX = cute.make_identity_tensor(mX.shape)
        # where rows may be many, 64 bits say where a tile begins
        gX, gY, cX = (cute.local_tile(m, tiler_mn, (bidx, part)) for m in (mX, mY, idX))
        gW = cute.local_tile(mW, tiler_mn, (0, part))
        atom_load = cute.make_copy_atom(
            cute.nvgpu.cpasync.CopyG2SOp(), mX.element_type, num_bits_per_copy=128
        )
        atom_w = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), mW.element_type, num_bits_per_copy=128)
        atom_store = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), mY.element_type, num_bits_per_copy=128)
        thr_load = cute.make_tiled_copy(atom_load, tv_layout, tiler_mn).get_slice(tidx)
        thr_w = cute.make_tiled_copy(atom_w, tv_layout, tiler_mn).get_slice(tidx)
        thr_store = cute.make_tiled_copy(atom_store, tv_layout, tiler_mn).get_slice(tidx)
        tXgX, tXsX = thr_load.partition_S(gX), thr_load.partition_D(sX)
        tXcX = thr_load.partition_S(cX)[(0, None), None, None]
        tWgW = thr_w.partition_S(gW)
        tYgY = thr_store.partition_D(gY)
        tWrW, tXrX, tYrY = (cute.make_fragment_like(t) for t in (tWgW, tXgX, tYgY))
        pred = cute.make_rmem_tensor(
            cute.make_layout(
                (cute.size(tXgX, mode=[0, 1]), cute.size(tXgX, mode=[1]), cute.size(tXgX, mode=[2])),
                stride=(cute.size(tXgX, mode=[2]), 0, 1),
            ),
            cutlass.Boolean,
        )
        for v in cutlass.range_constexpr(pred.shape[0]):
            for rest in cutlass.range_constexpr(pred.shape[2]):
                pred[v, 0, rest] = cute.elem_less(tXcX[v, 0, rest][1], mX.shape[1])

        row = tXcX[0, 0, 0][0]
        if row < mX.shape[0]:
            cute.copy(atom_load, tXgX, tXsX, pred=pred)
        cute.arch.cp_async_commit_group()
        tWrW.fill(0)
        cute.copy(atom_w, tWgW, tWrW, pred=pred)
        cute.arch.cp_async_wait_group(0)
        if const_expr(self.N % tiler_mn[1] != 0):
            # what was not loaded counts nothing
            for rest in cutlass.range_constexpr(pred.shape[2]):
                for v in cutlass.range_constexpr(pred.shape[0]):
                    if not pred[v, 0, rest]:
                        tXsX[(None, v), 0, rest].fill(0)
        cute.autovec_copy(tXsX, tXrX)
        x = tXrX.load().to(Float32)
        if const_expr(self.cluster_n > 1):
            cute.arch.cluster_wait()
        reduce = partial(row_reduce, threads_per_row=self.threads_per_row, buffer=buffer, mbar_ptr=mbar_ptr)
        phase = Int32(0)
        if const_expr(self.layer_norm):
            mean = reduce(x, cute.ReductionOp.ADD, phase=phase) / self.N
            if const_expr(self.cluster_n > 1):
                # the buffer is read by all before it is written again
                cute.arch.cluster_arrive()
                cute.arch.cluster_wait()
            else:
                cute.arch.barrier()
            phase = Int32(1)
            centred = cute.make_fragment_like(tXrX, Float32)
            centred.store(x - mean)
            for v in cutlass.range_constexpr(pred.shape[0]):
                for rest in cutlass.range_constexpr(pred.shape[2]):
                    if not pred[v, 0, rest]:
                        centred[(None, v), 0, rest].fill(0.0)
            x = centred.load()
        mean_of_squares = reduce(x * x, cute.ReductionOp.ADD, phase=phase) / self.N
        rstd = cute.math.rsqrt(mean_of_squares + eps, fastmath=True)
        y = x * rstd * tWrW.load().to(Float32)
        tYrY.store(y.to(tYrY.element_type))
        if row < mX.shape[0]:
            cute.copy(atom_store, tYrY, tYgY, pred=pred)
        if const_expr(self.cluster_n > 1):
            # nobody ends while others may still write here
            cute.arch.cluster_arrive()
            cute.arch.cluster_wait()


def run(M: int, N: int, cluster_n: int, layer_norm: bool, dtype: Type[cutlass.Numeric], tolerance: float):
    torch_dtype = {cutlass.Float16: torch.float16, cutlass.BFloat16: torch.bfloat16, Float32: torch.float32}[dtype]
    x = torch.randn(M, N, device="cuda", dtype=torch_dtype)
    w = torch.randn(N, device="cuda", dtype=torch_dtype)
    y = torch.empty_like(x)
    stream = cuda.CUstream(torch.cuda.current_stream().cuda_stream)

    def convert(t):
        return (
            from_dlpack(t, assumed_align=16)
            .mark_compact_shape_dynamic(mode=0, stride_order=(0, 1))
            if t.ndim == 2
            else from_dlpack(t, assumed_align=16)
        )

    mX, mW, mY = (convert(t) for t in (x, w, y))
    compiled = cute.compile(Norm(dtype, N, cluster_n, layer_norm), mX, mW, mY, stream, 1e-6)
    compiled(mX, mW, mY, stream, 1e-6)
    xf = x.float().cpu()
    if layer_norm:
        xf = xf - xf.mean(-1, keepdim=True)
    expected = xf * torch.rsqrt((xf * xf).mean(-1, keepdim=True) + 1e-6) * w.float().cpu()
    torch.testing.assert_close(y.float().cpu(), expected, atol=tolerance, rtol=tolerance)
    time = testing.benchmark(
        compiled, kernel_arguments=testing.JitArguments(mX, mW, mY, stream, 1e-6), warmup_iterations=0, iterations=1,
        stream=stream,
    )
    print(f"{M}x{N} {dtype}, {cluster_n} blocks a row: verified, {'timed' if time > 0 else ''}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--M", default=5, type=int)
    args = parser.parse_args()
    run(args.M, 1000, 1, False, cutlass.Float16, 2e-2)
    run(args.M, 4096, 4, False, cutlass.BFloat16, 5e-2)
    run(args.M, 1528, 2, True, Float32, 1e-3)
    print("PASS")
