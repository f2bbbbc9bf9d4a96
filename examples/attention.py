"""Attention, forward: softmax(Q K^T / sqrt(d)) V without ever writing the scores, in the manner of FlashAttention-2.

    python examples/attention.py [--gpu]

Four warps own 16 rows of Q each and walk over K and V in tiles of 64 rows. Row maxima and sums are kept per thread and
exchanged among the four lanes that share a row. The accumulators of Q K^T become the A operand of P V by a change of
layout alone: two neighbouring 8-column atoms of C hold, in each thread, exactly the values of one 16-column atom of A.

Needs Tilewright; with --gpu also PyTorch (`pip install torch`) and the extra `cuda`.
"""

# %% [markdown]
# ## Attention without its scores
#
# The scores `Q K^T` of 8,192 rows are 64 million numbers. They are never written: a block keeps 64 rows of Q, goes
# over K and V in tiles of 64 rows, and carries three things: the running maximum and sum of each row, as in
# [softmax](softmax.md), and the output so far, which is multiplied by `exp(old - new)` when a maximum grows.
#
# ## From one product to the next without moving a value
#
# The accumulators of `Q K^T` become operand A of `P V`. In the picture, thread 5 has V0 and V1 of row 1 and V2 and V3
# of row 9 in C, 8 columns wide. A is 16 columns wide and wants the same values in the same places, twice: two
# neighbouring atoms of C are one atom of A. So `as_operand_A` is a new layout for the same registers.
#
# ![the places of thread 5 in A, B and C](mma.svg)

# %%
from __future__ import annotations

import math
import sys
from functools import cache
from typing import Any

import numpy as np

import tilewright as cutlass
from tilewright import cute, utils
from tilewright.cute.runtime import from_dlpack
from tilewright.viz import Figure, mma_figure

ROWS = 64
THREADS = 128
LOG2_E = math.log2(math.e)


# %% [markdown]
# ## The kernel
#
# K and V arrive by `cp.async` while the block computes: the product with K starts when K is there, V has until the
# softmax is done. V is read from shared memory transposed, by `ldmatrix.trans`.


