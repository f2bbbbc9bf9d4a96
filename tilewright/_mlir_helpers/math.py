"""``cutlass._mlir_helpers.math``: the reciprocal."""

from __future__ import annotations

from typing import Any

from tilewright._names import attach
from tilewright.errors import ConstraintError
from tilewright.lang.device.single import rcp_approx

__all__ = ["rcp"]
attach(__name__)


def rcp(a: Any, *, approx: bool = False, ftz: bool = False, loc: Any = None, ip: Any = None) -> Any:
    """1/a; ``cute.arch.rcp_approx`` where ``approx`` and ``ftz`` are asked for."""
    if approx != ftz:
        raise ConstraintError(
            "rcp is exact, or approx=True with ftz=True (rcp.approx.ftz.f32): ask for both or neither"
        )
    return rcp_approx(a) if approx else 1.0 / a
