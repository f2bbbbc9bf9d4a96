"""What is known of a kernel of mma.sync and TMA before it is staged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from tilewright.gemm.config import HopperConfig, Rule

WARPS = (2, 2)
"""How the four warps of a warpgroup share its part of a tile, along M and N."""

PERMUTATION = (16 * WARPS[0], 16 * WARPS[1])
"""Rows and columns that a warpgroup multiplies at once: 16 columns a warp, so that one ldmatrix.x4 fills two
instructions' B."""

MOST_SUMS = {1: 128, 2: 80}
"""Sums of a thread, by the number of warpgroups that multiply: other registers hold steps of A and B, and addresses."""


@dataclass(frozen=True)
class Sm120Config(HopperConfig):
    """A kernel of mma.sync (``kernel.sm120``): as of wgmma, but for instructions that read registers. The four warps of
    a warpgroup share its part of the tile; blocks form no clusters."""

    math: ClassVar[str] = "sm120"
    least_columns: ClassVar[int] = PERMUTATION[1]

    @property
    def registers(self) -> tuple[int, int] | None:
        """ptxas gives each thread its share: it ignores ``setmaxnreg`` for sm_120a."""
        return None

    @property
    def smem_bytes(self) -> int:
        """With 1 KiB for mbarriers: all else begins at multiples of that."""
        return super().smem_bytes - 1024

    @property
    def apart(self) -> int:
        """Sums of a thread."""
        return self.part[0] * self.part[1] // 128

    def _tile_rules(self) -> Iterator[Rule]:
        """The tile is whole steps of each warpgroup, two of them along K at least, and whole boxes of TMA."""
        (bM, bN, bK), (rows, columns), (m, n) = self.tile, self.part, PERMUTATION
        yield rows * self.split[0] == bM and rows % m == 0, f"a multiple of {m} rows a consumer, not {bM} in all"
        yield columns * self.split[1] == bN and columns % n == 0, f"columns in steps of {n} a consumer, not {bN} in all"
        yield max(bM, bN) <= 256, f"tiles of at most 256 rows and columns, not {bM} x {bN}"
        step = self.instruction_k
        yield bK % step == 0 and bK >= 2 * step, f"a K tile in steps of {step}, two at least, not {bK}"

    def _sum_rules(self) -> Iterator[Rule]:
        """The sums fit the registers of a thread."""
        yield self.warpgroups in MOST_SUMS, f"1 or 2 consumer warpgroups, not {self.consumers}"
        yield self.promote == 0, "sums of the instructions alone (promote=0)"
        yield self.producers > 0, "a warpgroup that loads (roles='specialized')"
        yield (
            self.apart <= MOST_SUMS[self.warpgroups],
            f"at most {MOST_SUMS[self.warpgroups]} sums a thread, not {self.part[0]} x {self.part[1]}",
        )
        yield self.acc_dtype.width == 32, f"sums of 32 bits, not {self.acc_dtype.__name__}"

    def _epilogue_columns_rule(self) -> Rule:
        columns, n = self.part[1], PERMUTATION[1]
        fits = self.epilogue_columns >= n and self.epilogue_columns % n == 0 and columns % self.epilogue_columns == 0
        return fits, f"epilogue columns in steps of {n} that divide {columns}, not {self.epilogue_columns}"

    def _cluster_rules(self) -> Iterator[Rule]:
        yield self.cluster_size == 1, f"single blocks, not a cluster of {self.cluster} x {self.cluster_k}"
