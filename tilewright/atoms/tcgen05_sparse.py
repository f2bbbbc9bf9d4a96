"""``tcgen05.mma.sp``: A is sparse, so that K is twice as long; its metadata is in tensor memory (PTX ISA,
"tcgen05.mma.sp", "Sparse Matrices"; CuTe: ``tmem_e_frg``, ``tmem_e_frg_ws`` and the ``_SPARSE`` traits in
include/cute/atom/mma_traits_sm100.hpp).

Half of each chunk of neighbours along K is stored, and 4 bits of metadata say which half::

    kind                          chunk   unit         4 bits: two places of units, of 2 bits each
    tf32                          2       half a number  0b0100 the first number, 0b1110 the second
    f16, f8f6f4, i8, mxf8f6f4     4       a number       the two places
    mxf4, mxf4nvf4                8       two numbers    the two places

The place in the low bits is that of the unit which is stored first. Of f16 and tf32 an instruction needs one column,
that with the number ``selector`` of two; of the others two columns. Where the metadata of 64 rows is without ``.ws``,
PTX shows in figures only, and CuTe does not have it: such shapes are refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tilewright.atoms.sparsity import SPARSITY
from tilewright.atoms.tcgen05_action import Product
from tilewright.atoms.tcgen05_mma import Tcgen05Mma
from tilewright.atoms.tcgen05_scaled import ScaledProduct, Tcgen05ScaledMma
from tilewright.atoms.tcgen05_ws import Tcgen05WsMma
from tilewright.atoms.tensor_memory import COLUMNS, LANES, METADATA_BITS, metadata_layout, tmem_place
from tilewright.atoms.tensor_memory_state import TensorMemory
from tilewright.errors import ConstraintError
from tilewright.ir.core import Op
from tilewright.ir.instruction import need
from tilewright.ir.lanes import Array
from tilewright.layout.evaluate import static_offsets

MEANINGFUL = (0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b0110, 0b1110)
"""What 4 bits of metadata can be; of tf32 only 0b0100 and 0b1110."""


class MetadataPlaces(NamedTuple):
    """``[copies, M, K / chunk]`` lane, column and lowest bit of the 4 bits of each chunk."""

    lane: Array
    column: Array
    bit: Array

    @property
    def columns(self) -> int:
        """How many columns there are."""
        return int(self.column.max()) + 1


@lru_cache(maxsize=32)
def metadata_places(m: int, k: int, width: int) -> MetadataPlaces:
    """Where the metadata of one block is, of M rows and K numbers of ``width`` bits, from the first column on. Below
    128 rows it is there several times, for the parts of N of ``.ws``.

    >>> places = metadata_places(128, 32, 16)
    >>> [int(x[0, 9, 7]) for x in places], metadata_places(32, 64, 8).lane[:, 5, 0].tolist()
    ([9, 0, 28], [5, 37, 69, 101])
    """
    layout, bits = metadata_layout(((LANES, k), 1, 1), width), METADATA_BITS[width]
    chunk = int(4 / bits)
    at = np.array(static_offsets(layout[0])).reshape(k, LANES).T[:, ::chunk]
    where = np.array([[tmem_place(int(x), bits) for x in row] for row in at])
    lane, column, bit = where[..., 0], where[..., 1], (where[..., 2] * float(bits)).astype(int)
    # Rows go by 16, or one by one, through as many lanes: the first M rows of 128 take the first M lanes.
    copies = [(lane[:m] + m * i, column[:m], bit[:m]) for i in range(LANES // m)]
    return MetadataPlaces(*(np.stack(arrays) for arrays in zip(*copies, strict=True)))


class _Sparse(Tcgen05Mma):
    """The common part: A is M x K / 2 in memory."""

    sparsity: ClassVar[int] = SPARSITY

    def __post_init__(self) -> None:
        super().__post_init__()
        rows = self.shape_mnk[0] // self.ctas
        if rows != LANES and not self.stationary:
            raise ConstraintError(
                f"{self.form}: a sparse A of {rows} rows in a block is not here: where its metadata is, PTX shows in a "
                f"figure only. There is M = {LANES * self.ctas}, and .ws with fewer rows"
            )

    @property
    def metadata_width(self) -> int:
        """The width of numbers by which the metadata is laid out: 4 and 6 bits of f8f6f4 and mxf8f6f4 are like 8."""
        return self.stored_type("A").width

    @property
    def places(self) -> MetadataPlaces:
        m, _, k = self.shape_mnk
        return metadata_places(m // self.ctas, k, self.metadata_width)

    def verify(self, op: Op) -> None:
        need(
            op,
            False,
            f"{self}: cute.gemm does not issue it; tcgen05_mma of cutlass.experimental.primitives does, with "
            "sparse_metadata=",
        )


@dataclass(frozen=True, repr=False)
class Tcgen05SparseMma(_Sparse):
    """The data of one ``tcgen05.mma.sp``; K is that of B. Fields as of :class:`.Tcgen05Mma`.

    >>> from tilewright.ir.types import BF16, F32
    >>> atom = Tcgen05SparseMma("f16", (128, 64, 32), F32, BF16, BF16)
    >>> atom, atom.mnemonic(), atom.stored_k
    (SM100_128x64x32_F32BF16BF16_SS_SPARSE<K,K>, 'tcgen05.mma.sp.cta_group::1.kind::f16', 16)
    """


@dataclass(frozen=True, repr=False)
class Tcgen05SparseWsMma(_Sparse, Tcgen05WsMma):
    """The data of one ``tcgen05.mma.ws.sp``.

    >>> from tilewright.ir.types import BF16, F32
    >>> Tcgen05SparseWsMma("f16", (32, 64, 32), F32, BF16, BF16)
    SM100_32x64x32_F32BF16BF16_WS_SS_SPARSE<K,K>
    """


@dataclass(frozen=True, repr=False)
class Tcgen05SparseScaledMma(_Sparse, Tcgen05ScaledMma):
    """The data of one ``tcgen05.mma.sp`` with block scales: as many factors of a row as a dense one has, each for
    twice as many elements.

    >>> from tilewright.ir.types import E4M3, E8M0, F32
    >>> Tcgen05SparseScaledMma("mxf8f6f4", (128, 64, 64), F32, E4M3, E4M3, scale=E8M0, vec=64)
    SM100_128x64x64_F32E4M3E4M3_SS_SPARSE<K,K>_UE8M0x64
    """


class SparseProduct(Product):
    """One call of one warp: A is written out with its zeros."""

    atom: _Sparse

    def _metadata_columns(self) -> range:
        place, selector = self.further.metadata, self.further.selector
        first = (place & 0xFFFF) + selector
        return range(first, first + self.atom.places.columns)

    def reads(self) -> list[tuple[Any, Any]]:
        columns = self._metadata_columns()
        return [*super().reads(), (slice(0, LANES), slice(columns.start, min(COLUMNS, columns.stop)))]

    def _check(self) -> None:
        super()._check()
        place, selector = self.further.metadata, self.further.selector
        one = self.atom.places.columns == 1
        if place >> 16 or (one and place % 2):
            raise self.fault(
                f"takes the metadata of A from {place:#x}: it begins in lane 0"
                + (
                    ", and at an even column, of which and of the next the sparsity selector chooses one" if one else ""
                ),
                "take the address of the first of the columns",
            )
        if selector > (1 if one else 0):
            raise self.fault(
                f"has the sparsity selector {selector}; of kind {self.atom.kind} it is {'0 or 1' if one else '0'}",
                "build the instruction descriptor with another sparsity_selector",
            )
        columns = self._metadata_columns()
        self.need_allocated(np.array([columns.start, columns.stop - 1]))

    def stored(self, first: int, memory: TensorMemory) -> Array:
        """With its zeros: ``[1, rows, K]``."""
        elements = super().stored(first, memory)
        unit, places = self._unit(), self._units(memory)
        rows = elements.shape[1]
        if unit:
            chunks = np.zeros((rows, places.shape[1], 4, unit), elements.dtype)
            np.put_along_axis(chunks, places[..., None], elements.reshape(rows, -1, 2, unit), axis=2)
        else:
            chunks = np.zeros((rows, places.shape[1], 2), elements.dtype)
            np.put_along_axis(chunks, places[..., 1:] // 2, elements.reshape(rows, -1, 1), axis=2)
        return chunks.reshape(1, rows, -1)

    def _unit(self) -> int:
        """Numbers in a quarter of a chunk; 0: half a number."""
        return {32: 0, 4: 2}.get(self.atom.metadata_width, 1)

    def _units(self, memory: TensorMemory) -> Array:
        """``[rows, K / chunk, 2]`` which quarters of each chunk are stored."""
        where = self.atom.places
        at = where.lane, where.column + self._metadata_columns().start
        if not memory.written[at].all():
            raise self.fault(
                "reads metadata of A in tensor memory that nothing has written",
                "store it (tcgen05_st) or copy it from shared memory (tcgen05_cp) before the MMA",
            )
        nibbles = memory.words[at] >> where.bit.astype(np.uint32) & 15
        if (nibbles != nibbles[:1]).any():
            raise self.fault(
                f"reads metadata of A that is not the same for all {len(nibbles)} parts of N",
                f"write the rows to each {len(where.lane[0])} lanes",
            )
        patterns = (0b0100, 0b1110) if self._unit() == 0 else MEANINGFUL
        wrong = ~np.isin(nibbles[0], patterns)
        if wrong.any():
            row, chunk = np.argwhere(wrong)[0]
            raise self.fault(
                f"reads the metadata 0b{int(nibbles[0, row, chunk]):04b} of row {row}, chunk {chunk} of A, which has "
                f"no meaning; there are {', '.join(f'0b{x:04b}' for x in patterns)}",
                "two different places of 2 bits, that of the number which is stored first in the low bits",
            )
        return np.stack([nibbles[0] & 3, nibbles[0] >> 2], -1).astype(np.intp)


class SparseScaledProduct(ScaledProduct, SparseProduct):
    """One call of one warp, with block scales."""

    atom: Tcgen05SparseScaledMma
