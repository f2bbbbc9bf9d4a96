"""The operands of one product, read and checked once: shapes, dtypes, devices, overlap."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from tilewright.errors import ArgumentError
from tilewright.gemm.arrays import Matrix, check_types, operand_of, type_read
from tilewright.gemm.config import LEAST_ASYNCHRONOUS, Major, Operand
from tilewright.gemm.host.indirect import IndirectOperands
from tilewright.gemm.mainloop.granules import GranuleLoader
from tilewright.lang.arguments.arrays import Array

WIDEST = {Major.K: 128, Major.MN: 128}
"""A tile that leaves every access as wide as the matrices allow."""

MACHINES = ("auto", "cpu", "gpu")


@dataclass(frozen=True)
class Problem:
    """D = f(A @ B, C) for (M, K, L), (N, K, L) seen as (K, N, L), and (M, N, L) matrices. ``C`` is D where there is no
    C: the kernel wants a tensor, and does not read it."""

    A: Matrix
    B: Matrix
    C: Matrix
    D: Matrix
    has_c: bool
    indirect: IndirectOperands | None = None  # rows by index, batches by pointer
    source: Matrix | None = None
    """A C of another type than D's: the epilogue reads it, and the kernel has no C."""

    @classmethod
    def of(cls, a: Any, b: Any, c: Any = None, out: Any = None, out_dtype: Any = None) -> Problem:
        """Raises ArgumentError for operands that do not go together. ``out`` is made where it is None, of C's type or
        of ``out_dtype``. ``a`` and ``out`` may be a :class:`Matrix` already, such as a sparse one."""
        A, B = a if isinstance(a, Matrix) else Matrix.of("a", a), Matrix.of("b", b)
        C = Matrix.of("c", c) if c is not None else None
        m, n, batch = check_operands(A, B, C)
        if out is None:
            out = empty(a, (m, n) if len(a.shape) == 2 else (batch, m, n), C.dtype if C else out_dtype)
        D = out if isinstance(out, Matrix) else Matrix.of("out", out)
        if C is not None and C.dtype is not D.dtype and len(c.shape) == 2:
            check_output(A, B, None, D, (m, n, batch))
            check_source(C, D)
            return cls(A, B, D, D, False, source=C)
        check_output(A, B, C, D, (m, n, batch))
        return cls(A, B, C if C is not None else D, D, C is not None)

    # -- what it is ----------------------------------------------------------------------------------------------------

    @property
    def parts(self) -> tuple[Matrix, ...]:
        """Further arrays of A and of B."""
        return (*self.A.parts, *self.B.parts)

    def geometry(self) -> tuple[Any, ...]:
        """What a plan depends on: extents, strides, types, alignment, device."""
        arrays = [matrix.array for matrix in self.matrices]
        # Addresses matter only by their alignment: a handle goes on with other matrices of the same geometry.
        where = [(array.shape, array.stride, array.dtype, array.address % 16, array.device) for array in arrays]
        if self.indirect is None:
            source = None if self.source is None else self.source.array
            return (*where, self.has_c, source and (source.shape, source.stride, source.dtype, source.address % 16))
        others = [[m.array.address % 16 for m in batch] for batch in self.indirect.batches]
        return (*where, self.has_c, self.shape, others, [self.indirect.by_index(operand) for operand in range(4)])

    def describe(self) -> str:
        """M x N x K, and L where it is not 1."""
        m, n, k, batch = self.shape
        return f"{m} x {n} x {k}" + (f" x {batch}" if batch != 1 else "")

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """(M, N, K, L)"""
        m, n, batch = self.D.shape if self.indirect is None else self.indirect.extents(*self.D.shape)
        return m, n, self.A.shape[1], batch

    @property
    def is_empty(self) -> bool:
        m, n, _, batch = self.shape
        return 0 in (m, n, batch)

    @property
    def machine(self) -> str:
        """Where the arrays are: ``cpu`` or ``gpu``."""
        return "cpu" if self.A.device == "cpu" else "gpu"

    @property
    def matrices(self) -> tuple[Matrix, Matrix, Matrix, Matrix]:
        return self.A, self.B, self.C, self.D

    @property
    def all_matrices(self) -> list[Matrix]:
        """The matrices of all products."""
        others = [] if self.source is None else [self.source]
        return others + [matrix for operand in range(4) for matrix in self.every(operand)]

    def every(self, operand: int) -> tuple[Matrix, ...]:
        """All matrices of operand 0 (A) to 3 (D): several where batches are given by pointer."""
        first = self.matrices[operand]
        if self.indirect is None or not self.indirect.batches:
            return (first,)
        return tuple(m.read_as(first.dtype) for m in self.indirect.matrices(operand, first))

    # -- how kernels see it --------------------------------------------------------------------------------------------

    def operands(self, transposed: bool, dtype: Any, whole: bool) -> tuple[Operand, Operand, Operand]:
        """How A, B and D (with C) are laid out, seen by a kernel of ``dtype``, by :func:`operand_of`; B as (N, K).
        ``whole`` rows of A and B are whole accesses. Several kernels ask for the same."""
        remembered: dict[Any, tuple[Operand, Operand, Operand]] = self.__dict__.setdefault("_operands", {})
        key = transposed, dtype, whole
        if key not in remembered:
            remembered[key] = self._transposed_operands(dtype, whole) if transposed else self._operands_of(dtype, whole)
        return remembered[key]

    def _operands_of(self, dtype: Any, whole: bool) -> tuple[Operand, Operand, Operand]:
        A, B = self.every(0), (self.B_as_rows, *(matrix.transposed() for matrix in self.every(1)[1:]))
        a, b = operand_of(A, WIDEST, whole), operand_of(B, WIDEST, whole)
        a, b = (replace(x, dtype=type_read(x.dtype, dtype)) for x in (a, b))
        c = operand_of((*self.every(3), *self.every(2)) if self.has_c else self.every(3), WIDEST)
        if self.indirect is None:
            return with_granules(a, A), with_granules(b, B), c
        # Rows that are found by index may begin anywhere: no vector may reach from one row into the next.
        a, b, c = (one_by_one(x) if self.indirect.by_index(i) else x for x, i in ((a, 0), (b, 1), (c, 3)))
        return a, b, c

    def _transposed_operands(self, dtype: Any, whole: bool) -> tuple[Operand, Operand, Operand]:
        """B^T has the layout of B seen as (N, K), and A^T seen as (N, K) that of A."""
        a, b, _ = self.operands(False, dtype, whole)
        results = (self.D, self.C) if self.has_c else (self.D,)
        return b, a, operand_of(tuple(matrix.transposed() for matrix in results), WIDEST)

    @cached_property
    def B_as_rows(self) -> Matrix:
        """B as (N, K), as kernels read it."""
        return self.B.transposed()

    # -- other problems that are made of it ----------------------------------------------------------------------------

    def batches(self, first: int, last: int) -> Problem:
        """Products ``first`` to ``last`` - 1 of a batch."""
        indirect = self.indirect
        matrices: Iterator[Matrix]
        if indirect is not None and indirect.batches:
            indirect = replace(indirect, batches=indirect.batches[first:last])
            addresses = [matrix.array.address for matrix in indirect.batches[0]]
            matrices = (m.moved_to(address) for m, address in zip(self.matrices, addresses, strict=True))
        else:
            matrices = (matrix.batches(first, last) for matrix in self.matrices)
        A, B, C, D = matrices
        return replace(self, A=A, B=B, C=C, D=D, indirect=indirect)

    def with_rows(self, rows: int) -> Problem:
        """A product of as many rows of A, C and D, which begin where these do and are as far from each other."""
        A, C, D = (replace(x, array=x.array._replace(shape=(rows, *x.shape[1:]))) for x in (self.A, self.C, self.D))
        return Problem(A, self.B, C if self.has_c else D, D, self.has_c)

    def without_sources(self) -> Problem:
        """The same geometry of PyTorch tensors, without these."""
        like = self.D.source.new_empty(0)  # of their device
        A, B, C, D = (matrix.without_source(like) for matrix in self.matrices)
        return replace(self, A=A, B=B, C=C, D=D)

    def transposed(self) -> Problem:
        """D^T = f(B^T A^T, C^T)."""
        return Problem(self.B.transposed(), self.A.transposed(), self.C.transposed(), self.D.transposed(), self.has_c)

    def oriented(self, transposed: bool) -> Problem:
        return self.transposed() if transposed else self

    def read_as(self, dtype: Any) -> Problem:
        """The same with the bytes of A and B read as a kernel of ``dtype`` does: fp32 by tf32 tensor cores."""
        return replace(self, A=self.A.read_as(dtype), B=self.B.read_as(dtype))