# %%
class Attention:
    """O = softmax(scale * Q K^T) V for Q, O (rows, d, heads) and K, V (columns, d, heads), all with d contiguous.

    Any number of rows and columns; d is 64 or 128. ``causal``: row i sees columns up to i + columns - rows.
    """

    def __init__(self, d: int, causal: bool) -> None:
        self.d, self.causal = d, causal

    @cute.jit
    def __call__(self, mQ: cute.Tensor, mK: cute.Tensor, mV: cute.Tensor, mO: cute.Tensor, stream: Any = None):
        mQ, mK, mV, mO = (rows_aligned(matrix, 8) for matrix in (mQ, mK, mV, mO))
        dtype = mQ.element_type
        atom = cute.make_layout((8, 64), stride=(64, 1))
        swizzled = cute.make_composed_layout(cute.make_swizzle(3, 3, 3), 0, atom)
        tile = cute.tile_to_shape(swizzled, (ROWS, self.d), (0, 1))
        vectors = cute.make_tiled_copy_tv(
            cute.make_copy_atom(cute.nvgpu.cpasync.CopyG2SOp(), dtype, num_bits_per_copy=128),
            cute.make_layout((THREADS // 8, 8), stride=(8, 1)),
            cute.make_layout((1, 8)),
        )
        op = cute.nvgpu.warp.MmaF16BF16Op(dtype, cutlass.Float32, (16, 8, 16))
        tiled_mma = cute.make_tiled_mma(op, cute.make_layout((4, 1, 1)), permutation_mnk=(64, 16, 16))
        grid = (cute.ceil_div(cute.size(mQ, mode=[0]), ROWS), cute.size(mQ, mode=[2]), 1)
        self.kernel(mQ, mK, mV, mO, tile, vectors, tiled_mma).launch(grid=grid, block=(THREADS, 1, 1), stream=stream)

    @cute.kernel
    def kernel(
        self,
        mQ: cute.Tensor,
        mK: cute.Tensor,
        mV: cute.Tensor,
        mO: cute.Tensor,
        tile: cutlass.Constexpr,
        vectors: cute.TiledCopy,
        tiled_mma: cute.TiledMma,
    ):
        tidx, _, _ = cute.arch.thread_idx()
        row_tile, head, _ = cute.arch.block_idx()
        rows, columns = cute.size(mQ, mode=[0]), cute.size(mK, mode=[0])
        dtype, d = mQ.element_type, self.d

        smem = utils.SmemAllocator()
        sQ, sK, sV = (smem.allocate_tensor(dtype, tile, 128) for _ in range(3))
        # V enters the second product as (d, columns): the same bytes, the modes exchanged.
        sVt = cute.composition(sV, cute.make_layout((d, ROWS), stride=(ROWS, 1)))

        thread = vectors.get_slice(tidx)
        gQ, gO = (cute.local_tile(m[None, None, head], (ROWS, d), (row_tile, 0)) for m in (mQ, mO))
        gK, gV = (cute.local_tile(m[None, None, head], (ROWS, d), (None, 0)) for m in (mK, mV))
        cT = thread.partition_S(cute.make_identity_tensor((ROWS, d)))
        self.load(vectors, thread.partition_S(gQ), thread.partition_D(sQ), cT, rows - row_tile * ROWS)
        cute.arch.cp_async_commit_group()

        thr_mma = tiled_mma.get_slice(tidx)
        tSrQ = thr_mma.make_fragment_A(thr_mma.partition_A(sQ))
        tSrK = thr_mma.make_fragment_B(thr_mma.partition_B(sK))
        tOrV = thr_mma.make_fragment_B(thr_mma.partition_B(sVt))
        acc_O = cute.make_rmem_tensor(thr_mma.partition_shape_C((ROWS, d)), cutlass.Float32)
        acc_O.fill(0)
        ldmatrix = cute.make_copy_atom(cute.nvgpu.warp.LdMatrix8x8x16bOp(num_matrices=4), dtype)
        transposed = cute.make_copy_atom(cute.nvgpu.warp.LdMatrix8x8x16bOp(transpose=True, num_matrices=4), dtype)
        copy_Q = cute.make_tiled_copy_A(ldmatrix, tiled_mma)
        copy_K = cute.make_tiled_copy_B(ldmatrix, tiled_mma)
        copy_V = cute.make_tiled_copy_B(transposed, tiled_mma)

        cute.arch.cp_async_wait_group(0)
        cute.arch.sync_threads()
        cute.copy(copy_Q, copy_Q.get_slice(tidx).partition_S(sQ), copy_Q.retile(tSrQ))
        tXsK, tXrK = copy_K.get_slice(tidx).partition_S(sK), copy_K.retile(tSrK)
        tXsV, tXrV = copy_V.get_slice(tidx).partition_S(sVt), copy_V.retile(tOrV)
        tKgK, tKsK = thread.partition_S(gK), thread.partition_D(sK)
        tVgV, tVsV = thread.partition_S(gV), thread.partition_D(sV)

        # Each thread has two rows of its warp's sixteen; their maxima and sums.
        largest = cute.make_rmem_tensor(2, cutlass.Float32)
        total = cute.make_rmem_tensor(2, cutlass.Float32)
        largest.fill(float(np.finfo(np.float32).min))
        total.fill(0)
        scale = LOG2_E / math.sqrt(d)
        tScS = thr_mma.partition_C(cute.make_identity_tensor((ROWS, ROWS)))

        last = columns
        if cutlass.const_expr(self.causal):
            last = cute.min(columns, (row_tile + 1) * ROWS + columns - rows)
        for tile_n in cutlass.range(cute.ceil_div(last, ROWS), unroll=1):
            cute.arch.sync_threads()
            self.load(vectors, tKgK[None, None, None, tile_n], tKsK, cT, columns - tile_n * ROWS)
            cute.arch.cp_async_commit_group()
            self.load(vectors, tVgV[None, None, None, tile_n], tVsV, cT, columns - tile_n * ROWS)
            cute.arch.cp_async_commit_group()
            cute.arch.cp_async_wait_group(1)
            cute.arch.sync_threads()
            acc_S = cute.make_rmem_tensor(thr_mma.partition_shape_C((ROWS, ROWS)), cutlass.Float32)
            acc_S.fill(0)
            cute.copy(copy_K, tXsK, tXrK)
            cute.gemm(tiled_mma, acc_S, tSrQ, tSrK, acc_S)

            for i in cutlass.range_constexpr(cute.size(acc_S)):
                row, column = tScS[i]
                seen = column + tile_n * ROWS < columns
                if cutlass.const_expr(self.causal):
                    seen = seen & (column + tile_n * ROWS <= row + row_tile * ROWS + columns - rows)
                acc_S[i] = acc_S[i] * scale if seen else -cutlass.Float32.inf
            self.softmax_step(acc_S, acc_O, largest, total)

            tOrP = cute.make_rmem_tensor(acc_S.shape, dtype)
            tOrP.store(acc_S.load().to(dtype))
            cute.arch.cp_async_wait_group(0)
            cute.arch.sync_threads()
            cute.copy(copy_V, tXsV, tXrV)
            cute.gemm(tiled_mma, acc_O, as_operand_A(tOrP), tOrV, acc_O)

        self.finish(acc_O, total)
        out = cute.make_rmem_tensor(acc_O.shape, dtype)
        out.store(acc_O.load().to(dtype))
        cute.arch.sync_threads()
        cute.autovec_copy(out, thr_mma.partition_C(sQ))
        cute.arch.sync_threads()
        self.store(vectors, thread.partition_S(sQ), thread.partition_D(gO), cT, rows - row_tile * ROWS)

    @cute.jit
    def load(self, vectors: Any, source: cute.Tensor, target: cute.Tensor, coordinates: cute.Tensor, rows: Any):
        """Rows beyond the end become zero."""
        inside = cute.make_rmem_tensor((1, *target.shape[1:]), cutlass.Boolean)
        for i in cutlass.range_constexpr(cute.size(inside)):
            inside[i] = coordinates[i * 8][0] < rows
        cute.copy(vectors, source, target, pred=inside)

    @cute.jit
    def store(self, vectors: Any, source: cute.Tensor, target: cute.Tensor, coordinates: cute.Tensor, rows: Any):
        inside = cute.make_rmem_tensor((1, *target.shape[1:]), cutlass.Boolean)
        for i in cutlass.range_constexpr(cute.size(inside)):
            inside[i] = coordinates[i * 8][0] < rows
        staging = cute.make_fragment_like(source)
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), target.element_type, num_bits_per_copy=128)
        cute.copy(atom, source, staging)
        cute.copy(atom, staging, target, pred=inside)

    @cute.jit
    def softmax_step(self, acc_S: cute.Tensor, acc_O: cute.Tensor, largest: cute.Tensor, total: cute.Tensor):
        """Scores become probabilities relative to the new maxima; sums and output follow the maxima."""
        scores, output = by_row(acc_S), by_row(acc_O)
        for r in cutlass.range_constexpr(2):
            row = scores[r, None]
            new = row.load().reduce(cute.ReductionOp.MAX, largest[r], 0)
            new = cute.arch.fmax(new, cute.arch.shuffle_sync_bfly(new, offset=1))
            new = cute.arch.fmax(new, cute.arch.shuffle_sync_bfly(new, offset=2))
            probability = cute.math.exp2(row.load() - new, fastmath=True)
            row.store(probability)
            keep = cute.math.exp2(largest[r] - new, fastmath=True)
            total[r] = total[r] * keep + probability.reduce(cute.ReductionOp.ADD, cutlass.Float32(0), 0)
            output[r, None].store(output[r, None].load() * keep)
            largest[r] = new

    @cute.jit
    def finish(self, acc_O: cute.Tensor, total: cute.Tensor):
        output = by_row(acc_O)
        for r in cutlass.range_constexpr(2):
            whole = total[r] + cute.arch.shuffle_sync_bfly(total[r], offset=1)
            whole = whole + cute.arch.shuffle_sync_bfly(whole, offset=2)
            output[r, None].store(output[r, None].load() / whole)


