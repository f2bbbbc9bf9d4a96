"""The elementwise operations of :data:`tilewright.ir.arithmetic.TABLE` as C99, for host code.

A row's CUDA C++ text says which operator, function of ``<math.h>`` or helper it is; the helpers, which are ``tw::``
functions in kernels, are functions ``tw_NAME_TYPE`` here, defined where they are used. Operands are names or literals,
so an operand may be repeated. What a number is in C: :data:`C_TYPES`; floats of 16 and 8 bits are passed on as their
bits, and host code does not compute with them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tilewright.errors import ArgumentError
from tilewright.ir.arithmetic import TABLE, Action, action, normalise
from tilewright.ir.core import Op
from tilewright.ir.types import BOOL, F32, F64, TF32, ScalarType, element_of

C_TYPES = {
    "i1": "bool", "i8": "int8_t", "i16": "int16_t", "i32": "int32_t", "i64": "int64_t", "u8": "uint8_t",
    "u16": "uint16_t", "u32": "uint32_t", "u64": "uint64_t", "f16": "uint16_t", "bf16": "uint16_t", "tf32": "float",
    "f32": "float", "f64": "double", "e4m3": "uint8_t", "e5m2": "uint8_t",
}  # fmt: skip
_INFIX = frozenset("+ - * / % < <= > >= == != & | ^ << >> && ||".split())
_CHOICE = {"min": "<", "max": ">"}


class Helpers:
    """The functions that the written C calls, each defined once; ``math``: whether it needs ``<math.h>``."""

    def __init__(self) -> None:
        self.found: dict[str, str] = {}
        self.math = False

    def text(self) -> str:
        return "\n".join(self.found.values())

    def integer(self, name: str, kind: ScalarType) -> str:
        """The helper ``name`` on integers of ``kind``."""
        full = f"tw_{name}_{kind.name}"
        if full not in self.found:
            signed = kind.kind == "int"
            body = _INTEGER[name, signed] if (name, signed) in _INTEGER else _INTEGER[name, None]
            names = "abc"[: 1 if name in ("negate", "absolute") else 3 if name == "multiply_add" else 2]
            c = C_TYPES[kind.name]
            given = ", ".join(f"{c} {n}" for n in names)
            text = body.replace("$T", c).replace("$W", str(kind.width))
            self.found[full] = f"TW_INLINE {c} {full}({given}) {{ {text} }}"
        return full

    def real(self, name: str, kind: ScalarType) -> str:
        """The helper ``name`` on floats of ``kind``."""
        full, single = f"tw_{name}_{kind.name}", kind != F64
        if full not in self.found:
            c, suffix = ("float", "f") if single else ("double", "")
            given = ", ".join(f"{c} {n}" for n in ("a" if name in ("rsqrt", "rcp") else "ab"))
            text = _REAL[name].replace("FMIN", f"fmin{suffix}").replace("FMAX", f"fmax{suffix}")
            text = text.replace("FLOOR", f"floor{suffix}").replace("FMOD", f"fmod{suffix}")
            text = text.replace("COPYSIGN", f"copysign{suffix}").replace("SQRT", f"sqrt{suffix}").replace("$T", c)
            self.found[full] = f"TW_INLINE {c} {full}({given}) {{ {text} }}"
        self.math = True
        return full

    def whole(self, source: ScalarType, to: ScalarType) -> str:
        """The conversion of a float to an integer, which truncates and saturates."""
        full, c = f"tw_{source.name}_to_{to.name}", C_TYPES[to.name]
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


_INTEGER: dict[tuple[str, bool | None], str] = {
    ("add", None): "return ($T)((uint64_t)a + (uint64_t)b);",
    ("subtract", None): "return ($T)((uint64_t)a - (uint64_t)b);",
    ("multiply", None): "return ($T)((uint64_t)a * (uint64_t)b);",
    ("multiply_add", None): "return ($T)((uint64_t)a * (uint64_t)b + (uint64_t)c);",
    ("negate", None): "return ($T)(0 - (uint64_t)a);",
    ("absolute", True): "return a < 0 ? ($T)(0 - (uint64_t)a) : a;",
    ("absolute", False): "return a;",
    ("shift_left", True): "return b < 0 || b >= $W ? ($T)0 : ($T)((uint64_t)a << b);",
    ("shift_left", False): "return b >= $W ? ($T)0 : ($T)((uint64_t)a << b);",
    ("shift_right", True): "return ($T)(a >> (b < 0 || b >= $W ? $W - 1 : b));",
    ("shift_right", False): "return b >= $W ? ($T)0 : ($T)(a >> b);",
    ("div", True): "return b == -1 ? ($T)(0 - (uint64_t)a) : ($T)(a / b);",
    ("div", False): "return ($T)(a / b);",
    ("rem", True): "return b == -1 ? ($T)0 : ($T)(a % b);",
    ("rem", False): "return ($T)(a % b);",
    ("floordiv", True): (
        "if (b == -1) return ($T)(0 - (uint64_t)a); return ($T)(a / b - (a % b != 0 && (a < 0) != (b < 0)));"
    ),
    ("floordiv", False): "return ($T)(a / b);",
    ("floormod", True): (
        "if (b == -1) return 0; return ($T)(a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0));"
    ),
    ("floormod", False): "return ($T)(a % b);",
    ("power", True): (
        "uint64_t r = 1, x = (uint64_t)a, n; "
        "if (b < 0) return ($T)(a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0); "
        "for (n = (uint64_t)b; n; n >>= 1, x *= x) if (n & 1) r *= x; return ($T)r;"
    ),
    ("power", False): (
        "uint64_t r = 1, x = a, n; for (n = b; n; n >>= 1, x *= x) if (n & 1) r *= x; return ($T)r;"
    ),
}  # fmt: skip
"""What ``tw::NAME`` does in kernels, on integers of type ``$T``: they wrap; a division by zero was excluded."""

_REAL = {
    "min": "$T r = FMIN(a, b); return r == 0 && a == b ? -(-a - b) : r;",
    "max": "$T r = FMAX(a, b); return r == 0 && a == b ? a + b : r;",
    "floordiv": (
        "$T r, q, w; if (b == 0) return a / b; "
        "r = FMOD(a, b); q = (a - r) / b; if (r != 0 && (r < 0) != (b < 0)) q -= 1; "
        "if (q == 0) return COPYSIGN(0, a / b); w = FLOOR(q); return q - w > 0.5 ? w + 1 : w;"
    ),
    "floormod": ("$T r = FMOD(a, b); if (r == 0) return COPYSIGN(0, b); return (r < 0) != (b < 0) ? r + b : r;"),
    "rcp": "return ($T)1 / a;",
    "rsqrt": "return ($T)1 / SQRT(a);",
}


def scalar(op: Op, operands: Sequence[str], helpers: Helpers) -> str:
    """The result of ``op`` as a C expression of its ``operands`` (names or literals)."""
    if op.opcode == "select":
        return "{} ? {} : {}".format(*operands)
    source, result = element_of(op.operands[0].type), element_of(op.result.type)
    if op.opcode == "cast":
        return cast(operands[0], source, result, helpers, str(op.loc or "host code"))
    check_computes(op, source)
    found = action(op.opcode, source)
    if source == BOOL:
        return _apply(found.cuda, operands)
    if source.is_integer:
        return _integer(op, found, operands, source, helpers)
    return _float(op.opcode, found, operands, source, helpers)


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
    return f"({C_TYPES[to.name]}){text}"


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
    if len(operands) == 1 and text in ("-", "~", "!"):
        return f"{text}{operands[0]}" if not operands[0].startswith("-") else f"{text}({operands[0]})"
    if text in _INFIX:
        return f" {text} ".join(operands)
    return f"{text}({', '.join(operands)})"


def _integer(op: Op, found: Action, operands: Sequence[str], kind: ScalarType, helpers: Helpers) -> str:
    code, c = op.opcode, C_TYPES[kind.name]
    if TABLE[code].predicate:
        return _apply(found.cuda, operands)
    if code in _CHOICE:
        a, b = operands
        return f"{a} {_CHOICE[code]} {b} ? {a} : {b}"
    if code in ("div", "rem"):
        return f"{helpers.integer(code, kind)}({', '.join(operands)})"
    # Without `wraps` the front has proved that the plain operator gives the result; narrow types compute in int.
    text = found.wrapping if op.attrs.get("wraps") and found.wrapping else found.cuda
    if code in ("shl", "shr", "abs", "pow", "fma") or (code == "neg" and kind.kind == "uint"):
        text = found.wrapping or found.cuda
    if text.startswith("tw::"):
        return f"{helpers.integer(text.removeprefix('tw::').partition('<')[0], kind)}({', '.join(operands)})"
    return _apply(text, operands) if kind.width >= 32 else f"({c})({_apply(text, operands)})"


def _float(code: str, found: Action, operands: Sequence[str], kind: ScalarType, helpers: Helpers) -> str:
    if code == "rsqrt" or code in _CHOICE or found.cuda.startswith("tw::"):
        name = code if not found.cuda.startswith("tw::") else found.cuda.removeprefix("tw::")
        return f"{helpers.real(name, kind)}({', '.join(operands)})"
    if found.cuda in _INFIX or found.cuda == "-":
        return _apply(found.cuda, operands)
    helpers.math = True
    single = kind != F64 and not TABLE[code].predicate
    return _apply(f"{found.cuda}f" if single else found.cuda, operands)
