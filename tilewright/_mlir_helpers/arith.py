"""``cutlass._mlir_helpers.arith``: values as they are."""

from __future__ import annotations

from typing import Any

from tilewright._mlir.dialects import arith
from tilewright._names import attach

__all__ = ["bitcast"]
attach(__name__)


def bitcast(src: Any, res_elem_type: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """The bits of ``src`` as a number of another type (of the dialect's function, the type comes first)."""
    return arith.bitcast(res_elem_type, src)
