"""From the accumulators of mma.sync to D by TMA."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright import cute
from tilewright.gemm.epilogue.coming import ComingVectors
from tilewright.gemm.epilogue.functions import EpilogueFunction
from tilewright.gemm.epilogue.tma_store import TmaStoreEpilogue
from tilewright.gemm.sm120_config import PERMUTATION, Sm120Config


@dataclass(frozen=True)
class MmaSyncEpilogue(TmaStoreEpilogue):
    """A part's accumulators are neighbours: a thread holds a tile step by step along N."""

    config: Sm120Config

    @property
    def apart(self) -> int:
        return self.config.apart

    def of_part(self, first: Any, apart: int) -> cute.Tensor:
        """((2, 2), MMA_M, columns / 16)"""
        shape = ((2, 2), self.config.part[0] // PERMUTATION[0], self.config.epilogue_columns // 16)
        return cute.make_tensor(first, cute.make_layout(shape))

    def coming(self, function: EpilogueFunction, first: tuple, extent: tuple) -> ComingVectors:
        """Nothing: the lanes that would hold a vector are those of wgmma."""
        return ComingVectors((), ())
