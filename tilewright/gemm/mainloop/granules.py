"""The loader of an operand whose rows begin anywhere: whole granules of 16 bytes, shifted into place.

A vector of 16 bytes for shared memory crosses two *granules*, the aligned 16 bytes that memory is read by. Loading
both and shifting takes a fifth of the instructions that single elements would. Every granule that is read has bytes of
the matrix in it, so it is never in a page that is not there; but at the matrix's two ends it has foreign bytes, too,
and there the elements are read one by one.
"""

from __future__ import annotations

from typing import Any

from tilewright import Boolean, Int32, Int64, Uint8, Uint16, Uint32, Uint64, cute, range, range_constexpr
from tilewright.gemm.access import AccessRequirement
from tilewright.gemm.config import Major, Operand

GRANULE = 16  # bytes
WORDS = GRANULE // 4


class GranuleLoader:
    """Copies k tile after k tile of one operand into its shared-memory stages, as ``TileLoader`` does, through
    registers: ``begin`` reads granules, ``finish`` shifts and stores.

    ``gX`` is (MN, K, k tiles) shifted so that the *first* tile of the matrix is the ragged one; ``cX`` has the
    coordinates of ``gX``; ``extent`` is the true size of MN; ``matrix`` the whole operand, (MN, K).
    """

    # The last row must be the last in memory: from there on elements are read one by one.
    ACCESS = AccessRequirement("the loader of granules", along=(Major.K,), least_stride=0)

    def __init__(
        self,
        operand: Operand,
        tiled_copy: Any,
        thread: Any,
        gX: Any,
        cX: Any,
        sX: Any,
        extent: Any,
        k_begin: Any,
        matrix: Any,
    ) -> None:
        self.dtype, self.k_begin = operand.dtype, k_begin
        self.bytes = operand.dtype.width // 8
        self.elements = GRANULE // self.bytes  # of a vector
        self.unsigned = {8: Uint8, 16: Uint16, 32: Uint32}[operand.dtype.width]
        slice_ = tiled_copy.get_slice(thread)
        self.source = slice_.partition_S(gX)  # (CPY, CPY_MN, CPY_K, k tiles)
        self.target = slice_.partition_D(sX)  # (CPY, CPY_MN, CPY_K, stages)
        self.coordinates = slice_.partition_S(cX)  # (CPY, CPY_MN, CPY_K, k tiles)
        self.atom = tiled_copy
        self.extent = extent
        self.low = matrix.iterator.toint()
        self.high = self.low + (Int64(matrix.layout(tuple(n - 1 for n in matrix.shape))) + 1) * self.bytes
        rows, columns = (cute.size(self.target, mode=mode) for mode in ([1], [2]))
        self.vectors = [(row, column) for row in range_constexpr(rows) for column in range_constexpr(columns)]
        self.raw = cute.make_rmem_tensor((2 * WORDS, len(self.vectors)), Uint32)  # two granules of each vector
        self.shift = cute.make_rmem_tensor((len(self.vectors),), Int32)  # bytes that come before it
        self.shift.fill(0)  # what is outside of the matrix is shifted, too: zeros
        self.inside = cute.make_rmem_tensor((len(self.vectors),), Boolean)
        for i in range_constexpr(len(self.vectors)):
            row, column = self.vectors[i]
            self.inside[i] = cute.elem_less(self.coordinates[0, row, column, 0][0], extent)

    def load_first(self, stage: int) -> None:
        """Tile ``k_begin``; elements before the matrix's beginning become zero."""
        self.begin(self.k_begin, stage)
        self._store(stage, ragged=True)

    def load(self, k_tile: Any, stage: Any) -> None:
        self.begin(k_tile, stage)
        self.finish(stage)

    def stop(self) -> None:
        """No more tiles: later loads only write zeros to shared memory."""
        self.inside.fill(False)

    @cute.jit
    def begin(self, k_tile: Any, stage: Any) -> None:
        """Start a load that ``finish`` completes; the MMAs between the two hide the wait for memory."""
        self.raw.fill(0)
        for i in range_constexpr(len(self.vectors)):
            row, column = self.vectors[i]
            if self.inside[i]:
                first = self.source[None, row, column, k_tile].iterator
                start = (first - (self.elements - 1)).align(GRANULE)
                address = start.toint()
                self.shift[i] = Int32(first.toint() - address)
                if (address >= self.low) & (address + 2 * GRANULE <= self.high):
                    granules = cute.make_tensor(cute.recast_ptr(start, dtype=Uint32), cute.make_layout(2 * WORDS))
                    cute.autovec_copy(granules, self.raw[None, i])
                else:
                    words = self._elements(start, address)
                    for w in range_constexpr(2 * WORDS):
                        self.raw[w, i] = words[w]

    @cute.jit
    def _elements(self, start: Any, address: Any) -> list[Any]:
        """The words of two granules at an end of the matrix, with those elements that are the matrix's.

        The last element first: each pushes those after it up. The loop is short code for what few threads do.
        """
        pairs, width = cute.make_rmem_tensor((WORDS,), Uint64), self.dtype.width
        pairs.fill(0)
        for e in range(2 * self.elements - 1, -1, -1, unroll=1):
            at = address + e * self.bytes
            element = self.unsigned(0)
            if (at >= self.low) & (at < self.high):
                element = cute.recast_ptr(start, dtype=self.unsigned)[e]
            for p in range_constexpr(WORDS - 1, 0, -1):
                pairs[p] = (pairs[p] << width) | (pairs[p - 1] >> (64 - width))
            pairs[0] = (pairs[0] << width) | Uint64(element)
        return [Uint32(pairs[w // 2] >> (32 * (w % 2))) for w in range_constexpr(2 * WORDS)]

    def finish(self, stage: Any) -> None:
        self._store(stage, ragged=False)

    @cute.jit
    def _store(self, stage: Any, ragged: bool) -> None:
        """Shift each pair of granules, and store the vector that begins the pair then."""
        shape = cute.make_layout((self.elements, len(self.vectors)))
        vectors = cute.make_rmem_tensor(shape, self.dtype)
        words = cute.recast_tensor(vectors, Uint32)  # (WORDS, vectors)
        for i in range_constexpr(len(self.vectors)):
            row, column = self.vectors[i]
            shifted = funnel([self.raw[w, i] for w in range_constexpr(2 * WORDS)], self.shift[i])
            for w in range_constexpr(WORDS):
                words[w, i] = shifted[w]
            if ragged:
                for e in range_constexpr(self.elements):
                    if self.coordinates[e, row, column, self.k_begin][1] < 0:
                        vectors[e, i] = 0
            cute.copy(self.atom, cute.group_modes(vectors[None, i], 0, 1), self.target[None, row, column, stage])


def funnel(words: list[Any], shift: Any) -> list[Any]:
    """The 16 bytes that follow the first ``shift`` < 16 bytes of 32, as words."""
    for step in (2, 1):
        moved = (shift & (4 * step)) != 0
        words = [cute.where(moved, words[w + step], words[w]) for w in range_constexpr(len(words) - step)]
    bits = Uint64((shift & 3) * 8)
    return [Uint32(((Uint64(words[w + 1]) << 32) | Uint64(words[w])) >> bits) for w in range_constexpr(WORDS)]
