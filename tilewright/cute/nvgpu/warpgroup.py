"""Operations of four warps: the enumerations of ``wgmma``."""

from __future__ import annotations

from enum import Enum

from tilewright.cute.nvgpu.common import OperandMajorMode

__all__ = ["Field", "OperandMajorMode", "OperandSource"]


class OperandSource(Enum):
    """Where operand A lies: registers or shared memory."""

    RMEM = "rmem"
    SMEM = "smem"


class Field(Enum):
    """What of a wgmma atom may change at run time: whether it accumulates or overwrites."""

    ACCUMULATE = "accum_c"
