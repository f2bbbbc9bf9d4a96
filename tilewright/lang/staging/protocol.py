"""The value protocol as functions: the run-time values inside an object, and the same object around others."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from tilewright.ir.core import Value
from tilewright.ir.types import Type
from tilewright.lang.staging import values as values_of


def dsl_user_op(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a helper that emits ops. Locations are found automatically here; ``loc`` and ``ip`` default to None.

    >>> import tilewright as cutlass
    >>> @cutlass.dsl_user_op
    ... def square(x, *, loc=None, ip=None):
    ...     return x * x
    >>> per_thread(square, 4)
    [0, 1, 4, 9]
    """

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return call


def extract_mlir_values(value: Any) -> list[Value]:
    """The run-time values inside an object of the language, a container of such objects, or a Python number.

    >>> import tilewright as cutlass
    >>> def through(t):
    ...     pair = (t, t + 1)
    ...     values = cutlass.extract_mlir_values(pair)
    ...     print([str(value.type) for value in values])
    ...     return cutlass.new_from_mlir_values(pair, values[::-1])[0]
    >>> per_thread(through, 3)
    ['i32', 'i32']
    [1, 2, 3]
    """
    if hasattr(type(value), "__as_one_value__"):
        one: list[Value] = value.__as_one_value__()
        return one
    return values_of.flatten(value)[0]


def get_mlir_types(value: Any) -> list[Type]:
    """The types of :func:`extract_mlir_values`, where ``value`` may be one of the host too."""
    if hasattr(type(value), "__get_mlir_types__") and not hasattr(type(value), "__as_one_value__"):
        return list(value.__get_mlir_types__())
    if isinstance(value, (tuple, list)):
        return [type_ for item in value for type_ in get_mlir_types(item)]
    return [v.type for v in extract_mlir_values(value)]


def new_from_mlir_values(value: Any, values: list[Value]) -> Any:
    """An object like ``value`` (also one of the host: a tensor of ``from_dlpack``) around other run-time values.

    >>> import tilewright as cutlass
    >>> def negated(t):
    ...     (value,) = cutlass.extract_mlir_values(-t)
    ...     return cutlass.new_from_mlir_values(t, [value])
    >>> per_thread(negated, 3)
    [0, -1, -2]
    """
    if hasattr(type(value), "__of_one_value__") and len(values) <= 1:
        return value.__of_one_value__(values)
    if hasattr(type(value), "__new_from_mlir_values__"):
        return value.__new_from_mlir_values__(list(values))
    return values_of.unflatten(values_of.spec_of(value, promote=False), values)
