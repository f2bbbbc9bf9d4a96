"""A run-time int for eager use: a named unknown that writes its own arithmetic down.

It lets the algebra be tried and tested with unknown extents outside any kernel: expressions are kept as a rational
multiple of a product of unknowns, so that ``(m*4)//4`` is ``m`` again, and everything else becomes a new unknown with
a readable name. :meth:`SymbolicInt.substitute` puts numbers in.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from tilewright.errors import LayoutError
from tilewright.layout.ints import IntLike, RuntimeInt

Env = Mapping[str, int]


class _Unknown:
    """One opaque factor: its text, a known divisor, and how to compute it."""

    __slots__ = ("divisor", "evaluate", "text")

    def __init__(self, text: str, divisor: int, evaluate: Callable[[Env], int]) -> None:
        self.text, self.divisor, self.evaluate = text, divisor, evaluate


class SymbolicBool:
    """A comparison of unknowns: it has text and a value under a substitution, but no truth value now."""

    __slots__ = ("evaluate", "text")

    def __init__(self, text: str, evaluate: Callable[[Env], bool]) -> None:
        self.text, self.evaluate = text, evaluate

    def __bool__(self) -> bool:
        raise LayoutError(f"{self.text} is known only at run time: it cannot decide a Python `if`")

    def __and__(self, other: Any) -> Any:
        if isinstance(other, bool):
            return self if other else False
        return SymbolicBool(f"{self.text} & {other.text}", lambda env: self.evaluate(env) and other.evaluate(env))

    __rand__ = __and__

    def substitute(self, env: Env) -> bool:
        return self.evaluate(env)

    def __repr__(self) -> str:
        return self.text


class SymbolicInt(RuntimeInt):
    """A named run-time int with an optional known divisor.

    >>> m = SymbolicInt("m", divisibility=8)
    >>> m * 4, (m * 4) // 4, m + 0, m * 0, m // 8, (m + 1) % 4
    (4*m, m, m, 0, m//8, (m+1)%4)
    >>> ((m * 3 + 5) // 2).substitute({"m": 16})
    26
    """

    __slots__ = ("coefficient", "divisibility", "factors")
    coefficient: Fraction
    factors: tuple[_Unknown, ...]

    def __init__(self, name: str, divisibility: int = 1) -> None:
        self._set(Fraction(1), (_Unknown(name, divisibility, lambda env: env[name]),))

    def _set(self, coefficient: Fraction, factors: tuple[_Unknown, ...]) -> None:
        self.coefficient, self.factors = coefficient, factors
        divisor = coefficient * math.prod(f.divisor for f in factors)
        self.divisibility = max(1, abs(divisor.numerator) // divisor.denominator if divisor.denominator == 1 else 1)

    @staticmethod
    def _make(coefficient: Fraction, factors: tuple[_Unknown, ...]) -> IntLike:
        if coefficient == 0 or not factors:
            return int(coefficient)
        new = object.__new__(SymbolicInt)
        new._set(coefficient, tuple(sorted(factors, key=lambda f: f.text)))
        return new

    @staticmethod
    def _opaque(text: str, divisor: int, evaluate: Callable[[Env], int]) -> IntLike:
        return SymbolicInt._make(Fraction(1), (_Unknown(text, max(1, divisor), evaluate),))

    def with_divisibility(self, divby: int) -> SymbolicInt:
        new = SymbolicInt(str(self), math.lcm(self.divisibility, divby))
        new.factors[0].evaluate = self.substitute
        return new

    def substitute(self, env: Env) -> int:
        """The value when every named unknown has the value that ``env`` gives it."""
        value = self.coefficient * math.prod(f.evaluate(env) for f in self.factors)
        if value.denominator != 1:
            raise LayoutError(f"{self} is not whole for {dict(env)}: a promised divisor does not hold")
        return int(value)

    def is_same(self, other: object) -> bool:
        same = isinstance(other, SymbolicInt) and self.coefficient == other.coefficient
        return same and self._keys() == other._keys()  # type: ignore[attr-defined]  # of the same class

    def _keys(self) -> list[str]:
        return [f.text for f in self.factors]

    def known_quotient(self, other: IntLike) -> IntLike | None:
        if isinstance(other, int):
            ratio = self.coefficient / other
            return self._make(ratio, self.factors) if ratio.denominator == 1 else None
        if not isinstance(other, SymbolicInt):
            return None
        rest = list(self.factors)
        for factor in other.factors:
            match = next((f for f in rest if f.text == factor.text), None)
            if match is None:
                return None
            rest.remove(match)
        ratio = self.coefficient / other.coefficient
        whole = (ratio * math.prod(f.divisor for f in rest)).denominator == 1
        return self._make(ratio, tuple(rest)) if whole else None

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, int | SymbolicInt):
            return NotImplemented
        if isinstance(other, SymbolicInt) and self._keys() == other._keys():
            return self._make(self.coefficient + other.coefficient, self.factors)
        if isinstance(other, int) and other == 0:
            return self
        divisor = math.gcd(self.divisibility, abs(other) if isinstance(other, int) else other.divisibility)
        return self._opaque(f"({self}{_signed(other)})", divisor, lambda env: self.substitute(env) + _value(other, env))

    __radd__ = __add__

    def __neg__(self) -> Any:
        return self._make(-self.coefficient, self.factors)

    def __sub__(self, other: Any) -> Any:
        return self + (-other)

    def __rsub__(self, other: Any) -> Any:
        return (-self) + other

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, int):
            return self._make(self.coefficient * other, self.factors)
        if isinstance(other, SymbolicInt):
            return self._make(self.coefficient * other.coefficient, self.factors + other.factors)
        return NotImplemented

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        if isinstance(other, int) and other and self.divisibility % other == 0:
            return self._make(self.coefficient / other, self.factors)
        exact = self.known_quotient(other)
        return self._binary("//", other, lambda a, b: a // b) if exact is None else exact

    def __rfloordiv__(self, other: Any) -> Any:
        return self._opaque(f"{other}//{self._tight()}", 1, lambda env: _value(other, env) // self.substitute(env))

    def __mod__(self, other: Any) -> Any:
        if isinstance(other, int) and other and self.divisibility % other == 0:
            return 0
        if self.known_quotient(other) is not None or self.is_same(other):
            return 0
        return self._binary("%", other, lambda a, b: a % b)

    def __rmod__(self, other: Any) -> Any:
        return self._opaque(f"{other}%{self._tight()}", 1, lambda env: _value(other, env) % self.substitute(env))

    def __and__(self, other: Any) -> Any:
        return self._binary("&", other, lambda a, b: a & b)

    def __xor__(self, other: Any) -> Any:
        return self._binary("^", other, lambda a, b: a ^ b)

    def __rshift__(self, other: Any) -> Any:
        return self._binary(">>", other, lambda a, b: a >> b)

    def __lshift__(self, other: int) -> Any:
        return self * (1 << other)

    def _binary(self, op: str, other: Any, function: Callable[[int, int], int]) -> Any:
        right = other._tight() if isinstance(other, SymbolicInt) else other
        return self._opaque(
            f"{self._tight()}{op}{right}", 1, lambda env: function(self.substitute(env), _value(other, env))
        )

    def _tight(self) -> str:
        return str(self) if self.coefficient == 1 and len(self.factors) == 1 else f"({self})"

    def __repr__(self) -> str:
        names = "*".join(self._keys())
        if self.coefficient.numerator != 1:
            names = f"{self.coefficient.numerator}*{names}"
        return names if self.coefficient.denominator == 1 else f"{names}//{self.coefficient.denominator}"


def _comparison(op: str, function: Callable[[int, int], bool]) -> Callable[[SymbolicInt, Any], Any]:
    def compare(self: SymbolicInt, other: Any) -> SymbolicBool:
        return SymbolicBool(f"{self}{op}{other}", lambda env: function(self.substitute(env), _value(other, env)))

    return compare


for _name, _op in {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}.items():
    setattr(SymbolicInt, f"__{_name}__", _comparison(_op, getattr(operator, _name)))


def _value(x: IntLike, env: Env) -> int:
    return x.substitute(env) if isinstance(x, SymbolicInt) else x  # type: ignore[return-value]  # else an int


def _signed(x: IntLike) -> str:
    text = str(x)
    return text if text.startswith("-") else f"+{text}"
