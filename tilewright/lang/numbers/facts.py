"""What is known of a run-time integer while staging: sign, divisor and upper bound.

The facts are cheap and one-sided: a missing fact is never wrong. They decide between C's and Python's division, let
``x % n`` and ``x // n`` vanish where ``x < n``, prove pointer alignment and show that a swizzle's bits do not carry.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from tilewright.ir.types import ScalarType


class Facts(NamedTuple):
    """``value >= 0`` if ``nonneg``; ``value % divisibility == 0``; ``value < bound`` unless ``bound`` is None.

    ``exact`` is the number itself when it is a literal; only the bits of ``bits`` can be set (None: nothing is known).
    """

    nonneg: bool = False
    divisibility: int = 1
    bound: int | None = None
    exact: int | None = None
    bits: int | None = None


UNKNOWN = Facts()
LARGE = 1 << 30
EXTENT_BOUND = {32: (1 << 31) - (1 << 16), 64: 1 << 62}
"""Above extents and strides of tensors, by the width that they are passed in: a tensor that reaches further is passed
with 64 bits. The remaining margin is for rounding an extent up to whole tiles."""


def of_number(value: int) -> Facts:
    """The facts of a literal; zero is divisible by everything, for which a large power of two is taken."""
    return Facts(value >= 0, abs(value) or LARGE, value + 1, value, value if value >= 0 else None)


def possible_bits(facts: Facts) -> int | None:
    """The bits that may be set, from ``bits`` or from the bound and the divisor; None when the sign is unknown.

    >>> bin(possible_bits(Facts(nonneg=True, divisibility=8, bound=64)))
    '0b111000'
    """
    if facts.bits is not None:
        return facts.bits
    if not facts.nonneg or facts.bound is None:
        return None
    return ((1 << max(facts.bound - 1, 0).bit_length()) - 1) & -low_bit(facts)


def low_bit(facts: Facts) -> int:
    """The largest power of two that is known to divide the value."""
    return facts.divisibility & -facts.divisibility


def cut(facts: Facts, kind: ScalarType) -> Facts:
    """The facts of a whole number that are left once it is reduced to the width of ``kind``: all where it fits.

    >>> from tilewright.ir.types import U8
    >>> cut(Facts(True, 12, 200), U8) == Facts(True, 12, 200), cut(Facts(True, 12, 400), U8)
    (True, Facts(nonneg=True, divisibility=4, bound=None, exact=None, bits=None))
    """
    if kind.kind == "bool":
        return Facts(True, 1, 2)
    limit = 1 << (kind.width - (kind.kind == "int"))
    if facts.nonneg and facts.bound is not None and facts.bound <= limit:
        return facts
    divisor = min(low_bit(facts), limit)
    bits = None if facts.bits is None else facts.bits & ((1 << kind.width) - 1)
    if bits is not None and bits < limit:
        return Facts(True, divisor, bits + 1, None, bits)
    return Facts(kind.kind == "uint", divisor, None)


def converted(facts: Facts, source: ScalarType, to: ScalarType) -> Facts:
    """The facts of a number of type ``source`` as one of type ``to``."""
    signed = source.kind == "int"
    if to.kind == "int" and (to.width > source.width or (signed and to.width == source.width)):
        return facts
    if (facts.nonneg or not signed) and facts.bound is None:
        facts = facts._replace(nonneg=True, bound=1 << (source.width - signed))
    return cut(facts, to)


def result(opcode: str, a: Facts, b: Facts, kind: ScalarType) -> tuple[Facts, bool]:
    """The facts of ``opcode(a, b)`` of type ``kind``, and whether what is known of the operands proves that C++ leaves
    nothing undefined: no overflow, no shift by the width or more. Where they do not, only what survives a wrap-around
    is known: powers of two that divide.

    >>> from tilewright.ir.types import I32
    >>> result("mul", Facts(True, 1, 1024), of_number(12), I32)
    (Facts(nonneg=True, divisibility=12, bound=12277, exact=None, bits=16380), True)
    >>> result("mul", Facts(True, 1, None), of_number(12), I32)
    (Facts(nonneg=False, divisibility=4, bound=None, exact=None, bits=None), False)
    """
    facts = combine(opcode, a, b)
    if kind.kind == "bool":
        return cut(facts, kind), True
    if opcode in ("shl", "shr") and not (b.nonneg and b.bound is not None and b.bound <= kind.width):
        return (facts if opcode == "shr" else cut(facts, kind)), False
    (low_a, high_a), (low_b, high_b) = span(a, kind), span(b, kind)
    if opcode == "add":
        ends = (low_a + low_b, high_a + high_b)
    elif opcode == "sub":
        ends = (low_a - high_b, high_a - low_b)
    elif opcode in ("mul", "shl"):
        if opcode == "shl":
            low_b, high_b = 1 << low_b, 1 << high_b
        products = (low_a * low_b, low_a * high_b, high_a * low_b, high_a * high_b)
        ends = (min(products), max(products))
    else:
        return facts, True
    low, high = limits(kind)
    fits = low <= ends[0] and ends[1] <= high
    return (facts if fits else cut(facts, kind)), fits or opcode == "shl"


def limits(kind: ScalarType) -> tuple[int, int]:
    """The least and the greatest number of an integer type."""
    low = -(1 << (kind.width - 1)) if kind.kind == "int" else 0
    return low, low + (1 << kind.width) - 1


def span(facts: Facts, kind: ScalarType) -> tuple[int, int]:
    """The least and the greatest that a number of type ``kind`` can be."""
    if facts.exact is not None:
        return facts.exact, facts.exact
    low, high = limits(kind)
    return 0 if facts.nonneg else low, high if facts.bound is None else min(high, facts.bound - 1)


def combine(opcode: str, a: Facts, b: Facts) -> Facts:
    """The facts of ``opcode(a, b)`` on whole numbers, as if no type had an end."""
    rule = _RULES.get(opcode)
    if rule is None:
        return UNKNOWN
    facts = rule(a, b)
    bits = _bits(opcode, a, b, facts)
    if bits is None:
        return facts
    bound = bits + 1 if facts.bound is None else min(facts.bound, bits + 1)
    return facts._replace(nonneg=True, bits=bits, bound=bound)


def _bits(opcode: str, a: Facts, b: Facts, result: Facts) -> int | None:
    """The mask of the bits that the result may have; None where it may be negative. ``result``: the other facts."""
    x, y = possible_bits(a), possible_bits(b)
    if opcode == "and":  # one operand that is not negative suffices
        return y if x is None else x if y is None else x & y
    if x is None or y is None:
        return None
    if opcode in ("or", "xor", "min", "max") or (opcode == "add" and x & y == 0):
        return x | y
    literal = b.exact
    if literal is None:
        return possible_bits(result)
    if opcode in ("shl", "shr") and 0 <= literal < 32:
        return x << literal if opcode == "shl" else x >> literal
    if literal > 0 and literal & (literal - 1) == 0:  # a power of two
        log2 = literal.bit_length() - 1
        if opcode == "mul":
            return x << log2
        if opcode in ("div", "floordiv"):
            return x >> log2
        if opcode in ("rem", "floormod"):
            return x & (literal - 1)
    return possible_bits(result)


def join(a: Facts, b: Facts) -> Facts:
    """The facts that hold of a value that is one or the other."""
    bound = None if a.bound is None or b.bound is None else max(a.bound, b.bound)
    x, y = possible_bits(a), possible_bits(b)
    bits = None if x is None or y is None else x | y
    return Facts(a.nonneg and b.nonneg, math.gcd(a.divisibility, b.divisibility), bound, None, bits)


def _add(a: Facts, b: Facts) -> Facts:
    bound = None if a.bound is None or b.bound is None else a.bound + b.bound - 1
    return Facts(a.nonneg and b.nonneg, math.gcd(a.divisibility, b.divisibility), bound)


def _sub(a: Facts, b: Facts) -> Facts:
    return Facts(False, math.gcd(a.divisibility, b.divisibility), a.bound if b.nonneg else None)


def _mul(a: Facts, b: Facts) -> Facts:
    nonneg = a.nonneg and b.nonneg
    bounded = nonneg and a.bound is not None and b.bound is not None and a.bound > 0 and b.bound > 0
    bound = (a.bound - 1) * (b.bound - 1) + 1 if bounded else None  # type: ignore[operator]  # ints where bounded
    for number, other in ((a.exact, b), (b.exact, a)):
        if number is not None and number > 0 and other.bound is not None:
            bound = (other.bound - 1) * number + 1
    product = a.divisibility * b.divisibility
    return Facts(nonneg, product if product <= LARGE else math.gcd(product, LARGE), bound)


def _div(a: Facts, b: Facts) -> Facts:
    exact = b.exact if b.exact and b.exact > 0 else None
    divisibility = a.divisibility // exact if exact and a.divisibility % exact == 0 else 1
    nonneg = a.nonneg and b.nonneg
    bound = a.bound if nonneg else None
    if nonneg and exact and a.bound is not None:
        bound = (a.bound - 1) // exact + 1
    return Facts(nonneg, divisibility, bound)


def _rem(a: Facts, b: Facts) -> Facts:
    nonneg = b.nonneg
    bounds = [f.bound - less for f, less in ((a, 0), (b, 1)) if f.nonneg and f.bound is not None]
    bound = min(bounds, default=None) if nonneg else None
    return Facts(nonneg, math.gcd(a.divisibility, b.divisibility), bound)


def _truncated_rem(a: Facts, b: Facts) -> Facts:
    return _rem(a, b) if a.nonneg else Facts(False, math.gcd(a.divisibility, b.divisibility), None)


def _and(a: Facts, b: Facts) -> Facts:
    bounds = [f.bound for f in (a, b) if f.nonneg and f.bound is not None]
    power = max(a.divisibility & -a.divisibility, b.divisibility & -b.divisibility)
    return Facts(a.nonneg or b.nonneg, power, min(bounds, default=None))


def _or(a: Facts, b: Facts) -> Facts:
    nonneg = a.nonneg and b.nonneg
    bound = None
    if nonneg and a.bound is not None and b.bound is not None:
        bound = 1 << (max(a.bound, b.bound, 1) - 1).bit_length()
    return Facts(nonneg, min(a.divisibility & -a.divisibility, b.divisibility & -b.divisibility), bound)


def _min(a: Facts, b: Facts) -> Facts:
    bounds = [f.bound for f in (a, b) if f.bound is not None]
    return Facts(a.nonneg and b.nonneg, math.gcd(a.divisibility, b.divisibility), min(bounds, default=None))


def _max(a: Facts, b: Facts) -> Facts:
    return join(a, b)._replace(nonneg=a.nonneg or b.nonneg)


def _shl(a: Facts, b: Facts) -> Facts:
    amount = b.exact
    return _mul(a, of_number(1 << amount)) if amount and 0 < amount < 31 else Facts(a.nonneg, a.divisibility, None)


def _shr(a: Facts, b: Facts) -> Facts:
    amount = b.exact
    if amount and 0 < amount < 31:
        return _div(a, of_number(1 << amount))
    return Facts(a.nonneg, 1, a.bound if a.nonneg else None)


_RULES = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
    "floordiv": _div,
    "rem": _truncated_rem,
    "floormod": _rem,
    "and": _and,
    "or": _or,
    "xor": _or,
    "min": _min,
    "max": _max,
    "shl": _shl,
    "shr": _shr,
}
