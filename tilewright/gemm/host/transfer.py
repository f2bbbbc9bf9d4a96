"""Operands on another machine: NumPy arrays to a GPU and back, torch tensors of a GPU to the simulator and back.

``target`` is the machine (``sim.machine``, ``cuda.machine``): ``upload(array)`` and ``zeros(n, dtype, device)`` make
arrays that its kernels reach, ``download(array, into)`` copies one back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tilewright.gemm.arrays import Matrix
from tilewright.gemm.host.problem import Problem, is_torch


def transfer(problem: Problem, target: Any) -> Problem:
    """The problem with its operands on the machine ``target``."""
    A, B, D = (_moved(target, matrix) for matrix in (problem.A, problem.B, problem.D))
    source = None if problem.source is None else _moved(target, problem.source)
    return replace(problem, A=A, B=B, D=D, C=_moved(target, problem.C) if problem.has_c else D, source=source)


def fetch_result(target: Any, moved: Problem, problem: Problem) -> None:
    """Copy D of the moved problem into the user's array."""
    result, store = moved.D.source, problem.D.source
    if problem.machine != "cpu":
        import torch

        _bits(store, problem.D).copy_(torch.from_numpy(result.view(f"i{problem.D.dtype.bytes}")))
    else:
        target.download(result, _as_numpy(store, problem.D))


def zeros_beside(target: Any, matrix: Matrix) -> Callable[[int, Any], Any]:
    """Makes arrays of zeros on the device of ``matrix``."""

    def zeros(n: int, dtype: Any) -> Any:
        if is_torch(matrix.source):
            return matrix.source.new_zeros(n, dtype=dtype.torch_dtype)
        return apart(n, dtype)

    apart = zeros_apart(target, matrix)
    return zeros


def zeros_apart(target: Any, matrix: Matrix) -> Callable[[int, Any], Any]:
    """The same for what is kept beyond a call: not from PyTorch's allocator, which may just serve a CUDA graph from the
    graph's own memory (torch.compile's warm-up), where nothing may stay."""

    def zeros(n: int, dtype: Any) -> Any:
        if matrix.device == "cpu":
            return target.upload(np.zeros(n, dtype.dtype))
        return target.zeros(n, dtype.dtype, matrix.device)

    return zeros


def uploader_beside(target: Any, matrix: Matrix) -> Callable[[Any], Any]:
    """Brings NumPy arrays to the device of ``matrix``."""

    def upload(array: Any) -> Any:
        if is_torch(matrix.source):
            import torch

            return torch.from_numpy(array).to(matrix.source.device)
        return target.upload(array)

    return upload


def _moved(target: Any, matrix: Matrix) -> Matrix:
    if matrix.device == "cpu":
        return Matrix.of(matrix.name, target.upload(_as_numpy(matrix.source, matrix)))
    return Matrix.of(matrix.name, _as_numpy(matrix.source.cpu(), matrix))


def _as_numpy(array: Any, matrix: Matrix) -> Any:
    return _bits(array, matrix).numpy().view(matrix.dtype.dtype) if is_torch(array) else array


def _bits(tensor: Any, matrix: Matrix) -> Any:
    """A torch tensor as integers of its width: bf16 and fp8 have no NumPy dtype that torch knows."""
    import torch

    return tensor.view(getattr(torch, f"int{8 * matrix.dtype.bytes}"))
