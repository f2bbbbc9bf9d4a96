"""What is known of a kernel of tcgen05 before it is staged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from tilewright.gemm.config import HopperConfig, Rule, require


@dataclass(frozen=True)
class BlackwellConfig(HopperConfig):
    """A kernel of tcgen05 (``kernel.tensor_memory``): one warp loads, one multiplies, four write. ``tile`` is that of a
    block; ``ctas``: how many blocks, neighbours along M in the cluster, work on one MMA."""

    consumers: tuple[int, int] = (1, 1)
    ctas: int = 1

    math: ClassVar[str] = "tcgen05"
    deals_by_launch: ClassVar[bool] = True

    @property
    def consumer_warps(self) -> int:
        """The warps that write in all blocks of the cluster, and one warp that multiplies for each MMA."""
        return 4 * self.cluster_size + self.cluster_size // self.ctas

    @property
    def registers(self) -> tuple[int, int] | None:
        """Sums are in tensor memory: no thread needs more than its share."""
        return None

    @property
    def stage_bytes(self) -> int:
        """Bytes of A and B in one stage of a block."""
        bM, bN, bK = self.tile
        return (bM * self.a.dtype.width + bN // self.ctas * self.b.dtype.width) * bK // 8

    @property
    def places(self) -> int:
        """Tiles whose sums have a place in tensor memory."""
        return 2

    @property
    def columns(self) -> int:
        """Columns of tensor memory that hold the sums, as they are allocated."""
        return max(32, 1 << (self.places * self.tile[1] - 1).bit_length())

    def check(self) -> None:
        """Raise ConstraintError when the parameters do not fit together."""
        require(
            "a Blackwell GEMM",
            self._tile_rules(),
            self._warpgroup_rules(),
            self._buffer_rules(),
            self._cluster_rules(),
            self._order_rules(),
        )

    def _tile_rules(self) -> Iterator[Rule]:
        """The tile is whole instructions, and its sums are what tensor memory holds."""
        bM, bN, bK = self.tile
        yield self.ctas in (1, 2), f"1 or 2 blocks that work on one MMA, not {self.ctas}"
        yield bM == 128, f"128 rows a block, not {bM}"
        step = 16 * self.ctas
        yield bN % step == 0 and step <= bN <= 256, f"{step} to 256 columns in steps of {step}, not {bN}"
        step = self.instruction_k
        yield bK % step == 0, f"a K tile in steps of {step} (one MMA), not {bK}"
        yield self.acc_dtype.width == 32, f"sums of 32 bits, not {self.acc_dtype.__name__}"

    def _warpgroup_rules(self) -> Iterator[Rule]:
        """What a Hopper kernel may choose and this one does not."""
        plain = not self.pingpong and not self.promote and self.roles == "specialized"
        yield self.consumers == (1, 1) and plain, "one warpgroup that writes, without turns or promotion"

    def _epilogue_columns_rule(self) -> Rule:
        bN = self.tile[1]
        return (
            self.epilogue_columns in (8, 16, 32, 64) and bN % self.epilogue_columns == 0,
            f"epilogue columns of 8, 16, 32 or 64 that divide {bN}, not {self.epilogue_columns}",
        )

    def _cluster_rules(self) -> Iterator[Rule]:
        """The blocks of a cluster: each MMA has its own within one."""
        plain = self.cluster_k == 1 and min(self.cluster) >= 1 and self.cluster_size <= 8
        yield (
            plain and self.cluster[0] % self.ctas == 0,
            f"a cluster of 1 to 8 blocks, whole MMAs along M, not {self.cluster} x {self.cluster_k}",
        )
