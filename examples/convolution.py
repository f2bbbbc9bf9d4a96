"""A 2-D convolution as a matrix product whose operand A is a layout: im2col without a copy.

    python examples/convolution.py [--gpu]

Needs Tilewright; with --gpu also PyTorch (`pip install torch`) and the extra `cuda`.
"""

# %% [markdown]
# ## The idea
#
# Each output pixel of a convolution is a sum over a window of the input and all of its channels. Written as a matrix
# product, a row of A is one window: A has a row for each output pixel (n, p, q) and a column for each filter element
# (r, s, c). The usual name of this matrix is *im2col*. Copying it out takes R x S times the memory of the input.
#
# A layout needs no copy. Moving one output pixel to the right and moving one filter column to the right both move by
# one pixel of the input. So rows and columns of A get the same strides: `im2col_layout` is the whole transformation.
#
# ![the im2col layout of a 6 x 5 image and 3 x 3 filters](im2col.svg)

# %%
from __future__ import annotations

import sys
from typing import Any

import numpy as np

import tilewright as cutlass
from tilewright import cute, utils
from tilewright.cute.nvgpu import cpasync, warp
from tilewright.layout import Layout, make_layout
from tilewright.viz import Figure, layout_figure

BM, BN, BK = 64, 64, 32  # output pixels, filters, and elements of a window that a block takes at once
THREADS, VECTOR = 128, 8  # a copy moves 8 halves, 16 bytes: the number of channels is a multiple of 8


def im2col_layout(image: tuple[int, int, int, int], window: tuple[int, int], stride: int, pad: int) -> Layout:
    """((q, p, n), (c, s, r)) -> offset in an (N, H, W, C) image, counted from its padded corner."""
    n, h, w, c = image
    r, s = window
    pixels = (w + 2 * pad - s) // stride + 1, (h + 2 * pad - r) // stride + 1, n
    rows = make_layout(pixels, stride=(stride * c, stride * w * c, h * w * c))
    columns = make_layout((c, s, r), stride=(1, c, w * c))
    return make_layout(rows, columns)


def pictures() -> dict[str, Figure]:
    """One image of 6 x 5 pixels with one channel: equal colours are one element of the image."""
    layout = im2col_layout((1, 6, 5, 1), (3, 3), stride=1, pad=0)
    return {"im2col.svg": layout_figure(layout, title="im2col: a row for each output pixel, a column for each tap")}


# %% [markdown]
# ## The kernel
#
# It is the kernel of [step 7 of the path](../path/07_mma_gemm.md) with another way to load A. A layout takes a single
# number for a nested mode, so `crd2idx((m, k), layout)` is the address of element (m, k): no division by hand.
# `idx2crd` gives (q, p, n) and (c, s, r), from which follows whether the element is inside the image; outside,
# `cp.async` writes zeros. Padding therefore costs a predicate and no memory.


