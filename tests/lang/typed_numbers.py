"""Numbers with the types and the rules that docs/language.md states, in plain Python: the oracle of
:mod:`tests.lang.program_search`. It shares no code with the package.

Integers are Python's, reduced to their width; floats are NumPy's. A program that runs on them takes Python's branches
and loops, so that one text is both the program and what is expected of it.
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np

INTEGERS = {f"{sign}{bits}": (bits, sign == "Int") for sign in ("Int", "Uint") for bits in (8, 16, 32, 64)}
FLOATS = {"Float16": np.float16, "BFloat16": ml_dtypes.bfloat16, "Float32": np.float32, "Float64": np.float64}
KINDS = (*INTEGERS, *FLOATS, "Boolean")
DTYPES = {**FLOATS, "Boolean": np.bool_, **{kind: getattr(np, kind.lower()) for kind in INTEGERS}}


class Undefined(Exception):
    """The machine leaves the result open, or its checks report an error: nothing is expected."""


class Number:
    """A number of a ``kind``, the name of a numeric class."""

    def __init__(self, kind: str, value: Any) -> None:
        self.kind, self.value = kind, value

    def __repr__(self) -> str:
        return f"{self.kind}({self.value})"

    def __bool__(self) -> bool:
        return bool(self.value)

    def __neg__(self) -> Number:
        one = self.computing()
        return one.of(-one.value)

    def __abs__(self) -> Number:
        one = self.computing()
        return one.of(abs(one.value))

    def __round__(self) -> Number:
        return self.of(np.rint(float(self.value))) if self.kind in FLOATS else self

    def __pos__(self) -> Number:
        return self

    def __invert__(self) -> Number:
        if self.kind in FLOATS:
            raise Undefined
        return self.of(not self.value if self.kind == "Boolean" else ~self.value)

    def __divmod__(self, other: Any) -> tuple[Number, Number]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Number, Number]:
        return other // self, other % self

    def of(self, value: Any) -> Number:
        """A result of this number's kind."""
        return convert(self.kind, value)

    def computing(self) -> Number:
        return convert("Int32", self.value) if self.kind == "Boolean" else self

    __hash__ = None


def convert(kind: str, value: Any) -> Number:
    """``kind(value)``: integers wrap, floats are cut off and what is too large is the largest."""
    if isinstance(value, Number):
        value = value.value
    if kind == "Boolean":
        return Number(kind, bool(value))
    if kind in FLOATS:
        with np.errstate(all="ignore"):
            return Number(kind, FLOATS[kind](float(value) if kind == "BFloat16" else value))
    bits, signed = INTEGERS[kind]
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    if not isinstance(value, (bool, int, np.integer)):
        value = float(value)
        if math.isnan(value):
            raise Undefined
        return Number(kind, high if value > high else low if value < low else int(value))
    return Number(kind, (int(value) - low) % (1 << bits) + low)


def kind_of_literal(value: Any, beside: str) -> str:
    if isinstance(value, (bool, np.bool_)) or beside in FLOATS:
        return beside
    if isinstance(value, (float, np.floating)):
        return "Float32"
    kind = "Int32" if beside == "Boolean" else beside
    for found in (kind, "Int32", "Uint32", "Int64", "Uint64"):
        if INTEGERS[found][0] >= INTEGERS[kind][0] and convert(found, int(value)).value == value:
            return found
    raise Undefined


def common(a: Any, b: Any) -> str:
    """The kind in which two operands, one of which is a Number, compute."""
    first = a.kind if isinstance(a, Number) else kind_of_literal(a, b.kind)
    second = b.kind if isinstance(b, Number) else kind_of_literal(b, a.kind)
    first, second = ("Int32" if kind == "Boolean" else kind for kind in (first, second))
    if first == second:
        return first
    if first in FLOATS and second in FLOATS:
        return "Float64" if "Float64" in (first, second) else "Float32"
    if first in FLOATS or second in FLOATS:
        return first if first in FLOATS else second
    (bits, signed), (others, _) = INTEGERS[first], INTEGERS[second]
    return first if bits > others or (bits == others and not signed) else second


