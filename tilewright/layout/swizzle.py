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
from tilewright.layout.tuples import flatten_to_tuple, product


class Swizzle:
    """``Sw<B,M,S>`` as a function of ints, NumPy arrays or run-time ints.

    >>> swizzle = Swizzle(2, 0, 3)
    >>> swizzle, [swizzle(i) for i in (1, 8, 9, 24)], swizzle(swizzle(25))
    (Sw<2,0,3>, [1, 9, 8, 27], 25)
    """

    __slots__ = ("base", "bits", "shift")

    def __init__(self, bits: int, base: int, shift: int | None = None) -> None:
        shift = bits if shift is None else shift
        if not all(isinstance(x, int) for x in (bits, base, shift)):
            raise LayoutError(f"Sw<{bits},{base},{shift}>: B, M and S are ints")
        if bits < 0 or base < 0 or abs(shift) < bits:
            raise LayoutError(f"Sw<{bits},{base},{shift}>: needs B >= 0, M >= 0 and |S| >= B")
        if base + bits + abs(shift) > 128:
            raise LayoutError(f"Sw<{bits},{base},{shift}>: addresses do not have that many bits")
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

    def __call__(self, offset: Any, *, loc: Any = None, ip: Any = None) -> Any:
        if self.bits == 0:
            return offset
        y = offset & self.yyy_mask
        return offset ^ (y >> self.shift if self.shift >= 0 else y << -self.shift)

    def reach(self, count: int) -> int:
        """How many offsets from 0 on hold what the swizzle makes of the first ``count``.

        >>> Swizzle(3, 3, 3).reach(504), Swizzle(3, 3, 3).reach(512)
        (512, 512)
        """
        block = 1 << self.zzz_mask.bit_length()
        return -(-count // block) * block

    @classmethod
    def from_name(cls, name: str) -> Swizzle:
        """The swizzle of byte addresses that TMA calls so: ``none``, ``s32b``, ``s64b``, ``s128b``; LayoutError for
        others.

        >>> Swizzle.from_name("s128b")
        Sw<3,4,3>
        """
        names = ("none", "s32b", "s64b", "s128b")
        word = str(getattr(name, "name", name))
        if word not in names:
            raise LayoutError(f"Swizzle.from_name({name!r}): there are {', '.join(names)}")
        return cls(names.index(word), 4, 3)

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


def make_swizzle(b: int, m: int, s: int, *, loc: Any = None, ip: Any = None) -> Swizzle:
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


def reachable_bits(layout: Layout) -> int | None:
    """The bits that the offsets of ``layout`` use, if each mode uses a run of bits of its own; else None."""
    bits = 0
    for s, d in zip(flatten_to_tuple(layout.shape), flatten_to_tuple(layout.stride), strict=True):
        if d == 0 or s == 1:
            continue
        if d < 0 or d & (d - 1) or s & (s - 1):
            return None
        run = (s - 1) * d
        if bits & run:
            return None
        bits |= run
    return bits


def compose_swizzle(lhs: Any, rhs: Swizzle) -> ComposedLayout:
    """``layout o swizzle`` with the swizzle moved to the left: possible when the layout only moves bits about, and
    moves every source bit by as much as its target."""
    if not isinstance(lhs, Layout):
        raise LayoutError(f"composition({lhs}, {rhs}): only a plain layout can be composed with a swizzle")
    count = product(lhs.shape)
    sources = [1 << i for i in range(rhs.base + max(0, rhs.shift), rhs.base + rhs.bits + max(0, rhs.shift))]
    pairs = [(y, rhs(y) ^ y) for y in sources if y < count]  # a source bit beyond the domain is never set
    moved = [(lhs(y), lhs(z)) for y, z in pairs]
    straight = all(z < count for _, z in pairs) and all(a * moved[0][1] == b * moved[0][0] for a, b in moved)
    lower = flatten_to_tuple(lhs.shape)[:-1]  # below a bit of the index there must be whole bits
    if reachable_bits(lhs) is None or any(s & (s - 1) for s in lower) or not straight:
        raise LayoutError(f"composition({lhs}, {rhs}): the layout does not move the bits of the swizzle as one")
    try:
        return ComposedLayout(swizzle_of_masks(sum(a for a, _ in moved), sum(b for _, b in moved)), 0, lhs)
    except LayoutError as error:
        raise LayoutError(f"composition({lhs}, {rhs}): {error}") from None


def get_swizzle_portion(layout: Any, *, loc: Any = None, ip: Any = None) -> Swizzle:
    """The swizzle of a swizzled layout; the identity ``Sw<0,4,3>`` for a plain one.

    >>> from tilewright.layout import Layout
    >>> get_swizzle_portion(Layout((4, 8)))
    Sw<0,4,3>
    """
    inner = getattr(layout, "inner", None)
    return inner if isinstance(inner, Swizzle) else Swizzle(0, 4, 3)


def get_nonswizzle_portion(layout: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """The layout below the swizzle.

    >>> from tilewright.layout import Layout, make_composed_layout, make_swizzle
    >>> get_nonswizzle_portion(make_composed_layout(make_swizzle(3, 3, 3), 0, Layout((8, 64), (64, 1))))
    (8,64):(64,1)
    """
    return layout.outer if isinstance(layout, ComposedLayout) else layout