# %%
class Convolution:
    """y (N, P, Q, K) = x (N, H, W, C) convolved with w (K, R, S, C): fp16 in, fp32 sums, C a multiple of 8.

    Any other extents; ``stride`` and ``pad`` are the same in both directions.
    """

    def __init__(self, stride: int, pad: int) -> None:
        self.stride, self.pad = stride, pad

    @cute.jit
    def __call__(self, x: cute.Tensor, w: cute.Tensor, y: cute.Tensor, stream: Any = None):
        filters, r, s, c = w.shape
        im2col = im2col_layout(x.shape, (r, s), self.stride, self.pad)
        weights = cute.make_tensor(w.iterator, cute.make_layout((filters, r * s * c), stride=(r * s * c, 1)))
        pixels = cute.size(im2col, mode=[0])
        output = cute.make_tensor(y.iterator, cute.make_layout((pixels, filters), stride=(filters, 1)))
        grid = (cute.ceil_div(pixels, BM), cute.ceil_div(filters, BN), 1)
        self.kernel(x, im2col, weights, output).launch(grid=grid, block=(THREADS, 1, 1), stream=stream)

    @cute.kernel
    def kernel(self, x: cute.Tensor, im2col: cutlass.Constexpr, weights: cute.Tensor, output: cute.Tensor):
        tidx, _, _ = cute.arch.thread_idx()
        tile_m, tile_n, _ = cute.arch.block_idx()
        dtype = x.element_type
        mma = cute.make_tiled_mma(
            warp.MmaF16BF16Op(dtype, cutlass.Float32, (16, 8, 16)),
            cute.make_layout((2, 2, 1)),
            permutation_mnk=(32, 32, 16),
        )
        rows = cute.make_composed_layout(cute.make_swizzle(2, 3, 3), 0, cute.make_layout((8, BK), stride=(BK, 1)))
        smem = utils.SmemAllocator()
        sA = smem.allocate_tensor(dtype, cute.tile_to_shape(rows, (BM, BK), (0, 1)), 128)
        sB = smem.allocate_tensor(dtype, cute.tile_to_shape(rows, (BN, BK), (0, 1)), 128)

        thr_mma = mma.get_slice(tidx)
        tCrA = thr_mma.make_fragment_A(thr_mma.partition_A(sA))  # (MMA, MMA_M, MMA_K)
        tCrB = thr_mma.make_fragment_B(thr_mma.partition_B(sB))  # (MMA, MMA_N, MMA_K)
        acc = cute.make_rmem_tensor(thr_mma.partition_shape_C((BM, BN)), cutlass.Float32)
        acc.fill(0.0)
        ldmatrix = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(num_matrices=4), dtype)
        copy_A, copy_B = cute.make_tiled_copy_A(ldmatrix, mma), cute.make_tiled_copy_B(ldmatrix, mma)

        for k_tile in cutlass.range(cute.ceil_div(cute.size(im2col, mode=[1]), BK), unroll=1):
            self.load_windows(x, im2col, sA, tile_m * BM, k_tile * BK)
            self.load_weights(weights, sB, tile_n * BN, k_tile * BK)
            cute.arch.cp_async_commit_group()
            cute.arch.cp_async_wait_group(0)
            cute.arch.sync_threads()
            cute.copy(copy_A, copy_A.get_slice(tidx).partition_S(sA), copy_A.retile(tCrA))
            cute.copy(copy_B, copy_B.get_slice(tidx).partition_S(sB), copy_B.retile(tCrB))
            cute.gemm(mma, acc, tCrA, tCrB, acc)
            cute.arch.sync_threads()

        gC = cute.local_tile(output, (BM, BN), (tile_m, tile_n))
        cC = cute.local_tile(cute.make_identity_tensor(output.shape), (BM, BN), (tile_m, tile_n))
        tCgC, tCcC = thr_mma.partition_C(gC), thr_mma.partition_C(cC)
        for i in cutlass.range_constexpr(cute.size(acc)):
            if cute.elem_less(tCcC[i], output.shape):
                tCgC[i] = acc[i].to(output.element_type)

    @cute.jit
    def load_windows(self, x: cute.Tensor, im2col: cutlass.Constexpr, sA: cute.Tensor, first_m: Any, first_k: Any):
        """The tile of A that begins at (first_m, first_k): 16 bytes of channels at a time."""
        _, height, width, _ = x.shape
        for i in cutlass.range_constexpr(BM * BK // VECTOR // THREADS):
            row, column = place(i)
            m, k = first_m + row, first_k + column
            (q, p, _), (_, s, r) = cute.idx2crd((m, k), im2col.shape)
            h, w = p * self.stride + r - self.pad, q * self.stride + s - self.pad
            seen = (m < cute.size(im2col, mode=[0])) & (k < cute.size(im2col, mode=[1]))
            seen = seen & (h >= 0) & (h < height) & (w >= 0) & (w < width)
            corner = self.pad * (x.stride[1] + x.stride[2])  # how far the padded corner is before the image
            copy_vector(x, cute.crd2idx((m, k), im2col) - corner, sA, row, column, seen)

    @cute.jit
    def load_weights(self, weights: cute.Tensor, sB: cute.Tensor, first_n: Any, first_k: Any):
        for i in cutlass.range_constexpr(BN * BK // VECTOR // THREADS):
            row, column = place(i)
            n, k = first_n + row, first_k + column
            seen = (n < weights.shape[0]) & (k < weights.shape[1])
            copy_vector(weights, cute.crd2idx((n, k), weights.layout), sB, row, column, seen)


def place(i: int) -> tuple[Any, Any]:
    """Row and first column of this thread's vector number ``i`` in a tile of BK columns."""
    tidx, _, _ = cute.arch.thread_idx()
    vector = tidx + i * THREADS
    return vector // (BK // VECTOR), vector % (BK // VECTOR) * VECTOR


@cute.jit
def copy_vector(source: cute.Tensor, offset: Any, target: cute.Tensor, row: Any, column: Any, seen: Any) -> None:
    """16 bytes from ``offset`` of the source to (row, column) of a tile in shared memory; zeros if not ``seen``."""
    atom = cute.make_copy_atom(cpasync.CopyG2SOp(), source.element_type, num_bits_per_copy=128)
    offset = cute.assume(offset if seen else 0, divby=VECTOR)
    piece = cute.make_tensor(source.iterator + offset, cute.make_layout(VECTOR))
    inside = cute.make_rmem_tensor(1, cutlass.Boolean)
    inside[0] = seen
    cute.copy(atom, piece, cute.local_tile(target, (1, VECTOR), (row, column // VECTOR))[0, None], pred=inside)


# %% [markdown]
# ## The check
#
# Small integers make the sums exact, so the result is compared by `==` with a convolution in float64. The shapes have
# padding, strides and remainders in every mode.


# %%
def convolution(x: Any, w: Any, y: Any, stride: int = 1, pad: int = 0) -> Any:
    """``y`` = ``x`` convolved with ``w``; NumPy arrays run in the simulator, CUDA tensors on their GPU."""
    from tilewright.cute.runtime import from_dlpack

    Convolution(stride, pad)(*(from_dlpack(array, assumed_align=16) for array in (x, w, y)))
    return y


def reference(x: np.ndarray, w: np.ndarray, stride: int, pad: int) -> np.ndarray:
    x = np.pad(x.astype(np.float64), ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[1:3], axis=(1, 2))[:, ::stride, ::stride]
    return np.einsum("npqcrs,krsc->npqk", windows, w.astype(np.float64), optimize=True)


def main() -> None:
    rng = np.random.default_rng(0)
    for (n, h, w, c), (filters, r, s), stride, pad in (
        ((2, 8, 8, 32), (64, 3, 3), 1, 1),
        ((1, 14, 14, 16), (40, 3, 3), 1, 0),
        ((3, 15, 11, 8), (72, 5, 3), 2, 2),
        ((2, 9, 9, 64), (96, 1, 1), 1, 0),
    ):
        x = rng.integers(-3, 4, (n, h, w, c)).astype(np.float16)
        weights = rng.integers(-3, 4, (filters, r, s, c)).astype(np.float16)
        exact = reference(x, weights, stride, pad)
        image, filters_, out = machine_arrays(x, weights, np.full(exact.shape, np.nan, np.float32))
        y = convolution(image, filters_, out, stride, pad)
        report(f"convolution {n}x{h}x{w}x{c}, {filters} filters of {r}x{s}, stride {stride}, padding {pad}", y, exact)
        assert np.array_equal(to_numpy(y), exact)


# -- arrays for the machine that is asked for, and the check of the result ---------------------------------------------


def machine_arrays(*arrays: np.ndarray) -> list[Any]:
    """The arrays as they are (simulator), or as CUDA tensors when ``--gpu`` is on the command line."""
    if "--gpu" not in sys.argv:
        return list(arrays)
    return [to_torch(array).cuda() for array in arrays]


def to_torch(array: np.ndarray) -> Any:
    """The array as a torch tensor with the same strides; bf16 travels as its bits, which torch reads from NumPy."""
    import torch

    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


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
