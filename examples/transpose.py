"""Matrix transpose through shared memory: naive (bank conflicts), padded, and swizzled.

    python examples/transpose.py [--gpu]

A warp reads a row of a 32 x 32 tile and writes a row of the transposed tile, so both sides of global memory are
coalesced. In shared memory the second access walks down a column: with rows of 32 words all 32 lanes meet in one bank.
Padding the rows to 33 words, or XOR-ing the column with the row, spreads them over all banks.

Needs Tilewright; with --gpu also PyTorch (`pip install torch`) and the extra `cuda`.
"""

# %% [markdown]
# ## Three layouts of one tile
#
# A warp reads a row of the tile, 32 neighbours of 4 bytes, and puts it into shared memory. Then it reads a column,
# and writes that as a row of the result. Shared memory has 32 banks of 4 bytes; a request takes as many passes as the
# busiest bank has words. The pictures show the read of column 0: without padding and swizzle all 32 words are in bank
# 0.
#
# ![the banks of a column, rows of 32 words](naive.svg)
#
# ![the banks of a column, rows of 33 words](padded.svg)
#
# ![the banks of a column, swizzled](swizzled.svg)

# %%
from __future__ import annotations

import sys
from typing import Any

import numpy as np

import tilewright as cutlass
from tilewright import cute, utils
from tilewright.layout import Layout
from tilewright.viz import Figure, bank_figure

TILE = 32


def naive_layout() -> Any:
    return cute.make_layout((TILE, TILE), stride=(TILE, 1))


def padded_layout() -> Any:
    return cute.make_layout((TILE, TILE), stride=(TILE + 1, 1))


def swizzled_layout() -> Any:
    return cute.make_composed_layout(cute.make_swizzle(5, 0, 5), 0, naive_layout())


LAYOUTS = {"naive": naive_layout, "padded": padded_layout, "swizzled": swizzled_layout}


def pictures() -> dict[str, Figure]:
    """The banks of the first eight rows of column 0, in each of the layouts."""
    tiles = {"naive": Layout((8, TILE), (TILE, 1)), "padded": Layout((8, TILE), (TILE + 1, 1))}
    drawn = {f"{name}.svg": bank_figure(tile, 32, access=Layout((8, 1), (1, 8))) for name, tile in tiles.items()}
    swizzled = cute.make_composed_layout(cute.make_swizzle(5, 0, 5), 0, tiles["naive"])
    return {**drawn, "swizzled.svg": bank_figure(swizzled, 32, access=Layout((8, 1), (1, 8)))}


# %% [markdown]
# ## The kernel
#
# It is the same for all three; only the layout of `sA` differs. `sB` has the same bytes with the modes exchanged: a
# composition with a row-major layout is a transposition. Elements outside the matrix are left out by their
# coordinates.


# %%
class Transpose:
    """B (N, M) = A (M, N) transposed; 256 threads are 8 x 32 of a tile."""

    def __init__(self, kind: str) -> None:
        self.smem_layout = LAYOUTS[kind]()

    @cute.jit
    def __call__(self, mA: cute.Tensor, mB: cute.Tensor, stream: Any = None):
        grid = (cute.ceil_div(mA.shape[1], TILE), cute.ceil_div(mA.shape[0], TILE), 1)
        self.kernel(mA, mB).launch(grid=grid, block=(256, 1, 1), stream=stream)

    @cute.kernel
    def kernel(self, mA: cute.Tensor, mB: cute.Tensor):
        tidx, _, _ = cute.arch.thread_idx()
        tile_n, tile_m, _ = cute.arch.block_idx()
        threads = cute.make_layout((8, 32), stride=(32, 1))
        sA = utils.SmemAllocator().allocate_tensor(mA.element_type, self.smem_layout, 16)
        # The same tile seen as (N, M): coordinate (n, m) of sB is coordinate (m, n) of sA.
        sB = cute.composition(sA, cute.make_layout((TILE, TILE), stride=(TILE, 1)))

        gA = cute.local_partition(cute.local_tile(mA, (TILE, TILE), (tile_m, tile_n)), threads, tidx)
        cA = cute.local_partition(
            cute.local_tile(cute.make_identity_tensor(mA.shape), (TILE, TILE), (tile_m, tile_n)), threads, tidx
        )
        into = cute.local_partition(sA, threads, tidx)
        for i in cutlass.range_constexpr(cute.size(gA)):
            if cute.elem_less(cA[i], mA.shape):
                into[i] = gA[i]
        cute.arch.sync_threads()

        gB = cute.local_partition(cute.local_tile(mB, (TILE, TILE), (tile_n, tile_m)), threads, tidx)
        cB = cute.local_partition(
            cute.local_tile(cute.make_identity_tensor(mB.shape), (TILE, TILE), (tile_n, tile_m)), threads, tidx
        )
        out = cute.local_partition(sB, threads, tidx)
        for i in cutlass.range_constexpr(cute.size(gB)):
            if cute.elem_less(cB[i], mB.shape):
                gB[i] = out[i]


# %% [markdown]
# ## The check
#
# The result of a transposition is exact. `tilewright check examples/transpose.py` runs it under all checks and finds
# the bank conflict of the naive layout, with its line and its repair; the other two have none.


# %%
def transpose(a: Any, out: Any, kind: str = "swizzled") -> Any:
    """out = a.T; NumPy arrays run in the simulator, CUDA tensors on their GPU."""
    Transpose(kind)(a, out)
    return out


def main() -> None:
    rng = np.random.default_rng(0)
    for kind in LAYOUTS:
        for m, n in ((128, 96), (100, 37)):
            a = rng.standard_normal((m, n)).astype(np.float32)
            given, out = machine_arrays(a, np.empty((n, m), np.float32))
            report(f"transpose {kind} {m}x{n}", transpose(given, out, kind), a.T.astype(np.float64))


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
