"""What the matrices and scales of one product must satisfy."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from tilewright.errors import ArgumentError
from tilewright.gemm.arrays import Matrix
from tilewright.gemm.registry import KernelEntry


def problem_of(A: Matrix, B: Matrix, C: Matrix | None, beta: float) -> tuple[int, int, int, int]:
    (m, k, batch), (k_b, n, batch_b) = A.shape, B.shape
    if k != k_b:
        raise ArgumentError(f"inner dimensions differ: a is {m} x {k}, b is {k_b} x {n}")
    if batch != batch_b:
        raise ArgumentError(f"a has {batch} matrices, b has {batch_b}")
    if A.dtype is not B.dtype:
        raise ArgumentError(f"a is {A.dtype.__name__}, b is {B.dtype.__name__}; both must have one dtype")
    if C is None and beta:
        raise ArgumentError(f"beta = {beta} needs a matrix c")
    if C is not None and C.shape != (m, n, batch):
        raise ArgumentError(f"c must be {_shape((m, n, batch))}, got {_shape(C.shape)}")
    return m, n, k, batch


def check_output(A: Matrix, B: Matrix, C: Matrix | None, D: Matrix, shape: tuple[int, int, int]) -> None:
    if D.shape != shape:
        raise ArgumentError(f"out must be {_shape(shape)}, got {_shape(D.shape)}")
    if C is not None and C.dtype is not D.dtype:
        raise ArgumentError(f"c is {C.dtype}, out is {D.dtype}; both must have one dtype")
    for other in (A, B):
        if D.overlaps(other):
            raise ArgumentError(f"out overlaps {other.name}; give it memory of its own")
    if C is not None and D.overlaps(C) and not D.same_view(C):
        raise ArgumentError("out overlaps c without being the same matrix; give it memory of its own or pass c itself")
    if 0 not in D.shape and any(s == 0 and extent > 1 for s, extent in zip(D.stride, D.shape, strict=True)):
        raise ArgumentError("out has a broadcast (zero) stride: several elements would share one place")
    devices = {matrix.device for matrix in (A, B, C, D) if matrix is not None}
    if len(devices) > 1:
        raise ArgumentError(f"the matrices live on different devices: {', '.join(sorted(devices))}")


def _shape(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape[:2] if shape[2] == 1 else (shape[2], *shape[:2])))


def scales_of(entry: KernelEntry, D: Matrix, alpha: float, beta: float) -> tuple[Any, Any]:
    """alpha and beta in the accumulator's type; ArgumentError when D cannot take what the kernel computes."""
    acc = entry.config.acc_dtype
    if not acc.is_same_kind(D.dtype) or D.dtype.width > acc.width or D.dtype.width < 16:
        raise ArgumentError(f"kernel {entry.name} accumulates in {acc}, which cannot be written as {D.dtype}")
    for name, value in (("alpha", alpha), ("beta", beta)):
        if not isinstance(value, (numbers.Real, np.number)):
            raise ArgumentError(f"{name} must be a number, got {value!r}")
        if acc.is_integer and not float(value).is_integer():
            raise ArgumentError(f"{name} = {value}: kernel {entry.name} computes with integers, so it must be one")
    return (acc(int(alpha)), acc(int(beta))) if acc.is_integer else (acc(float(alpha)), acc(float(beta)))
