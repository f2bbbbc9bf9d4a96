"""Numeric types by the names and dtypes that others give them: text, NumPy, ml_dtypes, PyTorch."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from tilewright.errors import ArgumentError
from tilewright.ir.types import NUMBERS, ScalarType
from tilewright.lang.numbers.numeric import Float32, NumericMeta, TFloat32, class_of


def dtype(name: Any) -> Any:
    """The numeric class of a name (``"Float16"``, ``"float16"``, ``"f16"``), or of a NumPy or PyTorch dtype.

    >>> dtype("BFloat16"), dtype("float8_e5m2"), dtype("i32")
    (BFloat16, Float8E5M2, Int32)
    """
    if isinstance(name, NumericMeta):
        return name
    if isinstance(name, str):
        for scalar in NUMBERS:
            cls = class_of(scalar)
            if name in (cls.__name__, cls.__name__.lower(), scalar.name) or (
                cls is not TFloat32 and name == scalar.numpy_name
            ):
                return cls
    try:
        return numeric_of_dtype(name)
    except (ArgumentError, TypeError):
        raise ArgumentError(f"no numeric type is called {name!r}") from None


@lru_cache(256)
def numeric_of_dtype(dtype: Any) -> Any:
    """The numeric class of a NumPy, ml_dtypes or PyTorch dtype.

    >>> numeric_of_dtype(np.dtype("float16")), numeric_of_dtype(np.int8)
    (Float16, Int8)
    """
    if type(dtype).__module__.partition(".")[0] == "torch":
        name = str(dtype).removeprefix("torch.")
    else:
        import numpy as np

        name = np.dtype(dtype).name
    cls = _by_name().get(name)
    if cls is None:
        raise ArgumentError(f"kernels do not know the dtype {dtype}; known are {', '.join(_by_name())}")
    return cls


@lru_cache(1)
def _by_name() -> dict[str, Any]:
    names = {scalar.numpy_name: class_of(scalar) for scalar in NUMBERS}
    return names | {"float32": Float32}


def type_text(kind: ScalarType) -> str:
    """An element type as the types of pointers, tensors and vectors are printed: integers show no sign.

    >>> from tilewright.ir.types import F16, SCALARS
    >>> type_text(F16), type_text(SCALARS["u16"])
    ('f16', 'i16')
    """
    return kind.printed or kind.name
