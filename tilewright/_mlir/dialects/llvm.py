"""``cutlass._mlir.dialects.llvm``: inline PTX."""

from __future__ import annotations

from enum import Enum

from tilewright._mlir.placeholder import placeholders
from tilewright.lang.device.inline_ptx import StructType, extractvalue, inline_asm

__all__ = ["AsmDialect", "StructType", "extractvalue", "inline_asm"]
__getattr__ = placeholders(__name__)


class AsmDialect(Enum):
    """PTX has one notation; LLVM calls it AT&T's."""

    AD_ATT = 0
    AD_Intel = 1
