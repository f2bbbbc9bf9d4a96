"""How the elements of a TensorSSA are folded: the operations, their neutral elements, what the fold begins with."""

from __future__ import annotations

import math
from enum import Enum
from typing import Any

from tilewright.errors import ConstraintError
from tilewright.ir.builder import Builder
from tilewright.ir.core import Value
from tilewright.ir.types import VecType
from tilewright.lang.numbers import promote
from tilewright.lang.numbers.numeric import as_numeric


class ReductionOp(Enum):
    """How :meth:`TensorSSA.reduce` combines two elements.

    >>> def greatest(t, p):
    ...     return cute.make_tensor(p + 3 * t, 3).load().reduce(cute.ReductionOp.MAX, 0, 0)
    >>> per_thread(greatest, 2, memory=[1, 5, 2, 9, 4, 8])[0]
    [5, 9]
    """

    ADD = "add"
    MUL = "mul"
    MAX = "max"
    MIN = "min"
    INC = "inc"
    DEC = "dec"
    AND = "and"
    OR = "or"
    XOR = "xor"


def reduction_kind(op: Any) -> str:
    """The opcode of ``op``; ConstraintError for what does not fold a TensorSSA."""
    kind = op.value if isinstance(op, ReductionOp) else str(op).lower()
    if kind not in ("add", "mul", "max", "min"):
        raise ConstraintError(f"reduce: {op} is not one of ADD, MUL, MAX, MIN")
    return kind


def neutral(kind: str, dtype: Any) -> Any:
    """The number that changes no number of ``dtype`` when it is combined with it."""
    if kind in ("add", "mul"):
        return 0 if kind == "add" else 1
    if dtype.is_float:
        return -math.inf if kind == "max" else math.inf
    return dtype.min if kind == "max" else dtype.max


def first_operand(init: Any, dtype: Any, kind: str) -> Value | None:
    """The first operand of the fold; None where it changes nothing."""
    number = as_numeric(init)
    if number.is_static and number.value == neutral(kind, dtype) and kind != "add":
        return None
    if number.is_static and number.value == 0 and kind == "add":
        return None
    if number.is_static and dtype.is_integer and not promote.holds(dtype.ir_type, number.value):
        raise ConstraintError(f"reduce: {dtype.__name__} does not hold the first operand {number.value}")
    return dtype(number).ir_value()


def as_vector(result: Value, count: int) -> Value:
    """The results of ``count`` groups as a vector, also where it is one number."""
    return result if isinstance(result.type, VecType) or count > 1 else Builder.current().build([result])
