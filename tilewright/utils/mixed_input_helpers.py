"""``cutlass.utils.mixed_input_helpers``: what a GEMM of narrow and wide operands does to the narrow one."""

from __future__ import annotations

from enum import Enum

from tilewright._names import attach

__all__ = ["TransformMode"]


class TransformMode(Enum):
    """What becomes of the narrow operand before the MMA: ``ConvertOnly``, its numbers in the wide type;
    ``ConvertScale``, these times the scale of their group.

    >>> TransformMode.ConvertOnly is TransformMode.ConvertScale
    False
    """

    ConvertOnly = "convert_only"
    ConvertScale = "convert_scale"


attach(__name__)
