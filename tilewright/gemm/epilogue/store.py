"""From accumulators to D, by way of an epilogue function: straight from registers, or through shared memory.

Both are predicated by whole vectors: D's contiguous extent is a multiple of the vector by the choice of the vector.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright import Boolean, Int32, const_expr, cute, range_constexpr
from tilewright.gemm.addressing import moved, shifts
from tilewright.gemm.config import GemmConfig, Major
from tilewright.gemm.epilogue.functions import EpilogueFunction, applied, stores_result
from tilewright.gemm.epilogue.quads import quads_hold_rows
from tilewright.gemm.epilogue.tile import EpilogueTile
from tilewright.gemm.tiles import smem_swizzled, vectors_along


def vector_atom(config: GemmConfig) -> Any:
    """One global access of C or D."""
    return cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), config.c.dtype, num_bits_per_copy=config.c.copy_bits)


def rounded(acc: Any, dtype: Any) -> Any:
    """The accumulators as a fragment of ``dtype``: themselves when they have that type."""
    if acc.element_type is dtype:
        return acc
    result = cute.make_rmem_tensor(acc.shape, dtype)
    result.store(acc.load().to(dtype))
    return result


def by_rows(scatter: Any, numbers: list[Any], extent: Any, mode: int, rank: int = 3) -> Any:
    """``move(atom, source, target, inside, stores)``: a copy of partitions between registers and D or C.

    ``scatter`` is None, or D's row indices and the stride of its rows: then row ``numbers[i]``, which goes along
    ``mode`` of the partitions, is where the indices say.
    """

    def plain(atom: Any, source: Any, target: Any, inside: Any, stores: bool) -> None:
        cute.copy(atom, source, target, pred=inside)

    if scatter is None:
        return plain
    indices, strides = scatter
    rows = cute.make_rmem_tensor(len(numbers), Int32)
    for i, number in enumerate(numbers):
        rows[i] = Int32(number)
    # C and D have the same rows but may have other strides, so their rows are elsewhere.
    shift = {stores: shifts(indices, rows, extent, strides[stores]) for stores in (False, True)}

    def one_by_one(atom: Any, source: Any, target: Any, inside: Any, stores: bool) -> None:
        for i in range(len(numbers)):
            here = tuple(i if at == mode else None for at in range(rank))
            ours, theirs = (source, target) if stores else (target, source)
            there = moved(theirs[here], shift[stores][i], strides[stores])
            pair = (ours[here], there) if stores else (there, ours[here])
            cute.copy(atom, *pair, pred=inside[here])

    return one_by_one


@dataclass(frozen=True)
class DirectEpilogue:
    """Every thread stores its own accumulators as vectors: for SIMT, whose threads own 4 x 4 blocks."""

    config: GemmConfig

    @property
    def smem_bytes(self) -> int:
        return 0

    @cute.jit
    def run(
        self,
        tiled_mma: cute.TiledMma,
        tidx: Any,
        acc: cute.Tensor,
        gC: cute.Tensor,
        gD: cute.Tensor,
        cD: cute.Tensor,
        smem: Any,
        extent: tuple,
        function: EpilogueFunction,
        scatter: Any = None,
    ) -> None:
        thr_mma = tiled_mma.get_slice(tidx)
        atom = vector_atom(self.config)
        # (vector, vectors along the contiguous mode, other mode) of the partitions (MMA, MMA_M, MMA_N)
        tD, tC, tc = (self.vectors(thr_mma.partition_C(tensor)) for tensor in (gD, gC, cD))
        inside = cute.make_rmem_tensor((1, *tc.shape[1:]), Boolean)
        for i in range_constexpr(cute.size(inside)):
            inside[i] = cute.elem_less(tc[i * self.config.c.vector], extent)
        rows = 2 if self.config.c.major is Major.K else 1  # the mode of the partitions that goes along M
        along = cute.size(tc, mode=[rows])
        numbers = [tc[(0, *(i if mode == rows else 0 for mode in (1, 2)))][0] for i in range(along)]
        move = by_rows(scatter, numbers, extent[0], rows)

        def read_source() -> Any:
            source = cute.make_rmem_tensor(acc.shape, self.config.c.dtype)
            source.fill(0)
            move(atom, tC, self.vectors(source), inside, False)
            return source.load()

        sums = applied(function, acc, EpilogueTile(thr_mma.partition_C(cD), extent, read_source))
        if const_expr(stores_result(function)):
            move(atom, self.vectors(rounded(sums, self.config.c.dtype)), tD, inside, True)

    def vectors(self, tensor: cute.Tensor) -> cute.Tensor:
        """A partition (MMA, MMA_M, MMA_N) as (vector, vectors of the contiguous mode, other mode)."""
        order = [2, 1] if self.config.c.major is Major.K else [1, 2]
        view = cute.make_tensor(tensor.iterator, cute.select(tensor.layout, mode=order))
        return cute.flat_divide(view, (self.config.c.vector,))


@dataclass(frozen=True)
class SharedEpilogue:
    """Accumulators are rounded into a swizzled shared-memory tile, which leaves for D in whole vectors of coalesced
    rows.

    C goes the same way backwards first where the function asks for it, so that results are computed in the
    accumulator's type and rounded once.
    """

    config: GemmConfig

    @property
    def layout(self) -> Any:
        bM, bN, _ = self.config.tile
        # Four lanes of an mma hold a pair each of one row; vectors of 16 bytes leave.
        unit = max(128, 8 * self.config.c.dtype.width)
        return smem_swizzled(self.config.c.dtype, (bM, bN), self.config.c.major, unit)

    @property
    def smem_bytes(self) -> int:
        bM, bN, _ = self.config.tile
        return bM * bN * self.config.c.dtype.width // 8

    @cute.jit
    def run(
        self,
        tiled_mma: cute.TiledMma,
        tidx: Any,
        acc: cute.Tensor,
        gC: cute.Tensor,
        gD: cute.Tensor,
        cD: cute.Tensor,
        smem: Any,
        extent: tuple,
        function: EpilogueFunction,
        scatter: Any = None,
    ) -> None:
        bM, bN, _ = self.config.tile
        dtype = self.config.c.dtype
        sD = cute.make_tensor(cute.recast_ptr(smem, dtype=dtype), self.layout)
        rows = vectors_along(
            vector_atom(self.config), (bM, bN), self.config.c.major, self.config.c.vector, self.config.threads
        )
        thread = rows.get_slice(tidx)
        tDsD, tDgD, tDgC, tDcD = (thread.partition_S(tensor) for tensor in (sD, gD, gC, cD))  # (CPY, CPY_M, CPY_N)
        inside = cute.make_rmem_tensor((tDsD.shape[0][1], *tDsD.shape[1:]), Boolean)  # (vectors of CPY, CPY_M, CPY_N)
        for i in range_constexpr(cute.size(inside)):
            inside[i] = cute.elem_less(tDcD[i * self.config.c.vector], extent)
        numbers = [tDcD[(0, 0), i, 0][0] for i in range(cute.size(tDcD, mode=[1]))]
        move = by_rows(scatter, numbers, extent[0], 1)

        thr_mma = tiled_mma.get_slice(tidx)
        tCsD = thr_mma.partition_C(sD)  # (MMA, MMA_M, MMA_N)

        def read_source() -> Any:
            # C goes the way of D backwards: whole vectors of coalesced rows, then each thread its own elements.
            vectors = cute.make_rmem_tensor(tDsD.shape, dtype)  # (CPY, CPY_M, CPY_N)
            vectors.fill(0)
            move(rows, tDgC, vectors, inside, False)
            cute.copy(rows, vectors, tDsD)
            cute.arch.sync_threads()
            source = cute.make_rmem_tensor(acc.shape, dtype)
            cute.autovec_copy(tCsD, source)
            return source.load()

        tile = EpilogueTile(thr_mma.partition_C(cD), extent, read_source, quads=quads_hold_rows(tiled_mma))
        sums = applied(function, acc, tile)
        # (MMA, MMA_M, MMA_N) into the swizzled tile, and out of it as (CPY, CPY_M, CPY_N).
        if const_expr(stores_result(function)):
            cute.autovec_copy(rounded(sums, dtype), tCsD)
            cute.arch.sync_threads()
            vectors = cute.make_rmem_tensor(tDsD.shape, dtype)  # (CPY, CPY_M, CPY_N)
            cute.copy(rows, tDsD, vectors)
            move(rows, vectors, tDgD, inside, True)


def epilogue_of(config: GemmConfig) -> DirectEpilogue | SharedEpilogue:
    return SharedEpilogue(config) if config.tensor_cores else DirectEpilogue(config)
