"""Scalar functions that generated host code calls: C's division, shifts, and math rounded to a type."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

from tilewright.errors import MachineError
from tilewright.ir import fold
from tilewright.ir.runtime import DevicePointer, LaunchConfig
from tilewright.ir.types import SCALARS, ScalarType


def _div(a: int, b: int, place: str) -> int:
    _need_divisor(b, place)
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _need_divisor(b: int, place: str) -> None:
    if b == 0:
        raise MachineError(f"{place}: division by zero in host code")


def _floordiv(a: int, b: int, place: str) -> int:
    _need_divisor(b, place)
    return a // b


def _floormod(a: int, b: int, place: str) -> int:
    _need_divisor(b, place)
    return a % b


def _shift(a: int, b: int) -> int:
    """``a << b``; counts that no machine word has shift everything out, as on the GPU."""
    return a << b if 0 <= b < 64 else 0


def to_integer(x: float, low: int, high: int) -> int:
    """``x`` cut to an integer and kept between the ends of its type; a NaN gives 0."""
    return int(min(max(x, low), high)) if x == x else 0


def _fdiv(a: float, b: float) -> float:
    if b:
        return a / b
    return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1.0, b)


def _guard(function: Callable[..., float]) -> Callable[..., float]:
    """A math function that gives NaN or infinity where Python's raises."""

    def guarded(*args: float) -> float:
        try:
            return function(*args)
        except OverflowError:
            return math.inf
        except ValueError:
            return math.nan

    return guarded


def _log(function: Callable[[float], float]) -> Callable[[float], float]:
    return lambda x: -math.inf if x == 0 else _guard(function)(x)


_INTEGER: dict[str, Any] = {
    "div": _div, "rem": lambda a, b, place: a - _div(a, b, place) * b, "floordiv": _floordiv, "floormod": _floormod,
    "shl": _shift, "shr": lambda a, b: a >> (b if 0 <= b < 64 else 63),
    "pow": lambda a, b: int(a**b), "neg": lambda a: -a, "not": lambda a: ~a, "abs": abs, "fma": lambda a, b, c: a * b
    + c,
}  # fmt: skip
_FLOAT: dict[str, Any] = {
    "div": _fdiv, "rem": _guard(math.fmod), "pow": _guard(math.pow), "neg": lambda a: -a, "abs": abs,
    "floordiv": lambda a, b: math.floor(q) if math.isfinite(q := _fdiv(a, b)) else q,
    "floormod": lambda a, b: a % b if b else math.nan,
    "fma": lambda a, b, c: a * b + c, "atan2": math.atan2, "copysign": math.copysign, "exp": _guard(math.exp),
    "exp2": _guard(lambda a: 2.0**a), "log": _log(math.log), "log2": _log(math.log2), "log10": _log(math.log10),
    "sin": _guard(math.sin), "cos": _guard(math.cos), "tan": _guard(math.tan), "asin": _guard(math.asin),
    "acos": _guard(math.acos), "atan": math.atan, "tanh": math.tanh, "sqrt": _guard(math.sqrt),
    "rsqrt": lambda a: _fdiv(1.0, _guard(math.sqrt)(a)), "rcp": lambda a: _fdiv(1.0, a), "erf": math.erf,
    "floor": lambda a: float(math.floor(a)) if math.isfinite(a) else a,
    "ceil": lambda a: float(math.ceil(a)) if math.isfinite(a) else a,
    "round": lambda a: float(round(a)) if math.isfinite(a) else a,
    "trunc": lambda a: float(math.trunc(a)) if math.isfinite(a) else a,
    "isnan": math.isnan, "isinf": math.isinf,
}  # fmt: skip


def _rounder(kind: ScalarType) -> Callable[[float], float]:
    if kind.name == "f32":
        single = struct.Struct("f")

        def to_single(x: float) -> float:
            try:
                return float(single.unpack(single.pack(x))[0])
            except OverflowError:
                return math.copysign(math.inf, x)

        return to_single
    return lambda x: float(fold.normalise(kind, x))


def function(opcode: str, prefix: str) -> str:
    """The name in generated code of ``opcode`` on integers or floats."""
    table = _FLOAT if prefix == "float" or opcode in ("isnan", "isinf") else _INTEGER
    if opcode not in table:
        raise MachineError(f"host code cannot compute `{opcode}` on {prefix}s")
    return f"{'float' if table is _FLOAT else 'int'}_{opcode}"


SCOPE: dict[str, Any] = {
    **{f"int_{name}": f for name, f in _INTEGER.items()},
    **{f"float_{name}": f for name, f in _FLOAT.items()},
    **{f"round_{kind.name}": _rounder(kind) for kind in SCALARS.values() if kind.is_float},
    "DevicePointer": DevicePointer, "LaunchConfig": LaunchConfig, "MachineError": MachineError, "make": tuple.__new__,
    "to_integer": to_integer,
}  # fmt: skip
"""The globals of generated host code."""