def machine_name(machine: str, problem: Problem) -> str:
    """``cpu`` or ``gpu`` for what the user asked for; "auto" follows the arrays."""
    if machine not in MACHINES:
        raise ArgumentError(f"machine must be {', '.join(MACHINES[:-1])} or {MACHINES[-1]}, got {machine!r}")
    return problem.machine if machine == "auto" else machine


def one_by_one(operand: Operand) -> Operand:
    """How rows at any address are read: element by element where vectors would go across them."""
    return operand if operand.major is Major.K else replace(operand, copy_bits=operand.dtype.width)


def with_granules(operand: Operand, matrices: tuple[Matrix, ...]) -> Operand:
    """A or B, with what the loader of granules says of it where cp.async cannot copy it."""
    # cp.async copies 4 bytes at least; rows of odd length in 16-bit types allow less.
    narrow = operand.major is Major.K and operand.copy_bits < LEAST_ASYNCHRONOUS
    taken = narrow and all(GranuleLoader.ACCESS.takes(matrix, Major.K) for matrix in matrices)
    return replace(operand, granules=True) if taken else operand


def is_torch(array: Any) -> bool:
    return type(array).__module__.partition(".")[0] == "torch"


def empty(like: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    return like.new_empty(shape, dtype=dtype.torch_dtype) if is_torch(like) else np.empty(shape, dtype.dtype)


# -- checks ------------------------------------------------------------------------------------------------------------


def check_operands(A: Matrix, B: Matrix, C: Matrix | None) -> tuple[int, int, int]:
    """(M, N, L)"""
    (m, k, batch), (k_b, n, batch_b) = A.shape, B.shape
    if k != k_b:
        raise ArgumentError(f"inner dimensions differ: a is {m} x {k}, b is {k_b} x {n}")
    if batch != batch_b:
        raise ArgumentError(f"a has {batch} matrices, b has {batch_b}")
    check_types(A.dtype, B.dtype)
    if C is not None and C.shape != (m, n, batch):
        raise ArgumentError(f"c must be {shape_text((m, n, batch))}, got {shape_text(C.shape)}")
    return m, n, batch


def check_output(A: Matrix, B: Matrix, C: Matrix | None, D: Matrix, shape: tuple[int, int, int]) -> None:
    """ArgumentError for a D of another shape, in the operands' memory, on another device, or not writable."""
    if D.shape != shape:
        raise ArgumentError(f"out must be {shape_text(shape)}, got {shape_text(D.shape)}")
    if C is not None and C.dtype is not D.dtype:
        raise ArgumentError(f"c is {C.dtype}, out is {D.dtype}; of stacks, lists and rows by index both have one dtype")
    for other in (A, B):
        if D.overlaps(other):
            raise ArgumentError(f"out overlaps {other.name}; give it memory of its own")
    # Each element of D is written by the thread that has read the same element of C: one matrix for both is safe.
    if C is not None and D.overlaps(C) and not D.same_view(C):
        raise ArgumentError("out overlaps c without being the same matrix; give it memory of its own or pass c itself")
    D.check_written()
    devices = {matrix.device for matrix in (A, B, C, D) if matrix is not None}
    if len(devices) > 1:
        raise ArgumentError(f"the matrices are on different devices: {', '.join(sorted(devices))}")


def check_source(C: Matrix, D: Matrix) -> None:
    """ArgumentError for a C of another type than D's that cannot be read beside D."""
    if C.device != D.device:
        raise ArgumentError(f"the matrices are on different devices: {', '.join(sorted({C.device, D.device}))}")
    if D.overlaps(C):
        raise ArgumentError(f"out overlaps c, and they are of two types, {D.dtype} and {C.dtype}: give out its own")


def check_vector(name: str, array: Array, problem: Problem) -> None:
    """ArgumentError for a vector that is read while the result is written over it."""
    (low, high), (first, last) = array.bounds, problem.D.array.bounds
    if array.device == problem.D.device and low < last and first < high:
        raise ArgumentError(f"out overlaps {name}; give it memory of its own")


def shape_text(shape: tuple[int, ...]) -> str:
    """M x N, or L x M x N for extents (M, N, L)."""
    return " x ".join(map(str, shape[:2] if shape[2] == 1 else (shape[2], *shape[:2])))
