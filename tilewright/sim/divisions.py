"""Division of integers on lanes: the one operation of :mod:`tilewright.ir.arithmetic` that a lane can fail at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.ir.arithmetic import on_lanes
from tilewright.ir.types import ScalarType
from tilewright.sim.faults import Fault


def integer_division(opcode: str, elem: ScalarType, divisor: int | None) -> Callable[..., Any]:
    """``div rem floordiv floormod`` of integers as ``f(group, a, b)``; ``divisor`` is the constant second operand, if
    it is one. Raises a Fault when an active lane divides by zero."""
    core = on_lanes(opcode, elem)
    if divisor:
        return lambda group, a, b: core(a, b)

    def checked(group: Any, a: Any, b: Any) -> Any:
        zero = b == 0
        if np.any(zero):
            bad = zero if group.mask is None else (zero.T & group.mask).T
            if np.any(bad):
                lanes = bad.any(axis=1) if np.ndim(bad) == 2 else bad
                raise Fault(f"integer {'division' if 'div' in opcode else 'remainder'} by zero", lanes)
            # Lanes that rest may hold a zero: their result is not used.
            b = np.where(zero, np.ones_like(b), b)
        return core(a, b)

    return checked
