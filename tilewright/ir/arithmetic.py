"""Scalar arithmetic: the one table of the elementwise operations, which folding, host code, the simulator, the CUDA
emitter and exported C read.

A row is an :class:`Operation`: on Booleans, integers and floats it has an :class:`Action` each (or none: the operation
is not defined there), and an action is the same meaning in four forms: an expression of Python numbers, a function of
NumPy arrays, text of CUDA C++, and text of C99. What the four have in common:

- integers wrap to their width; ``div`` and ``rem`` truncate, ``floordiv`` and ``floormod`` round down; a division by
  zero is an error (undefined in CUDA C++, as the check would cost more than the division);
- ``floordiv`` and ``floormod`` of floats are Python's: the floor of the exact quotient, ``nan`` where a is infinite,
  and the sign of b on a remainder of zero; a division by zero gives what C gives;
- a shift by the width or more, or by a negative count, shifts everything out (PTX clamps the count);
- ``a ** b`` of integers with a negative exponent is ``1 / a ** -b`` truncated, and 0 where ``a`` is 0;
- floats are rounded to nearest even after each operation; those of 8 bits compute in f32, round once and saturate;
- ``min`` and ``max`` pass over a NaN beside a number, and ``-0.0`` is less than ``0.0``; ``round`` rounds ties to even;
- of f32, f16, bf16: elementary functions (``exp`` ... ``erf``, ``pow``) are near the true value, not equal to the last
  bit on the two machines.

>>> from tilewright.ir.types import F32, I8, I32
>>> evaluate("add", I8, 100, 100), evaluate("floordiv", I32, -7, 2), evaluate("min", F32, 1.0, float("nan"))
(-56, -4, 1.0)
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tilewright.ir.types import BOOL, F32, F64, WIDE, ScalarType

Number = int | float | bool
Function = Callable[..., Any]


@dataclass(frozen=True)
class Action:
    """One operation on one kind of numbers.

    ``python`` is an exact expression of the Python numbers ``{a}``, ``{b}``, ``{c}`` (``{width}``: the bits of the
    type) whose value is then reduced to the type; where it is empty, the NumPy function on one number says what
    Python gives. ``numpy`` names a function of NumPy, ``operator`` or :mod:`tilewright.ir.lanes` (only those who run
    it import NumPy). ``cuda`` is an operator or a function of CUDA C++ (``{T}``: the type; a plain name is the
    function of ``double``, and that of ``float`` ends in ``f``), ``wrapping`` the function that takes its place where
    C++ would leave the result undefined. ``c`` is C99 for exported host code where ``cuda`` alone is not: an
    expression of ``a``, ``b``, ``c``, or the body of a function (``$T``: the C type, ``$W``: its bits, ``$f``: the
    suffix of functions of the type); ``unsigned`` is the operator that does it on unsigned integers in both.
    """

    python: str
    numpy: str
    cuda: str
    wrapping: str = ""
    c: str = ""
    unsigned: str = ""
    fast: str = ""
    """The approximate instruction on f32 that ``fastmath`` allows."""
    fits: bool = False
    """The result is of the operands' type without being reduced to it."""
    widened: int = 32
    """Floats of fewer bits than this become f32 first; NumPy widens 16 bits by itself in ``+ - * /``."""
    paired: bool = False
    """The device header has it for f16, bf16 and pairs of them."""
    left: Mapping[int, int | None] = field(default_factory=dict)
    """``{k: r}``: ``k op x`` is the number r, or x itself where r is None."""
    right: Mapping[int, int | None] = field(default_factory=dict)
    """``{k: r}``: ``x op k`` is the number r, or x itself where r is None."""


@dataclass(frozen=True)
class Operation:
    """A row of the table: ``operands`` of one type, and a result of that type, or i1 where ``predicate`` is set."""

    name: str
    operands: int
    integer: Action | None = None
    real: Action | None = None
    boolean: Action | None = None
    predicate: bool = False

    def on(self, elem: ScalarType) -> Action | None:
        """The operation's function for numbers of type ``elem``; None: it is not defined for them."""
        return self.boolean if elem == BOOL else self.integer if elem.is_integer else self.real


# C99 of the longer actions. An integer division by zero has been refused before.
_C_POWER = """uint64_t power = 1, x = (uint64_t)a, n = b > 0 ? (uint64_t)b : 0;
  if (b != 0 && n == 0) return ($T)(a == 1 ? 1 : a == ($T)-1 ? (b & 1 ? -1 : 1) : 0);
  for (; n; n >>= 1, x *= x) if (n & 1) power *= x;
  return ($T)power;"""
