"""Tensor memory of sm_100: where the elements of accumulators and of operands of tcgen05.mma are.

Each multiprocessor has 128 lanes of 512 columns of 32 bits. An address is ``lane << 16 | column``. Layouts count
elements of ``value_bits``, so that with ``e = 32 / value_bits`` elements a column, an offset is
``(lane << 16 | column) * e + sub``: a lane is ``65536 * e``, a column is ``e``, and ``sub`` is the element in the
column. In an address ``sub`` is in the top bits.

The places are those that the MMA instructions use (PTX ISA, "tcgen05 Data Path Layout Organization"); the layouts are
those of CuTe's fragments (include/cute/atom/mma_traits_sm100.hpp). All numbers are known at compile time.
"""

from __future__ import annotations

from enum import Enum
from fractions import Fraction
from typing import Any

from tilewright.errors import ConstraintError
from tilewright.layout import (
    Layout,
    composition,
    cosize,
    flatten_to_tuple,
    make_layout,
    product,
    tiled_product,
    transform_leaf,
)

LANES = 128
COLUMNS = 512
COLUMN_BITS = 32
LOAD, STORE, MMA, COPY = "tcgen05.ld", "tcgen05.st", "tcgen05.mma", "tcgen05.cp"
FENCE, COMMIT, DEALLOC = "tcgen05.fence", "tcgen05.commit", "tcgen05.dealloc"
"""Names of instructions, for who looks for them in programs and need not load what they do."""
METADATA_BITS = {32: Fraction(2), 16: Fraction(1), 8: Fraction(1), 4: Fraction(1, 2)}
"""Bits of a sparse operand's metadata for each element along K, zeros counted, by the element's width."""
_WORD = (1 << 32) - 1
_REACH = COLUMNS * COLUMN_BITS  # virtual columns: as many as elements of 1 bit in a lane


class TmemAllocMode(Enum):
    """How the tiles of an MMA that takes 64 rows of a block share the 128 lanes."""

    INTERLEAVED = "Interleaved"
    """Two tiles share columns: the second one takes the lanes that the first leaves free."""
    NON_INTERLEAVED = "NonInterleaved"
    """Each tile has columns of its own, so that accumulator and operand A have the same lanes."""
    DUPLICATED = "Duplicated"
    """Operand A of a pair of blocks: the 64 rows are there twice, in lanes 0-63 and 64-127."""


_ROWS = {
    (1, TmemAllocMode.INTERLEAVED): (64, 128),
    (1, TmemAllocMode.NON_INTERLEAVED): (64, 128),
    (2, TmemAllocMode.INTERLEAVED): (32, 64, 128),
    (2, TmemAllocMode.DUPLICATED): (64, 128),
}
"""The rows that a block can have of one MMA."""


def elements_per_column(value_bits: int | Fraction) -> int:
    """How many elements of ``value_bits`` a column of 32 bits holds. ConstraintError if that is not a power of two.

    >>> elements_per_column(16)
    2
    """
    count = Fraction(COLUMN_BITS) / value_bits if value_bits > 0 else Fraction(0)
    if count.denominator != 1 or count.numerator.bit_count() != 1:
        raise ConstraintError(
            f"tensor memory: elements of {value_bits} bits do not fill a column of 32 bits; the widths are "
            "1, 2, 4, 8, 16, 32 (6-bit numbers take 8 bits each)"
        )
    return count.numerator


def container_shift(width: int) -> int:
    """The lowest bit of a number of 4 or 6 bits in its byte of tensor memory: 4 bits are in the middle, as in the
    registers of ``mma.sync`` (CuTe: include/cute/atom/mma_traits_sm120.hpp).

    >>> container_shift(4), container_shift(6)
    (2, 0)
    """
    return 2 if width == 4 else 0


def lane_stride(value_bits: int | Fraction) -> int:
    """Elements from a lane to the next one.

    >>> lane_stride(32), lane_stride(16)
    (65536, 131072)
    """
    return elements_per_column(value_bits) << 16


def tmem_place(offset: int, value_bits: int | Fraction) -> tuple[int, int, int]:
    """The place (lane, column, element in the column) that an offset in elements stands for.

    >>> tmem_place(3 * lane_stride(16) + 2 * 5 + 1, 16)
    (3, 5, 1)
    """
    column, sub = divmod(offset, elements_per_column(value_bits))
    return column >> 16, column & 0xFFFF, sub


