"""Predicates of a copy: one for each repetition of the instruction."""

from __future__ import annotations

from typing import Any

from tilewright.errors import ConstraintError
from tilewright.ir.core import Value
from tilewright.lang.numbers.numeric import Boolean
from tilewright.lang.tensors.tensor import Tensor
from tilewright.layout import is_static, size


def predicate_values(atom: Any, pred: Any, repetitions: int, values: int, together: int = 1) -> list[Value] | None:
    """The predicates as operands; None for a copy without predicates.

    ``pred`` is a Boolean for the whole copy or a Boolean tensor with one element for each repetition: the source's
    shape without the values that one instruction moves. Elements at one place are read once. Neighbouring values that
    take ``together`` instructions may have one predicate: it holds for all of them.
    """
    if pred is None:
        return None
    if not isinstance(pred, Tensor):
        return [Boolean(pred).ir_value()] * repetitions
    count = size(pred.linear)
    if count * together == repetitions != count:
        shared = predicate_values(atom, pred, count, values * together)
        return [value for value in shared or () for _ in range(together)]
    if count != repetitions:
        hint = (
            f"it has one for each element; the copy moves {values} at once, so test the first of each"
            if count == repetitions * values
            else "give it the shape of the source without the values of one copy"
        )
        raise ConstraintError(
            f"{atom}: {repetitions} copies take {repetitions} predicates, but pred {pred} has {count}: {hint}"
        )
    remembered: dict[int, Value] = {}
    result = []
    for i in range(repetitions):
        where = pred.linear(i) if is_static(pred.linear) else -1 - i
        if where not in remembered:
            remembered[where] = Boolean(pred[i]).ir_value()
        result.append(remembered[where])
    return result
