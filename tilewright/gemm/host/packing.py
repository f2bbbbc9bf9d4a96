"""Matrices that TMA cannot take, copied to rows that it can: before a product A, B and C, after it D.

A Hopper kernel with a copy before it is faster than a kernel that reads unaligned rows as soon as the product is more
than a few microseconds long.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tilewright.gemm.arrays import Matrix
from tilewright.gemm.choice.registry import KernelEntry
from tilewright.gemm.config import HopperConfig, Major
from tilewright.gemm.host.problem import Problem
from tilewright.gemm.host.workspace import Memory

ROW = 128  # bytes at whose multiples packed rows begin
ACCESS = 16  # bytes that TMA wants rows to begin at multiples of
LAUNCH_US, BYTES_PER_US = 1.8, 2.0e6
"""What a copy takes: once, and for the bytes that it reads and writes (estimated for an H200)."""


@dataclass(frozen=True)
class Packing:
    """``names`` of the matrices that are copied: of A, B, C, D. ``sizes`` are their bytes in rows of whole lines."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    moved: int
    """Bytes that the copies read and write."""

    @classmethod
    def of(cls, problem: Problem, entry: KernelEntry) -> Packing | None:
        """What has to be copied for a Hopper kernel; None where nothing has, or where copies do not help."""
        if not isinstance(entry.config, HopperConfig) or problem.places is not None:
            return None
        matrices = {"A": problem.A, "B": problem.B, "D": problem.D} | ({"C": problem.C} if problem.has_c else {})
        names = [name for name, matrix in matrices.items() if not taken(matrix, name in "CD")]
        if problem.has_c and ("C" in names) != ("D" in names):
            names = [*(name for name in names if name in "AB"), "C", "D"]  # the kernel reads both in one way
        if not names or any(min(matrices[name].stride) < 0 for name in names):
            return None
        sizes = tuple(bytes_of(packed(matrices[name], name in "CD")) for name in names)
        moved = sum(2 * bytes_of(matrices[name]) for name in names)
        return cls(tuple(names), sizes, moved)

    @property
    def bytes(self) -> int:
        """Of all packed matrices."""
        return sum(self.sizes)

    @property
    def microseconds(self) -> float:
        launches = any(name in "ABC" for name in self.names) + ("D" in self.names)
        return LAUNCH_US * launches + self.moved / BYTES_PER_US

    def placed(self, problem: Problem, memory: Memory | None = None) -> Problem:
        """The problem as the kernel sees it; without ``memory`` at addresses that are none."""
        offset, matrices = 0, {name: getattr(problem, name) for name in "ABCD"}
        for name, size in zip(self.names, self.sizes, strict=True):
            matrix = packed(getattr(problem, name), name in "CD")
            array = matrix.array._replace(address=ROW) if memory is None else memory.packed(offset, matrix.array)
            matrices[name] = replace(matrix, array=array)
            offset += size
        A, B, C, D = matrices.values()
        return replace(problem, A=A, B=B, C=C if problem.has_c else D, D=D)


def taken(matrix: Matrix, result: bool) -> bool:
    """Whether TMA can take it as it lies; of C and D (``result``) rows must be whole accesses, too."""
    inner, outer = (1, 0) if matrix.major() is Major.K else (0, 1)
    access = ACCESS // matrix.dtype.bytes
    steps = [matrix.stride[mode] for mode in (outer, 2) if matrix.shape[mode] > 1]
    contiguous = matrix.stride[inner] == 1 or matrix.shape[inner] == 1
    whole = not result or matrix.shape[inner] % access == 0
    return contiguous and whole and matrix.array.address % ACCESS == 0 and not any(step % access for step in steps)


def packed(matrix: Matrix, result: bool) -> Matrix:
    """The matrix in rows of whole lines, along the same mode; the rows of C and D are whole accesses long."""
    inner, outer = (1, 0) if matrix.major() is Major.K else (0, 1)
    access, line = ACCESS // matrix.dtype.bytes, ROW // matrix.dtype.bytes
    shape, stride = list(matrix.shape), [0, 0, 0]
    if result:
        shape[inner] = -(-shape[inner] // access) * access
    row = -(-shape[inner] // line) * line
    stride[inner], stride[outer], stride[2] = 1, row, row * shape[outer]
    return replace(matrix, array=matrix.array._replace(shape=tuple(shape), stride=tuple(stride)))


def bytes_of(matrix: Matrix) -> int:
    """From its first to its last row, in whole lines."""
    outer = max(matrix.stride[0] * matrix.shape[0], matrix.stride[1] * matrix.shape[1])
    size = max(outer, matrix.stride[2] * matrix.shape[2]) * matrix.dtype.bytes
    return int(-(-size // ROW) * ROW)
