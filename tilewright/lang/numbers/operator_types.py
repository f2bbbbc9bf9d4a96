"""The operators of numerics as type checkers see them; what they do is in ``operators.py`` and ``promote.py``.

Imported by type checkers only: :mod:`~tilewright.lang.numbers.numeric` puts the operators into the classes from one
table, which checkers cannot follow. The tests compare these types with what the operators give.
"""

from __future__ import annotations

from typing import Any, Self, TypeVar, overload

from tilewright.lang.numbers.numeric import (
    Boolean,
    Float,
    Float4E2M1FN,
    Float8E4M3FN,
    Float8E5M2,
    Float32,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Integer,
    TFloat32,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
)

Storage = Float4E2M1FN | Float8E4M3FN | Float8E5M2 | TFloat32  # these compute in Float32
Narrow = Boolean | Int8 | Int16 | Int32 | Uint8 | Uint16 | Uint32
Wide = Int64 | Uint64
F = TypeVar("F", bound=Float)

# mypy does not report `misc` here (pyproject.toml): a self type is a class that these operators are put into, which is
# no subclass of this one.


class NumericOperators:
    """A Python int takes the type of the numeric beside it, a Python float that of a float; Booleans count as Int32.
    Two numerics of different types meet in a type that depends on both: Any here."""

    @overload
    def __add__(self: Boolean, other: Boolean | int) -> Int32: ...
    @overload
    def __add__(self: Storage, other: Storage | float | Integer) -> Float32: ...
    @overload
    def __add__(self: F, other: float | Integer) -> F: ...
    @overload
    def __add__(self, other: Self | int) -> Self: ...
    @overload
    def __add__(self: Integer, other: float) -> Float32: ...
    @overload
    def __add__(self: Integer, other: F) -> F: ...
    @overload
    def __add__(self, other: Any) -> Any: ...
    def __add__(self, other: Any) -> Any:
        raise NotImplementedError

    __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __pow__ = __rpow__ = __add__
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __add__

    @overload
    def __truediv__(self: Wide, other: Integer | int) -> Float64: ...
    @overload
    def __truediv__(self: Wide, other: float) -> Float32: ...
    @overload
    def __truediv__(self: Narrow, other: Narrow | float) -> Float32: ...
    @overload
    def __truediv__(self: Narrow, other: Wide) -> Float64: ...
    @overload
    def __truediv__(self: Storage, other: Storage | float | Integer) -> Float32: ...
    @overload
    def __truediv__(self: F, other: float | Integer) -> F: ...
    @overload
    def __truediv__(self, other: Self) -> Self: ...
    @overload
    def __truediv__(self, other: Any) -> Any: ...
    def __truediv__(self, other: Any) -> Any:
        raise NotImplementedError

    __rtruediv__ = __truediv__

    @overload
    def __neg__(self: Boolean) -> Int32: ...
    @overload
    def __neg__(self: Storage) -> Float32: ...
    @overload
    def __neg__(self) -> Self: ...
    def __neg__(self) -> Any:
        raise NotImplementedError

    __abs__ = __neg__

    def __lt__(self, other: Any) -> Boolean:
        raise NotImplementedError

    __le__ = __gt__ = __ge__ = __lt__

    def __eq__(self, other: object) -> Boolean:  # type: ignore[override]  # a numeric
        raise NotImplementedError

    def __ne__(self, other: object) -> Boolean:  # type: ignore[override]  # a numeric
        raise NotImplementedError


class IntegerOperators:
    """The bitwise operators, which integers alone have; of Booleans they are the logical ones."""

    @overload
    def __and__(self: Boolean, other: Boolean | bool) -> Boolean: ...
    @overload
    def __and__(self: Boolean, other: int) -> Int32: ...
    @overload
    def __and__(self, other: Self | int) -> Self: ...
    @overload
    def __and__(self, other: Integer) -> Any: ...  # the last resort
    def __and__(self, other: Any) -> Any:
        raise NotImplementedError

    __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __and__

    @overload
    def __lshift__(self: Boolean, other: Integer | int) -> Int32: ...
    @overload
    def __lshift__(self, other: Integer | int) -> Self: ...
    def __lshift__(self, other: Any) -> Any:
        raise NotImplementedError

    def __rlshift__(self, other: int) -> Any:
        raise NotImplementedError

    __rshift__ = __lshift__
    __rrshift__ = __rlshift__
