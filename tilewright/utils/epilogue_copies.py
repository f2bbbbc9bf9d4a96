"""Which instructions an epilogue of sm_100 moves its accumulator with: from tensor memory, and on to shared memory.

The load is the one whose registers fit the widest store to shared memory, as large as the warp's part of the tile.
(CUTLASS: include/cutlass/epilogue/collective/builders/sm100_builder.inl, ``sm100_get_tmem_load_op`` and
``sm100_get_smem_store_op``.)
"""

from __future__ import annotations

from typing import NamedTuple

from tilewright.atoms.tensor_memory_copy import REGISTERS, tmem_copy_layouts
from tilewright.errors import ConstraintError

_COLUMN = 32
_NARROW = (4, 6, 8)
_WIDTHS = ((32, 32), (32, 16), (32, 8), (32, 6), (32, 4), (16, 16))


class TmemLoad(NamedTuple):
    """A ``tcgen05.ld``: its shape, how often it repeats, and whether registers pack two 16-bit accumulators.

    >>> print(TmemLoad("16x32bx2", 4, True))
    tcgen05.ld.sync.aligned.16x32bx2.x4.pack::16b.b32
    """

    shape: str
    repeat: int
    pack: bool = False

    def __str__(self) -> str:
        return f"tcgen05.ld.sync.aligned.{self.shape}.x{self.repeat}{'.pack::16b' * self.pack}.b32"


class MatrixCopy(NamedTuple):
    """An ``stmatrix`` or ``ldmatrix``: how many matrices, of elements of ``width`` bits (8: 16x8 ones), transposed."""

    matrices: int
    width: int
    transpose: bool


def block_scaled_epilogue_tile(cta_tile_m: int, cta_tile_n: int) -> tuple[int, int] | None:
    """The part (M, N) that the epilogue of block-scaled MMAs stores at a time, where it is another than that of
    ``compute_epilogue_tile_size``: of 256 columns it is 128, so that two stages of the accumulator can overlap.

    >>> block_scaled_epilogue_tile(128, 256), block_scaled_epilogue_tile(128, 192)
    ((128, 128), None)
    """
    return (min(cta_tile_m, 128), 128) if cta_tile_n == 256 else None


def tmem_load(lanes: int, columns: int, acc_width: int, d_width: int, m_major: bool) -> TmemLoad:
    """The load of a warp's part of an accumulator: ``lanes`` (16 or 32) by ``columns`` elements of ``acc_width`` bits,
    of which numbers of ``d_width`` bits are stored, contiguous along M or N.

    ConstraintError for parts and widths that no such load has.

    >>> print(tmem_load(32, 64, 32, 16, m_major=False))
    tcgen05.ld.sync.aligned.32x32b.x64.b32
    """
    if lanes not in (16, 32) or (acc_width, d_width) not in _WIDTHS or lanes == 16 and d_width in (4, 6):
        raise ConstraintError(
            f"tmem_load: no load of {lanes} lanes of accumulators of {acc_width} bits for results of {d_width}: lanes "
            "are 32, or 16 (not for results of 4 and 6 bits), and the widths "
            f"{', '.join(f'{a} for {d}' for a, d in _WIDTHS)}"
        )
    shape = _shape(lanes, acc_width, d_width, m_major)
    made = tmem_copy_layouts(shape, 1, pack=False)
    bits = columns * acc_width
    each = made.columns * _COLUMN
    repeat = REGISTERS // made.register_count
    while repeat and bits % (repeat * each):
        repeat //= 2
    if not repeat or columns < 1:
        raise ConstraintError(
            f"tmem_load: {columns} columns of {acc_width} bits are not a whole number of {shape}, which has {each} "
            "bits a lane"
        )
    return TmemLoad(shape, repeat, acc_width == 16)


def matrix_store(load: TmemLoad, acc_width: int, d_width: int, m_major: bool) -> MatrixCopy | None:
    """The ``stmatrix`` whose registers are those of a load; None where no one fits and registers are stored as vectors.

    What reads a source of ``d_width`` bits back into such registers is the ``ldmatrix`` of the same kind.

    >>> matrix_store(TmemLoad("16x256b", 4), 32, 16, m_major=True)
    MatrixCopy(matrices=4, width=16, transpose=True)
    """
    fits = {(32, 32): "16x128b", (32, 16): "16x256b", (16, 16): "16x128b", (32, 8): "16x256b"}
    needs_n, needs_m = d_width == 32, d_width == 8
    if fits.get((acc_width, d_width)) != load.shape or needs_n and m_major or needs_m and not m_major:
        return None
    if d_width == 8:
        return MatrixCopy(min(load.repeat, 4), 8, True)
    return MatrixCopy(min(2 * load.repeat, 4), 16, m_major)


def _shape(lanes: int, acc_width: int, d_width: int, m_major: bool) -> str:
    if lanes == 32:
        matrices = d_width == 16 and m_major
        return "32x32b" if not matrices else "16x128b" if acc_width == 16 else "16x256b"
    if acc_width == 16 or d_width == 32 and not m_major:
        return "16x128b"
    return "16x32bx2" if d_width in _NARROW and not m_major else "16x256b"
