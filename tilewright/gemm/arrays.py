"""Matrices of the user's framework (NumPy, torch) seen alike: shape, strides in elements, address, contiguous mode, alignment."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from tilewright.errors import ArgumentError
from tilewright.gemm.config import Major, Operand
from tilewright.lang.dlpack import numeric_of_dtype


def is_torch(array: Any) -> bool:
    return type(array).__module__.split(".")[0] == "torch"


@dataclass(frozen=True)
class Matrix:
    """A (rows, columns, batch) view of a 2-D or 3-D (batch first) array."""

    name: str
    view: Any

    @classmethod
    def of(cls, name: str, array: Any) -> Matrix:
        if not hasattr(array, "shape") or len(array.shape) not in (2, 3):
            found = f"shape {tuple(array.shape)}" if hasattr(array, "shape") else type(array).__name__
            raise ArgumentError(f"{name} must be a matrix or a stack of matrices (2 or 3 dimensions), got {found}")
        return cls(name, array[..., None] if len(array.shape) == 2 else array.swapaxes(0, 1).swapaxes(1, 2))

    def transposed(self) -> Matrix:
        return Matrix(self.name, self.view.swapaxes(0, 1))

    @property
    def dtype(self) -> Any:
        return numeric_of_dtype(self.view.dtype)

    @property
    def shape(self) -> tuple[int, int, int]:
        rows, columns, batch = self.view.shape
        return int(rows), int(columns), int(batch)

    @property
    def strides(self) -> tuple[int, ...]:
        if is_torch(self.view):
            return tuple(self.view.stride())
        return tuple(s // self.view.itemsize for s in self.view.strides)

    @property
    def address(self) -> int:
        if is_torch(self.view):
            return int(self.view.data_ptr())
        interface = getattr(self.view, "__cuda_array_interface__", None) or self.view.__array_interface__
        return int(interface["data"][0])

    @property
    def device(self) -> str:
        on_gpu = is_torch(self.view) or hasattr(self.view, "__cuda_array_interface__")
        return str(self.view.device) if on_gpu else "cpu"

    def span(self) -> tuple[int, int]:
        """The bytes [low, high) between the first and the last element."""
        size = self.dtype.width // 8
        if 0 in self.shape:
            return self.address, self.address
        reach = [(n - 1) * s * size for n, s in zip(self.shape, self.strides, strict=True)]
        return self.address + sum(min(0, r) for r in reach), self.address + sum(max(0, r) for r in reach) + size

    def overlaps(self, other: Matrix) -> bool:
        (low, high), (other_low, other_high) = self.span(), other.span()
        return self.device == other.device and low < other_high and other_low < high

    def same_view(self, other: Matrix) -> bool:
        return (self.address, self.shape, self.strides) == (other.address, other.shape, other.strides)

    def major(self) -> Major:
        """K (or N for C and D) when the second mode is contiguous or nothing is, else MN."""
        rows, columns, _ = self.strides
        first = rows == 1 and self.shape[0] > 1 and not (columns == 1 and self.shape[1] > 1)
        return Major.MN if first else Major.K

    def operand(self, tile_contiguous: dict[Major, int]) -> Operand:
        """How the kernel may read this matrix: its contiguous mode and the widest access, 16 bytes at most, that is always aligned."""
        return operand_of((self,), tile_contiguous)


def operand_of(matrices: tuple[Matrix, ...], tile_contiguous: dict[Major, int]) -> Operand:
    """The operand that fits all of ``matrices`` (C and D share one): one major, the widest access aligned in every one."""
    first = matrices[0]
    major, width = first.major(), first.dtype.width
    bits = 128
    for matrix in matrices:
        inner, outer = (1, 0) if major is Major.K else (0, 1)
        if matrix.strides[inner] != 1 and matrix.shape[inner] > 1:
            bits = width
        extents = [matrix.shape[inner], matrix.address * 8 // width]
        extents += [s for s, n in zip((matrix.strides[outer], matrix.strides[2]), (matrix.shape[outer], matrix.shape[2]), strict=True) if n > 1]
        bits = min(bits, width * math.gcd(128 // width, *extents))
    return Operand(first.dtype, major, min(bits, width * math.gcd(128 // width, tile_contiguous[major])))
