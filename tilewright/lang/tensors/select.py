"""Choices without a branch: ``min``, ``max`` and ``select`` of numerics and Python numbers."""

from __future__ import annotations

import builtins
from typing import Any

from tilewright.errors import ConstraintError
from tilewright.lang.numbers import operators
from tilewright.lang.numbers.numeric import Float32, NumberInMemory, Numeric
from tilewright.lang.tensors.tensor_ssa import TensorSSA, full, where


def min(*values: Any, ftz: bool = False, loc: Any = None, ip: Any = None) -> Any:
    """The least of two or more numbers; Python's own ``min`` where no run-time value takes part. ``ftz``: of
    Float32, subnormal ones count as zeros.

    >>> from tilewright.lang.numbers.numeric import Int32
    >>> min(3, 2), min(Int32(5), 4)
    (2, Int32(4))
    """
    found = _fold("min", builtins.min, values)
    return _flushed(found) if ftz else found


def max(*values: Any, ftz: bool = False, loc: Any = None, ip: Any = None) -> Any:
    """The greatest of two or more numbers. ``ftz``: as for :func:`min`.

    >>> from tilewright.lang.numbers.numeric import Int32
    >>> max(3, 2), max(Int32(5), 4, 9)
    (3, Int32(9))
    """
    found = _fold("max", builtins.max, values)
    return _flushed(found) if ftz else found


def _flushed(x: Any) -> Any:
    """A Float32, or the elements of a TensorSSA, with zeros of their signs in place of subnormal numbers."""
    kind = x.dtype if isinstance(x, TensorSSA) else type(x)
    if kind is not Float32:
        raise ConstraintError(f"ftz=True flushes subnormal numbers of Float32; this is a {kind.__name__}")
    small = (x < LEAST_NORMAL) & (x > -LEAST_NORMAL)
    return where(small, x * 0.0, x) if isinstance(x, TensorSSA) else operators.select(small, x * 0.0, x)


LEAST_NORMAL = 2.0**-126


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
