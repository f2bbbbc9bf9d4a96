"""How long a kernel of sm_120 will take on a problem, in all its sizes at once.

No constant here was measured: no GPU of sm_120 was at hand. The rate of the tensor cores is that of the RTX 5090's data
sheet (209.5e12 dense FLOP/s of 16-bit operands with Float32 sums, on 170 multiprocessors); all others are those that
were fitted for the H200 (``hopper_cost.py``). So the model prefers what must hold on any such GPU: few rounded-up
waves, and tiles that need few bytes for their FLOPs.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.gemm.family.hopper_cost import LATENCY, HopperModel
from tilewright.gemm.family.plan_options import Limits, PlanOption
from tilewright.gemm.sm120_config import Sm120Config

FLOPS_PER_US = 209.5e12 / 170 / 1e6  # of one multiprocessor, 16-bit operands: data sheet, not measured


class Sm120Model(HopperModel):
    """The ``options`` of one kernel on a GPU of ``limits``."""

    def __init__(self, options: Sequence[PlanOption], limits: Limits) -> None:
        super().__init__(options, limits)
        self.loop = self.of_each(loop_us)
        self.is_powered = False  # nothing is known of it


def loop_us(config: Sm120Config) -> float:
    """Microseconds of a k tile where loads do not hold it up."""
    bM, bN, bK = config.tile
    return max(2 * bM * bN * bK / FLOPS_PER_US * config.a.dtype.width / 16, LATENCY / (config.stages - 1))
