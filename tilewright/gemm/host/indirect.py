"""Rows by index and batches by pointer, on the host: read, checked, and made into a kernel's argument."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.errors import ArgumentError
from tilewright.gemm.addressing import Addressing
from tilewright.gemm.arrays import Matrix
from tilewright.lang.arguments.arrays import Array, array_of
from tilewright.lang.arguments.dlpack import tensor_over
from tilewright.lang.numbers.numeric import Int32


@dataclass(frozen=True)
class IndirectOperands:
    """``gather_A``, ``gather_B`` and ``scatter_D`` are vectors of Int32 or None; ``batches`` has (A, B, C, D) of each
    product of mode "array", or nothing."""

    gather_A: Array | None = None
    gather_B: Array | None = None
    scatter_D: Array | None = None
    batches: tuple[tuple[Matrix, Matrix, Matrix, Matrix], ...] = ()

    def extents(self, m: int, n: int, batch: int) -> tuple[int, int, int]:
        """(M, N, L) of the product whose D is m x n x batch."""
        rows = self.gather_A or self.scatter_D
        return (
            m if rows is None else rows.shape[0],
            n if self.gather_B is None else self.gather_B.shape[0],
            len(self.batches) or batch,
        )

    def matrices(self, operand: int, first: Matrix) -> tuple[Matrix, ...]:
        """All matrices of operand 0 (A) to 3 (D); alone ``first`` where they are not given by pointers."""
        return tuple(batch[operand] for batch in self.batches) or (first,)

    def by_index(self, operand: int) -> bool:
        """Whether the rows of operand 0 (A) to 3 (D) are given by index."""
        return (self.gather_A, self.gather_B, self.scatter_D, self.scatter_D)[operand] is not None

    def addressing(self, upload: Any) -> Addressing:
        """The kernel's argument; ``upload`` brings a NumPy array to the machine that runs it."""
        vectors = (self.gather_A, self.gather_B, self.scatter_D)
        a, b, d = (x if x is None else tensor_over(x).mark_layout_dynamic() for x in vectors)
        pointers = None
        if self.batches:
            # (operand, batch): a block reads one address from each row.
            addresses = np.array([[m.array.address for m in batch] for batch in self.batches], np.int64).T.copy()
            pointers = tensor_over(array_of(upload(addresses))).mark_layout_dynamic()
        return Addressing(a, b, d, pointers)


def indices_of(name: str, source: Any, rows: int, device: str, unique: bool = False) -> Array:
    """A vector of numbers of rows, 0 <= i < ``rows``; ArgumentError for anything else."""
    array = array_of(source)
    if len(array.shape) != 1 or array.dtype is not Int32:
        raise ArgumentError(f"{name} must be a vector of Int32, got {array.dtype} of shape {array.shape}")
    if array.device != device:
        raise ArgumentError(f"{name} is on {array.device}, the operands are on {device}")
    if not array.shape[0]:
        return array
    # This waits for the device. The kernel has no way to refuse an index, and would read past the matrix.
    low, high = int(source.min()), int(source.max())
    if low < 0 or high >= rows:
        raise ArgumentError(f"{name} names row {low if low < 0 else high}; there are {rows} (0 to {rows - 1})")
    if unique:
        there = source.cpu() if hasattr(source, "cpu") else source.get() if hasattr(source, "get") else source
        numbers, counts = np.unique(np.asarray(there), return_counts=True)
        if counts.max() > 1:
            raise ArgumentError(f"{name} names row {numbers[counts.argmax()]} twice: two rows of D would share it")
    return array


def array_batches(
    A: list[Any], B: list[Any], C: list[Any] | None, D: list[Any]
) -> tuple[tuple[Matrix, Matrix, Matrix, Matrix], ...]:
    """The products of mode "array"; ArgumentError where matrices of an operand differ in more than their address."""
    lists = [("A", A), ("B", B), ("C", C if C is not None else D), ("D", D)]
    read = [[Matrix.of(f"{name}[{i}]", x) for i, x in enumerate(matrices)] for name, matrices in lists]
    for (name, _), matrices in zip(lists, read, strict=True):
        first = matrices[0]
        for matrix in matrices:
            if len(getattr(matrix.source, "shape", ())) != 2:
                raise ArgumentError(f"{matrix.name} must be a matrix, not a stack of them")
            same = ("shape", "stride", "dtype", "device")
            if any(getattr(matrix, what) != getattr(first, what) for what in same):
                raise ArgumentError(
                    f"matrices of mode 'array' differ in their address alone: {matrix.name} is {matrix.shape[:2]} with "
                    f"strides {matrix.stride[:2]} of {matrix.dtype} on {matrix.device}, {name}[0] is {first.shape[:2]} "
                    f"with strides {first.stride[:2]} of {first.dtype} on {first.device}"
                )
    check_disjoint(*read)
    return tuple(zip(*read, strict=True))


def check_disjoint(A: list[Matrix], B: list[Matrix], C: list[Matrix], D: list[Matrix]) -> None:
    """ArgumentError where a result overlaps another one or an operand, but for the C of its own product."""
    own = {id(matrix) for matrix in D}
    spans = [(*matrix.array.bounds, matrix) for matrix in (*A, *B, *D)]
    spans += [(*c.array.bounds, c) for c, d in zip(C, D, strict=True) if not c.same_view(d)]
    # Sorted by where they begin, a span can only overlap the one before it that reaches furthest.
    spans.sort(key=lambda span: span[0])
    end, furthest = spans[0][0], spans[0][2]  # no span reaches beyond a result that one overlaps: it would, too
    for low, high, matrix in spans:
        if low < end and (id(matrix) in own or id(furthest) in own):
            raise ArgumentError(f"{matrix.name} overlaps {furthest.name}: each result wants memory of its own")
        end, furthest = max((end, furthest), (high, matrix), key=lambda reach: reach[0])
