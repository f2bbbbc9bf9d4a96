"""The predicated loader of one operand: k tile after k tile from global to shared memory, for cp.async main loops."""

from __future__ import annotations

from typing import Any

from tilewright import Boolean, Int32, cute, range_constexpr
from tilewright.gemm.addressing import moved, shifts
from tilewright.gemm.config import LEAST_ASYNCHRONOUS, Operand


class TileLoader:
    """Copies k tile after k tile of one operand into its shared-memory stages.

    ``gX`` is (MN, K, k tiles) shifted so that the *first* tile of the matrix is the ragged one: only there does the
    first load, of tile ``k_begin``, need predicates along K; all others reuse those of the MN mode. ``cX`` has the
    coordinates of ``gX``; ``extent`` is the true size of MN. With ``gather``, a vector of indices, row i of MN is row
    ``gather[i]`` of the matrix, whose rows are ``stride`` elements apart; with a ``count``, rows that are not among so
    many are zeros.
    """

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
        gather: Any = None,
        stride: Any = None,
        count: Any = None,
    ) -> None:
        self.atom = tiled_copy
        self.k_begin = k_begin
        self.asynchronous = operand.copy_bits >= LEAST_ASYNCHRONOUS
        slice_ = tiled_copy.get_slice(thread)
        self.source = slice_.partition_S(gX)  # (CPY, CPY_MN, CPY_K, k tiles)
        self.target = slice_.partition_D(sX)  # (CPY, CPY_MN, CPY_K, stages)
        coordinates = slice_.partition_S(cX)  # (CPY, CPY_MN, CPY_K, k tiles)
        vectors, rows, columns = (cute.size(self.target, mode=mode) for mode in ([0, 1], [1], [2]))
        if not self.asynchronous:
            self.staging = cute.make_fragment_like(self.source[None, None, None, 0])  # (CPY, CPY_MN, CPY_K)
        # A predicate for each vector, (vectors of CPY, CPY_MN, CPY_K); those of MN alone are the same for all of K.
        self.inside = cute.make_rmem_tensor(cute.make_layout((vectors, rows, columns), stride=(rows, 1, 0)), Boolean)
        self.ragged = cute.make_rmem_tensor(cute.make_layout((vectors, rows, columns)), Boolean)
        for v in range_constexpr(vectors):
            for row in range_constexpr(rows):
                within = cute.elem_less(coordinates[(0, v), row, 0, 0][0], extent)
                self.inside[v, row, 0] = within
                for column in range_constexpr(columns):
                    k = coordinates[(0, v), row, column, k_begin][1]
                    self.ragged[v, row, column] = within & (k >= 0)

        self.shift: Any = None
        self.stride = stride
        if gather is not None:
            numbers = cute.make_rmem_tensor(rows, Int32)
            for row in range_constexpr(rows):
                numbers[row] = Int32(coordinates[(0, 0), row, 0, 0][0])
            if count is not None:
                self.leave_out(numbers, gather, extent, count)
            self.shift = shifts(gather, numbers, extent, stride, count)

    @cute.jit
    def leave_out(self, numbers: cute.Tensor, gather: cute.Tensor, extent: Any, count: Any) -> None:
        """Rows whose index is not one of ``count`` rows are not loaded."""
        vectors, rows, columns = self.ragged.shape
        for row in range_constexpr(rows):
            index = gather[cute.min(numbers[row], extent - 1)]
            there = (index >= 0) & (index < count)
            for v in range_constexpr(vectors):
                self.inside[v, row, 0] = self.inside[v, row, 0] & there
                for column in range_constexpr(columns):
                    self.ragged[v, row, column] = self.ragged[v, row, column] & there

    def load_first(self, stage: int) -> None:
        """Tile ``k_begin``; elements before the matrix's beginning become zero."""
        self._begin(self.k_begin, stage, self.ragged)
        self.finish(stage)

    def load(self, k_tile: Any, stage: Any) -> None:
        self.begin(k_tile, stage)
        self.finish(stage)

    def begin(self, k_tile: Any, stage: Any) -> None:
        """Start a load that ``finish`` completes: what cp.async cannot do goes through registers, and the MMAs between
        the two hide the wait for memory."""
        self._begin(k_tile, stage, self.inside)

    def finish(self, stage: Any) -> None:
        if not self.asynchronous:
            cute.copy(self.atom, self.staging, self.target[None, None, None, stage])

    def stop(self) -> None:
        """No more tiles: later loads only write zeros to shared memory."""
        self.inside.fill(False)

    def _begin(self, k_tile: Any, stage: Any, predicate: Any) -> None:
        source = self.source[None, None, None, k_tile]
        if self.shift is not None:
            self._gather(source, stage, predicate)
        elif self.asynchronous:
            cute.copy(self.atom, source, self.target[None, None, None, stage], pred=predicate)
        else:
            self.staging.fill(0)
            cute.copy(self.atom, source, self.staging, pred=predicate)

    def _gather(self, source: Any, stage: Any, predicate: Any) -> None:
        """The same, row by row: each is somewhere else."""
        if not self.asynchronous:
            self.staging.fill(0)
        for row in range_constexpr(cute.size(self.shift)):
            here = self.target[None, row, None, stage] if self.asynchronous else self.staging[None, row, None]
            there = moved(source[None, row, None], self.shift[row], self.stride)
            cute.copy(self.atom, there, here, pred=predicate[None, row, None])
