"""D = alpha * A @ B + beta * C on FMA units (fp32) or tensor cores (fp16, bf16), for any m, n, k and operand majors.

    python examples/gemm.py [--gpu]

The kernel is :class:`tilewright.gemm.MultistageGemm`: cp.async into a ring of shared-memory stages, fragments
double-buffered in registers. The library picks vector widths and contiguous modes from the arrays; this program tries
each pair of them.

Needs Tilewright; with --gpu also PyTorch (`pip install torch`) and the extra `cuda`.
"""

# %% [markdown]
# ## Any extents and majors
#
# The library reads from the arrays which mode is contiguous and how wide its accesses may be, and refuses or copies
# what a kernel cannot take. This program tries each pair of majors, with extents that are not multiples of the tile.
# [The GEMM library](../gemm.md) says how it is made.

# %%
from __future__ import annotations

import sys
from typing import Any

import ml_dtypes
import numpy as np

from tilewright.gemm import gemm

PROGRAMS = {"simt_f32": np.float32, "tensorop_f16": np.float16, "tensorop_bf16": ml_dtypes.bfloat16}
PROBLEMS = (
    (256, 128, 64, "row", "row"),
    (136, 72, 72, "row", "column"),
    (130, 70, 70, "column", "row"),
    (65, 33, 17, "column", "column"),
)
"""M, N, K and how A and B lie."""


def operand(rng: np.random.Generator, rows: int, columns: int, major: str, dtype: type) -> np.ndarray:
    """A normal (rows, columns) matrix stored by rows or by columns."""
    shape = (rows, columns) if major == "row" else (columns, rows)
    matrix: np.ndarray = rng.standard_normal(shape).astype(dtype)
    return matrix if major == "row" else matrix.T


def main() -> None:
    rng = np.random.default_rng(0)
    for kernel, dtype in PROGRAMS.items():
        for m, n, k, a_major, b_major in PROBLEMS:
            a, b, c = (
                operand(rng, m, k, a_major, dtype),
                operand(rng, k, n, b_major, dtype),
                operand(rng, m, n, "row", dtype),
            )
            expected = 0.5 * a.astype(np.float64) @ b.astype(np.float64) + 2.0 * c.astype(np.float64)
            result = gemm(*machine_arrays(a, b, c), alpha=0.5, beta=2.0, kernel=kernel)
            report(f"{kernel} {m}x{n}x{k}, A {a_major}, B {b_major} ({result.machine})", to_numpy(result.d), expected)


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
