"""The layouts of copies from and to tensor memory: ``tcgen05.ld``, ``tcgen05.st`` (registers of a warp) and
``tcgen05.cp`` (from shared memory).

Layouts count bits. A copy has its bits in an order of its own; ``places`` leads from that order to tensor memory, where
a column is 32 and a lane is 65536 * 32. (PTX ISA, "tcgen05 Matrix and Data Movement Shape"; CuTe:
include/cute/atom/copy_traits_sm100.hpp, where ``places`` is ``ValID``.)
"""

from __future__ import annotations

from typing import NamedTuple

from tilewright.atoms.tensor_memory import COLUMN_BITS, LANES, lane_stride, tmem_columns, tmem_place
from tilewright.errors import ConstraintError
from tilewright.ir.target import WARP
from tilewright.layout import Layout, make_layout, size

REGISTERS = 128
"""The most registers of a thread that one ``tcgen05.ld`` or ``tcgen05.st`` moves."""
_LANE = lane_stride(1)
_WIDTHS = {"32x32b": 32, "16x32bx2": 64, "16x64b": 64, "16x128b": 128, "16x256b": 256}
"""Bits of a lane that a shape has, without repetition."""
_ALL, _TWICE = Layout(LANES * 128), Layout((64, 128, 2), (1, 64, 0))
_FROM_SHARED = {
    "128x256b": (Layout((LANES, 256), (_LANE, 1)), Layout(LANES * 256), Layout(LANES * 256)),
    "128x128b": (Layout((LANES, 128), (_LANE, 1)), _ALL, _ALL),
    "4x256b": (Layout((LANES, 256), (_LANE, 1)), Layout((4, 256), (WARP, LANES)), Layout((4, 256), (WARP, LANES))),
    "64x128b.warpx2::02_13": (Layout((64, 128, 2), (_LANE, 1, 64 * _LANE)), _TWICE, _ALL),
    "64x128b.warpx2::01_23": (Layout(((32, 2), 128, 2), ((_LANE, 64 * _LANE), 1, 32 * _LANE)), _TWICE, _ALL),
    "32x128b.warpx4": (Layout((32, 128, 4), (_LANE, 1, 32 * _LANE)), Layout((32, 128, 4), (1, 32, 0)), _ALL),
}
"""For each shape of ``tcgen05.cp``: ``places``, and the modes (bit) of ``source`` and ``destination``."""


MOVED_SHAPES, COPIED_SHAPES = tuple(_WIDTHS), tuple(_FROM_SHARED)
"""The shapes of ``tcgen05.ld`` and ``st``, and of ``tcgen05.cp``."""


class TmemCopyLayouts(NamedTuple):
    """A load or store of one warp, in bits.

    Warp w reaches the lanes 32*(w%4) to 32*(w%4) + 31, and all its threads give the same address.

    ``places``: bit of the copy to bit of tensor memory, from the warp's address. ``registers``: (thread, bit of its
    registers) to bit of the copy. For a load ``registers`` is the destination, for a store the source.
    """

    places: Layout
    registers: Layout

    @property
    def memory(self) -> Layout:
        """(thread, bit) to bit of the copy on the side of tensor memory: all threads name all of it."""
        return Layout((WARP, size(self.places)), (0, 1))

    @property
    def register_count(self) -> int:
        """Registers of 32 bits of each thread."""
        return int(size(self.registers[1])) // COLUMN_BITS

    @property
    def columns(self) -> int:
        """Columns of tensor memory from the warp's address on."""
        return tmem_columns(self.places, 1)

    def place(self, thread: int, register: int, bit: int = 0) -> tuple[int, int, int]:
        """The place (lane, column, bit) of a bit of a thread's register, from the warp's address.

        >>> tmem_copy_layouts("16x256b", 1).place(thread=5, register=2)
        (9, 2, 0)
        """
        lane, column, at = tmem_place(self.places(self.registers((thread, COLUMN_BITS * register + bit))), 1)
        return lane, column, at


class SmemToTmemLayouts(NamedTuple):
    """A ``tcgen05.cp``, in bits: ``places``: bit of the copy to bit of tensor memory; ``source`` and ``destination``:
    (block, bit) to bit of the data in shared memory, and to bit of the copy. Both blocks of a pair copy their own."""

    places: Layout
    source: Layout
    destination: Layout


