"""What a kernel assumes of its operands: the statements of its loaders and its epilogue, with the matrices."""

from __future__ import annotations

from typing import NamedTuple

from tilewright.gemm.access import Access
from tilewright.gemm.arrays import Matrix
from tilewright.gemm.config import AnyConfig, HopperConfig, Major
from tilewright.gemm.epilogue.tma_store import TmaStoreEpilogue
from tilewright.gemm.host.problem import Problem
from tilewright.gemm.kernel import group_table
from tilewright.gemm.kernel.small_m import SmallMGemm
from tilewright.gemm.mainloop.tma import TmaMainloop


class OperandAccess(NamedTuple):
    """``access`` is what is assumed of the matrix of operand ``name`` (A to D; B as (N, K)), along ``major``."""

    name: str
    access: Access
    matrix: Matrix
    major: Major

    @property
    def refusal(self) -> str | None:
        """Why the matrix cannot be accessed; None where it can."""
        return self.access.refusal(self.matrix, self.major)


def accesses(config: AnyConfig, problem: Problem) -> list[OperandAccess]:
    """Of the kernel of ``config``. Operands of which nothing is assumed are not listed."""
    if isinstance(config, HopperConfig):
        return each(problem, TmaMainloop.access(config.a.dtype), TmaStoreEpilogue.ACCESS)
    return each(problem, SmallMGemm.ACCESS)[:2] if config.math == "small_m" else []


def group_accesses(problem: Problem) -> list[OperandAccess]:
    """Of the table by which the kernels of groups find a problem's matrices."""
    return each(problem, group_table.ACCESS)


def each(problem: Problem, loads: Access, stores: Access | None = None) -> list[OperandAccess]:
    """A, B, C and D; C is read as D is written."""
    A, B, C, D = problem.A, problem.B.transposed(), problem.C, problem.D
    majors = A.major(), B.major(), D.major(), D.major()
    found = (loads, loads, stores or loads, stores or loads)
    return [OperandAccess(*one) for one in zip("ABCD", found, (A, B, C, D), majors, strict=True)]


def access_refusal(config: AnyConfig, problem: Problem) -> str | None:
    """Why a kernel's loaders or its epilogue cannot access an operand; None where they can."""
    return next(filter(None, (one.refusal for one in accesses(config, problem))), None)
