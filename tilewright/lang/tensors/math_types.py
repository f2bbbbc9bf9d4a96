"""The types of the functions of :mod:`~tilewright.lang.tensors.math` by kind, as type checkers see them.

Imported by type checkers only. The tests compare these types with what the functions give.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, overload

from tilewright.lang.numbers.numeric import BFloat16, Boolean, Float16, Float32, Float64, Integer, Numeric
from tilewright.lang.numbers.operator_types import Storage
from tilewright.lang.tensors.tensor_ssa import TensorSSA

F = TypeVar("F", Float16, BFloat16, Float32, Float64)


class Unary(Protocol):
    """``f(a)`` of every element; ``fastmath`` or ``approx`` allows an approximation."""

    @overload
    def __call__(
        self, a: TensorSSA, fastmath: bool = ..., *, approx: bool = ..., loc: Any = ..., ip: Any = ...
    ) -> TensorSSA: ...
    @overload
    def __call__(self, a: F, fastmath: bool = ..., *, approx: bool = ..., loc: Any = ..., ip: Any = ...) -> F: ...
    @overload
    def __call__(
        self, a: Integer | Storage, fastmath: bool = ..., *, approx: bool = ..., loc: Any = ..., ip: Any = ...
    ) -> Float32: ...
    @overload
    def __call__(
        self, a: Numeric, fastmath: bool = ..., *, approx: bool = ..., loc: Any = ..., ip: Any = ...
    ) -> Numeric: ...
    @overload
    def __call__(
        self, a: float, fastmath: bool = ..., *, approx: bool = ..., loc: Any = ..., ip: Any = ...
    ) -> float: ...


class Binary(Protocol):
    """``f(a, b)``, element by element."""

    @overload
    def __call__(
        self, a: TensorSSA, b: TensorSSA | Numeric | float, fastmath: bool = ..., *, loc: Any = ..., ip: Any = ...
    ) -> TensorSSA: ...
    @overload
    def __call__(
        self, a: Numeric | float, b: TensorSSA, fastmath: bool = ..., *, loc: Any = ..., ip: Any = ...
    ) -> TensorSSA: ...
    @overload
    def __call__(self, a: F, b: F | float, fastmath: bool = ..., *, loc: Any = ..., ip: Any = ...) -> F: ...
    @overload
    def __call__(self, a: float, b: float, fastmath: bool = ..., *, loc: Any = ..., ip: Any = ...) -> float: ...
    @overload
    def __call__(
        self, a: Numeric | float, b: Numeric | float, fastmath: bool = ..., *, loc: Any = ..., ip: Any = ...
    ) -> Any: ...


class Predicate(Protocol):
    """Whether something holds, of every element."""

    @overload
    def __call__(self, a: TensorSSA, *, loc: Any = ..., ip: Any = ...) -> TensorSSA: ...
    @overload
    def __call__(self, a: Numeric, *, loc: Any = ..., ip: Any = ...) -> Boolean: ...
    @overload
    def __call__(self, a: float, *, loc: Any = ..., ip: Any = ...) -> bool: ...