_C_FLOORDIV = "if (b == -1) return ($T)(0 - (uint64_t)a); return ($T)(a / b - (a % b != 0 && (a < 0) != (b < 0)));"
_C_FLOORMOD = "if (b == -1) return 0; return ($T)(a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0));"
_C_FLOAT_FLOORDIV = """$T r = fmod$f(a, b), q = (a - r) / b, w;
  if (b == 0) return a / b;
  if (r != 0 && (r < 0) != (b < 0)) q -= 1;
  w = floor$f(q);
  return q == 0 ? copysign$f(0, a / b) : q - w > 0.5 ? w + 1 : w;"""
_C_FLOAT_FLOORMOD = """$T r = fmod$f(a, b);
  return r == 0 ? copysign$f(0, b) : (r < 0) != (b < 0) ? r + b : r;"""

# Each row of the tables: the action on integers, on floats, on Booleans.


def _sums_and_products() -> list[Operation]:
    return [
        Operation("add", 2,
            Action("{a} + {b}", "operator.add", "+", "tw::add", "($T)((uint64_t)a + (uint64_t)b)",
                   left={0: None}, right={0: None}),
            Action("{a} + {b}", "operator.add", "+", widened=16, paired=True),
            Action("{a} or {b}", "operator.or_", "||", left={0: None}, right={0: None})),
        Operation("sub", 2,
            Action("{a} - {b}", "operator.sub", "-", "tw::subtract", "($T)((uint64_t)a - (uint64_t)b)",
                   right={0: None}),
            Action("{a} - {b}", "operator.sub", "-", widened=16, paired=True)),
        Operation("mul", 2,
            Action("{a} * {b}", "operator.mul", "*", "tw::multiply", "($T)((uint64_t)a * (uint64_t)b)",
                   left={0: 0, 1: None}, right={0: 0, 1: None}),
            Action("{a} * {b}", "operator.mul", "*", widened=16, paired=True),
            Action("{a} and {b}", "operator.and_", "&&", left={0: 0, 1: None}, right={0: 0, 1: None})),
        Operation("min", 2,
            Action("{a} if {a} < {b} else {b}", "np.minimum", "min", c="a < b ? a : b", fits=True),
            Action("", "lanes.minimum", "fmin", paired=True,
                   c="$T r = fmin$f(a, b); return r == 0 && a == b ? -(-a - b) : r;"),
            Action("{a} and {b}", "operator.and_", "&&")),
        Operation("max", 2,
            Action("{a} if {a} > {b} else {b}", "np.maximum", "max", c="a > b ? a : b", fits=True),
            Action("", "lanes.maximum", "fmax", paired=True,
                   c="$T r = fmax$f(a, b); return r == 0 && a == b ? a + b : r;"),
            Action("{a} or {b}", "operator.or_", "||")),
        Operation("pow", 2,
            Action("", "lanes.integer_power", "tw::power<{T}>", c=_C_POWER),
            Action("", "lanes.power", "pow", fast="__powf")),
        Operation("fma", 3,
            Action("{a} * {b} + {c}", "lanes.multiply_add", "tw::multiply_add",
                   c="($T)((uint64_t)a * (uint64_t)b + (uint64_t)c)"),
            Action("", "lanes.fused_multiply_add", "fma", widened=16, paired=True)),
        Operation("neg", 1,
            Action("-{a}", "operator.neg", "-", "tw::negate", "($T)(0 - (uint64_t)a)"),
            Action("-{a}", "operator.neg", "-", paired=True)),
        Operation("abs", 1,
            Action("abs({a})", "np.abs", "abs", "tw::absolute", "a < 0 ? ($T)(0 - (uint64_t)a) : a", unsigned="+"),
            Action("abs({a})", "np.abs", "fabs", paired=True)),
    ]  # fmt: skip


def _quotients() -> list[Operation]:
    return [
        Operation("div", 2,
            Action("{a} // {b} if ({a} < 0) == ({b} < 0) else -(-{a} // {b})", "lanes.truncating_quotient", "/",
                   c="b == -1 ? ($T)(0 - (uint64_t)a) : ($T)(a / b)", unsigned="/",
                   left={0: 0}, right={1: None}),
            Action("", "operator.truediv", "/", fast="__fdividef", widened=16)),
        Operation("rem", 2,
            Action("{a} % abs({b}) if {a} >= 0 else -(-{a} % abs({b}))", "lanes.truncating_remainder", "%",
                   c="b == -1 ? ($T)0 : ($T)(a % b)", unsigned="%", fits=True, left={0: 0}, right={1: 0}),
            Action("", "np.fmod", "fmod")),
        Operation("floordiv", 2,
            Action("{a} // {b}", "operator.floordiv", "tw::floordiv<{T}>", c=_C_FLOORDIV, unsigned="/",
                   left={0: 0}, right={1: None}),
            Action("", "np.floor_divide", "tw::floordiv", c=_C_FLOAT_FLOORDIV)),
        Operation("floormod", 2,
            Action("{a} % {b}", "lanes.floor_remainder", "tw::floormod<{T}>", c=_C_FLOORMOD, unsigned="%",
                   fits=True, left={0: 0}, right={1: 0}),
            Action("", "np.mod", "tw::floormod", c=_C_FLOAT_FLOORMOD)),
    ]  # fmt: skip


