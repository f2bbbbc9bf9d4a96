"""``cutlass.Vector``: numbers in registers, one after another; a TensorSSA of one mode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.errors import ConstraintError
from tilewright.ir.builder import Builder
from tilewright.ir.core import Value
from tilewright.ir.types import VecType
from tilewright.lang.numbers.numeric import as_numeric, class_of
from tilewright.lang.tensors.tensor_ssa import TensorSSA


class _OneMode(type(TensorSSA)):  # type: ignore[misc]  # whichever metaclass it has
    """Makes and recognises the TensorSSAs that are vectors: there is one class of values, whatever operation made
    them, so that a variable keeps its type in a loop."""

    def __call__(cls, value: Any, dtype: Any = None) -> TensorSSA:
        held = value if isinstance(value, Value) else value.ir_value()
        if not isinstance(held.type, VecType):
            raise ConstraintError(f"Vector: a vector in registers is needed, not {held.type}; use from_elements")
        kind = dtype or class_of(held.type.elem)
        if kind.ir_type.width != held.type.elem.width:
            raise ConstraintError(f"Vector: elements of {held.type} as {kind.__name__}: use bitcast or to")
        vector = Builder.current().bitcast(held, VecType(kind.ir_type, held.type.n))
        return TensorSSA(vector, (held.type.n,), kind)

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, TensorSSA) and isinstance(x.shape, tuple) and len(x.shape) == 1


class Vector(TensorSSA, metaclass=_OneMode):
    """``Vector(value)``: the elements of ``value``, an IR vector or a TensorSSA, as a TensorSSA of the shape ``(n,)``;
    all such TensorSSAs are instances.

    ``dtype`` says what the elements are where the IR's type leaves it open (libraries have one type for signed and
    unsigned integers of a width); it has the width of the elements.

    >>> from tilewright import Float32, Int32, Int64, Vector
    >>> def low_and_high(t):
    ...     pair = Vector.from_elements((t, t + 1), Int32)
    ...     (both,) = pair.bitcast(Int64).to_elements()
    ...     return both
    >>> [hex(x) for x in per_thread(low_and_high, 2, dtype=Int64)]
    ['0x100000000', '0x200000001']
    """

    __slots__ = ()

    @staticmethod
    def from_elements(elements: Sequence[Any], dtype: Any = None, *, loc: Any = None, ip: Any = None) -> TensorSSA:
        """The vector of these numbers, each converted to ``dtype`` (by default, the type of the first).

        >>> from tilewright import Float32, Vector
        >>> per_thread(lambda t: (Vector.from_elements((t, 2, 0.5), Float32) * 4.0)[2] + t, 2, dtype=Float32)
        [2.0, 3.0]
        """
        if not elements:
            raise ConstraintError("Vector.from_elements: at least one element is needed")
        kind = dtype or type(as_numeric(elements[0]))
        return TensorSSA(Builder.current().build([kind(x).ir_value() for x in elements]), (len(elements),), kind)
