"""Small names of the documented surface: ``dtype``, ``dsl_user_op`` and the value protocol as functions."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from tilewright.errors import ArgumentError
from tilewright.ir.core import Value
from tilewright.ir.types import SCALARS
from tilewright.lang.arrays import numeric_of_dtype
from tilewright.lang.numeric import NumericMeta, TFloat32, class_of


def dtype(name: Any) -> Any:
    """The numeric class of a name (``"Float16"``, ``"float16"``, ``"f16"``), or of a NumPy or PyTorch dtype.

    >>> dtype("BFloat16"), dtype("float8_e5m2"), dtype("i32")
    (BFloat16, Float8E5M2, Int32)
    """
    if isinstance(name, NumericMeta):
        return name
    if isinstance(name, str):
        for scalar in SCALARS.values():
            cls = class_of(scalar)
            if name in (cls.__name__, cls.__name__.lower(), scalar.name) or (
                cls is not TFloat32 and name == scalar.numpy_name
            ):
                return cls
    try:
        return numeric_of_dtype(name)
    except (ArgumentError, TypeError):
        raise ArgumentError(f"no numeric type is called {name!r}") from None


def dsl_user_op(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a helper that emits ops. Locations are found by themselves here; ``loc`` and ``ip`` default to None."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return call


def extract_mlir_values(value: Any) -> list[Value]:
    """The run-time values inside an object of the language, a container of such objects, or a Python number."""
    from tilewright.lang import carry

    return carry.flatten(value)[0]


def new_from_mlir_values(value: Any, values: list[Value]) -> Any:
    """An object like ``value`` (also one of the host: a tensor of ``from_dlpack``) around other run-time values."""
    from tilewright.lang import carry

    if hasattr(type(value), "__new_from_mlir_values__"):
        return value.__new_from_mlir_values__(list(values))

    return carry.unflatten(carry.spec_of(value, promote=False), values)
