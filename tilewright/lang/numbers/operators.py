"""The arithmetic of numerics: eager on Python numbers, IR on run-time values.

Operands are :class:`~tilewright.lang.numbers.numeric.Numeric` instances or Python numbers. Every function gives a
Numeric.
"""

from __future__ import annotations

import operator
from typing import Any

from tilewright.errors import StagingError
from tilewright.ir.arithmetic import DIVISIONS, evaluate
from tilewright.ir.builder import Builder
from tilewright.ir.core import Value
from tilewright.ir.types import BOOL, F32, I64, I128, ScalarType
from tilewright.lang.numbers import facts, promote
from tilewright.lang.numbers.classes import CLASS_OF
from tilewright.lang.numbers.literals import as_literal

SHIFTS = ("shl", "shr")
BITS = {"and": "&", "or": "|", "xor": "^", "shl": "<<", "shr": ">>"}


def binary(opcode: str, a: Any, b: Any) -> Any:
    """``a opcode b`` after promotion."""
    a, b = as_literal(a), as_literal(b)
    if opcode in SHIFTS:
        kind = shift_type(opcode, a, b)
        b = shift_count(b, kind)
    elif opcode in ("min", "max") and (first := decided("lt" if opcode == "min" else "gt", a, b)) is not None:
        return _as(CLASS_OF[promote.arithmetic(_of_one(*((a, b) if first else (b, a))))], a if first else b)
    else:
        kind = _common(a, b)
    if opcode == "truediv":
        kind, opcode = promote.quotient(kind), "div"
    if opcode in ("and", "or", "xor") and _is_bool(a) and _is_bool(b):
        kind = BOOL
    cls = CLASS_OF[kind]
    if kind.is_float and opcode in BITS:
        sign, left, right = BITS[opcode], type(a).__name__, type(b).__name__
        raise StagingError(
            f"`{sign}` of {left} and {right}: floats have no bits to combine (bitcast them to integers). `{sign}` "
            f"binds tighter than comparisons: write (a == b) {sign} (c < d), or `and`, `or`"
        )
    a, b = _as(cls, a), _as(cls, b)
    if kind.is_float:
        return cls(_float(opcode, a, b, kind))
    return _integer(opcode, a, b, kind, cls)


def compare(opcode: str, a: Any, b: Any) -> Any:
    """A comparison after promotion: a Boolean."""
    a, b = as_literal(a), as_literal(b)
    if (result := decided(opcode, a, b)) is not None:
        return CLASS_OF[BOOL](result)
    both_bool = _type(a) == _type(b) == BOOL
    cls = CLASS_OF[BOOL if both_bool else _common(a, b)]
    a, b = _as(cls, a), _as(cls, b)
    if _static(a, b):
        return CLASS_OF[BOOL](evaluate(opcode, cls.ir_type, a.value, b.value))
    result = _decide(opcode, a, b) if cls.is_integer else None
    if result is not None:
        return CLASS_OF[BOOL](result)
    return CLASS_OF[BOOL](Builder.current().compare(opcode, a.ir_value(), b.ir_value()))


def decided(opcode: str, a: Any, b: Any) -> bool | None:
    """What Python says of the comparison of integers with a literal that their type does not hold, whatever they are:
    in the type in which the two compute, a number below zero would be a large one. None for all else.

    >>> from tilewright import Int32, Uint32
    >>> Int32(-1) < 2**31, Uint32(5) > -1, max(Uint32(5), -1)
    (Boolean(True), Boolean(True), Uint32(5))
    """
    for number, literal in ((a, b), (b, a)):
        kind = _type(getattr(number, "dtype", number))
        if type(literal) is int and kind is not None and kind.is_integer and -(1 << 63) <= literal < 1 << 64:
            low, high = facts.limits(promote.arithmetic(kind))
            if not low <= literal <= high:
                holds: bool = getattr(operator, opcode)(*(0 if x is number else x for x in (a, b)))
                return holds
    return None