def tmem_copy_layouts(shape: str, repeat: int, pack: bool = False) -> TmemCopyLayouts:
    """The layouts of ``tcgen05.ld`` and ``tcgen05.st`` of a PTX shape (``"32x32b"``), repeated along the columns.

    ``pack``: with ``.pack::16b`` (``.unpack::16b``) a register has the low halves of two neighbouring columns. Of
    ``"16x32bx2"`` threads 16-31 take the columns after those of threads 0-15, which is a split offset of
    ``repeat`` columns (``2 * repeat`` with ``pack``).

    ConstraintError for shapes and repetitions that the instructions do not have.

    >>> made = tmem_copy_layouts("32x32b", 4)
    >>> made.places, made.registers
    ((128,32):(1,2097152), (32,128):(128,1))
    >>> made.register_count, made.columns, tmem_copy_layouts("32x32b", 4, pack=True).columns
    (4, 4, 8)
    """
    _check_shape(shape, repeat)
    bits = _WIDTHS[shape] * repeat
    lane = Layout((16, bits // 16), (1, COLUMN_BITS)) if pack else Layout(bits, 1)
    places = make_layout(lane, Layout(int(shape.split("x")[0]), _LANE))
    return TmemCopyLayouts(places, make_layout(*_threads_and_values(shape, repeat, bits)))


def smem_to_tmem_layouts(shape: str, ctas: int = 1) -> SmemToTmemLayouts:
    """The layouts of ``tcgen05.cp`` of a PTX shape, with its multicast (``"32x128b.warpx4"``), for 1 or 2 blocks.

    With multicast, each row is in several lanes: ``warpx4``: row r in lane r of each 32; ``warpx2::02_13``: row r in
    lanes r and r + 64; ``warpx2::01_23``: row r in lanes 64*(r/32) + r%32 and 32 above that. ``4x256b`` has one row for
    each 32 lanes.

    ConstraintError for shapes that the instruction does not have, and other numbers of blocks.

    >>> smem_to_tmem_layouts("32x128b.warpx4").places
    (32,128,4):(2097152,1,67108864)
    """
    if ctas not in (1, 2):
        raise ConstraintError(f"tcgen05.cp: it copies for 1 or 2 blocks, not for {ctas}")
    if shape not in _FROM_SHARED:
        raise ConstraintError(f"tcgen05.cp has no shape {shape!r}; it has {', '.join(_FROM_SHARED)}")
    places, source, destination = _FROM_SHARED[shape]
    blocks = Layout(ctas, 0)
    return SmemToTmemLayouts(places, make_layout(blocks, source), make_layout(blocks, destination))


def _check_shape(shape: str, repeat: int) -> None:
    if shape not in _WIDTHS:
        raise ConstraintError(f"tcgen05.ld and tcgen05.st have no shape {shape!r}; they have {', '.join(_WIDTHS)}")
    each = _WIDTHS[shape] * int(shape.split("x")[0]) // (WARP * COLUMN_BITS)
    if repeat < 1 or repeat.bit_count() != 1 or repeat * each > REGISTERS:
        raise ConstraintError(
            f"tcgen05.ld and tcgen05.st of {shape}.x{repeat}: repetitions are powers of two, here up to "
            f"x{REGISTERS // each}, because a thread has {each} registers of each and at most {REGISTERS}"
        )


def _threads_and_values(shape: str, repeat: int, bits: int) -> tuple[Layout, Layout]:
    """The modes (thread, bit of its registers) of a copy with ``bits`` bits a lane."""
    match shape:
        case "32x32b":  # a lane each
            return Layout(32, bits), Layout(bits, 1)
        case "16x32bx2":  # a lane each, then the second half of the columns
            return Layout((16, 2), (bits, bits // 2)), Layout(bits // 2, 1)
        case "16x64b":  # even threads have the lower 8 lanes, odd ones the upper 8
            return Layout((2, 2, 8), (8 * bits, 32, bits)), _repeated((32,), (1,), repeat, 64)
    word = _WIDTHS[shape] // 4  # four threads share a lane, 8 lanes above are next: mma's fragment of C
    return Layout((4, 8), (word, bits)), _repeated((word, 2), (1, 8 * bits), repeat, _WIDTHS[shape])


def _repeated(shape: tuple[int, ...], stride: tuple[int, ...], repeat: int, step: int) -> Layout:
    modes = (shape, stride) if repeat == 1 else ((*shape, repeat), (*stride, step))
    return Layout(*(mode if len(mode) > 1 else mode[0] for mode in modes))