def binary(name: str, act: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def operate(a: Any, b: Any) -> Any:
        kind = common(a, b)
        if name == "truediv" and kind in INTEGERS:
            kind = "Float64" if INTEGERS[kind][0] == 64 else "Float32"
        x, y = convert(kind, a).value, convert(kind, b).value
        if kind not in FLOATS:
            if name in ("floordiv", "mod") and y == 0:
                raise Undefined
            if name == "pow" and not 0 <= y < 64:
                raise Undefined
            return convert(kind, act(x, y))
        if name == "pow" or (name in ("floordiv", "mod") and not (math.isfinite(x) and math.isfinite(y) and y)):
            raise Undefined
        with np.errstate(all="ignore"):  # in double, then rounded once, is what one operation gives
            wide = act(np.float64(x), np.float64(y)) if kind != "Float64" else act(x, y)
        return convert(kind, wide)

    return operate


def shift(act: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Number]:
    def operate(a: Any, b: Any) -> Number:
        count = b.value if isinstance(b, Number) else int(b)
        if isinstance(a, Number):
            kind = a.computing().kind
        else:
            kind = "Int64" if isinstance(b, Number) and b.kind in ("Int64", "Uint64") else "Int32"
        if kind in FLOATS or isinstance(count, (float, np.floating)) or (isinstance(b, Number) and b.kind in FLOATS):
            raise Undefined
        x, bits = convert(kind, a).value, INTEGERS[kind][0]
        if not 0 <= count < bits:
            return convert(kind, -1 if act is operator.rshift and x < 0 else 0)
        return convert(kind, act(x, count))

    return operate


def logic(act: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Number]:
    def operate(a: Any, b: Any) -> Number:
        if all(isinstance(x, (bool, np.bool_)) or isinstance(x, Number) and x.kind == "Boolean" for x in (a, b)):
            return Number("Boolean", act(bool(a), bool(b)))
        kind = common(a, b)
        if kind in FLOATS:
            raise Undefined
        return convert(kind, act(convert(kind, a).value, convert(kind, b).value))

    return operate


def beyond(a: Any, b: Any) -> bool:
    """Whether one is an integer, and the other one a literal that its type does not hold."""
    whole = [x.computing() for x in (a, b) if isinstance(x, Number) and x.kind not in FLOATS]
    literal = [int(x) for x in (a, b) if isinstance(x, (int, np.integer)) and not isinstance(x, bool)]
    return bool(whole and literal) and convert(whole[0].kind, literal[0]).value != literal[0]


def comparison(act: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Number]:
    def operate(a: Any, b: Any) -> Number:
        if beyond(a, b):
            return Number("Boolean", act(*(x.value if isinstance(x, Number) else int(x) for x in (a, b))))
        kind = common(a, b)
        return Number("Boolean", bool(act(convert(kind, a).value, convert(kind, b).value)))

    return operate


def _install() -> None:
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
        _both(name, binary(name, getattr(operator, name)))
    for name in ("lshift", "rshift"):
        _both(name, shift(getattr(operator, name)))
    for name in ("and", "or", "xor"):
        _both(name, logic(getattr(operator, f"{name}_" if name != "xor" else name)))
    for name in ("lt", "le", "gt", "ge", "eq", "ne"):
        setattr(Number, f"__{name}__", comparison(getattr(operator, name)))


def _both(name: str, operate: Callable[[Any, Any], Any]) -> None:
    setattr(Number, f"__{name}__", operate)
    setattr(Number, f"__r{name}__", lambda self, other: operate(other, self))


_install()

# -- Python's functions, as staged functions understand them -----------------------------------------------------------


def extreme(opcode: str) -> Callable[..., Any]:
    """``min`` and ``max``: all are converted to one kind."""
    keep = operator.lt if opcode == "min" else operator.gt

    def chosen(*values: Any) -> Any:
        found, *rest = values if len(values) > 1 else values[0]
        for value in rest:
            if beyond(found, value):
                x, y = (one.value if isinstance(one, Number) else int(one) for one in (found, value))
                first, other = (found, value) if keep(x, y) else (value, found)
                found = (
                    first.computing()
                    if isinstance(first, Number)
                    else convert(kind_of_literal(first, other.computing().kind), first)
                )
            elif isinstance(found, Number) or isinstance(value, Number):
                kind = common(found, value)
                a, b = convert(kind, found), convert(kind, value)
                if a.value != a.value or b.value != b.value:  # a number beside a NaN is taken
                    found = b if a.value != a.value else a
                    continue
                found = a if a.value == b.value or keep(a.value, b.value) else b
            else:
                found = getattr(builtins, opcode)(found, value)
        return found

    return chosen


def counted(*bounds: Any) -> Iterator[Number]:
    """``range`` with bounds of the run: its index is an Int32."""
    for i in builtins.range(*(int(b.value) if isinstance(b, Number) else b for b in bounds)):
        yield Number("Int32", i)


NAMES: dict[str, Any] = {
    **{kind: (lambda value, kind=kind: convert(kind, value)) for kind in KINDS},
    "min": extreme("min"),
    "max": extreme("max"),
    "range": counted,
    "range_constexpr": builtins.range,
    "const_expr": bool,
    "bool": lambda value: Number("Boolean", bool(value)),
}
