"""Vectors of an epilogue on their way while the last products of a tile are still under way.

The rows and columns of a warpgroup's part of a tile need some elements of vectors such as scales and biases. Loaded by
each thread for the accumulators that it holds, an element is loaded by 8 or 4 lanes, and again for each part of the
epilogue, which waits for it. Here each element is in one lane of a warp: a few registers and loads for a whole tile,
issued before the last wgmma have ended. A thread takes the elements of its accumulators from the lanes that have them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright import Float32, cute, range_constexpr
from tilewright.gemm.epilogue.functions import numbers_of, vectors_of
from tilewright.gemm.epilogue.tile import EpilogueTile

LANES, ROWS_OF_WARP, ROWS = 32, 16, 64
"""Lanes of a warp, and of the rows of one wgmma those that a warp holds and all."""


@dataclass(frozen=True)
class ComingVector:
    """``vector`` along ``mode`` of a part of ``extent`` lines that begins at line ``first`` of ``end``: element
    32 j + i of those that a warp needs is in register j of lane i."""

    vector: Any
    mode: int
    extent: int
    first: Any
    end: Any
    held: cute.Tensor

    @classmethod
    def of(cls, vector: Any, mode: int, extent: int, first: Any, end: Any) -> ComingVector:
        """With registers for its elements, which are not loaded."""
        lines = extent if mode == 1 else extent * ROWS_OF_WARP // ROWS
        kind = vector.element_type if vector.element_type.width == 32 else Float32  # one shuffle moves 32 bits
        held = cute.make_rmem_tensor(-(-lines // LANES), kind)
        return cls(vector, mode, extent, first, end, held)

    @cute.jit
    def load(self) -> None:
        """Issue the loads; what is outside of the matrix is 0."""
        lane, zero = cute.arch.lane_idx(), self.held.element_type(0)
        warp = cute.arch.warp_idx() % 4
        for j in range_constexpr(cute.size(self.held)):
            line = LANES * j + lane
            if self.mode == 0:
                line = line // ROWS_OF_WARP * ROWS + warp * ROWS_OF_WARP + line % ROWS_OF_WARP
            at = self.first + line
            # Loaded without a condition: wgmma are in flight, and ptxas would wait for them at a branch.
            element = self.vector[cute.min(at, self.end - 1)].to(self.held.element_type)
            self.held[j] = cute.where(at < self.end, element, zero)

    @cute.jit
    def taken(self, offsets: list[int]) -> cute.Tensor:
        """The elements of the lines that are ``offsets`` after the calling thread's first one in the part, in
        registers. All lanes of a warp call it."""
        lane = cute.arch.lane_idx()
        own = lane % 4 * 2 if self.mode == 1 else lane // 4
        found = cute.make_rmem_tensor(len(offsets), self.vector.element_type)
        for i in range_constexpr(len(offsets)):
            place = offsets[i] if self.mode == 1 else offsets[i] // ROWS * ROWS_OF_WARP + offsets[i] % ROWS
            element = cute.arch.shuffle_sync(self.held[place // LANES], place % LANES + own)
            found[i] = element.to(self.vector.element_type)
        return found


@dataclass(frozen=True)
class ComingVectors:
    """What an epilogue will ask for of one warpgroup's part of a tile: elements of vectors, and numbers."""

    vectors: tuple[ComingVector, ...]
    numbers: tuple[tuple[Any, cute.Tensor], ...]
    """Vectors of one element, and a register for it."""

    @classmethod
    def of(cls, function: Any, part: tuple[int, int], first: tuple, extent: tuple, transposed: bool) -> ComingVectors:
        """The vectors of ``function`` for a ``part`` (rows, columns), which begins at ``first``, of a matrix of
        ``extent``, without those whose type a shuffle cannot move."""
        vectors = (
            (vector, 1 - kind if transposed else kind)
            for vector, kind in vectors_of(function)
            if vector.element_type.is_float and vector.element_type.width <= 32
        )
        return cls(
            tuple(ComingVector.of(vector, mode, part[mode], first[mode], extent[mode]) for vector, mode in vectors),
            tuple((one, cute.make_rmem_tensor(1, one.element_type)) for one in numbers_of(function)),
        )

    def load(self) -> None:
        """Issue all loads."""
        for vector in self.vectors:
            vector.load()
        for number, held in self.numbers:
            held[0] = number[0]

    def fetch(self, tiles: list[tuple[int, EpilogueTile]], turn: int) -> None:
        """Give part ``turn`` of ``tiles``, pairs of the first column of a part and of the part, what belongs to its
        elements. All parts have the same rows: their elements are taken once."""
        begin, tile = tiles[turn]
        for one in self.vectors:
            key = id(one.vector), one.mode
            if one.mode == 0 and turn:
                tile.ahead[key] = tiles[0][1].ahead[key]
            else:
                shift = begin if one.mode == 1 else 0
                tile.ahead[key] = one.taken([shift + offset for offset in tile.offsets(one.mode)])
        for number, held in self.numbers:
            tile.numbers[id(number)] = held
