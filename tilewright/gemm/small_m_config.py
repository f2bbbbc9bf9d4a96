"""The parameters of the kernels for few rows, which stream B from global memory into the registers of mma.sync."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from tilewright import Float8E4M3FN, Float8E5M2, Float16
from tilewright.errors import ConstraintError
from tilewright.gemm.config import GemmConfig, Major, Operand


@dataclass(frozen=True)
class SmallMConfig(GemmConfig):
    """A kernel for few rows (``kernel.small_m``): its warps share K, and read A and B straight into registers."""

    math = "small_m"

    @property
    def smem_bytes(self) -> int:
        """The sums of each warp."""
        return self.warps[1] * self.tile[0] * self.tile[1] * 4

    def with_operands(self, a: Operand, b: Operand, c: Operand, smem: int) -> Self:
        """The same for other operands. D is stored from the registers of mma.sync, two columns side by side."""
        most = 2 * c.dtype.width if c.major is Major.K else c.dtype.width
        return super().with_operands(a, b, replace(c, copy_bits=min(c.copy_bits, most)), smem)

    def check(self) -> None:
        """ConstraintError for sizes that the kernel for few rows does not have, or that would change nothing in it."""
        bM, bN, bK = self.tile
        wide = all(x.major is Major.K and (x.copy_bits, x.dtype.width) == (128, 16) for x in (self.a, self.b))
        if (bM, bN % 8, bK % 32, self.warps[0]) != (16, 0, 0, 1) or not wide:
            raise ConstraintError(
                "a kernel for few rows takes tiles of 16 rows, columns in 8s and k elements in 32s, warps (1, n), and "
                f"16-bit operands read 16 bytes at a time along K; not {self.tile}, {self.warps}, {self.a}, {self.b}"
            )
        if (self.stages, self.group, self.raster, self.granules) != (2, 8, "m", False):
            raise ConstraintError(
                "a kernel for few rows has one row of tiles and no ring: stages, group and raster that are not "
                f"(2, 8, 'm'), and granules, would change nothing; got {self.stages, self.group, self.raster}, "
                f"{self.granules}"
            )
        super().check()


@dataclass(frozen=True)
class MixedSmallMConfig(SmallMConfig):
    """A kernel for few rows whose B are numbers of 4 or 8 bits (``kernel.mixed_small_m``), with a scale for each
    ``depth`` elements of K of a column. ``stages`` are the tiles of K whose loads are in flight, ``blocks`` the thread
    blocks that a multiprocessor has registers for."""

    transposed: ClassVar[bool] = True
    depth: int = 128
    blocks: int = 1

    @property
    def math_dtype(self) -> Any:
        """What is multiplied: rows of 8-bit floats become Float16, which has all of them."""
        return Float16 if self.a.dtype in (Float8E4M3FN, Float8E5M2) else self.a.dtype

    def with_operands(self, a: Operand, b: Operand, c: Operand, smem: int) -> Self:
        """The same for other operands. Neighbouring columns of D are in different threads: each is stored alone."""
        return replace(self, a=a, b=b, c=replace(c, copy_bits=c.dtype.width))

    def check(self) -> None:
        """ConstraintError for sizes that the kernel does not have."""
        bM, bN, bK = self.tile
        wide = (self.a.major, self.math_dtype.width, self.a.vector) == (Major.K, 16, 8)
        sizes = (bM % 8, bN % (16 * self.warps[0]), bK) == (0, 0, 128) and 8 <= bM <= 64 and bN >= 16
        if not (sizes and self.stages >= 1 and wide and self.b.dtype.width in (4, 8) and self.depth in (32, 64, 128)):
            raise ConstraintError(
                "a kernel for few rows and weights of 4 or 8 bits takes tiles of 8 to 64 rows in 8s, columns in 16s "
                "and 128 elements of K, at least 1 stage, warps (n, k) with 16 columns or more for each of n, rows of "
                "16 bits or 8-bit floats read 8 at a time along K, and a scale for 32, 64 or 128 elements; not "
                f"{self.tile}, {self.stages}, {self.warps}, {self.a}, {self.b}, {self.depth}"
            )