def tmem_offset(address: int, value_bits: int) -> int:
    """The offset in elements that an address stands for: the element in the column moves from the top to the bottom.

    >>> tmem_offset(0x80000013, 16)
    39
    """
    shift = elements_per_column(value_bits).bit_length() - 1
    return (address << shift & _WORD) | address >> (32 - shift)


def tmem_address(address: int, offset: int, value_bits: int) -> int:
    """The address ``offset`` elements after ``address``. Columns above 511 are not refused here.

    >>> hex(tmem_address(0x00060010, lane_stride(8) + 4 * 3 + 2, 8))
    '0x80070013'
    """
    shift = elements_per_column(value_bits).bit_length() - 1
    element = (tmem_offset(address, value_bits) + offset) & _WORD
    return element >> shift | (element << (32 - shift) & _WORD)


def tmem_columns(layout: Layout, value_bits: int | Fraction) -> int:
    """How many columns a layout reaches, counted from the one at offset 0: where the next tensor can begin.

    >>> tmem_columns(Layout((128, 96), (lane_stride(32), 1)), 32)
    96
    """
    return tmem_place(int(cosize(layout)) - 1, value_bits)[1] + 1


def tmem_layout(
    shape: Any,
    value_bits: int,
    storage_bits: int = 32,
    ctas: int = 1,
    alloc_mode: TmemAllocMode = TmemAllocMode.INTERLEAVED,
) -> Layout:
    """The layout of an accumulator, or of operand A, in one block's tensor memory, in elements of ``value_bits``.

    ``shape`` is ``((M, N), tiles...)``: the part of one MMA that this block has, and how many there are; for operand A
    N is K. Each element takes ``storage_bits``: 32 for accumulators of any type, ``value_bits`` for packed operands.
    ``ctas`` is the number of blocks that work on one MMA.

    - One block: 128 rows are the 128 lanes. Of 64 rows, row m is in lane ``32*(m/16) + m%16``; ``alloc_mode`` says
      where the next tile is.
    - A pair of blocks: 128 rows are the 128 lanes. 64 (32) rows are the first 64 (32) lanes, for the first half
      (quarter) of N; the lanes after them have the next part.

    ConstraintError for an M, N or number of tiles that no MMA has, and where 512 columns do not suffice.

    >>> tmem_layout(((128, 96), 1, 2), 32)
    ((128,96),1,2):((65536,1),0,96)
    >>> tmem_layout(((64, 96), 2, 1), 16)
    (((16,4),96),2,1):(((131072,4194304),2),2097152,0)
    >>> tmem_layout(((64, 96), 2, 1), 32, ctas=2)
    ((64,(48,2)),2,1):((65536,(1,4194304)),48,0)
    """
    (m, n), tiles = _parts("tmem_layout", shape)
    _check_rows(m, ctas, alloc_mode)
    if ctas == 1 and m == 64:
        atom = make_layout(Layout((16, 4), (1, 32)), Layout(n, LANES))
    else:
        atom = _folded("tmem_layout", LANES if alloc_mode is TmemAllocMode.DUPLICATED else m, n)
    rest = make_layout(tiles)
    if ctas == 1 and m == 64:
        rest = _interleaved(shape, rest, alloc_mode)
    return _placed(atom, rest, value_bits, storage_bits)


def weight_stationary_layout(shape: Any, value_bits: int, storage_bits: int = 32) -> Layout:
    """The layout of the accumulator of ``tcgen05.mma.ws``; arguments and errors as of :func:`tmem_layout`.

    M is 128, 64 or 32; below 128 the lanes after the first M have the next part of N.

    >>> weight_stationary_layout(((32, 256), 1, 2), 32)
    ((32,(64,4)),1,2):((65536,(1,2097152)),0,64)
    """
    (m, n), tiles = _parts("weight_stationary_layout", shape)
    if m not in (32, 64, 128):
        raise ConstraintError(f"tcgen05.mma.ws: M is {m}; it can be 32, 64 or 128")
    return _placed(_folded("weight_stationary_layout", m, n), make_layout(tiles), value_bits, storage_bits)


