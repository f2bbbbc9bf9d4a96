"""What is known of a kernel of block-scaled products before it is staged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tilewright.gemm.blackwell_config import BlackwellConfig
from tilewright.gemm.config import Rule
from tilewright.gemm.sm120_config import Sm120Config

ROWS, FACTORS, BLOCK_BYTES = 128, 4, 512
"""A block of factors: rows, factors of each, and bytes, which are contiguous in memory."""


class BlockFactors:
    """The part of a configuration that is about factors: operands have one of type ``factor`` for each ``vector``
    elements of K in a row."""

    factor: Any
    vector: int
    tile: Any
    stages: int

    @property
    def factor_blocks(self) -> int:
        """Blocks of factors along K in a tile."""
        return int(self.tile[2]) // (FACTORS * self.vector)

    def row_blocks(self, mode: int) -> int:
        """Blocks that have the factors of a tile's rows (``mode`` 0) or columns (1). Tiles of 64 or 192 columns begin
        in the middle of a block, or end there."""
        return -(-int(self.tile[mode]) // ROWS)

    def first_block(self, mode: int, tile: Any) -> Any:
        """The first of them, for tile number ``tile``."""
        rows = int(self.tile[mode])
        return tile * (rows // ROWS) if rows % ROWS == 0 else tile * rows // ROWS

    @property
    def factor_bytes(self) -> int:
        """Bytes of the factors in a stage."""
        return BLOCK_BYTES * self.factor_blocks * (self.row_blocks(0) + self.row_blocks(1))

    def _factor_rules(self) -> Iterator[Rule]:
        """The tile is whole blocks of factors."""
        step = FACTORS * self.vector
        yield self.tile[2] % step == 0, f"a K tile in steps of {step} ({FACTORS} factors), not {self.tile[2]}"


@dataclass(frozen=True)
class BlockScaledConfig(BlockFactors, BlackwellConfig):
    """A kernel of tcgen05 (``kernel.block_scaled``) of operands with factors."""

    factor: Any = None
    vector: int = 32

    @property
    def stage_bytes(self) -> int:
        """Bytes of A, B and their factors in one stage of a block."""
        return super().stage_bytes + self.factor_bytes

    @property
    def places(self) -> int:
        """One where the sums of two tiles would leave no columns for factors."""
        return 1 if self.tile[1] > 192 else 2

    @property
    def factors_at(self) -> int:
        """The column of tensor memory behind the sums."""
        return self.places * self.tile[1]

    @property
    def columns(self) -> int:
        """Columns of tensor memory for sums, and the factors of one stage: four for each block."""
        blocks = self.factor_blocks * (self.row_blocks(0) + self.row_blocks(1))
        return 1 << (self.factors_at + 4 * blocks - 1).bit_length()

    def _tile_rules(self) -> Iterator[Rule]:
        yield self.tile[1] in (64, 128, 192, 256), f"64, 128, 192 or 256 columns, not {self.tile[1]}"
        yield from self._factor_rules()
        yield from super()._tile_rules()


@dataclass(frozen=True)
class BlockScaledSm120Config(BlockFactors, Sm120Config):
    """A kernel of mma.sync (``kernel.block_scaled_sm120``) of operands with factors."""

    factor: Any = None
    vector: int = 32

    @property
    def stage_bytes(self) -> int:
        """Bytes of A, B and their factors in one stage."""
        return super().stage_bytes + self.factor_bytes

    def _tile_rules(self) -> Iterator[Rule]:
        yield self.tile[:2] == (ROWS, ROWS), f"tiles of {ROWS} x {ROWS}, whole blocks of factors, not {self.tile[:2]}"
        yield from self._factor_rules()
        yield from super()._tile_rules()
