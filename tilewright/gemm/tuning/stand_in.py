"""Problems without operands: what can be planned and compiled before there is any memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from tilewright.errors import ArgumentError
from tilewright.gemm.arrays import Matrix
from tilewright.gemm.choice.registry import candidates
from tilewright.gemm.host.problem import Problem
from tilewright.gemm.schedule.streamk_blocks import positive
from tilewright.lang.numbers.dtypes import numeric_of_dtype


def stand_in(shape: Sequence[int], dtype: Any, out_dtype: Any, a_major: str, b_major: str) -> Problem:
    """The problem with matrices that have strides but take no memory."""
    numbers = [positive(f"shape[{i}]", extent) for i, extent in enumerate(shape)]
    if len(numbers) not in (3, 4):
        raise ArgumentError(f"shape must be (M, N, K) or (M, N, K, L), got {tuple(shape)}")
    m, n, k, batch = (*numbers, 1)[:4]
    if a_major not in ("k", "m") or b_major not in ("k", "n"):
        raise ArgumentError(f"a_major is 'k' or 'm' and b_major 'k' or 'n', not {a_major!r} and {b_major!r}")
    kind = numeric_class(dtype)
    out = candidates(kind, None)[0].config.c.dtype if out_dtype is None else numeric_class(out_dtype)

    def matrix(name: str, cls: Any, rows: int, columns: int, turned: bool) -> Matrix:
        # One row of memory under all: nothing is read. As integers, since as_strided does not know ml_dtypes' e5m2.
        size = cls.dtype.itemsize
        base = np.zeros(64, f"u{size}")
        base = base[-base.ctypes.data % 64 // size :][:1]
        inner = (size, rows * size) if turned else (columns * size, size)
        view = np.lib.stride_tricks.as_strided(base, (batch, rows, columns), (rows * columns * size, *inner))
        return Matrix.of(name, view.view(cls.dtype))

    A, B = matrix("a", kind, m, k, a_major == "m"), matrix("b", kind, k, n, b_major == "k")
    D = matrix("out", out, m, n, False)
    return Problem(A, B, D, D, False)


def numeric_class(dtype: Any) -> Any:
    """The numeric class of a dtype of NumPy or PyTorch, of its name, or of the class itself."""
    if hasattr(dtype, "ir_type"):
        return dtype
    try:
        return numeric_of_dtype(getattr(ml_dtypes, dtype, dtype) if isinstance(dtype, str) else dtype)
    except TypeError:
        raise ArgumentError(f"there is no dtype {dtype!r}") from None