def metadata_layout(shape: Any, width: int) -> Layout:
    """The layout of the metadata of sparse operand A of elements of ``width`` bits, in ``METADATA_BITS[width]`` bits.

    ``shape`` is ``((128, K), tiles...)`` where K is that of one MMA, zeros counted. For 16 and 32 bits, of each 16
    lanes the first 8 have the first half of K and the others the second half; a lane has 16 bits of row r, then 16 of
    row r + 8.

    ConstraintError for another tile or width, and where 512 columns do not suffice.

    >>> metadata_layout(((128, 64), 1, 1), 8)
    ((128,64),1,1):((2097152,1),0,0)
    """
    (m, k), tiles = _parts("metadata_layout", shape)
    if width not in METADATA_BITS:
        raise ConstraintError(f"metadata_layout: a sparse operand has elements of 4, 8, 16 or 32 bits, not {width}")
    if (m, k) != (LANES, 512 // width):
        raise ConstraintError(
            f"metadata_layout: the tile of one MMA is {m}x{k}; of elements of {width} bits it is {LANES}x{512 // width}"
        )
    bits = METADATA_BITS[width]
    if width < 16:
        atom = Layout((LANES, k), (1, LANES))
    else:
        atom = Layout(((8, 2, 8), (k // 2, 2)), ((1, LANES * k // 2, 16), (LANES, 8)))
    return _restrided(atom, make_layout(tiles), bits, 1)


def accumulator_layout(
    mma_mn: tuple[int, int],
    tile_mn: tuple[int, int],
    value_bits: int = 32,
    *,
    ctas: int = 1,
    stages: int = 1,
    a_in_tmem: bool = False,
    overlap: int = 0,
) -> Layout:
    """The accumulator ``((M, N), M tiles, N tiles, stages)`` in each block's tensor memory, in elements.

    ``mma_mn`` are M, N of the MMA and ``tile_mn`` those of the tile it computes, both of the whole pair where ``ctas``
    is 2. ``a_in_tmem``: operand A is in tensor memory, so that tiles of 64 rows do not interleave. ``overlap`` is how
    many columns the two stages of a tile of 256 columns share, those that the epilogue reads at a time: other tensors
    then find place in the 512 columns.

    ConstraintError for M, N, a tile or stages that are not possible; see also :func:`tmem_layout`.

    >>> accumulator_layout((128, 200), (128, 200), stages=2)
    ((128,200),1,1,2):((65536,1),0,0,200)
    >>> accumulator_layout((256, 256), (256, 256), ctas=2, stages=2, overlap=64)
    ((128,256),1,1,2):((65536,1),0,0,192)
    """
    _check_accumulator(mma_mn, tile_mn, value_bits, ctas, stages)
    (m, n), tiles = mma_mn, (tile_mn[0] // mma_mn[0], tile_mn[1] // mma_mn[1])
    apart = a_in_tmem and ctas == 1
    mode = TmemAllocMode.NON_INTERLEAVED if apart else TmemAllocMode.INTERLEAVED
    layout = tmem_layout(((m // ctas, n), *tiles, stages), value_bits, 32, ctas, mode)
    if not overlap:
        return layout
    columns = tmem_columns(tmem_layout(((m // ctas, n), *tiles, 1), value_bits, 32, ctas, mode), value_bits)
    if stages != 2 or columns != COLUMNS // 2 or m // ctas != LANES or not 0 < overlap < columns:
        raise ConstraintError(
            f"accumulator_layout: {stages} stages of {columns} columns and {m // ctas} rows cannot share {overlap} "
            f"columns; two stages of {COLUMNS // 2} columns and {LANES} rows share 1 to {COLUMNS // 2 - 1}. "
            f"Without overlap={overlap} the stages have columns of their own"
        )
    step = (columns - overlap) * elements_per_column(value_bits)
    return make_layout(*[layout[i] for i in range(3)], Layout(stages, step))


def _parts(function: str, shape: Any) -> tuple[tuple[int, int], Any]:
    """The tile (M, N) of one MMA and the numbers of tiles of a shape ``((M, N), tiles...)``."""
    if not isinstance(shape, tuple) or len(shape) < 2 or not isinstance(shape[0], tuple) or len(shape[0]) != 2:
        raise ConstraintError(
            f"{function}: the shape {shape} is not of the form ((M, N), tiles...), as partition_shape gives it"
        )
    if any(not isinstance(x, int) or x < 1 for x in flatten_to_tuple(shape)):
        raise ConstraintError(
            f"{function}: the shape {shape} has an extent that is not a positive integer known at compile time"
        )
    return (int(product(shape[0][0])), int(product(shape[0][1]))), shape[1:]


def _check_rows(m: int, ctas: int, alloc_mode: TmemAllocMode) -> None:
    _check_ctas(ctas)
    rows = _ROWS.get((ctas, alloc_mode))
    who = "one block" if ctas == 1 else "a pair of blocks"
    if rows is None:
        modes = " and ".join(mode.value for count, mode in _ROWS if count == ctas)
        raise ConstraintError(f"tmem_layout: {alloc_mode.value} is not for {who}, whose modes are {modes}")
    if m not in rows:
        raise ConstraintError(
            f"tmem_layout: the part of a block has {m} rows; for {who} and {alloc_mode.value} it has "
            f"{' or '.join(map(str, rows))}" + (" (half of the MMA's M)" if ctas == 2 else "")
        )


def _check_ctas(ctas: int) -> None:
    if ctas not in (1, 2):
        raise ConstraintError(f"tensor memory: one MMA is the work of 1 or 2 blocks, not of {ctas}")


def _check_accumulator(
    mma_mn: tuple[int, int], tile_mn: tuple[int, int], value_bits: int, ctas: int, stages: int
) -> None:
    _check_ctas(ctas)
    (m, n), step = mma_mn, 8 * ctas
    if m not in (64 * ctas, 128 * ctas):
        raise ConstraintError(f"accumulator_layout: M is {m}; with {ctas} blocks it is {64 * ctas} or {128 * ctas}")
    if n % step or not step <= n <= 256:
        raise ConstraintError(f"accumulator_layout: N is {n}; with {ctas} blocks it is a multiple of {step} up to 256")
    if any(whole < 1 or whole % part for whole, part in zip(tile_mn, mma_mn, strict=True)):
        raise ConstraintError(f"accumulator_layout: a tile of {tile_mn} does not consist of MMAs of {mma_mn}")
    if value_bits not in (16, 32):
        raise ConstraintError(f"accumulator_layout: accumulators have 16 or 32 bits, not {value_bits}")
    if stages < 1:
        raise ConstraintError(f"accumulator_layout: {stages} stages; at least one is needed")


def _folded(function: str, m: int, n: int) -> Layout:
    """A tile of m rows whose N is cut into 128/m parts, which are one after the other in the lanes."""
    folds = LANES // m
    if n % folds:
        raise ConstraintError(f"{function}: N is {n}; of {m} rows, the lanes have {folds} equal parts of N")
    return Layout((m, n), (1, LANES)) if folds == 1 else Layout((m, (n // folds, folds)), (1, (LANES, m)))


def _interleaved(shape: Any, tiles: Layout, alloc_mode: TmemAllocMode) -> Layout:
    """The order of tiles of 64 rows of one block: they fill the halves of the lanes first, or every other half."""
    if alloc_mode is TmemAllocMode.NON_INTERLEAVED:
        return Layout(tiles.shape, transform_leaf(lambda stride: 2 * stride, tiles.stride))
    several = [extent for extent in flatten_to_tuple(tiles.shape) if extent > 1]
    if several and several[0] % 2:
        raise ConstraintError(
            f"tmem_layout: tiles of 64 rows interleave in pairs, and {several[0]} tiles of the shape {shape} are not "
            "pairs. Make the first number of tiles that is not 1 even, or take TmemAllocMode.NON_INTERLEAVED"
        )
    return tiles


def _placed(atom: Layout, tiles: Layout, value_bits: int, storage_bits: int) -> Layout:
    """A layout of tiles in elements of ``value_bits``, each of which takes ``storage_bits``."""
    slots = elements_per_column(storage_bits)
    if elements_per_column(value_bits) % slots:
        raise ConstraintError(
            f"tensor memory: {storage_bits} bits of storage do not hold an element of {value_bits} bits"
        )
    in_a_lane = _virtual_columns(atom)
    if in_a_lane % slots:
        raise ConstraintError(
            f"tensor memory: the tile {atom.shape} of one MMA has {in_a_lane} elements of {storage_bits} bits in a "
            f"lane, which do not fill columns of {COLUMN_BITS} bits; make that a multiple of {slots}, by N"
        )
    return _restrided(atom, tiles, Fraction(value_bits), storage_bits // value_bits)


def _restrided(atom: Layout, tiles: Layout, bits: Fraction, step: int) -> Layout:
    """Tiles in virtual tensor memory (a lane is 1, a column 128) in elements of ``bits``, ``step`` apart in a lane."""
    virtual = tiled_product(atom, tiles)
    columns = -(-_virtual_columns(virtual) * step // elements_per_column(bits))
    if columns > COLUMNS:
        raise ConstraintError(
            f"tensor memory: {virtual.shape} takes {columns} columns, and there are {COLUMNS}; "
            "take fewer or smaller tiles or stages"
        )
    return composition(Layout((LANES, _REACH), (lane_stride(bits), step)), virtual)


def _virtual_columns(virtual: Layout) -> int:
    return -(-int(cosize(virtual)) // LANES)
