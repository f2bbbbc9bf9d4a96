"""The matrices of a product: shape, strides, overlap, and how a kernel may read them."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tilewright import Float8E4M3FN, Float8E5M2, Float32, TFloat32
from tilewright.atoms.sparsity import SPARSITY
from tilewright.errors import ArgumentError
from tilewright.gemm.access import aligned_elements
from tilewright.gemm.config import Major, Operand
from tilewright.lang.arguments.arrays import NESTED, Array, array_of, is_nested
from tilewright.lang.arguments.dlpack import tensor_over

MOST_COUNTED = 1 << 22
"""Elements whose places are counted one by one to see whether two are the same."""


@dataclass(frozen=True)
class Matrix:
    """A (rows, columns, batch) view of the user's 2-D or 3-D (batch first) array ``source``."""

    name: str
    source: Any
    array: Array

    @classmethod
    def of(cls, name: str, source: Any) -> Matrix:
        """``source`` as (M, N, L), of a matrix or a stack (L, M, N); ArgumentError also for a tensor that requires a
        gradient."""
        if is_nested(source):
            raise ArgumentError(f"{name} is {NESTED}")
        rank = len(getattr(source, "shape", ()))
        if rank not in (2, 3):
            what = f"shape {tuple(source.shape)}" if hasattr(source, "shape") else type(source).__name__
            raise ArgumentError(f"{name} must be a matrix or a stack of matrices (2 or 3 dimensions), got {what}")
        try:
            array = array_of(source)
        except ArgumentError as error:
            raise ArgumentError(f"{name}: {error}") from None
        if asks_for_gradient(source):
            raise ArgumentError(
                f"{name} asks for a gradient (requires_grad), and this call records none: give {name}.detach(), or "
                "call it under torch.no_grad(). tilewright.gemm.matmul without out has gradients"
            )
        if rank == 2:
            return cls(name, source, array._replace(shape=(*array.shape, 1), stride=(*array.stride, 0)))
        (batch, m, n), (dl, dm, dn) = array.shape, array.stride
        return cls(name, source, array._replace(shape=(m, n, batch), stride=(dm, dn, dl)))

    def read_as(self, dtype: Any) -> Matrix:
        """The same bytes as elements of :func:`type_read` by a kernel of ``dtype``."""
        return replace(self, array=self.array._replace(dtype=type_read(self.dtype, dtype)))

    def transposed(self) -> Matrix:
        (m, n, batch), (dm, dn, dl) = self.array.shape, self.array.stride
        return Matrix(self.name, self.source, self.array._replace(shape=(n, m, batch), stride=(dn, dm, dl)))

    def moved_to(self, address: int) -> Matrix:
        """A matrix of the same layout elsewhere."""
        return replace(self, array=self.array._replace(address=address))

    def batches(self, first: int, last: int) -> Matrix:
        """Matrices ``first`` to ``last`` - 1 of the stack."""
        array = self.moved_to(self.array.address + first * self.stride[2] * self.dtype.bytes).array
        return replace(self, array=array._replace(shape=(*self.shape[:2], last - first)))

    def without_source(self, like: Any) -> Matrix:
        """The same geometry, without the array; ``like`` stands in for it."""
        return replace(self, source=like, array=self.array._replace(owner=None))

    @property
    def parts(self) -> tuple[Matrix, ...]:
        """Further arrays that a kernel has to be given, and that need not lie at a fixed distance."""
        return ()

    @property
    def dtype(self) -> Any:
        return self.array.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def stride(self) -> tuple[int, ...]:
        return self.array.stride

    @property
    def device(self) -> str:
        return self.array.device

    def overlaps(self, other: Matrix) -> bool:
        (low, high), (other_low, other_high) = self.array.bounds, other.array.bounds
        return self.device == other.device and low < other_high and other_low < high

    def overlaps_itself(self) -> bool:
        """Whether two elements share one place, as far as extents and strides tell: where each mode steps over all
        that the finer ones reach, they do not; otherwise places are counted, or, of very many, taken to be shared."""
        modes = sorted((abs(d), n) for n, d in zip(self.shape, self.stride, strict=True) if n > 1)
        if 0 in self.shape:
            return False
        reach = 0
        for step, extent in modes:
            if step <= reach:
                break
            reach += step * (extent - 1)
        else:
            return False
        if modes[0][0] == 0 or math.prod(self.shape) > MOST_COUNTED:
            return True
        places = sum(np.ix_(*(np.arange(extent) * step for step, extent in modes)))
        return len(np.unique(places)) < math.prod(self.shape)

    def check_written(self) -> None:
        """ArgumentError where it cannot take a result, which a kernel writes or which is copied into it."""
        if self.array.readonly:
            raise ArgumentError(f"{self.name} is read-only: give an array that can be written")
        if self.overlaps_itself():
            modes = [mode for mode in zip(self.shape, self.stride, strict=True) if mode[0] > 1]  # it has two elements
            extents, strides = (" x ".join(map(str, numbers)) for numbers in zip(*modes, strict=True))
            raise ArgumentError(
                f"several elements of {self.name} share one place: it is {extents} with strides {strides} (0 is a "
                "broadcast mode). Give it memory of its own"
            )

    def same_view(self, other: Matrix) -> bool:
        return (self.array.address, self.shape, self.stride) == (other.array.address, other.shape, other.stride)

    def major(self) -> Major:
        """K (N for C and D) when the second mode is contiguous or nothing is, else MN."""
        (rows, columns, _), (down, across, _) = self.array.shape, self.array.stride
        second = across == 1 and columns > 1
        return Major.MN if down == 1 and rows > 1 and not second else Major.K

    def tensor(self, operand: Operand, whole: bool = True) -> Any:
        """The cute tensor: extents and strides are run-time, but for the 1 of a mode that is read in vectors or
        granules. A single element in that mode has any stride: 1 will do.

        Where rows are read in vectors, each begins at a multiple of one, and is ``whole`` vectors long: what is
        compiled for the tensor refuses others, in Python and in C."""
        inner, align = 1 if operand.major is Major.K else 0, max(operand.copy_bits, operand.dtype.width) // 8
        if operand.vector == 1 and not operand.granules:
            return tensor_over(self.array, assumed_align=align).mark_all_dynamic(contiguous=None)
        stride = tuple(1 if mode == inner and self.shape[mode] <= 1 else d for mode, d in enumerate(self.stride))
        tensor = tensor_over(self.array._replace(stride=stride), assumed_align=align)
        return tensor.mark_all_dynamic(inner, operand.vector if whole else 1, operand.vector)


