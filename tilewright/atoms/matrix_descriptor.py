"""Matrix descriptors: the place of an operand of ``wgmma`` or ``tcgen05.mma`` in shared memory, and how it is laid out.

A descriptor is a 64-bit word (PTX ISA, "Matrix Descriptor Format" of wgmma, "Shared memory descriptor" of tcgen05);
lengths in it count units of 16 bytes::

    bits  0-13  start address        bits 32-45  stride byte offset (SBO)
    bits 16-29  leading (LBO)        bits 49-51  base offset (0 here)
    wgmma    bits 62-63  swizzle: 0 none, 1 128B, 2 64B, 3 32B
    tcgen05  bits 61-63  swizzle: 0 none, 1 128B in chunks of 32 bytes, 2 128B, 4 64B, 6 32B
             bits 46-48  1: the version of the format     bit 52  whether LBO is an address (0 here: a distance)

The layouts that it can describe are the *canonical* ones. In units of 16 bytes, with W = 1, 2, 4, 8 units a row for no
swizzle, 32B, 64B and 128B, and R = 8 rows, or 4 for chunks of 32 bytes (CuTe: mma_traits_sm90_gmma.hpp and
mma_traits_sm100.hpp in include/cute/atom)::

    K-major      no swizzle  ((8,m),2):((1,SBO),LBO)                swizzled  ((8,m),2):((W,SBO),1)
    MN-major     no swizzle  ((1,m),(8,k)):((X,SBO),(1,LBO))        swizzled  ((W,m),(R,k)):((1,LBO),(W,SBO))

tcgen05 swizzles MN-major numbers of 32 bits in chunks of 32 bytes, and all other operands in chunks of 16.
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
from tilewright.layout.smem_atoms import BYTE_SWIZZLES, row_bytes
from tilewright.layout.swizzle import Swizzle
from tilewright.layout.tuples import is_static

UNIT = 16
"""Bytes that 1 in a descriptor's fields stands for."""
ABSOLUTE = 1 << 20
"""The bit of the high word of ``tcgen05`` that makes LBO an address: where rows go on of which an instruction with
K = 96 takes the end only."""
ADDRESS_BITS = 0x3FFFF
_FIELD = 0x3FFF


class DescriptorFormat(NamedTuple):
    """What the descriptors of wgmma and tcgen05 do not have in common.

    ``codes``: of each kind of atom the code of its swizzle, which begins at bit ``shift`` of the high word; ``fixed``:
    bits of the high word that are always set; ``module``: where the language has the instruction.
    """

    instruction: str
    module: str
    codes: dict[str, int]
    shift: int
    fixed: int

    def kind_of(self, code: int) -> str:
        """The kind of atom (``SW128``) with this code. ConstraintError for other codes.

        >>> [WGMMA.kind_of(1), TCGEN05.kind_of(1)]
        ['SW128', 'SW128_32B']
        """
        for kind, candidate in self.codes.items():
            if candidate == code:
                return kind
        raise ConstraintError(
            f"a matrix descriptor of {self.instruction} has no swizzle of code {code}; the codes are {self.codes}"
        )


WGMMA = DescriptorFormat("wgmma", "warpgroup", {"INTER": 0, "SW32": 3, "SW64": 2, "SW128": 1}, 30, 0)
TCGEN05 = DescriptorFormat(
    "tcgen05.mma", "tcgen05", {"INTER": 0, "SW32": 6, "SW64": 4, "SW128": 2, "SW128_32B": 1}, 29, 1 << 14
)