def by_row(acc: cute.Tensor) -> cute.Tensor:
    """Accumulators ((2,2), MMA_M, MMA_N) as (rows, columns) of the thread: (2, (2, MMA_N)) for one MMA_M."""
    (columns, rows), m, n = acc.layout.shape
    (step, row_step), m_step, n_step = acc.layout.stride
    layout = cute.make_layout(((rows, m), (columns, n)), stride=((row_step, m_step), (step, n_step)))
    return cute.make_tensor(acc.iterator, layout)


def as_operand_A(acc: cute.Tensor) -> cute.Tensor:
    """Accumulators ((2,2), MMA_M, MMA_N) as fragments of A ((2,2,2), MMA_M, MMA_N / 2): pairs of atoms along N."""
    (columns, rows), m, n = acc.layout.shape
    (step, row_step), m_step, n_step = acc.layout.stride
    layout = cute.make_layout(((columns, rows, 2), m, n // 2), stride=((step, row_step, n_step), m_step, 2 * n_step))
    return cute.make_tensor(acc.iterator, layout)


# %% [markdown]
# ## The check
#
# Compared with float64: rows and columns that are not multiples of the tile, d of 64 and 128, and the causal mask.


# %%
@cache
def forward(d: int, causal: bool) -> Attention:
    return Attention(d, causal)


def attention(q: Any, k: Any, v: Any, out: Any, causal: bool = False) -> Any:
    """``out`` = attention of q (heads, rows, d) over k, v (heads, columns, d): fp16 or bf16, d of 64 or 128."""
    tensors = [from_dlpack(permute(x, [1, 2, 0]), assumed_align=16) for x in (q, k, v, out)]
    forward(q.shape[-1], causal)(*(tensor.mark_layout_dynamic(leading_dim=1) for tensor in tensors))
    return out


def pictures() -> dict[str, Figure]:
    """What thread 5 has of A, B and C."""
    op = cute.nvgpu.warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16))
    atom = cute.make_mma_atom(op)
    return {"mma.svg": mma_figure(atom.tv_layout_A, atom.tv_layout_B, atom.tv_layout_C, (16, 8, 16), thread=5)}


