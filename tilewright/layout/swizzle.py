"""Swizzles: bijections of offsets that XOR some bits onto others.

``Swizzle(B, M, S)`` leaves the ``M`` lowest bits alone and XORs the ``B`` bits ``S`` places above onto the ``B`` bits
above them::

    offset   ....YYY...ZZZ....        Y: B bits at M+S      Z: B bits at M
    result   ....YYY...AAA....        A = Z ^ Y

With a negative shift the lower bits are XORed onto the higher ones. ``|S| >= B`` keeps Y and Z apart, hence a swizzle
is its own inverse. In a row-major tile it permutes chunks of ``2**M`` elements within a row by the row number.
"""

from __future__ import annotations

from typing import Any

from tilewright.errors import LayoutError
from tilewright.layout.composed import ComposedLayout
from tilewright.layout.layout import Layout


class Swizzle:
    """``Sw<B,M,S>`` as a function of ints, NumPy arrays or run-time ints.

    >>> swizzle = Swizzle(2, 0, 3)
    >>> swizzle, [swizzle(i) for i in (1, 8, 9, 24)], swizzle(swizzle(25))
    (Sw<2,0,3>, [1, 9, 8, 27], 25)
    """

    __slots__ = ("base", "bits", "shift")

    def __init__(self, bits: int, base: int, shift: int | None = None) -> None:
        shift = bits if shift is None else shift
        if bits < 0 or base < 0 or abs(shift) < bits:
            raise LayoutError(f"Sw<{bits},{base},{shift}>: needs B >= 0, M >= 0 and |S| >= B")
        self.bits, self.base, self.shift = bits, base, shift

    @property
    def yyy_mask(self) -> int:
        """The source bits."""
        return ((1 << self.bits) - 1) << (self.base + max(0, self.shift))

    @property
    def zzz_mask(self) -> int:
        """The bits that change."""
        return ((1 << self.bits) - 1) << (self.base - min(0, self.shift))

    num_bits = property(lambda self: self.bits)
    num_base = property(lambda self: self.base)
    num_shift = property(lambda self: self.shift)

    def __call__(self, offset: Any) -> Any:
        if self.bits == 0:
            return offset
        y = offset & self.yyy_mask
        return offset ^ (y >> self.shift if self.shift >= 0 else y << -self.shift)

    def merge(self, other: Swizzle) -> Swizzle:
        """``self o other`` of two swizzles of one shift, as a single swizzle.

        >>> Swizzle(1, 4, 3).merge(Swizzle(1, 5, 3))
        Sw<2,4,3>
        """
        if self.shift != other.shift:
            raise LayoutError(f"composition({self}, {other}): only swizzles of the same shift merge")
        return swizzle_of_masks(self.yyy_mask ^ other.yyy_mask, self.zzz_mask ^ other.zzz_mask)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Swizzle):
            return NotImplemented
        return (self.bits, self.base, self.shift) == (other.bits, other.base, other.shift)

    def __hash__(self) -> int:
        return hash((self.bits, self.base, self.shift))

    def __repr__(self) -> str:
        return f"Sw<{self.bits},{self.base},{self.shift}>"


def make_swizzle(b: int, m: int, s: int) -> Swizzle:
    """``Sw<b,m,s>``.

    >>> make_swizzle(3, 4, 3)
    Sw<3,4,3>
    """
    return Swizzle(b, m, s)


def swizzle_of_masks(y: int, z: int) -> Swizzle:
    """The swizzle that XORs the bits in mask ``y`` onto the bits in mask ``z``.

    >>> swizzle_of_masks(0b11000000, 0b00000110)
    Sw<2,1,5>
    """
    if y == 0 and z == 0:
        return Swizzle(0, 0, 0)
    low_y, low_z = (y & -y).bit_length() - 1, (z & -z).bit_length() - 1
    bits = y.bit_count()
    if bits == z.bit_count() and abs(low_y - low_z) >= bits:
        swizzle = Swizzle(bits, min(low_y, low_z), low_y - low_z)
        if swizzle.yyy_mask == y and swizzle.zzz_mask == z:
            return swizzle
    raise LayoutError(f"no swizzle has the source bits {y:#b} and the target bits {z:#b}")


def compose_swizzle(lhs: Any, rhs: Swizzle) -> ComposedLayout:
    """``layout o swizzle`` with the swizzle moved to the left: possible when the layout moves its bits as a whole."""
    if not isinstance(lhs, Layout):
        raise LayoutError(f"composition({lhs}, {rhs}): only a plain layout can be composed with a swizzle")
    try:
        moved = swizzle_of_masks(lhs(rhs.yyy_mask), lhs(rhs.zzz_mask))
    except LayoutError as error:
        raise LayoutError(f"composition({lhs}, {rhs}): {error}") from None
    return ComposedLayout(moved, 0, lhs)


def get_swizzle_portion(layout: Any) -> Swizzle:
    """The swizzle of a swizzled layout; the identity ``Sw<0,4,3>`` for a plain one."""
    inner = getattr(layout, "inner", None)
    return inner if isinstance(inner, Swizzle) else Swizzle(0, 4, 3)


def get_nonswizzle_portion(layout: Any) -> Any:
    """The layout below the swizzle."""
    return layout.outer if isinstance(layout, ComposedLayout) else layout
