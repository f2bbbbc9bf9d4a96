"""The factors of block-scaled operands on their way to shared memory: blocks of 512 bytes by TMA, with the stage that
they belong to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright import cute
from tilewright.gemm.block_scaled_config import BLOCK_BYTES, BlockFactors
from tilewright.gemm.mainloop.tma import TmaMainloop, TmaOperand

WORDS = BLOCK_BYTES // 8
"""Words (Int64) of a block: TMA sees the factors as a matrix of them, a row for each 128 rows."""


def factor_stages(config: BlockFactors, mode: int) -> Any:
    """(1, words, blocks of rows, stages): where the factors of A (``mode`` 0) or B (1) are in shared memory."""
    words, blocks = WORDS * config.factor_blocks, config.row_blocks(mode)
    return cute.make_layout((1, words, blocks, config.stages), stride=(words, 1, words, words * blocks))


@dataclass(frozen=True)
class FactorsOperand(TmaOperand):
    """Factors on their way."""


class FactorsMainloop(TmaMainloop):
    """A main loop that loads factors, too."""

    config: Any

    def first_box(self, operand: TmaOperand, tile: Any) -> Any:
        """A tile of columns may begin inside of a block."""
        if not isinstance(operand, FactorsOperand):
            return super().first_box(operand, tile)
        return self.config.first_block(operand.mode, tile)
