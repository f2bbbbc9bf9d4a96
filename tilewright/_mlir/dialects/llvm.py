"""``cutlass._mlir.dialects.llvm``: inline PTX, and values as they are."""

from __future__ import annotations

from enum import Enum
from typing import Any

from tilewright._mlir.dialects import arith
from tilewright._mlir.dialects.arith import bitcast
from tilewright._names import attach
from tilewright.errors import ConstraintError
from tilewright.ir.core import Constant
from tilewright.ir.types import ScalarType, VecType
from tilewright.lang.device.inline_ptx import StructType, extractvalue, inline_asm
from tilewright.lang.numbers.numeric import wrap

__all__ = ["AsmDialect", "StructType", "bitcast", "extractvalue", "inline_asm", "mlir_undef", "mlir_zero", "sext",
           "trunc", "zext"]  # fmt: skip
attach(__name__)
sext, trunc, zext = (getattr(arith, name) for name in ("extsi", "trunci", "extui"))


class AsmDialect(Enum):
    """PTX has one notation; LLVM calls it AT&T's."""

    AD_ATT = 0
    AD_Intel = 1


def mlir_zero(res: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """Zeros of a type."""
    if not isinstance(res, (ScalarType, VecType)):
        raise ConstraintError(f"a type of numbers such as T.f32() is needed, not {res!r}")
    zero = Constant(res, 0.0 if (res if isinstance(res, ScalarType) else res.elem).is_float else 0)
    return wrap(zero) if isinstance(res, ScalarType) else zero


mlir_undef = mlir_zero  # what is written before it is read may as well be zero
