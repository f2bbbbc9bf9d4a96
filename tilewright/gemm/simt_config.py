"""The parameters of the kernel that multiplies with FMAs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from tilewright.errors import ConstraintError
from tilewright.gemm.config import GemmConfig, Major, Operand

NEIGHBOURS = 4
"""Sums of a thread that are neighbours in D."""


@dataclass(frozen=True)
class SimtConfig(GemmConfig):
    """A kernel that multiplies with FMAs, one for each element: operands are MN-major in shared memory."""

    math: ClassVar[str] = "simt"
    tensor_cores: ClassVar[bool] = False

    def shared_major(self, operand: Operand) -> Major:
        return Major.MN

    @property
    def smem_bytes(self) -> int:
        return self.ring_bytes  # D is written from registers

    @property
    def fragments(self) -> int:
        return max(1, self.tile[1] // (self.threads // 4))

    def with_operands(self, a: Operand, b: Operand, c: Operand, smem: int) -> Self:
        """D is stored from registers, so that an access has no more elements than a thread has neighbours."""
        return super().with_operands(a, b, replace(c, copy_bits=min(c.copy_bits, NEIGHBOURS * c.dtype.width)), smem)

    def check(self) -> None:
        if self.granules:
            raise ConstraintError("granules are a way of tensorop kernels to read rows of K, not of simt")
        super().check()
