"""From the accumulators of a warpgroup to D by TMA: part by part through swizzled shared memory.

A warpgroup writes its rows ``columns`` at a time: function, rounding, stmatrix into one of a few buffers, and a TMA
store that one warp issues and that runs while the next part is made, and while the next tile is multiplied. A buffer
is written again when the store before has read it: the storing warp waits for that just before the barrier after which
the buffer is next, so that each part costs one barrier.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from tilewright import Boolean, const_expr, cute, range_constexpr
from tilewright.cute.nvgpu import cpasync, warp
from tilewright.gemm.access import VECTOR, AccessRequirement
from tilewright.gemm.config import HopperConfig, Major
from tilewright.gemm.epilogue.coming import ComingVectors
from tilewright.gemm.epilogue.functions import EpilogueFunction, applied, second_outputs, stores_result, vectors_of
from tilewright.gemm.epilogue.quads import quads_hold_rows
from tilewright.gemm.epilogue.store import rounded
from tilewright.gemm.epilogue.tile import EpilogueTile
from tilewright.layout.ints import divisor_of
from tilewright.utils import LayoutEnum, hopper_helpers


@dataclass(frozen=True)
class TmaStoreEpilogue:
    """D of one warpgroup: its part of the tile in parts of ``config.epilogue_columns``."""

    config: HopperConfig

    ACCESS = AccessRequirement("TMA", step=VECTOR, whole=True, least_stride=1)
    """The requirements on D, and on C, which threads read in pairs of elements: both along D's contiguous mode."""

    @property
    def layout(self) -> Any:
        """(rows, columns, buffers, warpgroups)"""
        config = self.config
        row_major = config.c.major is Major.K
        layout = LayoutEnum.ROW_MAJOR if row_major else LayoutEnum.COL_MAJOR
        kind = hopper_helpers.get_smem_layout_atom(
            layout, config.c.dtype, config.epilogue_columns if row_major else config.part[0]
        )
        atom = cute.nvgpu.warpgroup.make_smem_layout_atom(kind, config.c.dtype)
        shape = (config.part[0], config.epilogue_columns, config.epilogue_buffers, config.warpgroups)
        return cute.tile_to_shape(atom, shape, order=(0, 1, 2, 3) if row_major else (1, 0, 2, 3))

    def tma(self, mD: Any) -> tuple[Any, Any]:
        """The TMA atom of D, and its (M, N, L) coordinate tensor."""
        one = cute.slice_(self.layout, (None, None, 0, 0))
        tile = (self.config.part[0], self.config.epilogue_columns)
        pair: Any = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), mD, one, tile)
        return pair

    def store_atom(self) -> Any:
        """Registers to shared memory: stmatrix for 16-bit results, which it transposes for an M-major D."""
        dtype = self.config.c.dtype
        if dtype.width != 16:
            return cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), dtype)
        matrices = 4 if self.config.epilogue_columns % 16 == 0 else 2
        op = warp.StMatrix8x8x16bOp(transpose=self.config.c.major is Major.MN, num_matrices=matrices)
        return cute.make_copy_atom(op, dtype)

    def output_atoms(self, function: EpilogueFunction) -> tuple[Any, ...]:
        """The TMA atom and the (M, N) coordinate tensor of each of the :func:`second_outputs` that can leave as D does;
        None for others, whose elements threads store."""
        return tuple(self.tma(self.of_kernel(x)) if self.stores(x) else None for x in second_outputs(function))

    def of_kernel(self, matrix: cute.Tensor) -> cute.Tensor:
        """A matrix of the user's as the kernel counts rows and columns."""
        if not self.config.transposed:
            return matrix
        return cute.make_tensor(matrix.iterator, cute.select(matrix.layout, mode=[1, 0]))

    def stores(self, matrix: cute.Tensor) -> bool:
        """Whether the type of a second output says that it meets what ``ACCESS`` wants of D: its elements go through
        D's buffers."""
        inner, outer = (1, 0) if self.config.c.major is Major.K else (0, 1)
        if matrix.element_type is not self.config.c.dtype or cute.rank(matrix) != 2:
            return False
        strides = self.of_kernel(matrix).stride
        step = self.ACCESS.step
        return (
            isinstance(strides[inner], int)
            and strides[inner] == 1
            and divisor_of(strides[outer]) * matrix.element_type.bytes % step == 0
            and matrix.iterator.alignment % step == 0
        )

    def run(
        self, tiled_mma: cute.TiledMma, tidx: Any, sums: list[tuple[Any, cute.Tensor]], *to: Any, **how: Any
    ) -> None:
        """Write the ``sums``, pairs of a part's number and its accumulators, of a warpgroup, whose thread is ``tidx``:
        :meth:`write_parts` says ``to`` where, and ``how``."""
        self.by_turns(sums, lambda these: self.write_parts(tiled_mma, tidx, these, *to, **how))

    def by_turns(self, sums: list[tuple[Any, cute.Tensor]], write: Callable[[list], None]) -> None:
        """``write`` the parts that are written out one after the other: all, where registers hold them."""
        write(sums)

    @cute.jit
    def write_parts(
        self,
        tiled_mma: cute.TiledMma,
        tidx: Any,
        sums: list[tuple[Any, cute.Tensor]],
        atom: cute.CopyAtom,
        gD: cute.Tensor,
        gC: cute.Tensor,
        cD: cute.Tensor,
        sD: cute.Tensor,
        extent: tuple,
        function: EpilogueFunction,
        barrier: Any,
        descriptor: Any = None,
        outputs: tuple = (),
        coming: ComingVectors | None = None,
        begins: Any = False,
    ) -> None:
        """Write ``sums`` one after the other.

        ``tiled_mma`` is the warpgroup's on ``epilogue_columns``; ``gD`` (coordinates), ``gC`` and ``cD`` are the
        warpgroup's part of the output; ``barrier`` is the warpgroup's own; ``descriptor`` points to D's tensor map
        where it is not the atom's; then there are no ``outputs``, which are the pairs of :meth:`output_atoms`, whose
        tensors are the warpgroup's part. ``coming``: the vectors of the function that are under way already.
        ``begins``: whether the warpgroup has written nothing before.
        """
        by_parts = partial(cute.flat_divide, tiler=(self.config.part[0], self.config.epilogue_columns))
        gCs, cDs = (by_parts(tensor)[None, None, 0, None] for tensor in (gC, cD))  # (rows, columns, parts)
        kept = [(x, pair) for x, pair in zip(second_outputs(function), outputs, strict=False) if pair is not None]
        stores = [
            (atom, *self.store_partition(atom, sD, by_parts(tensor)))
            for atom, tensor in (*(pair for _, pair in kept), *([(atom, gD)] if stores_result(function) else []))
        ]  # (TMA atom, ((TMA), buffers), ((TMA), parts)) of the second outputs, and of D
        copy = cute.make_tiled_copy_C(self.store_atom(), tiled_mma)
        tRS_sD = copy.get_slice(tidx).partition_D(sD)  # (CPY, CPY_M, CPY_N, buffers)
        thr_mma = tiled_mma.get_slice(tidx)
        tiles, quads = [], quads_hold_rows(tiled_mma)
        for i, _ in sums:
            tCcD = thr_mma.partition_C(cDs[None, None, i])  # ((2, 2, columns / 8), MMA_M, 1)
            tCgC = thr_mma.partition_C(gCs[None, None, i])  # ((2, 2, columns / 8), MMA_M, 1)
            source = partial(self.read_source, tCgC, tCcD, extent)
            staged = {id(x): None for x, _ in kept}
            tiles.append(EpilogueTile(tCcD, extent, source, self.config.transposed, kept=staged, quads=quads))
        fetch = partial(self.fetch, function, coming, [(i, tile) for (i, _), tile in zip(sums, tiles, strict=True)])
        fetch(0)
        storing = cute.arch.make_warp_uniform(tidx // 32) == 0
        store = partial(self.store, copy, tRS_sD, storing, barrier, descriptor)
        if const_expr(len(sums) * len(stores) % self.config.epilogue_buffers != 0):
            # The last part of the tile before went through the first buffer: it has been read by now, most likely.
            if not begins:
                if storing:
                    cute.arch.cp_async_bulk_wait_group(0, read=True)
                barrier.arrive_and_wait()
        for turn in range_constexpr(len(sums)):
            i, part = sums[turn]
            if const_expr(turn + 1 < len(sums)):
                fetch(turn + 1)
            part = applied(function, self.sums(part), tiles[turn])
            results = rounded(part, self.config.c.dtype)
            fragments = [*tiles[turn].written(), results]
            for number in range_constexpr(len(stores)):
                buffer = (turn * len(stores) + number) % self.config.epilogue_buffers
                store(fragments[number], buffer, stores[number], i)

    def coming(self, function: EpilogueFunction, first: tuple, extent: tuple) -> ComingVectors:
        """What ``function`` will ask for of a warpgroup's part of the output that begins at ``first`` (row,
        column)."""
        return ComingVectors.of(function, self.config.part, first, extent, self.config.transposed)

    def fetch(
        self, function: EpilogueFunction, coming: ComingVectors | None, tiles: list[tuple[Any, EpilogueTile]], turn: int
    ) -> None:
        """Give part ``turn`` of ``tiles``, pairs of a part's number and the part, what ``function`` will ask for: what
        is ``coming`` from registers, where it is known which parts they are."""
        if coming is not None and all(isinstance(i, int) for i, _ in tiles):
            coming.fetch([(i * self.config.epilogue_columns, tile) for i, tile in tiles], turn)
        tile = tiles[turn][1]
        tile.fetch(pair for pair in vectors_of(function) if not tile.has(*pair))

    def store_partition(self, atom: cute.CopyAtom, sD: cute.Tensor, gD: cute.Tensor) -> Any:
        """((TMA), buffers) and ((TMA), parts) of one output, whose ``gD`` is (rows, columns, 1, parts)."""
        return cpasync.tma_partition(
            atom,
            0,
            cute.make_layout(1),
            cute.group_modes(sD, 0, 2),
            cute.group_modes(gD[None, None, 0, None], 0, 2),
        )

    @cute.jit
    def store(
        self,
        copy: cute.TiledCopy,
        tRS_sD: cute.Tensor,
        storing: Any,
        barrier: Any,
        descriptor: Any,
        fragment: cute.Tensor,
        buffer: int,
        output: tuple,
        i: Any,
    ) -> None:
        """Part ``i`` of an ``output``, ``fragment``, by way of ``buffer``."""
        cute.copy(copy, copy.retile(fragment), tRS_sD[None, None, None, buffer])
        # Threads wrote through the generic proxy; the TMA store reads through the async proxy.
        cute.arch.fence_proxy("async.shared", space="cta")
        if storing:
            # At most ``buffers - 2`` stores may still read: then the buffer of the next store is free.
            cute.arch.cp_async_bulk_wait_group(self.config.epilogue_buffers - 2, read=True)
        barrier.arrive_and_wait()
        if storing:
            atom, tSG_sD, tSG_gD = output
            cute.copy(atom, tSG_sD[None, buffer], tSG_gD[None, i], tma_desc_ptr=descriptor)
            cute.arch.cp_async_bulk_commit_group()

    @cute.jit
    def finish(self, tidx: Any) -> None:
        """After the last tile: the block's shared memory stays until the last stores have read it."""
        if cute.arch.make_warp_uniform(tidx // 32) == 0:
            cute.arch.cp_async_bulk_wait_group(0, read=True)

    @cute.jit
    def written(self, tidx: Any) -> None:
        """Wait until D has what this warpgroup stored: the warp that issued the stores."""
        if cute.arch.make_warp_uniform(tidx // 32) == 0:
            cute.arch.cp_async_bulk_wait_group(0)

    def sums(self, part: Any) -> cute.Tensor:
        """The accumulators of a part, in registers."""
        return part

    def parts(self, acc: cute.Tensor) -> list[tuple[Any, cute.Tensor]]:
        """All parts of a warpgroup's accumulators ((2, 2, part's columns / 8), MMA_M, 1)."""
        return [(i, self.part(acc, i)) for i in range(self.config.parts)]

    @property
    def apart(self) -> int:
        """The number of accumulators that a thread has of 64 rows. Each part has ``run_length`` neighbours of them."""
        return self.config.part[1] // 2

    @property
    def run_length(self) -> int:
        """Accumulators of one part that are neighbours."""
        return self.apart // self.config.parts

    def part(self, acc: cute.Tensor, i: int) -> cute.Tensor:
        """The accumulators of part ``i``, ((2, 2, columns / 8), MMA_M, 1)."""
        return self.of_part(acc.iterator + i * self.run_length, self.apart)

    def of_part(self, first: Any, apart: int) -> cute.Tensor:
        """The accumulators of one part from ``first`` on: ((2, 2, columns / 8), MMA_M, 1), those of the next 64 rows
        ``apart`` registers after these."""
        columns, rows = self.config.epilogue_columns // 8, self.config.part[0] // 64
        return cute.make_tensor(first, cute.make_layout(((2, 2, columns), rows, 1), stride=((1, 2, 4), apart, 0)))

    def read_source(self, tCgC: cute.Tensor, tCcD: cute.Tensor, extent: tuple) -> Any:
        """C's elements of one part, straight into registers; pairs where two columns are neighbours in memory."""
        pair = 2 if self.config.c.major is Major.K and self.config.c.vector > 1 else 1
        atom = cute.make_copy_atom(
            cute.nvgpu.CopyUniversalOp(), self.config.c.dtype, num_bits_per_copy=pair * self.config.c.dtype.width
        )
        source = cute.make_rmem_tensor(tCgC.shape, self.config.c.dtype)  # ((2, 2, columns / 8), MMA_M, 1)
        source.fill(0)
        g, r, c = (cute.flat_divide(cute.group_modes(x, 0, cute.rank(x)), (pair,)) for x in (tCgC, source, tCcD))
        inside = cute.make_rmem_tensor((1, cute.size(r, mode=[1])), Boolean)
        for i in range_constexpr(cute.size(inside)):
            inside[i] = cute.elem_less(c[0, i], extent)
        cute.copy(atom, g, r, pred=inside)
        return source.load()