def _bitwise() -> list[Operation]:
    return [
        Operation("and", 2,
            Action("{a} & {b}", "operator.and_", "&", fits=True, left={0: 0}, right={0: 0}),
            None,
            Action("{a} and {b}", "operator.and_", "&&", left={0: 0, 1: None}, right={0: 0, 1: None})),
        Operation("or", 2,
            Action("{a} | {b}", "operator.or_", "|", fits=True, left={0: None}, right={0: None}),
            None,
            Action("{a} or {b}", "operator.or_", "||", left={0: None, 1: 1}, right={0: None, 1: 1})),
        Operation("xor", 2,
            Action("{a} ^ {b}", "operator.xor", "^", fits=True, left={0: None}, right={0: None}),
            None,
            Action("{a} != {b}", "operator.xor", "!=", left={0: None}, right={0: None})),
        Operation("shl", 2,
            Action("{a} << {b} if 0 <= {b} < {width} else 0", "np.left_shift", "<<", "tw::shift_left",
                   "(uint64_t)b < $W ? ($T)((uint64_t)a << b) : ($T)0",
                   left={0: 0}, right={0: None})),
        Operation("shr", 2,
            Action("{a} >> ({b} if 0 <= {b} < {width} else {width})", "np.right_shift", ">>", "tw::shift_right",
                   "(uint64_t)b < $W ? ($T)(a >> b) : ($T)(a >> ($W - 1) >> 1)",
                   fits=True, left={0: 0}, right={0: None})),
        Operation("not", 1,
            Action("~{a}", "operator.invert", "~"),
            None,
            Action("not {a}", "np.logical_not", "!")),
    ]  # fmt: skip


