"""Where the scale factors of block-scaled ``tcgen05.mma`` are: shared memory, tensor memory, and their copy.

A factor of 8 bits scales ``vec`` elements of a row. A block of 512 bytes has four factors each of 128 rows: byte
``(row % 32) * 16 + row / 32 * 4 + factor``; in tensor memory it takes four columns: lane ``row % 32``, repeated in each
32 lanes, column ``row / 32``, byte ``factor`` of the column. Blocks follow each other by rows, then along K. The rows
of SFB are padded to 128. (PTX ISA, "Scale factor layouts"; CuTe: include/cute/atom/mma_traits_sm100.hpp and
include/cutlass/detail/sm100_blockscaled_layout.hpp.)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tilewright.atoms.matrix_descriptor import TCGEN05, UNIT, MatrixDescriptor
from tilewright.atoms.tensor_memory import lane_stride
from tilewright.errors import ConstraintError
from tilewright.ir.lanes import Array
from tilewright.ir.types import E4M3, E8M0, ScalarType
from tilewright.layout import Layout

ROWS = 128
FACTORS = 4
"""Factors of a row in one block."""
BLOCK_BYTES = ROWS * FACTORS
BLOCK_COLUMNS = 4
_ID_SHIFT = 30
SCALES = {E8M0: "ue8m0", E4M3: "ue4m3"}
VECTORS: dict[str, dict[str, tuple[int, ...]]] = {
    "mxf8f6f4": {"ue8m0": (32,)},
    "mxf4": {"ue8m0": (32,)},
    "mxf4nvf4": {"ue8m0": (16, 32), "ue4m3": (16,)},
}
"""For each kind and format of the factors: the numbers of elements that may share one factor."""


class ScaleTile(NamedTuple):
    """The scale factors of an operand's tile: ``rows`` along M or N, ``k`` elements along K, ``vec`` of which share a
    factor; ``mma_k`` is K of one MMA.

    >>> tile = ScaleTile(rows=192, k=256, vec=32, mma_k=64)
    >>> tile.row_blocks, tile.factors, tile.columns, hex(tile.address(0x100, 3))
    (2, 2, 16, '0x80000108')
    """

    rows: int
    k: int
    vec: int
    mma_k: int

    @property
    def row_blocks(self) -> int:
        """Blocks of 128 rows."""
        return -(-self.rows // ROWS)

    @property
    def factors(self) -> int:
        """Factors of a row that one MMA takes: 1, 2 or 4. ConstraintError for another number, or half a block of K."""
        factors = self.mma_k // self.vec
        if factors * self.vec != self.mma_k or factors not in (1, 2, 4) or self.k % (FACTORS * self.vec) or self.k < 1:
            raise ConstraintError(
                f"scale factors: an MMA takes 1, 2 or 4 of a row, and a tile has whole blocks of {FACTORS}; K of the "
                f"MMA is {self.mma_k}, of the tile {self.k}, and {self.vec} elements share a factor: make K of the "
                f"tile a multiple of {FACTORS * self.vec}"
            )
        return factors

    @property
    def k_blocks(self) -> int:
        """Blocks along K."""
        return self.k // (FACTORS * self.vec)

    @property
    def blocks(self) -> int:
        return self.row_blocks * self.k_blocks

    @property
    def columns(self) -> int:
        """Columns of tensor memory."""
        return BLOCK_COLUMNS * self.blocks

    def smem_layout(self, stages: int | None = None) -> Layout:
        """(rows and elements of an MMA, 1, MMAs along K), with stages or without, to bytes in shared memory.

        >>> ScaleTile(128, 128, 32, 32).smem_layout()
        ((((32,4),1),(32,1)),1,(4,1)):((((16,4),512),(0,1)),0,(1,512))
        """
        f, r = self.factors, self.row_blocks
        shape = ((((32, 4), r), (self.vec, f)), 1, (FACTORS // f, self.k_blocks))
        stride = ((((16, 4), BLOCK_BYTES), (0, 1)), 0, (f, BLOCK_BYTES * r))
        if stages is None:
            return Layout(shape, stride)
        return Layout((*shape, stages), (*stride, BLOCK_BYTES * self.blocks))

    def tmem_layout(self) -> Layout:
        """(rows and elements of an MMA, 1, MMAs along K) to bytes of tensor memory; mode (.., 4) is the repetition.

        >>> ScaleTile(128, 128, 32, 32).tmem_layout()
        ((((32,4),4),(32,1)),1,(4,1)):((((262144,4),8388608),(0,1)),0,(1,0))
        """
        f, r, lane = self.factors, self.row_blocks, lane_stride(8)
        steps = (f if f < FACTORS else 0, 4 * BLOCK_COLUMNS * r if self.k_blocks > 1 else 0)
        return Layout(
            ((((32, 4 * r), 4), (self.vec, f)), 1, (FACTORS // f, self.k_blocks)),
            ((((lane, 4), 32 * lane), (0, 1)), 0, steps),
        )

    def address(self, base: int, k_tile: int) -> int:
        """The address that MMA number ``k_tile`` along K gets: its first factor's byte in bits 30-31, then columns."""
        block, first = divmod(k_tile * self.factors, FACTORS)
        return base + BLOCK_COLUMNS * self.row_blocks * block | first << _ID_SHIFT

    def copies(self, smem: int, tmem: int) -> Iterator[tuple[MatrixDescriptor, int]]:
        """The copies ``tcgen05.cp.32x128b.warpx4`` of a tile: descriptor and address in tensor memory, a block each.

        >>> [(hex(desc.word), hex(to)) for desc, to in ScaleTile(128, 256, 32, 32).copies(0x400, 0x40)]
        [('0x400800010040', '0x40'), ('0x400800010060', '0x44')]
        """
        for i in range(self.blocks):
            place = smem + BLOCK_BYTES * i
            yield MatrixDescriptor(1, ROWS // UNIT, "INTER", place, TCGEN05), tmem + BLOCK_COLUMNS * i


@lru_cache(maxsize=2)
def values_of(type_: ScalarType) -> Array:
    """The number that each byte stands for; the sign of E4M3 does not count."""
    bytes_ = np.arange(256, dtype=np.uint8) & (0xFF if type_ == E8M0 else 0x7F)
    return bytes_.view(type_.dtype).astype(np.float64)
