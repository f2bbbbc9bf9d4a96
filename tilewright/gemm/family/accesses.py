"""The assumptions of a kernel about its operands: the statements of its loaders and its epilogue, with the matrices."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from tilewright.gemm.access import AccessRequirement
from tilewright.gemm.arrays import Matrix
from tilewright.gemm.config import Major, Operand
from tilewright.gemm.kernel import group_table


class ProductOperands(Protocol):
    """The part that families need of a :class:`~tilewright.gemm.host.problem.Problem`."""

    @property
    def A(self) -> Matrix: ...
    @property
    def B(self) -> Matrix: ...
    @property
    def B_as_rows(self) -> Matrix: ...
    @property
    def C(self) -> Matrix: ...
    @property
    def D(self) -> Matrix: ...
    @property
    def indirect(self) -> Any: ...
    @property
    def shape(self) -> tuple[int, int, int, int]: ...
    def operands(self, transposed: bool, dtype: Any, whole: bool) -> tuple[Operand, Operand, Operand]: ...


class OperandAccess(NamedTuple):
    """``access`` is what is assumed of the matrix of operand ``name`` (A to D; B as (N, K)), along ``major``."""

    name: str
    access: AccessRequirement
    matrix: Matrix
    major: Major

    @property
    def refusal(self) -> str | None:
        """Why the matrix cannot be accessed; None where it can."""
        return self.access.refusal(self.matrix, self.major)


def group_accesses(product: ProductOperands) -> list[OperandAccess]:
    """Requirements of the table in which the grouped kernels find a problem's matrices."""
    return operand_accesses(product, group_table.ACCESS)


def operand_accesses(
    product: ProductOperands, loads: AccessRequirement, stores: AccessRequirement | None = None
) -> list[OperandAccess]:
    """A, B, C (where it is not D) and D; C is read as D is written."""
    A, B, C, D = product.A, product.B_as_rows, product.C, product.D
    stores, major = stores or loads, D.major()
    accesses = [OperandAccess("A", loads, A, A.major()), OperandAccess("B", loads, B, B.major())]
    if C is not D:
        accesses.append(OperandAccess("C", stores, C, major))
    return [*accesses, OperandAccess("D", stores, D, major)]


def access_refusal(listed: list[OperandAccess]) -> str | None:
    """Why an operand cannot be accessed as ``listed``; None where all can."""
    return next(filter(None, (one.refusal for one in listed)), None)
