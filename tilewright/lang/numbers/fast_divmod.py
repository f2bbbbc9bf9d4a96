"""Division by a number of the run time that serves many divisions: by a multiplication and a shift."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tilewright.errors import ConstraintError
from tilewright.ir.core import Value
from tilewright.ir.types import I32, U32, Type
from tilewright.lang.numbers.facts import Facts
from tilewright.lang.numbers.numeric import Float32, Int32, Integer, Numeric, Uint32, Uint64, as_numeric, unwrap, wrap
from tilewright.lang.numbers.operators import select

LARGEST = (1 << 31) - 1


class _Reciprocal(NamedTuple):
    """``x // d`` is ``x * multiplier >> 31 >> shift`` for ``0 <= x < 2**31``: ``shift`` is the logarithm of ``d``,
    rounded up, and ``multiplier`` is ``2**(31 + shift) / d``, rounded up (Granlund and Montgomery, "Division by
    Invariant Integers using Multiplication", 1994). Both fit in 32 bits for every ``d``, 1 and ``2**31 - 1`` too."""

    multiplier: Any
    shift: Any


class FastDivmodDivisor:
    """A divisor, 1 to ``2**31 - 1``, of integers from 0 to ``2**31 - 1``.

    ``divmod(x, divisor)``, ``x // divisor`` and ``x % divisor`` give Int32. A number of the run time is prepared where
    the object is made: in the host function, once for all threads, where that is passed on to kernels. A divisor that
    is known while staging (a Python int) needs no preparation. ``is_power_of_2=True`` promises that it is one, and
    divides by a shift. Raises ConstraintError where a known number is outside of its range.

    >>> divmod(Int32(17), FastDivmodDivisor(5)), Int32(17) // FastDivmodDivisor(Int32(5))
    ((Int32(3), Int32(2)), Int32(3))
    """

    __slots__ = ("_reciprocal", "divisor", "is_power_of_2")
    __carry_immutable__ = True

    def __init__(self, divisor: Any, is_power_of_2: bool | None = None, *, loc: Any = None, ip: Any = None) -> None:
        number = unwrap(divisor)
        if not isinstance(number, (int, Integer)) or isinstance(number, bool):
            raise ConstraintError(f"FastDivmodDivisor({divisor!r}): a divisor is an integer")
        is_static = isinstance(number, int)
        if is_static and not 1 <= number <= LARGEST:
            raise ConstraintError(f"FastDivmodDivisor({number}): a divisor is 1 to 2**31 - 1")
        if is_static and is_power_of_2 and number & (number - 1):
            raise ConstraintError(f"FastDivmodDivisor({number}, is_power_of_2=True): {number} is not a power of two")
        self.divisor: Any = number
        self.is_power_of_2 = is_power_of_2
        if is_static:
            self._reciprocal = None
            return
        self.divisor = Int32(number).assume_nonneg()
        self.divisor.require(self.divisor > 0, "FastDivmodDivisor: the divisor must be greater than 0")
        if is_power_of_2:
            power = (self.divisor & (self.divisor - 1)) == 0
            self.divisor.require(power, "FastDivmodDivisor: is_power_of_2=True, but the divisor is not a power of two")
        self._reciprocal = _reciprocal(self.divisor, bool(is_power_of_2))

    def divmod(self, dividend: Any, *, loc: Any = None, ip: Any = None) -> tuple[Any, Any]:
        """(quotient, remainder) of ``dividend``."""
        x = as_numeric(dividend)
        if not isinstance(x, Integer) or x.width > 32:
            raise ConstraintError(
                f"a {type(x).__name__} is divided by a FastDivmodDivisor: it divides integers of up to 32 bits, "
                "0 to 2**31 - 1; for others use // and % with the divisor itself"
            )
        if x.is_static and not 0 <= x.value <= LARGEST:
            raise ConstraintError(f"{x.value} is divided by a FastDivmodDivisor: it divides 0 to 2**31 - 1")
        number: Any = Int32(x)
        number.require(number >= 0, "a FastDivmodDivisor divides numbers from 0 to 2**31 - 1")
        quotient = self._quotient(number.assume_nonneg(x.facts.bound))
        return quotient, number - quotient * self.divisor

    def _quotient(self, x: Any) -> Any:
        if self._reciprocal is None:
            return Int32(x // self.divisor)
        multiplier, shift = self._reciprocal
        if self.is_power_of_2:
            return x >> shift
        wide = Uint64(Uint32(x))  # without a sign: the product of 64 bits is one instruction, not three
        high = Uint32((wide * Uint64(multiplier)) >> 31)
        return Int32(high >> Uint32(shift)).assume_nonneg(x.facts.bound)

    def __rdivmod__(self, dividend: Any) -> tuple[Any, Any]:
        return self.divmod(dividend)

    def __rfloordiv__(self, dividend: Any) -> Any:
        return self.divmod(dividend)[0]

    def __rmod__(self, dividend: Any) -> Any:
        return self.divmod(dividend)[1]

    @property
    def _divisor(self) -> Value:
        """The preparation as one value. Libraries derive classes that carry it, beside the divisor itself, through a
        protocol of their own."""
        if self._reciprocal is None:
            reciprocal = _reciprocal_of(self.divisor)
        elif self.is_power_of_2:  # by a shift; the same quotients as by a multiplication
            reciprocal = _Reciprocal(Uint32(1 << 31), self._reciprocal.shift)
        else:
            reciprocal = self._reciprocal
        return (Uint64(reciprocal.multiplier) | Uint64(reciprocal.shift) << 32).ir_value()

    @_divisor.setter
    def _divisor(self, value: Value) -> None:
        packed = wrap(value)
        self.is_power_of_2 = False
        self._reciprocal = _Reciprocal(Uint32(packed), wrap(Int32(packed >> 32).ir_value(), Facts(True, 1, 32)))

    # -- the protocol --------------------------------------------------------------------------------------------

    def __extract_mlir_values__(self) -> list[Value]:
        return [x.ir_value() for x in self._numbers()]

    def __new_from_mlir_values__(self, values: list[Value]) -> FastDivmodDivisor:
        if self._reciprocal is None:
            return self
        made = object.__new__(FastDivmodDivisor)
        made.is_power_of_2 = self.is_power_of_2
        made.divisor = wrap(values[0], Facts(True))
        made._reciprocal = _Reciprocal(wrap(values[1]), wrap(values[2], Facts(True, 1, 32)))
        return made

    def __get_mlir_types__(self) -> list[Type]:
        return [] if self._reciprocal is None else [I32, U32, I32]

    def __carry_key__(self) -> Any:
        return (self.is_power_of_2, self.divisor if self._reciprocal is None else None)

    def __as_one_value__(self) -> list[Value]:
        """The divisor and the multiplier as one value: what ``extract_mlir_values`` gives to programs, which take the
        values of several objects apart by hand and count one for a divisor."""
        if self._reciprocal is None:
            return []
        return [(Uint64(Uint32(self.divisor)) | Uint64(self._reciprocal.multiplier) << 32).ir_value()]

    def __of_one_value__(self, values: Sequence[Value]) -> FastDivmodDivisor:
        if self._reciprocal is None:
            return self
        packed = wrap(values[0])
        divisor, multiplier = Int32(packed).assume_nonneg(), Uint32(packed >> 32)
        below = divisor - 1
        # Without the bit below each bit it rounds to no higher power of two: the exponent is that of its first bit.
        exponent = Float32(below & ~(below >> 1)).bitcast(Int32) >> 23
        shift = select(exponent > 126, exponent - 126, Int32(0))
        return self.__new_from_mlir_values__([x.ir_value() for x in (divisor, multiplier, shift)])

    def _numbers(self) -> list[Numeric]:
        return [] if self._reciprocal is None else [self.divisor, *self._reciprocal]

    def __repr__(self) -> str:
        return f"FastDivmodDivisor({self.divisor})"


def _reciprocal_of(divisor: int) -> _Reciprocal:
    """The reciprocal of a number known while staging."""
    shift = (divisor - 1).bit_length()
    return _Reciprocal(-(-(1 << 31 + shift) // divisor), shift)


def _reciprocal(divisor: Any, power: bool) -> _Reciprocal:
    shift: Any = Int32(0)
    for k in range(31):
        shift = shift + Int32(divisor > (1 << k))
    if power:
        return _Reciprocal(Uint32(0), shift)
    whole = Uint64(1) << (Uint64(shift) + 31)
    return _Reciprocal(Uint32((whole + Uint64(divisor) - 1) // Uint64(divisor)), shift)


def fast_divmod_create_divisor(divisor: Any, *, loc: Any = None, ip: Any = None) -> FastDivmodDivisor:
    """:class:`FastDivmodDivisor` of ``divisor``.

    >>> Int32(17) % fast_divmod_create_divisor(5)
    Int32(2)
    """
    return FastDivmodDivisor(divisor)
