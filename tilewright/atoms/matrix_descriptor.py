"""Matrix descriptors: the place of an operand of ``wgmma`` in shared memory, and how it is laid out.

A descriptor is a 64-bit word (PTX ISA, "Matrix Descriptor Format"); lengths in it count units of 16 bytes::

    bits  0-13  start address        bits 32-45  stride byte offset (SBO)     bits 62-63  swizzle: 0 none, 1 128B,
    bits 16-29  leading (LBO)        bits 49-51  base offset (0 here)                     2 64B, 3 32B

The layouts that it can describe are the *canonical* ones. In units of 16 bytes, with W = 1, 2, 4, 8 units a row for no
swizzle, 32B, 64B and 128B (CuTe: include/cute/atom/mma_traits_sm90_gmma.hpp)::

    K-major      no swizzle  ((8,m),2):((1,SBO),LBO)                swizzled  ((8,m),2):((W,SBO),1)
    MN-major     no swizzle  ((1,m),(8,k)):((X,SBO),(1,LBO))        swizzled  ((W,m),(8,k)):((1,LBO),(W,SBO))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tilewright.atoms.value_types import shown
from tilewright.errors import ConstraintError, LayoutError
from tilewright.ir.types import ScalarType
from tilewright.layout import (
    Layout,
    logical_divide,
    make_layout,
    make_smem_atom,
    rank,
    recast_layout,
    size,
    widest_smem_atom,
)
from tilewright.layout.tuples import is_static

UNIT = 16
"""Bytes that 1 in a descriptor's fields stands for."""
ADDRESS_BITS = 0x3FFFF
_LAYOUT_TYPE = (0, 3, 2, 1)  # by the bits of the swizzle


class MatrixDescriptor(NamedTuple):
    """The fields of a descriptor as they are stored; ``swizzle`` is the number of bits that the swizzle moves (0 to 3).

    >>> hex(MatrixDescriptor(1, 64, 3, 0x8000).word)
    '0x4000004000010800'
    """

    leading: int
    stride: int
    swizzle: int
    address: int = 0

    @property
    def layout_type(self) -> int:
        return _LAYOUT_TYPE[self.swizzle]

    @property
    def start_address(self) -> int:
        return (self.address & ADDRESS_BITS) >> 4

    @property
    def low(self) -> int:
        """Bits 0-31 but for the start address, which is known at run time only."""
        return self.leading << 16

    @property
    def high(self) -> int:
        """Bits 32-63."""
        return self.stride | self.layout_type << 30

    @property
    def word(self) -> int:
        return self.high << 32 | self.low | self.start_address


def swizzle_of_type(layout_type: int) -> int:
    """The bits of the swizzle with this code.

    >>> [swizzle_of_type(code) for code in (0, 1, 2, 3)]
    [0, 3, 2, 1]
    """
    return _LAYOUT_TYPE.index(layout_type)


def in_units(layout: Layout, type_: ScalarType) -> Layout:
    """A layout of elements as one of units of 16 bytes."""
    made: Layout = recast_layout(8 * UNIT, type_.width, layout)
    return made


