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


class Vector(TensorSSA):
    """The elements of ``value``, an IR vector or a TensorSSA, with the shape ``(n,)``. What arithmetic gives is a
    TensorSSA, which has the same methods.

    ``dtype`` says what the elements are where the IR's type leaves it open (it has one type for signed and unsigned
    integers of a width in a library's eyes); it has the width of the elements.

    >>> from tilewright import Float32, Int32, Int64, Vector
    >>> from tilewright.testing import per_thread
    >>> def low_and_high(t):
    ...     pair = Vector.from_elements((t, t + 1), Int32)
    ...     (both,) = pair.bitcast(Int64).to_elements()
    ...     return both
    >>> [hex(x) for x in per_thread(low_and_high, 2, dtype=Int64)]
    ['0x100000000', '0x200000001']
    """

    __slots__ = ()

    def __init__(self, value: Any, dtype: Any = None) -> None:
        held = value if isinstance(value, Value) else value.ir_value()
        if not isinstance(held.type, VecType):
            raise ConstraintError(f"Vector: a vector in registers is needed, not {held.type}; use from_elements")
        dtype = dtype or class_of(held.type.elem)
        if dtype.ir_type.width != held.type.elem.width:
            raise ConstraintError(f"Vector: elements of {held.type} as {dtype.__name__}: use bitcast or to")
        super().__init__(Builder.current().bitcast(held, VecType(dtype.ir_type, held.type.n)), (held.type.n,), dtype)

    @classmethod
    def from_elements(cls, elements: Sequence[Any], dtype: Any = None, *, loc: Any = None, ip: Any = None) -> Vector:
        """The vector of these numbers, each converted to ``dtype`` (by default, the type of the first).

        >>> from tilewright import Float32, Vector
        >>> from tilewright.testing import per_thread
        >>> per_thread(lambda t: (Vector.from_elements((t, 2, 0.5), Float32) * 4.0)[2] + t, 2, dtype=Float32)
        [2.0, 3.0]
        """
        if not elements:
            raise ConstraintError("Vector.from_elements: at least one element is needed")
        kind = dtype or type(as_numeric(elements[0]))
        return cls(Builder.current().build([kind(x).ir_value() for x in elements]), kind)
