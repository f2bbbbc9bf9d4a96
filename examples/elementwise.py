"""c = a + b for any shape and strides: a thread-value layout, 16-byte accesses where they fit, predicated tails.

python examples/elementwise.py [--gpu]

Needs Tilewright; with --gpu also PyTorch (`pip install torch`) and the extra `cuda`.
"""

# %% [markdown]
# ## Who adds what
#
# 128 threads are laid out 4 x 32, each with 4 rows of a vector of 16 bytes. `make_layout_tv` turns the two layouts
# into one: (thread, value) to the place in the tile. Neighbouring threads have neighbouring vectors, so a warp reads
# whole lines of memory. The picture has 2 x 4 threads with 2 x 2 values.
#
# ![eight threads with four values each](threads.svg)

# %%
from __future__ import annotations

import math
import sys
from functools import cache
from typing import Any

import numpy as np

import tilewright as cutlass
from tilewright import cute
from tilewright.cute.runtime import from_dlpack
from tilewright.layout import Layout, make_layout_tv
from tilewright.viz import Figure, tv_figure

# %% [markdown]
# ## The kernel
#
# An identity tensor goes through the same partition as the data: it says which coordinate a value has, and so whether
# the value is inside. One predicate for each vector is enough, because a vector never crosses the end of a row.


# %%
class ElementwiseAdd:
    """Adds (M, N, *rest) tensors. 128 threads are 4 x 32 of a tile; each holds 4 rows of ``vector`` elements."""

    def __init__(self, vector: int) -> None:
        self.vector = vector

    @cute.jit
    def __call__(self, mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor, stream: Any = None):
        mA, mB, mC = (rows_aligned(matrix, self.vector) for matrix in (mA, mB, mC))
        thr_layout = cute.make_layout((4, 32), stride=(32, 1))
        val_layout = cute.make_layout((4, self.vector), stride=(self.vector, 1))
        tiler_mn, tv_layout = cute.make_layout_tv(thr_layout, val_layout)
        rest = mC.shape[2:]
        grid = (cute.ceil_div(mC.shape[1], tiler_mn[1]), cute.ceil_div(mC.shape[0], tiler_mn[0]), cute.size(rest))
        self.kernel(mA, mB, mC, tiler_mn, tv_layout).launch(
            grid=grid, block=(cute.size(tv_layout, mode=[0]), 1, 1), stream=stream
        )

    @cute.kernel
    def kernel(
        self,
        mA: cute.Tensor,
        mB: cute.Tensor,
        mC: cute.Tensor,
        tiler_mn: cutlass.Constexpr,
        tv_layout: cutlass.Constexpr,
    ):
        tidx, _, _ = cute.arch.thread_idx()
        tile_n, tile_m, outer = cute.arch.block_idx()
        rest = cute.idx2crd(outer, mC.shape[2:])
        atom = cute.make_copy_atom(
            cute.nvgpu.CopyUniversalOp(), mC.element_type, num_bits_per_copy=self.vector * mC.element_type.width
        )
        thread = cute.make_tiled_copy(atom, tv_layout, tiler_mn).get_slice(tidx)

        coordinates = cute.make_identity_tensor(mC.shape[:2])
        tA, tB, tC, tcC = (
            thread.partition_S(cute.local_tile(matrix, tiler_mn, (tile_m, tile_n)))
            for matrix in (mA[(None, None, *rest)], mB[(None, None, *rest)], mC[(None, None, *rest)], coordinates)
        )
        # One predicate for each vector: mode 0 of a partition is (values of one copy, copies).
        inside = cute.make_rmem_tensor((tC.shape[0][1], *tC.shape[1:]), cutlass.Boolean)
        for i in cutlass.range_constexpr(cute.size(inside)):
            inside[i] = cute.elem_less(tcC[i * cute.size(tC, mode=[0, 0])], mC.shape[:2])
        rA, rB, rC = (cute.make_fragment_like(t) for t in (tA, tB, tC))
        rA.fill(0)
        rB.fill(0)
        cute.copy(atom, tA, rA, pred=inside)
        cute.copy(atom, tB, rB, pred=inside)
        rC.store(rA.load() + rB.load())
        cute.copy(atom, rC, tC, pred=inside)


# %% [markdown]
# ## Any strides
#
# Addition does not care about the order of the modes. They are sorted by the strides of the output; if a vector fits
# all three arrays the copies take 16 bytes, else one element.


# %%
@cache
def adder(vector: int) -> ElementwiseAdd:
    return ElementwiseAdd(vector)


def add(a: Any, b: Any, out: Any) -> Any:
    """out = a + b; NumPy arrays run in the simulator, CUDA tensors on their GPU."""
    if not tuple(a.shape) == tuple(b.shape) == tuple(out.shape):
        raise ValueError(f"shapes differ: {tuple(a.shape)}, {tuple(b.shape)} and {tuple(out.shape)}")
    if 0 in out.shape:
        return out
    views = [by_stride(x, out) for x in (a, b, out)]
    tensors = [from_dlpack(v) for v in views]
    vector = common_vector(tensors, views)
    if vector > 1:
        tensors = [
            from_dlpack(v, assumed_align=vector * tensors[0].element_type.width // 8).mark_layout_dynamic(leading_dim=1)
            for v in views
        ]
        adder(vector)(*tensors)
    else:
        adder(vector)(*views)
    return out


def by_stride(x: Any, like: Any) -> Any:
    """``x``, its modes in the order of ``like``'s strides, the two smallest first: (next, smallest, others...)."""
    while len(x.shape) < 2:
        x, like = x[None], like[None]
    order = sorted(range(len(like.shape)), key=lambda mode: strides_of(like)[mode])
    return permute(x, [order[1], order[0], *order[2:]])


def common_vector(tensors: list[Any], views: list[Any]) -> int:
    """The most elements, up to 16 bytes, that are contiguous and aligned in every row of every tensor."""
    width = tensors[0].element_type.width // 8
    vector = 16 // width
    for view in views:
        rows, columns, *rest = strides_of(view)
        if columns != 1 and view.shape[1] > 1:
            return 1
        vector = math.gcd(vector, view.shape[1], rows, *rest, address_of(view) // width)
    return vector


def pictures() -> dict[str, Figure]:
    """A small thread-value layout."""
    tiler, layout = make_layout_tv(Layout((2, 4), (4, 1)), Layout((2, 2), (2, 1)))
    return {"threads.svg": tv_figure(layout, tiler)}


# %% [markdown]
# ## The check
#
# The strided operands make the copies narrow and scattered: `tilewright check` names their lines (`uncoalesced`).


# %%
def main() -> None:
    rng = np.random.default_rng(0)
    for shape in ((1000,), (513, 1028), (3, 33, 5), (0, 4)):
        a, b = (rng.standard_normal(shape).astype(np.float32) for _ in range(2))
        expected = a.astype(np.float64) + b
        report(f"elementwise {shape}", add(*machine_arrays(a, b, np.empty_like(a))), expected)
    c, d = (rng.standard_normal((96, 80)).astype(np.float16) for _ in range(2))
    report(
        "elementwise strided",
        add(*machine_arrays(c[::2].T, d.T[:, ::2], np.empty((80, 48), np.float16))),
        c[::2].T.astype(np.float64) + d.T[:, ::2],
    )


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


def strides_of(x: Any) -> tuple[int, ...]:
    """Strides in elements."""
    return tuple(s // x.itemsize for s in x.strides) if isinstance(x, np.ndarray) else tuple(x.stride())


def address_of(x: Any) -> int:
    return x.__array_interface__["data"][0] if isinstance(x, np.ndarray) else x.data_ptr()


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
