"""Which output tile a thread block computes: tiles in groups of rows, so that blocks that run together share operands
in L2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright import cute


@dataclass(frozen=True)
class GroupedRaster:
    """Walk the tiles in bands of ``group`` rows, column by column inside a band.

    With ``group`` = 1 this is row order; the last band may be thinner.
    """

    group: int

    def tile(self, index: Any, tiles_m: Any, tiles_n: Any) -> tuple[Any, Any]:
        """(tile_m, tile_n) of linear block ``index`` among ``tiles_m * tiles_n``."""
        per_band = self.group * tiles_n
        band = index // per_band
        first = band * self.group
        height = cute.min(tiles_m - first, self.group)
        inside = index - band * per_band
        return first + inside % height, inside // height
