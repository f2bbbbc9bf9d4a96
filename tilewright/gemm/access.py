"""The assumptions of a loader or an epilogue about a matrix in global memory: stated once, where the access is written.

A loader or epilogue that reads or writes vectors has an :class:`AccessRequirement` as its ``ACCESS``. Whatever depends
on the assumption asks that object: whether a kernel can take an operand (``host/plan.py``), what is copied to aligned
rows for it (``host/packing.py``), which loader a kernel gets, and what ``GemmUniversal.can_implement`` answers. A
loader without an ``ACCESS`` reads element by element where it has to, and takes every matrix.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

from tilewright.gemm.config import Major

VECTOR = 16
"""Bytes of the widest access of a thread, and the multiple at which TMA wants rows to begin."""


class MatrixView(Protocol):
    """The part that is needed of a :class:`~tilewright.gemm.arrays.Matrix`, (rows, columns, batch)."""

    @property
    def name(self) -> str: ...
    @property
    def array(self) -> Any: ...
    @property
    def dtype(self) -> Any: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def stride(self) -> tuple[int, ...]: ...
    def major(self) -> Major: ...


@dataclass(frozen=True)
class AccessRequirement:
    """The elements of one mode follow each other in memory, and this holds of the rest:

    ``by`` names the accessing code, for messages; ``along`` lists the modes that may be the contiguous one; the
    base and the other strides are multiples of ``step`` bytes (0: of the element alone), and so is the length of the
    contiguous mode where rows are ``whole``; strides of modes with more than one element are at least ``least_stride``
    (None: they may have either sign).

    >>> from tilewright.gemm.arrays import Matrix
    >>> rows = AccessRequirement("a loader", step=16)
    >>> x = np.zeros((4, 64), np.float16)
    >>> rows.refusal(Matrix.of("x", x)), rows.refusal(Matrix.of("x", x[:, ::2]))
    (None, 'a loader wants one mode contiguous in memory; x has strides (64, 2)')
    """

    by: str
    along: tuple[Major, ...] = (Major.K, Major.MN)
    step: int = 0
    whole: bool = False
    least_stride: int | None = None

    def refusal(self, matrix: MatrixView, major: Major | None = None) -> str | None:
        """Why a matrix, contiguous along ``major`` (by default where it is), cannot be accessed; None where it can."""
        major = major or matrix.major()
        if self.least_stride is not None and steps_below(matrix, self.least_stride):
            return f"{self.by} wants rows one after the other in memory; {strides_text(matrix)}"
        if not contiguous(matrix, major):
            return f"{self.by} wants one mode contiguous in memory; {strides_text(matrix)}"
        if major not in self.along:
            return f"{self.by} reads {matrix.dtype} along K only, and {matrix.name} is not contiguous along K"
        allowed = aligned_elements(matrix, major, self.whole) * matrix.dtype.bytes
        if allowed < self.step:
            return (
                f"{self.by} wants rows that begin at multiples of {self.step} bytes; {strides_text(matrix)} of "
                f"{matrix.dtype} and a base that allow {allowed} bytes"
            )
        return None

    def takes(self, matrix: MatrixView, major: Major | None = None) -> bool:
        """Whether a matrix that is contiguous along ``major`` can be accessed."""
        return self.refusal(matrix, major) is None


def strides_text(matrix: MatrixView) -> str:
    return f"{matrix.name} has strides {matrix.stride[:2]}"


def contiguous(matrix: MatrixView, major: Major) -> bool:
    """Whether the elements of the mode ``major`` follow each other; a single element does."""
    inner = 1 if major is Major.K else 0
    return matrix.stride[inner] == 1 or matrix.shape[inner] <= 1


def steps_below(matrix: MatrixView, least: int) -> bool:
    """Whether a mode with more than one element has a stride below ``least``."""
    array = matrix.array
    return any([stride < least and extent > 1 for stride, extent in zip(array.stride, array.shape, strict=True)])


def aligned_elements(matrix: MatrixView, major: Major, whole: bool) -> int:
    """Elements of the widest vector along ``major`` that is aligned in every row, at most ``VECTOR`` bytes; with
    ``whole``, that rows are a multiple of."""
    inner, outer = (1, 0) if major is Major.K else (0, 1)
    array = matrix.array
    shape, stride, size = array.shape, array.stride, array.dtype.bytes
    if stride[inner] != 1 and shape[inner] > 1:
        return 1
    steps = stride[outer] if shape[outer] > 1 else 0, stride[2] if shape[2] > 1 else 0
    return math.gcd(VECTOR // size, shape[inner] if whole else 0, array.address // size, *steps)
