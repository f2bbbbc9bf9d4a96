"""How long a Blackwell kernel will take on a problem, in all its sizes at once.

No constant here was measured: no GPU with tcgen05 was at hand. The rate of the tensor cores is that of the B200's data
sheet (2.25e15 dense FLOP/s of 16-bit operands on 148 multiprocessors); all others are those that were fitted for the
H200 (``hopper_cost.py``). So the model prefers what must hold on any such GPU: few rounded-up waves, tiles that need
few bytes for their FLOPs, and pairs of blocks where they do not leave multiprocessors idle.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log2

import numpy as np

from tilewright.gemm.blackwell_config import BlackwellConfig
from tilewright.gemm.family.estimate import CostModel, can_share
from tilewright.gemm.family.hopper_cost import (
    BYTES_PER_US,
    CLUSTER,
    JOIN_ELEMENT,
    JOINING,
    LATENCY,
    PART,
    PEER_ELEMENT,
    SHARERS,
    SHARING,
    STORE,
)
from tilewright.gemm.family.plan_options import INFEASIBLE_US, Limits, PlanOption, Problem, Vector
from tilewright.lang.tools.hardware import clusters_at_once

FLOPS_PER_US = 2.25e15 / 148 / 1e6  # of one multiprocessor, 16-bit operands: data sheet, not measured


class BlackwellModel(CostModel):
    """The ``options`` of one kernel on a GPU of ``limits``."""

    def __init__(self, options: Sequence[PlanOption], limits: Limits) -> None:
        super().__init__(options, limits)
        of_each = self.of_each
        self.workers = of_each(lambda config: clusters_at_once(self.sms, config.cluster_size))
        self.k_tile = of_each(k_tile_us)
        self.depth = of_each(lambda config: config.tile[2])
        self.store = of_each(store_us)
        elements = of_each(lambda config: config.tile[0] * config.tile[1])
        self.peer, self.joining = PEER_ELEMENT * elements, JOINING + JOIN_ELEMENT * elements
        self.begin = of_each(lambda config: CLUSTER * log2(config.cluster_size))

    def times(self, problem: Problem, sharing: bool = True) -> Vector:
        m, n, k, batch = problem
        waves = np.ceil(m / self.rows) * np.ceil(n / self.columns) * batch / self.workers
        loop = self.k_tile * np.ceil(k / self.depth)
        # While a tile is written the next one is multiplied; nothing hides the last one's end.
        tile, ends = np.maximum(loop, self.store), self.store + self.begin
        whole: Vector = (np.ceil(waves) * tile + ends)[: self.unshared]
        if not can_share(problem, sharing):
            return whole
        own, together, ones = self.even_shares, self.shared_reduction, self.ones
        blocks_of_a_tile = np.maximum(1 / waves, ones)
        even = (waves * tile + ends + SHARING + self.peer * blocks_of_a_tile)[own]
        joined = (waves * loop + self.begin + self.joining)[together]
        parts = np.floor(1 / waves + 1e-4)[together]  # workers by tiles, without rounding
        return np.concatenate([whole, even, np.where(parts < 2, INFEASIBLE_US, joined)])


def k_tile_us(config: BlackwellConfig) -> float:
    """Microseconds of a k tile: those of the tensor cores, of its bytes, or of a load that the stages do not cover."""
    (bM, bN, bK), (cM, cN) = config.tile, config.cluster
    flops = 2 * bM * bN * bK / FLOPS_PER_US * config.a.dtype.width / 16
    elements = bM / cN**SHARERS + bN / config.ctas / (cM / config.ctas) ** SHARERS
    loads = elements * bK * config.a.dtype.width / 8 / BYTES_PER_US
    return max(flops, loads, LATENCY / (config.stages - 1))


def store_us(config: BlackwellConfig) -> float:
    """Microseconds in which a tile is written, part by part."""
    return STORE * config.tile[0] * config.tile[1] + PART * config.parts
