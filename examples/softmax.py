"""Row softmax and row sum with warp shuffles: one block a row, one pass over the row for maximum and sum together.

python examples/softmax.py [--gpu]

Needs Tilewright; with --gpu also PyTorch (`pip install torch`) and the extra `cuda`.
"""

# %% [markdown]
# ## One pass for maximum and sum
#
# `exp(x) / sum(exp(x))` overflows for large x, so the maximum is subtracted first. Read literally this takes three
# passes over a row: maximum, sum, result. The sum can be kept relative to the *running* maximum: if a larger value
# comes, what was added so far is multiplied by `exp(old - new)`. Two such pairs (maximum, sum) merge by the same
# rule, so threads, lanes and warps combine theirs in any order. Two passes are left.
#
# ## Who combines with whom
#
# Each of 128 threads folds its columns. The 32 lanes of a warp exchange pairs in five butterfly steps: in step i a
# lane takes the pair of the lane whose number differs in bit i. The four warps then meet in shared memory, behind one
# barrier; the timeline of a block shows it.
#
# ![a block of four warps computes one row](softmax.svg)

# %%
from __future__ import annotations

import operator
import sys
from typing import Any

import numpy as np

import tilewright as cutlass
from tilewright import cute, sim, utils
from tilewright.viz import Timeline, timeline

THREADS = 128
WARPS = THREADS // 32
LOG2_E = 1.4426950408889634
LOWEST = float(np.finfo(np.float32).min)  # where a maximum starts: finite, so that LOWEST - LOWEST is 0, not NaN


# %% [markdown]
# ## The kernel


# %%
class RowSoftmax:
    """out[i, :] = exp(x[i, :] - max) / sum for x (M, N) of any float type; arithmetic in float32."""

    @cute.jit
    def __call__(self, mX: cute.Tensor, mOut: cute.Tensor, stream: Any = None):
        self.kernel(mX, mOut).launch(grid=(mX.shape[0], 1, 1), block=(THREADS, 1, 1), stream=stream)

    @cute.kernel
    def kernel(self, mX: cute.Tensor, mOut: cute.Tensor):
        tidx, _, _ = cute.arch.thread_idx()
        row, _, _ = cute.arch.block_idx()
        columns = mX.shape[1]

        # Each thread folds its columns: the sum is kept relative to the running maximum.
        largest = cutlass.Float32(LOWEST)
        total = cutlass.Float32(0)
        for column in range(tidx, columns, THREADS):
            x = mX[row, column].to(cutlass.Float32)
            new = cute.arch.fmax(largest, x)
            total = total * exp_of(largest - new) + exp_of(x - new)
            largest = new

        shared = utils.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout((2, WARPS)), 16)
        largest, total = self.combine_block(largest, total, shared)
        for column in range(tidx, columns, THREADS):
            value = exp_of(mX[row, column].to(cutlass.Float32) - largest) / total
            mOut[row, column] = value.to(mOut.element_type)

    @cute.jit
    def combine_block(self, largest: cutlass.Float32, total: cutlass.Float32, shared: cute.Tensor):
        """The maximum and the sum over all threads of the block, known to all of them."""
        for step in cutlass.range_constexpr(5):
            other_largest = cute.arch.shuffle_sync_bfly(largest, offset=1 << step)
            other_total = cute.arch.shuffle_sync_bfly(total, offset=1 << step)
            largest, total = merge(largest, total, other_largest, other_total)
        if cute.arch.lane_idx() == 0:
            shared[0, cute.arch.warp_idx()] = largest
            shared[1, cute.arch.warp_idx()] = total
        cute.arch.sync_threads()
        largest, total = shared[0, 0], shared[1, 0]
        for warp in cutlass.range_constexpr(1, WARPS):
            largest, total = merge(largest, total, shared[0, warp], shared[1, warp])
        return largest, total


def exp_of(x: cutlass.Float32) -> cutlass.Float32:
    """e**x, by the exponent unit."""
    return cute.math.exp2(x * LOG2_E, fastmath=True)


def merge(largest: Any, total: Any, other_largest: Any, other_total: Any) -> tuple[Any, Any]:
    new = cute.arch.fmax(largest, other_largest)
    return new, total * exp_of(largest - new) + other_total * exp_of(other_largest - new)


# %% [markdown]
# ## Sums of rows, by a warp each
#
# A sum alone needs no shared memory: `cute.arch.warp_reduction` is the butterfly.


# %%
class RowSum:
    """out[i] = sum of x[i, :] in float32; one warp a row, four rows a block."""

    @cute.jit
    def __call__(self, mX: cute.Tensor, mOut: cute.Tensor, stream: Any = None):
        self.kernel(mX, mOut).launch(
            grid=(cute.ceil_div(mX.shape[0], WARPS), 1, 1), block=(THREADS, 1, 1), stream=stream
        )

    @cute.kernel
    def kernel(self, mX: cute.Tensor, mOut: cute.Tensor):
        bidx, _, _ = cute.arch.block_idx()
        lane = cute.arch.lane_idx()
        row = bidx * WARPS + cute.arch.warp_idx()
        if row < mX.shape[0]:
            total = cutlass.Float32(0)
            for column in range(lane, mX.shape[1], 32):
                total += mX[row, column].to(cutlass.Float32)
            total = cute.arch.warp_reduction(total, operator.add)
            if lane == 0:
                mOut[row] = total.to(mOut.element_type)


# %% [markdown]
# ## The check
#
# The results are compared with NumPy in float64; rows of 3, 512 and 1000 columns show that the tails are right.


# %%
def softmax(x: Any, out: Any) -> Any:
    """out = softmax of the rows of x; NumPy arrays run in the simulator, CUDA tensors on their GPU."""
    RowSoftmax()(x, out)
    return out


def row_sum(x: Any, out: Any) -> Any:
    """out[i] = sum of row i of x."""
    RowSum()(x, out)
    return out


def pictures() -> dict[str, Timeline]:
    """One block in the time of the simulator's model."""
    x = np.zeros((1, 512), np.float32)
    with sim.trace() as trace:
        softmax(x, np.empty_like(x))
    return {"softmax.svg": timeline(trace, title="softmax of a row of 512 columns")}


def main() -> None:
    rng = np.random.default_rng(0)
    for m, n in ((16, 512), (7, 1000), (3, 5)):
        x = rng.standard_normal((m, n)).astype(np.float32) * 4
        wide = x.astype(np.float64)
        exact = np.exp(wide - wide.max(1, keepdims=True))
        report(f"softmax {m}x{n}", softmax(*machine_arrays(x, np.empty_like(x))), exact / exact.sum(1, keepdims=True))
        report(f"row sum {m}x{n}", row_sum(*machine_arrays(x, np.empty(m, np.float32))), wide.sum(1))


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
