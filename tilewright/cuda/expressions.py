"""C++ expressions as text with a precedence, and the literals of every scalar type."""

from __future__ import annotations

import math
from ctypes import c_float
from typing import NamedTuple

from tilewright.ir.types import BOOL, F64, I64, U32, U64, ScalarType

PRIMARY, UNARY, MUL, ADD, SHIFT, RELATION, EQUALITY, BIT, AND, OR, TERNARY = range(16, 5, -1)
PRECEDENCE = {
    "*": MUL,
    "/": MUL,
    "%": MUL,
    "+": ADD,
    "-": ADD,
    "<<": SHIFT,
    ">>": SHIFT,
    "<": RELATION,
    "<=": RELATION,
    ">": RELATION,
    ">=": RELATION,
    "==": EQUALITY,
    "!=": EQUALITY,
    "&": BIT,
    "^": BIT,
    "|": BIT,
    "&&": AND,
    "||": OR,
}


class Expr(NamedTuple):
    """Text and how tightly its outermost operator binds."""

    text: str
    prec: int = PRIMARY

    def __str__(self) -> str:
        return self.text

    def inside(self, prec: int) -> str:
        """The text, in parentheses unless it binds at least as tightly as ``prec``."""
        return self.text if self.prec >= prec else f"({self.text})"

    @property
    def atom(self) -> str:
        return self.inside(PRIMARY)


def infix(operator: str, a: Expr, b: Expr) -> Expr:
    """``a operator b``; shifts and bit operations parenthesise every compound operand, for the reader's sake.

    >>> x, y = Expr("x"), Expr("y")
    >>> infix("-", x, infix("-", x, y)).text, infix("&", infix("+", x, y), y).text
    ('x - (x - y)', '(x + y) & y')
    """
    prec = PRECEDENCE[operator]
    if prec in (SHIFT, BIT):
        return Expr(f"{a.inside(UNARY)} {operator} {b.inside(UNARY)}", prec)
    if prec in (RELATION, EQUALITY):
        return Expr(f"{a.inside(ADD)} {operator} {b.inside(ADD)}", prec)
    return Expr(f"{a.inside(prec)} {operator} {b.inside(prec + 1)}", prec)


def prefix(operator: str, a: Expr) -> Expr:
    text = a.inside(UNARY)
    return Expr(f"{operator}({text})" if text.startswith(operator) else f"{operator}{text}", UNARY)


def call(function: str, *args: Expr) -> Expr:
    return Expr(f"{function}({', '.join(a.text for a in args)})")


def ternary(cond: Expr, a: Expr, b: Expr) -> Expr:
    return Expr(f"{cond.inside(OR)} ? {a.inside(OR)} : {b.inside(TERNARY)}", TERNARY)


def literal(elem: ScalarType, value: int | float | bool) -> Expr:
    """A constant of type ``elem``.

    >>> from tilewright.ir.types import F16, I32
    >>> literal(I32, -2147483648).text, literal(U64, 7).text, literal(F16, 1.0).text, literal(F64, 1.0).text
    ('(-2147483647 - 1)', '7ull', 'tw::f16{0x3c00}', '1.0')
    """
    if elem == BOOL:
        return Expr("true" if value else "false")
    if elem.has_struct:
        import numpy as np

        bits = np.asarray(value).astype(elem.dtype).view(f"uint{8 * elem.bytes}")
        return Expr(f"{elem.cuda}{{0x{int(bits):0{elem.width // 4}x}}}")
    if elem.is_integer:
        return _integer(elem, int(value))
    return _float(elem, float(value))


def _integer(elem: ScalarType, value: int) -> Expr:
    if elem.width > 64:
        high, low = divmod(value, 1 << 64)
        return Expr(
            f"{elem.cuda}({value}ll)"
            if -(1 << 63) < value < 1 << 63
            else f"tw::wide<{elem.cuda}>({high % (1 << 64):#x}ull, {low:#x}ull)"
        )
    suffix = {I64: "ll", U64: "ull", U32: "u"}.get(elem, "")
    # C++ has no negative literals: 2147483648, to be negated, would not fit into an int.
    if value == -(1 << (elem.width - 1)) and elem.width >= 32:
        return Expr(f"({value + 1}{suffix} - 1)")
    text = Expr(f"{value}{suffix}", UNARY if value < 0 else PRIMARY)
    return text if elem.width >= 32 else Expr(f"{elem.cuda}({value})")


def shortest_float32(value: float) -> str:
    """The fewest digits that give the same float32 back.

    >>> shortest_float32(0.1), shortest_float32(1 / 3), shortest_float32(2.0**24), shortest_float32(1e-5)
    ('0.1', '0.33333334', '16777216.0', '1e-05')
    """
    rounded = c_float(value).value
    texts = (f"{rounded:.{digits}g}" for digits in range(1, 10))  # nine digits are always enough
    return repr(float(next(text for text in texts if c_float(float(text)).value == rounded)))


def _float(elem: ScalarType, value: float) -> Expr:
    suffix = "" if elem == F64 else "f"
    if elem != F64:
        value = c_float(value).value  # infinity, where it is too large for a float32
    if not math.isfinite(value):
        name = "tw::nan()" if math.isnan(value) else "tw::infinity()"
        number = Expr(name if elem != F64 else f"double({name})")
        return prefix("-", number) if value < 0 else number
    text = repr(value) if elem == F64 else shortest_float32(value)
    if not any(c in text for c in ".e"):
        text += ".0"
    return Expr(text + suffix, UNARY if text.startswith("-") else PRIMARY)
