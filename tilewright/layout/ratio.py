"""Exact fractions of two ints, as CuTe writes them where a division has a remainder."""

from __future__ import annotations

import math
from typing import Any


class Ratio:
    """``numerator / denominator``, not reduced until it is asked for.

    >>> Ratio(1, 2) * Ratio(3, 4), 5 * Ratio(2, 3), str(Ratio(6, 4)), Ratio(6, 4).reduced()
    (Ratio(3, 8), Ratio(10, 3), '6/4', Ratio(3, 2))
    >>> Ratio(4, 2).is_integral(), Ratio(3, 2).to(float), Ratio(3, 2).to(int)
    (True, 1.5, 1)

    Raises TypeError where a part is not an int, ZeroDivisionError for a denominator of 0.
    """

    __slots__ = ("denominator", "numerator")

    def __init__(self, numerator: int, denominator: int) -> None:
        for part in (numerator, denominator):
            if isinstance(part, bool) or not isinstance(part, int):
                raise TypeError(f"Ratio({numerator!r}, {denominator!r}): both parts are ints")
        if not denominator:
            raise ZeroDivisionError(f"Ratio({numerator}, 0)")
        self.numerator, self.denominator = numerator, denominator

    def is_integral(self) -> bool:
        """Whether it is a whole number."""
        return self.numerator % self.denominator == 0

    def reduced(self) -> Ratio:
        """The same number in lowest terms."""
        common = math.gcd(self.numerator, self.denominator) * (1 if self.denominator > 0 else -1)
        return Ratio(self.numerator // common, self.denominator // common)

    def to(self, dtype: Any) -> Any:
        """As ``Ratio``, ``float`` or ``int`` (rounded down)."""
        if dtype is Ratio:
            return self
        if dtype is float:
            return self.numerator / self.denominator
        if dtype is int:
            return self.numerator // self.denominator
        raise TypeError(f"a Ratio becomes a Ratio, a float or an int, not {dtype!r}")

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Ratio):
            return Ratio(self.numerator * other.numerator, self.denominator * other.denominator)
        return Ratio(self.numerator * other, self.denominator) if isinstance(other, int) else NotImplemented

    __rmul__ = __mul__

    def __neg__(self) -> Ratio:
        return Ratio(-self.numerator, self.denominator)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Ratio):
            return self.numerator * other.denominator == other.numerator * self.denominator
        return isinstance(other, int) and self.numerator == other * self.denominator

    def __hash__(self) -> int:
        lowest = self.reduced()
        return hash(lowest.numerator if lowest.denominator == 1 else (lowest.numerator, lowest.denominator))

    def __str__(self) -> str:
        return f"{self.numerator}/{self.denominator}"

    def __repr__(self) -> str:
        return f"Ratio({self.numerator}, {self.denominator})"
