"""An MMA whose operands are the stages of a ring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright import cute


@dataclass(frozen=True)
class StagedMma:
    """What a warpgroup (wgmma) or a warp (tcgen05) multiplies: the fragments ``a`` (MMA, MMA_M, MMA_K, stages) and
    ``b`` (MMA, MMA_N, MMA_K, stages), which are descriptors of shared memory, and the ``ring`` whose mbarriers say
    when a stage is full. Where A has metadata or factors, ``a`` is a record of the fragment and of these."""

    tiled_mma: cute.TiledMma
    a: Any
    b: Any
    ring: Any
