"""The elementwise operations of :data:`tilewright.ir.arithmetic.TABLE` as C99, for host code.

Where the table has C of its own (``Action.c``), it becomes a function ``tw_NAME_TYPE``, defined where it is used; else
the table's CUDA C++ text is the operator or the function of ``<math.h>``. What a number is in C: :attr:`ScalarType.c`;
floats of 16 and 8 bits are passed on as their bits, and host code does not compute with them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tilewright.errors import ArgumentError
from tilewright.ir.arithmetic import TABLE, Action, action, normalise
from tilewright.ir.core import Op
from tilewright.ir.types import BOOL, F32, F64, TF32, ScalarType, element_of

_INFIX = frozenset("+ - * / % < <= > >= == != & | ^ << >> && ||".split())
_PLAIN = frozenset("+-*")
"""Operators that give the result where the front has proved that it does not wrap (no attribute ``wraps``)."""


class Helpers:
    """The functions that the written C calls, each defined once; ``math``: whether it needs ``<math.h>``."""

    def __init__(self) -> None:
        self.found: dict[str, str] = {}
        self.math = False

    def text(self) -> str:
        return "\n".join(self.found.values())

    def of_action(self, name: str, kind: ScalarType, text: str) -> str:
        """The helper that does the table's ``text`` on numbers of ``kind``."""
        full, c = f"tw_{name}_{kind.name}", kind.c
        if full not in self.found:
            text = text.replace("$T", c).replace("$W", str(kind.width)).replace("$f", "f" if c == "float" else "")
            body = text if "return" in text else f"return {text};"
            parameters = ", ".join(f"{c} {n}" for n in "abc"[: TABLE[name].operands])
            self.found[full] = f"TW_INLINE {c} {full}({parameters}) {{ {body} }}"
        self.math |= kind.is_float
        return full

    def whole(self, source: ScalarType, to: ScalarType) -> str:
        """The conversion of a float to an integer, which truncates and saturates."""
        full, c = f"tw_{source.name}_to_{to.name}", to.c
        if full not in self.found:
            low = -(1 << (to.width - 1)) if to.kind == "int" else 0
            high = low + (1 << to.width) - 1
            of_nan = int(_of_nan(source, to))
            bounds = f"if (a <= {low}.0) return {literal(to, low)}; if (a >= {high + 1}.0) return {literal(to, high)};"
            self.found[full] = (
                f"TW_INLINE {c} {full}(double a) {{ if (a != a) return {literal(to, of_nan)}; {bounds} "
                f"return ({c})a; }}"
            )
        return full


def _of_nan(source: ScalarType, to: ScalarType) -> float:
    """What a NaN becomes: the table's own answer."""
    from tilewright.ir.arithmetic import convert

    return convert(source, to, math.nan)


def scalar(op: Op, operands: Sequence[str], helpers: Helpers) -> str:
    """The result of ``op`` as a C expression of its ``operands`` (names or literals)."""
    if op.opcode == "select":
        return "{} ? {} : {}".format(*operands)
    source, result = element_of(op.operands[0].type), element_of(op.result.type)
    if op.opcode == "cast":
        return cast(operands[0], source, result, helpers, str(op.loc or "host code"))
    check_computes(op, source)
    forms = action(op.opcode, source)
    if source == BOOL:
        return _apply(forms.cuda, operands)
    if source.is_integer:
        return _integer(op, forms, operands, source, helpers)
    return _float(op.opcode, forms, operands, source, helpers)


def cast(text: str, source: ScalarType, to: ScalarType, helpers: Helpers, place: str) -> str:
    """``text`` converted from ``source`` to ``to``."""
    if source == to:
        return text
    for kind in (source, to):
        if _is_bits(kind) or (kind == TF32 and kind is to):
            raise ArgumentError(_REFUSED.format(place=place, kind=kind))
    if to == BOOL:
        return f"{text} != 0"
    if source.is_float and to.is_integer:
        return f"{helpers.whole(source, to)}({text})"
    return f"({to.c}){text}"


_REFUSED = "{place}: host code that computes with {kind} has no C form: convert to Float32 before the call"


def check_computes(op: Op, kind: ScalarType) -> None:
    """ArgumentError for operations on floats that C has no type for."""
    if _is_bits(kind) or (kind == TF32 and not TABLE[op.opcode].predicate):
        raise ArgumentError(_REFUSED.format(place=op.loc or "host code", kind=kind))


def _is_bits(kind: ScalarType) -> bool:
    return kind.is_float and kind.width < 32


def literal(kind: ScalarType, value: int | float | bool) -> str:
    """A number as a C literal of its type.

    >>> from tilewright.ir.types import F32, I32, I64, U32
    >>> literal(I32, -7), literal(I64, 1 << 40), literal(U32, 5), literal(F32, 0.5), literal(BOOL, True)
    ('-7', 'INT64_C(1099511627776)', '5u', '0.5f', 'true')
    """
    if kind == BOOL:
        return "true" if value else "false"
    if kind.is_float:
        return _float_literal(kind, float(value))
    number = int(value)
    if kind.kind == "uint":
        return f"UINT64_C({number})" if kind.width == 64 else f"{number}u"
    if number == -(1 << (kind.width - 1)) and kind.width >= 32:  # C has no such literal
        return f"(-{literal(kind, -number - 1)} - 1)"
    return f"INT64_C({number})" if kind.width == 64 else str(number)


def _float_literal(kind: ScalarType, value: float) -> str:
    if _is_bits(kind):
        import numpy as np

        return str(int(np.asarray(value).astype(kind.dtype).view(f"uint{kind.width}"))) + "u"
    suffix = "" if kind == F64 else "f"
    value = float(normalise(F64 if kind == F64 else F32, value))
    if math.isnan(value):
        return f"(0.0{suffix} / 0.0{suffix})"
    if math.isinf(value):
        return f"({'-' if value < 0 else ''}1.0{suffix} / 0.0{suffix})"
    return f"{value!r}{suffix}"


def _apply(text: str, operands: Sequence[str]) -> str:
    if len(operands) == 1 and text in ("+", "-", "~", "!"):
        return f"{text}{operands[0]}" if not operands[0].startswith("-") else f"{text}({operands[0]})"
    if text in _INFIX:
        return f" {text} ".join(operands)
    return f"{text}({', '.join(operands)})"


def _integer(op: Op, forms: Action, operands: Sequence[str], kind: ScalarType, helpers: Helpers) -> str:
    text = forms.cuda
    if forms.unsigned and not kind.is_signed:
        text = forms.unsigned
    elif forms.c and (op.attrs.get("wraps") or text not in _PLAIN):
        return f"{helpers.of_action(op.opcode, kind, forms.c)}({', '.join(operands)})"
    narrow = kind.width < 32 and not TABLE[op.opcode].predicate  # C computes in int
    return f"({kind.c})({_apply(text, operands)})" if narrow else _apply(text, operands)


def _float(code: str, forms: Action, operands: Sequence[str], kind: ScalarType, helpers: Helpers) -> str:
    if forms.c:
        return f"{helpers.of_action(code, kind, forms.c)}({', '.join(operands)})"
    if forms.cuda in _INFIX:
        return _apply(forms.cuda, operands)
    helpers.math = True
    single = kind != F64 and not TABLE[code].predicate
    return _apply(f"{forms.cuda}f" if single else forms.cuda, operands)