def _predicates() -> list[Operation]:
    rows = [
        Operation("isnan", 1, None, Action("{a} != {a}", "np.isnan", "isnan", widened=0), predicate=True),
        Operation("isinf", 1, None, Action("abs({a}) == float('inf')", "np.isinf", "isinf", widened=0), predicate=True),
    ]
    for name, sign in (("eq", "=="), ("ne", "!="), ("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">=")):
        compare = Action(f"{{a}} {sign} {{b}}", f"operator.{name}", sign, widened=0)
        rows.append(Operation(name, 2, compare, compare, compare, predicate=True))
    return rows


def _functions() -> list[Operation]:
    two = ("atan2", "copysign")  # take two operands
    in_c = {"rsqrt": "1 / sqrt$f(a)", "rcp": "1 / a"}
    functions = [  # of floats: name, NumPy, CUDA C++, and the approximate instruction
        ("atan2", "np.arctan2", "atan2", ""), ("copysign", "np.copysign", "copysign", ""),
        ("exp", "np.exp", "exp", "__expf"), ("exp2", "np.exp2", "exp2", "tw::approx_exp2"),
        ("log", "np.log", "log", "__logf"), ("log2", "np.log2", "log2", "tw::approx_log2"),
        ("log10", "np.log10", "log10", "__log10f"), ("sin", "np.sin", "sin", "__sinf"),
        ("cos", "np.cos", "cos", "__cosf"), ("tan", "np.tan", "tan", "__tanf"), ("asin", "np.arcsin", "asin", ""),
        ("acos", "np.arccos", "acos", ""), ("atan", "np.arctan", "atan", ""),
        ("tanh", "np.tanh", "tanh", "tw::approx_tanh"), ("sqrt", "np.sqrt", "sqrt", "tw::approx_sqrt"),
        ("rsqrt", "lanes.reciprocal_root", "rsqrt", "tw::approx_rsqrt"),
        ("log1p", "np.log1p", "log1p", ""), ("expm1", "np.expm1", "expm1", ""),
        ("rcp", "lanes.reciprocal", "tw::rcp", "tw::approx_rcp"), ("erf", "lanes.erf", "erf", ""),
        ("floor", "np.floor", "floor", ""), ("ceil", "np.ceil", "ceil", ""), ("round", "np.rint", "rint", ""),
        ("trunc", "np.trunc", "trunc", ""),
    ]  # fmt: skip
    return [
        Operation(name, 1 + (name in two), None, Action("", numpy, cuda, c=in_c.get(name, ""), fast=fast))
        for name, numpy, cuda, fast in functions
    ]


TABLE: dict[str, Operation] = {
    row.name: row for row in (*_sums_and_products(), *_quotients(), *_bitwise(), *_predicates(), *_functions())
}


def action(opcode: str, elem: ScalarType) -> Action:
    """The function of ``opcode`` for numbers of type ``elem``; raises TypeError where it is not defined."""
    row = TABLE[opcode].on(elem)
    if row is None:
        raise TypeError(f"`{opcode}` is not defined on {elem}")
    return row


DIVISIONS = frozenset(("div", "rem", "floordiv", "floormod"))
"""The operations that are an error on integers where the second operand is 0."""


@functools.cache
def may_overflow(opcode: str, elem: ScalarType) -> bool:
    """Whether C++ leaves some results of the operation undefined that are defined here: it needs the table's
    ``wrapping`` form unless what is known of the operands excludes them. Narrow types compute in ``int``."""
    row = TABLE[opcode].on(elem)
    if row is None or not row.wrapping:
        return False
    if opcode in ("shl", "shr"):
        return True
    return elem.kind == "int" and elem.width >= 32 or (opcode == "mul" and elem.kind == "uint" and elem.width == 16)


def normalise(elem: ScalarType, value: Number) -> Number:
    """A literal as a number of type ``elem``: integers wrap, floats round, Booleans test for non-zero.

    >>> from tilewright.ir.types import E5M2, I8, U8
    >>> normalise(I8, 200), normalise(U8, -1), normalise(F32, 0.1), normalise(E5M2, float("inf"))
    (-56, 255, 0.10000000149011612, inf)
    """
    if elem == BOOL:
        return bool(value)
    if elem.is_integer:
        return elem.wrapped(int(value))
    if elem == F64:
        return float(value)
    if elem == F32:
        return ctypes.c_float(value).value
    if "inf" in elem.specials and math.isinf(value):
        return float(value)
    return convert(F64, elem, float(value))


def convert(source: ScalarType, to: ScalarType, value: Number) -> Number:
    """A number of type ``source`` as one of type ``to``.

    >>> from tilewright.ir.types import E5M2, I8
    >>> convert(F32, I8, 300.0), convert(F32, E5M2, float("inf"))
    (127, 57344.0)
    """
    if source == to:
        return value
    if not source.is_float and not to.is_float:
        return normalise(to, value)
    if source.width > 64:
        return convert(F64, to, float(value))
    if to.width > 64:
        return to.clamped(value)
    import numpy as np

    from tilewright.ir.casts import cast

    with np.errstate(all="ignore"):
        converted: Number = cast(source, to)(source.dtype.type(value)).item()
    return converted


@functools.cache
def on_lanes(opcode: str, elem: ScalarType) -> Function:
    """The operation on NumPy arrays and scalars of type ``elem``; a division by zero is the caller's to exclude."""
    from tilewright.ir import lanes

    row = action(opcode, elem)
    if elem in WIDE:
        return _exact_on_lanes(opcode, elem)
    module, name = row.numpy.split(".")
    place = {"np": "numpy", "lanes": lanes.__name__}.get(module, module)
    function: Function = getattr(importlib.import_module(place), name)
    return lanes.through_f32(function, elem) if elem.is_float and elem.width < row.widened else function


def _exact_on_lanes(opcode: str, elem: ScalarType) -> Function:
    """The operation on arrays of Python's integers, number by number; one number is an array without modes."""
    import numpy as np

    row = TABLE[opcode]
    function = np.frompyfunc(functools.partial(evaluate, opcode, elem), row.operands, 1)
    if row.predicate:
        return lambda *operands: np.asarray(function(*operands)).astype(bool)[()]
    return lambda *operands: np.asarray(function(*operands), object)


@functools.cache
def _python(opcode: str, elem: ScalarType) -> Function:
    """The operation on Python numbers: its exact expression, or NumPy's function on one number of the type."""
    text = action(opcode, elem).python
    if text:
        names = "abc"[: TABLE[opcode].operands]
        made: Function = eval(f"lambda {', '.join(names)}: {text.format(a='a', b='b', c='c', width=elem.width)}")
        return made
    import numpy as np

    function, dtype = on_lanes(opcode, elem), elem.dtype.type

    def of_one(*operands: Number) -> Any:
        with np.errstate(all="ignore"):
            return function(*map(dtype, operands)).item()

    return of_one


def evaluate(opcode: str, elem: ScalarType, *operands: Number) -> Number:
    """The result of the operation on numbers of type ``elem``. Integer division by zero raises ZeroDivisionError."""
    result = _python(opcode, elem)(*operands)
    if TABLE[opcode].predicate:
        return bool(result)
    return convert(F64, elem, result) if elem.is_float and elem.width == 8 else normalise(elem, result)