def reference(q: np.ndarray, k: np.ndarray, v: np.ndarray, causal: bool) -> np.ndarray:
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    scores = q @ k.swapaxes(1, 2) / math.sqrt(q.shape[-1])
    if causal:
        rows, columns = scores.shape[1:]
        scores[:, np.arange(columns)[None, :] > np.arange(rows)[:, None] + columns - rows] = -np.inf
    p = np.exp(scores - scores.max(-1, keepdims=True))
    return p / p.sum(-1, keepdims=True) @ v


def main() -> None:
    rng = np.random.default_rng(0)
    for heads, rows, columns, d, causal in (
        (2, 128, 128, 64, False),
        (1, 100, 150, 128, False),
        (2, 130, 200, 64, True),
    ):
        shapes = ((heads, rows, d), (heads, columns, d), (heads, columns, d))
        q, k, v = (rng.standard_normal(s).astype(np.float16) for s in shapes)
        given = machine_arrays(q, k, v, np.empty_like(q))
        out = attention(given[0], given[1], given[2], given[3], causal=causal)
        title = f"attention {heads}x{rows}x{columns}, d {d}{', causal' if causal else ''}"
        report(title, to_numpy(out), reference(q, k, v, causal))


# -- arrays for the machine that is asked for, and the check of the result ---------------------------------------------


def machine_arrays(*arrays: np.ndarray) -> list[Any]:
    """The arrays as they are (simulator), or as CUDA tensors when ``--gpu`` is on the command line."""
    if "--gpu" not in sys.argv:
        return list(arrays)
    return [to_torch(array).cuda() for array in arrays]


def rows_aligned(matrix: cute.Tensor, vector: int) -> cute.Tensor:
    """``matrix`` with the promise that every row starts on a multiple of ``vector`` elements."""
    stride = tuple(s if isinstance(s, int) else cute.assume(s, divby=vector) for s in matrix.stride)
    return cute.make_tensor(matrix.iterator, cute.make_layout(matrix.shape, stride=stride))


def to_torch(array: np.ndarray) -> Any:
    """The array as a torch tensor with the same strides; bf16 travels as its bits, which torch reads from NumPy."""
    import torch

    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def permute(x: Any, order: list[int]) -> Any:
    return x.transpose(order) if isinstance(x, np.ndarray) else x.permute(order)


def to_numpy(array: Any) -> np.ndarray:
    """The array on the host; torch's bf16 comes as float32."""
    if isinstance(array, np.ndarray):
        return array
    return (array.float() if str(array.dtype) == "torch.bfloat16" else array).cpu().numpy()


def report(title: str, result: Any, expected: np.ndarray) -> None:
    """Print the largest relative error and raise when it is beyond rounding."""
    got = to_numpy(result).astype(np.float64)
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    error = float(np.abs(got - expected).max(initial=0.0)) / scale
    print(f"{title}: largest error {error:.2e} of {scale:.3g}")
    if not error < 1e-2:
        raise SystemExit(f"{title}: wrong result")


if __name__ == "__main__":
    main()
