"""The multistage GEMM kernel: which tiles and k tiles a thread block multiplies, and where its sums are written.

The decomposition gives each block its share of the work, the main loop multiplies, blocks that share a tile add up
their sums, the epilogue writes D. Read on in ``launch`` (host), ``kernel`` and ``piece`` (one part of a tile).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import tilewright as cutlass
from tilewright import cute, utils
from tilewright.gemm.addressing import BY_STRIDES, Addressing
from tilewright.gemm.config import GemmConfig, Operand
from tilewright.gemm.epilogue.fragment import FragmentEpilogue
from tilewright.gemm.epilogue.functions import EpilogueFunction, of_k_partition
from tilewright.gemm.epilogue.store import epilogue_of
from tilewright.gemm.kernel.overlap import wait_then_let_next_begin
from tilewright.gemm.mainloop.math import math_of
from tilewright.gemm.mainloop.multistage import MultistageMainloop, OperandSlices
from tilewright.gemm.schedule.decomposition import DataParallel
from tilewright.gemm.schedule.fixup import Fixup, SumPartition
from tilewright.gemm.schedule.launch_arguments import Decomposition
from tilewright.gemm.schedule.partials import Partials
from tilewright.gemm.schedule.raster import raster_of
from tilewright.gemm.schedule.shared import SharedTiles
from tilewright.gemm.tiles import aligned, global_to_shared
from tilewright.lang.device.rematerialize import rematerialize

DATA_PARALLEL = DataParallel()


@dataclass(frozen=True)
class BlockShare:
    """What the pieces of one block have in common. ``smem``: its shared memory; ``extent``: rows and columns of D;
    ``k_tiles``: of a whole output tile."""

    tiled_mma: cute.TiledMma
    smem: Any
    function: EpilogueFunction
    decomposition: Any
    extent: tuple
    k_tiles: Any


@dataclass(frozen=True)
class ProductTensors:
    """One product of matrices. ``slices`` gives the slices of A and B that a tile loads; ``scatter``: the row indices
    of C and D with their strides, None if rows are not scattered."""

    slices: Callable[[Any, Any], tuple[OperandSlices, OperandSlices]]
    mC: cute.Tensor
    mD: cute.Tensor
    scatter: Any = None


class MultistageGemm:
    """D = f(A @ B, C) for an epilogue function f, A (M, K, L), B (N, K, L), C and D (M, N, L).

    Extents and strides are run-time; ``config`` fixes dtypes, contiguous modes, vector widths and tiles. Extents need
    not be multiples of the tile; K may be 0.
    """

    def __init__(self, config: GemmConfig) -> None:
        config.check()
        self.config = config
        self.math = math_of(config)
        self.mainloop = self.make_mainloop()
        self.raster = raster_of(config)
        self.epilogue = epilogue_of(config)
        bM, bN, _ = config.tile
        self.partials = Partials(config.threads, bM * bN // config.threads, config.acc_dtype)
        self.fixup = Fixup(self.partials)

    def make_mainloop(self) -> MultistageMainloop:
        return MultistageMainloop(self.config, self.math)

    @cute.jit
    def __call__(
        self,
        mA: cute.Tensor,
        mB: cute.Tensor,
        mC: cute.Tensor,
        mD: cute.Tensor,
        function: EpilogueFunction,
        decomposition: Decomposition = DATA_PARALLEL,
        addressing: Addressing = BY_STRIDES,
        stream: Any = None,
    ) -> None:
        """Launch the product. A decomposition that shares tiles needs L = 1 and K > 0. For one that keeps the sums of
        its slices of K, D is a stack with a matrix for each slice."""
        self.launch(mA, mB, mC, mD, function, decomposition, addressing, stream)

    def launch(
        self,
        mA: Any,
        mB: cute.Tensor,
        mC: cute.Tensor,
        mD: cute.Tensor,
        function: EpilogueFunction,
        decomposition: Decomposition,
        addressing: Addressing,
        stream: Any,
    ) -> None:
        """Launch the product."""
        config = self.config
        bM, bN, bK = config.tile
        mA = self.aligned_operand(mA)
        mB, mC, mD = (aligned(tensor, operand) for tensor, operand in ((mB, config.b), (mC, config.c), (mD, config.c)))
        m, n = addressing.extent(mD)
        tiles_m, tiles_n = cute.ceil_div(m, bM), cute.ceil_div(n, bN)
        self.kernel(
            mA,
            mB,
            mC,
            mD,
            function,
            decomposition,
            addressing,
            self.math.smem_layout(config.a, (bM, config.depth_of(0))),
            self.math.smem_layout(config.b, (bN, bK)),
            global_to_shared(
                config.a, (bM, config.depth_of(0)), config.threads, self.granular(config.a, addressing.gather_A)
            ),
            global_to_shared(config.b, (bN, bK), config.threads, self.granular(config.b, addressing.gather_B)),
            self.math.tiled_mma(),
        ).launch(
            grid=decomposition.grid(tiles_m * tiles_n, addressing.batches(mD)),
            block=(config.threads, 1, 1),
            stream=stream,
            use_pdl=True,
        )

    @cute.kernel
    def kernel(
        self,
        mA: Any,
        mB: cute.Tensor,
        mC: cute.Tensor,
        mD: cute.Tensor,
        function: Any,
        decomposition: Any,
        addressing: Addressing,
        sA_layout: cutlass.Constexpr,
        sB_layout: cutlass.Constexpr,
        copy_A: cute.TiledCopy,
        copy_B: cute.TiledCopy,
        tiled_mma: cute.TiledMma,
    ) -> None:
        """A block's share of the work: the decomposition calls ``piece`` for each of its parts of tiles."""
        wait_then_let_next_begin()
        mA, metadata = self.stored_and_metadata(mA)
        bidx, bidy, bidz = cute.arch.block_idx()
        output = bidy if decomposition.sums == "kept" else bidz
        extent = addressing.extent(mD)
        smem, slices_of = self.shared_memory(sA_layout, sB_layout, copy_A, copy_B)
        k_tiles = decomposition.k_tiles(cute.size(mA if metadata is None else mB, mode=[1]), self.config.tile[2])
        work = BlockShare(tiled_mma, smem, function, decomposition, extent, k_tiles)
        product = partial(self.product, addressing, (mA, mB, mC, mD), metadata, slices_of)
        multiply = partial(self.piece, work)
        whole = product(bidz, output)
        piece = partial(multiply, whole)
        if cutlass.const_expr(decomposition.across_batches):
            piece = partial(self.piece_of_batch, product, multiply, extent)
        decomposition.run(bidx, None, k_tiles, piece)
        if cutlass.const_expr(isinstance(decomposition, SharedTiles) and decomposition.separate):
            write = partial(self.write_part, work, whole)
            steps = cute.size(tiled_mma.get_slice(0).partition_shape_C(self.config.tile[:2]), mode=[2])
            accumulators = self.partials.accumulators
            scratch = cute.recast_ptr(smem, dtype=self.config.acc_dtype)
            sums = SumPartition.of(
                self.partials, self.config.threads, steps, accumulators, scratch, self.config.smem_bytes
            )
            self.fixup.reduce(decomposition, cute.arch.thread_idx()[0], sums, write)

    def product(
        self, addressing: Addressing, tensors: tuple, metadata: Any, slices_of: Any, number: Any, output: Any
    ) -> ProductTensors:
        """Product ``number`` of a batch, whose D is matrix ``output``."""
        config = self.config
        operands = (number, config.a), (number, config.b), (number, config.c), (output, config.c)
        mA, mB, mC, mD = (
            addressing.batch(tensor, which, batch, max(operand.copy_bits, operand.dtype.width) // 8)
            for which, (tensor, (batch, operand)) in enumerate(zip(tensors, operands, strict=True))
        )
        scatter = None
        if addressing.scatter_D is not None:
            scatter = addressing.scatter_D, {False: mC.stride[0], True: mD.stride[0]}
        slices = slices_of(mA, mB, addressing.gather_A, addressing.gather_B, metadata=metadata)
        return ProductTensors(slices, mC, mD, scatter)

    @cute.jit
    def piece_of_batch(
        self,
        product: Any,
        multiply: Any,
        extent: tuple,
        tile: Any,
        k_begin: Any,
        k_end: Any,
        state: None = None,
    ) -> None:
        """A piece of a tile, if blocks share tiles across a batch: tiles are numbered product by product."""
        bM, bN, _ = self.config.tile
        number = tile // (cute.ceil_div(extent[0], bM) * cute.ceil_div(extent[1], bN))
        multiply(product(number, number), tile, k_begin, k_end)

    def aligned_operand(self, mA: Any) -> Any:
        """A with the alignment and divisibility that its vector accesses need."""
        return aligned(mA, self.config.a)

    def stored_and_metadata(self, mA: Any) -> tuple[Any, Any]:
        """The matrix A that is loaded, and the metadata if it is sparse."""
        return mA, None

    def granular(self, operand: Operand, gather: Any) -> bool:
        """Whether rows are read by 16 bytes and shifted: rows at a fixed stride, which are not gathered."""
        return gather is None and self.config.granular(operand)

    def shared_memory(
        self, sA_layout: Any, sB_layout: Any, copy_A: cute.TiledCopy, copy_B: cute.TiledCopy
    ) -> tuple[Any, Any]:
        """The block's shared memory, and the slices of matrices A and B that are loaded into it, by tile."""
        # The main loop's stages and the epilogue's tile use the same bytes one after the other.
        bytes_A = cute.cosize(sA_layout) * self.config.a.dtype.width // 8
        bytes_B = cute.cosize(sB_layout) * self.config.b.dtype.width // 8
        smem = utils.SmemAllocator().allocate(max(bytes_A + bytes_B, self.epilogue.smem_bytes), 128)
        sA = cute.make_tensor(cute.recast_ptr(smem, dtype=self.config.a.dtype), sA_layout)
        sB = cute.make_tensor(cute.recast_ptr(smem + bytes_A, dtype=self.config.b.dtype), sB_layout)
        bM, bN, bK = self.config.tile

        def slices_of(
            mA: cute.Tensor,
            mB: cute.Tensor,
            gather_A: Any = None,
            gather_B: Any = None,
            count_A: Any = None,
            metadata: Any = None,
        ) -> Any:
            def slices(tile_m: Any, tile_n: Any) -> tuple[OperandSlices, OperandSlices]:
                A = OperandSlices.of(mA, (bM, self.config.depth_of(0)), tile_m, sA, copy_A, gather_A, count_A)
                if metadata is not None:
                    A = replace(A, metadata=(metadata, tile_m))
                return A, OperandSlices.of(mB, (bN, bK), tile_n, sB, copy_B, gather_B)

            return slices

        return smem, slices_of

    @cute.jit
    def piece(
        self,
        work: BlockShare,
        product: ProductTensors,
        tile: Any,
        k_begin: Any,
        k_end: Any,
        state: None = None,
    ) -> None:
        """Multiply k tiles [k_begin, k_end) of one output tile; the block that has the last of them writes it."""
        tiled_mma, smem, function, extent = work.tiled_mma, work.smem, work.function, work.extent
        decomposition, k_tiles, scatter = work.decomposition, work.k_tiles, product.scatter
        bM, bN, _ = self.config.tile
        tiles = (cute.ceil_div(extent[0], bM), cute.ceil_div(extent[1], bN))
        tidx, _, _ = cute.arch.thread_idx()
        shape = tiled_mma.get_slice(0).partition_shape_C((bM, bN))  # (MMA, MMA_M, MMA_N)
        acc = cute.make_rmem_tensor(shape, self.config.acc_dtype)
        acc.fill(0)
        A, B = product.slices(*decomposition.place(self.raster, tile, *(rematerialize(n) for n in tiles)))
        self.mainloop.run(tiled_mma, rematerialize(tidx), acc, A, B, k_begin, k_end)
        cute.arch.sync_threads()

        # Compute the tile's coordinates again, so that they take no registers during the main loop.
        tidx = rematerialize(tidx)
        where = decomposition.place(self.raster, rematerialize(tile), *(rematerialize(n) for n in tiles))
        gC, gD, cD = self.tiles(product, extent, where)
        write = partial(self.epilogue.run, tiled_mma, tidx, acc, scatter=scatter)
        if cutlass.const_expr(decomposition.sums == "in_turn"):
            # Serial split-K: the blocks of a tile write one after the other, the first adds C, the others add to D.
            decomposition.wait(tile, tidx, cute.arch.sync_threads)
            turn, turns = decomposition.turn(), decomposition.slices
            if turn == 0:
                write(gC, gD, cD, smem, extent, of_k_partition(function, 0, turns))
            else:
                if cutlass.const_expr(scatter is not None):  # C is D
                    rows, strides = scatter
                    again = rows, {False: strides[True], True: strides[True]}
                    write = partial(self.epilogue.run, tiled_mma, tidx, acc, scatter=again)
                write(gD, gD, cD, smem, extent, of_k_partition(function, turn, turns))
            decomposition.release(tile, tidx, cute.arch.sync_threads)
        elif cutlass.const_expr(decomposition.sums != "exchanged"):
            write(gC, gD, cD, smem, extent, function)
        elif cutlass.const_expr(decomposition.separate):
            # Sums of a part of K go to the workspace, and a reduction block writes the tile.
            if (k_begin > 0) | (k_end < k_tiles):
                self.fixup.give(decomposition, tile, k_begin, tidx, acc)
            else:
                write(gC, gD, cD, smem, extent, function)
                cute.arch.sync_threads()
        elif k_end < k_tiles:
            self.fixup.give(decomposition, tile, k_begin, tidx, acc)
        else:
            if k_begin > 0:  # Stream-K: this block has the tile's last k tile, earlier blocks handed over their sums
                self.fixup.take(decomposition, tile, tidx, acc)
            write(gC, gD, cD, smem, extent, function)
            cute.arch.sync_threads()

    def tiles(self, product: ProductTensors, extent: tuple, where: tuple) -> tuple[Any, Any, Any]:
        """The tile ``where`` of C, of D and of the coordinates: (bM, bN) each."""
        gC, gD, cD = (
            cute.local_tile(tensor, self.config.tile[:2], where)
            for tensor in (product.mC, product.mD, cute.make_identity_tensor(extent))
        )
        return gC, gD, cD

    @cute.jit
    def write_part(
        self, work: BlockShare, product: ProductTensors, tile: Any, group: Any, step: Any, sums: cute.Tensor
    ) -> None:
        """Write a reduction block's sums of one step of the instruction along N to D."""
        bM, bN, _ = self.config.tile
        extent = work.extent
        where = work.decomposition.place(self.raster, tile, cute.ceil_div(extent[0], bM), cute.ceil_div(extent[1], bN))
        gC, gD, cD = self.tiles(product, extent, where)
        tidx = cute.arch.thread_idx()[0]
        FragmentEpilogue(self.config).run(
            work.tiled_mma, tidx, sums, step, gC, gD, cD, extent, work.function, product.scatter
        )