class MatrixDescriptor(NamedTuple):
    """The fields of a descriptor as they are stored; ``kind`` is the atom's (INTER, SW32, SW64, SW128, SW128_32B).

    >>> hex(MatrixDescriptor(1, 64, "SW128", 0x8000).word), hex(MatrixDescriptor(1, 64, "SW128", 0, TCGEN05).word)
    ('0x4000004000010800', '0x4000404000010000')
    """

    leading: int
    stride: int
    kind: str
    address: int = 0
    format: DescriptorFormat = WGMMA

    @property
    def layout_type(self) -> int:
        """The code of the swizzle."""
        return self.format.codes[self.kind]

    @property
    def swizzle(self) -> Swizzle:
        """The swizzle of byte addresses."""
        return BYTE_SWIZZLES[self.kind]

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
        return self.stride | self.format.fixed | self.layout_type << self.format.shift

    @property
    def word(self) -> int:
        return self.high << 32 | self.low | self.start_address

    @classmethod
    def of_word(cls, word: int, format: DescriptorFormat) -> MatrixDescriptor:
        """The fields of a word. ConstraintError for a code or bits that the format does not have, as where it is the
        other instruction's word, and for base offsets and absolute LBOs, which no layout here needs.

        >>> MatrixDescriptor.of_word(0x4000404000010800, TCGEN05)[:4]
        (1, 64, 'SW128', 32768)
        """
        high = word >> 32
        code = high >> format.shift
        rest = high & ~(code << format.shift | _FIELD)
        if rest != format.fixed or (word >> 14 | word >> 30) & 3:
            raise ConstraintError(
                f"0x{word:016x} is not a matrix descriptor of {format.instruction}: besides its fields it has the "
                f"high bits 0x{rest:08x}, and must have 0x{format.fixed:08x}"
            )
        return cls(word >> 16 & _FIELD, high & _FIELD, format.kind_of(code), (word & _FIELD) << 4, format)


def in_units(layout: Layout, type_: ScalarType) -> Layout:
    """A layout of elements as one of units of 16 bytes."""
    made: Layout = recast_layout(8 * UNIT, type_.width, layout)
    return made


def matrix_descriptor(
    tile: Layout,
    swizzle: Any,
    major: str,
    type_: ScalarType,
    address: int = 0,
    whole: Any = None,
    format: DescriptorFormat = WGMMA,
    pieces: int = 2,
) -> MatrixDescriptor:
    """The descriptor of the tile ``(MN, K)`` (offsets in elements) that one instruction reads.

    ``swizzle`` acts on byte addresses (``Sw<0..3,4,3>``, of tcgen05 also ``Sw<2,5,2>``, or None), ``major`` is ``"K"``
    or ``"MN"``. ``type_`` is that of the tile's offsets: tcgen05 reads unpacked 4- and 6-bit numbers as tiles of u8.
    ``whole`` are the extents (MN, K) of the tile in shared memory that this one belongs to, for the advice in errors.
    ``pieces``: units of 16 bytes along K that the instruction reads of a K-major row, 4 of B where A is sparse.

    Raises ConstraintError when the layout is not a canonical one, with the rule and an atom that would do.

    >>> from tilewright.ir.types import F16
    >>> from tilewright.layout import Swizzle
    >>> tile = Layout(((8, 8), 16), ((64, 512), 1))
    >>> matrix_descriptor(tile, Swizzle(3, 4, 3), "K", F16)[:3]
    (1, 64, 'SW128')
    >>> hex(matrix_descriptor(tile, Swizzle(3, 4, 3), "K", F16, address=0x400, format=TCGEN05).word)
    '0x4000404000010040'
    """
    kind = "SW128"

    def refuse(why: str) -> ConstraintError:
        return _refusal(tile, kind, major, type_, whole or (size(tile[0]), size(tile[1])), why, format, pieces)

    kind = _kind_of(swizzle, type_, major, format, refuse)
    width, swizzled = row_bytes(kind) // UNIT, kind != "INTER"
    rows_of_k = 1 << BYTE_SWIZZLES[kind].shift
    try:
        units = in_units(tile, type_)
        divided = logical_divide(units, (8, 2) if major == "K" else (width, rows_of_k))
        (rows, more), (columns, further) = divided[0], divided[1]
    except (LayoutError, ValueError, TypeError) as error:
        raise refuse(f"it does not divide into units of 16 bytes ({error})") from None
    if not all(rank(mode) == 1 for mode in (rows, more, columns, further)) or not is_static(divided):
        raise refuse(f"in units of 16 bytes it is {units}, which has more modes")
    steps = [_stride(mode) for mode in (rows, more, columns, further)]
    sizes = [size(mode) for mode in (rows, more, columns, further)]
    canonical = _k_major if major == "K" else _mn_major
    leading, stride, rules = canonical(steps, sizes, width, swizzled)
    for what, step, expected, extent in rules:
        if expected is not None and extent > 1 and step != expected:
            raise refuse(f"{what} {step} units of 16 bytes, not {expected}")
    whole_atom = (8, 2) if major == "K" else (width, rows_of_k)
    if (sizes[0], sizes[2]) != whole_atom or (major == "K" and 2 * sizes[3] != pieces):
        raise refuse(f"in units of 16 bytes it is {units}")
    if not 0 <= leading <= _FIELD or not 0 <= stride <= _FIELD:
        raise refuse(f"its steps {leading} and {stride} do not fit into 14 bits")
    return MatrixDescriptor(leading, stride, kind, address, format)