def unary(opcode: str, a: Any) -> Any:
    """``neg``, ``not``, ``abs`` or ``round`` (of floats)."""
    kind = a.ir_type if opcode == "not" else promote.arithmetic(a.ir_type)
    cls = CLASS_OF[kind]
    a = _as(cls, a)
    if _static(a):
        return cls(evaluate(opcode, kind, a.value))
    if opcode == "abs" and cls.is_integer and a.nonneg:
        return a
    if not cls.is_integer:
        return cls(Builder.current().unary(opcode, a.value))
    fits = facts.span(a.facts, kind)[0] > facts.limits(kind)[0] and kind.is_signed
    made = cls(Builder.current().unary(opcode, a.value, fits))
    if opcode != "not":
        of_result = facts.Facts(opcode == "abs", a.divisibility, None)
        made.learn(of_result if fits else facts.cut(of_result, kind))
    return made


def select(condition: Any, a: Any, b: Any) -> Any:
    """``a if condition else b`` of numbers, without a branch; both sides are promoted to one type."""
    if not isinstance(condition, (bool, int)):
        condition = CLASS_OF[BOOL](condition).value
    if not isinstance(condition, Value):
        return a if condition else b
    a, b = as_literal(a), as_literal(b)
    kind = _type(a)
    if kind is None or kind != _type(b):
        kind = _common(a, b)
    cls = CLASS_OF[kind]
    a, b = _as(cls, a), _as(cls, b)
    made = cls(Builder.current().select(condition, a.ir_value(), b.ir_value()))
    if cls.is_integer:
        made.learn(facts.join(a.facts, b.facts))
    return made


def _integer(opcode: str, a: Any, b: Any, kind: ScalarType, cls: Any) -> Any:
    if opcode in DIVISIONS:
        if not isinstance(b.value, Value) and b.value == 0:
            if not isinstance(a.value, Value) and not Builder.active():
                raise ZeroDivisionError(f"{type(a).__name__} division by zero")
            # A quotient that nothing reads is allowed: ir.verify refuses those that are left.
            return cls(Builder.current().binary(opcode, a.ir_value(), b.ir_value()))
        quotient = a.known_quotient(b, proven=True)
        if quotient is not None:
            return cls(quotient if opcode in ("div", "floordiv") else 0)
        if (a.nonneg and b.nonneg) or (b.nonneg and not isinstance(b.value, Value) and _whole(a, b)):
            opcode = {"floordiv": "div", "floormod": "rem"}.get(opcode, opcode)
    simple = _shortcut(opcode, a, b, cls)
    if simple is not None:
        return simple
    if _static(a, b):
        return cls(evaluate(opcode, kind, a.value, b.value))
    if opcode == "pow":
        return _power(a, b, cls)
    of_result, fits = facts.result(opcode, a.facts, b.facts, kind)
    made = cls(Builder.current().binary(opcode, a.ir_value(), b.ir_value(), fits))
    return made.learn(of_result)


def _shortcut(opcode: str, a: Any, b: Any, cls: Any) -> Any:
    """Results that the facts decide without an op: ``x % n`` and ``x // n`` for ``0 <= x < n``, or an exact multiple of
    n."""
    if cls.ir_type == BOOL and opcode in ("and", "or"):
        return _logic(opcode, a, b)
    if opcode not in ("div", "rem", "min", "max") or not cls.is_integer or isinstance(b.value, Value) or _static(a, b):
        return None
    n, of_a = b.value, a.facts
    if opcode in ("div", "rem") and n > 0:
        if of_a.nonneg and of_a.bound is not None and of_a.bound <= n:
            return cls(0) if opcode == "div" else a
        if opcode == "rem" and _whole(a, b):
            return cls(0)
    if opcode == "min" and of_a.bound is not None and of_a.bound <= n + 1:
        return a
    if opcode == "max" and of_a.nonneg and n <= 0:
        return a
    return None


def _whole(a: Any, b: Any) -> bool:
    """Whether the literal ``b`` is known to divide ``a``: rounding then has no direction."""
    return b.value > 0 and a.facts.divisibility % b.value == 0


def _logic(opcode: str, a: Any, b: Any) -> Any:
    """``x & True`` and ``x | False`` are x, ``x & False`` and ``x | True`` are known."""
    for literal, other in ((a, b), (b, a)):
        if not isinstance(literal.value, Value):
            return other if literal.value == (opcode == "and") else literal
    return None


