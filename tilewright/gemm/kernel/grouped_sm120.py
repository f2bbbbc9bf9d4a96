"""Products of different sizes in one launch on sm_120: those of ``kernel.grouped_hopper``, multiplied by mma.sync."""

from __future__ import annotations

from tilewright.gemm.kernel.grouped_hopper import GroupedHopperGemm
from tilewright.gemm.kernel.sm120 import Sm120Gemm


class GroupedSm120Gemm(GroupedHopperGemm, Sm120Gemm):
    """As :class:`GroupedHopperGemm`, on sm_120 and its like."""
