"""Matrices that a kernel cannot access as they are, copied to rows that it can: before a product A, B and C, after it
D.

A Hopper kernel with a copy before it is faster than a kernel that reads unaligned rows as soon as the product is more
than a few microseconds long.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from tilewright.gemm.access import VECTOR
from tilewright.gemm.arrays import Matrix
from tilewright.gemm.config import Major
from tilewright.gemm.family.accesses import OperandAccess
from tilewright.gemm.family.entry import KernelEntry
from tilewright.gemm.host.problem import Problem
from tilewright.gemm.host.workspace import WorkspaceBuffer

ROW = 128  # bytes at whose multiples packed rows begin
LAUNCH_US, BYTES_PER_US = 1.8, 2.0e6
"""The time of a copy: once, and for the bytes that it reads and writes (estimated for an H200)."""


@dataclass(frozen=True)
class Packing:
    """``names`` of the matrices that are copied: of A, B, C, D. ``majors`` are the modes that become contiguous, as the
    kernel sees them (B as (N, K)); ``sizes`` their bytes in rows of whole lines."""

    names: tuple[str, ...]
    majors: tuple[Major, ...]
    sizes: tuple[int, ...]
    moved: int
    """Bytes that the copies read and write."""
    whole: bool = True
    """Whether the rows of C and D become whole accesses."""
    longer: tuple[str, ...] = ()
    """The matrices of which that makes the rows longer."""

    @classmethod
    def of(cls, problem: Problem, entry: KernelEntry) -> Packing | None:
        """The copies that the kernel needs; None where it needs none, or where copies do not help."""
        if not entry.family.packs or problem.indirect is not None:
            return None
        return cls.needed(problem, entry.family.accesses(entry.config, problem))

    @classmethod
    def needed(cls, problem: Problem, listed: list[OperandAccess]) -> Packing | None:
        """The copies with which each operand can be accessed as ``listed``; None where none is needed."""
        names = [one.name for one in listed if one.refusal and (one.name != "C" or problem.has_c)]
        majors = {one.name: one.major for one in listed}
        whole = any(one.access.whole for one in listed if one.name == "D")
        if whole and problem.has_c and ("C" in names) != ("D" in names):
            names = [*(name for name in names if name in "AB"), "C", "D"]  # of the same length of rows
        if not names:
            return None
        copies = [packed(getattr(problem, name), name, majors[name], whole) for name in names]
        moved = sum(2 * math.prod(copy.shape) * copy.dtype.bytes for copy in copies)
        longer = tuple(
            name for name, copy in zip(names, copies, strict=True) if copy.shape != getattr(problem, name).shape
        )
        majors_of = tuple(majors[name] for name in names)
        return cls(tuple(names), majors_of, tuple(map(bytes_of, copies)), moved, whole, longer)

    def allowed(self, may_pack: str) -> bool:
        """Whether all of the matrices may be copied: ``may_pack`` has their names, small ones of those that may only
        be copied to rows as long as their own. What is as long as D's rows is then not read beyond its end."""
        return all(name in may_pack or (name not in self.longer and name.lower() in may_pack) for name in self.names)

    @property
    def bytes(self) -> int:
        """Bytes of all packed matrices."""
        return sum(self.sizes)

    @property
    def microseconds(self) -> float:
        launches = any(name in "ABC" for name in self.names) + ("D" in self.names)
        return LAUNCH_US * launches + self.moved / BYTES_PER_US

    def placed(self, problem: Problem, memory: WorkspaceBuffer | None = None) -> Problem:
        """The problem as the kernel sees it; without ``memory`` at made-up addresses, for planning."""
        offset, matrices = 0, {name: getattr(problem, name) for name in "ABCD"}
        for name, major, size in zip(self.names, self.majors, self.sizes, strict=True):
            matrix = packed(getattr(problem, name), name, major, self.whole)
            array = matrix.array._replace(address=ROW) if memory is None else memory.packed(offset, matrix.array)
            matrices[name] = replace(matrix, array=array)
            offset += size
        A, B, C, D = matrices.values()
        return replace(problem, A=A, B=B, C=C if problem.has_c else D, D=D)


def packed(matrix: Matrix, name: str, major: Major, whole: bool) -> Matrix:
    """Operand ``name`` in rows of whole lines along ``major``. ``whole``: the rows of C and D are whole accesses
    long."""
    inner, outer = (1, 0) if (major is Major.K) == (name != "B") else (0, 1)
    access, line = VECTOR // matrix.dtype.bytes, ROW // matrix.dtype.bytes
    shape, stride = list(matrix.shape), [0, 0, 0]
    if whole and name in "CD":
        shape[inner] = -(-shape[inner] // access) * access
    row = -(-shape[inner] // line) * line
    stride[inner], stride[outer], stride[2] = 1, row, row * shape[outer]
    return replace(matrix, array=matrix.array._replace(shape=tuple(shape), stride=tuple(stride)))


def bytes_of(matrix: Matrix) -> int:
    """From its first to its last row, in whole lines."""
    outer = max(matrix.stride[0] * matrix.shape[0], matrix.stride[1] * matrix.shape[1])
    size = max(outer, matrix.stride[2] * matrix.shape[2]) * matrix.dtype.bytes
    return int(-(-size // ROW) * ROW)
