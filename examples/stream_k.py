"""A matrix product whose last wave is shared: Stream-K beside one block for each tile and beside split-K.

    python examples/stream_k.py [--gpu]

Needs Tilewright; with --gpu also PyTorch (`pip install torch`) and the extra `cuda`.
"""

# %% [markdown]
# ## The last wave
#
# A GPU with 132 multiprocessors computes 132 tiles at a time. A product of 140 tiles takes two waves, and in the
# second one 124 multiprocessors have nothing to do. Split-K cuts each tile along K and so makes smaller pieces, but
# all tiles pay for the exchange of partial sums. Stream-K takes only the tiles of the last wave or two, puts their
# k-iterations in a line and cuts the line into equal pieces.
#
# Nine tiles on four multiprocessors show it. Each bar is a block; what waits or adds up is marked.
#
# ![nine tiles on four multiprocessors, whole, by split-K and by Stream-K](schedules.svg)

# %%
from __future__ import annotations

import sys
from typing import Any

import numpy as np

from tilewright.gemm import StreamK, gemm
from tilewright.gemm.schedule.blocks import data_parallel, split_k, stream_k
from tilewright.gemm.schedule.gantt import schedule
from tilewright.viz import gantt, streamk_plan_figure

SHAPE, TILE, MULTIPROCESSORS = (384, 384, 2048), (128, 128, 32), 4


def plan(split: int = 1) -> StreamK:
    return StreamK.of(SHAPE, TILE, multiprocessors=MULTIPROCESSORS, occupancy=1, fragments=8, split=split)


def pictures() -> dict[str, Any]:
    """The schedules of three decompositions, and the candidates of a plan."""
    tiles, iterations = 9, SHAPE[2] // TILE[2]
    launches = {
        "a block for each tile": data_parallel(tiles, iterations),
        "split-K by 2": split_k(tiles, iterations, 2),
        "Stream-K": stream_k(plan()),
    }
    schedules = [(name, schedule(blocks, MULTIPROCESSORS)) for name, blocks in launches.items()]
    return {
        "schedules.svg": gantt(schedules, "nine tiles of 64 k-iterations on 4 multiprocessors"),
        "plan.svg": streamk_plan_figure(150, 32, 108, 2),
    }


# %% [markdown]
# ## The plan
#
# How many tiles are shared, and among how many blocks? The plan counts what runs one after the other: iterations, and
# the cost of exchanging sums. With 150 tiles on 108 multiprocessors that hold two blocks each there are many
# candidates; the picture has their scores, in iterations.
#
# ![the candidates of a plan](plan.svg)
#
# ## The product
#
# `gemm` takes a plan, or the name of a decomposition; without one it chooses. Partial sums are added in the order of
# the blocks, so a result does not change from run to run. Small integers make it exact, whatever the order: all three
# are compared by `==`. How such a kernel is written stands in [step 12 of the path](../path/12_stream_k.md).


# %%
def product(a: Any, b: Any, out: Any, decomposition: Any) -> Any:
    """``out`` = ``a`` x ``b`` on tensor cores of sm_80 and later; NumPy arrays run in the simulator."""
    return gemm(a, b, out=out, kernel="tensorop_f16", decomposition=decomposition).d


def main() -> None:
    rng = np.random.default_rng(0)
    m, n, k = SHAPE
    a = rng.integers(-1, 2, (m, k)).astype(np.float16)
    b = rng.integers(-1, 2, (k, n)).astype(np.float16)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    ours = plan()
    print(f"Stream-K: {ours.sk_blocks} blocks share {ours.sk_tiles} tiles, {ours.dp_blocks} blocks have a whole tile")
    for title, decomposition in {"whole": "data_parallel", "split-K by 2": plan(split=2), "Stream-K": ours}.items():
        ours_a, ours_b, out = machine_arrays(a, b, np.full((m, n), np.nan, np.float16))
        result = product(ours_a, ours_b, out, decomposition)
        report(title, result, exact)
        assert np.array_equal(to_numpy(result), exact)


# %% [markdown]
# ## The speed
#
# On an H200, by `mma.sync` with fp32 sums, each kernel alone for a second
# (`bench/results/gemm_ampere_h200_2026-11-20.json`; fractions of cuBLAS, which uses Hopper's wgmma):
#
# | product | Stream-K | CUTLASS's data-parallel kernel |
# |---|---|---|
# | 4096^3 | 0.67 (425 TFLOP/s) | 0.60 |
# | 5120^3 | 0.67 (425 TFLOP/s) | 0.58 |
# | 8192^3 | 0.68 (433 TFLOP/s) | 0.57 |

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