_Rules = tuple[tuple[str, int, int | None, int], ...]
"""Steps of a canonical layout: the mode in words, its stride, what that has to be (None: anything), its extent."""


def _k_major(steps: list[int], sizes: list[int], width: int, swizzled: bool) -> tuple[int, int, _Rules]:
    """The leading and the stride field of a tile ((8, rows / 8), (2, pairs)), in units of 16 bytes, and its rules."""
    rows, more, columns, pairs = steps
    rules = (
        ("rows of 8 step by", rows, width, sizes[0]),
        ("columns step by", columns, 1 if swizzled else None, 2),
        ("pairs of columns step by", pairs, 2 * columns, sizes[3]),
    )
    return 1 if swizzled else columns, more, rules


def _mn_major(steps: list[int], sizes: list[int], width: int, swizzled: bool) -> tuple[int, int, _Rules]:
    """The same of a tile ((width, more), (k of an atom, atoms))."""
    contiguous, more, k, atoms = steps
    rules = (("the contiguous mode steps by", contiguous, 1, sizes[0]), ("k steps by", k, width, sizes[2]))
    return (more, atoms, rules) if swizzled else (atoms, more, rules)


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


def _kind_of(
    swizzle: Any, type_: ScalarType, major: str, format: DescriptorFormat, refuse: Callable[[str], ConstraintError]
) -> str:
    """The kind of atom with this swizzle of bytes. Refuses what the format, or this operand, does not have."""
    masks = (0, 4, 3) if swizzle is None or swizzle.bits == 0 else (swizzle.bits, swizzle.base, swizzle.shift)
    by_masks = {(s.bits, s.base, s.shift): kind for kind in format.codes for s in [BYTE_SWIZZLES[kind]]}
    kind = by_masks.get(masks)
    if kind is None:
        choices = ", ".join(str(BYTE_SWIZZLES[kind]) for kind in format.codes if kind != "INTER")
        why = f"{swizzle} on bytes is not one of {choices}"
        if (1 << swizzle.base, swizzle.shift) == (16 * type_.bytes, 3):
            why += (
                " (if the layout is made of make_smem_layout_atom, whose swizzle counts bytes, allocate the tensor "
                "with layout=layout.outer, swizzle=layout.inner instead of the whole layout)"
            )
        raise refuse(why)
    chunks_of_32 = format is TCGEN05 and (major, type_.width) == ("MN", 32)
    if chunks_of_32 != (kind == "SW128_32B"):
        raise refuse(
            f"MN-major numbers of 32 bits, and no others, are swizzled by {BYTE_SWIZZLES['SW128_32B']} on bytes"
        )
    return kind


def _refusal(
    tile: Layout,
    kind: str,
    major: str,
    type_: ScalarType,
    whole: tuple[int, int],
    why: str,
    format: DescriptorFormat,
    pieces: int,
) -> ConstraintError:
    width, swizzled, rows_of_k = row_bytes(kind) // UNIT, kind != "INTER", 1 << BYTE_SWIZZLES[kind].shift
    rule = {
        ("K", False): f"((8,m),{pieces}):((1,SBO),LBO)",
        ("K", True): f"((8,m),{pieces}):(({width},SBO),1)",
        ("MN", False): "((1,m),(8,k)):((X,SBO),(1,LBO))",
        ("MN", True): f"(({width},m),({rows_of_k},k)):((1,LBO),({width},SBO))",
    }[major, swizzled]
    rows, columns = whole
    if format is TCGEN05 and (major, type_.width) == ("MN", 32):
        advised = "SW128_32B"
    else:
        advised = widest_smem_atom(major, rows if major == "MN" else columns, type_.width)
    atom = make_smem_atom(major, advised, type_.width)
    return ConstraintError(
        f"{format.instruction} reads a {major}-major operand of {shown(type_)} only from a canonical layout, which is "
        f"{rule} in units of 16 bytes{f' under {BYTE_SWIZZLES[kind]} on bytes' if swizzled else ' without a swizzle'}; "
        f"the tile {tile} of one instruction is not: {why}. Make the shared-memory layout of the {rows}x{columns} tile "
        f"by tile_to_shape of an atom, such as {atom} "
        f"({format.module}.make_smem_layout_atom(SmemLayoutAtomKind.{major}_{advised}, ...))"
    )
