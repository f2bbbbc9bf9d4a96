"""Choices without a branch: ``min``, ``max`` and ``select`` of numerics and Python numbers."""

from __future__ import annotations

import builtins
from typing import Any

from tilewright.errors import ConstraintError
from tilewright.lang.numbers import operators
from tilewright.lang.numbers.numeric import NumberInMemory, Numeric
from tilewright.lang.tensors.tensor_ssa import TensorSSA, full, where


def min(*values: Any, ftz: bool = False, loc: Any = None, ip: Any = None) -> Any:
    """The least of two or more numbers; Python's own ``min`` where no run-time value takes part. ``ftz``: of two
    Float32, subnormal ones count as zeros.

    >>> from tilewright.lang.numbers.numeric import Int32
    >>> min(3, 2), min(Int32(5), 4)
    (2, Int32(4))
    """
    return _flushed("fmin", values) if ftz else _fold("min", builtins.min, values)


def max(*values: Any, ftz: bool = False, loc: Any = None, ip: Any = None) -> Any:
    """The greatest of two or more numbers. ``ftz``: as for :func:`min`.

    >>> from tilewright.lang.numbers.numeric import Int32
    >>> max(3, 2), max(Int32(5), 4, 9)
    (3, Int32(9))
    """
    return _flushed("fmax", values) if ftz else _fold("max", builtins.max, values)


def _flushed(name: str, values: tuple[Any, ...]) -> Any:
    from tilewright.lang.device import single

    if len(values) != 2 or any(isinstance(x, TensorSSA) for x in values):
        raise ConstraintError(f"{name[1:]}(..., ftz=True) takes two numbers; give it element by element")
    return getattr(single, name)(*values, ftz=True)


def _fold(opcode: str, plain: Any, values: tuple[Any, ...]) -> Any:
    if len(values) == 1:
        values = tuple(values[0])
    values = tuple([v.load() if isinstance(v, NumberInMemory) else v for v in values])
    if not any(isinstance(v, (Numeric, TensorSSA)) for v in values):
        return plain(values)
    result = values[0]
    for value in values[1:]:
        vector = next((v for v in (result, value) if isinstance(v, TensorSSA)), None)
        if vector is None:
            result = operators.binary(opcode, result, value)
        elif (first := operators.decided("lt" if opcode == "min" else "gt", result, value)) is not None:
            chosen = result if first else value
            result = vector if chosen is vector else full(vector.shape, chosen)
        else:
            result = vector.combine(opcode, result, value)
    return result


def select(condition: Any, a: Any, b: Any) -> Any:
    """``a if condition else b`` without a branch; both sides are promoted to one type. Of two TensorSSAs the whole one,
    or, by a TensorSSA of Booleans, element by element.

    >>> import tilewright as cutlass
    >>> from tilewright import Int32
    >>> per_thread(lambda t: cutlass.select_(t < 2, t, -1), 4)
    [0, 1, -1, -1]
    >>> per_thread(lambda t: cutlass.select_(t < 2, cute.full(4, t, Int32), cute.full(4, 7, Int32))[3], 4)
    [0, 1, 7, 7]
    """
    if isinstance(a, TensorSSA) or isinstance(b, TensorSSA):
        return where(condition, a, b)
    return operators.select(condition, a, b)