@dataclass(frozen=True)
class SparseMatrix(Matrix):
    """A 2:4 sparse matrix: ``array`` are the stored elements, (rows, columns / 2, batch), and ``metadata``
    (K / 64, 128 * rows / 64) of Int32 say where they are. The shape is that of the matrix."""

    metadata: Matrix

    @property
    def parts(self) -> tuple[Matrix, ...]:
        return (self.metadata,)

    def without_source(self, like: Any) -> Matrix:
        bare = Matrix(self.name, self.source, self.array).without_source(like)
        return SparseMatrix(bare.name, like, bare.array, self.metadata.without_source(like))

    @property
    def shape(self) -> tuple[int, ...]:
        rows, stored, batch = self.array.shape
        return rows, SPARSITY * stored, batch


@dataclass(frozen=True)
class PreparedMatrix(Matrix):
    """A weight of numbers of type ``kind`` that was prepared, (N, K) whichever operand it is: ``array`` are its words,
    (N / 8, words of 8 rows), ``scales`` (N, K / group) and ``zeros`` the same or None."""

    scales: Matrix
    zeros: Matrix | None
    kind: Any

    @property
    def words(self) -> Matrix:
        return Matrix(self.name, self.source, self.array)

    @property
    def parts(self) -> tuple[Matrix, ...]:
        return (self.scales,) if self.zeros is None else (self.scales, self.zeros)

    def without_source(self, like: Any) -> Matrix:
        bare, *vectors = (x.without_source(like) for x in (self.words, *self.parts))
        return PreparedMatrix(self.name, like, bare.array, vectors[0], vectors[1] if self.zeros else None, self.kind)

    @property
    def dtype(self) -> Any:
        return self.kind

    @property
    def shape(self) -> tuple[int, ...]:
        rows, words, batch = self.array.shape
        return 8 * rows, words * 32 // self.kind.width // 8, batch

    def transposed(self) -> PreparedMatrix:
        return self

    def read_as(self, dtype: Any) -> PreparedMatrix:
        return self


EIGHT_BIT_FLOATS = (Float8E4M3FN, Float8E5M2)


def type_read(held: Any, kernel: Any) -> Any:
    """The type of elements of type ``held`` in a kernel whose operands are ``kernel``: their own, but for fp32, which
    tf32 tensor cores read."""
    return TFloat32 if kernel is TFloat32 and held is Float32 else held


def check_types(a: Any, b: Any) -> None:
    """ArgumentError for types that no kernel multiplies with each other: 8-bit floats of both kinds are the only ones
    that differ."""
    if a is not b and not (a in EIGHT_BIT_FLOATS and b in EIGHT_BIT_FLOATS):
        raise ArgumentError(
            f"a is {a.__name__}, b is {b.__name__}; both must have one dtype, or be 8-bit floats, e4m3 and e5m2"
        )


def dynamic(matrix: Any) -> Any:
    """A matrix, or a stack of them, of run-time extents and strides. Where several strides are 1, all but one of their
    extents are 1, and any of these modes may be the contiguous one."""
    ones = [mode for mode, stride in enumerate(matrix.stride) if stride == 1]
    return matrix.mark_layout_dynamic(leading_dim=ones[-1]) if len(ones) > 1 else matrix.mark_layout_dynamic()


def asks_for_gradient(source: Any) -> bool:
    """Whether PyTorch would record what is done with a tensor."""
    return bool(getattr(source, "requires_grad", False)) and bool(sys.modules["torch"].is_grad_enabled())


def operand_of(matrices: tuple[Matrix, ...], tile: dict[Major, int], whole: bool = True) -> Operand:
    """The operand that fits all of ``matrices`` (C and D share one): one major, the widest access that is always
    aligned.

    ``tile`` gives the tile's extent along the contiguous mode for either major. ``whole``: rows must be whole accesses,
    too; TMA does not copy elements past the end.
    """
    first = matrices[0]
    major = first.major()
    vector = math.gcd(tile[major], *(aligned_elements(matrix, major, whole) for matrix in matrices))
    return Operand(first.dtype, major, vector * first.dtype.width)