def _decide(opcode: str, a: Any, b: Any) -> bool | None:
    """A comparison whose result the bounds prove."""
    if isinstance(b.value, Value):
        return None
    n, of_a = b.value, a.facts
    if of_a.nonneg:
        if (opcode == "ge" and n <= 0) or (opcode in ("gt", "ne") and n < 0):
            return True
        if (opcode == "lt" and n <= 0) or (opcode in ("le", "eq") and n < 0):
            return False
    if of_a.bound is not None:
        if (opcode == "lt" and of_a.bound <= n) or (opcode == "le" and of_a.bound <= n + 1):
            return True
        if (opcode == "ge" and of_a.bound <= n) or (opcode == "gt" and of_a.bound <= n + 1):
            return False
    return None


def _power(a: Any, b: Any, cls: Any) -> Any:
    if isinstance(b.value, Value) or b.value < 0:
        return cls(Builder.current().binary("pow", a.ir_value(), b.ir_value()))
    result, square, exponent = cls(1), a, b.value
    while exponent:
        if exponent & 1:
            result = binary("mul", result, square)
        exponent >>= 1
        if exponent:
            square = binary("mul", square, square)
    return result


def _float(opcode: str, a: Any, b: Any, kind: ScalarType) -> Any:
    if _static(a, b):
        return evaluate(opcode, kind, a.value, b.value)
    return Builder.current().binary(opcode, a.ir_value(), b.ir_value())


def _common(a: Any, b: Any) -> ScalarType:
    left, right = _type(a), _type(b)
    if left is None and right is None:
        return promote.common(promote.default(a), promote.default(b))
    if left is None:
        return promote.common(promote.literal(a, right), right)  # type: ignore[arg-type]  # not both are None
    if right is None:
        return promote.common(left, promote.literal(b, left))
    return promote.common(left, right)


def _of_one(a: Any, other: Any) -> ScalarType:
    """The type of an operand beside another one."""
    return _type(a) or promote.literal(a, _type(other) or promote.default(other))


def shift_type(opcode: str, a: Any, b: Any) -> ScalarType:
    """The left operand's type; a Python literal takes as many bits as the right one has. The right one is a number of
    bits: a float would be cut to one without a word."""
    left, right = _type(a), _type(b) or promote.default(b)
    if right.is_float:
        raise TypeError(f"`{opcode}` is not defined on {right}")
    kind = promote.arithmetic(left or promote.default(a))
    return kind if left is not None or right.width <= kind.width else I64 if right.width == 64 else I128


def shift_count(b: Any, kind: ScalarType) -> Any:
    """The number of bits by which a number of type ``kind`` is shifted, as one that this type holds: a count of a wider
    type would lose the bits that say that all is shifted out."""
    count = b.value if _type(b) is not None else b
    if not isinstance(count, Value):
        if not 0 <= count < kind.width:
            name = CLASS_OF[kind].__name__
            raise StagingError(f"a shift of {name} by {count}: it can be shifted by 0 to {kind.width - 1} bits")
        return b
    wide, of_count = b.ir_type, b.facts
    if wide.width <= kind.width or (
        b.nonneg and of_count.bound is not None and of_count.bound <= 1 << (kind.width - 1)
    ):
        return b
    whole = CLASS_OF[promote.unsigned(wide)](b)  # a negative one becomes large
    return binary("min", whole, kind.width)


def _type(a: Any) -> ScalarType | None:
    """The scalar type of a numeric; None for Python literals."""
    return getattr(a, "ir_type", None)


def _is_bool(a: Any) -> bool:
    return isinstance(a, bool) or _type(a) == BOOL


def _static(*operands: Any) -> bool:
    return not any(isinstance(x.value, Value) for x in operands)


def _as(cls: Any, a: Any) -> Any:
    return a if type(a) is cls else cls(a)


def unary_float_type(a: ScalarType) -> ScalarType:
    """The type in which a math function of one operand of type ``a`` computes."""
    return promote.arithmetic(a) if a.is_float else F32
