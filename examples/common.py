"""What the examples share: arrays for the machine that is asked for, and one line of result."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from tilewright import cute


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
