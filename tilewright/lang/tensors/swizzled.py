"""Addresses under a swizzle: ``swizzle(run-time part + static part)`` with the fewest ops.

A swizzle moves bits ``[M+S, M+S+B)`` of an offset down by ``S`` and xors them in. Hence

- multiples of ``2**(M+S+B)`` pass through it, and the ``M`` lowest bits do too: both stay outside the xor;
- where the static part has no bit in common with the run-time part, the sum is an xor and the swizzle splits:
  ``sw(d + s) = sw(d) ^ sw(s)``, so that all offsets of a thread share one ``sw(d)``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tilewright.errors import ConstraintError
from tilewright.ir.builder import Builder
from tilewright.lang.numbers.facts import low_bit, possible_bits
from tilewright.lang.numbers.numeric import Integer, unwrap


class SwizzleBits(NamedTuple):
    """The three numbers of a swizzle: ``bits`` to move, ``base`` low bits to keep, signed ``shift``."""

    bits: int
    base: int
    shift: int

    @property
    def span(self) -> int:
        """The swizzle permutes blocks of this many units among themselves."""
        return 1 << (self.bits + self.base + abs(self.shift))

    def of(self, x: Any) -> Any:
        """The swizzled offset of ``x``, an int or a run-time integer."""
        if not self.bits:
            return x
        low = ((1 << self.bits) - 1) << self.base
        if self.shift >= 0:
            return x ^ ((x & (low << self.shift)) >> self.shift)
        return x ^ ((x & low) << -self.shift)

    def in_units(self, size: int) -> SwizzleBits:
        """The same swizzle on offsets counted in units ``size`` times as large."""
        base = self.base - (size.bit_length() - 1)
        if size & (size - 1) or base < 0:
            raise ConstraintError(f"the swizzle {self} on bytes breaks up elements of {size} bytes")
        return SwizzleBits(self.bits, base, self.shift)

    def of_units(self, size: int) -> SwizzleBits:
        """A swizzle on units of ``size`` bytes as one on bytes."""
        if size & (size - 1):
            raise ConstraintError(f"the swizzle {self} needs elements of a power of two of bytes, not {size}")
        return SwizzleBits(self.bits, self.base + size.bit_length() - 1, self.shift)

    def in_elements(self, bits: int) -> SwizzleBits:
        """The same swizzle on offsets in elements that take ``bits`` each."""
        if bits % 8 == 0:
            return self.in_units(bits // 8)
        if 8 % bits:
            raise ConstraintError(f"the swizzle {self} on bytes breaks up elements of {bits} bits")
        return SwizzleBits(self.bits, self.base + (8 // bits).bit_length() - 1, self.shift)

    def of_elements(self, bits: int) -> SwizzleBits:
        """A swizzle of offsets in elements that take ``bits`` each as one on bytes."""
        if bits % 8 == 0:
            return self.of_units(bits // 8)
        if 8 % bits or 1 << self.base < 8 // bits:
            raise ConstraintError(f"the swizzle {self} on elements of {bits} bits breaks up bytes")
        return SwizzleBits(self.bits, self.base - (8 // bits).bit_length() + 1, self.shift)

    def __str__(self) -> str:
        return f"S<{self.bits},{self.base},{self.shift}>"


def bits_of(swizzle: Any) -> SwizzleBits:
    """The numbers of a :class:`tilewright.layout.Swizzle`."""
    return SwizzleBits(swizzle.num_bits, swizzle.num_base, swizzle.num_shift)


def split(swizzle: SwizzleBits, dynamic: Any, static: int) -> tuple[Any, int]:
    """``sw(dynamic + static)`` as (run-time part, static part to add); the run-time part may be the int 0."""
    dynamic = unwrap(dynamic)
    if isinstance(dynamic, int):
        return 0, swizzle.of(dynamic + static)
    whole, static = static // swizzle.span * swizzle.span, static % swizzle.span
    if not _disjoint(dynamic, static):
        keep = (1 << swizzle.base) - 1  # the bits below the base pass through if they cannot carry
        low = static & keep if _disjoint(dynamic, static & keep) else 0
        return swizzle.of(dynamic + (static - low)), whole + low
    image, moved = swizzle.of(static), _moved(swizzle, dynamic)
    low = image & ~_bits_in(moved)  # where sw(dynamic) is zero, xor is addition
    return (moved ^ (image - low)) if image != low else moved, whole + low


def _moved(swizzle: SwizzleBits, dynamic: Integer) -> Any:
    """``sw(dynamic)``, computed once in a block of ops: every address of a partition asks for it."""
    builder = Builder.current()
    key = builder.block, dynamic.value, dynamic.facts, swizzle
    if key not in builder.swizzled:
        builder.swizzled[key] = swizzle.of(dynamic)
    return builder.swizzled[key]


def _disjoint(dynamic: Integer, static: int) -> bool:
    """Whether ``dynamic + static`` provably has no carry, for ``static >= 0``."""
    return _bits_in(dynamic) & static == 0


def _bits_in(x: Integer) -> int:
    """The bits that may be set in a run-time integer; negative when only its divisor is known."""
    bits = possible_bits(x.facts)
    return -low_bit(x.facts) if bits is None else bits