def matrix_descriptor(
    tile: Layout, swizzle: Any, major: str, type_: ScalarType, address: int = 0, whole: Any = None
) -> MatrixDescriptor:
    """The descriptor of the tile ``(MN, K)`` (offsets in elements) that one instruction reads.

    ``swizzle`` acts on byte addresses (``Sw<0..3,4,3>``, or None), ``major`` is ``"K"`` or ``"MN"``. ``whole`` are the
    extents (MN, K) of the tile in shared memory that this one belongs to, for the advice in errors.

    Raises ConstraintError when the layout is not a canonical one, with the rule and an atom that would do.

    >>> from tilewright.ir.types import F16
    >>> from tilewright.layout import Swizzle
    >>> matrix_descriptor(Layout(((8, 8), 16), ((64, 512), 1)), Swizzle(3, 4, 3), "K", F16)
    MatrixDescriptor(leading=1, stride=64, swizzle=3, address=0)
    """
    bits = 3

    def refuse(why: str) -> ConstraintError:
        return _refusal(tile, bits, major, type_, whole or (size(tile[0]), size(tile[1])), why)

    bits = _swizzle_bits(swizzle, type_, refuse)
    width = 1 << bits
    try:
        units = in_units(tile, type_)
        divided = logical_divide(units, (8, 2) if major == "K" else (width, 8))
        (rows, more), (columns, further) = divided[0], divided[1]
    except (LayoutError, ValueError, TypeError) as error:
        raise refuse(f"it does not divide into units of 16 bytes ({error})") from None
    if not all(rank(mode) == 1 for mode in (rows, more, columns, further)) or not is_static(divided):
        raise refuse(f"in units of 16 bytes it is {units}, which has more modes")
    steps = [_stride(mode) for mode in (rows, more, columns, further)]
    sizes = [size(mode) for mode in (rows, more, columns, further)]
    if major == "K":
        wanted = (
            ("rows of 8 step by", steps[0], width, sizes[0]),
            ("columns step by", steps[2], 1 if bits else None, 2),
        )
        exact = sizes[0] == 8 and sizes[2] == 2 and sizes[3] == 1
        leading, stride = (1, steps[1]) if bits else (steps[2], steps[1])
    else:
        wanted = (("the contiguous mode steps by", steps[0], 1, sizes[0]), ("k steps by", steps[2], width, sizes[2]))
        exact = sizes[0] == width and sizes[2] == 8
        leading, stride = (steps[1], steps[3]) if bits else (steps[3], steps[1])
    for what, step, expected, extent in wanted:
        if expected is not None and extent > 1 and step != expected:
            raise refuse(f"{what} {step} units of 16 bytes, not {expected}")
    if not exact:
        raise refuse(f"in units of 16 bytes it is {units}")
    if not 0 <= leading < 1 << 14 or not 0 <= stride < 1 << 14:
        raise refuse(f"its steps {leading} and {stride} do not fit into 14 bits")
    return MatrixDescriptor(leading, stride, bits, address)


def descriptor_layout(partition: Layout, type_: ScalarType) -> Layout:
    """The layout of the descriptors of a partition ``(V, RestMN, RestK, ...)``: mode 0 is one descriptor, the other
    strides are what is added to a descriptor's low word."""
    units = in_units(partition, type_)
    return make_layout(Layout(1, 0), *[units[i] for i in range(1, rank(units))])


def _stride(mode: Layout) -> int:
    stride = mode.stride
    while isinstance(stride, tuple):
        (stride,) = stride
    return int(stride)


def _swizzle_bits(swizzle: Any, type_: ScalarType, refuse: Callable[[str], ConstraintError]) -> int:
    if swizzle is None or swizzle.bits == 0:
        return 0
    if (swizzle.base, swizzle.shift) == (4, 3) and swizzle.bits <= 3:
        return int(swizzle.bits)
    why = f"Sw<{swizzle.bits},{swizzle.base},{swizzle.shift}> on bytes is not one of Sw<1,4,3>, Sw<2,4,3>, Sw<3,4,3>"
    if (1 << swizzle.base, swizzle.shift) == (16 * type_.bytes, 3):
        why += (
            " (if the layout is made of make_smem_layout_atom, whose swizzle counts bytes, allocate the tensor with "
            "layout=layout.outer, swizzle=layout.inner instead of the whole layout)"
        )
    raise refuse(why)


def _refusal(
    tile: Layout, bits: int, major: str, type_: ScalarType, whole: tuple[int, int], why: str
) -> ConstraintError:
    width = 1 << bits
    rule = {
        ("K", False): "((8,m),2):((1,SBO),LBO)",
        ("K", True): f"((8,m),2):(({width},SBO),1)",
        ("MN", False): "((1,m),(8,k)):((X,SBO),(1,LBO))",
        ("MN", True): f"(({width},m),(8,k)):((1,LBO),({width},SBO))",
    }[major, bits > 0]
    rows, columns = whole
    kind = widest_smem_atom(major, rows if major == "MN" else columns, type_.width)
    atom = make_smem_atom(major, kind, type_.width)
    return ConstraintError(
        f"wgmma reads a {major}-major operand of {shown(type_)} only from a canonical layout, which is {rule} in units "
        f"of 16 bytes{f' under Sw<{bits},4,3> on bytes' if bits else ' without a swizzle'}; the tile {tile} of one "
        f"instruction is not: {why}. Make the shared-memory layout of the {rows}x{columns} tile by tile_to_shape of an "
        f"atom, such as {atom} (warpgroup.make_smem_layout_atom(SmemLayoutAtomKind.{major}_{kind}, ...))"
    )
